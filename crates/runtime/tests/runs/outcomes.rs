//! Every class of outcome, and what follows from it.

use thought_contract::event::EventType;
use thought_contract::run::{AttemptState, RunState};
use thought_runtime::port::ModelReply;
use thought_store::row::RunRow;

use crate::ports::{Behaviour, Says, binding, status, stopped, text};
use crate::support::Home;

/// Runs one message through a script; gives its run and how its attempts ended.
async fn one(home: &Home, script: Vec<ModelReply>, ends: RunState) -> (RunRow, Vec<AttemptState>) {
    home.model.says(script.into_iter().map(Says::Reply));
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    let run = home.until(&trigger, ends).await;
    let states = home.attempts(&run.id).await.iter().map(|attempt| attempt.state).collect();
    at_work.stop().await;
    home.check_whole(&[trigger]).await;
    (run, states)
}

async fn fails(script: Vec<ModelReply>, state: AttemptState, reason: &str) {
    let home = Home::new().await;
    let (run, states) = one(&home, script, RunState::Failed).await;
    assert_eq!(states.last(), Some(&state), "{reason}");
    assert_eq!(home.ended(&run).await, (EventType::RunFailed, reason.to_owned()));
}

#[tokio::test]
async fn what_may_pass_is_tried_again_with_a_doubling_wait() {
    let home = Home::new().await;
    let script = vec![status(503, None), status(529, None), text("At last.")];
    let (run, states) = one(&home, script, RunState::Completed).await;
    assert_eq!(states, [AttemptState::Transient, AttemptState::Transient, AttemptState::Answered]);
    assert_eq!(home.time.backoffs(), [500, 1_000]);
    assert_eq!((run.attempts, home.model.request_count()), (3, 3));
    // Every attempt sent the same bytes.
    let requests = home.model.requests.lock().unwrap();
    assert!(requests.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn the_providers_wait_counts_up_to_a_minute() {
    let home = Home::new().await;
    let script = vec![status(429, Some(7)), status(429, Some(3_600)), text("At last.")];
    one(&home, script, RunState::Completed).await;
    assert_eq!(home.time.backoffs(), [7_000, 60_000]);
}

#[tokio::test]
async fn attempts_are_bounded() {
    let script = vec![status(500, None), status(500, None), status(500, None), text("Too late.")];
    fails(script, AttemptState::Transient, "provider-unavailable").await;
}

#[tokio::test]
async fn a_connection_that_is_never_made_is_tried_again() {
    let home = Home::new().await;
    let refused = ModelReply::RefusedBeforeRequest { code: "connect" };
    let (_, states) = one(&home, vec![refused.clone(), text("Here.")], RunState::Completed).await;
    assert_eq!(states, [AttemptState::RefusedBeforeRequest, AttemptState::Answered]);
    fails(
        vec![refused.clone(), refused.clone(), refused],
        AttemptState::RefusedBeforeRequest,
        "provider-unreachable",
    )
    .await;
}

#[tokio::test]
async fn an_unknown_outcome_is_tried_again_once() {
    let home = Home::new().await;
    let unknown = ModelReply::Unknown { code: "broken-connection" };
    let (_, states) = one(&home, vec![unknown.clone(), text("Here.")], RunState::Completed).await;
    assert_eq!(states, [AttemptState::Unknown, AttemptState::Answered]);
    let script = vec![unknown.clone(), status(503, None), unknown, text("Never asked.")];
    fails(script, AttemptState::Unknown, "outcome-unknown").await;
}

#[tokio::test]
async fn what_will_not_pass_ends_the_run_at_once() {
    for (code, reason) in [
        (401, "provider-unauthorized"),
        (404, "provider-not-found"),
        (400, "provider-refused"),
        (307, "provider-redirected"),
    ] {
        fails(vec![status(code, None)], AttemptState::Permanent, reason).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_not_valid_ends_the_run_at_once_and_its_tokens_count() {
    fails(vec![stopped("No.", "refusal")], AttemptState::Answered, "refusal").await;
    fails(vec![text("   ")], AttemptState::Answered, "empty-answer").await;
    let home = Home::new().await;
    let long = "x".repeat(12_001);
    let (run, states) = one(&home, vec![text(&long)], RunState::Failed).await;
    assert_eq!((run.reason.as_deref(), states), (Some("text-too-long"), vec![AttemptState::Answered]));
    let usage = home.reader().usage(1).await.unwrap();
    assert_eq!((usage[0].requests, usage[0].input_tokens, usage[0].output_tokens), (1, 10, 3));
}

#[tokio::test]
async fn a_text_cut_by_length_completes_and_says_so() {
    let home = Home::new().await;
    let (run, _) = one(&home, vec![stopped("And then", "max_tokens")], RunState::Completed).await;
    let output = home.reader().event(run.output.unwrap()).await.unwrap().unwrap();
    let said: thought_contract::payload::MessageObservation = output.payload().unwrap();
    assert_eq!((said.summary.as_str(), said.truncated), ("And then", true));
}

#[tokio::test]
async fn a_context_that_the_model_does_not_take_blocks_the_run() {
    let home = Home::new().await;
    let (run, states) = one(&home, vec![status(413, None)], RunState::Blocked).await;
    assert_eq!(states, [AttemptState::Permanent]);
    assert_eq!(home.ended(&run).await, (EventType::RunBlocked, "context-too-large".to_owned()));
}

#[tokio::test]
async fn a_worker_that_lies_or_dies_settles_nothing() {
    let table = [
        (
            Behaviour::OtherRequest,
            AttemptState::RefusedBeforeRequest,
            RunState::Failed,
            "request-mismatch",
            0,
        ),
        (
            Behaviour::SpeaksAnotherVersion,
            AttemptState::RefusedBeforeRequest,
            RunState::Blocked,
            "protocol-version",
            0,
        ),
        (Behaviour::OtherText, AttemptState::Answered, RunState::Failed, "worker-mismatch", 1),
        (Behaviour::Withholds, AttemptState::Answered, RunState::Failed, "worker-mismatch", 1),
        (Behaviour::NoResult, AttemptState::Answered, RunState::Failed, "worker-protocol", 1),
        (Behaviour::DiesAtRead, AttemptState::Answered, RunState::Failed, "worker-protocol", 1),
    ];
    let broken = ["worker-protocol", "worker-second-frame", "worker-frame-too-long", "worker-flooded"];
    let broken = broken.map(|code| {
        let behaviour = Behaviour::BreaksAtRender(code);
        (behaviour, AttemptState::RefusedBeforeRequest, RunState::Failed, "worker-protocol", 0)
    });
    for (behaviour, state, ends, reason, requests) in table.into_iter().chain(broken) {
        let home = Home::new().await;
        *home.jail.behaviour.lock().unwrap() = Some(behaviour);
        let (run, states) = one(&home, vec![], ends).await;
        assert_eq!(states, [state], "{behaviour:?}");
        assert_eq!(home.ended(&run).await.1, reason, "{behaviour:?}");
        assert_eq!(home.model.request_count(), requests, "{behaviour:?}");
        assert!(home.events(EventType::MessageObservation).await.is_empty());
        let told = if reason.ends_with("-mismatch") { vec![run.id.to_string()] } else { vec![] };
        assert_eq!(home.incidents(reason).await, told, "{behaviour:?}");
    }
}

const LOST: [&str; 3] = ["worker-died", "worker-silent", "worker-channel"];

#[tokio::test]
async fn a_worker_that_is_lost_before_the_request_is_replaced() {
    for code in LOST {
        let home = Home::new().await;
        home.jail.first.lock().unwrap().extend([Behaviour::LostAtRender(code); 2]);
        let (run, states) = one(&home, vec![text("Here.")], RunState::Completed).await;
        let lost = AttemptState::RefusedBeforeRequest;
        assert_eq!(states, [lost, lost, AttemptState::Answered], "{code}");
        let attempts = home.attempts(&run.id).await;
        let reasons: Vec<_> = attempts.iter().map(|attempt| attempt.reason.as_deref()).collect();
        assert_eq!(reasons, [Some(code), Some(code), None]);
        assert_eq!((home.time.backoffs(), home.model.request_count()), (vec![500, 1_000], 1), "{code}");
    }
}

#[tokio::test]
async fn workers_that_are_all_lost_before_the_request_fail_the_run_and_cost_nothing() {
    for code in LOST {
        let home = Home::new().await;
        *home.jail.behaviour.lock().unwrap() = Some(Behaviour::LostAtRender(code));
        let (run, states) = one(&home, vec![], RunState::Failed).await;
        assert_eq!(states, [AttemptState::RefusedBeforeRequest; 3], "{code}");
        assert_eq!(home.ended(&run).await, (EventType::RunFailed, "worker-protocol".to_owned()));
        assert_eq!(home.model.request_count(), 0, "{code}");
        assert_eq!(home.jail.checkouts.load(std::sync::atomic::Ordering::SeqCst), 3, "{code}");
    }
}

#[tokio::test]
async fn a_liar_in_the_place_of_a_lost_worker_ends_the_run_at_once() {
    let home = Home::new().await;
    home.jail.first.lock().unwrap().push_back(Behaviour::LostAtRender("worker-died"));
    *home.jail.behaviour.lock().unwrap() = Some(Behaviour::OtherRequest);
    let (run, states) = one(&home, vec![], RunState::Failed).await;
    assert_eq!(states, [AttemptState::RefusedBeforeRequest; 2]);
    assert_eq!(run.reason.as_deref(), Some("request-mismatch"));
    assert_eq!(home.incidents("request-mismatch").await, [run.id.to_string()]);
}

#[tokio::test]
async fn the_runner_without_a_model_asks_and_jails_nothing() {
    let three = "proposals:\n    - memory-change\n    - self-correction\n    - focus-declaration";
    let deterministic =
        |text: String| text.replace("runner: pi", "runner: deterministic").replace(three, "proposals: []");
    let home = Home::with(deterministic).await;
    let (run, states) = one(&home, vec![], RunState::Completed).await;
    assert_eq!(states, [AttemptState::Answered]);
    assert_eq!((home.model.request_count(), home.attempts(&run.id).await[0].sandbox.as_str()), (0, "none"));
    let output = home.reader().event(run.output.unwrap()).await.unwrap().unwrap();
    let said: thought_contract::payload::MessageObservation = output.payload().unwrap();
    assert_eq!((said.summary.as_str(), said.model.as_str()), ("Received.", "deterministic"));
}

#[tokio::test]
async fn a_request_beyond_the_runs_time_is_unknown_and_ends_the_run() {
    let home = Home::new().await;
    let never = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    home.model.says([Says::Waits(never, text("Never."))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.wait_for("the request", async || home.model.request_count() == 1).await;
    home.time.advance_ms(300_000);
    let run = home.until(&trigger, RunState::Failed).await;
    assert_eq!(home.ended(&run).await.1, "run-timeout");
    assert_eq!(home.attempts(&run.id).await[0].state, AttemptState::Unknown);
    at_work.stop().await;
}

#[tokio::test]
async fn waits_count_towards_the_runs_time() {
    let home = Home::with(|text| text.replace("timeoutSeconds: 300", "timeoutSeconds: 90")).await;
    let script = vec![status(503, Some(60)), status(503, Some(60)), text("Too late.")];
    let (run, states) = one(&home, script, RunState::Failed).await;
    assert_eq!(states, [AttemptState::Transient, AttemptState::Transient]);
    assert_eq!(run.reason.as_deref(), Some("run-timeout"));
    assert_eq!(home.time.backoffs(), [60_000]);
}

#[tokio::test]
async fn a_later_attempt_under_another_model_is_blocked() {
    let home = Home::new().await;
    let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    home.model.says([Says::Waits(permits.clone(), status(503, None))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.wait_for("the request", async || home.model.request_count() == 1).await;
    *home.model.binding.lock().unwrap() = Ok(binding("model-2"));
    permits.add_permits(1);
    let run = home.until(&trigger, RunState::Blocked).await;
    assert_eq!(home.ended(&run).await, (EventType::RunBlocked, "provider-changed".to_owned()));
    assert_eq!(home.model.request_count(), 1);
    at_work.stop().await;
    home.check_whole(&[trigger]).await;
}

#[tokio::test]
async fn a_failed_run_does_not_stop_its_conversation() {
    let home = Home::new().await;
    home.model.says([Says::Reply(status(401, None))]);
    let at_work = home.start().await;
    let first = home.message(1, "Hello").await;
    let second = home.message(2, "Still there?").await;
    assert_eq!(home.answer(&second).await, "Answer 1.");
    // The person's words stay, whatever became of the answer.
    assert!(home.model.request(1)["messages"].to_string().contains("Hello"));
    at_work.stop().await;
    home.check_whole(&[first, second]).await;
}
