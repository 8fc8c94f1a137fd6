//! Decisions while `serve` is at work, before it, and across its deaths.

use std::fs;

use thought_testkit::serve::spawn;
use thought_testkit::world::World;
use thought_testkit::{WAIT_MAX, wait_until};

use crate::world::{
    UPDATED, corrects, decide, decide_and_die, own_words, remembers, says, system, texts, undecided, world,
};

const SUGGESTED: &str = "- Lives in Lisbon.";

fn memory(world: &World) -> String {
    fs::read_to_string(world.home.below("context/memory.md")).unwrap()
}

fn updates(world: &World) -> usize {
    texts(world).iter().filter(|text| *text == UPDATED).count()
}

/// The memory holds the suggestion once, one receipt and one notice say so, and the next turn knows it.
async fn is_known_once(world: &World, turn: usize) {
    world.home.wait_for_deliveries("notice:memory-updated", 1);
    world.turn("Where do I live?", turn).await;
    assert_eq!(memory(world).matches(SUGGESTED).count(), 1);
    let receipts = world.home.events("agent.memory-change.materialized@1");
    assert_eq!((receipts.len(), updates(world)), (1, 1));
    let told = world.home.deliveries("notice:memory-updated");
    assert_eq!((told.len(), &told[0]["parentId"]), (1, &receipts[0]["id"]));
    let request = world.model.requests().pop().unwrap();
    assert_eq!(system(&request).matches(SUGGESTED).count(), 1);
    assert!(!String::from_utf8(request.body).unwrap().contains(UPDATED), "a notice is no history");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_accepted_while_it_serves_is_told_once_and_known_to_the_next_turn() {
    let world = world(vec![remembers(SUGGESTED), says("Lisbon."), says("Lisbon, still.")]).await;
    let serve = world.serve();
    let reply = world.turn("Please remember that I live in Lisbon.", 1).await;
    assert_eq!(reply.text, "I saved that as a memory suggestion.");
    assert!(!system(&world.model.requests()[0]).contains(SUGGESTED));
    let told = decide(&world.home, &undecided(&world.home), "accept").exit(0).object();
    assert_eq!(told["status"], "materialized", "{told}");
    is_known_once(&world, 2).await;
    serve.stop();
    // Nobody says it again.
    let serve = world.serve();
    world.turn("And now?", 3).await;
    serve.stop();
    assert_eq!(updates(&world), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_whose_process_died_is_carried_out_by_serve_at_once() {
    let world = world(vec![remembers(SUGGESTED), says("Lisbon.")]).await;
    let serve = world.serve();
    world.turn("Please remember that I live in Lisbon.", 1).await;
    decide_and_die(&world.home, &undecided(&world.home));
    is_known_once(&world, 2).await;
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn report_17_a_decision_left_from_before_is_carried_out_at_the_start_wherever_that_dies() {
    // Each point is a death of serve between the decision and the notice.
    for point in ["intent.after", "exchange.after", "scan.after", "receipt.after"] {
        let mut world = world(vec![remembers(SUGGESTED), says("Lisbon.")]).await;
        let serve = world.serve();
        world.turn("Please remember that I live in Lisbon.", 1).await;
        serve.stop();
        decide_and_die(&world.home, &undecided(&world.home));
        assert!(!memory(&world).contains(SUGGESTED));
        world.home.env("THOUGHT_TEST_CRASH_POINT", point);
        let (mut dying, _log) = spawn(&world.home, &[]);
        assert!(!dying.wait_for_end("the death of serve").success(), "{point}");
        world.home.unset("THOUGHT_TEST_CRASH_POINT");
        let serve = world.serve();
        is_known_once(&world, 2).await;
        serve.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_whose_serve_was_killed_is_told_by_the_next_one_once() {
    let world = world(vec![remembers(SUGGESTED), says("Lisbon.")]).await;
    let serve = world.serve();
    world.turn("Please remember that I live in Lisbon.", 1).await;
    serve.kill();
    // With nobody to tell it, the command line writes the receipt.
    decide(&world.home, &undecided(&world.home), "accept").exit(0);
    let serve = world.serve();
    is_known_once(&world, 2).await;
    serve.kill();
    let serve = world.serve();
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    serve.stop();
    assert_eq!(updates(&world), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_correction_of_the_model_is_shown_and_not_told() {
    let world = world(vec![says("It is Monday."), corrects("It is Tuesday."), says("Yes.")]).await;
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    world.turn("No, it is Tuesday.", 2).await;
    decide_and_die(&world.home, &undecided(&world.home));
    world.home.wait_for_events("judgment.recorded@2", 1);
    world.turn("And now?", 3).await;
    serve.stop();
    let own = own_words(&world.model.requests()[2]);
    assert_eq!(own, ["It is Tuesday.", "I saved that as a proposed correction."]);
    assert_eq!(texts(&world).len(), 3, "{:?}", texts(&world));
    let judgment = world.home.events("judgment.recorded@2").remove(0);
    assert_eq!(judgment["payload"]["criterion"], "agent-self-correction");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_told_to_nobody_and_changes_nothing() {
    let world = world(vec![remembers(SUGGESTED), says("Porto?")]).await;
    let before = memory(&world);
    let serve = world.serve();
    world.turn("Please remember that I live in Lisbon.", 1).await;
    let told = decide(&world.home, &undecided(&world.home), "reject").exit(0).object();
    assert_eq!(told["status"], "rejected");
    world.turn("Where do I live?", 2).await;
    serve.stop();
    assert_eq!((memory(&world), updates(&world), texts(&world).len()), (before, 0, 2));
    assert!(world.home.events("judgment.recorded@2").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_notices_are_off_the_memory_changes_without_a_word() {
    let world = world(vec![remembers(SUGGESTED), says("Lisbon.")]).await;
    world.home.set("telegram", "notices", Some("false"));
    let serve = world.serve();
    world.turn("Please remember that I live in Lisbon.", 1).await;
    decide_and_die(&world.home, &undecided(&world.home));
    wait_until("the receipt", || !world.home.events("agent.memory-change.materialized@1").is_empty());
    world.turn("Where do I live?", 2).await;
    serve.stop();
    assert_eq!((updates(&world), texts(&world).len()), (0, 2));
    assert!(system(&world.model.requests()[1]).contains(SUGGESTED));
}
