//! Updates that come twice, late, with gaps or under odd ids; kinds that are not read; and a Bot API that is not there.

use std::time::Duration;

use serde_json::{Value, json};
use thought_fakes::{BotApi, BotConfig, ChatKind, ChatSpec, Failure, MessageSpec, Reply, UserSpec};
use thought_testkit::world::{CHAT, TOKEN, World};
use thought_testkit::{WAIT_MAX, canary, wait_for, wait_until};

use crate::THOUGHT;

#[tokio::test(flavor = "multi_thread")]
async fn report_26_the_same_update_twice_and_again_after_a_restart() {
    let world = World::start(THOUGHT).await;
    let pushed = world.say("only once, please");
    world.bot.push_again(pushed.update_id).unwrap();
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 1);
    world.bot.push_again(pushed.update_id).unwrap();
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    serve.stop();
    let serve = world.serve();
    world.bot.push_again(pushed.update_id).unwrap();
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    // The same message under another update id is the same message.
    let mut again = world.bot.update(pushed.update_id).unwrap();
    again["update_id"] = json!(pushed.update_id + 5);
    world.bot.push_update(again).unwrap();
    world.turn("and another", 2).await;
    serve.stop();
    assert_eq!(world.home.events("source.telegram.message@1").len(), 2);
    assert_eq!((world.home.runs().len(), world.model.request_count(), world.bot.sent().len()), (2, 2, 2));
}

fn raw(update_id: i64, message_id: i64, chat: i64, text: &str) -> Value {
    json!({"update_id": update_id, "message": {
        "message_id": message_id, "date": 1_796_000_000 + message_id,
        "chat": {"id": chat, "type": "private", "first_name": "Alex"},
        "from": {"id": chat, "is_bot": false, "first_name": "Alex"}, "text": text,
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn report_27_slow_fast_kill_gaps_and_disorder_lose_nothing() {
    let world = World::start(THOUGHT).await;
    world.home.set("telegram", "allowed_chats", Some("[4242, 77]"));
    world.bot.add_chat(ChatSpec::private(77));
    world.model.script(vec![Reply::Hang]);
    let serve = world.serve();
    world.bot.push_update(raw(101, 1, CHAT, "slow")).unwrap();
    world.requests(1).await;
    world.bot.push_update(raw(102, 1, 77, "fast")).unwrap();
    world.home.wait_for_deliveries("reply", 1);
    serve.kill();
    for (update_id, message_id, text) in [(110, 2, "a"), (190, 4, "c"), (150, 3, "b")] {
        world.bot.push_update(raw(update_id, message_id, CHAT, text)).unwrap();
    }
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 5);
    // After a quiet week ids begin anywhere, below the last one too.
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    world.bot.push_update(raw(7, 5, CHAT, "a new week")).unwrap();
    world.home.wait_for_deliveries("reply", 6);
    serve.stop();
    let mut texts: Vec<String> = world
        .home
        .events("source.telegram.message@1")
        .iter()
        .map(|event| event["payload"]["text"].as_str().unwrap().to_owned())
        .collect();
    texts.sort();
    assert_eq!(texts, ["a", "a new week", "b", "c", "fast", "slow"]);
    assert!(world.home.runs().iter().all(|run| run["state"] == "completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_are_not_read_get_one_notice_and_commands_their_answer() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let (chat, person) = (ChatSpec::private(CHAT), UserSpec::person(CHAT));
    let sticker = json!({"file_id": "s", "file_unique_id": "u", "type": "regular", "width": 1, "height": 1,
        "is_animated": false, "is_video": false});
    world.bot.push(&MessageSpec::bare(chat.clone(), Some(person.clone())).with("sticker", sticker));
    world.home.wait_for_deliveries("notice:unsupported-kind", 1);
    assert_eq!(world.bot.sent()[0].text, "I can't read that kind of message yet.");
    for (number, command) in [(1, "/start"), (2, "/help")] {
        world.say(command);
        world.home.wait_for_deliveries("notice:help", number);
    }
    let help = world.bot.sent().last().unwrap().text.clone();
    assert!(help.contains("/focus") && help.contains("/help") && help.contains("person decides"), "{help}");
    let asked = world.say("a question");
    world.home.wait_for_deliveries("reply", 1);
    world.bot.push_edit(CHAT, asked.message_id, "another question").unwrap();
    world.turn("/unknown is only a message", 2).await;
    serve.stop();
    assert_eq!((world.model.request_count(), world.bot.sent().len()), (2, 5), "an edit starts no turn");
    assert_eq!(world.home.events("source.telegram.command@1").len(), 2);
    let last = String::from_utf8(world.model.requests()[1].body.clone()).unwrap();
    assert!(
        !last.contains("/help") && !last.contains("another question"),
        "commands and edits are no history"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_api_that_fails_for_a_while_loses_nothing() {
    let world = World::start(THOUGHT).await;
    world.bot.fail("getUpdates", Failure::BadGateway);
    world.bot.fail("getUpdates", Failure::TooManyRequests { retry_after_seconds: 1 });
    world.bot.fail("getUpdates", Failure::InvalidJson);
    world.say("through all this");
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 1);
    // And at work, with more than one message in a batch whose answer is none.
    for failure in [Failure::WithoutResult, Failure::Truncated, Failure::InvalidJson, Failure::BadGateway] {
        world.bot.fail("getUpdates", failure);
    }
    world.say("two");
    world.say("three");
    world.home.wait_for_deliveries("reply", 3);
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    wait_until("no problem in status", || world.home.object(&["status"])["channel"]["problem"].is_null());
    serve.stop();
    let messages = world.home.events("source.telegram.message@1");
    let texts: Vec<_> = messages.iter().map(|message| &message["payload"]["text"]).collect();
    assert_eq!(texts, ["through all this", "two", "three"]);
    assert_eq!(world.bot.sent().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn report_36_a_bot_api_that_is_not_there_never_brings_the_token_to_light() {
    let mut world = World::start(THOUGHT).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.home.set("telegram", "api_url", Some(&format!("\"http://127.0.0.1:{port}\"")));
    let serve = thought_testkit::serve::Serve::start_with(&world.home, &["--log-level", "trace"]);
    let status = wait_for("status to say what is wrong", || {
        let status = world.home.object(&["status"]);
        status["channel"]["problem"].is_string().then_some(status)
    });
    let log = serve.stop();
    let doctor = world.home.json(&["doctor"]).exit(3);
    let told = format!("{log}{status}{}{}", doctor.stdout, doctor.stderr);
    let parts = [TOKEN, "testkit-token", "/bot123456"];
    assert!(canary::in_bytes("what was told", told.as_bytes(), &parts).is_empty(), "{told}");
    assert_eq!(canary::in_folder(&world.home.path, &parts), [""; 0]);
    // A token that Telegram refuses is no secret the less.
    world.home.set("telegram", "api_url", Some(&format!("\"{}\"", world.bot.base_url())));
    world.home.env("THOUGHT_TELEGRAM_TOKEN", "654321:another-secret-token-that-opens-nothing");
    let serve = thought_testkit::serve::Serve::start_with(&world.home, &["--log-level", "trace"]);
    wait_until("the refusal in status", || {
        world.bot.unauthorized_count() > 0 && world.home.object(&["status"])["channel"]["problem"].is_string()
    });
    assert!(!serve.stop().contains("another-secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_while_a_webhook_is_set_is_told_and_goes_on_when_it_is_gone() {
    let world = World::start(THOUGHT).await;
    let set = |url: &str| post(&world.bot, "setWebhook", &json!({"url": url}));
    set("https://example.org/elsewhere");
    let serve = world.serve();
    wait_until("the webhook in status", || {
        world.home.object(&["status"])["channel"]["problem"]
            .as_str()
            .is_some_and(|word| word.contains("webhook"))
    });
    let report = world.home.json(&["doctor"]).exit(3).object();
    assert!(report.to_string().contains("webhook"), "{report}");
    assert_eq!(
        world.bot.webhook_url().as_deref(),
        Some("https://example.org/elsewhere"),
        "serve deletes none"
    );
    post(&world.bot, "deleteWebhook", &json!({}));
    world.turn("at last", 1).await;
    wait_until("no problem in status", || world.home.object(&["status"])["channel"]["problem"].is_null());
    serve.stop();
}

/// One call of the Bot API by hand.
fn post(bot: &BotApi, method: &str, params: &Value) {
    use std::io::{Read, Write};
    let address = bot.base_url();
    let mut stream = std::net::TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let body = params.to_string();
    let head =
        format!("POST /bot{TOKEN}/{method} HTTP/1.1\r\nhost: bot\r\ncontent-type: application/json\r\n");
    write!(stream, "{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_of_a_forum_is_a_conversation_of_its_own() {
    let world = World::start(THOUGHT).await;
    let forum = ChatSpec::of(ChatKind::Forum, -1_001);
    world.bot.add_chat(forum.clone());
    world.home.set("telegram", "allowed_chats", Some("[4242, -1001]"));
    world.home.set("telegram", "allowed_users", Some("[4242]"));
    let serve = world.serve();
    let person = UserSpec::person(CHAT);
    world.bot.push(&MessageSpec::text(forum.clone(), person.clone(), "in five").in_topic(5));
    world.home.wait_for_deliveries("reply", 1);
    world.bot.push(&MessageSpec::text(forum, person, "in six").in_topic(6));
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    let threads: Vec<_> = world.bot.sent().iter().map(|sent| (sent.chat_id, sent.thread)).collect();
    assert_eq!(threads, [(-1_001, Some(5)), (-1_001, Some(6))]);
    let second = String::from_utf8(world.model.requests()[1].body.clone()).unwrap();
    assert!(!second.contains("in five"));
    let correlations = world.home.events("source.telegram.message@1");
    assert_eq!(correlations[0]["correlationId"], "-1001:5");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_bots_do_not_mix() {
    // A message of the same chat and number that another bot got is another message.
    let mut world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("to the first bot", 1).await;
    serve.stop();
    let mut config = BotConfig::new("777777:another-bots-token-that-opens-nothing");
    config.bot_id = 777_777;
    let other = BotApi::start(config).await.unwrap();
    other.add_chat(ChatSpec::private(CHAT));
    world.home.set("telegram", "api_url", Some(&format!("\"{}\"", other.base_url())));
    world.home.env("THOUGHT_TELEGRAM_TOKEN", "777777:another-bots-token-that-opens-nothing");
    other.push_message(ChatSpec::private(CHAT), UserSpec::person(CHAT), "to the second bot");
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    assert_eq!((other.sent().len(), world.bot.sent().len()), (1, 1));
}
