//! The six rules by which a thread is reconstructed, each from outside.

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::home::Home;
use thought_testkit::run::argument;
use thought_testkit::world::World;

use crate::letter::{WAIT, ask, letter, pairs, said, send};
use crate::{STREAM, THOUGHT};

/// A world whose model says `Answer 1.`, `Answer 2.` and so on, unless it is told otherwise.
async fn counting() -> World {
    let world = World::start(THOUGHT).await;
    let count = std::sync::atomic::AtomicUsize::new(0);
    world.model.set_default_reply(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        Reply::Text(format!("Answer {number}."))
    });
    world
}

/// The last request's messages.
fn last(world: &World) -> Vec<(String, String)> {
    said(world.model.requests().last().unwrap())
}

/// The manifest of the run that answered.
fn manifest(home: &Home, answer: &Value) -> Value {
    home.object(&["context-show", answer["run"].as_str().unwrap()])["manifest"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_1_source_messages_of_exactly_this_route_and_thread() {
    let world = counting().await;
    let serve = world.serve();
    ask(&world.home, letter("t-1", "m-1", "One of the first thread"));
    ask(&world.home, letter("t-2", "m-1", "One of the second thread"));
    ask(&world.home, letter("T-1", "m-1", "One of a thread in capitals"));
    ask(&world.home, letter("t-1", "m-2", "Two of the first thread"));
    let expected = [
        ("user", "One of the first thread"),
        ("assistant", "Answer 1."),
        ("user", "Two of the first thread"),
    ];
    assert_eq!(pairs(&last(&world)), expected);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_2_an_assistant_turn_only_by_the_one_output_of_a_completed_run() {
    let world = counting().await;
    let serve = world.serve();
    let home = &world.home;
    ask(home, letter("t-1", "m-1", "One"));
    world.model.script(vec![Reply::Refusal { text: "canary-of-a-failed-run".to_owned() }]);
    send(home, letter("t-1", "m-2", "Two"), &["--wait-seconds", WAIT]).exit(9);
    let answer = ask(home, letter("t-1", "m-3", "Three"));
    let expected = [("user", "One"), ("assistant", "Answer 1."), ("user", "Two"), ("user", "Three")];
    let seen = last(&world);
    // Where an API wants roles in turn, words of one role may stand in one message.
    let flat: String = seen.iter().map(|(role, text)| format!("{role}:{text}\n")).collect();
    if seen.len() == expected.len() {
        assert_eq!(pairs(&seen), expected);
    } else {
        assert!(flat.contains("assistant:Answer 1.\nuser:Two") && flat.ends_with("Three\n"), "{flat}");
    }
    assert!(!flat.contains("canary"));
    let turns = manifest(home, &answer).to_string();
    let outputs = home.events("derived.agent.message@1");
    assert!(turns.contains(outputs[0]["id"].as_str().unwrap()), "the manifest names the output: {turns}");
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_3_chronological_roles_and_the_current_message_once_at_the_end() {
    let world = counting().await;
    let serve = world.serve();
    for number in 1..=3 {
        ask(&world.home, letter("t-1", &format!("m-{number}"), &format!("Question {number}")));
    }
    serve.stop();
    let expected = [
        ("user", "Question 1"),
        ("assistant", "Answer 1."),
        ("user", "Question 2"),
        ("assistant", "Answer 2."),
        ("user", "Question 3"),
    ];
    assert_eq!(pairs(&last(&world)), expected);
    let body = String::from_utf8(world.model.requests()[2].body.clone()).unwrap();
    assert_eq!(body.matches("Question 3").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_4_later_messages_are_not_history_of_an_earlier_run() {
    let world = counting().await;
    let serve = world.serve();
    let home = &world.home;
    world.model.script(vec![Reply::Refusal { text: "No.".to_owned() }]);
    let first = send(home, letter("t-1", "m-1", "One"), &["--wait-seconds", WAIT]).exit(9).object();
    ask(home, letter("t-1", "m-2", "Two, later"));
    // The first one again, after the second was answered.
    home.json(&["run-retry", first["run"].as_str().unwrap()]).exit(0);
    let answer = ask(home, letter("t-1", "m-1", "One"));
    assert_eq!(answer["status"], "completed");
    assert_eq!(pairs(&last(&world)), [("user", "One")]);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_5_limits_after_reconstruction_a_manifest_and_no_id_before_the_model() {
    let world = counting().await;
    let home = &world.home;
    let file = home.below(format!("agents/{STREAM}.yaml"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("maxEvents: 64", "maxEvents: 4")).unwrap();
    home.json(&["declaration-check", argument(&file)]).exit(0);
    let serve = world.serve();
    // Messages of another thread lie between those of this one, and take no place of theirs.
    for number in 1..=6 {
        ask(home, letter("thread-canary", &format!("message-canary-{number}"), &format!("Q{number}")));
        ask(home, letter("other", &format!("m-{number}"), "Elsewhere"));
    }
    let answer = ask(home, letter("thread-canary", "message-canary-7", "Q7"));
    serve.stop();
    let seen = last(&world);
    let users: Vec<&str> =
        seen.iter().filter(|(role, _)| role == "user").map(|(_, text)| text.as_str()).collect();
    assert_eq!(users, ["Q6", "Q7"], "four turns of this thread at the most, whole exchanges: {seen:?}");
    let manifest = manifest(home, &answer);
    let written = manifest.to_string();
    let events = home.events("source.agent.message@1");
    let omitted = events.iter().find(|event| event["payload"]["text"] == "Q5").unwrap();
    assert!(written.contains(omitted["id"].as_str().unwrap()), "what was left out is named: {written}");
    assert!(
        written.contains("thread-canary") && written.contains(STREAM) && written.contains("\"co\""),
        "{written}"
    );
    let body = String::from_utf8(world.model.requests().last().unwrap().body.clone()).unwrap();
    for id in ["evt_", "run_", "ver_", "doc_", "snap_", "thread-canary", "message-canary"] {
        assert!(!body.contains(id), "{id} reaches the model");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_5_characters_are_counted_over_what_was_reconstructed() {
    let world = counting().await;
    let home = &world.home;
    let file = home.below(format!("agents/{STREAM}.yaml"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("maxCharacters: 120000", "maxCharacters: 2000")).unwrap();
    for name in ["identity", "memory"] {
        std::fs::write(home.below(format!("context/{name}.md")), format!("---\nid: {name}\n---\nShort.\n"))
            .unwrap();
    }
    let serve = world.serve();
    let question = |number: usize| format!("Q{number} {}", "x".repeat(397));
    for number in 1..=5 {
        ask(home, letter("t-1", &format!("m-{number}"), &question(number)));
        ask(home, letter("t-2", &format!("m-{number}"), &"y".repeat(1_500)));
    }
    ask(home, letter("t-1", "m-6", &question(6)));
    let seen = last(&world);
    let users: Vec<&str> =
        seen.iter().filter(|(role, _)| role == "user").map(|(_, text)| &text[..2]).collect();
    assert_eq!(
        users,
        ["Q3", "Q4", "Q5", "Q6"],
        "three exchanges of some 410 characters fit beside the message"
    );
    // A message that does not fit by itself is never cut.
    let requests = world.model.request_count();
    let more = ["--wait-seconds", WAIT];
    let blocked = send(home, letter("t-1", "m-7", &"z".repeat(2_001)), &more).exit(9).object();
    assert_eq!(blocked["status"], "blocked");
    let run = home.object(&["run-show", blocked["run"].as_str().unwrap()]);
    assert_eq!(run["reason"], "context-too-large", "{run}");
    assert_eq!(world.model.request_count(), requests);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_6_a_later_attempt_sends_the_frozen_context_again() {
    let world = counting().await;
    let serve = world.serve();
    let home = &world.home;
    ask(home, letter("t-1", "m-1", "One"));
    let memory = home.below("context/memory.md");
    let before = std::fs::read_to_string(&memory).unwrap();
    let changed = format!("{before}\nchanged between two attempts\n");
    let target = memory.clone();
    // The document changes while the first attempt is under way.
    world.model.script(vec![Reply::status(503)]);
    let waiting = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(home, letter("t-1", "m-2", "Two")));
        thought_testkit::wait_until("the first attempt", || world.model.request_count() >= 2);
        std::fs::write(&target, &changed).unwrap();
        asked.join().unwrap()
    });
    assert_eq!(waiting["status"], "completed");
    let requests = world.model.requests();
    assert_eq!(requests.len(), 3, "one attempt more");
    assert_eq!(requests[1].body, requests[2].body, "the same bytes");
    let run = home.object(&["run-show", waiting["run"].as_str().unwrap()]);
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(2), "{run}");
    ask(home, letter("t-1", "m-3", "Three"));
    let body = String::from_utf8(world.model.requests().last().unwrap().body.clone()).unwrap();
    assert!(body.contains("changed between two attempts"));
    assert_eq!(json!(home.runs().len()), json!(3));
    serve.stop();
}
