//! Stopping: what is in flight is finished, or left so that the next start takes it up.

use std::sync::Arc;

use thought_contract::run::{AttemptState, RunState};
use tokio::sync::Semaphore;

use crate::ports::{GRACE_MS, Says, text};
use crate::support::{Home, TELEGRAM};

#[tokio::test]
async fn a_stop_finishes_what_is_in_flight_within_its_grace() {
    let home = Home::new().await;
    let permits = Arc::new(Semaphore::new(0));
    home.model.says([Says::Waits(permits.clone(), text("In time."))]);
    let at_work = home.start().await;
    let first = home.message(1, "Hello").await;
    home.wait_for("the request", async || home.model.request_count() == 1).await;
    let second = home.message(2, "Later").await;
    home.until(&second, RunState::Admitted).await;
    at_work.ask_to_stop();
    home.wait_for("the grace", async || home.time.sleeps.lock().unwrap().contains(&GRACE_MS)).await;
    permits.add_permits(1);
    at_work.stop().await;
    home.until(&first, RunState::Completed).await;
    assert_eq!(home.runs_on(&second).await[0].state, RunState::Admitted);
    let at_work = home.start().await;
    home.until(&second, RunState::Completed).await;
    at_work.stop().await;
    home.check_whole(&[first, second]).await;
}

#[tokio::test]
async fn a_stop_leaves_what_outlasts_its_grace_as_an_abandoned_attempt() {
    let home = Home::new().await;
    home.model.says([Says::Waits(Arc::new(Semaphore::new(0)), text("Never."))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.wait_for("the request", async || home.model.request_count() == 1).await;
    at_work.ask_to_stop();
    home.wait_for("the grace", async || home.time.sleeps.lock().unwrap().contains(&GRACE_MS)).await;
    home.time.advance_ms(i64::try_from(GRACE_MS).unwrap());
    at_work.stop().await;
    let run = home.runs_on(&trigger).await.remove(0);
    assert_eq!(home.attempts(&run.id).await[0].state, AttemptState::Started);
    let at_work = home.start().await;
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
    let states: Vec<_> = home.attempts(&run.id).await.iter().map(|attempt| attempt.state).collect();
    assert_eq!(states, [AttemptState::Abandoned, AttemptState::Answered]);
    home.check_whole(&[trigger]).await;
}

#[tokio::test]
async fn a_run_that_waits_for_a_delivery_is_left_admitted() {
    let home = Home::new().await;
    home.dispatcher(thought_store::command::Presence::AtWork).await;
    let at_work = home.start().await;
    let first = home.message(1, "Hello").await;
    home.until(&first, RunState::Completed).await;
    let second = home.message(2, "And?").await;
    home.wait_for("the wait", async || home.time.sleeps.lock().unwrap().contains(&30_000)).await;
    at_work.stop().await;
    let run = home.runs_on(&second).await.remove(0);
    assert_eq!((run.state, run.attempts), (RunState::Admitted, 0));
    assert_eq!(home.standing(TELEGRAM).await, (2, 1));
    let at_work = home.start().await;
    home.completes_in_time(&second).await;
    at_work.stop().await;
    home.check_whole(&[first, second]).await;
}
