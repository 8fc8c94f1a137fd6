//! What the tests share: suggestions that a model makes, a person's words on them, and what must not have changed.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thought_fakes::Reply;
use thought_testkit::home::Home;
use thought_testkit::run::{Done, argument};
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::template::{Template, home, row};

pub(crate) const CHANGE: &str = "memory-change";
pub(crate) const CORRECTION: &str = "self-correction";
pub(crate) const FOCUS: &str = "focus-declaration";

pub(crate) fn memory(text: &str) -> (String, Value) {
    change("append", text)
}

pub(crate) fn change(operation: &str, text: &str) -> (String, Value) {
    let arguments = json!({
        "operation": operation, "proposed_text": text, "reason": "They asked for it.", "evidence_event_ids": [],
    });
    ("request_memory_change".to_owned(), arguments)
}

pub(crate) fn correction(replacement: &str) -> (String, Value) {
    let arguments = json!({
        "target_output": "latest", "replacement": replacement, "reason": "I was wrong.", "evidence_event_ids": [],
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

pub(crate) fn says(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

/// A world whose model makes these suggestions, one turn each, and rests.
pub(crate) async fn world_with(turns: Vec<Vec<(String, Value)>>) -> World {
    let world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    let count = turns.len();
    world.model.script(turns.into_iter().map(calls).collect());
    let serve = world.serve();
    for number in 1..=count {
        world.turn("Go on.", number).await;
    }
    serve.stop();
    world
}

/// A home of [`Template::Three`], with the id of its proposal of a kind.
pub(crate) async fn three(kind: &str) -> (Home, String) {
    let home = home(Template::Three).await;
    let id = id_of(&row(&home, kind, 0));
    (home, id)
}

/// A home of [`Template::Five`], with the ids of its proposals.
pub(crate) async fn five() -> (Home, Vec<String>) {
    let home = home(Template::Five).await;
    let ids = home.lines(&["proposal-list"]).iter().map(id_of).collect();
    (home, ids)
}

pub(crate) fn id_of(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes.as_ref()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Arguments of a decision.
pub(crate) fn word<'a>(id: &'a str, disposition: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["proposal-decision", "--proposal", id, "--disposition", disposition];
    arguments.extend(more);
    arguments
}

/// Decides.
pub(crate) fn decide(home: &Home, id: &str, disposition: &str, more: &[&str]) -> Done {
    home.json(&word(id, disposition, more))
}

/// Decides, and must have this status.
#[track_caller]
pub(crate) fn decided(home: &Home, id: &str, disposition: &str, status: &str) -> Value {
    let told = decide(home, id, disposition, &[]).exit(0).object();
    assert_eq!(told["status"], status, "{told}");
    told
}

/// Accepts, and must fail for this reason.
#[track_caller]
pub(crate) fn fails(home: &Home, id: &str, reason: &str) -> Value {
    let done = decide(home, id, "accept", &[]).exit(6);
    let told = done.object();
    assert_eq!((&told["status"], &told["reason"]), (&json!("materialization-failed"), &json!(reason)));
    assert_eq!(done.error()["code"], "materialization-failed");
    assert!(done.error()["hint"].is_string(), "{}", done.stderr);
    told
}

/// Writes a file beside the home, and gives its path as an argument would.
pub(crate) fn file(home: &Home, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = home.folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    argument(&path).to_owned()
}

pub(crate) fn memory_path(home: &Home) -> PathBuf {
    home.below("context/memory.md")
}

pub(crate) fn memory_of(home: &Home) -> String {
    fs::read_to_string(memory_path(home)).unwrap()
}

/// What an append of a text makes of a document with line feeds and a last line that is ended.
pub(crate) fn appended(base: &str, text: &str) -> String {
    format!("{base}\n{text}\n")
}

/// Receipts and failures: what a decided memory change left.
pub(crate) fn receipts(home: &Home) -> Vec<Value> {
    home.events("agent.memory-change.materialized@1")
}

/// Reasons of the failures, oldest first.
pub(crate) fn failures(home: &Home) -> Vec<String> {
    let events = home.events("agent.memory-change.materialization.failed@1");
    events.iter().map(|event| event["payload"]["reason"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn decisions(home: &Home) -> Vec<Value> {
    home.events("agent.proposal.decision@1")
}

pub(crate) fn judgments(home: &Home) -> Vec<Value> {
    home.lines(&["judgment-list", "--acknowledge-sensitive-private"])
}

/// State of a proposal in the list.
pub(crate) fn state(home: &Home, id: &str) -> Value {
    let rows = home.lines(&["proposal-list"]);
    rows.iter().find(|row| row["id"] == id).unwrap()["state"].clone()
}

/// Everything that a refused word must leave as it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    heads: Value,
    proposals: Vec<Value>,
    memory: Vec<u8>,
}

impl Standing {
    pub(crate) fn of(home: &Home) -> Self {
        let mut proposals = home.lines(&["proposal-list"]);
        proposals.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("ageSeconds")));
        let memory = fs::read(memory_path(home)).unwrap_or_default();
        Self { heads: home.object(&["status"])["sources"].clone(), proposals, memory }
    }
}
