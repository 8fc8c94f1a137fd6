//! The calendar steps by a day while runs wait: no wait grows, and none is cut short.

use std::sync::Arc;

use thought_contract::run::{AttemptState, HeldReason, RunState};
use thought_store::command::Presence;
use tokio::sync::Semaphore;

use crate::ports::{Says, binding, status, text};
use crate::support::{Home, TELEGRAM};

const DAY_MS: i64 = 86_400_000;
const STEPS_MS: [i64; 2] = [-DAY_MS, DAY_MS];
/// The bound of a run.
const TIMEOUT_MS: u64 = 300_000;

fn longest(home: &Home) -> u64 {
    home.time.sleeps.lock().unwrap().iter().copied().max().unwrap()
}

fn waits(home: &Home) -> usize {
    home.time.sleeps.lock().unwrap().iter().filter(|ms| **ms == 30_000).count()
}

#[tokio::test]
async fn a_reply_is_waited_for_no_longer_when_the_calendar_went_back_before() {
    let home = Home::new().await;
    home.dispatcher(Presence::AtWork).await;
    let at_work = home.start().await;
    let first = home.message(1, "Good morning").await;
    home.until(&first, RunState::Completed).await;
    home.time.step_ms(-DAY_MS);
    let second = home.message(2, "And now?").await;
    home.wait_for("the wait for the delivery", async || waits(&home) == 1).await;
    assert_eq!((longest(&home), home.model.request_count()), (TIMEOUT_MS, 1));
    home.time.advance_ms(30_000);
    home.answer(&second).await;
    assert!(!home.model.request(1)["messages"].to_string().contains("Answer 1."));
    at_work.stop().await;
}

#[tokio::test]
async fn a_reply_that_settled_a_day_ago_by_the_calendar_is_not_waited_for() {
    let home = Home::new().await;
    home.dispatcher(Presence::AtWork).await;
    let at_work = home.start().await;
    let first = home.message(1, "Good morning").await;
    home.until(&first, RunState::Completed).await;
    home.time.step_ms(DAY_MS);
    let second = home.message(2, "And now?").await;
    home.answer(&second).await;
    assert_eq!(waits(&home), 0);
    at_work.stop().await;
}

#[tokio::test]
async fn a_calendar_that_steps_within_the_wait_for_a_reply_neither_prolongs_nor_cuts_it() {
    for step_ms in STEPS_MS {
        let home = Home::new().await;
        home.dispatcher(Presence::AtWork).await;
        let at_work = home.start().await;
        let first = home.message(1, "Good morning").await;
        home.until(&first, RunState::Completed).await;
        let second = home.message(2, "And now?").await;
        home.wait_for("the wait for the delivery", async || waits(&home) == 1).await;
        home.time.advance_ms(29_999);
        home.time.step_ms(step_ms);
        // News makes it look again, and count on from where it was.
        let other = home.message_in(77, 3, "Hello").await;
        home.until(&other, RunState::Completed).await;
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        assert_eq!((waits(&home), home.model.request_count()), (1, 2), "{step_ms}");
        home.time.advance_ms(1);
        home.answer(&second).await;
        assert_eq!(longest(&home), TIMEOUT_MS, "{step_ms}");
        at_work.stop().await;
    }
}

#[tokio::test]
async fn a_calendar_that_steps_within_a_run_neither_ends_it_nor_gives_it_time() {
    for step_ms in STEPS_MS {
        let home = Home::new().await;
        let permits = Arc::new(Semaphore::new(0));
        home.model.says([Says::Waits(permits.clone(), status(503, None)), Says::Reply(text("Here."))]);
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        home.wait_for("the request", async || home.model.request_count() == 1).await;
        home.time.step_ms(step_ms);
        permits.add_permits(1);
        let run = home.until(&trigger, RunState::Completed).await;
        let states: Vec<_> = home.attempts(&run.id).await.iter().map(|attempt| attempt.state).collect();
        assert_eq!(states, [AttemptState::Transient, AttemptState::Answered], "{step_ms}");
        let sleeps = home.time.sleeps.lock().unwrap().clone();
        let times: Vec<u64> = sleeps.into_iter().filter(|ms| *ms > 60_000).collect();
        assert_eq!(times, [TIMEOUT_MS, TIMEOUT_MS - 500], "{step_ms}");
        assert_eq!(home.time.backoffs(), [500], "{step_ms}");
        at_work.stop().await;
    }
}

#[tokio::test]
async fn a_run_is_over_in_its_time_though_the_calendar_went_back() {
    let home = Home::new().await;
    home.model.says([Says::Waits(Arc::new(Semaphore::new(0)), text("Never."))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.wait_for("the request", async || home.model.request_count() == 1).await;
    home.time.step_ms(-DAY_MS);
    home.time.advance_ms(300_000);
    let run = home.until(&trigger, RunState::Failed).await;
    assert_eq!(run.reason.as_deref(), Some("run-timeout"));
    at_work.stop().await;
}

#[tokio::test]
async fn a_held_run_is_looked_at_again_within_half_a_minute_whatever_the_calendar_does() {
    for step_ms in STEPS_MS {
        let home = Home::new().await;
        *home.model.binding.lock().unwrap() = Err(HeldReason::ProviderUnconfigured);
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        home.until(&trigger, RunState::Held).await;
        home.time.step_ms(step_ms);
        home.wait_for("another look", async || {
            home.time.advance_ms(30_000);
            waits(&home) >= 2
        })
        .await;
        *home.model.binding.lock().unwrap() = Ok(binding("model-1"));
        home.completes_in_time(&trigger).await;
        assert_eq!(home.standing(TELEGRAM).await, (1, 1), "{step_ms}");
        at_work.stop().await;
    }
}
