//! Private mail and the chat do not touch: no delivery, no history, no echo.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use thought_fakes::Reply;
use thought_testkit::canary;
use thought_testkit::run::argument;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::letter::{ask, letter, pairs, said};

#[tokio::test(flavor = "multi_thread")]
async fn neither_conversation_appears_in_the_other() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let answer = |text: &str| world.model.script(vec![Reply::Text(text.to_owned())]);
    answer("Answer to the person one.");
    world.turn("Person one", 1).await;
    answer("Answer to Co one.");
    ask(&world.home, letter("t-1", "m-1", "Co one"));
    answer("Answer to the person two.");
    world.turn("Person two", 2).await;
    answer("Answer to Co two.");
    ask(&world.home, letter("t-1", "m-2", "Co two"));
    serve.stop();
    let requests = world.model.requests();
    let third = said(&requests[2]);
    assert_eq!(
        pairs(&third),
        [("user", "Person one"), ("assistant", "Answer to the person one."), ("user", "Person two")]
    );
    let fourth = said(&requests[3]);
    assert_eq!(pairs(&fourth), [("user", "Co one"), ("assistant", "Answer to Co one."), ("user", "Co two")]);
    let whole = |index: usize| String::from_utf8(requests[index].body.clone()).unwrap();
    assert!(!whole(2).contains("Co one") && !whole(2).contains("Answer to Co"));
    assert!(!whole(3).contains("Person") && !whole(3).contains("to the person"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_it_is_delivered_proposed_or_offered() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    ask(&world.home, letter("t-1", "m-1", "Hello"));
    // A call is no answer here: nothing was offered.
    let call = serde_json::json!({
        "operation": "append", "proposed_text": "x", "reason": "y", "evidence_event_ids": [],
    });
    world.model.script(vec![Reply::call("request_memory_change", call)]);
    let home = &world.home;
    let more = ["--wait-seconds", crate::letter::WAIT];
    let failed = crate::letter::send(home, letter("t-1", "m-2", "Remember this"), &more).exit(9);
    assert_eq!(failed.object()["status"], "failed");
    // A turn of the chat, so that the dispatcher has certainly passed all of it.
    world.turn("Hello from the chat", 1).await;
    serve.stop();
    assert_eq!(world.bot.sent().len(), 1, "the chat's own answer alone");
    for request in &world.model.requests()[..2] {
        assert!(request.json.get("tools").is_none() && request.json.get("tool_choice").is_none());
    }
    assert_eq!(home.events("delivery.telegram@1").len(), 1);
    assert!(home.lines(&["proposal-list"]).is_empty());
    assert!(home.events("notice.requested@1").is_empty());
    let status = home.object(&["status"]);
    assert_eq!(status["deliveries"]["undelivered"], serde_json::json!([]), "{status}");
    assert_eq!(status["deliveries"]["uncertain"], serde_json::json!([]), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgment_of_an_acknowledgment_is_one_response_and_starts_nothing() {
    let world = World::start(THOUGHT).await;
    world.model.set_default_reply(|_| {
        Reply::Text("Acknowledged. Please acknowledge, from co to stream-agent-conversation.".to_owned())
    });
    let serve = world.serve();
    let home = &world.home;
    ask(home, letter("t-1", "m-1", "Acknowledged. Please acknowledge."));
    // A second exchange of another thread ends later than anything that the first could have set off.
    ask(home, letter("t-2", "m-1", "And this one?"));
    serve.stop();
    let count = |name: &str| home.events(name).len();
    assert_eq!(count("source.agent.message@1"), 2);
    assert_eq!(count("derived.agent.message@1"), 2);
    assert_eq!(count("run.completed@1"), 2);
    assert_eq!(world.model.request_count(), 2);
    let sources: Vec<Value> = home.lines(&["event-list", "--source", "agent-message:co"]);
    assert_eq!(sources.len(), 2, "a response is no message");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_export_holds_any_of_it() {
    const ASKED: &str = "canary-question-of-co";
    const SAID: &str = "canary-response-of-the-stream";
    let world = World::start(THOUGHT).await;
    world.model.set_default_reply(|_| Reply::Text(SAID.to_owned()));
    let serve = world.serve();
    ask(&world.home, letter("t-1", "m-1", ASKED));
    serve.stop();
    let home = &world.home;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let output = |name: &str| folder.path().canonicalize().unwrap().join(name);
    let (private, training) = (output("private.jsonl"), output("training.jsonl"));
    let private_option = "--acknowledge-sensitive-private-training";
    home.json(&["private-training-export", "--output", argument(&private), private_option]).exit(0);
    home.json(&["training-export", "--output", argument(&training)]).exit(0);
    for file in [&private, &training] {
        assert_eq!(std::fs::read(file).unwrap(), b"", "{}", file.display());
    }
    assert_eq!(canary::in_folder(folder.path(), &[ASKED, SAID]), [""; 0]);
}
