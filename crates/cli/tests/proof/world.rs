//! A home with something of everything: turns, proposals decided each way, a correction, versions, receipts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::home::Home;
use thought_testkit::world::World;

use crate::THOUGHT;

fn call(name: &str, text: &str) -> Reply {
    let mut arguments = json!({"reason": "They asked for it.", "evidence_event_ids": []});
    if name == "submit_correction" {
        arguments["target_output"] = json!("latest");
        arguments["replacement"] = json!(text);
    } else {
        arguments["operation"] = json!("append");
        arguments["proposed_text"] = json!(text);
    }
    Reply::Calls { text: None, calls: vec![(name.to_owned(), arguments)] }
}

/// Such a home, at rest.
pub(crate) async fn lived_in() -> World {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![
        Reply::Text("Good morning.".to_owned()),
        call("request_memory_change", "- Lives in Lisbon."),
        call("request_memory_change", "- Has a cat."),
        call("submit_correction", "Good evening."),
        call("request_memory_change", "- Likes ferries."),
        Reply::status(400),
    ]);
    let serve = world.serve();
    for (number, text) in
        ["Hello!", "I live in Lisbon.", "I have a cat.", "It is evening.", "Ferries!"].iter().enumerate()
    {
        world.turn(text, number + 1).await;
    }
    world.say("This one fails.");
    world.home.wait_for_runs("failed", 1);
    world.home.wait_for_deliveries("notice:run-failed", 1);
    serve.stop();
    let proposals = world.home.lines(&["proposal-list"]);
    let decide = |proposal: &Value, disposition: &str, code| {
        let id = proposal["id"].as_str().unwrap();
        world.home.json(&["proposal-decision", "--proposal", id, "--disposition", disposition]).exit(code);
    };
    decide(&proposals[0], "accept", 0);
    // Stale by now, and finally so.
    decide(&proposals[1], "accept", 6);
    decide(&proposals[2], "accept", 0);
    world
}

/// Copies a home at rest, as a person would with `cp -a`.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Every file below a folder with its bytes, without locks and what only runs.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let entry = entry.unwrap();
            let below = entry.path().strip_prefix(folder).unwrap().to_owned();
            if entry.file_type().unwrap().is_dir() {
                if below != Path::new("run") {
                    waiting.push(entry.path());
                }
            } else if !below.to_string_lossy().starts_with("thought.db") && !below.ends_with(".thought.lock")
            {
                found.push((below, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The home as a test of the binary sees it, at another path.
pub(crate) fn at(world: &World, path: &Path) -> Home {
    Home { path: path.to_owned(), binary: world.home.binary.clone(), folder: tempfile::tempdir().unwrap() }
}
