//! A person's words stand in the events that are made to hold them, and nowhere else.

use thought_testkit::canary;
use thought_testkit::serve::Serve;

use crate::world::{decide, remembers, says, undecided, world};

#[tokio::test(flavor = "multi_thread")]
async fn no_word_of_a_correction_or_a_memory_reaches_a_log_an_argument_or_a_name() {
    const SAID: &str = "canary-of-the-answer";
    const CORRECTION: &str = "canary-of-the-correction";
    const UNMATCHED: &str = "canary-of-the-unmatched";
    const MEMORY: &str = "canary-of-the-memory";
    let words = [SAID, CORRECTION, UNMATCHED, MEMORY];
    let world = world(vec![says(SAID), remembers(MEMORY), says("Yes.")]).await;
    let serve = Serve::start_with(&world.home, &["--log-level", "trace"]);
    world.say(&format!("/correct {UNMATCHED}"));
    world.home.wait_for_deliveries("notice:not-matched", 1);
    world.turn("Say it.", 1).await;
    world.say(&format!("/correct {CORRECTION}"));
    world.home.wait_for_deliveries("notice:corrected", 1);
    world.turn("Remember it.", 2).await;
    let done = decide(&world.home, &undecided(&world.home), "accept").exit(0);
    world.home.wait_for_deliveries("notice:memory-updated", 1);
    world.turn("Well?", 3).await;
    assert!(canary::in_process(serve.pid(), &words).is_empty());
    let log = serve.stop();
    assert!(log.contains("correction refused") && log.contains("correction recorded"), "it looked");
    let mut told = format!("{log}{}{}", done.stdout, done.stderr);
    for list in ["event-list", "run-list", "proposal-list", "judgment-list", "status"] {
        let printed = world.home.json(&[list]).exit(0);
        told.push_str(&format!("{}{}", printed.stdout, printed.stderr));
    }
    assert_eq!(canary::in_bytes("what was told", told.as_bytes(), &words), [""; 0]);
    for word in words {
        assert!(
            !world.home.events("notice.requested@1").iter().any(|event| event.to_string().contains(word))
        );
        assert!(
            !world.home.events("delivery.telegram@1").iter().any(|event| event.to_string().contains(word))
        );
    }
}
