//! A store that fails at every commit of a message's way, and a process that dies: nothing lost, nothing doubled.

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thought_contract::event::EventType;
use thought_contract::payload::DeliveryKind;
use thought_fakes::Failure;
use thought_store::Reads;
use thought_store::row::DeliveryState;
use thought_store_sqlite::{Faults, Verdict};
use world::{PATIENCE, World};

/// When in a commit the fault comes.
#[derive(Debug, Clone, Copy)]
enum When {
    /// It is not made durable.
    Before(Verdict),
    /// It is, and nobody is told.
    After,
}

/// Fails one commit, counted from when it is armed.
#[derive(Default)]
struct OneFault {
    countdown: AtomicU64,
    seen: AtomicU64,
}

struct Armed(Arc<OneFault>, When);

impl OneFault {
    fn is_due(&self) -> bool {
        let before =
            self.countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let is_due = before == Ok(1);
        self.seen.fetch_add(u64::from(is_due), Ordering::SeqCst);
        is_due
    }
}

impl Faults for Armed {
    fn before_commit(&self, _transaction: u64) -> Verdict {
        match self.1 {
            When::Before(verdict) if self.0.is_due() => verdict,
            _ => Verdict::Proceed,
        }
    }

    fn after_commit(&self, _transaction: u64) -> Verdict {
        match self.1 {
            When::After if self.0.is_due() => Verdict::Fail,
            _ => Verdict::Proceed,
        }
    }
}

const WHENS: [When; 3] = [When::Before(Verdict::Fail), When::Before(Verdict::NoSpace), When::After];

#[tokio::test]
async fn a_delivery_of_three_chunks_survives_a_fault_at_each_of_its_commits() {
    for when in WHENS {
        for commit in 1..=4 {
            let fault = Arc::new(OneFault::default());
            let world = World::with_faults(Some(Arc::new(Armed(fault.clone(), when)))).await;
            let output = world.turn(4242, 1, &"a".repeat(9_000)).await;
            let running = world.dispatch();
            // The dispatcher's word that it is at work is a commit of its own.
            fault.countdown.store(commit + 1, Ordering::SeqCst);
            world.wait_for_delivery(&output, DeliveryState::Delivered).await;
            running.stop().await;
            // What is durable is seen before whoever committed it is told, or told that it failed.
            assert_eq!(fault.seen.load(Ordering::SeqCst), 1, "{when:?} at {commit} never came");
            let sent = world.bot.sent();
            assert_eq!(sent.len(), 3, "{when:?} at {commit}");
            world.wait_for_events(EventType::DeliveryTelegram, 1).await;
        }
    }
}

#[tokio::test]
async fn a_message_survives_a_fault_at_each_commit_on_its_way_in() {
    for when in WHENS {
        for commit in 1..=2 {
            let fault = Arc::new(OneFault::default());
            let world = World::with_faults(Some(Arc::new(Armed(fault.clone(), when)))).await;
            fault.countdown.store(commit, Ordering::SeqCst);
            world.push(4242, "hello");
            world.push(998, "stranger");
            let running = world.ingress();
            world.wait_for_events(EventType::TelegramMessage, 1).await;
            world.confirmed().await;
            world
                .wait_until("an empty spool", async || {
                    world.engine.spool_counts(World::source()).await.unwrap().pending == 0
                })
                .await;
            running.stop().await;
            assert_eq!(fault.seen.load(Ordering::SeqCst), 1, "{when:?} at {commit} never came");
            let counts = world.engine.spool_counts(World::source()).await.unwrap();
            assert_eq!(counts.parked, 0, "a store that does not work is not the update's fault");
            world.wait_for_events(EventType::TelegramMessage, 1).await;
        }
    }
}

#[tokio::test]
async fn a_send_that_outlasts_the_grace_is_uncertain_after_the_restart() {
    let world = World::new().await;
    let running = world.dispatch_with(world.dispatcher_patient(&world.client(), 20));
    world.bot.fail("sendMessage", Failure::HangAfter);
    let output = world.turn(4242, 1, "answer").await;
    world.bot.wait_for_sent(1, PATIENCE).await.unwrap();
    running.stop().await;
    let row = world.delivery(&output, DeliveryKind::Reply).await.unwrap();
    assert_eq!(row.state, DeliveryState::Sending);
    let running = world.dispatch();
    world.wait_for_delivery(&output, DeliveryState::Uncertain).await;
    running.stop().await;
    assert_eq!(world.bot.call_count("sendMessage"), 1);
}

#[tokio::test]
async fn killed_while_it_waits_it_is_sent_once_by_the_next_one() {
    let world = World::new().await;
    let running = world.dispatch();
    // The second chunk has to wait: what was sent before is not sent again.
    world.bot.fail("sendMessage", Failure::Delay(Duration::ZERO));
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 3_000 });
    let output = world.turn(4242, 1, &"a".repeat(5_000)).await;
    world
        .wait_until("a pause on record", async || {
            let row = world.delivery(&output, DeliveryKind::Reply).await;
            row.is_some_and(|row| row.reason.is_some() && row.state == DeliveryState::Sending)
        })
        .await;
    running.kill().await;
    assert_eq!(world.bot.sent().len(), 1);
    let running = world.dispatch();
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    running.stop().await;
    let lengths: Vec<_> = world.bot.sent().into_iter().map(|sent| sent.text.len()).collect();
    assert_eq!(lengths, [4_096, 904]);
    world.wait_for_events(EventType::DeliveryTelegram, 1).await;
}

#[tokio::test]
async fn text_whose_entities_were_refused_stays_plain_behind_a_pause() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::cannot_parse_entities());
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 2 });
    let output = world.turn(4242, 1, "**bold**").await;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    running.stop().await;
    let sent = world.bot.sent();
    assert_eq!((sent.len(), sent[0].text.as_str(), sent[0].entities.len()), (1, "bold", 0));
    assert_eq!(world.bot.call_count("sendMessage"), 3);
}
