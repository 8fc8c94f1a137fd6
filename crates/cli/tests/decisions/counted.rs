//! What deciding and carrying out one change costs: durable commits, counted in the write-ahead log, and calls that make
//! bytes durable, counted by the kernel's tracer.

use std::fs;

use thought_testkit::run::{Binary, argument};
use thought_testkit::wal::commits;

use crate::world::{CHANGE, CORRECTION, decided, id_of, memory_of, receipts, three, word};

/// Commits, and calls that make bytes durable, of one change at most.
const DURABLE_MAX: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_takes_twelve_durable_commits_at_most() {
    let (home, change) = three(CHANGE).await;
    let correction = id_of(&home.lines(&["proposal-list", "--kind", CORRECTION])[0]);
    let database = home.below("thought.db");
    // While somebody else has the store open, no process that ends begins the log anew.
    let open = rusqlite::Connection::open(&database).unwrap();
    let heads: u64 = open.query_row("SELECT count(*) FROM sources", [], |row| row.get(0)).unwrap();
    assert!(heads > 0);
    decided(&home, &correction, "reject", "rejected");
    let before = commits(&database);
    decided(&home, &change, "accept", "materialized");
    let after = commits(&database);
    assert_eq!(before.salt, after.salt, "the log was not begun anew in between");
    let made = after.count - before.count;
    println!("{made} commits");
    assert!((3..=DURABLE_MAX).contains(&made), "{made} commits");
    // Told again, nothing is committed.
    decided(&home, &change, "accept", "materialized");
    home.json(&["proposal-project"]).exit(0);
    assert_eq!(commits(&database), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_takes_twelve_calls_that_make_bytes_durable_at_most() {
    let (home, change) = three(CHANGE).await;
    let base = memory_of(&home);
    let trace = home.folder.path().join("trace");
    let tracer = Binary::new("/usr/bin/strace");
    assert!(tracer.path.exists(), "this test counts with strace, and it is not on this machine");
    let mut arguments = vec![
        "-f",
        "-qq",
        "-e",
        "trace=fsync,fdatasync,sync,syncfs,sync_file_range,msync",
        "-o",
        argument(&trace),
        argument(&home.binary.path),
        "--home",
        argument(&home.path),
        "--json",
    ];
    arguments.extend(word(&change, "accept", &[]));
    let told = tracer.run(&arguments).exit(0).object();
    assert_eq!(told["status"], "materialized");
    assert!(memory_of(&home) != base && receipts(&home).len() == 1);
    let calls = fs::read_to_string(&trace).unwrap();
    let count = calls.lines().filter(|line| line.contains("sync") && !line.contains("resumed>")).count();
    println!("{count} calls:\n{calls}");
    assert!((3..=DURABLE_MAX).contains(&count), "{count} calls:\n{calls}");
}
