//! Without the acknowledgment nothing but ids and status is told, whatever is asked for and however much is logged.

use std::fs;

use thought_fakes::Reply;
use thought_testkit::canary;
use thought_testkit::serve::Serve;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::letter::{WAIT, arguments, ask, letter, send};

const ASKED: &str = "canary-question-of-co";
const SAID: &str = "canary-response-of-the-stream";
const BOTH: [&str; 2] = [ASKED, SAID];

#[tokio::test(flavor = "multi_thread")]
async fn both_texts_stay_dark_at_every_level_and_in_both_forms() {
    let world = World::start(THOUGHT).await;
    world.model.set_default_reply(|_| Reply::Text(SAID.to_owned()));
    let serve = Serve::start_with(&world.home, &["--log-level", "trace"]);
    let home = &world.home;
    let mut number = 0;
    for level in ["off", "error", "warn", "info", "debug", "trace"] {
        for form in ["text", "json"] {
            for options in [&["--json"][..], &[]] {
                number += 1;
                let id = format!("m-{number}");
                let letter = letter("t-1", &id, ASKED);
                let own = arguments(home.folder.path(), letter);
                let mut all: Vec<&str> = own.iter().map(String::as_str).collect();
                all.extend(["--log-level", level, "--log-format", form, "--wait-seconds", WAIT]);
                all.extend(options);
                let done = home.run(&all).exit(0);
                let told = format!("{}{}", done.stdout, done.stderr);
                assert_eq!(canary::in_bytes("what was told", told.as_bytes(), &BOTH), [""; 0], "{told}");
                assert!(done.stdout.contains("completed") && done.stdout.contains("evt_"), "{}", done.stdout);
            }
        }
    }
    // With it, the response is what is told, and only there.
    let shown = ask(home, letter("t-1", "m-1", ASKED));
    assert_eq!(shown["response"], SAID);
    let conflict = send(home, letter("t-1", "m-1", "canary-question-of-co, changed"), &[]).exit(4);
    assert_eq!(canary::in_bytes("a conflict", conflict.stderr.as_bytes(), &BOTH), [""; 0]);

    let run = home.runs()[0]["id"].as_str().unwrap().to_owned();
    let events = home.lines(&["event-list", "--source", "agent-message:co"]);
    let event = events[0]["id"].as_str().unwrap().to_owned();
    let commands = [
        vec!["status"],
        vec!["event-list"],
        vec!["event-show", &event],
        vec!["lineage", &event],
        vec!["run-list"],
        vec!["run-show", &run],
        vec!["context-show", &run],
    ];
    for command in commands {
        for done in [home.run(&command), home.json(&command)] {
            let told = format!("{}{}", done.stdout, done.stderr);
            assert_eq!(canary::in_bytes(&command.join(" "), told.as_bytes(), &BOTH), [""; 0]);
        }
    }
    let log = serve.stop();
    assert!(log.contains("private message") || log.lines().count() > 10, "{log}");
    assert_eq!(canary::in_bytes("the log", log.as_bytes(), &BOTH), [""; 0]);
    for file in ["thought.toml", "run"] {
        let path = home.below(file);
        let found = if path.is_dir() {
            canary::in_folder(&path, &BOTH)
        } else {
            canary::in_bytes(file, &fs::read(&path).unwrap(), &BOTH)
        };
        assert!(found.is_empty(), "{found:?}");
    }
    // Notices, incidents, receipts and lifecycle hold no words.
    for event in home.lines(&["event-list", "--acknowledge-sensitive-private"]) {
        let name = event["type"].as_str().unwrap();
        if !["stream.thought.source.agent.message@1", "stream.thought.derived.agent.message@1"]
            .contains(&name)
        {
            assert_eq!(canary::in_bytes(name, event.to_string().as_bytes(), &BOTH), [""; 0]);
        }
    }
}
