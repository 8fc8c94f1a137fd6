//! From an update at Telegram to an event in the log.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod world;

use std::time::Duration;

use serde_json::{Value, json};
use thought_contract::event::EventType;
use thought_contract::payload::TelegramMessage;
use thought_fakes::{ChatKind, ChatSpec, Failure, MessageSpec, PhotoSpec, UserSpec};
use thought_protocol::Sensitive;
use thought_store::Reads;
use thought_store::handle::RawUpdate;
use thought_telegram::ingress::ChannelState;
use thought_telegram::notices::Switches;
use world::{Log, PATIENCE, TOKEN, World, client_with, payload};

fn update(id: i64, chat: i64, message: i64, text: Value) -> Value {
    json!({"update_id": id, "message": {"message_id": message, "date": 1_796_000_000, "text": text,
        "chat": {"id": chat, "type": "private", "first_name": "Alex"},
        "from": {"id": chat, "is_bot": false, "first_name": "Alex"}}})
}

async fn texts(world: &World) -> Vec<String> {
    let events = world.events(&[EventType::TelegramMessage]).await;
    events.iter().map(|event| event.payload::<TelegramMessage>().unwrap().text.unwrap()).collect()
}

#[tokio::test]
async fn report_26_the_same_update_twice_at_once_and_after_a_restart_is_one_event() {
    let world = World::new().await;
    let id = world.push(4242, "hello");
    world.bot.push_again(id).unwrap();
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    world.confirmed().await;
    running.stop().await;

    world.bot.push_again(id).unwrap();
    // The same message under another number, as after a quiet week.
    world.bot.push_update(update(5, 4242, 1, json!("hello"))).unwrap();
    let running = world.ingress();
    world.push(4242, "next");
    world.wait_for_events(EventType::TelegramMessage, 2).await;
    assert_eq!(texts(&world).await, ["hello", "next"]);
    running.stop().await;
    let counts = world.engine.spool_counts(World::source()).await.unwrap();
    assert_eq!((counts.pending, counts.parked, counts.dropped), (0, 0, 0));
}

#[tokio::test]
async fn report_27_gaps_disorder_and_restarted_numbers_lose_nothing_and_change_no_order() {
    let world = World::new().await;
    let numbers = [101, 102, 900, 103, 9_007_199_254_740_991, 7, 8, -3];
    for (message, id) in (1..).zip(numbers) {
        world.bot.push_update(update(id, 4242, message, json!(format!("m{message}")))).unwrap();
    }
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, numbers.len()).await;
    assert_eq!(texts(&world).await, ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"]);
    running.stop().await;
}

#[tokio::test]
async fn report_27_what_was_spooled_and_not_handled_when_it_was_killed_is_handled_first() {
    let world = World::new().await;
    let ingress = world.store.telegram_ingress(World::source());
    let body = |id| Sensitive::new(update(id, 4242, id, json!(format!("m{id}"))).to_string().into_bytes());
    let slow = RawUpdate { update: 101, body: body(101) };
    ingress.spool(vec![slow], vec![]).await.unwrap();
    world.bot.push_update(update(102, 4242, 102, json!("m102"))).unwrap();
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 2).await;
    assert_eq!(texts(&world).await, ["m101", "m102"]);
    running.stop().await;
}

#[tokio::test]
async fn nothing_of_a_stranger_is_ever_stored() {
    let world = World::new().await;
    let group = || ChatSpec::of(ChatKind::Supergroup, -7);
    world.push(999, "stranger-canary");
    world.bot.push_message(group(), UserSpec::person(998), "stranger-canary");
    world.bot.push_message(group(), UserSpec::anonymous_admin(), "stranger-canary");
    world.bot.push_update(update(1, 997, 1, json!(["stranger-canary"]))).unwrap();
    world.bot.push_message(group(), UserSpec::person(4242), "hello");
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    world.confirmed().await;
    running.stop().await;
    assert!(world.stores("hello") && !world.stores("stranger-canary"));
    let counts = world.engine.spool_counts(World::source()).await.unwrap();
    assert_eq!((counts.pending, counts.parked, counts.dropped), (0, 0, 4));
    let mut refused: Vec<_> = world.engine.refused_chats(World::source()).await.unwrap();
    refused.sort_by_key(|row| row.chat);
    let named: Vec<_> = refused.iter().map(|row| (row.chat, row.kind.as_str(), row.count)).collect();
    assert_eq!(named, [(-7, "supergroup", 2), (997, "private", 1), (999, "private", 1)]);
}

/// A message of somebody who is heard, in a group, around which everybody else's words stand.
fn amid_strangers(id: i64, text: Value) -> Value {
    let stranger =
        json!({"id": 998, "is_bot": false, "first_name": "stranger-canary", "username": "stranger-canary"});
    let said = json!({"message_id": 2, "date": 1, "chat": {"id": -7, "type": "supergroup"}, "from": stranger,
        "text": "stranger-canary", "caption": "stranger-canary"});
    json!({"update_id": id, "message": {"message_id": id, "date": 1_796_000_000, "text": text,
        "chat": {"id": -7, "type": "supergroup", "title": "stranger-canary"},
        "from": {"id": 4242, "is_bot": false, "first_name": "name-canary"},
        "reply_to_message": said, "quote": {"text": "stranger-canary", "position": 0},
        "external_reply": {"origin": {"type": "user", "sender_user": stranger}},
        "forward_origin": {"type": "hidden_user", "sender_user_name": "stranger-canary"},
        "entities": [{"type": "text_mention", "offset": 0, "length": 1, "user": stranger}]}})
}

#[tokio::test]
async fn what_strangers_said_is_not_stored_with_a_message_that_quotes_them() {
    let world = World::new().await;
    world.bot.push_update(amid_strangers(50, json!("hello there"))).unwrap();
    // One that is set aside stays in the store for ever.
    world.bot.push_update(amid_strangers(51, json!({"poison-canary": 1}))).unwrap();
    let mut sticker = amid_strangers(52, Value::Null);
    sticker["message"]["contact"] = json!({"first_name": "stranger-canary", "phone_number": "1"});
    world.bot.push_update(sticker).unwrap();
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    world.wait_for_events(EventType::Incident, 1).await;
    world.wait_for_events(EventType::NoticeRequested, 1).await;
    world.confirmed().await;
    running.stop().await;
    let counts = world.engine.spool_counts(World::source()).await.unwrap();
    assert_eq!((counts.pending, counts.parked), (0, 1));
    assert!(world.stores("hello there"), "the store's files are searched");
    for words in ["stranger-canary", "name-canary", "poison-canary"] {
        assert!(!world.stores(words), "{words} is stored");
    }
    let events = world.events(&[EventType::TelegramMessage]).await;
    assert_eq!(payload(&events[0])["replyToMessageId"], 2);
}

#[tokio::test]
async fn a_poison_update_is_set_aside_and_the_next_one_is_answered() {
    let world = World::new().await;
    world.bot.push_update(update(50, 4242, 1, json!({"poison-canary": 1}))).unwrap();
    world.bot.push_update(update(51, 4242, 2, json!("after"))).unwrap();
    world.bot.push_update(update(52, 5, 1, json!("other chat"))).unwrap();
    let (log, _guard) = Log::listen();
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 2).await;
    // The other chat did not wait for the tries; the chat itself did.
    assert_eq!(texts(&world).await, ["other chat", "after"]);
    running.stop().await;
    let counts = world.engine.spool_counts(World::source()).await.unwrap();
    assert_eq!((counts.pending, counts.parked), (0, 1));
    let incidents = world.events(&[EventType::Incident]).await;
    assert_eq!(incidents.len(), 1);
    assert_eq!(payload(&incidents[0]), json!({"kind": "update-parked", "subject": "50", "count": 1}));
    assert!(!log.text().contains("poison-canary") && !world.stores("poison-canary"));
    // It stays aside.
    let running = world.ingress();
    world.push(5, "later");
    world.wait_for_events(EventType::TelegramMessage, 3).await;
    running.stop().await;
    assert_eq!(world.events(&[EventType::Incident]).await.len(), 1);
}

#[tokio::test]
async fn tries_of_a_poison_update_go_on_after_a_restart() {
    let world = World::new().await;
    let ingress = world.store.telegram_ingress(World::source());
    let body = Sensitive::new(update(50, 4242, 1, json!(1)).to_string().into_bytes());
    ingress.spool(vec![RawUpdate { update: 50, body }], vec![]).await.unwrap();
    for _ in 0..4 {
        ingress.failed(50).await.unwrap();
    }
    let running = world.ingress();
    world.wait_for_events(EventType::Incident, 1).await;
    running.stop().await;
}

#[tokio::test]
async fn kinds_that_make_no_turn_make_none() {
    let world = World::new().await;
    let alex = || UserSpec::person(4242);
    let chat = || ChatSpec::private(4242);
    let first = world.bot.push(&MessageSpec::text(chat(), alex(), "hello"));
    world.bot.push_edit(4242, first.message_id, "edited-canary").unwrap();
    world.bot.push(&MessageSpec::bare(chat(), Some(alex())).with("sticker", json!({"file_id": "x"})));
    world.bot.push(&MessageSpec::bare(chat(), Some(alex())).with("pinned_message", json!({})));
    world.bot.push_update_unasked(json!({"update_id": 9, "callback_query": {"id": "1"}})).unwrap();
    world.push(4242, "/help");
    world.push(4242, "/focus bicycles");
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 2).await;
    world.confirmed().await;
    assert_eq!(texts(&world).await, ["hello", "/focus bicycles"]);
    let commands = world.wait_for_events(EventType::TelegramCommand, 1).await;
    assert_eq!(payload(&commands[0])["command"], "help");
    let notices = world.wait_for_events(EventType::NoticeRequested, 1).await;
    assert_eq!(payload(&notices[0]), json!({"name": "unsupported-kind", "chatId": 4242}));
    assert!(!world.stores("edited-canary"));
    running.stop().await;
}

#[tokio::test]
async fn notices_that_are_off_are_not_requested() {
    let mut world = World::new().await;
    world.switches = Switches { failure_notice: true, notices: false };
    let bare = MessageSpec::bare(ChatSpec::private(4242), Some(UserSpec::person(4242)));
    world.bot.push(&bare.with("voice", json!({"file_id": "x"})));
    let running = world.ingress();
    world.push(4242, "hello");
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    running.stop().await;
    assert!(world.events(&[EventType::NoticeRequested]).await.is_empty());
    assert_eq!(world.engine.spool_counts(World::source()).await.unwrap().pending, 0);
}

#[tokio::test]
async fn an_album_is_one_message_with_its_captions_and_what_follows_it_comes_after() {
    let world = World::new().await;
    let photo = || PhotoSpec::single(b"GIF89a\x04\0\x03\0".to_vec());
    let lost = || PhotoSpec::single(vec![1, 2, 3]);
    let photos = vec![(photo(), Some("one")), (photo(), None), (photo(), Some("three"))];
    world.bot.push_album(&ChatSpec::private(4242), &UserSpec::person(4242), "album-1", photos);
    world.push(4242, "after");
    world.bot.push_album(
        &ChatSpec::private(5),
        &UserSpec::person(5),
        "album-2",
        vec![(lost(), None), (lost(), None)],
    );
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 2).await;
    assert_eq!(texts(&world).await, ["one\n\nthree", "after"]);
    // Photos that are none: one notice for the album.
    world.wait_for_events(EventType::NoticeRequested, 1).await;
    running.stop().await;
    assert_eq!(world.engine.spool_counts(World::source()).await.unwrap().pending, 0);
}

#[tokio::test]
async fn chats_share_commits_and_events_stand_in_order_of_arrival() {
    let world = World::new().await;
    let mut wanted = Vec::new();
    for round in 0..5 {
        for chat in 1..=20 {
            let text = format!("{round}-{chat}");
            world.push(chat, &text);
            wanted.push(text);
        }
    }
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 100).await;
    assert_eq!(texts(&world).await, wanted);
    running.stop().await;
    let counters = world.engine.counters();
    assert_eq!(counters.commands, 101, "one batch and a hundred events");
    assert!(counters.commits < 60, "{} commits for a hundred events", counters.commits);
}

#[tokio::test]
async fn a_message_costs_two_commits_before_it_is_an_event() {
    let world = World::new().await;
    let mut running = world.ingress();
    running.wait_for_state(ChannelState::Ok).await;
    let before = world.engine.counters();
    world.push(4242, "hello");
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    world.confirmed().await;
    // An event can be read a moment before the writer has counted it.
    running.stop().await;
    let after = world.engine.counters();
    assert_eq!((after.commits - before.commits, after.commands - before.commands), (2, 2));
}

#[tokio::test]
async fn polling_beside_a_webhook_is_told_and_goes_on_once_it_is_gone() {
    let world = World::new().await;
    let secret = Sensitive::new("word".to_owned());
    let client = world.client();
    let webhook = thought_telegram::client::SetWebhook { url: "http://127.0.0.1:9/x", secret: &secret };
    client.set_webhook(webhook).await.unwrap();
    let mut running = world.ingress();
    running.wait_for_state(ChannelState::Problem { code: "webhook-set" }).await;
    assert!(world.bot.webhook_url().is_some(), "it is not for us to delete it");
    client.delete_webhook().await.unwrap();
    world.push(4242, "hello");
    running.wait_for_state(ChannelState::Ok).await;
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    running.stop().await;
}

#[tokio::test]
async fn polling_survives_whatever_the_server_does_and_is_still_polite() {
    let world = World::new().await;
    for failure in [
        Failure::internal(),
        Failure::BadGateway,
        Failure::DropBefore,
        Failure::DropAfter,
        Failure::InvalidJson,
        Failure::WithoutResult,
        Failure::Truncated,
        Failure::Refused {
            code: 409,
            description: "Conflict: terminated by other getUpdates request".into(),
        },
        Failure::TooManyRequests { retry_after_seconds: 1 },
    ] {
        world.bot.fail("getUpdates", failure);
    }
    world.bot.fail("getMe", Failure::internal());
    world.push(4242, "hello");
    let mut running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    running.wait_for_state(ChannelState::Ok).await;
    world.confirmed().await;
    assert_eq!(texts(&world).await, ["hello"]);
    running.stop().await;
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_a_problem_and_nothing_worse() {
    let world = World::new().await;
    let mut running = world.ingress_with(&client_with(&world.bot.base_url(), "1:wrong"));
    running.wait_for_state(ChannelState::Problem { code: "unauthorized" }).await;
    running.stop().await;
    let nobody = client_with("http://127.0.0.1:1", TOKEN);
    let mut running = world.ingress_with(&nobody);
    running.wait_for_state(ChannelState::Problem { code: "unreachable" }).await;
    running.stop().await;
}

#[tokio::test]
async fn a_poll_that_waits_is_given_up_at_once() {
    let world = World::new().await;
    let running = world.ingress();
    world.bot.wait_for_calls("getUpdates", 2, PATIENCE).await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(20), running.stop()).await;
    assert!(stopped.is_ok(), "a poll waits 25 seconds");
}

#[tokio::test]
async fn what_is_asked_for_is_named_every_time() {
    let world = World::new().await;
    let id = world.push(4242, "hello");
    let running = world.ingress();
    world.confirmed().await;
    running.stop().await;
    let polls: Vec<_> = world.bot.calls().into_iter().filter(|call| call.method == "getUpdates").collect();
    for poll in &polls {
        assert_eq!(poll.params["allowed_updates"], json!(["message", "edited_message"]));
    }
    // The first one only looks whether polling works.
    let waits: Vec<_> = polls.iter().map(|poll| poll.params["timeout"].clone()).collect();
    assert_eq!(waits[..2], [json!(0), json!(25)]);
    assert_eq!(polls[0].params.get("offset"), None);
    assert_eq!(polls[1].params["offset"], id + 1);
}

#[tokio::test]
async fn report_36_neither_token_nor_words_reach_a_log() {
    let world = World::new().await;
    let (log, _guard) = Log::listen();
    world.bot.fail("getUpdates", Failure::DropAfter);
    world.bot.fail("getUpdates", Failure::internal());
    world.push(4242, "person-canary");
    world.push(998, "stranger-canary");
    let running = world.ingress();
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    world.confirmed().await;
    running.stop().await;
    let nobody = world.ingress_with(&client_with("http://127.0.0.1:1", TOKEN));
    tokio::time::sleep(Duration::from_millis(20)).await;
    nobody.stop().await;
    let text = log.text();
    assert!(text.contains("a batch of updates is spooled"), "the log was heard");
    for secret in [TOKEN, "SECRET", "person-canary", "stranger-canary"] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
    assert!(!world.stores("SECRET"));
}
