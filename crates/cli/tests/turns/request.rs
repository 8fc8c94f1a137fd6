//! What a recorded request says, in words that fit both APIs.

use serde_json::Value;
use thought_fakes::{Api, RecordedRequest};

/// A request as a conversation.
pub(crate) struct Said {
    /// The system text.
    pub(crate) system: String,
    /// Role and text of every message, in order.
    pub(crate) turns: Vec<(String, String)>,
}

/// Reads a request; whatever is no text is shown as its JSON.
pub(crate) fn said(request: &RecordedRequest) -> Said {
    let body = &request.json;
    let mut turns: Vec<(String, String)> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap().to_owned(), text(&message["content"])))
        .collect();
    let system = match request.api {
        Api::Anthropic => text(&body["system"]),
        Api::OpenAi | Api::Other => turns.remove(0).1,
    };
    Said { system, turns }
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| part["text"].as_str().map_or_else(|| part.to_string(), str::to_owned))
            .collect(),
        other => other.to_string(),
    }
}

/// Turns as pairs that a test can write down.
pub(crate) fn pairs(said: &Said) -> Vec<(&str, &str)> {
    said.turns.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect()
}
