//! What a person's word costs does not depend on the log: counted at a thousand events and at a million.

use std::sync::Arc;

use thought_authority::materialize::NoCrashPoints;
use thought_contract::payload::Disposition;
use thought_protocol::EventId;
use thought_store::row::Counters;
use thought_store_sqlite::{OpenOptions, PageCounting};

use crate::world::{Ask, Side, World, shown};

/// Adds events of other conversations to the person's source until there are this many in all.
fn fill(world: &World, events: u64) {
    let raw = world.sql();
    raw.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN").unwrap();
    let count = |sql: &str| -> u64 { raw.query_row(sql, [], |row| row.get(0)).unwrap() };
    let last = count("SELECT max(position) FROM events");
    let head = count("SELECT head FROM sources WHERE name = 'telegram:stream'");
    let copies = events - count("SELECT count(*) FROM events");
    let mut columns = raw.prepare("SELECT name FROM pragma_table_info('events')").unwrap();
    let columns: Vec<String> = columns.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let values = columns.iter().map(|column| match column.as_str() {
        "position" => "?2 + n",
        "id" | "root_id" | "parent_id" => "'evt_' || printf('%032x', n)",
        "sequence" => "?3 + n",
        "conversation" => "'other:' || (n % 50)",
        "conversation_ordinal" => "n",
        "payload" => "x'7b7d'",
        // None of these is indexed, and a million of them are many bytes.
        "payload_sha256" | "previous_sha256" | "chain_sha256" | "equality_sha256" => "'x'",
        other => other,
    });
    let values: Vec<&str> = values.collect();
    let sql = format!(
        "WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ?1)
         INSERT INTO events ({}) SELECT {} FROM copy,
             (SELECT * FROM events WHERE type LIKE '%source.telegram.message@1' ORDER BY position LIMIT 1)",
        columns.join(", "),
        values.join(", ")
    );
    assert_eq!(raw.execute(&sql, [copies, last, head]).unwrap() as u64, copies);
    let changed = raw.execute("UPDATE sources SET head = head + ?1 WHERE name = 'telegram:stream'", [copies]);
    assert_eq!(changed.unwrap(), 1);
    raw.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert_eq!(count("SELECT count(*) FROM events"), events);
}

/// What one step of the way cost.
async fn cost<T>(side: &Side, step: impl Future<Output = T>) -> (T, Counters) {
    let before = side.reader.counters();
    let done = step.await;
    let after = side.reader.counters();
    let counters = Counters {
        commits: after.commits - before.commits,
        commands: after.commands - before.commands,
        rows_read: after.rows_read - before.rows_read,
        rows_written: after.rows_written - before.rows_written,
        pages_read: after.pages_read - before.pages_read,
    };
    (done, counters)
}

/// A turn with a change and a correction of the answer before it, each validated, decided and carried out; the costs in
/// that order.
async fn word(world: &World, number: i64) -> Vec<Counters> {
    let options = OpenOptions { page_counting: PageCounting::On, ..OpenOptions::create() };
    let side = Side::open_with(world.home(), Arc::new(NoCrashPoints), options);
    let before = side.turn(number, &[]).await;
    let asks = [Ask::Append(format!("- fact {number}")), Ask::Correct(before.output, "four".to_owned())];
    let proposals: Vec<EventId> = side.turn(number + 1, &asks).await.proposals;
    let mut costs = Vec::new();
    for (proposal, status) in proposals.iter().zip(["materialized", "projected"]) {
        let (verified, counters) = cost(&side, side.validate(proposal)).await;
        assert_eq!(verified.unwrap().proposal().envelope.id, *proposal);
        costs.push(counters);
        let (decided, counters) = cost(&side, side.decide(proposal, Disposition::Accept)).await;
        decided.unwrap();
        costs.push(counters);
        let (outcome, counters) = cost(&side, side.project(proposal)).await;
        assert_eq!(shown(&outcome), status);
        costs.push(counters);
    }
    costs
}

/// What a deeper tree may add to the pages of one step.
const PAGES_MORE_MAX: u64 = 64;

#[tokio::test]
async fn a_chain_is_validated_by_the_same_rows_among_a_thousand_events_and_a_million() {
    let mut costs = Vec::new();
    for events in [1_000, 1_000_000] {
        let world = World::new().await;
        // A conversation that is longer than a context.
        for number in 1..=20 {
            world.side.turn(number, &[]).await;
        }
        fill(&world, events);
        costs.push(word(&world, 101).await);
    }
    let [small, large] = costs.as_slice() else { panic!("two stores") };
    for (step, (small, large)) in small.iter().zip(large).enumerate() {
        println!("step {step}: {small:?} {large:?}");
        let rows = |counters: &Counters| {
            (counters.rows_read, counters.rows_written, counters.commits, counters.commands)
        };
        assert_eq!(rows(small), rows(large), "step {step}");
        assert!(small.rows_read > 0);
        // A look through the log that gives no row would show here: a million events are thousands of pages.
        assert!(large.pages_read <= small.pages_read + PAGES_MORE_MAX, "step {step}: {small:?} {large:?}");
    }
    assert!(small.iter().map(|counters| counters.commits).sum::<u64>() <= 12);
}
