//! A person asks in the chat: one turn, one request, the suggestion, and what the next turn knows of it.

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::world::{Speaks, World};

use crate::THOUGHT;
use crate::world::{
    CAPTURED, CORRECTION, FOCUS, Heard, MEMORY, calls, correction, focus, heard, id, listed, memory, says,
};

const ACKNOWLEDGE: &str = "--acknowledge-sensitive-private";

fn read_memory(world: &World) -> String {
    std::fs::read_to_string(world.home.below("context/memory.md")).unwrap()
}

/// The events of the declaration's source behind a sequence, by type without its beginning.
fn types(world: &World, after: u64) -> Vec<String> {
    let mut events = world.home.lines(&["event-list", "--source", "agent:stream-telegram-conversation"]);
    events.retain(|event| event["sequence"].as_u64().unwrap() > after);
    events.iter().map(|event| event["type"].as_str().unwrap().replace("stream.thought.", "")).collect()
}

async fn remembers(speaks: Speaks) {
    let world = World::speaking(THOUGHT, speaks, None).await;
    let before = read_memory(&world);
    world
        .model
        .script(vec![calls(vec![memory("- Lives in Lisbon.")]), says("You live in Porto, I thought.")]);
    let serve = world.serve();
    let reply = world.turn("Please remember that I moved to Lisbon.", 1).await;
    assert_eq!(reply.text, "I saved that as a memory suggestion.");
    assert_eq!(world.model.request_count(), 1, "a proposal turn makes exactly one request");
    world.turn("And where do I live?", 2).await;
    serve.stop();
    assert!(world.model.refusals().is_empty(), "{:?}", world.model.refusals());
    assert_eq!(world.model.request_count(), 2);
    assert_eq!(read_memory(&world), before, "a suggestion changes nothing");
    assert_eq!(
        types(&world, 0),
        [
            "derived.message.observation@1",
            "agent.memory-change.proposed@1",
            "run.completed@1",
            "derived.message.observation@1",
            "run.completed@1",
        ]
    );

    // The event: bound by the parent, under the message, from the answer.
    let proposal = world.home.events("agent.memory-change.proposed@1").remove(0);
    let output = world.home.events("derived.message.observation@1").remove(0);
    let message = world.home.events("source.telegram.message@1").remove(0);
    assert_eq!((&proposal["rootId"], &proposal["parentId"]), (&message["id"], &output["id"]));
    let payload = &proposal["payload"];
    let version = world.home.events("source.file.version@1");
    let version = version.iter().find(|event| event["payload"]["path"] == "memory.md").unwrap();
    assert_eq!(
        payload["target"],
        json!({
            "source": "filesystem:telegram-agent-context", "documentId": version["payload"]["documentId"],
            "path": "memory.md", "versionId": version["payload"]["versionId"],
            "sha256": version["payload"]["sha256"], "contentType": version["payload"]["contentType"],
        })
    );
    let run = world.home.runs().remove(0);
    assert_eq!(run["proposals"], json!([proposal["id"]]));
    assert_eq!((&payload["proposer"]["run"], &payload["proposer"]["output"]), (&run["id"], &output["id"]));
    assert_eq!(
        (&payload["proposalState"], &payload["publicationEligible"]),
        (&json!("agent-proposed"), &json!(false))
    );
    // The stored output holds no call and no id.
    assert!(!output["payload"].to_string().contains("Lisbon") && output["payload"].get("calls").is_none());

    // What the second turn was told, in the API's own form.
    let history = heard(&world.model.requests()[1]);
    let [
        Heard::User(first),
        Heard::Called(called),
        Heard::Told(told),
        Heard::Said(said),
        Heard::User(second),
    ] = &history[..]
    else {
        panic!("{history:?}")
    };
    assert_eq!(
        (first.as_str(), second.as_str()),
        ("Please remember that I moved to Lisbon.", "And where do I live?")
    );
    let [(call, name, arguments)] = &called[..] else { panic!("{called:?}") };
    assert_eq!((name.as_str(), arguments), (MEMORY, &memory("- Lives in Lisbon.").1));
    assert!(call.starts_with("call_") && call.len() == 29, "{call}");
    assert_eq!(told, &[(call.clone(), CAPTURED.to_owned())]);
    assert_eq!(said, "I saved that as a memory suggestion.");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_23_a_memory_suggestion_and_the_turn_after_it_on_the_anthropic_api() {
    remembers(Speaks::Anthropic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn report_23_a_memory_suggestion_and_the_turn_after_it_on_the_openai_api() {
    remembers(Speaks::OpenAi).await;
}

async fn corrects(speaks: Speaks) {
    let world = World::speaking(THOUGHT, speaks, None).await;
    let script =
        vec![says("It is Monday."), calls(vec![correction("It is Tuesday.")]), says("Anything else?")];
    world.model.script(script);
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    let reply = world.turn("Your last answer was wrong, it is Tuesday.", 2).await;
    assert_eq!(reply.text, "I saved that as a proposed correction.");
    world.turn("Thanks.", 3).await;
    serve.stop();
    assert_eq!(world.model.request_count(), 3);
    let outputs = world.home.events("derived.message.observation@1");
    let messages = world.home.events("source.telegram.message@1");
    let receipt = world.home.deliveries("reply").remove(0);
    let runs = world.home.runs();
    let proposal = world.home.events("agent.correction.proposed@1").remove(0);
    assert_eq!((&proposal["rootId"], &proposal["parentId"]), (&messages[0]["id"], &outputs[0]["id"]));
    assert_eq!(
        proposal["payload"]["target"],
        json!({
            "run": runs[0]["id"], "output": outputs[0]["id"], "deliveryReceipt": receipt["id"],
            "sourceRoot": messages[0]["id"], "contract": "conversation-text@1",
        })
    );
    assert_eq!(proposal["payload"]["replacement"], json!({"summary": "It is Tuesday."}));
    for literal in ["qualityEligible", "externalExportEligible", "publicationEligible"] {
        assert_eq!(proposal["payload"][literal], false, "{literal}");
    }
    // It hangs under the answer that it is about, not under the turn that it came from.
    let tree = world.home.object(&["lineage", id(&outputs[0])]).to_string();
    assert!(tree.contains(id(&proposal)), "{tree}");

    // A proposal is no judgment: the answer is what it was, and history names the target that was meant.
    let request = &world.model.requests()[2];
    let history = heard(request);
    assert_eq!(history[1], Heard::Said("It is Monday.".to_owned()));
    let Heard::Called(called) = &history[3] else { panic!("{history:?}") };
    assert_eq!((called[0].1.as_str(), &called[0].2["target_output"]), (CORRECTION, &outputs[0]["id"]));
    // The prompt explains the word; no message says it.
    let messages = request.json["messages"].as_array().unwrap().iter();
    let spoken: Vec<&Value> = messages.filter(|message| message["role"] != "system").collect();
    assert!(spoken.iter().all(|message| !message.to_string().contains("latest")));
    let everything = world.home.lines(&["event-list", ACKNOWLEDGE]);
    assert!(everything.iter().all(|event| !event["payload"].to_string().contains("latest")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_names_what_was_meant_on_the_anthropic_api() {
    corrects(Speaks::Anthropic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_names_what_was_meant_on_the_openai_api() {
    corrects(Speaks::OpenAi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_focus_is_a_turn_like_any_other_and_waits_for_nobody() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![calls(vec![focus()])]);
    let serve = world.serve();
    let reply = world.turn("/focus follow the news on ferries", 1).await;
    serve.stop();
    assert_eq!(reply.text, "I saved that as a focus proposal.");
    assert_eq!(world.home.events("source.telegram.command@1").len(), 0);
    let proposal = world.home.events("focus.declaration.proposed@1").remove(0);
    let payload = &proposal["payload"];
    assert_eq!(payload["declaration"], focus().1);
    for member in ["activation", "dataExpansion", "externalActions", "training", "adapterPromotion"] {
        assert_eq!(payload["authority"][member], false, "{member}");
    }
    assert_eq!(payload["authority"].as_object().unwrap().len(), 5);
    for member in ["events", "sources", "capabilities", "lineage"] {
        assert_eq!(payload["resolution"][member], "unchecked", "{member}");
    }
    let row = listed(&world, "focus-declaration");
    assert_eq!((&row["state"], &row["base"]), (&json!("inert"), &json!("current")));
    assert_eq!(row["target"], json!({"fingerprint": payload["fingerprint"]}));
    let status = world.home.object(&["status"]);
    assert_eq!(status["proposals"], json!({"undecided": 0, "oldestAgeSeconds": null}));
    assert!(world.home.lines(&["proposal-list", "--state", "undecided"]).is_empty());
    assert_eq!(world.home.lines(&["declaration-list"]).len(), 2, "it declares nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_suggestions_of_one_turn_are_settled_in_order_beside_the_models_own_words() {
    let world = World::start(THOUGHT).await;
    let all = vec![focus(), correction("Good evening."), memory("- Likes ferries.")];
    let reply = Reply::Calls { text: Some("All three, then.".to_owned()), calls: all };
    world.model.script(vec![says("Good morning."), reply, says("Yes.")]);
    let serve = world.serve();
    world.turn("Hello.", 1).await;
    let reply = world.turn("Remember ferries, watch ferries, and it is evening.", 2).await;
    assert_eq!(reply.text, "All three, then.", "the model's words and nothing else");
    world.turn("And?", 3).await;
    serve.stop();
    // In the order of the calls, between output and ending.
    assert_eq!(
        types(&world, 2)[..5],
        [
            "derived.message.observation@1",
            "focus.declaration.proposed@1",
            "agent.correction.proposed@1",
            "agent.memory-change.proposed@1",
            "run.completed@1",
        ]
    );
    let completed = world.home.events("run.completed@1").remove(1);
    let kinds: Vec<&Value> =
        completed["payload"]["proposals"].as_array().unwrap().iter().map(|named| &named["kind"]).collect();
    assert_eq!(kinds, ["focus-declaration", "self-correction", "memory-change"]);
    let history = heard(&world.model.requests()[2]);
    let Heard::Called(called) = &history[3] else { panic!("{history:?}") };
    assert_eq!(called.iter().map(|call| call.1.as_str()).collect::<Vec<_>>(), [FOCUS, CORRECTION, MEMORY]);
    let Heard::Told(told) = &history[4] else { panic!("{history:?}") };
    assert_eq!(told.len(), 3, "one result a call");
    assert!(told.iter().zip(called).all(|(told, call)| told.0 == call.0 && told.1 == CAPTURED));
    assert_eq!(history[5], Heard::Said("All three, then.".to_owned()));
    assert_eq!(world.model.request_count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_claim_a_suggestion_are_words() {
    let world = World::start(THOUGHT).await;
    let claim = "I saved that as a memory suggestion.";
    world.model.script(vec![says(claim), says("Hm.")]);
    let serve = world.serve();
    world.turn("Remember tea.", 1).await;
    world.turn("Did you?", 2).await;
    serve.stop();
    assert!(world.home.lines(&["proposal-list"]).is_empty());
    let history = heard(&world.model.requests()[1]);
    let said = |text: &str| Heard::Said(text.to_owned());
    let user = |text: &str| Heard::User(text.to_owned());
    assert_eq!(history, [user("Remember tea."), said(claim), user("Did you?")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_was_shown_is_rebuilt_after_everything_has_changed_on_disk() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![calls(vec![memory("- Lives in Lisbon.")])]);
    let serve = world.serve();
    world.turn("Remember Lisbon.", 1).await;
    let run = world.home.runs().remove(0);
    let show = |run: &Value| world.home.object(&["context-show", id(run), ACKNOWLEDGE]);
    let before = show(&run);
    std::fs::write(world.home.below("context/memory.md"), "---\nid: memory\n---\nAll new.\n").unwrap();
    std::fs::write(world.home.below("context/identity.md"), "---\nid: identity\n---\nAll new.\n").unwrap();
    std::fs::write(world.home.below("prompts/stream-telegram-conversation.md"), "All new.\n").unwrap();
    std::fs::remove_file(world.home.below("agents/stream-telegram-conversation.yaml")).unwrap();
    world.home.wait_for_events("source.file.version@1", 4);
    serve.stop();
    let after = show(&run);
    assert_eq!(after, before);
    assert!(!after["packet"].to_string().contains("All new."));
    let capability = &after["manifest"]["capability"];
    assert!(capability["memoryTarget"].is_u64(), "{capability}");
    // The suggestion is bound to the version that it was made on.
    let row = listed(&world, "memory-change");
    assert_eq!((&row["base"], &row["state"]), (&json!("stale"), &json!("undecided")));
}
