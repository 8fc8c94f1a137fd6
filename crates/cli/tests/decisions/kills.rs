//! The deciding process is killed at every step: the old bytes and no receipt, or the new bytes and, after
//! `proposal-project`, the next `serve` or the same word again, exactly one.

use std::os::unix::process::ExitStatusExt;

use thought_authority::materialize::CRASH_POINTS;
use thought_testkit::home::Home;
use thought_testkit::serve::spawn;
use thought_testkit::wait_for;
use thought_testkit::world::{Speaks, World};

use crate::template::LINE;
use crate::world::{
    CHANGE, CORRECTION, appended, decide, decided, decisions, failures, id_of, judgments, memory_of,
    receipts, state, three,
};

/// Who comes after the kill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Healer {
    Project,
    Serve,
    SameWord,
}

impl Healer {
    async fn heal(self, home: Home, id: &str) -> Home {
        match self {
            Self::Project => {
                let done = home.json(&["proposal-project"]).exit(0);
                // Killed behind the receipt, nothing is left to do.
                assert!(done.lines().iter().all(|told| told["status"] == "materialized"), "{}", done.stdout);
                home
            }
            Self::SameWord => {
                decided(&home, id, "accept", "materialized");
                home
            }
            Self::Serve => {
                let world = World::around(home, Speaks::Anthropic, None).await;
                let serve = world.serve();
                wait_for("the receipt", || (receipts(&world.home).len() == 1).then_some(()));
                serve.stop();
                world.home
            }
        }
    }
}

async fn killed_at(point: &str) {
    for healer in [Healer::Project, Healer::Serve, Healer::SameWord] {
        let (mut home, id) = three(CHANGE).await;
        let base = memory_of(&home);
        home.env("THOUGHT_TEST_CRASH_POINT", point);
        let killed = decide(&home, &id, "accept", &[]);
        assert_eq!(
            (killed.code, killed.stdout.as_str()),
            (None, ""),
            "{point} was not passed: {}",
            killed.stderr
        );
        home.unset("THOUGHT_TEST_CRASH_POINT");
        assert_eq!(decisions(&home).len(), 1, "the decision survives");
        let count = receipts(&home).len();
        match memory_of(&home) {
            old if old == base => assert_eq!(count, 0),
            new => assert_eq!(new, appended(&base, LINE)),
        }
        // What was written, or will be, is never told to have been rejected.
        decide(&home, &id, "reject", &[]).exit(4);

        let home = healer.heal(home, &id).await;
        assert_eq!(memory_of(&home), appended(&base, LINE));
        assert_eq!((receipts(&home).len(), decisions(&home).len()), (1, 1));
        assert!(failures(&home).is_empty());
        assert_eq!(state(&home, &id), "projected");
        assert!(home.json(&["proposal-project"]).exit(0).stdout.is_empty());
        // What was left behind goes with the next change.
        let again = home.object(&["proposal-revert", &id]);
        decided(&home, again["proposal"].as_str().unwrap(), "accept", "materialized");
        assert_eq!(memory_of(&home), base);
        let mut names: Vec<String> = std::fs::read_dir(home.below("context"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, [".thought.lock", "identity.md", "memory.md"]);
        home.json(&["verify"]).exit(0);
    }
}

macro_rules! points {
    ($($name:ident: $point:literal),* $(,)?) => {
        const NAMED: &[&str] = &[$($point),*];
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                killed_at($point).await;
            }
        )*
    };
}

points! {
    report_17_killed_between_decision_and_projection: "decision.after",
    killed_before_the_intent: "intent.before",
    killed_after_the_intent: "intent.after",
    killed_with_the_temporary_file_written: "temporary.after",
    killed_before_the_exchange: "exchange.before",
    killed_after_the_exchange: "exchange.after",
    killed_before_the_scan: "scan.before",
    killed_after_the_scan: "scan.after",
    killed_after_the_receipt: "receipt.after",
    killed_after_the_temporary_file_is_removed: "removed.after",
}

/// Passed only when a person saves in the same moment: killed at in the room's own tests.
const OF_A_SAVE_IN_BETWEEN: &str = "back.after";

#[test]
fn every_point_of_a_materialization_is_killed_at() {
    assert!(CRASH_POINTS.iter().all(|point| NAMED.contains(point) != (*point == OF_A_SAVE_IN_BETWEEN)));
    assert_eq!(NAMED.len(), CRASH_POINTS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_serve_that_is_killed_while_it_carries_out_is_healed_by_the_next() {
    for point in ["intent.after", "exchange.after", "scan.after", "receipt.after"] {
        let (mut home, id) = three(CHANGE).await;
        let base = memory_of(&home);
        home.env("THOUGHT_TEST_CRASH_POINT", "decision.after");
        assert_eq!(decide(&home, &id, "accept", &[]).code, None);
        home.env("THOUGHT_TEST_CRASH_POINT", point);
        let mut world = World::around(home, Speaks::Anthropic, None).await;
        let (mut child, log) = spawn(&world.home, &[]);
        let status = child.wait_for_end(&format!("the kill at {point}"));
        assert_eq!(status.signal(), Some(9), "{status} {}", std::fs::read_to_string(log).unwrap());
        world.home.unset("THOUGHT_TEST_CRASH_POINT");
        let serve = world.serve();
        wait_for("the receipt", || (receipts(&world.home).len() == 1).then_some(()));
        serve.stop();
        assert_eq!(memory_of(&world.home), appended(&base, LINE), "{point}");
        assert_eq!((receipts(&world.home).len(), decisions(&world.home).len()), (1, 1), "{point}");
        assert!(failures(&world.home).is_empty(), "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_whose_process_was_killed_is_judged_by_whoever_comes_next() {
    for is_served in [false, true] {
        let (mut home, id) = three(CORRECTION).await;
        home.env("THOUGHT_TEST_CRASH_POINT", "decision.after");
        assert_eq!(decide(&home, &id, "accept", &[]).code, None);
        home.unset("THOUGHT_TEST_CRASH_POINT");
        assert!(judgments(&home).is_empty());
        let home = if is_served {
            let world = World::around(home, Speaks::Anthropic, None).await;
            let serve = world.serve();
            wait_for("the judgment", || (judgments(&world.home).len() == 1).then_some(()));
            serve.stop();
            world.home
        } else {
            let told = home.object(&["proposal-project"]);
            assert_eq!((&told["status"], &told["proposal"]), (&"projected".into(), &id.clone().into()));
            home
        };
        assert_eq!((judgments(&home).len(), decisions(&home).len()), (1, 1));
        assert_eq!(judgments(&home)[0]["feedback"], id_of(&decisions(&home)[0]));
    }
}
