//! A proposal turn dies at every boundary and is settled again: one set of events, equal in every byte.

use std::collections::BTreeMap;

use serde_json::Value;
use thought_contract::event::{EventType, SourceName};
use thought_contract::run::RunState;
use thought_store::row::{ProposalFilter, ProposalRow};

use crate::ports::{Says, Side, calls};
use crate::proposals::{correction, focus, home, memory, with_history};
use crate::support::{Home, TELEGRAM};
use thought_store_sqlite::Verdict;

const POINTS: [&str; 6] =
    ["start.before", "start.after", "request.before", "request.after", "settle.before", "settle.after"];

/// Everything that the declaration's source holds of a turn, without what names the attempt or the place in the store.
type Left = BTreeMap<String, (Option<String>, String, Value)>;

async fn left(home: &Home) -> (Left, Vec<ProposalRow>) {
    let events = home.reader().source_events(SourceName::agent(TELEGRAM), 0, 100).await.unwrap();
    let mut left = BTreeMap::new();
    for event in events {
        let mut payload: Value = serde_json::from_slice(event.payload.expose()).unwrap();
        if event.envelope.event_type == EventType::RunCompleted {
            payload.as_object_mut().unwrap().remove("attempt");
        }
        let e = event.envelope;
        let parent = e.parent_id.map(|id| id.to_string());
        let before = left.insert(e.id.to_string(), (parent, e.root_id.to_string(), payload));
        assert!(before.is_none(), "one event an id");
    }
    let filter = ProposalFilter { limit: 9, ..ProposalFilter::default() };
    let mut index = home.reader().proposals(filter).await.unwrap();
    let now = thought_contract::time::Timestamp::from_ms(0);
    for row in &mut index {
        // A crash leaves another number of events before it, and the wait behind it another time.
        row.position = 0;
        row.proposed_at = now;
    }
    (left, index)
}

/// One turn with all three proposals; how the process dies on its way is the caller's.
async fn turn(dies: impl AsyncFnOnce(&Home)) -> (Left, Vec<ProposalRow>) {
    let home = home().await;
    with_history(&home).await;
    let said = || Says::Reply(calls("", &[memory("Tea at five."), correction("latest"), focus()]));
    home.model.says([said(), said()]);
    dies(&home).await;
    let mut at_work = home.start().await;
    let trigger = home.message(2, "Remember tea, and you were wrong").await;
    for _look in 0..5_000 {
        if home.runs_on(&trigger).await.last().is_some_and(|run| run.state == RunState::Completed) {
            break;
        }
        if at_work.task.is_finished() {
            at_work.crashed().await;
            at_work = home.start().await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    home.until(&trigger, RunState::Completed).await;
    // What dies behind its settlement may be gone by now.
    if at_work.task.is_finished() {
        at_work.crashed().await;
    } else {
        at_work.ask_to_stop();
        drop(at_work.task.await);
    }
    assert!(home.crash.at.lock().unwrap().is_none() && home.faults.at.lock().unwrap().is_none(), "it died");
    left(&home).await
}

#[tokio::test]
async fn wherever_the_process_dies_one_set_of_events_with_equal_bytes_is_left() {
    let whole = turn(async |_| {}).await;
    // Of the first turn two, of the second five.
    assert_eq!((whole.0.len(), whole.1.len()), (7, 3));
    for point in POINTS {
        let again = turn(async |home| *home.crash.at.lock().unwrap() = Some((point, 1))).await;
        assert_eq!(again, whole, "{point}");
    }
}

#[tokio::test]
async fn wherever_a_commit_is_lost_one_set_of_events_with_equal_bytes_is_left() {
    let whole = turn(async |_| {}).await;
    for (side, nth) in [(Side::Before, 2), (Side::After, 2), (Side::Before, 3), (Side::After, 3)] {
        let spoiled = async |home: &Home| {
            *home.faults.at.lock().unwrap() = Some((nth, side, Verdict::Fail));
        };
        assert_eq!(turn(spoiled).await, whole, "{side:?} {nth}");
    }
}
