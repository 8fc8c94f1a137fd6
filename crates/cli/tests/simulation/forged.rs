//! That what must hold can fail: logs and worlds that were tampered with, each of which must be reported.

use std::collections::BTreeMap;

use thought_contract::event::{EventType, StoredEvent};
use thought_protocol::{Sensitive, Sha256Hex};
use thought_store::Reads;
use thought_store::row::EventFilter;

use crate::dice::Dice;
use crate::driver::Driver;
use crate::engine::now;
use crate::invariants::{self, Checker, Held};
use crate::world::CHATS;

/// Rounds of a kind world within which everything has happened that can be forged.
const ROUNDS_MAX: u32 = 60;
const NEEDED: [EventType; 4] = [
    EventType::RunCompleted,
    EventType::ProposalDecision,
    EventType::MemoryMaterialized,
    EventType::JudgmentRecorded,
];

/// A kind world in which each of the needed events came about, and its log.
fn told() -> (Driver, Vec<StoredEvent>) {
    let mut driver = Driver::new(Dice::new(1), 0);
    let mut dice = Dice::new(2);
    driver.step("begin", None, &mut dice).unwrap().unwrap();
    for _ in 0..ROUNDS_MAX {
        driver.speak(&mut dice);
        for name in ["everything", "decide", "project"] {
            // Not in every round does something wait.
            let _done = driver.step(name, None, &mut dice).unwrap();
        }
        driver.check().unwrap();
        if NEEDED.iter().all(|event_type| driver.checker.seen.contains_key(event_type)) {
            let filter = EventFilter { limit: 10_000, ..EventFilter::default() };
            let events = now(driver.living().engine.events(filter)).unwrap();
            return (driver, events);
        }
    }
    panic!("a kind world has each of {NEEDED:?}");
}

fn looked_at(driver: &mut Driver, events: &[StoredEvent]) -> Held {
    let engine = driver.living().engine.clone();
    let mut checker = Checker::default();
    events.iter().try_for_each(|event| checker.look(&engine, event))
}

fn first(events: &[StoredEvent], event_type: EventType) -> usize {
    events.iter().position(|event| event.envelope.event_type == event_type).unwrap()
}

/// Whoever forges well forges places and hashes too.
fn linked_again(mut events: Vec<StoredEvent>) -> Vec<StoredEvent> {
    let mut heads: BTreeMap<String, (u64, Sha256Hex)> = BTreeMap::new();
    for (event, position) in events.iter_mut().zip(1..) {
        let head = heads.entry(event.envelope.source.to_string()).or_insert((0, Sha256Hex::zero()));
        event.envelope.position = position;
        event.envelope.sequence = head.0 + 1;
        event.envelope.previous_sha256 = head.1.clone();
        event.chain_sha256 = event.envelope.chain_sha256().unwrap();
        *head = (event.envelope.sequence, event.chain_sha256.clone());
    }
    events
}

#[test]
fn a_forged_log_is_reported() {
    let (mut driver, events) = told();
    assert_eq!(looked_at(&mut driver, &events), Ok(()));
    assert_eq!(looked_at(&mut driver, &linked_again(events.clone())), Ok(()), "linking forges nothing");
    let mut reported = |what: &str, forge: &dyn Fn(&mut Vec<StoredEvent>)| {
        let mut forged = events.clone();
        forge(&mut forged);
        assert_eq!(looked_at(&mut driver, &forged), Err(what.to_owned()));
    };
    let completed = first(&events, EventType::RunCompleted);
    reported("a sequence has a gap", &|log| drop(log.remove(completed)));
    reported("a position came twice", &|log| log.insert(completed, log[completed].clone()));
    reported("a payload is another", &|log| log[completed].payload = Sensitive::new(b"{}".to_vec()));
    reported("an event has another hash", &|log| {
        log[completed].payload = Sensitive::new(b"{}".to_vec());
        log[completed].envelope.payload_sha256 = Sha256Hex::of(b"{}");
    });
    reported("a chain does not hang together", &|log| {
        log[completed].envelope.previous_sha256 = Sha256Hex::of(b"other");
    });
    for (event_type, what) in [
        (EventType::RunCompleted, "a run was settled twice"),
        (EventType::ProposalDecision, "a proposal was decided twice"),
        (EventType::MemoryMaterialized, "a decision was written twice"),
    ] {
        reported(what, &|log| {
            let again = log[first(log, event_type)].clone();
            log.push(again);
            *log = linked_again(std::mem::take(log));
        });
    }
    let outputs = vec![EventType::MessageObservation, EventType::DerivedAgentMessage];
    for (gone, what) in [
        (vec![EventType::ProposalDecision], "a receipt without a decision"),
        (outputs, "a judgment of nothing"),
    ] {
        reported(what, &|log| {
            log.retain(|event| !gone.contains(&event.envelope.event_type));
            *log = linked_again(std::mem::take(log));
        });
    }
}

#[test]
fn what_was_sent_twice_asked_for_too_often_or_stands_where_no_words_may_is_reported() {
    let (mut driver, _) = told();
    let engine = driver.living().engine.clone();
    let requests = driver.world.provider.requests();
    assert_eq!(invariants::whole(&engine, requests), Ok(()));
    let whole = invariants::whole(&engine, u64::MAX);
    assert_eq!(whole, Err("more requests than attempts".to_owned()));

    assert_eq!(driver.once(), Ok(()));
    let text = driver.world.channel.arrived().into_iter().find(|(_, text)| text.contains("kanari-a"));
    driver.world.channel.arrives_again(CHATS[0], &text.unwrap().1);
    assert_eq!(driver.once(), Err("a message was sent twice on a guess".to_owned()));

    let database = driver.world.database();
    assert_eq!(invariants::dark(&database), Ok(()));
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch("CREATE TABLE planted (name TEXT, payload TEXT)").unwrap();
    for (column, words, what) in [
        ("name", "kanari-m1", "words stand in planted.name"),
        ("payload", "kanari-s1", "a stranger's words stand in planted.payload"),
    ] {
        connection.execute(&format!("INSERT INTO planted ({column}) VALUES (?1)"), [words]).unwrap();
        assert_eq!(invariants::dark(&database), Err(what.to_owned()));
        connection.execute("DELETE FROM planted", []).unwrap();
    }
}
