//! The second turn carries the first, in the native roles of each API.

use serde_json::Value;
use thought_fakes::Reply;
use thought_testkit::world::{Speaks, World};

use crate::THOUGHT;
use crate::request::{pairs, said};

async fn three_turns(speaks: Speaks) {
    let world = World::speaking(THOUGHT, speaks, None).await;
    world.offer_nothing();
    let answers = ["First answer.", "Second answer.", "Third answer."];
    world.model.script(answers.map(|text| Reply::Text(text.to_owned())).to_vec());
    let serve = world.serve();
    for (index, words) in ["first words", "second words", "third words"].into_iter().enumerate() {
        let reply = world.turn(words, index + 1).await;
        assert_eq!(reply.text, answers[index]);
        assert_eq!(world.model.request_count(), index + 1, "exactly one request a turn");
    }
    serve.stop();
    assert!(world.model.refusals().is_empty(), "{:?}", world.model.refusals());
    let requests = world.model.requests();
    let last = said(&requests[2]);
    assert_eq!(
        pairs(&last),
        [
            ("user", "first words"),
            ("assistant", "First answer."),
            ("user", "second words"),
            ("assistant", "Second answer."),
            ("user", "third words"),
        ]
    );
    for request in &requests {
        let body = String::from_utf8(request.body.clone()).unwrap();
        assert!(
            request.json.get("tools").is_none() && request.json.get("tool_choice").is_none(),
            "nothing on offer"
        );
        for phrase in ["I am the Stream: a calm", "What the operator wants remembered stands below"] {
            assert_eq!(body.matches(phrase).count(), 1, "{phrase}");
            assert!(said(request).system.contains(phrase), "{phrase} in the system text");
        }
    }
    let newest = String::from_utf8(requests[2].body.clone()).unwrap();
    assert_eq!(newest.matches("third words").count(), 1);

    // What was sent can be shown again from the store alone, and names its turns by reference.
    let runs = world.home.runs();
    let id = runs[2]["id"].as_str().unwrap();
    let shown = world.home.object(&["context-show", id, "--acknowledge-sensitive-private"]);
    assert_eq!(shown["packet"].to_string().matches("second words").count(), 1);
    let manifest: &Value = &shown["manifest"];
    assert!(!manifest.to_string().contains("second words"), "a manifest holds references: {manifest}");
    let first = world.home.events("source.telegram.message@1").remove(0);
    assert!(manifest.to_string().contains(first["id"].as_str().unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_anthropic_api_gets_the_whole_conversation() {
    three_turns(Speaks::Anthropic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_api_gets_the_whole_conversation() {
    three_turns(Speaks::OpenAi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_survives_a_restart_and_a_failed_turn_keeps_the_persons_words() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![
        Reply::Text("One.".to_owned()),
        Reply::status(400),
        Reply::Text("Three.".to_owned()),
    ]);
    let serve = world.serve();
    world.turn("the first", 1).await;
    world.say("the unanswered");
    world.home.wait_for_runs("failed", 1);
    world.home.wait_for_deliveries("notice:run-failed", 1);
    serve.stop();
    let serve = world.serve();
    world.turn("the third", 2).await;
    serve.stop();
    let requests = world.model.requests();
    let last = said(&requests[2]);
    let everything: String = last.turns.iter().map(|(role, text)| format!("{role}: {text}\n")).collect();
    assert!(everything.starts_with("user: the first\nassistant: One.\nuser: the unanswered"), "{everything}");
    assert!(everything.ends_with("the third\n"), "{everything}");
    assert!(!everything.contains("couldn't answer"), "a notice is no turn: {everything}");
    assert!(world.model.refusals().is_empty(), "{:?}", world.model.refusals());
}
