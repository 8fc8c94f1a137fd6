//! Answers in the vendors' envelopes.

use serde_json::{Value, json};

use super::reply::{Answer, Arguments};
use super::{Api, RecordedRequest};

/// Stands where raw argument characters are put in after the envelope was written; no JSON text holds it otherwise.
const RAW_MARK: &str = "\u{1}raw-arguments-";

/// Writes the body of a 200. `number` makes ids; every second answer carries members that no client knows yet.
pub(super) fn body(answer: &Answer, request: &RecordedRequest, number: usize) -> Vec<u8> {
    let mut raw = Vec::new();
    let value = match request.api {
        Api::OpenAi => completion(answer, request, number),
        Api::Anthropic | Api::Other => message(answer, request, number, &mut raw),
    };
    let mut text = value.to_string();
    for (index, characters) in raw.iter().enumerate() {
        let mark = json!(format!("{RAW_MARK}{index}")).to_string();
        text = text.replacen(&mark, characters, 1);
    }
    text.into_bytes()
}

fn message(answer: &Answer, request: &RecordedRequest, number: usize, raw: &mut Vec<String>) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &answer.thinking {
        content
            .push(json!({"type": "thinking", "thinking": thinking, "signature": format!("sig{number:021}")}));
        content.push(json!({"type": "redacted_thinking", "data": format!("red{number:021}")}));
    }
    content
        .extend(answer.texts.iter().chain(&answer.refusal).map(|text| json!({"type": "text", "text": text})));
    for (index, call) in answer.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("toolu_01{number:018}{index:04}"));
        let input = match &call.arguments {
            Arguments::Json(value) => value.clone(),
            Arguments::Raw(characters) => {
                raw.push(characters.clone());
                json!(format!("{RAW_MARK}{}", raw.len() - 1))
            }
        };
        let mut block = json!({"type": "tool_use", "id": id, "name": call.name, "input": input});
        if number.is_multiple_of(2) {
            block["caller"] = json!({"type": "direct"});
        }
        content.push(block);
    }
    let usual = match (&answer.refusal, answer.calls.is_empty()) {
        (Some(_), _) => "refusal",
        (None, false) => "tool_use",
        (None, true) => "end_turn",
    };
    let stop = anthropic_stop(answer.stop.as_deref().unwrap_or(usual));
    let mut body = json!({
        "id": format!("msg_01{number:022}"),
        "type": "message",
        "role": "assistant",
        "model": request.json["model"],
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": {
            "input_tokens": tokens(request.body.len()),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": tokens(said_bytes(answer)),
            "service_tier": "standard",
        },
    });
    if stop == "refusal" {
        body["stop_details"] = json!({"type": "refusal", "category": null});
    }
    if number.is_multiple_of(2) {
        body["context_management"] = json!({"applied_edits": []});
        body["member_of_tomorrow"] = json!({"anything": [1, null]});
    }
    body
}

/// Words of the other vendor that mean the same.
fn anthropic_stop(stop: &str) -> &str {
    match stop {
        "length" => "max_tokens",
        "content_filter" => "refusal",
        other => other,
    }
}

fn completion(answer: &Answer, request: &RecordedRequest, number: usize) -> Value {
    let text = answer.texts.concat();
    let content = if answer.texts.is_empty() { Value::Null } else { json!(text) };
    let mut said =
        json!({"role": "assistant", "content": content, "refusal": answer.refusal, "annotations": []});
    if let Some(thinking) = &answer.thinking {
        said["reasoning_content"] = json!(thinking);
    }
    if !answer.calls.is_empty() {
        let calls = answer.calls.iter().enumerate().map(|(index, call)| {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{number:020}{index:04}"));
            let arguments = match &call.arguments {
                Arguments::Json(value) => value.to_string(),
                Arguments::Raw(characters) => characters.clone(),
            };
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
        });
        said["tool_calls"] = Value::Array(calls.collect());
    }
    let usual = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
    let (prompt, output) = (tokens(request.body.len()), tokens(said_bytes(answer)));
    let mut body = json!({
        "id": format!("chatcmpl-{number:029}"),
        "object": "chat.completion",
        "created": 1_796_000_000 + number,
        "model": request.json["model"],
        "choices": [{
            "index": 0,
            "message": said,
            "logprobs": null,
            "finish_reason": answer.stop.as_deref().unwrap_or(usual),
        }],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": null,
    });
    if number.is_multiple_of(2) {
        body["member_of_tomorrow"] = json!({"anything": [1, null]});
    }
    body
}

fn said_bytes(answer: &Answer) -> usize {
    let calls = answer.calls.iter().map(|call| match &call.arguments {
        Arguments::Json(value) => value.to_string().len(),
        Arguments::Raw(characters) => characters.len(),
    });
    answer.texts.iter().map(String::len).sum::<usize>() + calls.sum::<usize>()
}

/// Roughly what a tokenizer would count.
fn tokens(bytes: usize) -> usize {
    bytes / 4 + 1
}
