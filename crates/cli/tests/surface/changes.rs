//! A declaration that is changed while everything is at work: nothing is lost, doubled, or left half changed.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::home::Home;
use thought_testkit::run::{Binary, Done, argument};
use thought_testkit::wait_until;
use thought_testkit::world::World;

use crate::THOUGHT;

const AGENT: &str = "agents/stream-telegram-conversation.yaml";
const SOURCE: &str = "telegram:stream";

fn edit(home: &Home, from: &str, to: &str) {
    let file = home.below(AGENT);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(file, text.replacen(from, to, 1)).unwrap();
}

/// Raises the version from this one, with a sign of it in every request.
fn raise(home: &Home, from: u32) {
    edit(home, &format!("version: {from}"), &format!("version: {}", from + 1));
    edit(
        home,
        &format!("maxOutputTokens: {}", limit(from)),
        &format!("maxOutputTokens: {}", limit(from + 1)),
    );
}

fn limit(version: u32) -> u32 {
    4_097 - version
}

fn activate(home: &Home) -> Done {
    home.json(&["declaration-activate", argument(&home.below(AGENT))])
}

fn versions(home: &Home) -> Vec<u64> {
    let mut runs: Vec<Value> = home.runs();
    runs.retain(|run| run["state"] == "completed");
    runs.iter().map(|run| run["version"].as_u64().unwrap()).collect()
}

/// Each message has one completed run and one reply, and nothing else was sent.
#[track_caller]
fn each_once(world: &World, count: usize) {
    let messages = world.home.events("source.telegram.message@1");
    assert_eq!(messages.len(), count);
    let mut triggers: Vec<String> = Vec::new();
    for run in world.home.runs().iter().filter(|run| run["state"] == "completed") {
        triggers.push(run["trigger"].as_str().unwrap().to_owned());
    }
    let mut wanted: Vec<String> =
        messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect();
    triggers.sort();
    wanted.sort();
    assert_eq!(triggers, wanted, "one completed run a message");
    assert_eq!(world.home.deliveries("reply").len(), count);
    assert_eq!(world.home.object(&["verify"])["whole"], true);
}

#[track_caller]
fn at_the_head(home: &Home, version: u32) {
    let status = home.object(&["status"]);
    let rows = status["consumers"].as_array().unwrap();
    let row = rows.iter().find(|row| row["source"] == SOURCE).unwrap();
    assert_eq!((&row["version"], &row["lag"]), (&json!(version), &json!(0)), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_under_way_answers_each_message_once_under_the_version_of_its_side() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("before", 1).await;
    let memory = fs::read(world.home.below("context/memory.md")).unwrap();
    // One answer is slow: the version before is not cut off.
    world.model.script(vec![Reply::SlowText(Duration::from_millis(1_500), "slow".to_owned())]);
    world.say("slow one");
    world.requests(2).await;
    raise(&world.home, 1);
    let (binary, home) = (world.home.binary.clone(), world.home.path.clone());
    let change = std::thread::spawn(move || {
        let file = home.join(AGENT);
        binary.run(&["--home", argument(&home), "declaration-activate", argument(&file), "--json"])
    });
    // What comes in meanwhile is kept, and belongs to the next version.
    wait_until("the freeze", || {
        let raw = rusqlite::Connection::open(world.home.below("thought.db")).unwrap();
        let stage = raw.query_row("SELECT stage FROM changeovers", [], |row| row.get::<_, String>(0));
        stage.is_ok_and(|stage| stage == "drain")
    });
    world.say("in between");
    world.say("and another");
    let done = change.join().unwrap().exit(0).object();
    assert_eq!((&done["status"], &done["replaced"]), (&json!("activated"), &json!(1)));
    world.home.wait_for_deliveries("reply", 4);
    world.turn("after", 5).await;
    assert_eq!(versions(&world.home), [1, 1, 2, 2, 2]);
    let limits: Vec<Value> =
        world.model.requests().iter().map(|request| request.json["max_tokens"].clone()).collect();
    let [one, two] = [json!(limit(1)), json!(limit(2))];
    assert_eq!(limits, [one.clone(), one, two.clone(), two.clone(), two]);
    serve.stop();
    each_once(&world, 5);
    at_the_head(&world.home, 2);
    assert_eq!(fs::read(world.home.below("context/memory.md")).unwrap(), memory);
    assert!(world.home.lines(&["proposal-list"]).is_empty());
    let activations = world.home.events("declaration.activated@1");
    let of_it = |event: &&Value| event["payload"]["declaration"] == "stream-telegram-conversation";
    let second = activations.iter().rfind(of_it).unwrap();
    assert_eq!(second["payload"]["sources"], json!([{"source": SOURCE, "head": 2}]), "at the frozen head");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_changes_may_die_at_any_step_and_the_version_before_goes_on() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("before", 1).await;
    raise(&world.home, 1);
    let mut count = 1;
    for point in ["change.asked", "change.frozen", "change.drained", "change.ready"] {
        let mut dying: Binary = world.home.binary.clone();
        dying.env.insert("THOUGHT_TEST_CRASH_POINT".to_owned(), point.to_owned());
        let file = world.home.below(AGENT);
        let done = dying.run(&[
            "--home",
            argument(&world.home.path),
            "declaration-activate",
            argument(&file),
            "--json",
        ]);
        assert_eq!(done.code, None, "killed at {point}; {}", done.stderr);
        count += 1;
        world.turn(&format!("still there after {point}"), count).await;
        assert_eq!(versions(&world.home), vec![1; count], "{point}");
    }
    // After the commit it is done, whoever saw it.
    let mut dying: Binary = world.home.binary.clone();
    dying.env.insert("THOUGHT_TEST_CRASH_POINT".to_owned(), "change.installed".to_owned());
    let file = world.home.below(AGENT);
    let done =
        dying.run(&["--home", argument(&world.home.path), "declaration-activate", argument(&file), "--json"]);
    assert_eq!(done.code, None);
    world.turn("by the next", count + 1).await;
    assert_eq!(versions(&world.home).last(), Some(&2));
    assert_eq!(activate(&world.home).exit(0).object()["status"], "already-active");
    serve.stop();
    each_once(&world, count + 1);
    at_the_head(&world.home, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_may_die_while_it_drains_and_nothing_is_lost() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("before", 1).await;
    world.model.script(vec![Reply::SlowText(Duration::from_secs(20), "never heard".to_owned())]);
    world.say("cut off");
    world.requests(2).await;
    raise(&world.home, 1);
    let (binary, home) = (world.home.binary.clone(), world.home.path.clone());
    let change = std::thread::spawn(move || {
        let file = home.join(AGENT);
        binary.run(&["--home", argument(&home), "declaration-activate", argument(&file), "--json"])
    });
    wait_until("the drain", || {
        let raw = rusqlite::Connection::open(world.home.below("thought.db")).unwrap();
        let stage = raw.query_row("SELECT stage FROM changeovers", [], |row| row.get::<_, String>(0));
        stage.is_ok_and(|stage| stage == "drain")
    });
    serve.kill();
    change.join().unwrap().exit(0);
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 2);
    world.turn("after", 3).await;
    serve.stop();
    each_once(&world, 3);
    at_the_head(&world.home, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_run_is_not_waited_for_and_is_answered_by_the_next_version() {
    let world = World::start(THOUGHT).await;
    edit(&world.home, "maxRequestsPerDay: 500", "maxRequestsPerDay: 1");
    let serve = world.serve();
    world.turn("before", 1).await;
    world.say("held");
    world.home.wait_for_runs("held", 1);
    raise(&world.home, 1);
    edit(&world.home, "maxRequestsPerDay: 1", "maxRequestsPerDay: 500");
    activate(&world.home).exit(0);
    world.home.wait_for_deliveries("reply", 2);
    let runs = world.home.runs();
    let told: Vec<(&Value, &Value, &Value)> =
        runs.iter().map(|run| (&run["version"], &run["state"], &run["reason"])).collect();
    assert_eq!(
        told,
        [
            (&json!(1), &json!("completed"), &Value::Null),
            (&json!(1), &json!("blocked"), &json!("superseded")),
            (&json!(2), &json!("completed"), &Value::Null),
        ]
    );
    serve.stop();
    each_once(&world, 2);
    at_the_head(&world.home, 2);
    assert!(world.home.deliveries("notice:run-failed").is_empty(), "a superseded run is no failure");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_ready_does_not_take_over() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("before", 1).await;
    raise(&world.home, 1);
    let (context, away) = (world.home.below("context"), world.home.below("away"));
    fs::rename(&context, &away).unwrap();
    let refused = activate(&world.home).exit(8);
    assert_eq!(refused.error()["code"], "not-ready");
    assert!(refused.told().contains("version before"), "{}", refused.stderr);
    fs::rename(&away, &context).unwrap();
    world.turn("still the first", 2).await;
    assert_eq!(versions(&world.home), [1, 1]);
    activate(&world.home).exit(0);
    world.turn("the second", 3).await;
    serve.stop();
    each_once(&world, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_at_work_is_consumed_by_a_serve_that_is_at_work_already() {
    let world = World::start(THOUGHT).await;
    let home = &world.home;
    let aside = home.below("aside.yaml");
    fs::rename(home.below(AGENT), &aside).unwrap();
    let serve = world.serve();
    world.say("before anybody listens");
    home.wait_for_events("source.telegram.message@1", 1);
    fs::rename(&aside, home.below(AGENT)).unwrap();
    let done = activate(home).exit(0).object();
    assert_eq!((&done["status"], &done["replaced"]), (&json!("activated"), &Value::Null));
    world.turn("the first one heard", 1).await;
    // It lets go for the next version like any other.
    raise(home, 1);
    assert_eq!(activate(home).exit(0).object()["replaced"], 1);
    world.turn("under the next version", 2).await;
    assert_eq!(versions(home), [1, 2]);
    serve.stop();
    at_the_head(home, 2);
    assert_eq!(home.object(&["verify"])["whole"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_followed_may_change_and_nothing_is_answered_twice() {
    let world = World::start(THOUGHT).await;
    let home = &world.home;
    let serve = world.serve();
    world.turn("one", 1).await;
    // Everything of a source that it follows already is settled: there is nothing to replay.
    raise(home, 1);
    edit(home, "replay: now", "replay: all");
    activate(home).exit(0);
    world.turn("two", 2).await;
    each_once(&world, 2);
    // A source that nobody speaks in: what is said elsewhere is nobody's turn.
    raise(home, 2);
    edit(home, &format!("source: {SOURCE}"), "source: telegram:other");
    edit(home, "replay: all", "replay: now");
    activate(home).exit(0);
    world.say("three");
    home.wait_for_events("source.telegram.message@1", 3);
    // And back: what was said meanwhile is past, what comes now is answered.
    raise(home, 3);
    edit(home, "source: telegram:other", &format!("source: {SOURCE}"));
    activate(home).exit(0);
    world.turn("four", 3).await;
    at_the_head(home, 4);
    serve.stop();
    assert_eq!(versions(home), [1, 2, 4]);
    assert_eq!((home.runs().len(), home.deliveries("reply").len()), (3, 3));
    assert_eq!(home.object(&["verify"])["whole"], true);
}
