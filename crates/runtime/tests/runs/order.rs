//! Conversations: serial within, side by side across, bounded in mind.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thought_contract::run::RunState;
use tokio::sync::Semaphore;

use crate::ports::{Says, text};
use crate::support::{Home, TELEGRAM};

#[tokio::test]
async fn one_conversation_is_strictly_serial_in_source_order() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let mut triggers = Vec::new();
    for message in 1..=12 {
        triggers.push(home.message(message, &format!("Message {message}")).await);
    }
    let mut answers = Vec::new();
    for trigger in &triggers {
        answers.push(home.answer(trigger).await);
    }
    let expected: Vec<String> = (1..=12).map(|number| format!("Answer {number}.")).collect();
    assert_eq!(answers, expected);
    assert_eq!(home.model.most_at_once.load(Ordering::SeqCst), 1);
    at_work.stop().await;
    home.check_whole(&triggers).await;
    assert_eq!(home.standing(TELEGRAM).await, (12, 12));
}

#[tokio::test]
async fn different_conversations_run_side_by_side_up_to_the_concurrency() {
    let home = Home::new().await;
    let permits = Arc::new(Semaphore::new(0));
    home.model.says((0..6).map(|_| Says::Waits(permits.clone(), text("Here."))));
    let at_work = home.start().await;
    let mut triggers = Vec::new();
    for chat in 1..=6 {
        triggers.push(home.message_in(chat, chat, "Hello").await);
    }
    home.wait_for("four at once", async || home.model.request_count() == 4).await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(home.model.request_count(), 4);
    permits.add_permits(6);
    for trigger in &triggers {
        home.until(trigger, RunState::Completed).await;
    }
    assert_eq!(home.model.most_at_once.load(Ordering::SeqCst), 4);
    at_work.stop().await;
    home.check_whole(&triggers).await;
    assert_eq!(home.standing(TELEGRAM).await, (6, 6));
}

#[tokio::test]
async fn a_slow_conversation_holds_progress_and_nothing_else() {
    let home = Home::new().await;
    let permits = Arc::new(Semaphore::new(0));
    home.model.says([Says::Waits(permits.clone(), text("Late."))]);
    let at_work = home.start().await;
    let slow = home.message_in(1, 1, "Hello").await;
    home.wait_for("the slow request", async || home.model.request_count() == 1).await;
    let quick = home.message_in(2, 2, "Hello").await;
    home.until(&quick, RunState::Completed).await;
    assert_eq!(home.standing(TELEGRAM).await, (2, 0));
    permits.add_permits(1);
    home.until(&slow, RunState::Completed).await;
    assert_eq!(home.standing(TELEGRAM).await, (2, 2));
    at_work.stop().await;
}

#[tokio::test]
async fn a_backlog_of_five_hundred_is_answered_and_never_held_in_mind_whole() {
    let home = Home::with(|text| text.replace("maxRequestsPerDay: 500", "maxRequestsPerDay: 1000")).await;
    let mut triggers = Vec::new();
    for message in 1..=500 {
        triggers.push(home.message_in(message % 20, message, "Hello").await);
    }
    let permits = Arc::new(Semaphore::new(0));
    home.model.says((0..4).map(|_| Says::Waits(permits.clone(), text("Here."))));
    let at_work = home.start().await;
    // With every place taken, the window fills and the rest of the backlog stays in the log.
    home.wait_for("a full window", async || home.runs().await.len() >= 256).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(home.runs().await.len(), 256);
    assert_eq!(home.standing(TELEGRAM).await, (256, 0));
    let before = home.reader().counters();
    permits.add_permits(4);
    home.until(triggers.last().unwrap(), RunState::Completed).await;
    home.wait_for("the whole backlog", async || home.standing(TELEGRAM).await == (500, 500)).await;
    let after = home.reader().counters();
    at_work.stop().await;
    home.check_whole(&triggers).await;
    // Admission, start and settlement: at most three commits a turn.
    assert!(after.commands - before.commands <= 500 * 3, "{}", after.commands - before.commands);
}

#[tokio::test]
async fn a_restart_takes_up_a_window_of_open_runs_before_the_log() {
    let home = Home::with(|text| text.replace("maxRequestsPerDay: 500", "maxRequestsPerDay: 1000")).await;
    let mut triggers = Vec::new();
    for message in 1..=300 {
        triggers.push(home.message_in(message % 3, message, "Hello").await);
    }
    *home.jail.unavailable.lock().unwrap() = true;
    let at_work = home.start().await;
    home.wait_for("a full window", async || home.runs().await.len() == 256).await;
    at_work.stop().await;
    *home.jail.unavailable.lock().unwrap() = false;
    let at_work = home.start().await;
    home.wait_for("the whole backlog", async || home.standing(TELEGRAM).await == (300, 300)).await;
    at_work.stop().await;
    home.check_whole(&triggers).await;
    // Within each chat the answers came in source order.
    for chat in 0..3 {
        let mut last = 0;
        for trigger in triggers.iter().skip(if chat == 0 { 2 } else { chat - 1 }).step_by(3) {
            let ordinal = home.runs_on(trigger).await[0].terminal.clone().unwrap();
            let position = home.reader().event(ordinal).await.unwrap().unwrap().envelope.position;
            assert!(position > last);
            last = position;
        }
    }
}

#[tokio::test]
async fn a_message_is_answered_only_when_the_corrections_before_it_are_settled() {
    let home = Home::new().await;
    let gate = Arc::new(Semaphore::new(0));
    *home.corrections.waits.lock().unwrap() = Some(("4242:0".to_owned(), gate.clone()));
    let at_work = home.start().await;
    let waits = home.message(1, "Is it right now?").await;
    home.wait_for("the question for corrections", async || {
        home.corrections.asked.load(Ordering::SeqCst) == 1
    })
    .await;
    // Nobody else waits with it.
    let other = home.message_in(77, 2, "Hello").await;
    home.answer(&other).await;
    assert_eq!(home.model.request_count(), 1);
    assert!(home.runs_on(&waits).await.iter().all(|run| run.attempts == 0 && run.state.is_open()));
    gate.add_permits(1);
    home.answer(&waits).await;
    at_work.stop().await;
    home.check_whole(&[waits, other]).await;
}

#[tokio::test]
async fn corrections_that_cannot_be_settled_put_the_answer_off_and_end_nothing() {
    let home = Home::new().await;
    home.corrections.fails.store(3, Ordering::SeqCst);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.answer(&trigger).await;
    at_work.stop().await;
    assert_eq!((home.corrections.asked.load(Ordering::SeqCst), home.model.request_count()), (4, 1));
    home.check_whole(&[trigger]).await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_corrections() {
    let home = Home::new().await;
    let gate = Arc::new(Semaphore::new(0));
    *home.corrections.waits.lock().unwrap() = Some(("4242:0".to_owned(), gate));
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.wait_for("the question for corrections", async || {
        home.corrections.asked.load(Ordering::SeqCst) == 1
    })
    .await;
    at_work.stop().await;
    *home.corrections.waits.lock().unwrap() = None;
    let at_work = home.start().await;
    home.answer(&trigger).await;
    at_work.stop().await;
    home.check_whole(&[trigger]).await;
}
