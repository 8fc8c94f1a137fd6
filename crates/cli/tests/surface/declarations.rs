//! Declarations: refused with line and hint, installed once, and changed only by a new version.

use std::fs;

use serde_json::json;
use thought_testkit::home::Home;
use thought_testkit::run::argument;
use thought_testkit::world::World;

use crate::THOUGHT;

const AGENT: &str = "agents/stream-telegram-conversation.yaml";

fn edit(home: &Home, file: &str, from: &str, to: &str) {
    let path = home.below(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn a_declaration_that_cannot_be_is_refused_with_its_line() {
    let home = Home::init(THOUGHT, "ollama");
    let file = home.below(AGENT);
    let whole = fs::read_to_string(&file).unwrap();
    let rows = [
        ("provider: main", "provder: main", "provider"),
        ("  maxAttempts: 3", "  maxAttempt: 3", "maxAttempts"),
        ("runner: pi", "runner: letta-agent-sdk", "no such runner"),
        ("externalActions: false", "externalActions: true", "externalActions"),
        ("tools: []", "tools:\n    - shell", "tools"),
        ("version: 1", "version: 0", "version"),
        ("version: 1", "version: 1\nversion: 2", "version"),
        ("version: 1", "version: !!str 1", "version"),
        ("concurrency: 4", "concurrency: &a 4", "concurrency"),
        ("id: stream-telegram-conversation", "id: Stream_X", "id"),
        ("    - memory.md", "    - ../outside.md", "outside"),
        ("prompt: prompts/stream-telegram-conversation.md", "prompt: prompts/absent.md", "absent.md"),
    ];
    for (from, to, word) in rows {
        fs::write(&file, whole.replacen(from, to, 1)).unwrap();
        for command in
            [vec!["declaration-check", argument(&file)], vec!["declaration-activate", argument(&file)]]
        {
            let refused = home.json(&command);
            let told = refused.told();
            assert!(matches!(refused.code, Some(3 | 5)), "{to}: {:?} {told}", refused.code);
            assert!(told.contains(word) || told.contains(".yaml:"), "{to}: {told}");
        }
    }
    // An unknown key names its line and the nearest known one.
    fs::write(&file, whole.replacen("provider: main", "provder: main", 1)).unwrap();
    let line = whole.lines().position(|line| line == "provider: main").unwrap() + 1;
    let told = home.json(&["declaration-check", argument(&file)]).exit(3).told();
    assert!(told.contains(&format!(".yaml:{line}")) && told.contains("provider"), "{told}");
    home.set("telegram", "ingress", Some("\"off\""));
    home.json(&["serve"]).exit(3);
    fs::write(&file, &whole).unwrap();
    assert_eq!(home.object(&["declaration-check", argument(&file)])["valid"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_declaration_wants_a_new_version() {
    let world = World::start(THOUGHT).await;
    let home = &world.home;
    // Edits before the first serve are free.
    edit(home, AGENT, "maxOutputTokens: 4096", "maxOutputTokens: 2048");
    let serve = world.serve();
    world.turn("first", 1).await;
    let file = home.below(AGENT);
    let path = argument(&file);

    edit(home, AGENT, "maxOutputTokens: 2048", "maxOutputTokens: 1024");
    let refused = home.json(&["declaration-activate", path]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    world.turn("second", 2).await;
    serve.stop();

    let refused = home.json(&["declaration-activate", path]).exit(3);
    assert!(refused.told().contains("version: 2"), "{}", refused.stderr);
    let status = home.run(&["status"]).exit(0);
    assert!(
        format!("{}{}", status.stdout, status.stderr).contains("declaration-activate"),
        "{}",
        status.stderr
    );

    edit(home, AGENT, "version: 1", "version: 2");
    let documents = fs::read(home.below("context/memory.md")).unwrap();
    let activated = home.object(&["declaration-activate", path]);
    assert_eq!(
        (&activated["status"], &activated["version"], &activated["replaced"]),
        (&json!("activated"), &json!(2), &json!(1))
    );
    assert_eq!(home.object(&["declaration-activate", path])["status"], "already-active");
    let rows = home.lines(&["declaration-list"]);
    let telegram: Vec<_> = rows.iter().filter(|row| row["id"] == "stream-telegram-conversation").collect();
    let states: Vec<_> = telegram.iter().map(|row| (row["version"].clone(), row["state"].clone())).collect();
    assert_eq!(states, [(json!(1), json!("superseded")), (json!(2), json!("active"))]);

    let serve = world.serve();
    world.turn("third", 3).await;
    serve.stop();
    let versions: Vec<_> = home.runs().iter().map(|run| run["version"].clone()).collect();
    assert_eq!(versions, [json!(1), json!(1), json!(2)]);
    let requests = world.model.requests();
    let limits: Vec<_> = requests.iter().map(|request| request.json["max_tokens"].clone()).collect();
    assert_eq!(limits, [json!(2048), json!(2048), json!(1024)], "the stored bytes count, not the file");
    let third = String::from_utf8(requests[2].body.clone()).unwrap();
    assert!(third.contains("first") && third.contains("second"), "history goes on across versions");
    assert_eq!(fs::read(home.below("context/memory.md")).unwrap(), documents, "memory is untouched");

    edit(home, AGENT, "version: 2", "version: 1");
    home.json(&["declaration-activate", path]).exit(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_was_changed_is_used_only_after_activation() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("one", 1).await;
    serve.stop();
    let prompt = world.home.below("prompts/stream-telegram-conversation.md");
    fs::write(&prompt, "You are terse. Nothing more is asked of you here.\n").unwrap();
    let serve = world.serve();
    world.turn("two", 2).await;
    serve.stop();
    let body = |at: usize| String::from_utf8(world.model.requests()[at].body.clone()).unwrap();
    assert!(!body(1).contains("You are terse"));
    edit(&world.home, AGENT, "version: 1", "version: 2");
    let file = world.home.below(AGENT);
    world.home.json(&["declaration-activate", argument(&file)]).exit(0);
    let serve = world.serve();
    world.turn("three", 3).await;
    serve.stop();
    assert!(body(2).contains("You are terse"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declaration_that_was_not_there_yet_hears_nothing_from_before() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("before", 1).await;
    serve.stop();
    let file = world.home.below("agents/second-voice.yaml");
    let text = fs::read_to_string(world.home.below(AGENT)).unwrap();
    let text = text.replace("id: stream-telegram-conversation", "id: second-voice");
    let text = text.replace("  - stream-telegram-conversation", "  - second-voice");
    fs::write(&file, text).unwrap();
    world.home.json(&["declaration-activate", argument(&file)]).exit(0);
    let serve = world.serve();
    world.say("after");
    world.home.wait_for_deliveries("reply", 3);
    serve.stop();
    let runs = world.home.lines(&["run-list", "--agent", "second-voice"]);
    assert_eq!(runs.len(), 1, "its replay begins now");
}
