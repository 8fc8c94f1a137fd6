//! The process dies at every named point of a run's path, and another takes up what it left.

use thought_contract::event::EventType;
use thought_contract::run::{AttemptState, RunState};

use crate::ports::{Behaviour, Says, Side, status};
use crate::support::{Home, TELEGRAM};
use thought_store_sqlite::Verdict;

async fn crash_at(home: &Home, point: &'static str, nth: u32) {
    *home.crash.at.lock().unwrap() = Some((point, nth));
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_wherever_an_answered_turn_dies() {
    // Point, attempts afterwards, requests afterwards.
    let points = [
        ("start.before", 1, 1),
        ("start.after", 2, 1),
        ("request.before", 2, 1),
        ("request.after", 2, 2),
        ("settle.before", 2, 2),
        ("settle.after", 1, 1),
    ];
    for (point, attempts, requests) in points {
        let home = Home::new().await;
        crash_at(&home, point, 1).await;
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        at_work.crashed().await;
        let at_work = home.start().await;
        let run = home.until(&trigger, RunState::Completed).await;
        at_work.stop().await;
        home.check_whole(std::slice::from_ref(&trigger)).await;
        assert_eq!((run.attempts, home.model.request_count()), (attempts, requests), "{point}");
        let states: Vec<_> = home.attempts(&run.id).await.iter().map(|attempt| attempt.state).collect();
        assert_eq!(states.last(), Some(&AttemptState::Answered), "{point}");
        assert!(states[..states.len() - 1].iter().all(|state| *state == AttemptState::Abandoned), "{point}");
        assert_eq!(home.standing(TELEGRAM).await, (1, 1), "{point}");
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_wherever_a_second_attempt_dies() {
    for point in ["attempt-end.before", "attempt-end.after"] {
        let home = Home::new().await;
        home.model.says([Says::Reply(status(503, None))]);
        crash_at(&home, point, 1).await;
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        at_work.crashed().await;
        let at_work = home.start().await;
        let run = home.until(&trigger, RunState::Completed).await;
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
        assert_eq!((run.attempts, home.model.request_count()), (2, 2), "{point}");
        // The same snapshot, so the same bytes.
        let requests = home.model.requests.lock().unwrap();
        assert_eq!(requests[0], requests[1], "{point}");
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_wherever_an_ending_dies() {
    for (point, attempts) in [("end.before", 2), ("end.after", 1)] {
        let home = Home::new().await;
        home.model.says([Says::Reply(status(401, None)), Says::Reply(status(401, None))]);
        crash_at(&home, point, 1).await;
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        at_work.crashed().await;
        let at_work = home.start().await;
        let run = home.until(&trigger, RunState::Failed).await;
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
        assert_eq!(run.attempts, attempts, "{point}");
        assert_eq!(home.events(EventType::RunFailed).await.len(), 1, "{point}");
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_wherever_an_admission_dies() {
    for point in ["admit.before", "admit.after"] {
        let home = Home::new().await;
        // The second message waits behind the first, which is being answered.
        let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        home.model.says([Says::Waits(permits, status(500, None))]);
        crash_at(&home, point, 1).await;
        let at_work = home.start().await;
        let first = home.message(1, "Hello").await;
        home.wait_for("the request", async || home.model.request_count() == 1).await;
        let second = home.message(2, "Anyone?").await;
        at_work.crashed().await;
        let at_work = home.start().await;
        home.until(&first, RunState::Completed).await;
        home.until(&second, RunState::Completed).await;
        at_work.stop().await;
        home.check_whole(&[first, second]).await;
        assert_eq!(home.standing(TELEGRAM).await, (2, 2), "{point}");
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_wherever_a_holding_dies() {
    for point in ["hold.before", "hold.after", "notice.before", "notice.after"] {
        let home = Home::new().await;
        *home.jail.unavailable.lock().unwrap() = true;
        crash_at(&home, point, 1).await;
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        at_work.crashed().await;
        let at_work = home.start().await;
        home.until(&trigger, RunState::Held).await;
        home.wait_for("the notice", async || home.events(EventType::NoticeRequested).await.len() == 1).await;
        *home.jail.unavailable.lock().unwrap() = false;
        home.completes_in_time(&trigger).await;
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
        assert_eq!(home.events(EventType::NoticeRequested).await.len(), 1, "{point}");
    }
}

#[tokio::test]
async fn a_lying_workers_run_has_ended_wherever_its_incident_dies() {
    for (point, told) in [("incident.before", 0), ("incident.after", 1)] {
        let home = Home::new().await;
        *home.jail.behaviour.lock().unwrap() = Some(Behaviour::OtherText);
        crash_at(&home, point, 1).await;
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        at_work.crashed().await;
        let run = home.until(&trigger, RunState::Failed).await;
        assert_eq!((run.attempts, home.incidents("worker-mismatch").await.len()), (1, told), "{point}");
        let at_work = home.start().await;
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
    }
}

#[tokio::test]
async fn nothing_is_lost_wherever_a_stop_dies() {
    for point in ["scanned.before", "scanned.after"] {
        let home = Home::new().await;
        let at_work = home.start().await;
        let payload = thought_contract::payload::TelegramCommand {
            chat_id: 4242,
            thread_id: None,
            message_id: 1,
            user_id: 4242,
            command: "help".to_owned(),
            argument: None,
            reply_to_message_id: None,
        };
        let source = thought_contract::event::SourceName::new("telegram:stream");
        let draft = thought_contract::draft::telegram_command(&source, 1, &payload, home.now()).unwrap();
        home.store.telegram_ingress(source).admit(&[1], draft).await.unwrap();
        // Long enough for the look that follows the news.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        crash_at(&home, point, 1).await;
        at_work.ask_to_stop();
        at_work.crashed().await;
        let at_work = home.start().await;
        let trigger = home.message(2, "Hello").await;
        home.until(&trigger, RunState::Completed).await;
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
    }
}

#[tokio::test]
async fn a_run_whose_last_allowed_attempt_dies_is_abandoned() {
    let home = Home::with(|text| text.replace("maxAttempts: 3", "maxAttempts: 2")).await;
    let at_work = {
        crash_at(&home, "request.after", 1).await;
        home.start().await
    };
    let trigger = home.message(1, "Hello").await;
    at_work.crashed().await;
    crash_at(&home, "request.after", 1).await;
    home.start().await.crashed().await;
    let at_work = home.start().await;
    let run = home.until(&trigger, RunState::Abandoned).await;
    assert_eq!(home.ended(&run).await, (EventType::RunAbandoned, "attempt-abandoned".to_owned()));
    let states: Vec<_> = home.attempts(&run.id).await.iter().map(|attempt| attempt.state).collect();
    assert_eq!(states, [AttemptState::Abandoned, AttemptState::Abandoned]);
    // The conversation goes on.
    let next = home.message(2, "Hello?").await;
    home.until(&next, RunState::Completed).await;
    at_work.stop().await;
    home.check_whole(&[trigger, next]).await;
}

#[tokio::test]
async fn an_unknown_outcome_before_a_crash_still_counts_after_it() {
    let home = Home::with(|text| text.replace("maxAttempts: 3", "maxAttempts: 5")).await;
    let unknown = || Says::Reply(thought_runtime::port::ModelReply::Unknown { code: "timeout" });
    home.model.says([unknown(), unknown()]);
    crash_at(&home, "attempt-end.after", 1).await;
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    at_work.crashed().await;
    let at_work = home.start().await;
    let run = home.until(&trigger, RunState::Failed).await;
    assert_eq!((run.attempts, run.reason.as_deref()), (2, Some("outcome-unknown")));
    at_work.stop().await;
}

#[tokio::test]
async fn every_point_of_the_list_is_a_point_of_the_code() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
    let passed = home.crash.passed.lock().unwrap().clone();
    assert!(passed.iter().all(|point| thought_runtime::port::CRASH_POINTS.contains(point)));
    assert_eq!(
        passed,
        ["start.before", "start.after", "request.before", "request.after", "settle.before", "settle.after"]
    );
}

#[tokio::test]
async fn a_commit_that_fails_or_is_not_known_to_have_succeeded_loses_and_doubles_nothing() {
    // The message's own commit is past; these are the runtime's two.
    for nth in [1, 2] {
        for (side, verdict) in
            [(Side::Before, Verdict::Fail), (Side::Before, Verdict::NoSpace), (Side::After, Verdict::Fail)]
        {
            let home = Home::new().await;
            let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
            let at_work = home.start().await;
            *home.jail.unavailable.lock().unwrap() = true;
            let trigger = home.message(1, "Hello").await;
            home.until(&trigger, RunState::Held).await;
            home.wait_for("the notice", async || home.events(EventType::NoticeRequested).await.len() == 1)
                .await;
            *home.faults.at.lock().unwrap() = Some((nth, side, verdict));
            *home.jail.unavailable.lock().unwrap() = false;
            home.model.says([Says::Waits(permits.clone(), crate::ports::text("Here."))]);
            permits.add_permits(1);
            home.completes_in_time(&trigger).await;
            at_work.stop().await;
            assert!(home.faults.at.lock().unwrap().is_none(), "{nth} {side:?}");
            home.check_whole(&[trigger]).await;
        }
    }
}
