//! What a key does and does not: a word falls by its own letter, after a yes, and nothing else decides.

use rustix::process::{Pid, Signal, kill_process};
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::person::Person;
use crate::world::{calls, decisions, focus, memory, memory_of, review_process, states, suggesting};

#[tokio::test(flavor = "multi_thread")]
async fn content_is_dark_without_a_yes_and_then_one_letter_accepts() {
    let world = suggesting(&["- Likes quetzals."]).await;
    let before = memory_of(&world.home);
    let mut person = Person::at(&world.home, &[]);
    person.sees("1 suggestion waits for a word");
    person.sees("[y/N]");
    person.types("\n");
    let facts = person.presses_and_sees("a", "hint: its text was not shown; y shows it");
    assert!(facts.contains("memory-change") && facts.contains("17 characters, sha256 "), "{facts}");
    assert!(facts.contains(", current\r\n") && facts.contains("agent:"), "{facts}");
    for key in ["e", "t", " ", "G"] {
        person.presses_and_sees(key, "hint: ");
    }
    let dark = person.presses_and_sees("y", "what it would change:");
    assert!(!dark.contains("quetzals"), "{dark}");
    person.sees("+- Likes quetzals.");
    person.sees("lines 1–");
    person.presses("a");
    person.sees("decided: accept, materialized\r\n");
    person.sees("nothing waits for a word any more");
    let left = person.leaves();
    assert_eq!(left.code, "0");
    assert!(!left.screen.split("the reason:").next().unwrap().contains("They asked for it."));
    assert_eq!(memory_of(&world.home), format!("{before}\n- Likes quetzals.\n"));
    let decisions = decisions(&world.home);
    let payload = &decisions[0]["payload"];
    assert_eq!(
        (decisions.len(), &payload["surface"], &payload["operator"]),
        (1, &"cli".into(), &"alex".into())
    );
    assert_eq!(payload["disposition"], "accept");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_its_letter_decides_and_the_terminal_is_as_it_was() {
    let world = suggesting(&["- Likes quetzals."]).await;
    let before = memory_of(&world.home);
    let mut person = Person::consenting(&world.home, &[]);
    person.presses_and_sees("\r", "hint: return decides nothing");
    for key in ["x", "A", "Y", "\u{1b}[A", "aa", "accept", "\u{e9}", "\u{1b}"] {
        person.presses_and_sees(key, "hint: that key does nothing");
    }
    person.presses_and_sees("p", "hint: it stands on what is current");
    person.presses_and_sees("?", "every other key decide nothing.");
    let left = person.quits();
    assert!(left.mode.contains(" icanon") && left.mode.contains("isig"), "{}", left.mode);
    for (last, arguments) in [("\u{4}", &[][..]), ("\u{3}", &["--color", "always"])] {
        let mut person = Person::consenting(&world.home, arguments);
        person.presses(last);
        let left = person.leaves();
        assert!(left.screen.contains("1 suggestion waits for a word"), "{}", left.screen);
        assert!(left.code == "0" && left.mode.contains(" icanon"), "{} {}", left.code, left.mode);
    }
    assert!(decisions(&world.home).is_empty());
    assert_eq!(memory_of(&world.home), before);
    assert_eq!(states(&world.home), [("undecided".to_owned(), "current".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_it_is_refused_with_the_way_for_scripts() {
    let world = suggesting(&["- Likes quetzals."]).await;
    let done = world.home.run(&["review"]).exit(3);
    assert!(
        done.stderr.contains("hint: ") && done.stderr.contains("thought proposal-decision"),
        "{}",
        done.stderr
    );
    let told = world.home.json(&["review", "--acknowledge-sensitive-private"]).exit(3);
    assert_eq!(told.error()["code"], "not-a-terminal");
    assert!(told.stdout.is_empty() && decisions(&world.home).is_empty());
    // Somebody who is no operator is told before anything is shown.
    world.home.set("operator", "names", Some("[\"alex\", \"kim\"]"));
    let mut person = Person::at(&world.home, &[]);
    person.sees("hint: say who decides: --actor");
    assert_eq!(person.leaves().code, "3");
    let mut person = Person::at(&world.home, &["--color", "never"]);
    person.sees("hint: ");
    assert_eq!(person.leaves().code, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_to_end_it_decides_nothing_and_gives_the_terminal_back() {
    let world = suggesting(&["- Likes quetzals."]).await;
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut person = Person::consenting(&world.home, &[]);
        person.sees("[q]uit  [?]");
        let pid = i32::try_from(review_process(&world.home)).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
        let left = person.leaves();
        assert!(left.code == "0" && left.mode.contains(" icanon"), "{} {}", left.code, left.mode);
    }
    assert!(decisions(&world.home).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_that_does_not_hold_is_told_and_nothing_is_decided_on_it() {
    let world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    world.model.script(vec![calls(vec![focus(), memory("- Likes quetzals.")])]);
    let serve = world.serve();
    world.turn("Go on.", 1).await;
    serve.stop();
    let store = rusqlite::Connection::open(world.home.below("thought.db")).unwrap();
    store.execute_batch("DELETE FROM snapshots").unwrap();
    drop(store);
    let before = memory_of(&world.home);
    let mut person = Person::consenting(&world.home, &["--color", "never"]);
    person.sees("validate the chain: the snapshot does not hold");
    for key in ["a", "e", "r", "p"] {
        person.presses_and_sees(key, "hint: its evidence does not hold together");
    }
    person.presses("s");
    let left = person.leaves();
    // A focus waits for nobody, and never comes up.
    assert!(!left.screen.contains("focus-declaration"), "{}", left.screen);
    assert!(decisions(&world.home).is_empty() && memory_of(&world.home) == before);
}
