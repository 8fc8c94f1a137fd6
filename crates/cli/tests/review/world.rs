//! What the tests share: suggestions that a model makes, and what a word leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::home::Home;
use thought_testkit::run::argument;
use thought_testkit::world::World;

use crate::THOUGHT;

pub(crate) fn memory(text: &str) -> (String, Value) {
    let arguments = json!({
        "operation": "append", "proposed_text": text, "reason": "They asked for it.", "evidence_event_ids": [],
    });
    ("request_memory_change".to_owned(), arguments)
}

pub(crate) fn correction(target: &str, replacement: &str) -> (String, Value) {
    let arguments = json!({
        "target_output": target, "replacement": replacement, "reason": "I was wrong.", "evidence_event_ids": [],
    });
    ("submit_correction".to_owned(), arguments)
}

pub(crate) fn focus() -> (String, Value) {
    let declaration = json!({
        "id": "ferry-news", "version": 1, "lineage": {"kind": "new"},
        "scope": {"summary": "News on the ferries.", "includes": ["timetables"], "excludes": []},
        "objective": "Notice when a ferry is late.",
        "subscriptions": [{"eventType": "stream.thought.source.telegram.message@1", "source": "telegram:stream"}],
        "budgets": {"maxEventsPerDay": 10, "maxInferenceRequestsPerDay": 1, "maxContextCharacters": 1000},
        "requestedPermissions": ["read-events"], "retirement": {"kind": "after-days", "days": 30},
    });
    ("propose_focus".to_owned(), declaration)
}

pub(crate) fn calls(calls: Vec<(String, Value)>) -> Reply {
    Reply::Calls { text: None, calls }
}

/// A world whose model makes these suggestions of memory, one turn each.
pub(crate) async fn suggesting(texts: &[&str]) -> World {
    let world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    world.model.script(texts.iter().map(|text| calls(vec![memory(text)])).collect());
    let serve = world.serve();
    for number in 1..=texts.len() {
        world.turn("Go on.", number).await;
    }
    serve.stop();
    world
}

pub(crate) fn memory_of(home: &Home) -> String {
    fs::read_to_string(home.below("context/memory.md")).unwrap()
}

pub(crate) fn decisions(home: &Home) -> Vec<Value> {
    home.events("agent.proposal.decision@1")
}

pub(crate) fn rows(home: &Home) -> Vec<Value> {
    home.lines(&["proposal-list"])
}

/// State and base of every proposal, oldest first.
pub(crate) fn states(home: &Home) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    rows(home).iter().map(|row| (word(&row["state"]), word(&row["base"]))).collect()
}

/// What a review keeps in `run/` as long as somebody edits.
pub(crate) fn private_folders(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.below("run")).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("review-")).collect()
}

/// The review that works on a home.
pub(crate) fn review_process(home: &Home) -> u32 {
    let home = argument(&home.path);
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_review = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&str> = line.split('\0').collect();
        words.first() == Some(&THOUGHT) && words.contains(&home) && words.contains(&"review")
    };
    pids.filter(is_review).last().unwrap()
}

/// An editor that does what a shell script says; `$1` is the file.
pub(crate) fn editor(home: &mut Home, script: &str) {
    let path = home.folder.path().join("editor");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let path = argument(&path).to_owned();
    home.env("VISUAL", &path);
}
