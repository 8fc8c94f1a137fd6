//! The two documents of the context: seen as they are, missed without harm, and never through a link.

use std::fs;
use std::os::unix::fs::symlink;

use thought_testkit::wait_until;
use thought_testkit::world::World;

use crate::request::said;
use crate::{RUN_HELD, THOUGHT};

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_on_the_disk_is_seen_by_the_next_turn() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("before", 1).await;
    let memory = world.home.below("context/memory.md");
    let text = fs::read_to_string(&memory).unwrap();
    fs::write(&memory, format!("{text}\n- The plumber comes on Tuesdays.\n")).unwrap();
    world.turn("after", 2).await;
    // The same bytes again are a third version, since a version follows from the one before it.
    fs::write(&memory, &text).unwrap();
    world.turn("and back", 3).await;
    serve.stop();
    let requests = world.model.requests();
    let line = "- The plumber comes on Tuesdays.";
    let seen: Vec<usize> =
        requests.iter().map(|request| said(request).system.matches(line).count()).collect();
    assert_eq!(seen, [0, 1, 0]);
    let versions = world.home.events("source.file.version@1");
    let memory: Vec<_> = versions.iter().filter(|event| event["payload"]["path"] == "memory.md").collect();
    assert_eq!(memory.len(), 3);
    assert_eq!(memory[2]["payload"]["previousVersionId"], memory[1]["payload"]["versionId"]);
    assert_eq!(memory[0]["payload"]["sha256"], memory[2]["payload"]["sha256"]);
    assert_ne!(memory[0]["payload"]["versionId"], memory[2]["payload"]["versionId"]);
    assert_eq!(fs::read_to_string(world.home.below("context/memory.md")).unwrap(), text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_identity_holds_the_run_until_it_is_back() {
    let world = World::start(THOUGHT).await;
    let identity = world.home.below("context/identity.md");
    let aside = world.home.folder.path().join("aside.md");
    fs::rename(&identity, &aside).unwrap();
    let serve = world.serve();
    world.say("who are you?");
    let run = world.home.wait_for_runs("held", 1).remove(0);
    assert_eq!(run["reason"], "document-missing");
    world.home.wait_for_deliveries("notice:run-held", 1);
    assert_eq!((world.bot.sent()[0].text.as_str(), world.model.request_count()), (RUN_HELD, 0));
    fs::rename(&aside, &identity).unwrap();
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    assert_eq!(world.model.request_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_is_not_utf8_is_left_out_and_the_turn_goes_on() {
    let world = World::start(THOUGHT).await;
    let mut bytes = b"---\nid: memory\n---\nreadable part ".to_vec();
    bytes.extend([0xff, 0xfe, 0x80]);
    fs::write(world.home.below("context/memory.md"), &bytes).unwrap();
    let serve = world.serve();
    world.turn("hello", 1).await;
    serve.stop();
    assert!(!said(&world.model.requests()[0]).system.contains("readable part"));
    let versions = world.home.events("source.file.version@1");
    assert!(
        versions.iter().any(|event| event["payload"]["path"] == "memory.md"),
        "it is a version all the same"
    );
    assert_eq!(fs::read(world.home.below("context/memory.md")).unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn report_13_a_link_is_not_followed_for_a_document() {
    let world = World::start(THOUGHT).await;
    let outside = world.home.folder.path().join("outside.md");
    fs::write(&outside, "---\nid: memory\n---\nwords from outside the home\n").unwrap();
    let memory = world.home.below("context/memory.md");
    fs::remove_file(&memory).unwrap();
    symlink(&outside, &memory).unwrap();
    let serve = world.serve();
    world.say("hello");
    let runs = thought_testkit::wait_for("a run that waits or ended", || {
        let runs = world.home.runs();
        runs.first().is_some_and(|run| run["state"] != "running").then_some(runs)
    });
    let scanned = world.home.object(&["scan"]);
    assert!(scanned["refused"].to_string().contains("memory.md"), "{scanned}");
    serve.stop();
    for request in world.model.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains("words from outside"), "{runs:?}");
    }
    assert!(
        thought_testkit::canary::in_folder(&world.home.path, &["words from outside the home"]).is_empty()
    );
    let untouched = fs::read_to_string(&outside).unwrap();
    assert!(untouched.ends_with("words from outside the home\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn report_13_a_context_root_that_is_a_link_is_refused() {
    let world = World::start(THOUGHT).await;
    let context = world.home.below("context");
    let elsewhere = world.home.folder.path().join("elsewhere");
    fs::rename(&context, &elsewhere).unwrap();
    symlink(&elsewhere, &context).unwrap();
    for command in ["serve", "scan"] {
        let refused = world.home.json(&[command]).exit(3);
        assert!(refused.error()["code"].as_str().unwrap().starts_with("root-"), "{}", refused.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scan_tells_what_it_found_and_finds_it_once() {
    let world = World::start(THOUGHT).await;
    let first = world.home.object(&["scan"]);
    assert_eq!(first["added"].as_array().unwrap().len(), 2, "{first}");
    let again = world.home.object(&["scan"]);
    assert_eq!((again["added"].as_array().unwrap().len(), &again["unchanged"]), (0, &serde_json::json!(2)));
    fs::remove_file(world.home.below("context/memory.md")).unwrap();
    let removed = world.home.object(&["scan"]);
    assert_eq!(removed["removed"], serde_json::json!(["memory.md"]));
    assert_eq!(world.home.events("source.file.removed@1").len(), 1);
    // A file beside the two under a running serve is seen without a turn.
    let serve = world.serve();
    fs::write(world.home.below("context/memory.md"), "---\nid: memory\n---\nback\n").unwrap();
    wait_until("the version of the new file", || world.home.events("source.file.version@1").len() == 3);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_lock_silences_nobody_and_status_tells_of_it() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn("before", 1).await;
    let told = world.home.object(&["status"]);
    assert!(told["context"].get("problem").is_none(), "{told}");
    fs::write(world.home.below("context/.thought.lock"), "garbage").unwrap();
    let memory = world.home.below("context/memory.md");
    let text = fs::read_to_string(&memory).unwrap();
    fs::write(&memory, format!("{text}\n- The plumber comes on Tuesdays.\n")).unwrap();
    world.turn("after", 2).await;
    let told = world.home.object(&["status"]);
    assert_eq!(
        told["context"],
        serde_json::json!({"lock": "invalid", "problem": "its evidence is malformed"})
    );
    let page = world.home.run(&["status"]).exit(0).stdout;
    assert!(page.contains("lock       invalid") && page.contains("doctor --clear-lock"), "{page}");
    // Emptied, the edit is seen.
    world.home.run(&["doctor", "--clear-lock", "--yes"]).exit(0);
    world.turn("and then", 3).await;
    serve.stop();
    let requests = world.model.requests();
    let line = "- The plumber comes on Tuesdays.";
    let seen: Vec<usize> =
        requests.iter().map(|request| said(request).system.matches(line).count()).collect();
    assert_eq!(seen, [0, 0, 1]);
}
