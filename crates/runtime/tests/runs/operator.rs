//! What an operator may do to a run from outside.

use std::sync::Arc;

use thought_contract::event::EventType;
use thought_contract::run::{AttemptState, RunState, run_id};
use thought_protocol::{EventId, RunId};
use thought_runtime::operator::{Error, abandon, retry};
use tokio::sync::Semaphore;

use crate::ports::{Says, status, text};
use crate::support::{AGENT, Home, TELEGRAM};

async fn give_up(home: &Home, run: &RunId) -> Result<(), Error> {
    abandon(&home.reader(), &home.store.consumer(TELEGRAM), &*home.time, run).await
}

async fn again(home: &Home, run: &RunId) -> Result<RunId, Error> {
    retry(&home.reader(), &home.store.consumer(TELEGRAM), run).await
}

async fn failed(home: &Home, message: i64) -> (EventId, RunId) {
    home.model.says([Says::Reply(status(401, None))]);
    let trigger = home.message(message, "Hello").await;
    let run = home.until(&trigger, RunState::Failed).await.id;
    (trigger, run)
}

#[tokio::test]
async fn an_answer_to_a_run_given_up_meanwhile_is_discarded() {
    let home = Home::new().await;
    let permits = Arc::new(Semaphore::new(0));
    home.model.says([Says::Waits(permits.clone(), text("Too late."))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.wait_for("the request", async || home.model.request_count() == 1).await;
    let run = home.runs_on(&trigger).await.remove(0);
    give_up(&home, &run.id).await.unwrap();
    permits.add_permits(1);
    let next = home.message(2, "Hello?").await;
    home.until(&next, RunState::Completed).await;
    let run = home.until(&trigger, RunState::Abandoned).await;
    assert_eq!(home.ended(&run).await, (EventType::RunAbandoned, "operator".to_owned()));
    assert_eq!(home.attempts(&run.id).await[0].state, AttemptState::Abandoned);
    at_work.stop().await;
    home.check_whole(&[trigger, next]).await;
}

#[tokio::test]
async fn a_held_or_waiting_run_can_be_given_up_without_a_consumer() {
    let home = Home::new().await;
    *home.jail.unavailable.lock().unwrap() = true;
    let at_work = home.start().await;
    let held = home.message(1, "Hello").await;
    let waiting = home.message(2, "Hello").await;
    let first = home.until(&held, RunState::Held).await;
    let second = home.until(&waiting, RunState::Admitted).await;
    at_work.stop().await;
    for run in [&first, &second] {
        give_up(&home, &run.id).await.unwrap();
        assert!(matches!(give_up(&home, &run.id).await, Err(Error::State { state: "abandoned", .. })));
    }
    home.check_whole(&[held, waiting]).await;
    assert_eq!(home.standing(TELEGRAM).await, (2, 2));
}

#[tokio::test]
async fn a_retry_is_a_new_run_that_the_consumer_takes_up() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let (trigger, run) = failed(&home, 1).await;
    let later = home.message(2, "And this?").await;
    home.until(&later, RunState::Completed).await;
    let new = again(&home, &run).await.unwrap();
    assert_eq!(new, run_id(TELEGRAM, 1, &trigger, 1));
    let row = home.until(&trigger, RunState::Completed).await;
    assert_eq!((row.id, row.retry), (new, 1));
    // Its history ends before its trigger.
    assert!(!home.model.request(2)["messages"].to_string().contains("And this?"));
    assert!(matches!(again(&home, &run).await, Err(Error::Answered { state: "completed", .. })));
    at_work.stop().await;
}

#[tokio::test]
async fn a_second_retry_has_the_next_ordinal() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let (trigger, run) = failed(&home, 1).await;
    home.model.says([Says::Reply(status(401, None))]);
    let second = again(&home, &run).await.unwrap();
    home.wait_for("its failure", async || {
        home.runs_on(&trigger)
            .await
            .last()
            .is_some_and(|row| row.id == second && row.state == RunState::Failed)
    })
    .await;
    let third = again(&home, &run).await.unwrap();
    assert_eq!(third, run_id(TELEGRAM, 1, &trigger, 2));
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
}

#[tokio::test]
async fn a_retry_waits_in_the_store_for_its_consumer() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let (trigger, run) = failed(&home, 1).await;
    at_work.stop().await;
    again(&home, &run).await.unwrap();
    let at_work = home.start().await;
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
}

#[tokio::test]
async fn other_states_handles_and_runs_are_refused() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    let run = home.until(&trigger, RunState::Completed).await.id;
    at_work.stop().await;
    assert!(matches!(again(&home, &run).await, Err(Error::State { state: "completed", .. })));
    assert!(matches!(give_up(&home, &run).await, Err(Error::State { state: "completed", .. })));
    let other = home.store.consumer(AGENT);
    assert!(matches!(retry(&home.reader(), &other, &run).await, Err(Error::Handle { .. })));
    let absent = RunId::of("run", &[]);
    assert!(matches!(give_up(&home, &absent).await, Err(Error::NotFound { .. })));
}
