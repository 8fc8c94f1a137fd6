//! The walk: oldest first, each on what is current, and what is stale proposed again with one key.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use thought_fakes::Reply;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::person::Person;
use crate::world::{calls, correction, decisions, memory_of, rows, states, suggesting};

fn pair(state: &str, base: &str) -> (String, String) {
    (state.to_owned(), base.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn five_suggestions_on_one_base_are_each_taken_in_by_hand() {
    let facts: Vec<String> = (1..=5).map(|number| format!("- fact {number}")).collect();
    let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
    let world = suggesting(&facts).await;
    let base = memory_of(&world.home);
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- fact 1");
    person.presses_and_sees("a", "decided: accept, materialized");
    for fact in &facts[1..] {
        let seen = person.sees(&format!("+{fact}"));
        assert!(
            seen.contains(", stale\r\n") && seen.contains("stale-base: the document has changed since"),
            "{seen}"
        );
        person.presses_and_sees("a", "hint: the document has changed since; p proposes it again");
        person.presses_and_sees("p", "proposed again as evt_");
        let again = person.sees(&format!("+{fact}"));
        assert!(
            again.contains("memory-change, repropose of evt_") && again.contains(", current\r\n"),
            "{again}"
        );
        assert!(again.contains("human:alex"), "{again}");
        person.presses_and_sees("a", "decided: accept, materialized");
    }
    person.sees("4 suggestions wait for a word");
    assert_eq!(person.leaves().code, "0");
    let all: String = facts.iter().map(|fact| format!("\n{fact}\n")).collect();
    assert_eq!(memory_of(&world.home), format!("{base}{all}"));
    assert_eq!(decisions(&world.home).len(), 5);
    let states = states(&world.home);
    assert_eq!(states.len(), 9);
    assert_eq!(states[1..5], vec![pair("undecided", "stale"); 4]);
    // What was proposed again says so, and the decision on it is shown.
    let again = &rows(&world.home)[5];
    assert!(again.get("run").is_none() && again["kind"] == "memory-change", "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_skipped_goes_on_waiting_and_what_is_rejected_changes_nothing() {
    let world = suggesting(&["- one", "- two"]).await;
    let before = memory_of(&world.home);
    let mut person = Person::at(&world.home, &["--color", "never", "--acknowledge-sensitive-private"]);
    person.sees("+- one");
    person.presses("s");
    person.sees("+- two");
    person.presses_and_sees("r", "decided: reject, rejected");
    person.sees("1 suggestion waits for a word");
    let left = person.leaves();
    assert!(!left.screen.contains("[y/N]"), "{}", left.screen);
    assert_eq!(states(&world.home), [pair("undecided", "current"), pair("projected", "current")]);
    assert_eq!((memory_of(&world.home), decisions(&world.home).len()), (before, 1));
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- one");
    person.quits();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_moves_before_the_word_is_seen_and_no_save_is_lost() {
    let world = suggesting(&["- one"]).await;
    let memory = world.home.below("context/memory.md");
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- one");
    person.sees("[q]uit  [?]");
    let by_hand = format!("{}- By hand.\n", memory_of(&world.home));
    std::fs::write(&memory, &by_hand).unwrap();
    person.types("a");
    // It is not decided: the expected base is another by now.
    let told = person.sees(", stale\r\n");
    assert!(told.contains("hint: ") && !told.contains("decided: accept"), "{told}");
    person.presses_and_sees("p", "proposed again as evt_");
    person.sees("By hand.");
    person.presses_and_sees("a", "decided: accept, materialized");
    person.leaves();
    assert_eq!(memory_of(&world.home), format!("{by_hand}\n- one\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_comes_too_late_is_told_and_one_key_proposes_it_again() {
    let world = suggesting(&["- one"]).await;
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- one");
    person.sees("[q]uit  [?]");
    // Somebody writes the context while the word is carried out.
    let lock =
        File::options().read(true).write(true).open(world.home.below("context/.thought.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    person.types("a");
    world.home.wait_for_events("agent.proposal.decision@1", 1);
    let by_hand = format!("{}- By hand.\n", memory_of(&world.home));
    std::fs::write(world.home.below("context/memory.md"), &by_hand).unwrap();
    drop(lock);
    person.sees("decided: accept, materialization-failed (stale-base)");
    person.sees("hint: the document changed since");
    person.presses_and_sees("a", "hint: that key does nothing");
    person.presses_and_sees("p", "proposed again as evt_");
    person.sees("By hand.");
    person.presses_and_sees("a", "decided: accept, materialized");
    person.leaves();
    assert_eq!(memory_of(&world.home), format!("{by_hand}\n- one\n"));
    assert_eq!(states(&world.home), [pair("failed", "stale"), pair("projected", "stale")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_decided_meanwhile_is_passed_over() {
    let world = suggesting(&["- one", "- two"]).await;
    let id = rows(&world.home)[0]["id"].as_str().unwrap().to_owned();
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- one");
    person.sees("[q]uit  [?]");
    let decided = world.home.json(&["proposal-decision", "--proposal", &id, "--disposition", "reject"]);
    assert_eq!(decided.exit(0).object()["status"], "rejected");
    person.types("a");
    person.sees("was decided meanwhile, and is projected");
    person.sees("+- two");
    person.quits();
    assert_eq!(decisions(&world.home).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn corrections_are_held_against_the_answer_as_it_counts_now() {
    let world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    world.model.script(vec![Reply::Text("It is Monday.".to_owned())]);
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    let output = world.home.runs()[0]["output"].as_str().unwrap().to_owned();
    let suggest = |text: &str| calls(vec![correction(&output, text)]);
    world.model.script(vec![suggest("It is Tuesday."), suggest("It is Wednesday.")]);
    world.turn("Wrong.", 2).await;
    world.turn("Still wrong.", 3).await;
    serve.stop();
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+It is Tuesday.");
    person.presses_and_sees("a", "decided: accept, projected");
    let second = person.sees("-It is Tuesday.");
    assert!(
        second.contains("base      stale") && second.contains("the answer has been corrected since"),
        "{second}"
    );
    person.sees("+It is Wednesday.");
    let list = rows(&world.home);
    assert_eq!((&list[0]["base"], &list[1]["base"]), (&json!("current"), &json!("stale")));
    person.presses_and_sees("a", "decided: accept, projected");
    person.leaves();
    let judgments = world.home.events("judgment.recorded@2");
    assert_eq!(judgments.len(), 2);
    assert_eq!(judgments[1]["payload"]["supersedes"], judgments[0]["id"]);
    let list = rows(&world.home);
    let id = |row: &serde_json::Value| row["id"].as_str().unwrap().to_owned();
    for (row, was, is) in [(&list[0], "Monday", "Tuesday"), (&list[1], "Tuesday", "Wednesday")] {
        let shown = world.home.object(&["proposal-show", &id(row), "--acknowledge-sensitive-private"]);
        let diff = shown["diff"].as_str().unwrap();
        assert!(diff.ends_with(&format!("-It is {was}.\n+It is {is}.\n")), "{diff}");
        assert_eq!(
            (&shown["state"], &shown["outcomes"][0]["outcome"]),
            (&json!("projected"), &json!("judged"))
        );
    }
    assert_eq!((&list[0]["base"], &list[1]["base"]), (&json!("stale"), &json!("current")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_document_by_its_repetition_comes_last_and_is_put_away() {
    let world = suggesting(&["- one", "- two", "- three"]).await;
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- one");
    person.presses_and_sees("a", "decided: accept, materialized");
    person.sees("+- two");
    person.presses_and_sees("p", "proposed again as evt_");
    person.sees(", current\r\n");
    person.presses_and_sees("a", "decided: accept, materialized");
    person.quits();
    let written = memory_of(&world.home);
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- three");
    person.presses("s");
    person.sees("again     proposed again as evt_");
    person.sees("+- two");
    person.presses_and_sees("p", "hint: it was proposed again, accepted and written");
    person.presses_and_sees("r", "decided: reject, rejected");
    person.sees("1 suggestion waits for a word");
    person.leaves();
    assert_eq!(memory_of(&world.home), written);
}
