//! What the model server answers: envelopes of both vendors, failures of the wire, and the demonstration's brain.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use std::time::Duration;

use common::{Answer, post, raw, request};
use serde_json::{Value, json};
use thought_fakes::{
    Answer as Said, AnsweredCall, Arguments, Error, ModelConfig, ModelServer, Reply, Validation, demo_brain,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(20);
const VERSION: [(&str, &str); 1] = [("anthropic-version", "2023-06-01")];

async fn start() -> ModelServer {
    ModelServer::start(ModelConfig::default()).await.unwrap()
}

async fn try_anthropic(server: &ModelServer) -> Option<Answer> {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    post(&server.base_url(), "/v1/messages", &VERSION, &body).await
}

async fn try_openai(server: &ModelServer) -> Option<Answer> {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    post(&server.base_url(), "/v1/chat/completions", &[], &body).await
}

/// The same reply in both forms.
async fn both(server: &ModelServer, reply: Reply) -> (Answer, Answer) {
    server.script(vec![reply.clone(), reply]);
    (try_anthropic(server).await.unwrap(), try_openai(server).await.unwrap())
}

#[tokio::test]
async fn texts_come_in_whole_envelopes() {
    let server = start().await;
    let (message, completion) = both(&server, Reply::Text("é🙂".to_owned())).await;
    let message = message.json();
    assert_eq!(
        (&message["type"], &message["role"], &message["model"]),
        (&json!("message"), &json!("assistant"), &json!("m"))
    );
    assert_eq!(message["content"], json!([{"type": "text", "text": "é🙂"}]));
    assert_eq!((&message["stop_reason"], &message["stop_sequence"]), (&json!("end_turn"), &Value::Null));
    assert!(message["id"].as_str().unwrap().starts_with("msg_01"));
    assert!(message["usage"]["input_tokens"].is_u64() && message["usage"]["output_tokens"].is_u64());
    let completion = completion.json();
    assert_eq!(completion["object"], "chat.completion");
    let choice = &completion["choices"][0];
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("é🙂"), &json!("stop")));
    assert!(choice["message"].get("tool_calls").is_none());
    assert_eq!(
        completion["usage"]["total_tokens"].as_u64(),
        Some(
            completion["usage"]["prompt_tokens"].as_u64().unwrap()
                + completion["usage"]["completion_tokens"].as_u64().unwrap()
        )
    );
    // Every second answer has members that nobody knows yet.
    assert!(completion.get("member_of_tomorrow").is_some() && message.get("member_of_tomorrow").is_none());
    assert_eq!(try_anthropic(&server).await.unwrap().json()["content"][0]["text"], "Hello.", "the default");
}

#[tokio::test]
async fn calls_come_in_the_vendors_own_form() {
    let server = start().await;
    let arguments = json!({"text": "a \"quoted\" line\n", "n": 1});
    let calls = vec![("one".to_owned(), arguments.clone()), ("two".to_owned(), json!({}))];
    let (message, completion) = both(&server, Reply::Calls { text: Some("Noted.".to_owned()), calls }).await;
    let message = message.json();
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(
        (&message["content"][0]["text"], &message["content"][1]["input"]),
        (&json!("Noted."), &arguments)
    );
    let ids = [&message["content"][1]["id"], &message["content"][2]["id"]];
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.as_str().unwrap().starts_with("toolu_01")));
    let choice = &completion.json()["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &json!("Noted."))
    );
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("one")));
    let parsed: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(parsed, arguments);
    assert!(call["id"].as_str().unwrap().len() <= 40);

    let (_, completion) = both(&server, Reply::call("one", json!({}))).await;
    assert_eq!(completion.json()["choices"][0]["message"]["content"], Value::Null);
    for broken in ["{\"a\": \"line\nbreak\"}", "{\"a\": \"\\U0001F600\"}", "{\"a\"", ""] {
        let raw = Reply::RawCalls { text: None, calls: vec![("one".to_owned(), broken.to_owned())] };
        let (message, completion) = both(&server, raw).await;
        let text = String::from_utf8(message.body).unwrap();
        assert!(text.contains(&format!("\"input\":{broken}")), "{text}");
        assert!(serde_json::from_str::<Value>(&text).is_err());
        let calls = completion.json()["choices"][0]["message"]["tool_calls"].clone();
        assert_eq!(calls[0]["function"]["arguments"], broken);
    }
}

#[tokio::test]
async fn other_endings_are_told_as_each_vendor_tells_them() {
    let server = start().await;
    let thinking = Reply::Thinking { thinking: "hm".to_owned(), text: "so".to_owned() };
    let (message, completion) = both(&server, thinking).await;
    let kinds: Vec<Value> =
        message.json()["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
    assert_eq!(kinds, ["thinking", "redacted_thinking", "text"]);
    assert_eq!(completion.json()["choices"][0]["message"]["reasoning_content"], "hm");

    let (message, completion) = both(&server, Reply::Refusal { text: "No.".to_owned() }).await;
    assert_eq!(
        (&message.json()["stop_reason"], &message.json()["stop_details"]["type"]),
        (&json!("refusal"), &json!("refusal"))
    );
    let choice = &completion.json()["choices"][0];
    assert_eq!((&choice["message"]["refusal"], &choice["message"]["content"]), (&json!("No."), &Value::Null));
    let (message, completion) = both(&server, Reply::ContentFilter).await;
    assert_eq!(message.json()["stop_reason"], "refusal");
    assert_eq!(completion.json()["choices"][0]["finish_reason"], "content_filter");
    let (message, completion) = both(&server, Reply::LengthStop { text: "cut".to_owned() }).await;
    assert_eq!(message.json()["stop_reason"], "max_tokens");
    assert_eq!(completion.json()["choices"][0]["finish_reason"], "length");

    let call = AnsweredCall {
        id: Some("same".to_owned()),
        name: "one".to_owned(),
        arguments: Arguments::Json(json!({})),
    };
    let odd = Said {
        texts: vec!["a".to_owned(), "b".to_owned()],
        calls: vec![call.clone(), call],
        stop: Some("end_of_the_world".to_owned()),
        ..Said::default()
    };
    let (message, completion) = both(&server, Reply::Answer(odd)).await;
    assert_eq!(
        (&message.json()["stop_reason"], &message.json()["content"][3]["id"]),
        (&json!("end_of_the_world"), &json!("same"))
    );
    assert_eq!(completion.json()["choices"][0]["message"]["content"], "ab");
}

#[tokio::test]
async fn scripted_errors_have_the_vendors_shapes() {
    let server = start().await;
    for (status, kind) in
        [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error"), (504, "timeout_error")]
    {
        let (message, completion) = both(&server, Reply::status(status)).await;
        assert_eq!((message.status, completion.status), (status, status));
        assert_eq!(
            (&message.json()["type"], &message.json()["error"]["type"]),
            (&json!("error"), &json!(kind))
        );
        assert!(completion.json()["error"]["message"].is_string());
        assert_eq!(message.header("retry-after"), None);
    }
    let (message, completion) = both(&server, Reply::rate_limited("7")).await;
    assert_eq!((message.header("retry-after"), completion.header("retry-after")), (Some("7"), Some("7")));
    assert_eq!(completion.json()["error"]["code"], "rate_limit_exceeded");
    let (_, completion) =
        both(&server, Reply::out_of_quota("insufficient_quota", "credit_balance_exhausted")).await;
    let error = &completion.json()["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("insufficient_quota"), &json!("credit_balance_exhausted"))
    );
    let (message, _) =
        both(&server, Reply::out_of_quota("rate_limit_error", "enforced_spend_limit_reached")).await;
    assert_eq!(message.json()["error"]["details"]["error_code"], "enforced_spend_limit_reached");
}

#[tokio::test]
async fn refused_requests_leave_the_script_alone() {
    let server = start().await;
    server.script(vec![Reply::Text("kept".to_owned())]);
    let refused = post(&server.base_url(), "/v1/messages", &VERSION, &json!({})).await.unwrap();
    assert_eq!((refused.status, server.script_left()), (400, 1));
    assert_eq!(try_openai(&server).await.unwrap().json()["choices"][0]["message"]["content"], "kept");
    assert_eq!((server.script_left(), server.refusals().len(), server.request_count()), (0, 1, 2));
}

#[tokio::test]
async fn connections_break_where_they_are_told_to() {
    let server = start().await;
    server.script(vec![Reply::DropBeforeRead, Reply::DropAfterRead, Reply::Truncated]);
    assert!(try_anthropic(&server).await.is_none());
    assert_eq!((server.connection_count(), server.begun_count(), server.request_count()), (1, 1, 0));
    assert!(try_anthropic(&server).await.is_none());
    assert_eq!((server.connection_count(), server.begun_count(), server.request_count()), (2, 2, 1));
    let answer = try_anthropic(&server).await.unwrap();
    assert_eq!((answer.status, answer.is_complete), (200, false));
    assert!(!answer.body.is_empty());

    // A connection that was opened ahead and never used is not a request.
    let idle = TcpStream::connect(common::authority(&server.base_url())).await.unwrap();
    server.script(vec![Reply::DropBeforeRead]);
    drop(idle);
    assert!(try_openai(&server).await.is_none());
    assert_eq!((server.connection_count(), server.begun_count(), server.request_count()), (5, 4, 2));

    for reply in [Reply::Hang, Reply::Stalled] {
        server.script(vec![reply]);
        assert!(tokio::time::timeout(Duration::from_millis(50), try_openai(&server)).await.is_err());
    }
    assert_eq!(server.wait_for_requests(4, SOON).await.unwrap().len(), 4);
    let ran_out = server.wait_for_requests(5, Duration::from_millis(5)).await;
    assert!(matches!(ran_out, Err(Error::WaitRanOut { seen: 4, .. })));
}

#[tokio::test]
async fn a_reused_connection_can_be_dropped_at_its_second_request() {
    let server = ModelServer::start(ModelConfig { validation: Validation::Off, ..ModelConfig::default() })
        .await
        .unwrap();
    server.script(vec![Reply::Text("first".to_owned()), Reply::DropBeforeRead]);
    let mut stream = TcpStream::connect(common::authority(&server.base_url())).await.unwrap();
    let kept = b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(kept).await.unwrap();
    server.wait_for_requests(1, SOON).await.unwrap();
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer).await.unwrap();
    assert!(str::from_utf8(&buffer[..count]).unwrap().contains("first"));
    stream.write_all(kept).await.unwrap();
    assert!(!matches!(stream.read(&mut buffer).await, Ok(count) if count > 0));
    assert_eq!((server.connection_count(), server.begun_count(), server.request_count()), (1, 2, 1));
}

#[tokio::test]
async fn raw_slow_huge_and_redirecting_answers() {
    let server = start().await;
    let headers = vec![
        ("content-type".to_owned(), "text/html".to_owned()),
        ("transfer-encoding".to_owned(), "chunked".to_owned()),
    ];
    let (chunked, _) = both(&server, Reply::RawBody { status: 200, headers, body: b"<html>".to_vec() }).await;
    assert_eq!((chunked.status, chunked.body.as_slice()), (200, &b"6\r\n<html>\r\n0\r\n\r\n"[..]));
    let (json, _) = both(&server, Reply::json(&json!({"type": "message"}))).await;
    assert_eq!(json.json(), json!({"type": "message"}));
    let (redirect, _) = both(&server, Reply::Redirect307("http://127.0.0.1:1/elsewhere".to_owned())).await;
    assert_eq!((redirect.status, redirect.header("location")), (307, Some("http://127.0.0.1:1/elsewhere")));
    let (huge, _) = both(&server, Reply::Huge(3_000_000)).await;
    assert!(huge.is_complete);
    assert_eq!(huge.json()["content"][0]["text"].as_str().unwrap().len(), 3_000_000);
    let (slow, _) = both(&server, Reply::SlowText(Duration::from_millis(5), "slow".to_owned())).await;
    assert_eq!(slow.json()["content"][0]["text"], "slow");
}

#[tokio::test]
async fn the_default_reply_sees_the_request() {
    let server = start().await;
    server.set_default_reply(|request| Reply::Text(format!("{} bytes", request.body.len())));
    let answer = try_openai(&server).await.unwrap().json();
    let length = server.requests()[0].body.len();
    assert_eq!(answer["choices"][0]["message"]["content"], format!("{length} bytes"));
}

#[tokio::test]
async fn oversized_requests_are_refused_with_413() {
    let server = start().await;
    let text = "x".repeat(33 * 1024 * 1024);
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]});
    let answer = post(&server.base_url(), "/v1/messages", &VERSION, &body).await.unwrap();
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (413, &json!("request_too_large")));
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: a\r\nx-long: {}\r\n\r\n", "x".repeat(70_000));
    assert_eq!(raw(&server.base_url(), head.as_bytes()).await.unwrap().status, 400);
    assert_eq!(raw(&server.base_url(), &request("GET", "/none", &[], b"")).await.unwrap().status, 404);
}

/// Asks the demonstration's brain in both forms and checks that both say the same.
async fn ask(system: &str, turns: &[&str], with_tool: bool) -> Value {
    let server = start().await;
    server.set_default_reply(demo_brain);
    let mut messages: Vec<Value> = Vec::new();
    for (index, text) in turns.iter().enumerate() {
        messages.push(json!({"role": if index % 2 == 0 { "user" } else { "assistant" }, "content": text}));
    }
    let schema = json!({"type": "object"});
    let mut body = json!({"model": "m", "max_tokens": 9, "system": system, "messages": messages});
    if with_tool {
        body["tools"] = json!([{"name": "request_memory_change", "input_schema": schema}]);
    }
    let message = post(&server.base_url(), "/v1/messages", &VERSION, &body).await.unwrap().json();
    messages.insert(0, json!({"role": "system", "content": system}));
    let mut body = json!({"model": "m", "messages": messages});
    if with_tool {
        body["tools"] = json!([{"type": "function", "function": {"name": "request_memory_change", "parameters": schema}}]);
    }
    let completion = post(&server.base_url(), "/v1/chat/completions", &[], &body).await.unwrap().json();
    let said = &completion["choices"][0]["message"];
    let block = &message["content"][0];
    if block["type"] == "tool_use" {
        let function = &said["tool_calls"][0]["function"];
        assert_eq!(function["name"], block["name"]);
        let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments, block["input"]);
        assert_eq!(block["name"], "request_memory_change");
        return block["input"].clone();
    }
    assert_eq!(said["content"], block["text"]);
    block["text"].clone()
}

#[tokio::test]
async fn the_brain_suggests_what_it_is_asked_to_remember() {
    let change = ask("You are kind.", &["Hello! Please remember that I moved to Porto Alegre."], true).await;
    assert_eq!(
        (&change["operation"], &change["proposed_text"]),
        (&json!("append"), &json!("- Lives in Porto Alegre."))
    );
    assert_eq!(change["evidence_event_ids"], json!([]));
    assert!(!change["reason"].as_str().unwrap().is_empty());
    let change = ask("s", &["please remember that the plumber comes on Tuesdays!"], true).await;
    assert_eq!(change["proposed_text"], "- The plumber comes on Tuesdays.");
    let without = ask("s", &["Please remember that I like tea."], false).await;
    assert!(without.as_str().unwrap().contains("can't suggest"));
    let empty = ask("s", &["Please remember that ."], true).await;
    assert!(empty.is_string());
}

#[tokio::test]
async fn the_brain_answers_from_the_system_text_alone() {
    let turns = ["Please remember that I moved to Porto.", "Noted.", "Where do I live?"];
    assert_eq!(ask("No memory yet.", &turns, true).await, "I don't know that yet.");
    assert_eq!(ask("Memory:\n- Lives in Oslo.\n- Lives in Porto.\nEnd", &turns, true).await, "In Porto.");
    assert!(ask("s", &["Hi!"], true).await.as_str().unwrap().contains("first"));
    let third = ask("s", &["a", "b", "c", "d", "e"], false).await;
    assert!(third.as_str().unwrap().contains("2 earlier messages"), "{third}");
}
