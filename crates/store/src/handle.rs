//! Handles: what each role may do to the store, and nothing else.
//!
//! A handle is bound to its source when it is cut. It turns a domain value into one commit; it never reads, decides or
//! waits. [`Store`] alone can cut handles, and the binary's composition alone holds it.

use std::ops::Deref;
use std::sync::Arc;

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};
use thought_contract::time::Clock;
use thought_protocol::EventId;

use crate::command::{Commit, Op, Presence};
use crate::engine::{Committed, Engine, Reads, StoreError};
use crate::row::Appended;

mod activation;
mod consumer;
mod dispatch;
mod filesystem;
mod mail;
mod review;
mod telegram;

pub use activation::{Activator, Superseded};
pub use consumer::{Admission, ConsumerRuns, Proposed, Settlement, SettlementError, Start};
pub use dispatch::{ChunkRef, Dispatcher};
pub use filesystem::Filesystem;
pub use mail::AgentMail;
pub use review::{
    CORRECTIONS_CURSOR, Decisions, Follows, Judgments, Materializer, OperatorProposals, Remains, Resolution,
};
pub use telegram::{RawUpdate, RefusedChat, TelegramIngress};

/// The whole store: handles are cut from it.
#[derive(Clone, Debug)]
pub struct Store {
    engine: Arc<dyn Engine>,
    clock: ClockHandle,
}

#[derive(Clone)]
struct ClockHandle(Arc<dyn Clock>);

impl std::fmt::Debug for ClockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Store {
    /// Takes an engine and the clock that every commit is recorded by.
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        Self { engine, clock: ClockHandle(clock) }
    }

    /// Reads, and only reads.
    pub fn reader(&self) -> Reader {
        Reader(self.engine.clone())
    }

    /// The ingress of a Telegram source: spools updates and turns them into events.
    pub fn telegram_ingress(&self, source: SourceName) -> TelegramIngress {
        TelegramIngress::cut(self.writer(), source)
    }

    /// The dispatcher of a Telegram source: its deliveries, receipts and cursor.
    pub fn dispatcher(&self, telegram: SourceName) -> Dispatcher {
        Dispatcher::cut(self.writer(), telegram)
    }

    /// The connector of the context root: scanned versions.
    pub fn filesystem(&self) -> Filesystem {
        Filesystem::cut(self.writer())
    }

    /// The producer of one agent's private messages.
    pub fn agent_mail(&self, sender: &str) -> AgentMail {
        AgentMail::cut(self.writer(), sender)
    }

    /// The runs of one declaration.
    pub fn consumer(&self, declaration: &str) -> ConsumerRuns {
        ConsumerRuns::cut(self.writer(), declaration)
    }

    /// Installs declaration versions.
    pub fn activator(&self) -> Activator {
        Activator::cut(self.writer())
    }

    /// A person's decisions.
    pub fn decisions(&self) -> Decisions {
        Decisions::cut(self.writer())
    }

    /// Judgments on outputs.
    pub fn judgments(&self) -> Judgments {
        Judgments::cut(self.writer())
    }

    /// Operators' proposals.
    pub fn operator_proposals(&self) -> OperatorProposals {
        OperatorProposals::cut(self.writer())
    }

    /// Intents and receipts of memory changes.
    pub fn materializer(&self) -> Materializer {
        Materializer::cut(self.writer())
    }

    /// Records incidents as a role.
    pub fn incidents(&self, role: &'static str) -> Incidents {
        Incidents { writer: self.writer(), role }
    }

    /// Requests notices as a role.
    pub fn notices(&self, role: &'static str) -> Notices {
        Notices { writer: self.writer(), source: SourceName::new(format!("notices:{role}")), role }
    }

    /// Says whether a role is at work.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written.
    pub async fn set_role(&self, role: &str, presence: Presence) -> Result<(), StoreError> {
        self.writer().commit(vec![Op::SetRole { role: role.to_owned(), presence }]).await.map(drop)
    }

    fn writer(&self) -> Writer {
        Writer { engine: self.engine.clone(), clock: self.clock.clone() }
    }
}

/// Reads, and only reads.
#[derive(Clone, Debug)]
pub struct Reader(Arc<dyn Engine>);

impl Deref for Reader {
    type Target = dyn Reads;
    fn deref(&self) -> &(dyn Reads + 'static) {
        &*self.0
    }
}

/// What every handle writes through; never leaves this module's children.
#[derive(Clone, Debug)]
struct Writer {
    engine: Arc<dyn Engine>,
    clock: ClockHandle,
}

impl Writer {
    async fn commit(&self, ops: Vec<Op>) -> Result<Committed, StoreError> {
        self.engine.commit(Commit { at: self.clock.0.now(), ops }).await
    }

    /// The commit of ops that hold an append, and what the first one came to.
    async fn commit_one(&self, ops: Vec<Op>) -> Result<Appended, StoreError> {
        let committed = self.commit(ops).await?;
        committed.appended.into_iter().next().ok_or(StoreError::Engine {
            operation: "append an event",
            what: "the engine named no event".to_owned(),
        })
    }
}

/// Refuses a draft that is not the role's own.
fn own(draft: &Draft, source: &SourceName, types: &[EventType]) -> Result<(), StoreError> {
    if draft.source() == source && types.contains(&draft.event_type()) {
        Ok(())
    } else {
        Err(StoreError::Role { event_type: draft.event_type(), source_owned: source.to_string() })
    }
}

/// Records incidents as one role.
#[derive(Clone, Debug)]
pub struct Incidents {
    writer: Writer,
    role: &'static str,
}

impl Incidents {
    /// The role that speaks.
    pub fn role(&self) -> &'static str {
        self.role
    }

    /// Appends an incident.
    ///
    /// # Errors
    /// [`StoreError::Role`] for another type of draft; any failure of the commit.
    pub async fn record(&self, draft: Draft) -> Result<Appended, StoreError> {
        own(&draft, &SourceName::new("system:incidents"), &[EventType::Incident])?;
        self.writer.commit_one(vec![Op::Append(Box::new(draft))]).await
    }
}

/// Requests notices as one role.
#[derive(Clone, Debug)]
pub struct Notices {
    writer: Writer,
    source: SourceName,
    role: &'static str,
}

impl Notices {
    /// The role that speaks.
    pub fn role(&self) -> &'static str {
        self.role
    }

    /// Appends the request of a notice; the same one again is the first.
    ///
    /// # Errors
    /// [`StoreError::Role`] for another type of draft; any failure of the commit.
    pub async fn request(&self, draft: Draft) -> Result<Appended, StoreError> {
        own(&draft, &self.source, &[EventType::NoticeRequested])?;
        self.writer.commit_one(vec![Op::Append(Box::new(draft))]).await
    }
}

/// Ids of the events that a settlement or activation appends, checked against what the commit came to.
fn ids(drafts: &[&Draft]) -> Vec<EventId> {
    drafts.iter().map(|draft| draft.id().clone()).collect()
}
