//! How updates reach the bot: polling, offsets, conflicts, kinds, and the webhook.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use std::time::Duration;

use common::{post, raw, request};
use serde_json::{Value, json};
use thought_fakes::{
    BotApi, BotConfig, ChatKind, ChatSpec, Error, Failure, MessageSpec, PhotoSpec, UserSpec,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const TOKEN: &str = "123456:test-token";
const SOON: Duration = Duration::from_secs(20);

async fn start() -> BotApi {
    BotApi::start(BotConfig::new(TOKEN)).await.unwrap()
}

async fn call(bot: &BotApi, method: &str, params: Value) -> (u16, Value) {
    let answer = post(&bot.base_url(), &format!("/bot{TOKEN}/{method}"), &[], &params).await.unwrap();
    (answer.status, answer.json())
}

async fn poll(bot: &BotApi, params: Value) -> Vec<i64> {
    let (status, body) = call(bot, "getUpdates", params).await;
    assert_eq!(status, 200, "{body}");
    body["result"].as_array().unwrap().iter().map(|update| update["update_id"].as_i64().unwrap()).collect()
}

fn hello(bot: &BotApi, text: &str) -> i64 {
    bot.push_message(ChatSpec::private(4242), UserSpec::person(4242), text)
}

#[tokio::test]
async fn the_way_to_a_method_is_strict() {
    let bot = start().await;
    for (path, status) in [
        ("/bot123456:wrong/getMe".to_owned(), 401),
        (format!("/bot{TOKEN}/noSuchMethod"), 404),
        (format!("/bot{TOKEN}/"), 404),
        ("/".to_owned(), 404),
        (format!("/file/bot123456:wrong/{TOKEN}"), 401),
        (format!("/file/bot{TOKEN}/photos/none.jpg"), 404),
    ] {
        let answer = raw(&bot.base_url(), &request("GET", &path, &[], b"")).await.unwrap();
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.json()["error_code"], status, "{path}");
    }
    assert_eq!(bot.unauthorized_count(), 2);
    let answer =
        raw(&bot.base_url(), &request("PUT", &format!("/bot{TOKEN}/getMe"), &[], b"")).await.unwrap();
    assert_eq!(answer.status, 405);
    assert_eq!(bot.calls().len(), 1, "only the file call counts");

    let escaped = format!("/bot{}/GETME", TOKEN.replace(':', "%3A"));
    let me = raw(&bot.base_url(), &request("GET", &escaped, &[], b"")).await.unwrap().json();
    assert_eq!(me["result"]["is_bot"], true);
    assert_eq!(me["result"]["id"], 123_456);
    assert_eq!(bot.call_count("getMe"), 1);
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused() {
    let bot = start().await;
    let path = format!("/bot{TOKEN}/getUpdates");
    for (kind, body) in [
        ("application/json", &b"{"[..]),
        ("application/json", b"[1]"),
        ("application/x-www-form-urlencoded", b"offset=%zz"),
        ("application/x-www-form-urlencoded", b"\xff"),
        ("text/plain", b"offset=1"),
        ("application/json", b"{\"offset\": \"soon\"}"),
        ("application/json", b"{\"allowed_updates\": \"message\"}"),
        ("application/json", b"{\"allowed_updates\": [1]}"),
    ] {
        let bytes = request("POST", &path, &[("content-type", kind)], body);
        let answer = raw(&bot.base_url(), &bytes).await.unwrap();
        assert_eq!((answer.status, &answer.json()["ok"]), (400, &json!(false)), "{kind} {body:?}");
    }
}

#[tokio::test]
async fn malformed_http_is_refused() {
    let bot = start().await;
    for bytes in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        "GET  / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/2\r\nhost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n folded: b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nna me: b\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n",
    ] {
        let answer = raw(&bot.base_url(), bytes.as_bytes()).await.unwrap();
        assert_eq!(answer.status, 400, "{bytes:?}");
    }
    assert!(bot.calls().is_empty());
}

#[tokio::test]
async fn connections_are_kept_and_bodies_may_come_in_chunks() {
    let bot = start().await;
    hello(&bot, "hi");
    let authority = common::authority(&bot.base_url()).to_owned();
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let chunked = format!(
        "POST /bot{TOKEN}/getUpdates HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\n{{\"lim\r\n7\r\nit\": 1}}\r\n0\r\ntrailer: x\r\n\r\n"
    );
    let plain = format!("GET /bot{TOKEN}/getMe HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all((chunked + &plain).as_bytes()).await.unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    assert!(all.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{all}");
    assert!(all.contains("\"text\":\"hi\"") && all.contains("\"username\""));
    assert_eq!(bot.calls()[0].params, json!({"limit": 1}));
}

#[tokio::test]
async fn an_offset_confirms_everything_below_it() {
    let bot = start().await;
    let first = hello(&bot, "one");
    assert_eq!((hello(&bot, "two"), hello(&bot, "three")), (first + 1, first + 2));
    assert_eq!(poll(&bot, json!({})).await, [first, first + 1, first + 2]);
    assert_eq!(poll(&bot, json!({"limit": 1})).await, [first], "nothing is confirmed without an offset");
    assert_eq!(poll(&bot, json!({"offset": first + 2})).await, [first + 2]);
    assert_eq!(bot.pending_updates(), [first + 2]);
    assert_eq!(poll(&bot, json!({"offset": first + 3})).await, [0; 0]);
    bot.wait_until_confirmed(SOON).await.unwrap();

    for text in ["a", "b", "c"] {
        hello(&bot, text);
    }
    assert_eq!(poll(&bot, json!({"offset": -1})).await, [first + 5], "the earlier ones are forgotten");
    // An offset that passes over what was never delivered loses it, as it does in life.
    let skipped = hello(&bot, "skipped");
    assert_eq!(poll(&bot, json!({"offset": skipped + 1})).await, [0; 0]);
    assert!(bot.pending_updates().is_empty());
}

#[tokio::test]
async fn parameters_may_come_by_query_and_form() {
    let bot = start().await;
    let first = hello(&bot, "one");
    let second = hello(&bot, "two");
    let path = format!("/bot{TOKEN}/getUpdates?offset={second}&limit=1");
    let answer = raw(&bot.base_url(), &request("GET", &path, &[], b"")).await.unwrap().json();
    assert_eq!(answer["result"][0]["update_id"], second);
    assert_eq!(bot.pending_updates(), [first + 1]);
    let form = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
    let body = b"offset=-5&allowed_updates=%5B%22message%22%5D";
    let answer =
        raw(&bot.base_url(), &request("POST", &format!("/bot{TOKEN}/getUpdates"), &form, body)).await;
    assert_eq!(answer.unwrap().json()["result"].as_array().unwrap().len(), 1);
    assert_eq!(bot.calls()[1].params["allowed_updates"], "[\"message\"]");
}

#[tokio::test]
async fn repeated_late_and_restarted_ids_are_never_lost() {
    let bot = start().await;
    let first = hello(&bot, "one");
    assert_eq!(poll(&bot, json!({"offset": first})).await, [first]);
    bot.push_again(first).unwrap();
    assert_eq!(poll(&bot, json!({"offset": first + 1})).await, [first], "the repetition comes once more");
    assert_eq!(poll(&bot, json!({"offset": first + 1})).await, [0; 0]);

    let mut late = bot.update(first).unwrap();
    late["update_id"] = json!(first - 1);
    bot.push_update(late).unwrap();
    assert_eq!(
        poll(&bot, json!({"offset": first + 1})).await,
        [first - 1],
        "below the offset and yet delivered"
    );
    assert_eq!(poll(&bot, json!({"offset": first})).await, [0; 0]);

    bot.set_next_update_id(55);
    assert_eq!(hello(&bot, "after a quiet week"), 55);
    assert_eq!(poll(&bot, json!({"offset": first + 1})).await, [55]);
    assert_eq!(poll(&bot, json!({"offset": 56})).await, [0; 0]);
    bot.set_next_update_id(2_000_000_000);
    assert_eq!(hello(&bot, "far up"), 2_000_000_000);
    assert_eq!(poll(&bot, json!({"offset": 56})).await, [2_000_000_000]);

    assert!(matches!(bot.push_again(1), Err(Error::Update(_))));
    assert!(matches!(bot.push_update(json!({"message": {}})), Err(Error::Update(_))));
}

#[tokio::test]
async fn a_long_poll_ends_with_the_first_update() {
    let bot = start().await;
    let waiting = poll(&bot, json!({"timeout": 50}));
    let pushing = async {
        bot.wait_for_calls("getUpdates", 1, SOON).await.unwrap();
        hello(&bot, "now")
    };
    let (got, pushed) = tokio::join!(waiting, pushing);
    assert_eq!(got, [pushed]);
    assert_eq!(poll(&bot, json!({"offset": pushed + 1, "timeout": 1})).await, [0; 0]);
}

#[tokio::test]
async fn a_second_poll_and_a_webhook_end_the_first() {
    let bot = start().await;
    let first = call(&bot, "getUpdates", json!({"timeout": 50}));
    let second = async {
        bot.wait_for_calls("getUpdates", 1, SOON).await.unwrap();
        call(&bot, "getUpdates", json!({"timeout": 50})).await
    };
    let webhook = async {
        bot.wait_for_calls("getUpdates", 2, SOON).await.unwrap();
        call(&bot, "setWebhook", json!({"url": "https://example.org/telegram"})).await
    };
    let (first, second, webhook) = tokio::join!(first, second, webhook);
    assert_eq!(first.0, 409);
    assert!(first.1["description"].as_str().unwrap().contains("terminated by other getUpdates request"));
    assert_eq!(second.0, 409);
    assert!(second.1["description"].as_str().unwrap().contains("terminated by setWebhook request"));
    assert_eq!(webhook, (200, json!({"ok": true, "result": true})));
    let (status, body) = call(&bot, "getUpdates", json!({})).await;
    assert_eq!((status, body["error_code"].as_i64()), (409, Some(409)));
    assert!(body["description"].as_str().unwrap().contains("while webhook is active"));
}

#[tokio::test]
async fn allowed_updates_are_remembered_and_applied_when_an_update_arises() {
    let bot = start().await;
    let message = bot.push(&MessageSpec::text(ChatSpec::private(1), UserSpec::person(1), "first"));
    bot.push_edit(1, message.message_id, "second").unwrap();
    bot.push_update(json!({"update_id": 800_000, "message_reaction": {}})).unwrap();
    assert_eq!((bot.pending_updates().len(), bot.filtered_count()), (2, 1), "reactions are opt-in");

    let (_, body) =
        call(&bot, "getUpdates", json!({"allowed_updates": ["message", "message_reaction"]})).await;
    assert_eq!(body["result"].as_array().unwrap().len(), 2, "what is queued stays queued");
    assert_eq!(body["result"][1]["edited_message"]["text"], "second");
    assert!(body["result"][1]["edited_message"]["edit_date"].is_i64());
    assert_eq!(body["result"][1]["edited_message"]["message_id"], message.message_id);
    poll(&bot, json!({})).await;
    bot.push_edit(1, message.message_id, "third").unwrap();
    bot.push_update(json!({"update_id": 800_100, "message_reaction": {}})).unwrap();
    bot.push_update_unasked(json!({"update_id": 800_101, "purchased_paid_media": {}})).unwrap();
    assert_eq!(bot.filtered_count(), 2);
    assert_eq!(bot.pending_updates()[2..], [800_100, 800_101]);
    assert!(matches!(bot.push_edit(1, 999, "x"), Err(Error::Update(_))));
}

#[tokio::test]
async fn messages_have_the_real_shapes() {
    let bot = start().await;
    let forum = ChatSpec::of(ChatKind::Forum, -1_001);
    let person = UserSpec { username: Some("alex".to_owned()), ..UserSpec::person(7) };
    let asked = bot
        .push(&MessageSpec::text(forum.clone(), person.clone(), "/focus@thought_stream_bot now").in_topic(9));
    let answer = MessageSpec::text(forum, person, "and?").in_topic(9).replying_to(asked.message_id);
    bot.push(&answer.with("via_bot", json!({"id": 5})));
    bot.push(
        &MessageSpec::bare(ChatSpec::of(ChatKind::Channel, -1_002), None)
            .with("sticker", json!({"emoji": "x"})),
    );
    let admin = MessageSpec::text(ChatSpec::of(ChatKind::Group, -3), UserSpec::anonymous_admin(), "x");
    bot.push(&admin.with("sender_chat", json!({"id": -3})));

    let (_, body) = call(&bot, "getUpdates", json!({})).await;
    let first = &body["result"][0]["message"];
    assert_eq!(
        first["chat"],
        json!({"id": -1001, "is_forum": true, "title": "The chat", "type": "supergroup"})
    );
    assert_eq!(first["from"]["username"], "alex");
    assert_eq!((&first["is_topic_message"], &first["message_thread_id"]), (&json!(true), &json!(9)));
    assert_eq!(first["entities"], json!([{"type": "bot_command", "offset": 0, "length": 25}]));
    let second = &body["result"][1]["message"];
    assert_eq!(second["reply_to_message"]["text"], first["text"]);
    assert_eq!(second["via_bot"]["id"], 5);
    assert_eq!(second["message_id"].as_i64().unwrap(), asked.message_id + 1);
    assert!(second["date"].as_i64() > first["date"].as_i64());
    assert_eq!(body["result"][2]["channel_post"]["sticker"]["emoji"], "x");
    assert!(body["result"][2]["channel_post"].get("from").is_none());
    assert_eq!(body["result"][3]["message"]["from"]["is_bot"], true);
}

#[tokio::test]
async fn photos_and_albums_have_files() {
    let bot = start().await;
    let (chat, person) = (ChatSpec::private(7), UserSpec::person(7));
    let photos = vec![
        (PhotoSpec::single(vec![1; 10]), Some("first")),
        (PhotoSpec::single(vec![2; 20]), None),
        (PhotoSpec::single(vec![3; 21 * 1024 * 1024]), Some("third")),
    ];
    let pushed = bot.push_album(&chat, &person, "album-1", photos);
    assert_eq!(pushed.len(), 3);
    let (_, body) = call(&bot, "getUpdates", json!({})).await;
    let messages: Vec<&Value> = (0..3).map(|index| &body["result"][index]["message"]).collect();
    assert!(messages.iter().all(|message| message["media_group_id"] == "album-1"));
    assert_eq!((&messages[0]["caption"], messages[1].get("caption")), (&json!("first"), None));
    assert!(messages[0].get("text").is_none());
    assert_eq!(messages[1]["photo"][0]["file_size"], 20);

    let file_id = &messages[1]["photo"][0]["file_id"];
    let path = format!("/file/bot{TOKEN}/photos/file_2.jpg");
    let early = raw(&bot.base_url(), &request("GET", &path, &[], b"")).await.unwrap();
    assert_eq!(early.status, 404, "a path opens by getFile");
    let (_, file) = call(&bot, "getFile", json!({"file_id": file_id})).await;
    assert_eq!(file["result"]["file_path"], "photos/file_2.jpg");
    bot.fail("file", Failure::BadGateway);
    assert_eq!(raw(&bot.base_url(), &request("GET", &path, &[], b"")).await.unwrap().status, 502);
    let answer = raw(&bot.base_url(), &request("GET", &path, &[], b"")).await.unwrap();
    assert_eq!((answer.status, answer.body), (200, vec![2; 20]));
    for (id, words) in
        [(messages[2]["photo"][0]["file_id"].clone(), "too big"), (json!("none"), "wrong file_id")]
    {
        let (status, body) = call(&bot, "getFile", json!({"file_id": id})).await;
        assert_eq!(status, 400);
        assert!(body["description"].as_str().unwrap().contains(words), "{body}");
    }
}

/// A webhook receiver: hands over each request and answers what it is told.
async fn receiver(statuses: Vec<u16>) -> (String, mpsc::UnboundedReceiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/telegram", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for status in statuses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = String::new();
            let (head, body) = loop {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).await.unwrap();
                all.push_str(str::from_utf8(&buffer[..count]).unwrap());
                if let Some((head, body)) = all.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str(body)
                {
                    break (head.to_owned(), body);
                }
            };
            sender.send((head, body)).unwrap();
            if status != 0 {
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    (url, requests)
}

#[tokio::test]
async fn a_webhook_gets_updates_in_order_until_each_is_taken() {
    let bot = start().await;
    let first = hello(&bot, "one");
    let second = hello(&bot, "two");
    let (url, mut requests) = receiver(vec![503, 0, 200, 204]).await;
    let set =
        json!({"url": url, "secret_token": "s3cret_-", "max_connections": 1, "allowed_updates": ["message"]});
    assert_eq!(call(&bot, "setWebhook", set).await.0, 200);
    for id in [first, first, first, second] {
        let (head, body) = requests.recv().await.unwrap();
        assert_eq!(body["update_id"], id);
        assert!(head.starts_with("POST /telegram HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nX-Telegram-Bot-Api-Secret-Token: s3cret_-"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
    }
    bot.wait_until_confirmed(SOON).await.unwrap();
    let statuses: Vec<Option<u16>> = bot.webhook_posts().iter().map(|post| post.status).collect();
    assert_eq!(statuses, [Some(503), None, Some(200), Some(204)]);

    let (_, info) = call(&bot, "getWebhookInfo", json!({})).await;
    let info = &info["result"];
    assert_eq!((&info["url"], &info["pending_update_count"]), (&json!(url), &json!(0)));
    assert_eq!((&info["max_connections"], &info["allowed_updates"]), (&json!(1), &json!(["message"])));
    assert!(info["last_error_message"].as_str().unwrap().contains("Connection reset"));
    assert_eq!(bot.webhook_url(), Some(url));
    assert_eq!(call(&bot, "deleteWebhook", json!({})).await.0, 200);
    assert_eq!(call(&bot, "getWebhookInfo", json!({})).await.1["result"]["url"], "");
    let third = hello(&bot, "three");
    assert_eq!(poll(&bot, json!({})).await, [third]);
}

#[tokio::test]
async fn webhook_settings_are_checked() {
    let bot = start().await;
    hello(&bot, "old");
    let url = "https://example.org/telegram";
    for bad in [
        json!({"url": "http://example.org/"}),
        json!({"url": "https://"}),
        json!({"url": url, "secret_token": "with space"}),
        json!({"url": url, "secret_token": "a".repeat(257)}),
        json!({"url": url, "max_connections": 0}),
        json!({"url": url, "max_connections": 101}),
        json!({"url": url, "max_connections": "many"}),
    ] {
        let (status, body) = call(&bot, "setWebhook", bad.clone()).await;
        assert_eq!((status, &body["ok"]), (400, &json!(false)), "{bad}");
        assert_eq!(bot.webhook_url(), None);
    }
    let good = json!({"url": url, "secret_token": "a".repeat(256), "drop_pending_updates": true});
    assert_eq!(call(&bot, "setWebhook", good).await.0, 200);
    assert!(bot.pending_updates().is_empty());
    hello(&bot, "kept");
    assert_eq!(call(&bot, "setWebhook", json!({"url": ""})).await.0, 200, "an empty address deletes");
    assert_eq!(bot.webhook_url(), None);
    assert_eq!(bot.pending_updates().len(), 1);
    assert_eq!(call(&bot, "deleteWebhook", json!({"drop_pending_updates": true})).await.0, 200);
    assert!(bot.pending_updates().is_empty());
}
