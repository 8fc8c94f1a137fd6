//! What the model server refuses, in which form, and what it takes.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{Answer, post, raw, request};
use serde_json::{Value, json};
use thought_fakes::{
    Api, ContentBesideCalls, KnownModels, ModelConfig, ModelServer, RoleOrder, TokenLimit, Validation,
};

const KEY: &str = "test-key";
/// One pixel each, or what passes for it.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const GIF: &str = "R0lGODlhAQABAAAAACw=";

async fn start() -> ModelServer {
    start_with(ModelConfig::default()).await
}

async fn start_with(config: ModelConfig) -> ModelServer {
    ModelServer::start(ModelConfig { api_key: Some(KEY.to_owned()), ..config }).await.unwrap()
}

async fn anthropic(server: &ModelServer, body: &Value) -> Answer {
    let headers = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
    post(&server.base_url(), "/v1/messages", &headers, body).await.unwrap()
}

async fn openai(server: &ModelServer, body: &Value) -> Answer {
    let key = format!("Bearer {KEY}");
    post(
        &server.openai_base_url().replace("/v1", ""),
        "/v1/chat/completions",
        &[("authorization", &key)],
        body,
    )
    .await
    .unwrap()
}

/// A request that pleases Anthropic, with members changed or, by null, removed.
fn message(changes: Value) -> Value {
    changed(
        json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}),
        changes,
    )
}

fn completion(changes: Value) -> Value {
    changed(json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}), changes)
}

fn changed(mut body: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        body.as_object_mut().unwrap().remove(name);
        if !value.is_null() {
            body[name] = value.clone();
        }
    }
    body
}

async fn anthropic_refuses(server: &ModelServer, body: Value, words: &str) {
    let answer = anthropic(server, &body).await;
    let error = answer.json();
    assert_eq!((answer.status, &error["type"]), (400, &json!("error")), "{body}");
    assert_eq!(error["error"]["type"], "invalid_request_error", "{body}");
    let said = error["error"]["message"].as_str().unwrap();
    assert!(said.contains(words), "{body}: {said}");
    assert_eq!(answer.header("request-id"), error["request_id"].as_str());
}

async fn openai_refuses(server: &ModelServer, body: Value, words: &str) {
    let answer = openai(server, &body).await;
    let error = answer.json();
    assert_eq!((answer.status, &error["error"]["type"]), (400, &json!("invalid_request_error")), "{body}");
    let members: Vec<&String> = error["error"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["code", "message", "param", "type"]);
    let said = error["error"]["message"].as_str().unwrap();
    assert!(said.contains(words), "{body}: {said}");
}

fn anthropic_tools() -> Value {
    json!([{"name": "note", "description": "d", "input_schema": {"type": "object", "properties": {}}}])
}

fn openai_tools() -> Value {
    json!([{"type": "function", "function": {"name": "note", "description": "d", "parameters": {"type": "object"}}}])
}

#[tokio::test]
async fn anthropic_asks_for_key_version_and_kind() {
    let server = start().await;
    let body = message(json!({}));
    for (headers, status, kind) in [
        (vec![("anthropic-version", "2023-06-01")], 401, "authentication_error"),
        (vec![("x-api-key", "wrong"), ("anthropic-version", "2023-06-01")], 401, "authentication_error"),
        (
            vec![("x-api-key", KEY), ("x-api-key", KEY), ("anthropic-version", "2023-06-01")],
            401,
            "authentication_error",
        ),
        (vec![("x-api-key", KEY)], 400, "invalid_request_error"),
        (vec![("x-api-key", KEY), ("anthropic-version", "2099-01-01")], 400, "invalid_request_error"),
    ] {
        let answer = post(&server.base_url(), "/v1/messages", &headers, &body).await.unwrap();
        assert_eq!(
            (answer.status, answer.json()["error"]["type"].as_str()),
            (status, Some(kind)),
            "{headers:?}"
        );
    }
    let headers = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
    let untyped = request("POST", "/v1/messages", &headers, body.to_string().as_bytes());
    assert_eq!(raw(&server.base_url(), &untyped).await.unwrap().status, 400);
    let broken = request(
        "POST",
        "/v1/messages",
        &[&headers[..], &[("content-type", "application/json")]].concat(),
        b"{",
    );
    assert_eq!(raw(&server.base_url(), &broken).await.unwrap().status, 400);
    assert_eq!(
        raw(&server.base_url(), &request("GET", "/v1/messages", &headers, b"")).await.unwrap().status,
        405
    );
    assert_eq!(server.request_count(), 7);
    assert_eq!(server.refusals().len(), 7);
    let bearer = ("authorization", "Bearer test-key");
    for (headers, status) in [
        (vec![bearer, ("anthropic-version", "2026-10-21")], 200),
        (vec![("x-api-key", KEY), ("anthropic-version", "2026-10-21")], 200),
        (vec![bearer, ("anthropic-version", "2023-06-01")], 401),
        (vec![bearer, ("x-api-key", "wrong"), ("anthropic-version", "2026-10-21")], 401),
        (vec![("authorization", "Bearer wrong"), ("anthropic-version", "2026-10-21")], 401),
    ] {
        let answer = post(&server.base_url(), "/v1/messages", &headers, &body).await.unwrap();
        assert_eq!(answer.status, status, "{headers:?}");
    }

    let keyless = ModelServer::start(ModelConfig::default()).await.unwrap();
    let answer = post(&keyless.base_url(), "/v1/messages", &headers[1..], &body).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(keyless.requests()[0].header("x-api-key"), None);
}

#[tokio::test]
async fn anthropic_checks_the_top_level() {
    let server = start().await;
    for (changes, words) in [
        (json!({"model": null}), "model: Field required"),
        (json!({"model": ""}), "model: Field required"),
        (json!({"max_tokens": null}), "max_tokens: Field required"),
        (json!({"max_tokens": 0}), "max_tokens: Input should be"),
        (json!({"max_tokens": "100"}), "max_tokens: Input should be"),
        (json!({"messages": null}), "messages: Field required"),
        (json!({"messages": []}), "at least one message"),
        (json!({"messages": "hi"}), "valid list"),
        (json!({"max_completion_tokens": 1}), "max_completion_tokens: Extra inputs"),
        (json!({"stream": true}), "does not stream"),
        (json!({"temperature": 1.5}), "temperature"),
        (json!({"system": 1}), "system"),
        (json!({"system": [{"type": "text", "text": ""}]}), "non-empty"),
        (json!({"system": [{"type": "image"}]}), "Input should be 'text'"),
        (json!({"tools": []}), "at least 1 item"),
        (json!({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}), "should match pattern"),
        (
            json!({"tools": [{"name": "a".repeat(65), "input_schema": {"type": "object"}}]}),
            "should match pattern",
        ),
        (json!({"tools": [{"name": "a"}]}), "input_schema"),
        (
            json!({"tools": [{"name": "a", "parameters": {}, "input_schema": {"type": "object"}}]}),
            "Extra inputs",
        ),
        (json!({"tools": [anthropic_tools()[0], anthropic_tools()[0]]}), "unique"),
        (json!({"tool_choice": {"type": "auto"}}), "only be specified while providing tools"),
        (json!({"tools": anthropic_tools(), "tool_choice": "auto"}), "valid dictionary"),
        (json!({"tools": anthropic_tools(), "tool_choice": {"type": "required"}}), "tool_choice.type"),
        (json!({"tools": anthropic_tools(), "tool_choice": {"type": "tool", "name": "other"}}), "not found"),
        (json!({"tools": anthropic_tools(), "tool_choice": {"type": "tool"}}), "Field required"),
        (
            json!({"tools": anthropic_tools(), "tool_choice": {"type": "none", "disable_parallel_tool_use": true}}),
            "Extra inputs",
        ),
    ] {
        anthropic_refuses(&server, message(changes), words).await;
    }
    anthropic_refuses(&server, json!([]), "object").await;
    let good = json!({
        "system": [{"type": "text", "text": "s"}], "temperature": 0.5, "stream": false,
        "tools": anthropic_tools(), "tool_choice": {"type": "auto"},
    });
    assert_eq!(anthropic(&server, &message(good)).await.status, 200);
}

#[tokio::test]
async fn anthropic_checks_messages_and_blocks() {
    let server = start().await;
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    let image = |media_type: &str, data: &str| json!([{"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}]);
    for (messages, words) in [
        (json!([{"role": "assistant", "content": "hi"}]), "first message must use the \"user\" role"),
        (json!([{"role": "system", "content": "hi"}]), "Unexpected role"),
        (json!([{"role": "tool", "content": "hi"}]), "should be 'user' or 'assistant'"),
        (json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]), "prefill"),
        (json!([{"role": "user", "content": "a", "name": "x"}]), "Extra inputs"),
        (json!([{"role": "user"}]), "Field required"),
        (json!(["hi"]), "valid dictionary"),
        (user(json!("")), "non-empty content"),
        (user(json!([])), "non-empty content"),
        (user(json!([{"type": "text", "text": ""}])), "non-empty"),
        (user(json!([{"type": "text", "text": " "}])), "non-whitespace"),
        (user(json!([{"type": "text"}])), "Field required"),
        (user(json!([{"type": "text", "text": "a", "id": 1}])), "Extra inputs"),
        (user(json!([{"type": "tool_use", "id": "a", "name": "note", "input": {}}])), "does not match"),
        (user(json!([{"type": "image_url", "image_url": {}}])), "does not match"),
        (user(image("image/tiff", PNG)), "media type must be"),
        (user(image("image/png", GIF)), "appears to be a image/gif"),
        (user(image("image/png", "aGVsbG8=")), "Could not process image"),
        (user(image("image/png", "not base64")), "invalid base64"),
        (
            user(json!([{"type": "image", "source": {"type": "url", "url": "https://example.org"}}])),
            "base64 sources",
        ),
        (
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": image("image/png", PNG)}]),
            "does not match",
        ),
    ] {
        anthropic_refuses(&server, message(json!({"messages": messages})), words).await;
    }
    let pictures =
        user(json!([image("image/png", PNG)[0], image("image/gif", GIF)[0], {"type": "text", "text": "?"}]));
    assert_eq!(anthropic(&server, &message(json!({"messages": pictures}))).await.status, 200);
}

#[tokio::test]
async fn anthropic_wants_each_result_right_after_its_call() {
    let server = start().await;
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "note", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "kept"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let turn = |calls: Value, results: Value| {
        json!([
            {"role": "user", "content": "a"}, {"role": "assistant", "content": calls},
            {"role": "user", "content": results}, {"role": "assistant", "content": "done"},
            {"role": "user", "content": "next"},
        ])
    };
    let with = |messages: Value| message(json!({"messages": messages, "tools": anthropic_tools()}));
    let good = turn(json!([call("a"), call("b")]), json!([result("b"), result("a"), text("and")]));
    assert_eq!(anthropic(&server, &with(good.clone())).await.status, 200);
    for (messages, words) in [
        (
            turn(json!([call("a"), call("b")]), json!([result("a")])),
            "without `tool_result` blocks immediately after",
        ),
        (turn(json!([call("a")]), json!("no result")), "without `tool_result`"),
        (turn(json!([call("a")]), json!([result("b")])), "unexpected `tool_use_id`"),
        (turn(json!([call("a")]), json!([result("a"), result("a")])), "multiple `tool_result`"),
        (turn(json!([call("a")]), json!([text("first"), result("a")])), "must come first"),
        (turn(json!("no call"), json!([result("a")])), "unexpected `tool_use_id`"),
        (turn(json!([call("a"), call("a")]), json!([result("a")])), ""),
        (turn(json!([call("a.b")]), json!([result("a.b")])), "should match pattern"),
        (turn(json!([call(&"a".repeat(65))]), json!([])), "should match pattern"),
        (
            turn(
                json!([{"type": "tool_use", "id": "a", "name": "note", "input": "{}"}]),
                json!([result("a")]),
            ),
            "input",
        ),
        (
            turn(json!([{"type": "tool_use", "id": "a", "name": "", "input": {}}]), json!([result("a")])),
            "name",
        ),
        (turn(json!([{"type": "thinking", "thinking": "x", "signature": ""}]), json!("b")), "signature"),
        (
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": [call("a")]}]),
            "without `tool_result`",
        ),
    ] {
        anthropic_refuses(&server, with(messages), words).await;
    }
    anthropic_refuses(&server, message(json!({"messages": good})), "must define tools").await;
}

#[tokio::test]
async fn anthropic_roles_alternate_only_where_the_server_asks() {
    let body =
        message(json!({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}));
    assert_eq!(anthropic(&start().await, &body).await.status, 200);
    let server =
        start_with(ModelConfig { role_order: RoleOrder::Alternating, ..ModelConfig::default() }).await;
    anthropic_refuses(&server, body, "roles must alternate").await;
}

#[tokio::test]
async fn openai_checks_key_and_top_level() {
    let server = start().await;
    let body = completion(json!({}));
    for (headers, code) in
        [(vec![], Value::Null), (vec![("authorization", "Bearer wrong")], json!("invalid_api_key"))]
    {
        let answer = post(&server.base_url(), "/chat/completions", &headers, &body).await.unwrap();
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (401, &code));
        assert!(!String::from_utf8(answer.body).unwrap().contains("wrong"), "a key is never echoed");
    }
    for (changes, words) in [
        (json!({"model": null}), "model parameter"),
        (json!({"messages": null}), "Missing required parameter: 'messages'"),
        (json!({"messages": []}), "empty array"),
        (json!({"messages": {}}), "expected an array"),
        (json!({"system": "x"}), "Unknown parameter: 'system'"),
        (json!({"functions": []}), "Unknown parameter: 'functions'"),
        (json!({"stream": true}), "does not stream"),
        (json!({"n": 2}), "one choice"),
        (json!({"temperature": 3}), "temperature"),
        (json!({"max_tokens": 1, "max_completion_tokens": 1}), "at the same time"),
        (json!({"max_tokens": 0}), "minimum value"),
        (json!({"tools": []}), "Invalid 'tools': empty array"),
        (json!({"tools": anthropic_tools()}), "Unknown parameter"),
        (json!({"tools": [{"type": "function", "function": {"name": "a b"}}]}), "does not match pattern"),
        (
            json!({"tools": [{"type": "function", "function": {"name": "a", "parameters": {}}}]}),
            "JSON Schema",
        ),
        (json!({"tools": [openai_tools()[0], openai_tools()[0]]}), "Duplicate"),
        (
            json!({"tools": [{"type": "function", "function": {
                "name": "a", "strict": true, "parameters": {"type": "object", "properties": {"x": {}}}}}]}),
            "additionalProperties",
        ),
        (json!({"tool_choice": "auto"}), "only allowed when 'tools' are specified"),
        (json!({"parallel_tool_calls": true}), "only allowed when 'tools' are specified"),
        (json!({"tools": openai_tools(), "tool_choice": {"type": "auto"}}), "not found"),
        (json!({"tools": openai_tools(), "tool_choice": "any"}), "Supported values"),
    ] {
        openai_refuses(&server, completion(changes), words).await;
    }
    openai_refuses(&server, json!("x"), "could not parse").await;
    let good = json!({"tools": openai_tools(), "tool_choice": "auto", "max_completion_tokens": 5});
    assert_eq!(openai(&server, &completion(good)).await.status, 200);
}

#[tokio::test]
async fn openai_checks_messages_and_parts() {
    let server = start().await;
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    let image = |url: String| json!([{"type": "image_url", "image_url": {"url": url}}]);
    for (messages, words) in [
        (json!([{"role": "owner", "content": "x"}]), "Supported values"),
        (json!([{"role": "function", "content": "x", "name": "f"}]), "Supported values"),
        (json!([{"role": "user"}]), "expected a string"),
        (user(json!(null)), "expected a string"),
        (user(json!([])), "non-empty array"),
        (user(json!([{"type": "text", "text": ""}])), "empty string"),
        (user(json!([{"type": "image", "source": {}}])), "Supported values"),
        (user(image("https://example.org/a.png".to_owned())), "Invalid image"),
        (user(image(format!("data:image/png;base64,{GIF}"))), "appears to be"),
        (
            json!([{"role": "system", "content": image(format!("data:image/png;base64,{PNG}"))}]),
            "Supported values",
        ),
        (json!([{"role": "user", "content": "x", "id": 1}]), "Unknown parameter"),
        (json!([{"role": "assistant", "content": null}]), "got null"),
        (json!([{"role": "assistant"}]), "got null"),
        (json!([1]), "expected an object"),
    ] {
        openai_refuses(&server, completion(json!({"messages": messages})), words).await;
    }
    let good = json!([
        {"role": "system", "content": "s"}, {"role": "developer", "content": [{"type": "text", "text": "d"}]},
        {"role": "user", "content": [{"type": "text", "text": "?"}, image(format!("data:image/png;base64,{PNG}"))[0]]},
        {"role": "user", "content": "again"}, {"role": "assistant", "content": "x"},
    ]);
    assert_eq!(openai(&server, &completion(json!({"messages": good}))).await.status, 200);
}

#[tokio::test]
async fn openai_wants_each_result_right_after_its_call() {
    let server = start().await;
    let call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "note", "arguments": arguments}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "kept"});
    let asked = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let user = json!({"role": "user", "content": "a"});
    let two = asked(json!([call("a", json!("{}")), call("b", json!("{\"x\": 1}"))]));
    let one = asked(json!([call("a", json!("{}"))]));
    let good = json!([user, two, result("b"), result("a"), {"role": "assistant", "content": "done"}, user]);
    assert_eq!(openai(&server, &completion(json!({"messages": good}))).await.status, 200);
    let with = |call: Value| json!([user, asked(json!([call])), result("a")]);
    for (messages, words) in [
        (json!([user, result("a")]), "must be a response to a preceeding message"),
        (json!([user, one, user, result("a")]), "must be followed by tool messages"),
        (json!([user, two, result("a")]), "did not have response messages: b"),
        (json!([user, one, result("b")]), "not found in 'tool_calls'"),
        (json!([user, one, result("a"), result("a")]), "not found in 'tool_calls'"),
        (json!([user, one, {"role": "tool", "content": "x"}]), "tool_call_id"),
        (json!([user, asked(json!([]))]), "empty array"),
        (json!([user, asked(json!([call("a", json!("{}")), call("a", json!("{}"))]))]), "Duplicate"),
        (with(call("a", json!({}))), "expected a string"),
        (with(call("a", json!(""))), "the JSON text of an object"),
        (with(call("a", json!("[]"))), "the JSON text of an object"),
        (with(call("", json!("{}"))), "non-empty string"),
        (with(call(&"a".repeat(41), json!("{}"))), "maximum length 40"),
        (with(json!({"id": "a", "function": {"name": "note", "arguments": "{}"}})), "'function'"),
        (
            with(json!({"id": "a", "type": "function", "function": {"name": "é", "arguments": "{}"}})),
            "pattern",
        ),
    ] {
        openai_refuses(&server, completion(json!({"messages": messages})), words).await;
    }
}

#[tokio::test]
async fn openai_servers_differ_in_limits_and_content() {
    let limited = |token_limit| start_with(ModelConfig { token_limit, ..ModelConfig::default() });
    let (older, newer) =
        (completion(json!({"max_tokens": 1})), completion(json!({"max_completion_tokens": 1})));
    let server = limited(TokenLimit::MaxCompletionTokens).await;
    openai_refuses(&server, older.clone(), "Use 'max_completion_tokens' instead").await;
    assert_eq!(openai(&server, &newer).await.status, 200);
    let server = limited(TokenLimit::MaxTokens).await;
    openai_refuses(&server, newer, "Use 'max_tokens' instead").await;
    assert_eq!(openai(&server, &older).await.status, 200);

    let call = json!([{"id": "a", "type": "function", "function": {"name": "note", "arguments": "{}"}}]);
    let history = |mut asked: Value| {
        asked["role"] = json!("assistant");
        asked["tool_calls"] = call.clone();
        completion(json!({"messages": [
            {"role": "user", "content": "a"}, asked, {"role": "tool", "tool_call_id": "a", "content": "x"},
        ]}))
    };
    for (content_beside_calls, statuses) in [
        (ContentBesideCalls::Any, [200, 200, 200]),
        (ContentBesideCalls::Null, [500, 200, 500]),
        (ContentBesideCalls::Empty, [500, 500, 200]),
    ] {
        let server = start_with(ModelConfig { content_beside_calls, ..ModelConfig::default() }).await;
        for (asked, status) in
            [json!({}), json!({"content": null}), json!({"content": ""})].iter().zip(statuses)
        {
            assert_eq!(
                openai(&server, &history(asked.clone())).await.status,
                status,
                "{content_beside_calls:?}"
            );
        }
    }
}

#[tokio::test]
async fn models_are_listed_in_each_form_and_unknown_ones_refused() {
    let models = KnownModels::Only(vec!["small".to_owned(), "large".to_owned()]);
    let server = start_with(ModelConfig { models, ..ModelConfig::default() }).await;
    let answer = anthropic(&server, &message(json!({}))).await;
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (404, &json!("not_found_error")));
    let answer = openai(&server, &completion(json!({}))).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("model_not_found")));
    assert_eq!(openai(&server, &completion(json!({"model": "small"}))).await.status, 200);

    let get = |path: &'static str, headers: Vec<(&'static str, &'static str)>| {
        let base = server.base_url();
        async move { raw(&base, &request("GET", path, &headers, b"")).await.unwrap() }
    };
    let list = get("/v1/models", vec![("x-api-key", KEY), ("anthropic-version", "2023-06-01")]).await.json();
    assert_eq!((&list["data"][1]["id"], &list["has_more"]), (&json!("large"), &json!(false)));
    let list = get("/v1/models", vec![("authorization", "Bearer test-key")]).await.json();
    assert_eq!((&list["object"], &list["data"][0]["id"]), (&json!("list"), &json!("small")));
    assert_eq!(get("/v1/models", vec![]).await.status, 401);
    assert_eq!(get("/v1/models", vec![("anthropic-version", "2023-06-01")]).await.status, 401);
    assert_eq!(get("/api/tags", vec![]).await.json()["models"][0]["name"], "small");
    assert_eq!(get("/v1/responses", vec![]).await.status, 404);
    assert_eq!((server.request_count(), server.other_requests().len()), (3, 6));
}

#[tokio::test]
async fn requests_are_recorded_as_they_came() {
    let server = start_with(ModelConfig { validation: Validation::Off, ..ModelConfig::default() }).await;
    let bytes = request("POST", "/v1/messages", &[("X-Odd", "1"), ("x-odd", "2")], b"not json");
    assert_eq!(raw(&server.base_url(), &bytes).await.unwrap().status, 200);
    let recorded = &server.requests()[0];
    assert_eq!(
        (recorded.api, recorded.method.as_str(), recorded.path.as_str()),
        (Api::Anthropic, "POST", "/v1/messages")
    );
    assert_eq!(
        (recorded.body.as_slice(), &recorded.json, recorded.connection),
        (&b"not json"[..], &Value::Null, 1)
    );
    let odd: Vec<&str> = recorded
        .headers
        .iter()
        .filter(|(name, _)| name == "x-odd")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!((odd, recorded.header("x-odd")), (vec!["1", "2"], Some("1")));
    assert!(!format!("{recorded:?} {server:?}").contains("not json"), "no content in Debug output");
    assert!(server.refusals().is_empty());
}
