//! What the tests share: calls that a model makes, and what a turn with them leaves.

use serde_json::{Value, json};
use thought_fakes::{Api, RecordedRequest, Reply};
use thought_testkit::world::World;

pub(crate) const MEMORY: &str = "request_memory_change";
pub(crate) const CORRECTION: &str = "submit_correction";
pub(crate) const FOCUS: &str = "propose_focus";
/// What history tells the model of a call of its own.
pub(crate) const CAPTURED: &str =
    "Captured as a durable proposal. It is inert: approval and application are pending.";

pub(crate) fn memory(text: &str) -> (String, Value) {
    let arguments = json!({
        "operation": "append", "proposed_text": text, "reason": "They asked for it.", "evidence_event_ids": [],
    });
    (MEMORY.to_owned(), arguments)
}

pub(crate) fn correction(replacement: &str) -> (String, Value) {
    let arguments = json!({
        "target_output": "latest", "replacement": replacement, "reason": "I was wrong.", "evidence_event_ids": [],
    });
    (CORRECTION.to_owned(), arguments)
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
    (FOCUS.to_owned(), declaration)
}

pub(crate) fn calls(calls: Vec<(String, Value)>) -> Reply {
    Reply::Calls { text: None, calls }
}

pub(crate) fn says(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

/// The one proposal of a kind in the list.
#[track_caller]
pub(crate) fn listed(world: &World, kind: &str) -> Value {
    let rows = world.home.lines(&["proposal-list", "--kind", kind]);
    assert_eq!(rows.len(), 1, "{kind}: {rows:?}");
    rows[0].clone()
}

pub(crate) fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

/// A message of history in words that fit both APIs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    User(String),
    Said(String),
    Called(Vec<(String, String, Value)>),
    Told(Vec<(String, String)>),
}

/// The messages of a request.
pub(crate) fn heard(request: &RecordedRequest) -> Vec<Heard> {
    let messages = request.json["messages"].as_array().unwrap();
    match request.api {
        Api::Anthropic => messages.iter().map(anthropic).collect(),
        _ => openai(messages),
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no string: {value}")).to_owned()
}

fn anthropic(message: &Value) -> Heard {
    let content = &message["content"];
    let parts: Vec<&Value> = content.as_array().into_iter().flatten().collect();
    let of = |kind: &str| parts.iter().copied().filter(|part| part["type"] == kind).collect::<Vec<_>>();
    let (used, results) = (of("tool_use"), of("tool_result"));
    if !used.is_empty() {
        assert_eq!(
            (used.len(), &message["role"]),
            (parts.len(), &json!("assistant")),
            "calls alone: {message}"
        );
        let call = |part: &&Value| (string(&part["id"]), string(&part["name"]), part["input"].clone());
        return Heard::Called(used.iter().map(call).collect());
    }
    if !results.is_empty() {
        assert_eq!(
            (results.len(), &message["role"]),
            (parts.len(), &json!("user")),
            "results alone: {message}"
        );
        let told = |part: &&Value| (string(&part["tool_use_id"]), text_of(&part["content"]));
        return Heard::Told(results.iter().map(told).collect());
    }
    match message["role"].as_str() {
        Some("user") => Heard::User(text_of(content)),
        _ => Heard::Said(text_of(content)),
    }
}

fn openai(messages: &[Value]) -> Vec<Heard> {
    let mut heard = Vec::new();
    for message in messages {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("system" | "developer") => {}
            Some("user") => heard.push(Heard::User(text)),
            Some("tool") => {
                let told = (string(&message["tool_call_id"]), text);
                match heard.last_mut() {
                    Some(Heard::Told(all)) => all.push(told),
                    _ => heard.push(Heard::Told(vec![told])),
                }
            }
            _ => match message["tool_calls"].as_array() {
                Some(calls) => {
                    assert_eq!(text, "", "calls alone: {message}");
                    let call = |call: &Value| {
                        let arguments = string(&call["function"]["arguments"]);
                        let arguments = serde_json::from_str(&arguments).unwrap();
                        (string(&call["id"]), string(&call["function"]["name"]), arguments)
                    };
                    heard.push(Heard::Called(calls.iter().map(call).collect()));
                }
                None => heard.push(Heard::Said(text)),
            },
        }
    }
    heard
}
