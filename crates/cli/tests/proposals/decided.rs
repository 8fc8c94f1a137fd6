//! What the review surface tells of decided proposals, and of those that a person made.

use serde_json::{Value, json};
use thought_testkit::home::Home;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::world::{calls, correction, focus, id, memory, says};

const ACKNOWLEDGE: &str = "--acknowledge-sensitive-private";

async fn two() -> World {
    let world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    world.model.script(vec![calls(vec![memory("- one")]), calls(vec![memory("- two")])]);
    let serve = world.serve();
    world.turn("Go on.", 1).await;
    world.turn("Go on.", 2).await;
    serve.stop();
    world
}

fn decide(home: &Home, id: &str, disposition: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["proposal-decision", "--proposal", id, "--disposition", disposition];
    arguments.extend(more);
    home.json(&arguments).object()
}

fn show(home: &Home, id: &str) -> Value {
    home.object(&["proposal-show", id, ACKNOWLEDGE])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_what_followed_are_shown_with_their_ids() {
    let world = two().await;
    let home = &world.home;
    let list = home.lines(&["proposal-list"]);
    let (one, two) = (id(&list[0]), id(&list[1]));
    assert!(show(home, one).get("decision").is_none() && show(home, one).get("outcomes").is_none());
    let own = home.folder.path().join("own");
    std::fs::write(&own, "- One, in my words").unwrap();
    let told = decide(home, one, "edit", &["--replacement-file", own.to_str().unwrap()]);
    let shown = show(home, one);
    assert_eq!(shown["state"], "projected");
    let decision = &shown["decision"];
    assert_eq!((&decision["id"], &decision["disposition"]), (&told["decision"], &json!("edit")));
    assert_eq!((&decision["operator"], &decision["surface"]), (&json!("alex"), &json!("cli")));
    assert_eq!(
        (&decision["replacement"], &decision["replacementLength"]),
        (&json!("- One, in my words"), &json!(18))
    );
    let receipt = home.events("agent.memory-change.materialized@1").remove(0);
    assert_eq!(shown["outcomes"], json!([{"id": receipt["id"], "outcome": "materialized"}]));
    // Without consent ids, lengths and hashes alone.
    let dark = home.object(&["proposal-show", one]);
    assert!(
        dark["decision"]["replacementSha256"].is_string() && dark["decision"].get("replacement").is_none()
    );
    let printed = home.run(&["proposal-show", one]).exit(0).stdout;
    assert!(
        printed.contains("edit by human:alex on cli") && printed.contains("outcome   materialized, evt_"),
        "{printed}"
    );
    assert!(!printed.contains("in my words"), "{printed}");
    assert!(home.run(&["proposal-show", one, ACKNOWLEDGE]).exit(0).stdout.contains("in my words"));

    // The second came too late: it failed for good, and the reason is shown.
    decide(home, two, "accept", &[]);
    let failed = show(home, two);
    assert_eq!((&failed["state"], &failed["base"]), (&json!("failed"), &json!("stale")));
    assert_eq!(
        (&failed["outcomes"][0]["outcome"], &failed["outcomes"][0]["reason"]),
        (&json!("failed"), &json!("stale-base"))
    );
    let states: Vec<Value> = home.lines(&["proposal-list"]).iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states, ["projected", "failed"]);
    let printed = home.run(&["proposal-show", two]).exit(0).stdout;
    assert!(printed.contains("outcome   failed (stale-base), evt_"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_proposed_is_listed_and_shown_like_any_other() {
    let world = two().await;
    let home = &world.home;
    let before = std::fs::read_to_string(home.below("context/memory.md")).unwrap();
    let list = home.lines(&["proposal-list"]);
    let (one, two) = (id(&list[0]), id(&list[1]));
    decide(home, one, "accept", &[]);
    let again = home.object(&["proposal-repropose", two]);
    let back = home.object(&["proposal-revert", one]);
    let list = home.lines(&["proposal-list", "--kind", "memory-change"]);
    assert_eq!(list.len(), 4);
    for (row, made, length) in [(&list[2], &again, 5), (&list[3], &back, before.chars().count())] {
        assert_eq!(
            (&row["id"], &row["state"], &row["base"]),
            (&made["proposal"], &json!("undecided"), &json!("current"))
        );
        assert!(row.get("run").is_none(), "{row}");
        assert_eq!((&row["textLength"], &row["kind"]), (&json!(length), &json!("memory-change")));
        let shown = show(home, id(row));
        assert_eq!((&shown["origin"], &shown["purpose"]), (&made["origin"], &made["purpose"]));
        let printed = home.run(&["proposal-show", id(row)]).exit(0).stdout;
        let purpose = made["purpose"].as_str().unwrap();
        assert!(printed.contains(&format!("memory-change, {purpose} of evt_")), "{printed}");
        assert!(printed.contains("human:alex"), "{printed}");
    }
    assert!(show(home, id(&list[2]))["diff"].as_str().unwrap().ends_with("\n+\n+- two\n"));
    let diff = show(home, id(&list[3]))["diff"].clone();
    assert!(diff.as_str().unwrap().ends_with("\n-\n-- one\n"), "{diff}");
    assert_eq!(home.object(&["status"])["proposals"]["undecided"], 3);
    let told = decide(home, id(&list[3]), "accept", &[]);
    assert_eq!(told["status"], "materialized");
    assert_eq!(std::fs::read_to_string(home.below("context/memory.md")).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_that_does_not_hold_is_told_by_link_and_a_focus_has_none() {
    let world = World::start(THOUGHT).await;
    let all = vec![memory("- one"), correction("Good evening."), focus()];
    world.model.script(vec![says("Good morning."), calls(all)]);
    let serve = world.serve();
    world.turn("Hello.", 1).await;
    world.turn("Go on.", 2).await;
    serve.stop();
    let home = &world.home;
    let list = home.lines(&["proposal-list"]);
    for row in &list {
        assert!(show(home, id(row)).get("refused").is_none(), "{row}");
    }
    let store = rusqlite::Connection::open(home.below("thought.db")).unwrap();
    store.execute_batch("DELETE FROM snapshots").unwrap();
    drop(store);
    for row in &list {
        let shown = show(home, id(row));
        match row["kind"].as_str() {
            Some("focus-declaration") => assert!(shown.get("refused").is_none(), "{shown}"),
            _ => assert!(shown["refused"]["link"].is_string() && shown["text"].is_string(), "{shown}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_proposed_again_says_so_and_what_was_written_is_not_told_as_stale() {
    let world = two().await;
    let home = &world.home;
    let list = home.lines(&["proposal-list"]);
    let (one, two) = (id(&list[0]).to_owned(), id(&list[1]).to_owned());
    decide(home, &one, "accept", &[]);
    let shown = home.run(&["proposal-show", &one]).exit(0).stdout;
    assert!(!shown.contains("stale"), "{shown}");
    assert_eq!(show(home, &one)["base"], "stale");
    let again = home.object(&["proposal-repropose", &two]);
    assert_eq!(again["state"], "undecided");
    let again = again["proposal"].as_str().unwrap();
    let expected = |state: &str| json!({"proposal": again, "state": state});
    assert_eq!(home.lines(&["proposal-list"])[1]["proposedAgainAs"], expected("undecided"));
    decide(home, again, "accept", &[]);
    let row = &home.lines(&["proposal-list"])[1];
    assert_eq!((&row["state"], &row["proposedAgainAs"]), (&json!("undecided"), &expected("materialized")));
    assert_eq!(show(home, &two)["proposedAgainAs"], expected("materialized"));
    let shown = home.run(&["proposal-show", &two]).exit(0).stdout;
    assert!(shown.contains(&format!("proposed again as {again}, materialized; ")), "{shown}");
    let list = home.run(&["proposal-list"]).exit(0).stdout;
    assert!(list.contains(", materialized"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_was_edited_and_not_scanned_is_no_current_base() {
    let world = two().await;
    let home = &world.home;
    let base = |home: &Home| home.lines(&["proposal-list"])[0]["base"].clone();
    let list = home.lines(&["proposal-list"]);
    assert_eq!(base(home), "current");
    let memory = home.below("context/memory.md");
    let text = std::fs::read_to_string(&memory).unwrap();
    std::fs::write(&memory, format!("{text}- By hand.\n")).unwrap();
    assert_eq!(base(home), "stale");
    assert_eq!(show(home, id(&list[0]))["warnings"], json!(["stale-base"]));
    std::fs::write(&memory, &text).unwrap();
    assert_eq!(base(home), "current");
    std::fs::remove_file(&memory).unwrap();
    assert_eq!(base(home), "stale");
    assert_eq!(home.events("source.file.version@1").len(), 2, "a look appends nothing");
}
