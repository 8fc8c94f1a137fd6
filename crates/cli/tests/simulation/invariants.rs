//! What must hold after every step, looked at in what came since the step before; and at the end, in everything.

use std::collections::{BTreeMap, BTreeSet};

use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::RunState;
use thought_protocol::{EventId, RunId, Sha256Hex};
use thought_store::Reads;
use thought_store::row::{AttemptRow, EventFilter, RunFilter};
use thought_store_sqlite::SqliteStore;

use crate::engine::now;

/// A claim that does not hold.
pub(crate) type Held = Result<(), String>;

fn claim(holds: bool, what: &str) -> Held {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Checker {
    position: u64,
    heads: BTreeMap<String, (u64, Sha256Hex)>,
    ended: BTreeSet<RunId>,
    decided: BTreeSet<EventId>,
    written: BTreeSet<EventId>,
    outputs: BTreeSet<EventId>,
    judged: BTreeMap<EventId, EventId>,
    pub(crate) seen: BTreeMap<EventType, u64>,
}

impl Checker {
    /// Looks at what is new.
    pub(crate) fn check(&mut self, store: &SqliteStore) -> Held {
        loop {
            let filter = EventFilter { after_position: self.position, limit: 500, ..EventFilter::default() };
            let events = now(store.events(filter)).map_err(|error| format!("read the log: {error}"))?;
            if events.is_empty() {
                break;
            }
            for event in events {
                self.look(store, &event)?;
            }
        }
        for output in &self.outputs {
            let stands = now(store.active_judgment(output.clone())).map_err(|error| error.to_string())?;
            claim(
                stands.as_ref() == self.judged.get(output),
                "an effective output changed without its judgment",
            )?;
        }
        Ok(())
    }

    /// Looks at the next event.
    pub(crate) fn look(&mut self, store: &SqliteStore, event: &StoredEvent) -> Held {
        self.link(event)?;
        self.meaning(store, event)?;
        *self.seen.entry(event.envelope.event_type).or_default() += 1;
        Ok(())
    }

    /// Its place in its source and in the log, and its hashes.
    fn link(&mut self, event: &StoredEvent) -> Held {
        let envelope = &event.envelope;
        claim(envelope.position > self.position, "a position came twice")?;
        self.position = envelope.position;
        let head = self.heads.entry(envelope.source.to_string()).or_insert((0, Sha256Hex::zero()));
        claim(envelope.sequence == head.0 + 1, "a sequence has a gap")?;
        claim(envelope.previous_sha256 == head.1, "a chain does not hang together")?;
        claim(envelope.payload_sha256 == Sha256Hex::of(event.payload.expose()), "a payload is another")?;
        let hash = envelope.chain_sha256().map_err(|error| error.to_string())?;
        claim(hash == event.chain_sha256, "an event has another hash")?;
        *head = (envelope.sequence, hash);
        Ok(())
    }

    fn meaning(&mut self, store: &SqliteStore, event: &StoredEvent) -> Held {
        let id = event.envelope.id.clone();
        match event.envelope.event_type {
            EventType::RunCompleted => {
                let run = payload::<p::RunCompleted>(event)?.run;
                claim(self.ended.insert(run), "a run was settled twice")
            }
            EventType::RunFailed | EventType::RunBlocked | EventType::RunAbandoned => {
                claim(self.ended.insert(payload::<p::RunEnded>(event)?.run), "a run ended twice")
            }
            EventType::ProposalDecision => {
                let said = payload::<p::ProposalDecision>(event)?;
                claim(self.decided.insert(said.proposal), "a proposal was decided twice")
            }
            EventType::MessageObservation | EventType::DerivedAgentMessage => {
                self.outputs.insert(id);
                Ok(())
            }
            EventType::JudgmentRecorded => {
                let judgment = payload::<p::JudgmentRecorded>(event)?;
                claim(self.outputs.contains(&judgment.target.output), "a judgment of nothing")?;
                self.judged.insert(judgment.target.output, id);
                Ok(())
            }
            EventType::MemoryMaterialized => self.receipt(store, event),
            _ => Ok(()),
        }
    }

    /// A change that is claimed was decided, and its version is there with the bytes that it says.
    fn receipt(&mut self, store: &SqliteStore, event: &StoredEvent) -> Held {
        let receipt = payload::<p::MemoryMaterialized>(event)?;
        claim(self.decided.contains(&receipt.proposal), "a receipt without a decision")?;
        claim(self.written.insert(receipt.decision), "a decision was written twice")?;
        let version = now(store.version(receipt.version_id)).map_err(|error| error.to_string())?;
        let Some(version) = version else {
            return Err("a receipt of a version that is not there".to_owned());
        };
        let bytes = version.content.expose();
        claim(Sha256Hex::of(bytes) == receipt.sha256, "a receipt of other bytes")?;
        claim(bytes.len() as u64 == receipt.byte_count, "a receipt of another length")?;
        // A change that changes nothing leaves the base as it is.
        let is_base = version.version == receipt.base_version_id;
        claim(is_base || version.previous == Some(receipt.base_version_id), "a receipt on another base")
    }
}

fn payload<P: p::Payload>(event: &StoredEvent) -> Result<P, String> {
    event.payload().map_err(|error| error.to_string())
}

/// Every run, and every attempt.
pub(crate) fn runs(store: &SqliteStore) -> Vec<(thought_store::row::RunRow, Vec<AttemptRow>)> {
    let filter = RunFilter { limit: 10_000, ..RunFilter::default() };
    let runs = now(store.runs(filter)).unwrap();
    runs.into_iter()
        .map(|run| {
            let attempts = now(store.attempts(run.id.clone())).unwrap();
            (run, attempts)
        })
        .collect()
}

/// Events of a type.
pub(crate) fn events(store: &SqliteStore, event_type: EventType) -> Vec<StoredEvent> {
    let filter = EventFilter { types: vec![event_type], limit: 10_000, ..EventFilter::default() };
    now(store.events(filter)).unwrap()
}

/// At the end each trigger has its runs, of which at most one was completed, and none is open.
pub(crate) fn whole(store: &SqliteStore, requests: u64) -> Held {
    let runs = runs(store);
    let mut completed: BTreeMap<EventId, u64> = BTreeMap::new();
    let mut attempts = 0;
    for (run, rows) in &runs {
        claim(!run.state.is_open(), &format!("a run is left {}", run.state))?;
        claim(rows.len() == run.attempts as usize, "a run counts other attempts")?;
        claim(rows.iter().all(|row| row.ended_at.is_some()), "an attempt is left open")?;
        attempts += rows.len() as u64;
        *completed.entry(run.trigger.clone()).or_default() += u64::from(run.state == RunState::Completed);
    }
    claim(requests <= attempts, "more requests than attempts")?;
    claim(completed.values().all(|count| *count <= 1), "a message was answered twice")?;
    for event_type in [EventType::TelegramMessage, EventType::AgentMessage] {
        for event in events(store, event_type) {
            claim(completed.contains_key(&event.envelope.id), "a message without a run")?;
        }
    }
    Ok(())
}

/// Planted words stand in columns that may hold words, and nowhere else; a stranger's nowhere at all.
pub(crate) fn dark(database: &std::path::Path) -> Held {
    let connection = rusqlite::Connection::open(database).unwrap();
    let tables: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for (at, name) in names.iter().enumerate() {
                let bytes = match row.get_ref(at).unwrap() {
                    rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => bytes,
                    _ => continue,
                };
                let may = matches!(name.as_str(), "payload" | "content" | "bytes" | "body")
                    || name.ends_with("_content");
                claim(!holds(bytes, "kanari-s"), &format!("a stranger's words stand in {table}.{name}"))?;
                claim(may || !holds(bytes, "kanari-"), &format!("words stand in {table}.{name}"))?;
            }
        }
    }
    Ok(())
}

fn holds(bytes: &[u8], words: &str) -> bool {
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}
