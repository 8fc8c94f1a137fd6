//! The menu, its help notice, and focus: bare it is answered without a model, with a description it is a turn.

use serde_json::{Value, json};
use thought_fakes::{Failure, Reply};
use thought_testkit::world::{CHAT, World};

use crate::THOUGHT;

#[tokio::test(flavor = "multi_thread")]
async fn the_menu_is_set_once_and_each_chat_is_told_once() {
    let world = World::start(THOUGHT).await;
    world.home.set("telegram", "allowed_chats", Some("[4242, 77]"));
    world.bot.add_chat(thought_fakes::ChatSpec::private(77));
    let first = world.home.object(&["telegram-menu-register"]);
    assert_eq!(
        (&first["menu"], &first["notices"]),
        (&json!("set"), &json!({"requested": 2, "delivered": 2}))
    );
    let offered: Vec<Value> = world.bot.menu("default", "");
    let names: Vec<&str> = offered.iter().map(|entry| entry["command"].as_str().unwrap()).collect();
    assert!(names.contains(&"focus") && names.contains(&"help"), "{names:?}");
    for _ in 0..2 {
        let again = world.home.object(&["telegram-menu-register"]);
        assert_eq!(again["menu"], "unchanged");
    }
    assert_eq!(world.bot.call_count("setMyCommands"), 1);
    let sent = world.bot.sent();
    let mut chats: Vec<i64> = sent.iter().map(|sent| sent.chat_id).collect();
    chats.sort_unstable();
    assert_eq!(chats, [77, CHAT]);
    assert!(sent.iter().all(|sent| sent.text.contains("/focus") && sent.text.contains("person decides")));
    for event in world.home.lines(&["event-list"]) {
        assert!(
            !event["type"].as_str().unwrap().contains("source.telegram"),
            "a command makes no Telegram event"
        );
    }
    assert_eq!(world.home.deliveries("notice:help").len(), 2);
    world.home.json(&["verify"]).exit(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_serve_at_work_sends_the_notices_and_a_menu_that_was_changed_is_set_again() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    assert_eq!(world.home.object(&["telegram-menu-register", "--skip-help-notice"])["menu"], "set");
    assert!(world.bot.sent().is_empty());
    let told = world.home.object(&["telegram-menu-register"]);
    assert_eq!((&told["menu"], &told["notices"]["delivered"]), (&json!("unchanged"), &json!(1)));
    serve.stop();
    assert_eq!(world.bot.sent().len(), 1);
    world.bot.fail("getMyCommands", Failure::blocked());
    world.home.json(&["telegram-menu-register"]).exit(3);
    world.home.set("telegram", "notices", Some("false"));
    assert_eq!(world.home.object(&["telegram-menu-register"])["notices"]["requested"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_focus_is_answered_in_fixed_words_without_a_model() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    for (number, text) in [(1, "/focus"), (2, "/focus@some_other_bot"), (3, "/focus  \n")] {
        world.say(text);
        if number != 2 {
            world.home.wait_for_deliveries("notice:help", number.min(2));
        }
    }
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    let commands = world.home.events("source.telegram.command@1");
    assert_eq!(commands.len(), 2);
    assert!(commands.iter().all(|event| event["payload"]["command"] == "focus"));
    let texts: Vec<_> = world.bot.sent().into_iter().map(|sent| sent.text).collect();
    let help: Vec<_> = texts.iter().filter(|text| text.contains("/focus")).collect();
    assert_eq!((help.len(), help[0]), (2, help[1]), "the same words each time");
    assert!(help[0].contains("suggestion"));
    // One message was for another bot: to this one it is ordinary text, and the only thing that a model saw.
    assert_eq!(world.model.request_count(), 1);
    assert_eq!(world.home.runs().len(), 1);
    assert!(world.home.lines(&["proposal-list"]).is_empty());
    assert!(world.home.events("focus.declaration.proposed@1").is_empty());
}

/// What a model says to a description.
fn focus() -> (String, Value) {
    let declaration = json!({
        "id": "old-bicycles", "version": 1, "lineage": {"kind": "new"},
        "scope": {"summary": "Articles about old bicycles.", "includes": [], "excludes": []},
        "objective": "Notice articles about restoring old bicycles.",
        "subscriptions": [{"eventType": "stream.thought.source.telegram.message@1", "source": "telegram:stream"}],
        "budgets": {"maxEventsPerDay": 10, "maxInferenceRequestsPerDay": 1, "maxContextCharacters": 1000},
        "requestedPermissions": ["read-events"], "retirement": {"kind": "manual"},
    });
    ("propose_focus".to_owned(), declaration)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_natural_focus_is_one_chain_of_event_run_proposal_completion_and_delivery() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![Reply::Calls { text: None, calls: vec![focus()] }]);
    let serve = world.serve();
    let reply = world.turn("/focus articles about restoring old bicycles", 1).await;
    serve.stop();
    assert_eq!(reply.text, "I saved that as a focus proposal.");
    let one = |name: &str| {
        let events = world.home.events(name);
        assert_eq!(events.len(), 1, "{name}");
        events[0].clone()
    };
    let message = one("source.telegram.message@1");
    assert_eq!(message["payload"]["text"], "/focus articles about restoring old bicycles");
    assert!(world.home.events("source.telegram.command@1").is_empty());
    let output = one("derived.message.observation@1");
    let proposal = one("focus.declaration.proposed@1");
    let completion = one("run.completed@1");
    let receipt = one("delivery.telegram@1");
    for event in [&output, &proposal, &completion, &receipt] {
        assert_eq!(event["rootId"], message["id"]);
    }
    assert_eq!((&output["parentId"], &proposal["parentId"]), (&message["id"], &output["id"]));
    assert_eq!((&completion["parentId"], &receipt["parentId"]), (&output["id"], &output["id"]));
    let [run] = &world.home.runs()[..] else { panic!("one run") };
    assert_eq!(
        (&run["trigger"], &run["state"], &run["output"]),
        (&message["id"], &json!("completed"), &output["id"])
    );
    assert_eq!(run["proposals"], json!([proposal["id"]]));
    assert_eq!(
        completion["payload"]["proposals"],
        json!([{"kind": "focus-declaration", "event": proposal["id"]}])
    );
    assert_eq!((&receipt["payload"]["run"], &receipt["payload"]["kind"]), (&run["id"], &json!("reply")));
    let listed = world.home.lines(&["proposal-list"]);
    assert_eq!((listed.len(), &listed[0]["state"]), (1, &json!("inert")));
    assert_eq!(world.model.request_count(), 1);
}
