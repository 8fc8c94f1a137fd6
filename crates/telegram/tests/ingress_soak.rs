//! Many messages, and a channel and a process at their worst. The seed replays a failure.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use thought_contract::event::EventType;
use thought_contract::payload::{DeliveryKind, TelegramMessage};
use thought_fakes::Failure;
use thought_store::Reads;
use thought_store::row::{DeliveryState, EventFilter};
use world::{Running, World};

/// A small generator: the same seed, the same run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What was said in each chat, in order.
async fn by_chat(world: &World) -> BTreeMap<i64, Vec<String>> {
    let mut chats: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for event in world.events(&[EventType::TelegramMessage]).await {
        let message = event.payload::<TelegramMessage>().unwrap();
        chats.entry(message.chat_id).or_default().push(message.text.unwrap());
    }
    chats
}

#[tokio::test]
async fn a_burst_of_two_thousand_messages_in_twenty_chats_keeps_each_and_its_order() {
    let world = World::new().await;
    let running = world.ingress();
    let mut wanted: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for round in 0..100 {
        for chat in 1..=20 {
            let text = format!("{chat}-{round}");
            world.push(chat, &text);
            wanted.entry(chat).or_default().push(text);
        }
    }
    world.wait_for_events(EventType::TelegramMessage, 2_000).await;
    assert_eq!(by_chat(&world).await, wanted);
    world.confirmed().await;
    running.stop().await;
    assert_eq!(world.engine.spool_counts(World::source()).await.unwrap().pending, 0);
}

/// Answers every message that has no answer yet, as an instant model would.
async fn answer_all(world: &World, after: &mut u64) {
    let filter = EventFilter {
        types: vec![EventType::TelegramMessage],
        after_position: *after,
        limit: 10_000,
        ..EventFilter::default()
    };
    for event in world.engine.events(filter).await.unwrap() {
        *after = event.envelope.position;
        let text = event.payload::<TelegramMessage>().unwrap().text.unwrap();
        world.answered(&event, &format!("re {text}"), false).await;
    }
}

async fn restart(world: &World, dice: &mut Dice, ingress: &mut Running, dispatch: &mut Running) {
    let (old_in, old_out) =
        (std::mem::replace(ingress, Running::idle()), std::mem::replace(dispatch, Running::idle()));
    if dice.below(2) == 0 {
        old_in.stop().await;
        old_out.stop().await;
    } else {
        old_in.kill().await;
        old_out.kill().await;
    }
    *ingress = world.ingress();
    *dispatch = world.dispatch();
}

async fn soak(seed: u64, messages: usize) {
    let mut dice = Dice(seed);
    let world = World::new().await;
    let (mut ingress, mut dispatch) = (world.ingress(), world.dispatch());
    let mut said = BTreeSet::new();
    let mut updates = Vec::new();
    let mut answered = 0;
    for number in 0..messages {
        let chat = 1 + i64::try_from(dice.below(6)).unwrap();
        let text = format!("n{number}");
        updates.push(world.push(chat, &text));
        said.insert(text);
        match dice.below(16) {
            0 | 1 if !updates.is_empty() => {
                let again = updates[usize::try_from(dice.below(updates.len() as u64)).unwrap()];
                world.bot.push_again(again).unwrap();
            }
            2 => world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 0 }),
            3 => world.bot.fail("sendMessage", Failure::BadGateway),
            4 => world.bot.fail("sendMessage", Failure::DropAfter),
            5 => world.bot.fail("getUpdates", Failure::DropAfter),
            6 => world.bot.fail("getUpdates", Failure::internal()),
            // Numbers restart after a quiet week, when nothing is left to confirm.
            7 => {
                world.confirmed().await;
                updates.clear();
                world.bot.set_next_update_id(i32::try_from(1 + dice.below(1 << 30)).unwrap());
            }
            8 if dice.below(3) == 0 => restart(&world, &mut dice, &mut ingress, &mut dispatch).await,
            9 | 10 => tokio::time::sleep(Duration::from_millis(dice.below(8))).await,
            _ => {}
        }
        answer_all(&world, &mut answered).await;
    }
    world.bot.clear_failures();
    world.wait_for_events(EventType::TelegramMessage, messages).await;
    answer_all(&world, &mut answered).await;
    let outputs = world.events(&[EventType::MessageObservation]).await;
    assert_eq!(outputs.len(), messages, "seed {seed}");
    let mut uncertain = 0;
    for output in &outputs {
        let id = &output.envelope.id;
        world
            .wait_until("every delivery's end", async || {
                let row = world.delivery(id, DeliveryKind::Reply).await;
                row.is_some_and(|row| row.state != DeliveryState::Sending)
            })
            .await;
        let row = world.delivery(id, DeliveryKind::Reply).await.unwrap();
        assert_ne!(row.state, DeliveryState::Refused, "seed {seed}");
        uncertain += usize::from(row.state == DeliveryState::Uncertain);
    }
    ingress.stop().await;
    dispatch.stop().await;
    let receipts = world.events(&[EventType::DeliveryTelegram]).await.len();
    assert_eq!(receipts + uncertain, messages, "seed {seed}");
    let sent = world.bot.sent();
    let once: BTreeSet<_> = sent.iter().map(|sent| sent.text.clone()).collect();
    assert_eq!(once.len(), sent.len(), "seed {seed}: something was sent twice");
    assert!(once.iter().all(|text| said.contains(text.trim_start_matches("re "))));
    assert!(sent.len() >= receipts, "seed {seed}");
}

#[tokio::test]
async fn whatever_happens_each_message_is_one_event_and_at_most_one_delivery() {
    for seed in [1, 7, 4_242] {
        soak(seed, 150).await;
    }
}
