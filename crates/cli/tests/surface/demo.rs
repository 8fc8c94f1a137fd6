//! The demonstration: the product's own code on a fresh machine, which tells nothing that is not in its store.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use thought_testkit::run::{Binary, argument};

use crate::THOUGHT;

fn ids(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.starts_with("evt_") || text.starts_with("run_") => {
            found.insert(text.clone());
        }
        Value::Array(list) => list.iter().for_each(|value| ids(value, found)),
        Value::Object(members) => members.values().for_each(|value| ids(value, found)),
        _ => {}
    }
}

fn binary(temporary: &tempfile::TempDir) -> Binary {
    let mut binary = Binary::new(THOUGHT);
    binary.env.insert("TMPDIR".to_owned(), argument(temporary.path()).to_owned());
    binary
}

#[test]
fn the_demonstration_tells_only_what_its_store_holds() {
    let temporary = tempfile::tempdir().unwrap();
    let binary = binary(&temporary);
    let steps = binary.run(&["demo", "--json"]).exit(0).lines();
    let named: BTreeSet<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    for step in [
        "home", "jail", "you", "event", "run", "model", "settled", "bot", "proposal", "history", "diff",
        "decide", "written", "notice", "known", "receipt", "co", "response", "read", "done",
    ] {
        assert!(named.contains(step), "{step}: {named:?}");
    }
    let home = PathBuf::from(steps.last().unwrap()["home"].as_str().unwrap());
    assert!(home.starts_with(temporary.path().canonicalize().unwrap()), "{}", home.display());
    let look = |command: &[&str]| {
        let mut arguments = vec!["--home", argument(&home), "--json"];
        arguments.extend(command);
        binary.run(&arguments).exit(0).lines()
    };
    let mut told = BTreeSet::new();
    steps.iter().for_each(|step| ids(step, &mut told));
    assert!(told.len() >= 10, "{told:?}");
    let mut held = BTreeSet::new();
    look(&["event-list"]).iter().chain(&look(&["run-list"])).for_each(|value| ids(value, &mut held));
    let missing: Vec<_> = told.difference(&held).collect();
    assert!(missing.is_empty(), "told and not held: {missing:?}");
    assert_eq!(look(&["status"])[0]["runs"]["completed"], 4);
    assert_eq!(look(&["event-list", "--type", "delivery.telegram@1"]).len(), 4);

    // It ends with another agent's message: one typed response under it, read back, and nothing in Telegram.
    let order: Vec<&str> = steps.iter().rev().take(6).map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(order, ["done", "read", "response", "run", "event", "co"]);
    let mail = look(&["event-list", "--type", "source.agent.message@1"]);
    let responses = look(&["event-list", "--type", "derived.agent.message@1"]);
    assert_eq!((mail.len(), responses.len()), (1, 1));
    assert_eq!(responses[0]["parentId"], mail[0]["id"]);
    let read = steps.iter().find(|step| step["step"] == "read").unwrap();
    assert_eq!((&read["requests"], &read["telegramMessages"]), (&1.into(), &0.into()));

    let step = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap();
    assert_eq!(step("history")["call"], "request_memory_change");
    assert!(steps.iter().filter(|step| step["step"] == "bot").all(|step| step["requests"] == 1));

    // The suggestion was shown before it was accepted, and the word, the file and the receipt are one chain.
    let place = |name: &str| steps.iter().position(|step| step["step"] == name).unwrap();
    let story = ["proposal", "history", "diff", "decide", "written", "notice", "known"].map(place);
    assert!(story.is_sorted(), "{story:?}");
    assert!(step("diff")["diff"].as_str().unwrap().ends_with("\n+- Lives in Lisbon.\n"));
    let proposals = look(&["proposal-list"]);
    assert_eq!(proposals.len(), 1);
    assert_eq!(
        (&proposals[0]["id"], &proposals[0]["state"]),
        (&step("proposal")["proposal"], &"projected".into())
    );
    let one = |event_type: &str| {
        let events = look(&["event-list", "--type", event_type]);
        assert_eq!(events.len(), 1, "{event_type}");
        events[0].clone()
    };
    let decision = one("agent.proposal.decision@1");
    let receipt = one("agent.memory-change.materialized@1");
    assert_eq!(
        (&decision["id"], &decision["parentId"]),
        (&step("decide")["event"], &step("proposal")["proposal"])
    );
    assert_eq!(
        (&receipt["id"], &receipt["parentId"]),
        (&step("written")["receipt"], &step("decide")["event"])
    );
    let memory = fs::read_to_string(home.join("context/memory.md")).unwrap();
    assert!(memory.ends_with("\n- Lives in Lisbon.\n"), "{memory}");
    assert_eq!(step("written")["bytes"], memory.len());
    let known = look(&["context-show", step("known")["run"].as_str().unwrap()]);
    let named = known[0]["manifest"]["documents"].as_array().unwrap().iter();
    let named: Vec<&Value> = named.map(|document| &document["versionId"]).collect();
    assert!(named.contains(&&step("written")["version"]), "{named:?}");
}

#[test]
fn the_demonstration_prints_where_to_look_and_leaves_its_home() {
    let temporary = tempfile::tempdir().unwrap();
    let printed = binary(&temporary).run(&["demo"]).exit(0).stdout;
    let [home] =
        &fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()[..]
    else {
        panic!("one home is left")
    };
    assert!(printed.contains(argument(home)), "{printed}");
    for word in [
        "update",
        "evt_",
        "run_",
        "snap_",
        "receipt",
        "status",
        "event-list",
        "lineage evt_",
        "nothing in memory.md has changed yet",
        "+- Lives in Lisbon.",
        "accepted by alex (demo)",
        "Memory updated.",
        "In Lisbon.",
    ] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
}

#[test]
fn the_demonstration_refuses_a_home_that_is_there() {
    let temporary = tempfile::tempdir().unwrap();
    let used = thought_testkit::home::Home::init(THOUGHT, "ollama");
    let refused = binary(&temporary).run(&["--home", argument(&used.path), "--json", "demo"]).exit(3);
    assert_eq!(refused.error()["code"], "home-exists");
    assert!(!used.below("thought.db").exists());
    let named = temporary.path().join("named");
    let shown = binary(&temporary).run(&["--home", argument(&named), "--json", "demo"]).exit(0).lines();
    assert_eq!(shown.last().unwrap()["home"], argument(&named.canonicalize().unwrap()));
    // What it served with is gone: the home can be looked at, and reaches nothing.
    let again = binary(&temporary).run(&["--home", argument(&named), "--json", "demo"]).exit(3);
    assert_eq!(again.error()["code"], "home-exists");
}
