//! What the bot sends: what Telegram refuses, what it answers, menus, and scripted failures.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use std::time::Duration;

use common::{Answer, post, raw, request};
use serde_json::{Value, json};
use thought_fakes::{BotApi, BotConfig, ChatKind, ChatSpec, Error, Failure, MessageSpec, UserSpec};

const TOKEN: &str = "123456:test-token";
const SOON: Duration = Duration::from_secs(20);

async fn start() -> BotApi {
    let bot = BotApi::start(BotConfig::new(TOKEN)).await.unwrap();
    bot.add_chat(ChatSpec::private(7));
    bot
}

async fn try_call(bot: &BotApi, method: &str, params: Value) -> Option<Answer> {
    post(&bot.base_url(), &format!("/bot{TOKEN}/{method}"), &[], &params).await
}

async fn call(bot: &BotApi, method: &str, params: Value) -> (u16, Value) {
    let answer = try_call(bot, method, params).await.unwrap();
    (answer.status, answer.json())
}

async fn refused(bot: &BotApi, method: &str, params: Value, words: &str) {
    let (status, body) = call(bot, method, params.clone()).await;
    assert_eq!((status, &body["ok"], &body["error_code"]), (400, &json!(false), &json!(400)), "{params}");
    let description = body["description"].as_str().unwrap();
    assert!(
        description.starts_with("Bad Request: ") && description.contains(words),
        "{params}: {description}"
    );
}

#[tokio::test]
async fn a_sent_message_is_answered_whole_and_recorded() {
    let bot = start().await;
    let asked = bot.push(&MessageSpec::text(ChatSpec::private(7), UserSpec::person(7), "what do you mean?"));
    let entities = json!([{"type": "bold", "offset": 0, "length": 2}]);
    let reply = json!({"message_id": asked.message_id, "quote": "you mean"});
    let params = json!({
        "chat_id": 7, "text": "🙂 hi", "entities": entities, "reply_parameters": reply,
        "disable_notification": true,
    });
    let (status, body) = call(&bot, "sendMessage", params.clone()).await;
    assert_eq!((status, &body["ok"]), (200, &json!(true)));
    let message = &body["result"];
    assert_eq!(message["message_id"], asked.message_id + 1);
    assert_eq!(message["chat"], json!({"id": 7, "first_name": "Alex", "type": "private"}));
    assert_eq!(message["from"]["id"], 123_456);
    assert_eq!((&message["text"], &message["entities"]), (&json!("🙂 hi"), &entities));
    assert_eq!(message["reply_to_message"]["message_id"], asked.message_id);
    assert!(message["date"].is_i64());

    let sent = bot.wait_for_sent(1, SOON).await.unwrap();
    assert_eq!(
        (sent[0].chat_id, sent[0].text.as_str(), sent[0].reply_to),
        (7, "🙂 hi", Some(asked.message_id))
    );
    assert_eq!((sent[0].params.clone(), sent[0].was_answered), (params, true));
    assert!(!format!("{sent:?} {:?} {bot:?}", bot.calls()).contains("hi"), "no content in Debug output");
    let ran_out = bot.wait_for_sent(2, Duration::from_millis(5)).await;
    assert!(matches!(ran_out, Err(Error::WaitRanOut { wanted: 2, seen: 1, .. })));

    // What the person answers to may be what the bot sent.
    bot.push(
        &MessageSpec::text(ChatSpec::private(7), UserSpec::person(7), "ok").replying_to(asked.message_id + 1),
    );
    let (_, body) = call(&bot, "getUpdates", json!({"offset": -1})).await;
    assert_eq!(body["result"][0]["message"]["reply_to_message"]["text"], "🙂 hi");
    assert!(body["result"][0]["message"]["reply_to_message"].get("reply_to_message").is_none());
}

#[tokio::test]
async fn texts_are_bounded_in_utf16_units() {
    let bot = start().await;
    for text in ["a".repeat(4096), "🙂".repeat(2048), format!("a{}", "é".repeat(4095))] {
        assert_eq!(call(&bot, "sendMessage", json!({"chat_id": 7, "text": text})).await.0, 200);
    }
    for text in ["a".repeat(4097), format!("a{}", "🙂".repeat(2048))] {
        refused(&bot, "sendMessage", json!({"chat_id": 7, "text": text}), "message is too long").await;
    }
    for params in
        [json!({"chat_id": 7, "text": ""}), json!({"chat_id": 7, "text": " \n"}), json!({"chat_id": 7})]
    {
        refused(&bot, "sendMessage", params, "message text is empty").await;
    }
    assert_eq!(bot.sent().len(), 3);
    assert_eq!(bot.call_count("sendMessage"), 8);
}

#[tokio::test]
async fn entities_must_lie_on_whole_symbols_within_the_text() {
    let bot = start().await;
    let text = "a🙂b";
    let entity =
        |kind: &str, offset: i64, length: i64| json!({"type": kind, "offset": offset, "length": length});
    for (bad, words) in [
        (entity("bold", 0, 5), "ends after the end"),
        (entity("bold", 4, 1), "ends after the end"),
        (entity("bold", 0, 0), "empty entity"),
        (entity("bold", -1, 1), "must be integers"),
        (json!({"type": "bold", "offset": 0}), "must be integers"),
        (entity("bold", 2, 1), "middle of a symbol"),
        (entity("bold", 0, 2), "middle of a symbol"),
        (entity("shiny", 0, 1), "unknown entity type"),
        (entity("text_link", 0, 1), "lacks what it points to"),
        (entity("text_mention", 0, 1), "lacks what it points to"),
    ] {
        let params = json!({"chat_id": 7, "text": text, "entities": [bad]});
        refused(&bot, "sendMessage", params.clone(), "can't parse entities").await;
        refused(&bot, "sendMessage", params, words).await;
    }
    let many: Vec<Value> = (0..101).map(|offset| entity("bold", offset, 1)).collect();
    let params = |count: usize| json!({"chat_id": 7, "text": "x".repeat(200), "entities": many[..count]});
    refused(&bot, "sendMessage", params(101), "too many entities").await;
    assert_eq!(call(&bot, "sendMessage", params(100)).await.0, 200);
    let link = json!({"type": "text_link", "offset": 1, "length": 2, "url": "https://example.org"});
    let good = json!({"chat_id": 7, "text": text, "entities": [link, entity("pre", 0, 4)]});
    assert_eq!(call(&bot, "sendMessage", good).await.0, 200);
    refused(&bot, "sendMessage", json!({"chat_id": 7, "text": "x", "entities": "["}), "can't parse entities")
        .await;
}

#[tokio::test]
async fn chats_threads_and_replies_must_exist() {
    let bot = start().await;
    let forum = ChatSpec::of(ChatKind::Forum, -100);
    let topic = bot.push(&MessageSpec::text(forum.clone(), UserSpec::person(7), "in a topic").in_topic(9));
    bot.push(&MessageSpec::text(forum, UserSpec::person(7), "in General"));
    for (params, words) in [
        (json!({"text": "x"}), "chat_id is empty"),
        (json!({"chat_id": 8, "text": "x"}), "chat not found"),
        (json!({"chat_id": "@somebody", "text": "x"}), "chat not found"),
        (json!({"chat_id": -100, "text": "x", "message_thread_id": 1}), "message thread not found"),
        (json!({"chat_id": -100, "text": "x", "message_thread_id": 10}), "message thread not found"),
        (json!({"chat_id": 7, "text": "x", "message_thread_id": 9}), "message thread not found"),
        (json!({"chat_id": 7, "text": "x", "reply_parameters": {"message_id": 99}}), "replied not found"),
        (json!({"chat_id": 7, "text": "x", "reply_to_message_id": 99}), "replied not found"),
        (json!({"chat_id": 7, "text": "x", "reply_parameters": {}}), "message_id is needed"),
        (json!({"chat_id": 7, "text": "x", "parse_mode": "Markup"}), "unsupported parse_mode"),
        (
            json!({"chat_id": -100, "text": "x", "reply_parameters": {"message_id": topic.message_id, "quote": "no"}}),
            "QUOTE_TEXT_INVALID",
        ),
    ] {
        refused(&bot, "sendMessage", params, words).await;
    }
    let threaded = json!({"chat_id": "-100", "text": "x", "message_thread_id": 9, "parse_mode": "HTML"});
    let (_, body) = call(&bot, "sendMessage", threaded).await;
    assert_eq!(body["result"]["is_topic_message"], true);
    let reply = json!({"message_id": 99, "allow_sending_without_reply": true});
    let (_, body) =
        call(&bot, "sendMessage", json!({"chat_id": -100, "text": "x", "reply_parameters": reply})).await;
    assert!(
        body["result"].get("reply_to_message").is_none() && body["result"].get("message_thread_id").is_none()
    );
    let sent = bot.sent();
    assert_eq!((sent[0].thread, sent[0].parse_mode.as_deref()), (Some(9), Some("HTML")));
    assert_eq!((sent[1].thread, sent[1].reply_to), (None, None));

    assert_eq!(call(&bot, "sendChatAction", json!({"chat_id": 7, "action": "typing"})).await.0, 200);
    refused(&bot, "sendChatAction", json!({"chat_id": 7, "action": "dancing"}), "wrong parameter action")
        .await;
    refused(&bot, "sendChatAction", json!({"chat_id": 8, "action": "typing"}), "chat not found").await;
}

#[tokio::test]
async fn forms_work_as_json_does() {
    let bot = start().await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let body = b"chat_id=7&text=a%F0%9F%99%82b&entities=%5B%7B%22type%22%3A%22bold%22%2C%22offset%22%3A1%2C%22length%22%3A2%7D%5D";
    let answer =
        raw(&bot.base_url(), &request("POST", &format!("/bot{TOKEN}/sendMessage"), &form, body)).await;
    assert_eq!(answer.unwrap().json()["result"]["text"], "a🙂b");
    let path = format!("/bot{TOKEN}/sendMessage?chat_id=7&text=by+query");
    assert_eq!(raw(&bot.base_url(), &request("GET", &path, &[], b"")).await.unwrap().status, 200);
    assert_eq!(bot.sent()[1].text, "by query");
    assert_eq!(bot.sent()[0].entities.len(), 1);
}

#[tokio::test]
async fn menus_are_kept_by_scope_and_language() {
    let bot = start().await;
    let commands = json!([{"command": "start", "description": "What I am"}, {"command": "/help", "description": "Help"}]);
    assert_eq!(call(&bot, "setMyCommands", json!({"commands": commands})).await.0, 200);
    let private =
        json!({"commands": [commands[0]], "scope": {"type": "all_private_chats"}, "language_code": "de"});
    assert_eq!(call(&bot, "setMyCommands", private).await.0, 200);
    let (_, body) = call(&bot, "getMyCommands", json!({})).await;
    assert_eq!(body["result"][1], json!({"command": "help", "description": "Help"}));
    let one = json!({"scope": {"type": "chat", "chat_id": 7}});
    assert_eq!(call(&bot, "getMyCommands", one).await.1["result"], json!([]));
    assert_eq!(bot.menu("all_private_chats", "de").len(), 1);
    assert_eq!(call(&bot, "deleteMyCommands", json!({})).await.0, 200);
    assert_eq!(bot.menu("default", ""), Vec::<Value>::new());

    let named = |name: &str| json!({"commands": [{"command": name, "description": "x"}]});
    let twice =
        json!({"commands": [{"command": "a", "description": "x"}, {"command": "a", "description": "y"}]});
    for params in [named("Start"), named(""), named(&"a".repeat(33)), named("a-b"), twice] {
        refused(&bot, "setMyCommands", params, "BOT_COMMAND_INVALID").await;
    }
    let described = |text: String| json!({"commands": [{"command": "a", "description": text}]});
    for params in [described(" ".to_owned()), described("x".repeat(257))] {
        refused(&bot, "setMyCommands", params, "BOT_COMMAND_DESCRIPTION_INVALID").await;
    }
    let many: Vec<Value> =
        (0..101).map(|number| json!({"command": format!("c{number}"), "description": "x"})).collect();
    refused(&bot, "setMyCommands", json!({"commands": many}), "BOT_COMMANDS_TOO_MUCH").await;
    refused(&bot, "setMyCommands", json!({}), "is required").await;
    refused(&bot, "getMyCommands", json!({"scope": {"type": "moon"}}), "BotCommandScope").await;
    refused(&bot, "getMyCommands", json!({"scope": {"type": "chat"}}), "BotCommandScope").await;
    refused(&bot, "getMyCommands", json!({"language_code": "german"}), "language code").await;
}

#[tokio::test]
async fn scripted_refusals_leave_nothing_sent() {
    let bot = start().await;
    let hi = json!({"chat_id": 7, "text": "hi"});
    bot.fail_times("sendMessage", 2, Failure::TooManyRequests { retry_after_seconds: 3 });
    bot.fail("sendMessage", Failure::internal());
    bot.fail("sendMessage", Failure::blocked());
    bot.fail("sendMessage", Failure::Migrated { to_chat_id: -1_009 });
    bot.fail("sendMessage", Failure::cannot_parse_entities());
    for _ in 0..2 {
        let (status, body) = call(&bot, "sendMessage", hi.clone()).await;
        assert_eq!((status, &body["parameters"]), (429, &json!({"retry_after": 3})));
        assert_eq!(body["description"], "Too Many Requests: retry after 3");
    }
    assert_eq!(call(&bot, "getMe", json!({})).await.0, 200, "other methods are not touched");
    let (status, body) = call(&bot, "sendMessage", hi.clone()).await;
    assert_eq!((status, &body["description"]), (500, &json!("Internal Server Error")));
    let (status, body) = call(&bot, "sendMessage", hi.clone()).await;
    assert_eq!((status, &body["description"]), (403, &json!("Forbidden: bot was blocked by the user")));
    let (status, body) = call(&bot, "sendMessage", hi.clone()).await;
    assert_eq!((status, &body["parameters"]), (400, &json!({"migrate_to_chat_id": -1009})));
    refused(&bot, "sendMessage", hi.clone(), "can't parse entities").await;
    bot.fail("sendMessage", Failure::BadGateway);
    let answer = try_call(&bot, "sendMessage", hi.clone()).await.unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (502, Some("text/html")));
    bot.fail("sendMessage", Failure::DropBefore);
    assert!(try_call(&bot, "sendMessage", hi.clone()).await.is_none());
    assert!(bot.sent().is_empty());
    bot.fail_times("sendMessage", 5, Failure::internal());
    bot.clear_failures();
    assert_eq!(call(&bot, "sendMessage", hi).await.0, 200);
    assert_eq!((bot.sent().len(), bot.call_count("sendMessage")), (1, 9));
}

#[tokio::test]
async fn ambiguous_sends_are_recorded_without_an_answer() {
    let bot = start().await;
    let hi = json!({"chat_id": 7, "text": "hi"});
    bot.fail("sendMessage", Failure::DropAfter);
    assert!(try_call(&bot, "sendMessage", hi.clone()).await.is_none());
    bot.fail("sendMessage", Failure::InvalidJson);
    let answer = try_call(&bot, "sendMessage", hi.clone()).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(serde_json::from_slice::<Value>(&answer.body).is_err());
    bot.fail("sendMessage", Failure::Truncated);
    assert!(!try_call(&bot, "sendMessage", hi.clone()).await.unwrap().is_complete);
    for (failure, sent) in [(Failure::HangAfter, 4), (Failure::HangBefore, 4)] {
        bot.fail("sendMessage", failure);
        let hung =
            tokio::time::timeout(Duration::from_millis(50), try_call(&bot, "sendMessage", hi.clone())).await;
        assert!(hung.is_err());
        bot.wait_for_calls("sendMessage", sent, SOON).await.unwrap();
        assert_eq!(bot.sent().len(), sent);
    }
    bot.fail("sendMessage", Failure::Delay(Duration::from_millis(5)));
    assert_eq!(call(&bot, "sendMessage", hi).await.0, 200);
    let answered: Vec<bool> = bot.sent().iter().map(|sent| sent.was_answered).collect();
    assert_eq!(answered, [false, false, false, false, true]);
}
