//! The client against a raw TCP server: what is written, what each answer means, and what an error never shows.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use thought_protocol::Sensitive;
use thought_telegram::client::{
    BotClient, BotToken, ClientConfig, ClientError, ConfigError, ConnectFailure, Delivery, SendMessage,
    SetWebhook, Timeouts,
};
use thought_telegram::entities::{Entity, EntityKind, Formatted};
use thought_telegram::ids::{ChatId, MessageId, ThreadId, UpdateId};
use thought_telegram::wire::{BotCommand, FileInfo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = "123456:SECRET";

/// What the server does with one connection.
enum Act {
    /// Answers with these bytes and closes.
    Answer(Vec<u8>),
    /// Reads the request and closes.
    CloseAfterRequest,
    /// Closes at once.
    CloseBeforeRequest,
    /// Reads the request and says nothing more.
    Hang,
}

/// Head and body of a request.
type Request = (String, Vec<u8>);

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Request>>>);

impl Seen {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Head and body of a request.
    fn request(&self, index: usize) -> (String, Value) {
        let (head, body) = self.0.lock().unwrap()[index].clone();
        (head, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

async fn read_request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4_096];
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request ended early");
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ").map(|n| n.parse().unwrap())
        });
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            return (head, bytes[end + 4..].to_vec());
        }
    }
}

/// Serves one act per connection, then refuses to accept more.
async fn serve(acts: Vec<Act>) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let log = seen.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        for act in acts {
            let (mut stream, _) = listener.accept().await.unwrap();
            if matches!(act, Act::CloseBeforeRequest) {
                continue;
            }
            let request = read_request(&mut stream).await;
            log.0.lock().unwrap().push(request);
            match act {
                Act::Answer(bytes) => {
                    // The client may have had enough before the end.
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.shutdown().await;
                }
                Act::Hang => held.push(stream),
                Act::CloseAfterRequest | Act::CloseBeforeRequest => {}
            }
        }
        // A second request that nobody wrote down would still be counted.
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = read_request(&mut stream).await;
            log.0.lock().unwrap().push(request);
        }
    });
    (url, seen)
}

fn raw(status: &str, body: &str) -> Act {
    let length = body.len();
    Act::Answer(
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}

fn answer(result: Value) -> Act {
    raw("200 OK", &json!({"ok": true, "result": result, "new_field": 1}).to_string())
}

fn refusal(code: u16, description: &str, parameters: Value) -> Act {
    let body = json!({"ok": false, "error_code": code, "description": description, "parameters": parameters});
    raw(&format!("{code} X"), &body.to_string())
}

fn client(url: &str) -> BotClient {
    let timeouts = Timeouts { connect_ms: 5_000, request_ms: 5_000, download_ms: 5_000 };
    let token = BotToken::new(TOKEN.to_owned()).unwrap();
    BotClient::new(ClientConfig { api_url: url.to_owned(), token, timeouts }).unwrap()
}

fn hasty(url: &str) -> BotClient {
    let timeouts = Timeouts { connect_ms: 5_000, request_ms: 300, download_ms: 300 };
    let token = BotToken::new(TOKEN.to_owned()).unwrap();
    BotClient::new(ClientConfig { api_url: url.to_owned(), token, timeouts }).unwrap()
}

async fn send(client: &BotClient) -> Result<MessageId, ClientError> {
    let text = Formatted::plain("canary words");
    let message = SendMessage { chat_id: ChatId(4242), thread_id: None, text: &text, reply_to: None };
    client.send_message(message).await.map(|sent| sent.message_id)
}

/// One send against one act: its outcome, and how many requests were made.
async fn outcome(act: Act) -> (Result<MessageId, ClientError>, usize) {
    let (url, seen) = serve(vec![act]).await;
    let result = send(&client(&url)).await;
    (result, seen.count())
}

#[tokio::test]
async fn a_message_is_written_as_the_bot_api_wants_it() {
    let (url, seen) =
        serve(vec![answer(json!({"message_id": 8, "chat": {}})), answer(json!({"message_id": 9}))]).await;
    let client = client(&url);
    let bold = Entity { kind: EntityKind::Bold, offset: 3, length: 4 };
    let text = Formatted::new(String::from("🙂 bold"), vec![bold]);
    let message = SendMessage {
        chat_id: ChatId(-100),
        thread_id: Some(ThreadId(40)),
        text: &text,
        reply_to: Some(MessageId(7)),
    };
    assert_eq!(client.send_message(message).await.unwrap().message_id, MessageId(8));
    let (head, body) = seen.request(0);
    assert!(head.starts_with("POST /bot123456:SECRET/sendMessage HTTP/1.1\r\n"), "{head}");
    let wanted = json!({
        "chat_id": -100, "message_thread_id": 40, "text": "🙂 bold",
        "entities": [{"type": "bold", "offset": 3, "length": 4}],
        "link_preview_options": {"is_disabled": true},
        "reply_parameters": {"message_id": 7, "allow_sending_without_reply": true},
    });
    assert_eq!(body, wanted);
    assert_eq!(send(&client).await, Ok(MessageId(9)));
    let (_, body) = seen.request(1);
    let wanted =
        json!({"chat_id": 4242, "text": "canary words", "link_preview_options": {"is_disabled": true}});
    assert_eq!(body, wanted);
}

#[tokio::test]
async fn each_refusal_has_its_own_error() {
    let table = [
        (
            refusal(429, "Too Many Requests: retry after 17", json!({"retry_after": 17})),
            ClientError::RetryAfter { seconds: 17 },
        ),
        (refusal(429, "x", json!({"retry_after": 999_999})), ClientError::RetryAfter { seconds: 3_600 }),
        (refusal(429, "x", json!({"retry_after": 0})), ClientError::RetryAfter { seconds: 1 }),
        (refusal(429, "x", Value::Null), ClientError::RetryAfter { seconds: 5 }),
        (
            refusal(409, "Conflict: can't use getUpdates while webhook is active", Value::Null),
            ClientError::Conflict,
        ),
        (refusal(401, "Unauthorized", Value::Null), ClientError::Unauthorized),
        (refusal(404, "Not Found", Value::Null), ClientError::Unauthorized),
        (refusal(403, "Forbidden: bot was blocked by the user", Value::Null), ClientError::Forbidden),
        (
            refusal(400, "Bad Request: group chat was upgraded", json!({"migrate_to_chat_id": -1009})),
            ClientError::Migrated { to: ChatId(-1009) },
        ),
        (refusal(400, "Bad Request: can't parse entities: canary", Value::Null), ClientError::BadEntities),
        (refusal(400, "Bad Request: ENTITY_BOUNDS_INVALID", Value::Null), ClientError::BadEntities),
        (refusal(400, "Bad Request: chat not found", Value::Null), ClientError::BadRequest { code: 400 }),
        (refusal(413, "Request Entity Too Large", Value::Null), ClientError::BadRequest { code: 413 }),
        (refusal(500, "Internal Server Error", Value::Null), ClientError::Server { code: 500 }),
        (raw("502 Bad Gateway", "<html>canary</html>"), ClientError::Server { code: 502 }),
        (raw("429 Too Many", "<html>"), ClientError::RetryAfter { seconds: 5 }),
        (raw("200 OK", &json!({"ok": false, "error_code": 403}).to_string()), ClientError::Forbidden),
        (raw("200 OK", "<html>canary</html>"), ClientError::Malformed),
        (raw("200 OK", "{\"ok\":true}"), ClientError::Malformed),
        (raw("200 OK", "{\"ok\":true,\"result\":[]}"), ClientError::Malformed),
    ];
    for (index, (act, wanted)) in table.into_iter().enumerate() {
        assert_eq!(outcome(act).await, (Err(wanted), 1), "row {index}");
    }
}

#[tokio::test]
async fn a_retry_after_header_counts_for_nothing() {
    let body = json!({"ok": false, "error_code": 429, "parameters": {"retry_after": 3}}).to_string();
    let length = body.len();
    let bytes =
        format!("HTTP/1.1 429 X\r\nretry-after: 99\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes();
    assert_eq!(outcome(Act::Answer(bytes)).await.0, Err(ClientError::RetryAfter { seconds: 3 }));
}

#[tokio::test]
async fn once_written_a_message_without_an_answer_is_uncertain_and_never_sent_again() {
    let partial = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"ok\":true,\"result\":{\"mess".to_vec();
    let unframed = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"ok\":true,\"result\":{\"mess".to_vec();
    let acts = [
        Act::CloseAfterRequest,
        Act::Answer(partial),
        Act::Answer(unframed),
        Act::Answer(b"HTTP/1.1 200".to_vec()),
        Act::Answer(b"nonsense\r\n\r\n".to_vec()),
    ];
    for (index, act) in acts.into_iter().enumerate() {
        let (result, requests) = outcome(act).await;
        assert_eq!((result, requests), (Err(ClientError::Uncertain), 1), "act {index}");
    }
    let (url, seen) = serve(vec![Act::Hang]).await;
    assert_eq!(send(&hasty(&url)).await, Err(ClientError::Uncertain));
    assert_eq!(seen.count(), 1);
    // The connection stood: what was written cannot be known.
    let (url, seen) = serve(vec![Act::CloseBeforeRequest]).await;
    assert_eq!(send(&client(&url)).await, Err(ClientError::Uncertain));
    assert_eq!(seen.count(), 0, "a second connection was made");
}

#[tokio::test]
async fn a_refusal_cut_on_its_way_is_still_a_refusal() {
    let cut = |status: &str| {
        Act::Answer(format!("HTTP/1.1 {status}\r\ncontent-length: 500\r\n\r\n{{\"ok\":fal").into_bytes())
    };
    assert_eq!(outcome(cut("503 X")).await.0, Err(ClientError::Server { code: 503 }));
    assert_eq!(outcome(cut("400 X")).await.0, Err(ClientError::BadRequest { code: 400 }));
}

#[tokio::test]
async fn without_a_connection_nothing_was_written() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = send(&client(&url)).await.unwrap_err();
    assert_eq!(error, ClientError::Unreachable { cause: ConnectFailure::Other });
    assert_eq!(error.delivery(), Delivery::Retry { after_s: 0 });
    let error = send(&client("https://name.invalid")).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn tls_with_something_that_speaks_none_writes_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0_u8; 64];
            let _ = stream.read(&mut hello).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let error = send(&client(&url)).await.unwrap_err();
    assert_eq!(error, ClientError::Unreachable { cause: ConnectFailure::Tls });
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (other, elsewhere) = serve(vec![answer(json!({"message_id": 1}))]).await;
    for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let bytes =
            format!("HTTP/1.1 {status}\r\nlocation: {other}/x\r\ncontent-length: 0\r\n\r\n").into_bytes();
        let (result, requests) = outcome(Act::Answer(bytes)).await;
        assert!(matches!(result, Err(ClientError::BadRequest { code: 302..=308 })), "{result:?}");
        assert_eq!(requests, 1);
    }
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn answers_are_bounded() {
    let body =
        format!("{{\"ok\":true,\"result\":{{\"message_id\":1}},\"pad\":\"{}\"}}", "x".repeat(1024 * 1024));
    let error = outcome(raw("200 OK", &body)).await.0.unwrap_err();
    assert_eq!(error, ClientError::TooLarge { bytes_max: 1024 * 1024 });
    assert_eq!(error.delivery(), Delivery::Uncertain);
}

#[tokio::test]
async fn updates_come_as_they_were_written() {
    let body = r#"{"ok":true,"result":[{"update_id":5, "message":{"text":"a\u00e9", "x":[1.50]}},{"update_id":9,"kind_of_tomorrow":{}}]}"#;
    let (url, seen) = serve(vec![raw("200 OK", body)]).await;
    let updates = client(&url).get_updates_raw(Some(UpdateId(5)), 0, 200).await.unwrap();
    let numbers: Vec<_> = updates.iter().map(|update| update.update_id.0).collect();
    assert_eq!(numbers, [5, 9]);
    assert_eq!(updates[0].bytes, br#"{"update_id":5, "message":{"text":"a\u00e9", "x":[1.50]}}"#);
    let (_, request) = seen.request(0);
    assert_eq!(
        request,
        json!({"offset": 5, "timeout": 0, "limit": 100, "allowed_updates": ["message", "edited_message"]})
    );
}

#[tokio::test]
async fn of_an_update_that_is_too_large_the_number_is_seen_and_of_no_other() {
    let update = |pad: usize| {
        format!("{{\"ok\":true,\"result\":[{{\"update_id\":7,\"pad\":\"{}\"}}]}}", "x".repeat(pad))
    };
    let bound = thought_telegram::limits::UPDATES_BYTES_MAX;
    let unwell = r#"{"ok":false,"error_code":502,"description":"x"}"#;
    let acts =
        vec![raw("200 OK", &update(bound)), raw("200 OK", &update(10)), raw("502 Bad Gateway", unwell)];
    let (url, _) = serve(acts).await;
    let client = client(&url);
    assert_eq!(client.too_large_update(None).await, Ok(Some(UpdateId(7))));
    // One that fits by now is read in the ordinary way, and never passed over.
    assert_eq!(client.too_large_update(None).await, Ok(None));
    assert_eq!(client.too_large_update(None).await, Err(ClientError::Server { code: 502 }));
}

#[tokio::test]
async fn a_full_batch_of_long_updates_fits() {
    let text = "\\u0444".repeat(4_096);
    let update = format!(
        "{{\"update_id\":1,\"message\":{{\"text\":\"{text}\",\"reply_to_message\":{{\"text\":\"{text}\"}}}}}}"
    );
    let body = format!("{{\"ok\":true,\"result\":[{}]}}", vec![update; 100].join(","));
    let (url, _) = serve(vec![raw("200 OK", &body)]).await;
    assert_eq!(client(&url).get_updates_raw(None, 0, 100).await.unwrap().len(), 100);
}

#[tokio::test]
async fn an_update_without_a_number_is_an_error_not_a_gap() {
    let (url, _) = serve(vec![answer(json!([{"update_id": 1}, {"message": {}}]))]).await;
    assert_eq!(client(&url).get_updates_raw(None, 0, 10).await, Err(ClientError::Malformed));
}

#[tokio::test]
async fn the_rest_of_the_calls_say_what_they_mean() {
    let (url, seen) = serve(vec![
        answer(json!({"id": 99, "is_bot": true, "first_name": "S", "username": "stream_bot"})),
        answer(json!(true)),
        answer(json!([{"command": "help", "description": "What I can do"}])),
        answer(json!(true)),
        answer(json!(true)),
        answer(json!(true)),
        answer(json!({"url": "https://x.example/secret", "has_custom_certificate": false, "pending_update_count": 3})),
        answer(json!({"url": "", "pending_update_count": 0})),
    ])
    .await;
    let client = client(&url);
    assert_eq!(client.get_me().await.unwrap().username, "stream_bot");
    let menu = [BotCommand { command: String::from("help"), description: String::from("What I can do") }];
    client.set_my_commands(&menu).await.unwrap();
    assert_eq!(client.get_my_commands().await.unwrap(), menu);
    client.send_typing(ChatId(1), Some(ThreadId(2))).await.unwrap();
    let secret = Sensitive::new(String::from("hush"));
    client.set_webhook(SetWebhook { url: "https://x.example/telegram", secret: &secret }).await.unwrap();
    client.delete_webhook().await.unwrap();
    let info = client.get_webhook_info().await.unwrap();
    assert!(info.is_set() && info.pending_update_count == 3 && !format!("{info:?}").contains("x.example"));
    assert!(!client.get_webhook_info().await.unwrap().is_set());
    assert_eq!(seen.request(1).1, json!({"commands": [{"command": "help", "description": "What I can do"}]}));
    assert_eq!(seen.request(3).1, json!({"chat_id": 1, "message_thread_id": 2, "action": "typing"}));
    let wanted = json!({
        "url": "https://x.example/telegram", "secret_token": "hush", "max_connections": 1,
        "allowed_updates": ["message", "edited_message"],
    });
    assert_eq!(seen.request(4).1, wanted);
    assert_eq!(seen.request(5).1, json!({"drop_pending_updates": false}));
}

#[tokio::test]
async fn files_are_bounded_and_come_from_the_bots_own_folder() {
    let file = |path: &str, size| FileInfo { file_size: size, file_path: Some(path.to_owned()) };
    let bytes = |length: usize| {
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        answer.extend(vec![b'x'; length]);
        Act::Answer(answer)
    };
    let info = answer(
        json!({"file_id": "a", "file_unique_id": "b", "file_size": 100, "file_path": "photos/file_0.jpg"}),
    );
    let missing = raw("404 Not Found", "{\"ok\":false,\"error_code\":404}");
    let (url, seen) = serve(vec![info, bytes(100), bytes(101), missing]).await;
    let client = client(&url);
    let info = client.get_file("a").await.unwrap();
    assert_eq!(client.download(&info, 100).await.unwrap().len(), 100);
    assert!(seen.request(1).0.starts_with("GET /file/bot123456:SECRET/photos/file_0.jpg HTTP/1.1\r\n"));
    // Too large while it comes, and too large by its own word.
    assert_eq!(
        client.download(&file("photos/a.jpg", None), 100).await,
        Err(ClientError::TooLarge { bytes_max: 100 })
    );
    assert_eq!(
        client.download(&file("photos/a.jpg", Some(101)), 100).await,
        Err(ClientError::TooLarge { bytes_max: 100 })
    );
    assert_eq!(
        client.download(&file("photos/a.jpg", None), 100).await,
        Err(ClientError::BadRequest { code: 404 })
    );
    for path in [
        "",
        "/etc/passwd",
        "../bot/getMe",
        "a/../b",
        "a//b",
        "a?b",
        "a#b",
        "a b",
        "http://x.example/a",
        "a/%2e%2e/b",
    ] {
        assert_eq!(client.download(&file(path, None), 100).await, Err(ClientError::Malformed), "{path}");
    }
    let nowhere = FileInfo { file_size: None, file_path: None };
    assert_eq!(client.download(&nowhere, 100).await, Err(ClientError::Malformed));
    assert_eq!(seen.count(), 4);
}

#[tokio::test]
async fn plain_http_to_another_machine_is_refused_before_anything_is_sent() {
    let token = BotToken::new(TOKEN.to_owned()).unwrap();
    let config = ClientConfig {
        api_url: String::from("http://api.telegram.org"),
        token,
        timeouts: Timeouts::default(),
    };
    assert_eq!(BotClient::new(config).map(|_| ()), Err(ConfigError::PlainHttp));
}

/// A transport error whose text would hold the URL, and with it the token.
#[tokio::test]
async fn report_36_no_error_shows_the_token() {
    let shown = |error: &dyn std::error::Error| {
        let mut text = format!("{error} {error:?}");
        let mut next = error.source();
        while let Some(source) = next {
            text.push_str(&format!(" {source} {source:?}"));
            next = source.source();
        }
        text
    };
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let echo = raw(
        "400 Bad Request",
        &json!({"ok": false, "error_code": 400, "description": format!("/bot{TOKEN}/getMe canary")})
            .to_string(),
    );
    let (url, _) = serve(vec![Act::CloseAfterRequest, echo, raw("200 OK", TOKEN)]).await;
    let working = client(&url);
    let mut errors = vec![client(&closed).get_me().await.unwrap_err()];
    for _ in 0..3 {
        errors.push(working.get_me().await.unwrap_err());
    }
    assert_eq!(
        errors[1..],
        [ClientError::Uncertain, ClientError::BadRequest { code: 400 }, ClientError::Malformed]
    );
    for error in &errors {
        let text = shown(error);
        assert!(!text.contains("SECRET") && !text.contains("123456") && !text.contains("canary"), "{text}");
    }
    let debug = format!("{working:?}");
    assert!(!debug.contains("SECRET") && !debug.contains("123456"), "{debug}");
}
