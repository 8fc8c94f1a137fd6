//! What a provider can answer, and what becomes of the run: each answer with the attempts, requests and notices that it
//! may cost.

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::wait_for;
use thought_testkit::world::{Speaks, World};

use crate::{RUN_FAILED, THOUGHT};

/// What one scripted turn came to.
struct Outcome {
    run: Value,
    outcomes: Vec<String>,
    requests: usize,
}

/// Says something, lets the model answer as scripted, and waits for the end of that run.
fn turn(world: &World, replies: Vec<Reply>) -> Outcome {
    let earlier = world.home.runs().len();
    let requests_before = world.model.request_count();
    world.model.script(replies);
    world.say(&format!("turn {earlier}"));
    let run = wait_for("the end of the run", || {
        let run = world.home.runs().get(earlier).cloned()?;
        (run["state"] != "running" && run["state"] != "held").then_some(run)
    });
    assert_eq!(world.model.script_left(), 0, "every scripted reply was asked for: {run}");
    let shown = world.home.object(&["run-show", run["id"].as_str().unwrap()]);
    let attempts = shown["attempts"].as_array().unwrap();
    assert_eq!(run["attempts"], attempts.len());
    let outcomes = attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap().to_owned()).collect();
    Outcome { run, outcomes, requests: world.model.request_count() - requests_before }
}

impl Outcome {
    #[track_caller]
    fn is(&self, state: &str, outcomes: &[&str], requests: usize) {
        assert_eq!(self.run["state"], state, "{}", self.run);
        assert_eq!(self.outcomes, outcomes, "{}", self.run);
        assert_eq!(self.requests, requests, "{}", self.run);
        assert_eq!(self.run["proposals"], json!([]), "{}", self.run);
    }
}

fn text() -> Reply {
    Reply::Text("An answer.".to_owned())
}

/// Stops nothing; holds what must be true after any number of failed turns.
fn only_notices_and_answers(world: &World, failed: usize) {
    world.home.wait_for_deliveries("notice:run-failed", failed);
    let sent = world.bot.sent();
    assert_eq!(
        sent.iter().filter(|sent| sent.text == RUN_FAILED).count(),
        failed,
        "one fixed notice a failed run"
    );
    for event in
        ["agent.memory-change.proposed@1", "agent.correction.proposed@1", "agent.proposal.decision@1"]
    {
        assert!(world.home.events(event).is_empty(), "{event}");
    }
    for event in world.home.lines(&["event-list"]) {
        assert_ne!(event["type"], "stream.thought.focus.declaration.proposed@1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_pass_is_tried_again() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    turn(&world, vec![Reply::status(500), text()]).is("completed", &["transient", "answered"], 2);
    turn(&world, vec![Reply::rate_limited("1"), text()]).is("completed", &["transient", "answered"], 2);
    turn(&world, vec![Reply::rate_limited("Wed, 21 Oct 2015 07:28:00 GMT"), text()]).is(
        "completed",
        &["transient", "answered"],
        2,
    );
    turn(&world, vec![Reply::status(529), Reply::status(503), text()]).is(
        "completed",
        &["transient", "transient", "answered"],
        3,
    );
    turn(&world, vec![Reply::status(408), Reply::status(502), Reply::status(504)]).is(
        "failed",
        &["transient", "transient", "transient"],
        3,
    );
    only_notices_and_answers(&world, 1);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_for_once_more_at_most() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    turn(&world, vec![Reply::DropAfterRead, text()]).is("completed", &["unknown", "answered"], 2);
    turn(&world, vec![Reply::Truncated, text()]).is("completed", &["unknown", "answered"], 2);
    turn(&world, vec![Reply::DropAfterRead, Reply::DropAfterRead]).is("failed", &["unknown", "unknown"], 2);
    only_notices_and_answers(&world, 1);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_will_not_pass_is_asked_once() {
    let world = World::start(THOUGHT).await;
    let elsewhere = World::start(THOUGHT).await;
    let serve = world.serve();
    let page = Reply::RawBody {
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        body: b"<html><body>Please log in.</body></html>".to_vec(),
    };
    let permanent = [
        Reply::status(400),
        Reply::status(401),
        Reply::status(404),
        Reply::out_of_quota("rate_limit_error", "enforced_spend_limit_reached"),
        Reply::Redirect307(format!("{}/v1/messages", elsewhere.model.base_url())),
        page,
    ];
    let count = permanent.len();
    for reply in permanent {
        turn(&world, vec![reply]).is("failed", &["permanent"], 1);
    }
    assert_eq!(elsewhere.model.connection_count(), 0, "a redirect is never followed");
    only_notices_and_answers(&world, count);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_quota_of_openai_is_not_asked_again() {
    let world = World::speaking(THOUGHT, Speaks::OpenAi, None).await;
    let serve = world.serve();
    turn(&world, vec![Reply::out_of_quota("insufficient_quota", "insufficient_quota")]).is(
        "failed",
        &["permanent"],
        1,
    );
    turn(&world, vec![Reply::status(429), text()]).is("completed", &["transient", "answered"], 2);
    serve.stop();
}

async fn refused_answers(speaks: Speaks) {
    let world = World::speaking(THOUGHT, speaks, None).await;
    world.offer_nothing();
    let serve = world.serve();
    let memory =
        json!({"operation": "append", "proposed_text": "x", "reason": "y", "evidence_event_ids": []});
    let calls = |names: &[&str]| Reply::Calls {
        text: Some("A sentence.".to_owned()),
        calls: names.iter().map(|name| ((*name).to_owned(), memory.clone())).collect(),
    };
    let replies = [
        Reply::ContentFilter,
        Reply::Refusal { text: "I will not.".to_owned() },
        calls(&["request_memory_change"]),
        calls(&["request_memory_change", "proposal_decision", "apply_pending"]),
        Reply::Text(String::new()),
        Reply::Text(" \n\t ".to_owned()),
        Reply::Text("x".repeat(12_001)),
        Reply::json(&json!({"unexpected": true})),
    ];
    let count = replies.len();
    for reply in replies {
        let outcome = turn(&world, vec![reply]);
        assert_eq!((&outcome.run["state"], outcome.requests), (&json!("failed"), 1), "{}", outcome.run);
        assert!(outcome.run["reason"].is_string() && outcome.run.get("output").is_none(), "{}", outcome.run);
    }
    only_notices_and_answers(&world, count);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn report_7_a_call_of_anything_that_was_not_offered_fails_the_run() {
    refused_answers(Speaks::Anthropic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn report_7_the_same_on_the_openai_api() {
    refused_answers(Speaks::OpenAi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn report_7_a_proposal_beside_a_call_that_decides_it_is_no_proposal() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let memory =
        json!({"operation": "append", "proposed_text": "- x", "reason": "y", "evidence_event_ids": []});
    let names = ["request_memory_change", "proposal_decision", "apply_pending"];
    let calls = names.iter().map(|name| ((*name).to_owned(), memory.clone())).collect();
    turn(&world, vec![Reply::Calls { text: None, calls }]).is("failed", &["answered"], 1);
    only_notices_and_answers(&world, 1);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn report_24_malformed_arguments_are_never_repaired() {
    let world = World::speaking(THOUGHT, Speaks::OpenAi, None).await;
    let serve = world.serve();
    let malformed = [
        "{\"operation\": \"append\nmore\"}",
        "{\"reason\": \"a \"quoted\" word\"}",
        "{\"reason\": \"\\U0001F600\"}",
        "{\"reason\": \"a lone \\ here\"}",
        "{\"operation\": \"app",
        "",
    ];
    for arguments in malformed {
        let calls = vec![("request_memory_change".to_owned(), arguments.to_owned())];
        turn(&world, vec![Reply::RawCalls { text: None, calls }]).is("failed", &["answered"], 1);
    }
    only_notices_and_answers(&world, malformed.len());
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_was_cut_is_delivered_with_its_mark_and_thinking_is_dropped() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    turn(&world, vec![Reply::LengthStop { text: "It goes on and".to_owned() }]).is(
        "completed",
        &["answered"],
        1,
    );
    let thinking = "a thought that nobody shall keep";
    turn(&world, vec![Reply::Thinking { thinking: thinking.to_owned(), text: "Said.".to_owned() }]).is(
        "completed",
        &["answered"],
        1,
    );
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    let sent = world.bot.sent();
    assert!(
        sent[0].text.starts_with("It goes on and") && sent[0].text.ends_with("(cut short)"),
        "{}",
        sent[0].text
    );
    assert_eq!(sent[1].text, "Said.");
    let outputs = world.home.events("derived.message.observation@1");
    assert_eq!(
        (&outputs[0]["payload"]["summary"], &outputs[0]["payload"]["truncated"]),
        (&json!("It goes on and"), &json!(true))
    );
    assert_eq!(outputs[1]["payload"]["truncated"], false);
    let ends = world.home.events("run.completed@1");
    assert!(ends[1]["payload"]["thinkingPartsDropped"].as_u64().unwrap() >= 1, "counted");
    assert!(thought_testkit::canary::in_folder(&world.home.path, &[thinking]).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_there_fails_the_run_and_run_retry_gives_it_a_new_one() {
    let world = World::start(THOUGHT).await;
    let good = world.model.base_url();
    // A port that was free a moment ago and that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.home.set("provider.main", "base_url", Some(&format!("\"http://127.0.0.1:{port}\"")));
    let serve = world.serve();
    world.say("anybody?");
    let run = world.home.wait_for_runs("failed", 1).remove(0);
    assert_eq!((&run["attempts"], &run["reason"]), (&json!(3), &json!("provider-unreachable")));
    world.home.wait_for_deliveries("notice:run-failed", 1);
    serve.stop();

    world.home.set("provider.main", "base_url", Some(&format!("\"{good}\"")));
    let id = run["id"].as_str().unwrap();
    let retried = world.home.object(&["run-retry", id]);
    assert_ne!(retried["run"], id);
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    let runs = world.home.runs();
    assert_eq!((&runs[1]["id"], &runs[1]["state"]), (&retried["run"], &json!("completed")));
    assert_eq!(runs[1]["trigger"], runs[0]["trigger"]);
    assert_eq!(world.model.request_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_an_operator_abandons_discards_its_answer() {
    let world = World::start(THOUGHT).await;
    // The request would hang for two minutes; its conversation does not wait for it.
    world.model.script(vec![Reply::Hang]);
    let serve = world.serve();
    world.say("never mind");
    world.requests(1).await;
    let run = world.home.runs().remove(0);
    let id = run["id"].as_str().unwrap();
    let _abandoned = world.home.json(&["run-abandon", id]).exit(0);
    world.home.wait_for_deliveries("notice:run-failed", 1);
    world.turn("and this?", 1).await;
    serve.stop();
    let runs = world.home.runs();
    assert_eq!((&runs[0]["state"], &runs[1]["state"]), (&json!("abandoned"), &json!("completed")));
    assert_eq!(world.home.events("run.abandoned@1").len(), 1);
    assert_eq!(world.home.events("derived.message.observation@1").len(), 1);
}
