//! What a reviewer sees: lists and pages, ages and marks, and the text itself only with consent.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thought_testkit::run::{Binary, argument};
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::world::{calls, correction, focus, id, listed, memory, says};

const ACKNOWLEDGE: &str = "--acknowledge-sensitive-private";

/// A world whose model makes these suggestions, one turn each, and rests.
async fn with(turns: Vec<Vec<(String, Value)>>) -> World {
    let world = World::start(THOUGHT).await;
    let count = turns.len();
    world.model.script(turns.into_iter().map(calls).collect());
    let serve = world.serve();
    for number in 1..=count {
        world.turn("Go on.", number).await;
    }
    serve.stop();
    world
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suggestion_is_listed_without_its_words_and_shown_with_consent() {
    let text = "- Lives in L\u{e9}zard.";
    let world = with(vec![vec![memory(text)]]).await;
    let home = &world.home;
    let row = listed(&world, "memory-change");
    let names = ["ageSeconds", "base", "id", "kind", "run", "state", "target", "textLength", "textSha256"];
    assert_eq!(keys(&row), names);
    let payload = home.events("agent.memory-change.proposed@1").remove(0);
    assert_eq!(row["id"], payload["id"]);
    assert_eq!(
        (&row["state"], &row["base"], &row["run"]),
        (&json!("undecided"), &json!("current"), &home.runs()[0]["id"])
    );
    assert_eq!((&row["textLength"], &row["textSha256"]), (&json!(18), &json!(sha256(text))));
    assert_eq!(row["target"], payload["payload"]["target"]);
    assert!(row["ageSeconds"].as_u64().unwrap() < 600);
    let status = home.object(&["status"]);
    assert_eq!(status["proposals"]["undecided"], 1);
    assert!(status["proposals"]["oldestAgeSeconds"].as_u64().unwrap() < 600, "{status}");

    // Without consent no word of it, whichever way it is printed.
    let id = id(&row);
    let dark = [
        home.json(&["proposal-list"]).stdout,
        home.run(&["proposal-list"]).exit(0).stdout,
        home.json(&["proposal-show", id]).exit(0).stdout,
        home.run(&["proposal-show", id]).exit(0).stdout,
        home.json(&["lineage", id]).exit(0).stdout,
        home.run(&["status"]).exit(0).stdout,
    ];
    for printed in &dark {
        assert!(!printed.contains("zard") && !printed.contains("They asked"), "{printed}");
    }
    assert!(dark[1].contains("undecided") && dark[5].contains("1 suggestion, for"), "{}", dark[5]);

    let shown = home.object(&["proposal-show", &id[..14], ACKNOWLEDGE]);
    assert_eq!(
        (&shown["text"], &shown["textLength"], &shown["textSha256"]),
        (&json!(text), &row["textLength"], &row["textSha256"])
    );
    assert_eq!((&shown["baseVersion"], &shown["warnings"]), (&row["target"]["versionId"], &json!([])));
    let diff = shown["diff"].as_str().unwrap();
    assert!(diff.ends_with(&format!("\n+\n+{text}\n")) && diff.contains("\n@@ "), "{diff}");
    assert_eq!(shown["reason"], "They asked for it.");
    let printed = home.run(&["proposal-show", id, ACKNOWLEDGE]).exit(0).stdout;
    assert!(printed.contains(&format!("+{text}")) && printed.contains("nothing has changed"), "{printed}");
    home.json(&["proposal-show", "evt_00000000"]).exit(5);
    // An event that is no proposal is none.
    let message = home.events("source.telegram.message@1").remove(0);
    home.json(&["proposal-show", crate::world::id(&message)]).exit(5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hides_is_written_out_and_what_looks_like_a_key_is_marked() {
    let key = format!("sk-ant-{}", "a1".repeat(20));
    let text = format!("- Likes te\u{202e}a\u{200b}. The key is {key}.");
    let world = with(vec![vec![memory(&text)]]).await;
    let row = listed(&world, "memory-change");
    let id = id(&row);
    let shown = world.home.object(&["proposal-show", id, ACKNOWLEDGE]);
    assert_eq!(
        (&shown["text"], &shown["textSha256"]),
        (&json!(text), &json!(sha256(&text))),
        "exact, whatever it holds"
    );
    assert_eq!(shown["warnings"], json!(["possible-secret", "hidden-characters"]));
    let printed = world.home.run(&["proposal-show", id, ACKNOWLEDGE]).exit(0).stdout;
    assert!(printed.matches("te<U+202E>a<U+200B>.").count() == 2, "{printed}");
    assert!(!printed.contains('\u{202e}') && !printed.contains('\u{200b}'));
    // The marks are no content: they show without consent, so that nobody consents unwarned.
    let dark = world.home.object(&["proposal-show", id]);
    assert_eq!(dark["warnings"], shown["warnings"]);
    assert!(dark.get("text").is_none() && dark.get("diff").is_none() && dark.get("reason").is_none());
    let list = world.home.run(&["proposal-list"]).exit(0).stdout;
    assert!(list.contains("possible-secret, hidden-characters") && !list.contains("sk-ant"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_moved_on_is_marked_and_the_diff_stays_on_what_was_meant() {
    let replaced = "---\nid: memory\n---\n- Only this.\n";
    let replace = json!({
        "operation": "replace-document", "proposed_text": replaced, "reason": "r", "evidence_event_ids": [],
    });
    let world = with(vec![vec![("request_memory_change".to_owned(), replace)]]).await;
    let row = listed(&world, "memory-change");
    let before = world.home.object(&["proposal-show", id(&row), ACKNOWLEDGE]);
    assert!(before["diff"].as_str().unwrap().contains("\n+- Only this.\n"), "{before}");
    assert!(before["diff"].as_str().unwrap().contains("\n-"), "what goes is shown");
    let memory = world.home.below("context/memory.md");
    let text = std::fs::read_to_string(&memory).unwrap();
    std::fs::write(&memory, format!("{text}- Written by hand.\n")).unwrap();
    world.home.run(&["scan"]).exit(0);
    let after = world.home.object(&["proposal-show", id(&row), ACKNOWLEDGE]);
    assert_eq!((&after["base"], &after["warnings"]), (&json!("stale"), &json!(["stale-base"])));
    assert_eq!((&after["diff"], &after["baseVersion"]), (&before["diff"], &before["baseVersion"]));
    assert_eq!(listed(&world, "memory-change")["base"], "stale");
    assert_eq!(world.home.object(&["status"])["proposals"]["undecided"], 1, "stale and waiting");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_shown_against_the_answer_it_is_about() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![says("It is Monday."), calls(vec![correction("It is Tuesday.")])]);
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    world.turn("Wrong.", 2).await;
    serve.stop();
    let row = listed(&world, "self-correction");
    assert_eq!((&row["state"], &row["base"]), (&json!("undecided"), &json!("current")));
    assert_eq!(row["target"]["output"], world.home.runs()[0]["output"]);
    let shown = world.home.object(&["proposal-show", id(&row), ACKNOWLEDGE]);
    assert_eq!(shown["text"], "It is Tuesday.");
    assert!(shown["diff"].as_str().unwrap().ends_with("\n-It is Monday.\n+It is Tuesday.\n"), "{shown}");
    assert!(shown.get("baseVersion").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_and_paged() {
    let turns = (1..=3).map(|number| vec![memory(&format!("- {number}.")), focus()]).collect();
    let world = with(turns).await;
    let list = |arguments: &[&str]| -> Vec<Value> {
        let mut all = vec!["proposal-list"];
        all.extend(arguments);
        world.home.lines(&all).iter().map(|row| row["id"].clone()).collect()
    };
    let all = list(&[]);
    assert_eq!(all.len(), 6);
    let positions = world.home.lines(&["event-list"]);
    let place = |id: &Value| positions.iter().position(|event| event["id"] == *id).unwrap();
    assert!(all.windows(2).all(|pair| place(&pair[0]) < place(&pair[1])), "oldest first");
    assert_eq!(list(&["--limit", "2"]), all[..2]);
    assert_eq!(list(&["--limit", "2", "--after", all[1].as_str().unwrap()]), all[2..4]);
    assert!(list(&["--after", all[5].as_str().unwrap()]).is_empty());
    let memories = [all[0].clone(), all[2].clone(), all[4].clone()];
    assert_eq!(list(&["--state", "undecided"]), memories);
    assert_eq!(list(&["--kind", "memory-change", "--limit", "2"]), memories[..2]);
    assert_eq!(
        list(&["--state", "inert", "--after", all[1].as_str().unwrap()]),
        [all[3].clone(), all[5].clone()]
    );
    for empty in [
        ["--state", "decided"],
        ["--state", "projected"],
        ["--state", "failed"],
        ["--kind", "self-correction"],
    ] {
        assert!(list(&empty).is_empty(), "{empty:?}");
    }
    world.home.json(&["proposal-list", "--state", "nonsense"]).exit(2);
    world.home.json(&["proposal-list", "--kind", "memory"]).exit(2);
    world.home.json(&["proposal-list", "--after", "evt_00000000"]).exit(5);
    assert_eq!(world.home.object(&["status"])["proposals"]["undecided"], 3);
    let page = world.home.run(&["proposal-list", "--limit", "2"]).exit(0);
    assert!(page.stderr.contains("2 of 6"), "{}", page.stderr);
    assert_eq!(page.stdout.lines().count(), 3, "{}", page.stdout);
}

/// Runs a command on a terminal of its own, with somebody there who answers.
fn at_a_terminal(world: &World, arguments: &[&str], answer: &str) -> String {
    let typed = world.home.folder.path().join("typed");
    std::fs::write(&typed, answer).unwrap();
    let quoted: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let command = format!("'{THOUGHT}' --home '{}' {}", argument(&world.home.path), quoted.join(" "));
    let transcript = world.home.folder.path().join("transcript");
    let inner = format!(
        "script --quiet --return --command \"{command}\" '{}' < '{}'",
        argument(&transcript),
        argument(&typed)
    );
    let mut shell = Binary::new("/bin/sh");
    shell.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let _done = shell.run(&["-c", &inner]).exit(0);
    std::fs::read_to_string(&transcript).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_at_a_terminal_is_asked_and_only_a_yes_shows_content() {
    let world = with(vec![vec![memory("- Likes quetzals.")]]).await;
    let row = listed(&world, "memory-change");
    let run = world.home.runs().remove(0);
    for (command, named) in [
        (["proposal-show", id(&row)], "the suggestion is private"),
        (["event-show", id(&row)], "the payload is private"),
        (["context-show", id(&run)], "the packet is private"),
    ] {
        let said_no = at_a_terminal(&world, &command, "n\n");
        assert!(said_no.contains(named) && !said_no.contains("quetzals"), "{said_no}");
        let said_nothing = at_a_terminal(&world, &command, "\n");
        assert!(!said_nothing.contains("quetzals"), "{said_nothing}");
        let said_yes = at_a_terminal(&world, &command, "yes\n");
        let word = if command[0] == "context-show" { "Go on." } else { "quetzals" };
        assert!(said_yes.contains(word), "{said_yes}");
    }
    let unasked = at_a_terminal(&world, &["proposal-show", id(&row), ACKNOWLEDGE], "");
    assert!(unasked.contains("quetzals") && !unasked.contains("[y/N]"), "{unasked}");
    // A program is never asked.
    let json = at_a_terminal(&world, &["--json", "proposal-show", id(&row)], "yes\n");
    assert!(!json.contains("[y/N]") && !json.contains("quetzals"), "{json}");
}

/// Tables and indexes of the first version of the schema; what is not among them came later.
const FIRST: [&str; 33] = [
    "sources",
    "events",
    "conversations",
    "judgments",
    "spool",
    "channels",
    "refused_chats",
    "declarations",
    "consumers",
    "runs",
    "run_counts",
    "attempts",
    "snapshots",
    "usage",
    "versions",
    "documents",
    "deliveries",
    "chunks",
    "cursors",
    "roles",
    "events_by_type",
    "events_by_root",
    "events_by_parent",
    "events_by_conversation",
    "judgments_by_output",
    "judgments_by_superseded",
    "declarations_active",
    "runs_by_trigger",
    "runs_by_state",
    "runs_by_output",
    "runs_open",
    "deliveries_by_cause",
    "deliveries_unfinished",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_the_first_version_opens_and_lists_what_its_events_say() {
    let world = World::start(THOUGHT).await;
    let all = vec![memory("- Likes tea."), correction("Good evening."), focus()];
    world.model.script(vec![says("Good morning."), calls(all)]);
    let serve = world.serve();
    world.turn("Hello.", 1).await;
    world.turn("Go on.", 2).await;
    serve.stop();
    let list = || -> Vec<Value> {
        let mut rows = world.home.lines(&["proposal-list"]);
        rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("ageSeconds")));
        rows
    };
    let (before, events) = (list(), world.home.lines(&["event-list"]));
    assert_eq!(before.len(), 3);

    let store = rusqlite::Connection::open(world.home.below("thought.db")).unwrap();
    let objects: Vec<(String, String)> = {
        // Indexes first: those of a table that goes would be gone with it.
        let listed = "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type";
        let mut named = store.prepare(listed).unwrap();
        named.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    for (what, name) in objects.iter().filter(|(_, name)| !FIRST.contains(&name.as_str())) {
        store.execute_batch(&format!("DROP {what} {name}")).unwrap();
    }
    // What hangs on positions now hung on ids then; the columns that were there are read by their names.
    store
        .execute_batch(
            "DROP INDEX events_by_root; DROP INDEX events_by_parent;
             ALTER TABLE events DROP COLUMN root_position; ALTER TABLE events DROP COLUMN parent_position;
             ALTER TABLE runs DROP COLUMN reply_position;
             CREATE INDEX events_by_root ON events (root_id, position);
             CREATE INDEX events_by_parent ON events (parent_id, position) WHERE parent_id IS NOT NULL;",
        )
        .unwrap();
    store.pragma_update(None, "user_version", 1).unwrap();
    drop(store);

    assert_eq!(list(), before);
    assert_eq!(world.home.lines(&["event-list"]), events, "a migration writes no event");
    let status = world.home.object(&["status"]);
    assert_eq!(status["proposals"]["undecided"], 2);
    // And it goes on as any other.
    world.model.script(vec![calls(vec![memory("- Likes cake.")])]);
    let serve = world.serve();
    world.turn("And cake.", 3).await;
    serve.stop();
    assert_eq!(world.home.object(&["status"])["proposals"]["undecided"], 3);
}
