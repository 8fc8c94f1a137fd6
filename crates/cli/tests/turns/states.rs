//! Runs that wait, are superseded or may not go on, and the switches that govern what is said of them.

use std::fs;

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::run::argument;
use thought_testkit::world::{Speaks, World};

use crate::{RUN_FAILED, THOUGHT};

const AGENT: &str = "agents/stream-telegram-conversation.yaml";
const KEY: &str = "sk-testkit-key-that-opens-nothing-0123456789";

fn edit(world: &World, from: &str, to: &str) {
    let path = world.home.below(AGENT);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_days_budget_holds_what_is_above_it() {
    let world = World::start(THOUGHT).await;
    edit(&world, "maxRequestsPerDay: 500", "maxRequestsPerDay: 2");
    // An attempt that gave nothing was a request all the same.
    world.model.script(vec![Reply::status(500), Reply::Text("Second try.".to_owned())]);
    let serve = world.serve();
    world.turn("within", 1).await;
    world.say("above");
    let held = world.home.wait_for_runs("held", 1);
    assert_eq!((&held[1]["state"], &held[1]["reason"]), (&json!("held"), &json!("daily-budget")));
    world.home.wait_for_deliveries("notice:run-held", 1);
    serve.stop();
    // It is still held after a restart, and an operator may give it up.
    let serve = world.serve();
    let status = world.home.object(&["status"]);
    assert_eq!(status["usage"][0]["requests"], 2, "{status}");
    world.home.json(&["run-abandon", held[1]["id"].as_str().unwrap()]).exit(0);
    world.home.wait_for_runs("abandoned", 1);
    serve.stop();
    assert_eq!(world.model.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_run_is_superseded_by_a_new_version_which_answers() {
    let mut world = World::speaking(THOUGHT, Speaks::Anthropic, Some(KEY)).await;
    world.home.unset("THOUGHT_TEST_KEY");
    let serve = world.serve();
    world.say("answer me some day");
    world.home.wait_for_runs("held", 1);
    serve.stop();
    edit(&world, "version: 1", "version: 2");
    let file = world.home.below(AGENT);
    world.home.json(&["declaration-activate", argument(&file)]).exit(0);
    world.home.env("THOUGHT_TEST_KEY", KEY);
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    let runs = world.home.runs();
    let states: Vec<(&Value, &Value)> = runs.iter().map(|run| (&run["version"], &run["state"])).collect();
    assert_eq!(states, [(&json!(1), &json!("blocked")), (&json!(2), &json!("completed"))]);
    assert_eq!(runs[0]["reason"], "superseded");
    assert_eq!(runs[0]["trigger"], runs[1]["trigger"]);
    assert!(
        world.bot.sent().iter().all(|sent| sent.text != RUN_FAILED),
        "nobody is told of a superseded run"
    );
    assert_eq!(world.model.request_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_attempt_under_another_model_is_blocked() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![Reply::Hang]);
    let serve = world.serve();
    world.say("which model are you?");
    world.requests(1).await;
    serve.kill();
    world.home.set("provider.main", "model", Some("\"another-model\""));
    let serve = world.serve();
    let run = world.home.wait_for_runs("blocked", 1).remove(0);
    assert_eq!(run["reason"], "provider-changed");
    world.home.wait_for_deliveries("notice:run-failed", 1);
    world.turn("and now?", 1).await;
    serve.stop();
    let requests = world.model.requests();
    assert_eq!((requests.len(), &requests[1].json["model"]), (2, &json!("another-model")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_of_failures_silences_them_and_nothing_else() {
    let world = World::start(THOUGHT).await;
    world.home.set("telegram", "failure_notice", Some("false"));
    world.model.script(vec![Reply::status(400)]);
    let serve = world.serve();
    world.say("fail quietly");
    world.home.wait_for_runs("failed", 1);
    world.turn("answer loudly", 1).await;
    serve.stop();
    assert_eq!(world.bot.sent().len(), 1);
    assert!(world.home.deliveries("notice:run-failed").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lesser_tier_answers_too_and_stands_in_the_evidence() {
    let world = World::start(THOUGHT).await;
    world.home.set("sandbox", "mode", Some("\"landlock+seccomp\""));
    let serve = world.serve();
    assert_eq!(serve.ready["sandbox"], "landlock+seccomp");
    world.turn("hello", 1).await;
    serve.stop();
    let id = world.home.runs()[0]["id"].clone();
    let shown = world.home.object(&["run-show", id.as_str().unwrap()]);
    assert_eq!(shown["attempts"][0]["sandbox"], "landlock+seccomp");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_without_a_channel_serves_quietly() {
    let world = World::start(THOUGHT).await;
    let text = world.home.configuration();
    let (before, behind) = text.split_once("[telegram]").unwrap();
    let behind = &behind[behind.find("[inspector]").unwrap()..];
    world.home.set_configuration(&format!("{before}{behind}"));
    let serve = world.serve();
    assert_eq!(serve.ready["ingress"], "off");
    assert_eq!(world.home.object(&["status"])["channel"], json!({"ingress": "off"}));
    serve.stop();
    assert!(world.bot.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_conversation_is_answered_in_order_and_lists_are_paged() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    for number in 1..=13 {
        world.say(&format!("number {number}"));
    }
    world.home.wait_for_deliveries("reply", 13);
    serve.stop();
    let lasts: Vec<String> = world
        .model
        .requests()
        .iter()
        .map(|request| crate::request::said(request).turns.last().unwrap().1.clone())
        .collect();
    let expected: Vec<String> = (1..=13).map(|number| format!("number {number}")).collect();
    assert_eq!(lasts, expected, "strictly in order, each with what came before");
    assert!(world.model.refusals().is_empty(), "{:?}", world.model.refusals());

    let all = world.home.lines(&["event-list"]);
    assert_eq!(all.len(), 4 + 4 * 13);
    let page = world.home.run(&["event-list"]).exit(0);
    assert_eq!(page.stdout.lines().count(), 51, "a head and fifty rows");
    assert!(page.stderr.contains("50 of 56"), "{}", page.stderr);
    let last = all[49]["position"].to_string();
    assert!(page.stderr.contains(&format!("--after {last}")), "{}", page.stderr);
    let rest = world.home.run(&["event-list", "--after", &last]).exit(0);
    assert_eq!(rest.stdout.lines().count(), 7);

    let runs = world.home.runs();
    let third = runs[2]["id"].as_str().unwrap();
    assert_eq!(world.home.lines(&["run-list", "--after", third]), runs[3..]);
    assert_eq!(world.home.lines(&["run-list", "--after", third, "--limit", "2"]), runs[3..5]);
    world.home.json(&["run-list", "--after", "run_00000000"]).exit(5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_reading_ends_a_list_quietly() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("hello", 1).await;
    serve.stop();
    use std::process::Stdio;
    let arguments = ["--home", argument(&world.home.path), "--json", "event-list"];
    let mut child = world.home.binary.spawn(&arguments, Stdio::piped(), Stdio::piped());
    drop(child.0.stdout.take());
    let status = child.wait_for_end("the end of the list");
    assert_eq!(status.code(), Some(0));
    let mut told = String::new();
    std::io::Read::read_to_string(&mut child.0.stderr.take().unwrap(), &mut told).unwrap();
    assert_eq!(told, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_left_out_or_blocked_before_a_request() {
    let world = World::start(THOUGHT).await;
    edit(&world, "maxCharacters: 120000", "maxCharacters: 3000");
    edit(&world, "maxEvents: 64", "maxEvents: 4");
    let serve = world.serve();
    for number in 1..=4 {
        world.turn(&format!("turn {number}"), number).await;
    }
    world.say(&"too long ".repeat(400));
    let run = world.home.wait_for_runs("blocked", 1).remove(4);
    assert_eq!((&run["reason"], &run["attempts"]), (&json!("context-too-large"), &json!(0)));
    world.home.wait_for_deliveries("notice:run-failed", 1);
    world.turn("short again", 5).await;
    serve.stop();
    let requests = world.model.requests();
    assert_eq!(requests.len(), 5, "a blocked run costs nothing");
    let fourth = String::from_utf8(requests[3].body.clone()).unwrap();
    assert!(fourth.contains("turn 4") && !fourth.contains("turn 1"), "four turns at most");
    let id = world.home.runs()[3]["id"].clone();
    let shown = world.home.object(&["context-show", id.as_str().unwrap()]);
    assert!(shown["manifest"].to_string().contains("omitted"), "what was left out is named: {shown}");
}
