//! The endpoint's consumer as a process of its own, beside `serve` and without it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use thought_testkit::home::Home;
use thought_testkit::run::{Running, argument};
use thought_testkit::world::World;

use crate::letter::{WAIT, ask, installed, letter, send};
use crate::{STREAM, THOUGHT};

/// A running `thought consume`, and what it said when it was ready.
fn consume(home: &Home, agent: &str) -> (Running, Value) {
    let arguments = ["--home", argument(&home.path), "--json", "consume", "--agent", agent];
    let mut child = home.binary.spawn(&arguments, Stdio::piped(), Stdio::null());
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&ready["ready"], &ready["agent"]), (&json!(true), &json!(agent)));
    (child, ready)
}

fn stop(mut child: Running) {
    child.signal(Signal::TERM);
    assert_eq!(child.wait_for_end("the end of consume").code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_alone_answers_without_serve() {
    let world = installed().await;
    let home = &world.home;
    send(home, letter("t-1", "m-0", "Before it was there"), &[]).exit(0);
    let (child, ready) = consume(home, STREAM);
    assert_eq!(ready["version"], 1);
    assert_eq!(ask(home, letter("t-1", "m-1", "Hello"))["response"], "Hello.");
    assert_eq!(home.runs().len(), 2, "what came before was answered too");
    // It has its role; another is not started beside it.
    let held = home.json(&["consume", "--agent", STREAM]).exit(4);
    assert_eq!(held.error()["code"], "role-held");
    stop(child);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_leaves_a_held_consumer_to_its_holder_and_runs_the_others() {
    let world = installed().await;
    let home = &world.home;
    let (child, _) = consume(home, STREAM);
    let serve = world.serve();
    assert_eq!(serve.ready["leftToTheirHolders"], json!([format!("consume-{STREAM}")]));
    world.turn("Hello from the chat", 1).await;
    assert_eq!(ask(home, letter("t-1", "m-1", "Hello"))["status"], "completed");
    // When the holder is gone, nobody here takes its place unasked.
    stop(child);
    let pending = send(home, letter("t-1", "m-2", "Anybody?"), &["--wait-seconds", "1"]).exit(7);
    assert_eq!(pending.object()["status"], "pending");
    // Its return takes up what waits, while serve goes on.
    let (child, _) = consume(home, STREAM);
    send(home, letter("t-1", "m-2", "Anybody?"), &["--wait-seconds", WAIT]).exit(0);
    world.turn("Hello again", 2).await;
    stop(child);
    serve.stop();
    let serve = world.serve();
    assert_eq!(serve.ready["leftToTheirHolders"], json!([]));
    let held = home.json(&["consume", "--agent", STREAM]).exit(4);
    assert_eq!(held.error()["code"], "role-held");
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_of_the_endpoint_is_activated_by_restarting_its_consumer_alone() {
    let world = installed().await;
    let home = &world.home;
    let (child, _) = consume(home, STREAM);
    let serve = world.serve();
    ask(home, letter("t-1", "m-1", "To version one"));
    let file = home.below(format!("agents/{STREAM}.yaml"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("version: 1", "version: 2")).unwrap();
    // Its process lets go, and goes on with the new version; the chat is not stopped for it.
    let activated = home.object(&["declaration-activate", argument(&file)]);
    assert_eq!((&activated["status"], &activated["replaced"]), (&json!("activated"), &json!(1)));
    ask(home, letter("t-1", "m-2", "Right behind it"));
    world.turn("Hello from the chat", 1).await;
    stop(child);
    let (child, ready) = consume(home, STREAM);
    assert_eq!(ready["version"], 2);
    ask(home, letter("t-1", "m-3", "To version two"));
    let progress = home.object(&["status"]);
    let of_it = progress["consumers"].as_array().unwrap().iter().find(|row| row["agent"] == STREAM).unwrap();
    assert_eq!((&of_it["version"], &of_it["progress"], &of_it["lag"]), (&json!(2), &json!(3), &json!(0)));
    let runs = home.lines(&["run-list", "--agent", STREAM]);
    let versions: Vec<&Value> = runs.iter().map(|run| &run["version"]).collect();
    assert_eq!(versions, [1, 2, 2], "what came in between belongs to the new version");
    // Its history holds what the version before it answered.
    let requests = world.model.requests();
    assert!(requests.last().unwrap().json["messages"].to_string().contains("To version one"));
    stop(child);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_consumed_is_said() {
    let world = World::start(THOUGHT).await;
    let home = &world.home;
    let absent = home.json(&["consume", "--agent", STREAM]).exit(5);
    assert_eq!(absent.error()["code"], "not-installed");
    let odd = home.json(&["consume", "--agent", "../../x"]).exit(3);
    assert_eq!(odd.error()["code"], "agent-id");
}
