//! The daily count of what waits for a person.

use rusqlite::Connection;
use serde_json::json;
use thought_fakes::Reply;
use thought_testkit::world::World;

use crate::world::{decide, remembers, says, texts, world};

/// Lets a day pass over everything that waits.
fn a_day_later(world: &World) {
    let store = Connection::open(world.home.below("thought.db")).unwrap();
    store.execute("UPDATE proposals SET proposed_ms = proposed_ms - 86400000", []).unwrap();
}

fn counts(world: &World) -> Vec<String> {
    texts(world).into_iter().filter(|text| text.starts_with("Suggestions waiting")).collect()
}

fn a_focus() -> Reply {
    let declaration = json!({
        "id": "ferry-news", "version": 1, "lineage": {"kind": "new"},
        "scope": {"summary": "News on the ferries.", "includes": ["timetables"], "excludes": []},
        "objective": "Notice when a ferry is late.",
        "subscriptions": [{"eventType": "stream.thought.source.telegram.message@1", "source": "telegram:stream"}],
        "budgets": {"maxEventsPerDay": 10, "maxInferenceRequestsPerDay": 1, "maxContextCharacters": 1000},
        "requestedPermissions": ["read-events"], "retirement": {"kind": "after-days", "days": 30},
    });
    Reply::Calls { text: None, calls: vec![("propose_focus".to_owned(), declaration)] }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_since_yesterday_is_counted_once_a_day() {
    let world =
        world(vec![remembers("- Tea."), remembers("- Lisbon."), a_focus(), says("Yes."), says("Still.")])
            .await;
    let serve = world.serve();
    for turn in 1..=3 {
        world.turn("Remember.", turn).await;
    }
    serve.stop();
    assert!(counts(&world).is_empty(), "of a new suggestion its own turn has spoken");
    a_day_later(&world);
    let serve = world.serve();
    let told = world.home.wait_for_deliveries("notice:suggestions-waiting", 1);
    let request = world.home.events("notice.requested@1").remove(0);
    assert_eq!((&told[0]["parentId"], &request["source"]), (&request["id"], &json!("notices:telegram")));
    assert_eq!(request["payload"], json!({"name": "suggestions-waiting", "chatId": 4242}));
    serve.kill();
    let serve = world.serve();
    world.turn("Anything else?", 4).await;
    serve.stop();
    let serve = world.serve();
    world.turn("And now?", 5).await;
    serve.stop();
    assert_eq!(counts(&world), ["Suggestions waiting for review: 2."], "an inert focus waits for nobody");
    for request in &world.model.requests()[3..] {
        assert!(!String::from_utf8(request.body.clone()).unwrap().contains("Suggestions waiting"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_decided_does_not_wait_and_where_notices_are_off_nothing_is_counted() {
    let world = world(vec![remembers("- Tea."), says("Yes."), says("Still.")]).await;
    let serve = world.serve();
    world.turn("Remember.", 1).await;
    serve.stop();
    a_day_later(&world);
    world.home.set("telegram", "notices", Some("false"));
    let serve = world.serve();
    world.turn("And?", 2).await;
    serve.stop();
    let waiting = world.home.lines(&["proposal-list", "--state", "undecided"]).remove(0);
    decide(&world.home, waiting["id"].as_str().unwrap(), "reject").exit(0);
    world.home.set("telegram", "notices", Some("true"));
    let serve = world.serve();
    world.turn("And now?", 3).await;
    serve.stop();
    assert!(counts(&world).is_empty());
    assert!(world.home.events("notice.requested@1").is_empty());
}
