//! What an engine must do: apply commits, answer reads, tell of news.
//!
//! Shaped for embedded and networked engines alike: async, closed commands, no transaction closures, compare-and-set
//! instead of clocks.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::DeliveryKind;
use thought_contract::run::RunState;
use thought_protocol::{DocumentId, EventId, RunId, VersionId};

use crate::audit::Audit;
use crate::command::Commit;
use crate::news::News;
use crate::row::{
    Appended, AttemptRow, ChangeoverRow, ConsumerRow, ContextQuery, ContextRows, CorrectionRow, Counters,
    DeclarationRow, DeliveryRow, DeliveryState, DocumentRow, EventFilter, HistoryQuery, HistoryTurn,
    IntentRow, ProposalCounts, ProposalFilter, ProposalRow, RefusedChatRow, ReplyState, RunFilter, RunRow,
    SnapshotRow, SourceRow, SpoolCounts, SpoolRow, UsageRow, VersionRow,
};

/// A boxed future, so that engines are objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which precondition of a commit did not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// A run of that id is there already.
    RunAbsent,
    /// The run is in none of the states that the command takes it from.
    RunState,
    /// The attempt is not the one that is started (it was settled, abandoned or taken over).
    AttemptStarted,
    /// Another attempt ordinal is due.
    AttemptOrdinal,
    /// The run has another snapshot, or none.
    Snapshot,
    /// The day's requests are spent.
    DailyBudget,
    /// Another version of the declaration is active.
    ActiveVersion,
    /// The document's pointer names another version.
    DocumentVersion,
    /// A delivery of that cause is there already.
    DeliveryAbsent,
    /// The chunk or delivery stands elsewhere.
    DeliveryState,
    /// The proposal stands elsewhere, or there is no such proposal.
    ProposalState,
    /// Another judgment stands on the output.
    ActiveJudgment,
    /// The change of the declaration is another, or over.
    Changeover,
    /// The consumer is not installed.
    ConsumerInstalled,
}

/// A commit or read that did not come about. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another event stands under the same id; nothing was written.
    #[error("append event {id}: another event of type {event_type} has this identity")]
    Conflict {
        /// The identity.
        id: EventId,
        /// Its type.
        event_type: EventType,
    },
    /// A precondition did not hold; nothing was written.
    #[error("commit: the precondition {0:?} does not hold")]
    Precondition(Precondition),
    /// A draft that the handle may not append: it names another source or type than the role's own.
    #[error("append an event of type {event_type}: this handle writes to {source_owned} alone")]
    Role {
        /// The draft's type.
        event_type: EventType,
        /// What the handle owns.
        source_owned: String,
    },
    /// The disk is full; nothing was written.
    #[error("commit: no space is left")]
    NoSpace,
    /// The store is of a newer version than this binary.
    #[error("open the store: its schema is version {found}, this binary knows up to {known}")]
    Newer {
        /// What stands in the store.
        found: i64,
        /// What this binary knows.
        known: i64,
    },
    /// A stored value that cannot be: the store was changed by something else.
    #[error("read the store: {what} is not what was written")]
    Corrupt {
        /// Table, column or id.
        what: String,
    },
    /// The store cannot be reached or opened.
    #[error("reach the store: {what}")]
    Unreachable {
        /// Kind of failure, without content.
        what: String,
    },
    /// The engine failed.
    #[error("{operation} in the store: {what}")]
    Engine {
        /// What was tried.
        operation: &'static str,
        /// Kind of failure, without content.
        what: String,
    },
}

/// What a commit came to: for each `Append` in it, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// The appended events.
    pub appended: Vec<Appended>,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A storage engine.
pub trait Engine: Reads {
    /// Applies a commit and answers once it is durable.
    fn commit(&self, commit: Commit) -> Answer<'_, Committed>;
}

/// The reading side of an engine. Every read sees every commit acknowledged before it was asked.
pub trait Reads: Send + Sync + Debug + 'static {
    /// Tells of commits, also of other processes: what it touches of its own, and everything for theirs.
    fn news(&self) -> News;
    /// What was done so far.
    fn counters(&self) -> Counters;
    /// Whether everything is what was written: every hash and chain, each event drafted again, and the rows beside the log.
    /// Reads one state of the whole store, and costs as much as it holds.
    fn audit(&self) -> Answer<'_, Audit>;

    /// An event.
    fn event(&self, id: EventId) -> Answer<'_, Option<StoredEvent>>;
    /// Events by filter, oldest first. `limit` 0 asks for nothing.
    fn events(&self, filter: EventFilter) -> Answer<'_, Vec<StoredEvent>>;
    /// Events of a source above a sequence, in order.
    fn source_events(&self, source: SourceName, after: u64, limit: u32) -> Answer<'_, Vec<StoredEvent>>;
    /// Events whose parent this is, oldest first, at most `limit`.
    fn children(&self, parent: EventId, limit: u32) -> Answer<'_, Vec<StoredEvent>>;
    /// Ids (events, runs, attempts, snapshots, documents, versions) that begin with this text, at most `limit`.
    fn ids_with_prefix(&self, prefix: String, limit: u32) -> Answer<'_, Vec<String>>;
    /// How many events there are.
    fn event_count(&self) -> Answer<'_, u64>;
    /// How many events of a type there are, at most `at_most`.
    fn event_count_of(&self, event_type: EventType, at_most: u64) -> Answer<'_, u64>;
    /// All sources, by name.
    fn sources(&self) -> Answer<'_, Vec<SourceRow>>;
    /// One source; head 0 when nothing was ever appended to it.
    fn source(&self, source: SourceName) -> Answer<'_, SourceRow>;

    /// The stored ordinal of a turn in its conversation, with the conversation's name.
    fn turn_ordinal(&self, event: EventId) -> Answer<'_, Option<(String, u64)>>;
    /// The newest turns of a conversation below an ordinal, oldest first, each with its evidence. Costs O(limit).
    fn history(&self, query: HistoryQuery) -> Answer<'_, Vec<HistoryTurn>>;
    /// Ids of the turns with ordinals in `from..to`, newest first, at most `limit`.
    fn turn_ids(
        &self,
        source: SourceName,
        conversation: String,
        from: u64,
        to: u64,
        limit: u32,
    ) -> Answer<'_, Vec<EventId>>;

    /// All that a context is built from: turns, ids and documents of one state of the store. None when the trigger has no
    /// place in a conversation.
    fn context(&self, query: ContextQuery) -> Answer<'_, Option<ContextRows>>;

    /// A run.
    fn run(&self, id: RunId) -> Answer<'_, Option<RunRow>>;
    /// Runs by filter, in order of admission.
    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<RunRow>>;
    /// All runs of a declaration that have not ended, by source and sequence.
    fn open_runs(&self, declaration: String) -> Answer<'_, Vec<RunRow>>;
    /// How many runs stand in each state.
    fn run_counts(&self) -> Answer<'_, Vec<(RunState, u64)>>;
    /// The attempts of a run, in order.
    fn attempts(&self, run: RunId) -> Answer<'_, Vec<AttemptRow>>;
    /// The frozen context of a run.
    fn snapshot(&self, run: RunId) -> Answer<'_, Option<SnapshotRow>>;

    /// Proposals by filter, oldest first. Costs what it answers, however long the log is.
    fn proposals(&self, filter: ProposalFilter) -> Answer<'_, Vec<ProposalRow>>;
    /// A proposal.
    fn proposal(&self, id: EventId) -> Answer<'_, Option<ProposalRow>>;
    /// How many proposals stand where, and since when the oldest waits. Costs the same however many there are.
    fn proposal_counts(&self) -> Answer<'_, ProposalCounts>;

    /// The judgment that stands on an output.
    fn active_judgment(&self, output: EventId) -> Answer<'_, Option<EventId>>;
    /// What became of a person's own correction; none as long as it waits.
    fn correction(&self, command: EventId) -> Answer<'_, Option<CorrectionRow>>;
    /// Corrections that matched nothing, behind a place in their order, at most `limit`.
    fn refused_corrections(&self, after_ordinal: u64, limit: u32) -> Answer<'_, Vec<CorrectionRow>>;
    /// The receipt of the reply that holds this message of a chat.
    fn reply_with_message(&self, channel: SourceName, chat: i64, message: i64)
    -> Answer<'_, Option<EventId>>;
    /// The newest receipt of a reply in a chat and thread, below a position.
    fn newest_reply(
        &self,
        channel: SourceName,
        chat: i64,
        thread: Option<i64>,
        before_position: u64,
    ) -> Answer<'_, Option<EventId>>;
    /// What is about to be written for a decision.
    fn intent(&self, decision: EventId) -> Answer<'_, Option<IntentRow>>;
    /// Everything that is about to be written, oldest first, at most `limit`.
    fn intents(&self, limit: u32) -> Answer<'_, Vec<IntentRow>>;

    /// The active version of a declaration.
    fn declaration(&self, id: String) -> Answer<'_, Option<DeclarationRow>>;
    /// Every installed version, by id and version.
    fn declarations(&self) -> Answer<'_, Vec<DeclarationRow>>;
    /// Declarations that are changed while they are at work.
    fn changeovers(&self) -> Answer<'_, Vec<ChangeoverRow>>;
    /// Every consumer row.
    fn consumers(&self) -> Answer<'_, Vec<ConsumerRow>>;

    /// The documents of a source, removed ones included, by path.
    fn documents(&self, source: SourceName) -> Answer<'_, Vec<DocumentRow>>;
    /// One document.
    fn document(&self, id: DocumentId) -> Answer<'_, Option<DocumentRow>>;
    /// One version, with its bytes.
    fn version(&self, id: VersionId) -> Answer<'_, Option<VersionRow>>;

    /// Raw updates that wait, in order of arrival, parked ones not.
    fn spool(&self, channel: SourceName, limit: u32) -> Answer<'_, Vec<SpoolRow>>;
    /// How many wait, are parked, or were dropped.
    fn spool_counts(&self, channel: SourceName) -> Answer<'_, SpoolCounts>;
    /// The newest refused chats, at most eight.
    fn refused_chats(&self, channel: SourceName) -> Answer<'_, Vec<RefusedChatRow>>;

    /// A follower's cursor; 0 when it never moved.
    fn cursor(&self, name: String) -> Answer<'_, u64>;
    /// A delivery.
    fn delivery(&self, cause: EventId, kind: DeliveryKind) -> Answer<'_, Option<DeliveryRow>>;
    /// Deliveries of a channel that are not delivered and stand in one of these states (none: in any), oldest first.
    fn unfinished_deliveries(
        &self,
        channel: SourceName,
        states: Vec<DeliveryState>,
        limit: u32,
    ) -> Answer<'_, Vec<DeliveryRow>>;
    /// What became of an output.
    fn reply_state(&self, output: EventId) -> Answer<'_, ReplyState>;
    /// Requests and tokens by day, newest day first, at most `days` days.
    fn usage(&self, days: u32) -> Answer<'_, Vec<UsageRow>>;
    /// Requests counted for a declaration on a day.
    fn requests_on(&self, declaration: String, day: String) -> Answer<'_, u64>;
}
