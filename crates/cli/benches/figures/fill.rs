//! Fills a store with whole turns of other conversations, through the engine's own commits: every event is as valid and
//! as chained as one that was served.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use thought_cli::compose::SystemClock;
use thought_contract::draft::{self, Draft};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{AttemptState, RunState, attempt_id, run_id, snapshot_id};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::{Fingerprint, RunId, Sensitive, Sha256Hex};
use thought_store::command::{AttemptEnd, Commit, NewAttempt, NewDeclaration, NewRun, NewSnapshot, Op};
use thought_store::row::{ChunkState, DeliveryState, EventFilter};
use thought_store::{Engine, Reads};
use thought_store_sqlite::{OpenOptions, SqliteStore};
use tokio::runtime::Runtime;

use crate::place::AGENT;

/// Conversations that the filled turns belong to.
const CHATS: i64 = 1_000;
/// Turns of one commit.
const BATCH: i64 = 500;
/// Events of one turn.
pub(crate) const EVENTS_PER_TURN: u64 = 4;
/// Size of a filled snapshot: what a conversation of a few turns has.
const SNAPSHOT_BYTES: usize = 1_024;
/// No day on which anything is served, so that no budget is touched.
const DAY: &str = "2001-01-01";
const ANSWER: &str = "Take the earlier one. It leaves at 9:12 and is there at 11:40.";

/// A store that is written to as fast as it goes.
pub(crate) struct Filler<'a> {
    runtime: &'a Runtime,
    store: Arc<SqliteStore>,
    version: u32,
    fingerprint: Fingerprint,
    /// Message number of the next turn.
    next: i64,
}

impl<'a> Filler<'a> {
    /// Opens the store of a home in which the declaration is installed.
    pub(crate) fn open(runtime: &'a Runtime, database: &Path) -> Result<Self> {
        let store = SqliteStore::open(database, OpenOptions::default())?;
        let row = runtime.block_on(store.declaration(AGENT.to_owned()))?.context("find the declaration")?;
        // A store that was filled before goes on behind what it has.
        let next = i64::try_from(runtime.block_on(store.event_count())?)?;
        Ok(Self { runtime, store, version: row.version, fingerprint: row.fingerprint, next })
    }

    /// Makes a store of its own.
    pub(crate) fn make(runtime: &'a Runtime, database: &Path) -> Result<Self> {
        let store = SqliteStore::open(database, OpenOptions::create())?;
        let fingerprint = Fingerprint::of(b"figures");
        let declaration = NewDeclaration {
            id: AGENT.to_owned(),
            version: 1,
            expected_active: None,
            fingerprint: fingerprint.clone(),
            declaration: Sensitive::new(vec![1]),
            prompt: Sensitive::new(vec![2]),
            manifest: Sensitive::new(vec![3]),
            sources: vec![(telegram(), 0)],
        };
        let filler = Self { runtime, store, version: 1, fingerprint, next: 0 };
        filler.commit(vec![Op::InstallDeclaration(declaration)])?;
        Ok(filler)
    }

    /// Adds whole turns until the store holds at least this many events; answers how many it holds.
    pub(crate) fn fill(&mut self, events: u64) -> Result<u64> {
        loop {
            let held = self.runtime.block_on(self.store.event_count())?;
            if held >= events {
                return Ok(held);
            }
            let missing = (events - held).div_ceil(EVENTS_PER_TURN);
            let triggers = self.messages(BATCH.min(i64::try_from(missing)?))?;
            self.commit(self.flat(&triggers, Self::start_ops)?)?;
            let outputs = self.settle(&triggers)?;
            self.deliver(&outputs)?;
        }
    }

    /// Prepares one turn up to its attempt, and answers the commit that settles it.
    pub(crate) fn unsettled(&mut self) -> Result<Vec<Op>> {
        let triggers = self.messages(1)?;
        self.commit(self.flat(&triggers, Self::start_ops)?)?;
        self.flat(&triggers, Self::settle_ops)
    }

    /// One durable commit.
    pub(crate) fn commit(&self, ops: Vec<Op>) -> Result<()> {
        self.runtime.block_on(self.store.commit(Commit { at: SystemClock.now(), ops }))?;
        Ok(())
    }

    /// Recomputes the hash of events spread over the store, and whether each names the one before it.
    pub(crate) fn check(&self, samples: u64) -> Result<()> {
        let held = self.runtime.block_on(self.store.event_count())?;
        for sample in 0..samples {
            let after_position = held * sample / samples;
            let filter = EventFilter { after_position, limit: 1, ..EventFilter::default() };
            let found = self.runtime.block_on(self.store.events(filter))?;
            let event = found.first().context("find an event")?;
            let envelope = &event.envelope;
            ensure!(envelope.chain_sha256()? == event.chain_sha256, "a filled event has another hash");
            let before = envelope.sequence.saturating_sub(2);
            let pair = self.runtime.block_on(self.store.source_events(envelope.source.clone(), before, 2))?;
            if let [previous, this] = pair.as_slice() {
                ensure!(this.envelope.previous_sha256 == previous.chain_sha256, "a filled chain is broken");
            }
        }
        Ok(())
    }

    fn flat(
        &self,
        events: &[StoredEvent],
        ops: fn(&Self, &StoredEvent) -> Result<Vec<Op>>,
    ) -> Result<Vec<Op>> {
        let each = events.iter().map(|event| ops(self, event)).collect::<Result<Vec<_>>>()?;
        Ok(each.into_iter().flatten().collect())
    }

    fn messages(&mut self, count: i64) -> Result<Vec<StoredEvent>> {
        let head = self.runtime.block_on(self.store.source(telegram()))?.head;
        let drafts: Vec<Draft> = (self.next..self.next + count).map(message).collect::<Result<_>>()?;
        self.next += count;
        self.commit(drafts.into_iter().map(append).collect())?;
        let limit = u32::try_from(count)?;
        Ok(self.runtime.block_on(self.store.source_events(telegram(), head, limit))?)
    }

    fn start_ops(&self, trigger: &StoredEvent) -> Result<Vec<Op>> {
        let run = self.run_of(trigger);
        let sequence = trigger.envelope.sequence;
        let new = NewRun {
            id: run.clone(),
            declaration: AGENT.to_owned(),
            version: self.version,
            trigger: trigger.envelope.id.clone(),
            source: telegram(),
            sequence,
            conversation: trigger.envelope.correlation_id.clone().context("find a conversation")?,
            retry: 0,
        };
        let snapshot = NewSnapshot {
            id: snapshot_id(&run),
            sha256: Sha256Hex::of(run.as_str().as_bytes()),
            packet_sha256: Sha256Hex::of(b"packet"),
            bytes: Sensitive::new(vec![7; SNAPSHOT_BYTES]),
        };
        let attempt = NewAttempt {
            id: attempt_id(&run, 1),
            ordinal: 1,
            sandbox: "full".to_owned(),
            day: DAY.to_owned(),
            requests_per_day_max: u64::from(u32::MAX),
        };
        Ok(vec![
            Op::AdmitRun(new),
            Op::SetScanned { declaration: AGENT.to_owned(), source: telegram(), sequence },
            Op::PutSnapshot { run: run.clone(), snapshot },
            Op::StartAttempt { run, attempt },
        ])
    }

    fn settle(&self, triggers: &[StoredEvent]) -> Result<Vec<StoredEvent>> {
        let after_position = triggers.last().map_or(0, |last| last.envelope.position);
        self.commit(self.flat(triggers, Self::settle_ops)?)?;
        let types = vec![EventType::MessageObservation];
        let limit = u32::try_from(triggers.len())?;
        let filter = EventFilter { types, after_position, limit, ..EventFilter::default() };
        Ok(self.runtime.block_on(self.store.events(filter))?)
    }

    fn settle_ops(&self, trigger: &StoredEvent) -> Result<Vec<Op>> {
        let run = self.run_of(trigger);
        let fingerprint = self.fingerprint.clone();
        let payload = p::MessageObservation {
            summary: ANSWER.to_owned(),
            truncated: false,
            contract: p::OutputContract::ConversationText,
            run: run.clone(),
            agent: p::AgentVersion { id: AGENT.to_owned(), version: self.version, fingerprint },
            provider: "main".to_owned(),
            model: "a-model".to_owned(),
            context_snapshot: snapshot_id(&run),
        };
        let output = draft::observation(trigger, &payload, now())?;
        let payload = p::RunCompleted {
            run: run.clone(),
            attempt: attempt_id(&run, 1),
            context_snapshot: snapshot_id(&run),
            output: output.id().clone(),
            proposals: vec![],
            usage: p::Usage { input_tokens: Some(900), output_tokens: Some(30) },
            thinking_parts_dropped: 0,
        };
        let completed = draft::run_completed(AGENT, trigger, &payload, now())?;
        let attempt = AttemptEnd {
            attempt: attempt_id(&run, 1),
            state: AttemptState::Answered,
            reason: None,
            input_tokens: Some(900),
            output_tokens: Some(30),
        };
        let end = Op::EndRun {
            run,
            state: RunState::Completed,
            reason: None,
            output: Some(output.id().clone()),
            terminal: completed.id().clone(),
        };
        Ok(vec![Op::EndAttempt(attempt), append(output), append(completed), end])
    }

    fn deliver(&self, outputs: &[StoredEvent]) -> Result<()> {
        let mut ops = self.flat(outputs, Self::delivery_ops)?;
        let position = outputs.last().map_or(0, |last| last.envelope.position);
        ops.push(Op::SetCursor { name: format!("dispatcher:{}", telegram()), position });
        self.commit(ops)
    }

    fn delivery_ops(&self, output: &StoredEvent) -> Result<Vec<Op>> {
        let said: p::MessageObservation = output.payload()?;
        let (cause, kind) = (output.envelope.id.clone(), p::DeliveryKind::Reply);
        let correlation = output.envelope.correlation_id.as_deref().context("find a conversation")?;
        let chat: i64 = correlation.split(':').find_map(|word| word.parse().ok()).context("find a chat")?;
        let message = i64::try_from(output.envelope.sequence)?;
        let utf16_length = said.summary.encode_utf16().count() as u64;
        let open = Op::OpenDelivery {
            cause: cause.clone(),
            kind,
            channel: telegram(),
            chat,
            thread: None,
            chunk_utf16_lengths: vec![utf16_length],
        };
        let sent = Op::MoveChunk {
            cause: cause.clone(),
            kind,
            ordinal: 0,
            from: ChunkState::Sending,
            to: ChunkState::Sent,
            message: Some(message),
            confirmed_by: None,
        };
        let chunk = p::DeliveredChunk { message_id: Some(message), utf16_length, confirmed_by: None };
        let payload = p::DeliveryTelegram {
            kind,
            chat_id: chat,
            thread_id: None,
            chunks: vec![chunk],
            run: Some(said.run),
            output: Some(cause.clone()),
        };
        let receipt = draft::delivery(&telegram(), output, &payload, now())?;
        let done = Op::MoveDelivery {
            cause,
            kind,
            to: DeliveryState::Delivered,
            reason: None,
            receipt: Some(receipt.id().clone()),
        };
        Ok(vec![open, sent, append(receipt), done])
    }

    fn run_of(&self, trigger: &StoredEvent) -> RunId {
        run_id(AGENT, self.version, &trigger.envelope.id, 0)
    }
}

fn append(draft: Draft) -> Op {
    Op::Append(Box::new(draft))
}

fn now() -> Timestamp {
    SystemClock.now()
}

pub(crate) fn telegram() -> SourceName {
    SourceName::new("telegram:stream")
}

fn message(number: i64) -> Result<Draft> {
    let chat = 10_000 + number % CHATS;
    let payload = p::TelegramMessage {
        chat_id: chat,
        thread_id: None,
        message_id: number,
        user_id: chat,
        text: Some("Which of the two trains should I take on Thursday?".to_owned()),
        images: vec![],
        reply_to_message_id: None,
        media_group_id: None,
    };
    Ok(draft::telegram_message(&telegram(), 123_456, &payload, now())?)
}
