//! "Typing…" while an answer is being made.

mod world;

use std::collections::BTreeSet;

use serde_json::json;
use thought_fakes::{ChatKind, ChatSpec, Failure, MessageSpec, UserSpec};
use thought_telegram::ids::{ChatId, ThreadId};
use thought_telegram::stop::Stop;
use thought_telegram::typing::Typing;
use tokio::sync::watch;
use world::{PATIENCE, World};

#[tokio::test]
async fn a_chat_is_shown_typing_as_long_as_a_run_is_on_there() {
    let world = World::new().await;
    let forum = ChatSpec::of(ChatKind::Forum, -70);
    world.bot.push(&MessageSpec::text(forum, UserSpec::person(4242), "q").in_topic(77));
    let (running, places) = watch::channel(BTreeSet::new());
    let (say, word) = watch::channel(false);
    let task = tokio::spawn(Typing::new(world.client(), places).every_ms(30).run(Stop::new(word)));
    // Failures are of no consequence.
    world.bot.fail("sendChatAction", Failure::internal());
    world.bot.fail("sendChatAction", Failure::HangBefore);
    running.send_replace([(ChatId(4242), None)].into());
    world.bot.wait_for_calls("sendChatAction", 4, PATIENCE).await.unwrap();
    running.send_replace([(ChatId(-70), Some(ThreadId(77)))].into());
    let seen = world.bot.call_count("sendChatAction");
    world.bot.wait_for_calls("sendChatAction", seen + 3, PATIENCE).await.unwrap();
    say.send_replace(true);
    tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();

    let calls = world.bot.calls();
    assert_eq!(calls[0].params, json!({"chat_id": 4242, "action": "typing"}));
    let last = &calls[calls.len() - 1].params;
    assert_eq!(*last, json!({"chat_id": -70, "message_thread_id": 77, "action": "typing"}));
}

#[tokio::test]
async fn it_ends_when_nobody_can_say_what_runs() {
    let world = World::new().await;
    let (running, places) = watch::channel([(ChatId(4242), None)].into());
    let (_say, word) = watch::channel(false);
    let task = tokio::spawn(Typing::new(world.client(), places).run(Stop::new(word)));
    world.bot.wait_for_calls("sendChatAction", 1, PATIENCE).await.unwrap();
    drop(running);
    tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    assert_eq!(world.bot.call_count("sendChatAction"), 1);
}
