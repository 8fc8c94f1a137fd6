//! A person's word on uncertain deliveries.

mod world;

use serde_json::json;
use thought_contract::event::EventType;
use thought_fakes::Failure;
use thought_protocol::EventId;
use thought_store::Reads;
use thought_store::row::{DeliveryState, ReplyState};
use thought_telegram::dispatcher::OperatorError;
use thought_telegram::stop::Stop;
use tokio::sync::watch;
use world::{World, payload};

/// A delivery of three chunks, the second of which is uncertain.
async fn uncertain(world: &World) -> EventId {
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::Delay(std::time::Duration::ZERO));
    world.bot.fail("sendMessage", Failure::DropAfter);
    let output = world.turn(4242, 1, &"a".repeat(9_000)).await;
    world.wait_for_delivery(&output, DeliveryState::Uncertain).await;
    running.stop().await;
    output
}

fn never() -> (watch::Sender<bool>, Stop) {
    let (say, word) = watch::channel(false);
    (say, Stop::new(word))
}

#[tokio::test]
async fn a_retry_sends_from_the_uncertain_chunk_on() {
    let world = World::new().await;
    let output = uncertain(&world).await;
    let (_say, stop) = never();
    assert_eq!(world.dispatcher().retry(&output, &stop).await.unwrap(), DeliveryState::Delivered);
    let ids: Vec<_> = world.bot.sent().iter().map(|sent| sent.message_id).collect();
    assert_eq!(ids.len(), 4, "the second chunk was sent twice, because a person said so");
    let receipt = payload(&world.events(&[EventType::DeliveryTelegram]).await[0]);
    let told: Vec<_> = receipt["chunks"].as_array().unwrap().iter().map(|c| c["messageId"].clone()).collect();
    assert_eq!(told, [json!(ids[0]), json!(ids[2]), json!(ids[3])]);
    assert!(matches!(world.engine.reply_state(output).await.unwrap(), ReplyState::Receipt(_)));
}

#[tokio::test]
async fn a_confirmation_goes_on_behind_the_uncertain_chunk_and_names_the_person() {
    let world = World::new().await;
    let output = uncertain(&world).await;
    let (_say, stop) = never();
    let state = world.dispatcher().confirm(&output, "alex", &stop).await.unwrap();
    assert_eq!(state, DeliveryState::Delivered);
    assert_eq!(world.bot.sent().len(), 3);
    let receipt = payload(&world.events(&[EventType::DeliveryTelegram]).await[0]);
    assert_eq!(receipt["chunks"][1], json!({"utf16Length": 4_096, "confirmedBy": "alex"}));
    assert!(receipt["chunks"][2]["messageId"].is_number());
}

#[tokio::test]
async fn the_last_chunk_is_confirmed_with_the_receipt_alone() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::DropAfter);
    let output = world.turn(4242, 1, "answer").await;
    world.wait_for_delivery(&output, DeliveryState::Uncertain).await;
    running.stop().await;
    let (_say, stop) = never();
    let state = world.dispatcher().confirm(&output, "alex", &stop).await.unwrap();
    assert_eq!((state, world.bot.call_count("sendMessage")), (DeliveryState::Delivered, 1));
    world.wait_for_events(EventType::DeliveryTelegram, 1).await;
}

#[tokio::test]
async fn a_retry_that_fails_again_is_uncertain_again() {
    let world = World::new().await;
    let output = uncertain(&world).await;
    let (_say, stop) = never();
    world.bot.fail("sendMessage", Failure::Truncated);
    assert_eq!(world.dispatcher().retry(&output, &stop).await.unwrap(), DeliveryState::Uncertain);
    assert_eq!(world.dispatcher().retry(&output, &stop).await.unwrap(), DeliveryState::Delivered);
}

#[tokio::test]
async fn only_an_uncertain_delivery_takes_a_word() {
    let world = World::new().await;
    let running = world.dispatch();
    let output = world.turn(4242, 1, "answer").await;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    world.bot.fail("sendMessage", Failure::blocked());
    let refused = world.turn(4242, 2, "answer").await;
    world.wait_for_delivery(&refused, DeliveryState::Refused).await;
    running.stop().await;
    let (_say, stop) = never();
    let dispatcher = world.dispatcher();
    for (cause, expected) in [(&output, DeliveryState::Delivered), (&refused, DeliveryState::Refused)] {
        let error = dispatcher.retry(cause, &stop).await.unwrap_err();
        assert!(matches!(error, OperatorError::NotUncertain { state } if state == expected), "{error}");
        assert!(dispatcher.confirm(cause, "alex", &stop).await.is_err());
    }
    let unknown = EventId::of("x", &[json!(1)]);
    assert!(matches!(dispatcher.retry(&unknown, &stop).await, Err(OperatorError::NotFound)));
    let untold = world.turn(4242, 3, "never begun").await;
    assert!(matches!(dispatcher.confirm(&untold, "alex", &stop).await, Err(OperatorError::NotFound)));
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test]
async fn a_retry_to_a_chat_that_is_not_admitted_any_more_sends_nothing() {
    let mut world = World::new().await;
    let output = uncertain(&world).await;
    world.chats.clear();
    let (_say, stop) = never();
    assert_eq!(world.dispatcher().retry(&output, &stop).await.unwrap(), DeliveryState::Refused);
    assert_eq!(world.bot.call_count("sendMessage"), 2);
}
