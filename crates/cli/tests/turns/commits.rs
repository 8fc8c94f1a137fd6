//! What a turn costs: durable commits, counted in the write-ahead log from outside.

use std::fs;

use thought_testkit::wait_until;
use thought_testkit::wal::{Commits, commits};
use thought_testkit::world::World;

use crate::THOUGHT;

/// Commits from spooled update to receipt, both included.
const COMMITS_MAX: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_one_chunk_takes_six_durable_commits_at_most() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    // The first turn also brings what is written once only.
    world.turn("first", 1).await;
    let database = world.home.below("thought.db");
    for number in 2..6 {
        let before = settled(&world, number - 1);
        world.turn("again", number).await;
        let after = settled(&world, number);
        assert_eq!(before.salt, after.salt, "the log was not begun anew in between");
        let made = after.count - before.count;
        println!("turn {number}: {made} commits");
        assert!((1..=COMMITS_MAX).contains(&made), "turn {number} took {made} commits");
    }
    let memory = fs::read_to_string(format!("/proc/{}/status", serve.pid())).unwrap();
    let resident = memory.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    println!("resident in this build: {resident}");
    serve.stop();
    assert!(database.exists());
}

/// The log's count once nothing of a turn is under way: everything confirmed, and progress at the head.
fn settled(world: &World, turns: usize) -> Commits {
    wait_until("a turn that is over", || {
        let status = world.home.object(&["status"]);
        let consumers = status["consumers"].as_array().unwrap();
        let telegram = consumers.iter().find(|row| row["source"] == "telegram:stream").unwrap();
        telegram["progress"] == turns
            && status["updates"]["pending"] == 0
            && world.bot.pending_updates().is_empty()
    });
    commits(&world.home.below("thought.db"))
}
