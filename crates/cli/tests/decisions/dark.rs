//! Ids and states are printed and logged, and never content: words are planted everywhere, everything is made to happen at
//! the most talkative level, and then all that was printed and kept is searched.

use std::fs;

use thought_fakes::Reply;
use thought_testkit::canary;
use thought_testkit::home::Home;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::world::{
    CHANGE, CORRECTION, appended, calls, correction, file, id_of, memory, memory_of, memory_path, word,
};

const ANSWER: &str = "canary-answer-of-the-model";
const PROPOSED: &str = "canary-proposed-line";
const OTHER: &str = "canary-other-line";
const CORRECTED: &str = "canary-corrected-answer";
const OWN: &str = "canary-own-words-of-the-person";
const OWN_ANSWER: &str = "canary-own-answer-of-the-person";
const BY_HAND: &str = "canary-line-by-hand";
const REASON: &str = "canary-reason-of-the-model";
const ALL: [&str; 8] = [ANSWER, PROPOSED, OTHER, CORRECTED, OWN, OWN_ANSWER, BY_HAND, REASON];

fn because(mut call: (String, serde_json::Value)) -> (String, serde_json::Value) {
    call.1["reason"] = REASON.into();
    call
}

async fn planted() -> World {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![
        Reply::Text(ANSWER.to_owned()),
        calls(vec![because(memory(PROPOSED)), because(correction(CORRECTED))]),
        calls(vec![because(memory(OTHER))]),
        calls(vec![because(memory(OTHER))]),
    ]);
    let serve = world.serve();
    for number in 1..=4 {
        world.turn("Go on.", number).await;
    }
    serve.stop();
    world
}

/// Runs a command in every way it prints, and gives all that it said.
fn said(home: &Home, arguments: &[&str]) -> String {
    let mut all = String::new();
    for format in ["text", "json"] {
        let mut talkative = vec!["--log-level", "trace", "--log-format", format];
        talkative.extend(arguments);
        for done in [home.run(&talkative), home.json(&talkative)] {
            all.push_str(&format!("{:?}\n{}{}", done.code, done.stdout, done.stderr));
        }
    }
    all
}

/// Every value of a column that may hold no content, as text.
fn plain_columns(home: &Home) -> String {
    let store = rusqlite::Connection::open(home.below("thought.db")).unwrap();
    let names = |sql: &str| -> Vec<String> {
        let mut statement = store.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut text = String::new();
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table'") {
        for name in names(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            let is_content = matches!(name.as_str(), "payload" | "content" | "bytes" | "body")
                || name.ends_with("_content");
            if !is_content {
                let values = names(&format!("SELECT quote(\"{name}\") FROM \"{table}\""));
                text.push_str(&format!("{table}.{name}: {}\n", values.join(" ")));
            }
        }
    }
    assert!(text.contains("events.id: 'evt_"), "the columns were read");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn no_word_of_a_suggestion_or_of_a_person_is_printed_or_logged() {
    let mut world = planted().await;
    let rows = world.home.lines(&["proposal-list"]);
    let changes: Vec<String> = rows.iter().filter(|row| row["kind"] == CHANGE).map(id_of).collect();
    let correction = id_of(rows.iter().find(|row| row["kind"] == CORRECTION).unwrap());
    let own = file(&world.home, "own.md", OWN);
    let own_answer = file(&world.home, "answer.txt", OWN_ANSWER);
    let bad = file(&world.home, "bad.md", format!("{OWN}\0"));
    let home = &mut world.home;
    let mut heard = String::new();
    let mut hear = |home: &Home, arguments: &[&str]| heard.push_str(&said(home, arguments));

    // Refused, killed, projected, repeated, contradicted, stale, reproposed, reverted, listed.
    hear(home, &word(&changes[0], "edit", &["--replacement-file", &bad]));
    hear(home, &word(&changes[0], "accept", &["--replacement-file", &own]));
    hear(home, &word(&changes[0], "accept", &["--expect-sha256", &"0".repeat(64)]));
    home.env("THOUGHT_TEST_CRASH_POINT", "exchange.after");
    hear(home, &word(&changes[0], "edit", &["--replacement-file", &own]));
    home.unset("THOUGHT_TEST_CRASH_POINT");
    hear(home, &["proposal-project"]);
    assert!(memory_of(home).contains(OWN), "it was carried out");
    hear(home, &word(&changes[0], "edit", &["--replacement-file", &own]));
    hear(home, &word(&changes[0], "edit", &["--replacement-file", &own_answer]));
    hear(home, &word(&correction, "edit", &["--replacement-file", &own_answer]));
    fs::write(memory_path(home), appended(&memory_of(home), BY_HAND)).unwrap();
    hear(home, &word(&changes[1], "accept", &[]));
    hear(home, &["proposal-repropose", &changes[1]]);
    hear(home, &["proposal-revert", &changes[0]]);
    hear(home, &["proposal-revert", &changes[2]]);
    hear(home, &word(&changes[2], "reject", &[]));
    fs::write(home.below("context/.thought.lock"), OWN).unwrap();
    let waiting = home.lines(&["proposal-list", "--state", "undecided"]);
    hear(home, &word(&id_of(&waiting[0]), "accept", &[]));
    fs::write(home.below("context/.thought.lock"), "").unwrap();
    hear(home, &["proposal-project"]);
    for command in ["judgment-list", "proposal-list", "status", "event-list", "scan"] {
        hear(home, &[command]);
    }
    for id in changes.iter().chain([&correction]) {
        hear(home, &["proposal-show", id]);
        hear(home, &["lineage", id]);
    }
    for word in
        ["decision recorded", "memory change materialized", "lock-invalid", "stale-base", "judgment recorded"]
    {
        assert!(heard.contains(word), "{word} happened: {heard}");
    }
    assert_eq!(canary::in_bytes("what was printed", heard.as_bytes(), &ALL), [""; 0], "{heard}");

    // A served home tells no more.
    let serve = thought_testkit::serve::Serve::start_with(&world.home, &["--log-level", "trace"]);
    world.turn("Go on.", 5).await;
    let log = serve.stop();
    assert_eq!(canary::in_bytes("the log", log.as_bytes(), &ALL), [""; 0], "{log}");

    let home = &world.home;
    let columns = plain_columns(home);
    assert_eq!(canary::in_bytes("a plain column", columns.as_bytes(), &ALL), [""; 0]);
    for event in home.lines(&["event-list", "--acknowledge-sensitive-private"]) {
        let name = event["type"].as_str().unwrap().to_owned();
        let holds_none =
            ["materialized@", "materialization.failed@", "run.", "delivery.", "notice.", "source.file."];
        if holds_none.iter().any(|part| name.contains(part)) {
            assert_eq!(canary::in_bytes(&name, event.to_string().as_bytes(), &ALL), [""; 0]);
        }
    }
    let home_names = fs::read_dir(home.below("context")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(home_names.into_iter().all(|name| !name.to_string_lossy().contains("canary")));
    // With the acknowledgment the corrected words are there.
    let shown = home.json(&["judgment-list", "--acknowledge-sensitive-private"]).exit(0);
    assert!(shown.stdout.contains(OWN_ANSWER));
}
