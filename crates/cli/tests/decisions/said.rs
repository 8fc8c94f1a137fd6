//! What a word leads to: in the document, in the log, and in the next turn.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use thought_testkit::home::Home;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::template::{ANSWER, CORRECTED, LINE};
use crate::world::{
    CHANGE, CORRECTION, FOCUS, Standing, appended, calls, correction, decide, decided, decisions, failures,
    file, five, id_of, judgments, memory, memory_of, memory_path, receipts, says, sha256, state, three,
};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_stands_in_the_document_and_in_the_next_turn() {
    let world = World::start(THOUGHT).await;
    let home = &world.home;
    world.model.script(vec![says(ANSWER), calls(vec![memory(LINE), correction(CORRECTED)])]);
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    world.turn("Wrong. And I live in Lisbon.", 2).await;
    serve.stop();
    let rows = home.lines(&["proposal-list"]);
    let id = |kind: &str| id_of(rows.iter().find(|row| row["kind"] == kind).unwrap());
    let base = memory_of(home);

    let told = decided(home, &id(CHANGE), "accept", "materialized");
    assert_eq!(keys(&told), ["decision", "disposition", "proposal", "status", "submissionId"]);
    assert_eq!((&told["proposal"], &told["disposition"]), (&json!(id(CHANGE)), &json!("accept")));
    let told = decided(home, &id(CORRECTION), "accept", "projected");
    assert_eq!(told["proposal"], id(CORRECTION));

    assert_eq!(memory_of(home), appended(&base, LINE));
    let found = std::fs::metadata(memory_path(home)).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o600);
    let receipt = receipts(home).remove(0);
    let payload = &receipt["payload"];
    assert_eq!(
        (&payload["sha256"], &payload["byteCount"]),
        (&json!(sha256(memory_of(home))), &json!(found.len()))
    );
    let versions = home.events("source.file.version@1");
    let version = versions.iter().find(|event| event["id"] == payload["fileEvent"]).unwrap();
    assert_eq!(version["payload"]["versionId"], payload["versionId"]);
    assert_eq!(version["payload"]["previousVersionId"], payload["baseVersionId"]);
    assert_eq!(
        (&receipt["parentId"], &receipt["actor"]),
        (&payload["decision"], &json!("system:materializer"))
    );
    for kind in [CHANGE, CORRECTION] {
        assert_eq!(state(home, &id(kind)), "projected");
    }

    let serve = world.serve();
    world.turn("Go on.", 3).await;
    serve.stop();
    let request = world.model.requests().last().unwrap().json.clone();
    let system = request["system"].to_string();
    assert_eq!(system.matches(LINE).count(), 1, "{system}");
    let messages = request["messages"].to_string();
    assert!(!messages.contains(ANSWER), "the answer that was corrected is history no more: {messages}");
    assert!(request["messages"][1].to_string().contains(CORRECTED), "{messages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_carried_out_in_the_persons_own_words() {
    let (home, change) = three(CHANGE).await;
    let (_, correction) = (&home, id_of(&home.lines(&["proposal-list", "--kind", CORRECTION])[0]));
    let base = memory_of(&home);
    let own = "- Lives in Porto.\r\n- Likes trams.  \n\n";
    let text = file(&home, "own.md", own);
    let told = decide(&home, &change, "edit", &["--replacement-file", &text]).exit(0).object();
    assert_eq!((&told["status"], &told["disposition"]), (&json!("materialized"), &json!("edit")));
    assert_eq!(memory_of(&home), appended(&base, "- Lives in Porto.\n- Likes trams."));
    let said = &decisions(&home)[0]["payload"]["replacement"];
    assert_eq!(said["text"], own, "the exact bytes of the file");
    assert_eq!((&said["length"], &said["sha256"]), (&json!(own.chars().count()), &json!(sha256(own))));

    let text = file(&home, "answer.txt", "It is Wednesday.");
    decide(&home, &correction, "edit", &["--replacement-file", &text]).exit(0);
    let judgment = judgments(&home).remove(0);
    assert_eq!(judgment["replacement"], json!({"summary": "It is Wednesday."}));
    assert_eq!(judgment["criterion"], "agent-self-correction");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_leaves_no_judgment_and_no_write() {
    let (home, change) = three(CHANGE).await;
    let correction = id_of(&home.lines(&["proposal-list", "--kind", CORRECTION])[0]);
    let (base, count) = (memory_of(&home), home.lines(&["event-list"]).len());
    for id in [&change, &correction] {
        decided(&home, id, "reject", "rejected");
        assert_eq!(state(&home, id), "projected");
    }
    let before = Standing::of(&home);
    assert!(home.json(&["proposal-project"]).exit(0).stdout.is_empty());
    for id in [&change, &correction] {
        let told = home.object(&["proposal-project", "--proposal", id]);
        assert_eq!(told["status"], "rejected");
        assert!(told.get("reason").is_none());
    }
    assert_eq!(Standing::of(&home), before);
    assert_eq!(memory_of(&home), base);
    assert!(judgments(&home).is_empty() && receipts(&home).is_empty() && failures(&home).is_empty());
    assert_eq!(home.lines(&["event-list"]).len(), count + 2, "two decisions, and nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn saying_and_projecting_again_changes_nothing() {
    let (home, change) = three(CHANGE).await;
    let correction = id_of(&home.lines(&["proposal-list", "--kind", CORRECTION])[0]);
    let first = decide(&home, &change, "accept", &["--submission-id", "first"]).exit(0).object();
    assert_eq!(first["submissionId"], "first");
    let judged = decided(&home, &correction, "accept", "projected");
    let before = Standing::of(&home);
    for _ in 0..2 {
        let again = decide(&home, &change, "accept", &["--submission-id", "another"]).exit(0).object();
        assert_eq!(again, first, "the first submission's name, and the same status");
        assert_eq!(decided(&home, &correction, "accept", "projected"), judged);
        assert!(home.json(&["proposal-project"]).exit(0).stdout.is_empty());
        for id in [&change, &correction] {
            home.json(&["proposal-project", "--proposal", id]).exit(0);
        }
    }
    assert_eq!(Standing::of(&home), before);
    // Another word meets the first, and changes nothing either.
    for (id, other) in [(&change, "reject"), (&correction, "reject")] {
        let refused = decide(&home, id, other, &[]).exit(4);
        assert_eq!(refused.error()["code"], "decided-otherwise");
        assert!(refused.stdout.is_empty() && refused.error()["hint"].is_string());
    }
    assert_eq!(Standing::of(&home), before);
    let printed = home.run(&["proposal-decision", "--proposal", &change, "--disposition", "accept"]).exit(0);
    assert!(printed.stdout.contains("status       materialized"), "{}", printed.stdout);
}

/// The history of one answer that was corrected twice.
async fn corrected_twice() -> (World, Vec<String>) {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![says(ANSWER), calls(vec![correction(CORRECTED)])]);
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    world.turn("Wrong.", 2).await;
    let output = world.home.runs()[0]["output"].clone();
    let (tool, mut arguments) = correction("It is Wednesday.");
    arguments["target_output"] = output;
    world.model.script(vec![calls(vec![(tool, arguments)])]);
    world.turn("Wrong again.", 3).await;
    serve.stop();
    let ids = world.home.lines(&["proposal-list"]).iter().map(id_of).collect();
    (world, ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn judgments_are_listed_with_their_standing_and_without_their_words() {
    let (world, proposals) = corrected_twice().await;
    let home = &world.home;
    assert!(home.lines(&["judgment-list"]).is_empty());
    for id in &proposals {
        decided(home, id, "accept", "projected");
    }
    let dark = home.lines(&["judgment-list"]);
    assert_eq!(dark.len(), 2);
    assert_eq!(
        (&dark[0]["standing"], &dark[1]["standing"], &dark[1]["supersedes"]),
        (&json!("superseded"), &json!("active"), &dark[0]["id"])
    );
    let target = &dark[0]["target"];
    let run = &home.runs()[0];
    assert_eq!((&target["run"], &target["output"]), (&run["id"], &run["output"]));
    assert_eq!(dark[0]["target"], dark[1]["target"]);
    for (judgment, decision) in dark.iter().zip(decisions(home)) {
        assert_eq!(judgment["feedback"], decision["id"]);
        assert_eq!(judgment["actor"], decision["actor"]);
        let flags = (&judgment["qualityEligible"], &judgment["externalExportEligible"]);
        assert_eq!(flags, (&json!(true), &json!(false)));
        assert!(judgment.get("replacement").is_none());
    }
    let shown = judgments(home);
    assert_eq!(shown[0]["replacement"]["summary"], CORRECTED);
    assert_eq!(shown[1]["replacement"]["summary"], "It is Wednesday.");
    let (first, second) = (id_of(&dark[0]), id_of(&dark[1]));
    assert_eq!(home.lines(&["judgment-list", "--limit", "1"]), dark[..1]);
    assert_eq!(home.lines(&["judgment-list", "--after", &first]), dark[1..]);
    assert!(home.lines(&["judgment-list", "--after", &second]).is_empty());
    home.json(&["judgment-list", "--after", &proposals[0]]).exit(5);
    home.json(&["judgment-list", "--limit", "0"]).exit(2);
    let printed = home.run(&["judgment-list", "--limit", "1"]).exit(0);
    assert!(printed.stderr.contains("1 of 2 judgments"), "{}", printed.stderr);
    assert!(printed.stdout.contains("superseded") && !printed.stdout.contains(CORRECTED));

    home.json(&["verify"]).exit(0);

    // The next turn hears the newest.
    let serve = world.serve();
    world.turn("Go on.", 4).await;
    serve.stop();
    let request = world.model.requests().last().unwrap().json.clone();
    assert!(request["messages"][1].to_string().contains("It is Wednesday."), "{request}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_five_suggestions_of_a_day_one_is_taken_and_the_others_are_proposed_again() {
    let (home, ids) = five().await;
    let mut expected = appended(&memory_of(&home), "- fact 1");
    decided(&home, &ids[0], "accept", "materialized");
    for id in &ids[1..] {
        let row = home.lines(&["proposal-list"]).into_iter().find(|row| row["id"] == **id).unwrap();
        assert_eq!((&row["base"], &row["state"]), (&json!("stale"), &json!("undecided")));
    }
    for (n, id) in ids.iter().enumerate().skip(1) {
        // One is decided stale, and fails; the others are proposed again as they are.
        if n == 1 {
            crate::world::fails(&home, id, "stale-base");
        }
        let again = home.object(&["proposal-repropose", id]);
        assert_eq!(keys(&again), ["origin", "proposal", "purpose", "state"]);
        assert_eq!((&again["origin"], &again["purpose"]), (&json!(id), &json!("repropose")));
        assert_eq!(home.object(&["proposal-repropose", id]), again, "asked twice, it is one proposal");
        let new = again["proposal"].as_str().unwrap();
        assert_eq!(state(&home, new), "undecided");
        assert_eq!(memory_of(&home), expected, "nothing is rebased, and nothing is decided by it");
        decided(&home, new, "accept", "materialized");
        expected = appended(&expected, &format!("- fact {}", n + 1));
        assert_eq!(memory_of(&home), expected);
    }
    assert_eq!(receipts(&home).len(), 5);
    home.json(&["verify"]).exit(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_reverted_on_whatever_stands_now() {
    let (home, change) = three(CHANGE).await;
    let base = memory_of(&home);
    let refused = home.json(&["proposal-revert", &change]).exit(3);
    assert!(refused.error()["hint"].is_string(), "{}", refused.stderr);
    decided(&home, &change, "accept", "materialized");
    std::fs::write(memory_path(&home), appended(&memory_of(&home), "- a line of my own")).unwrap();
    let with_both = memory_of(&home);
    let revert = home.object(&["proposal-revert", &change]);
    assert_eq!((&revert["origin"], &revert["purpose"]), (&json!(change), &json!("revert")));
    assert_eq!(memory_of(&home), with_both, "a proposal changes nothing");
    let id = revert["proposal"].as_str().unwrap();
    decided(&home, id, "accept", "materialized");
    assert_eq!(memory_of(&home), base);
    // And the revert is a change like any other.
    let forth = home.object(&["proposal-revert", id]);
    decided(&home, forth["proposal"].as_str().unwrap(), "accept", "materialized");
    assert_eq!(memory_of(&home), with_both);
    home.json(&["verify"]).exit(0);
}

/// Refused with this code and a hint, and nothing changed.
#[track_caller]
fn refused(home: &Home, arguments: &[&str], exit: i32, code: &str) {
    let before = Standing::of(home);
    let done = home.json(arguments).exit(exit);
    assert_eq!(done.error()["code"], code);
    assert!(done.error()["hint"].is_string() && done.stdout.is_empty(), "{}", done.stderr);
    assert_eq!(Standing::of(home), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_known_person_proposes_again_and_only_what_has_another_base() {
    let (home, change) = three(CHANGE).await;
    let of = |kind: &str| id_of(&home.lines(&["proposal-list", "--kind", kind])[0]);
    refused(&home, &["proposal-repropose", &change], 3, "base-current");
    for kind in [CORRECTION, FOCUS] {
        refused(&home, &["proposal-repropose", &of(kind)], 3, "not-a-memory-change");
        refused(&home, &["proposal-revert", &of(kind)], 3, "not-a-memory-change");
    }
    let message = id_of(&home.events("source.telegram.message@1")[0]);
    refused(&home, &["proposal-repropose", &message], 5, "not-found");
    std::fs::write(memory_path(&home), appended(&memory_of(&home), "- by hand")).unwrap();
    home.run(&["scan"]).exit(0);
    refused(&home, &["proposal-repropose", &change, "--actor", "mallory"], 3, "unknown-actor");
    home.set("operator", "names", Some("[\"alex\", \"sam\"]"));
    refused(&home, &["proposal-repropose", &change], 3, "actor-needed");
    home.json(&["proposal-repropose", &change, "--actor", "sam"]).exit(0);
    // The same proposal by somebody else is another one under its identity.
    refused(&home, &["proposal-repropose", &change, "--actor", "alex"], 4, "proposed-otherwise");
}
