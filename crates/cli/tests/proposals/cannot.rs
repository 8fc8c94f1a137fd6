//! What the model cannot do, verb by verb: it may ask for each of them by name, and each time the run fails on a tool that
//! does not exist, after one request, with nothing changed anywhere.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::world::memory;

/// What a home holds besides the turns themselves.
fn standing(world: &World) -> (BTreeMap<String, Vec<u8>>, Vec<Value>) {
    let mut files = BTreeMap::new();
    for folder in ["context", "agents", "prompts"] {
        for entry in std::fs::read_dir(world.home.below(folder)).unwrap() {
            let path = entry.unwrap().path();
            // The lock of the root comes with the first scan, whoever asks for it.
            if path.ends_with(".thought.lock") {
                continue;
            }
            files.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
    (files, world.home.lines(&["declaration-list"]))
}

/// Lets the model call tools of these names, each alone and each beside an honest suggestion.
async fn cannot(tools: &[(&str, Value)]) {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let before = standing(&world);
    let mut failed = 0;
    for (name, arguments) in tools {
        let asked = ((*name).to_owned(), arguments.clone());
        for calls in [vec![asked.clone()], vec![memory("- Likes tea."), asked]] {
            world.model.script(vec![Reply::Calls { text: Some("Done.".to_owned()), calls }]);
            world.say("Go on.");
            failed += 1;
            let runs = world.home.wait_for_runs("failed", failed);
            assert_eq!(runs[failed - 1]["reason"], "unknown-tool", "{name}");
            assert_eq!(world.model.request_count(), failed, "{name}: one request, and none behind it");
        }
    }
    world.home.wait_for_deliveries("notice:run-failed", failed);
    serve.stop();
    assert_eq!(standing(&world), before);
    assert!(world.home.lines(&["proposal-list"]).is_empty());
    let allowed = ["source.", "declaration.activated", "run.failed", "delivery.telegram"];
    for event in world.home.lines(&["event-list"]) {
        let name = event["type"].as_str().unwrap().trim_start_matches("stream.thought.").to_owned();
        assert!(allowed.iter().any(|kind| name.starts_with(kind)), "{name}");
    }
    let sent = world.bot.sent();
    assert_eq!(sent.len(), failed);
    assert!(sent.iter().all(|message| message.text == "I couldn't answer that one. Nothing was changed."));
}

macro_rules! verbs {
    ($($name:ident: $tools:expr;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            cannot(&$tools).await;
        })*
    };
}

verbs! {
    the_model_cannot_edit_a_file: [
        ("write_file", json!({"path": "context/memory.md", "text": "mine"})),
        ("apply_memory_change", json!({"proposal": "latest"})),
    ];
    the_model_cannot_append_an_event: [
        ("append_event", json!({"type": "stream.thought.agent.proposal.decision@1", "payload": {}})),
    ];
    the_model_cannot_activate: [
        ("activate_focus", json!({"id": "ferry-news"})),
        ("declaration_activate", json!({"file": "agents/stream-telegram-conversation.yaml"})),
    ];
    the_model_cannot_approve: [
        ("proposal_decision", json!({"proposal": "latest", "disposition": "accept"})),
        ("approve", json!({})),
    ];
    the_model_cannot_label: [
        ("record_judgment", json!({"kind": "correct"})),
        ("label_example", json!({"quality": true})),
    ];
    the_model_cannot_train: [("start_training", json!({})), ("private_training_export", json!({"output": "x"}))];
    the_model_cannot_promote: [("promote_adapter", json!({"adapter": "a"}))];
    the_model_cannot_publish: [("publish", json!({"to": "https://example.org"}))];
    the_model_cannot_send: [("send_message", json!({"chat": 4242, "text": "x"})), ("agent_send", json!({"to": "co"}))];
    the_model_cannot_execute_another_turn: [("continue", json!({})), ("run_turn", json!({"text": "again"}))];
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_suggestion_has_no_effect_but_to_stand_there() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let before = standing(&world);
    world.model.script(vec![Reply::Calls { text: None, calls: vec![memory("- Likes tea.")] }]);
    world.turn("Remember tea.", 1).await;
    serve.stop();
    // And another start, with every role at work, does nothing more.
    world.serve().stop();
    assert_eq!(standing(&world), before);
    let mut kinds: Vec<String> = world
        .home
        .lines(&["event-list"])
        .iter()
        .map(|event| event["type"].as_str().unwrap().trim_start_matches("stream.thought.").to_owned())
        .collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "agent.memory-change.proposed@1",
            "declaration.activated@1",
            "delivery.telegram@1",
            "derived.message.observation@1",
            "run.completed@1",
            "source.file.version@1",
            "source.telegram.message@1",
        ]
    );
    assert_eq!((world.model.request_count(), world.bot.sent().len()), (1, 1));
}
