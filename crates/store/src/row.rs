//! Rows: what the store answers. Content stands in [`Sensitive`] alone.

use serde::{Deserialize, Serialize};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::DeliveryKind;
use thought_contract::run::{AttemptState, RunState};
use thought_contract::time::Timestamp;
use thought_protocol::{
    AttemptId, DocumentId, EventId, Fingerprint, RunId, Sensitive, Sha256Hex, SnapshotId, VersionId,
};

/// What an append came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The event.
    pub id: EventId,
    /// Its sequence in its source.
    pub sequence: u64,
    /// Its position in the store.
    pub position: u64,
    /// Whether this commit wrote it.
    pub novelty: Novelty,
}

/// Whether a repeated append found its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// Written now.
    New,
    /// It was there, equal.
    Existing,
}

/// A source and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRow {
    /// The source.
    pub source: SourceName,
    /// Sequence of its newest event; 0 when it has none.
    pub head: u64,
    /// Chain hash of its newest event.
    pub head_sha256: Sha256Hex,
}

/// Where a consumer stands in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerRow {
    /// The consumer.
    pub declaration: String,
    /// The version that consumes.
    pub version: u32,
    /// The source.
    pub source: SourceName,
    /// Everything up to here was looked at.
    pub scanned: u64,
    /// Everything up to here is settled.
    pub progress: u64,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub id: RunId,
    /// The declaration.
    pub declaration: String,
    /// Its version.
    pub version: u32,
    /// What is answered.
    pub trigger: EventId,
    /// The trigger's source.
    pub source: SourceName,
    /// The trigger's sequence in it.
    pub sequence: u64,
    /// The conversation within the source.
    pub conversation: String,
    /// 0, or the ordinal of an operator's retry.
    pub retry: u32,
    /// Where it stands.
    pub state: RunState,
    /// Reason code of held, failed, blocked and abandoned.
    pub reason: Option<String>,
    /// Attempts made.
    pub attempts: u32,
    /// Its frozen context, once it has one.
    pub snapshot: Option<SnapshotId>,
    /// Its output, once it is completed.
    pub output: Option<EventId>,
    /// Its terminal event, once it has ended.
    pub terminal: Option<EventId>,
    /// When it was admitted.
    pub admitted_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its place in the list of all runs, in order of admission.
    pub ordinal: u64,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    /// The attempt.
    pub id: AttemptId,
    /// The run.
    pub run: RunId,
    /// From 1.
    pub ordinal: u32,
    /// How it stands.
    pub state: AttemptState,
    /// Reason code.
    pub reason: Option<String>,
    /// The tier of the jail.
    pub sandbox: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Tokens that the provider told.
    pub input_tokens: Option<u64>,
    /// Likewise.
    pub output_tokens: Option<u64>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRow {
    /// Identity.
    pub id: SnapshotId,
    /// The run.
    pub run: RunId,
    /// Hash of the uncompressed bytes.
    pub sha256: Sha256Hex,
    /// Hash of the packet it rebuilds to.
    pub packet_sha256: Sha256Hex,
    /// Compressed canonical bytes.
    pub bytes: Sensitive<Vec<u8>>,
}

/// An installed declaration version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclarationRow {
    /// Declaration id.
    pub id: String,
    /// Its version.
    pub version: u32,
    /// Whether it is the version that runs.
    pub activity: Activity,
    /// Fingerprint of the three below.
    pub fingerprint: Fingerprint,
    /// Canonical bytes as written.
    pub declaration: Sensitive<Vec<u8>>,
    /// Bytes of the prompt.
    pub prompt: Sensitive<Vec<u8>>,
    /// Canonical bytes of the proposal manifest.
    pub manifest: Sensitive<Vec<u8>>,
    /// When it was activated.
    pub activated_at: Timestamp,
}

/// Whether a declaration version runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It does.
    Active,
    /// A newer one took over.
    Superseded,
}

/// A declaration that is changed while it is at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeoverRow {
    /// The declaration.
    pub declaration: String,
    /// The version that is to take over.
    pub version: u32,
    /// Names this change; whoever makes another one has another.
    pub token: String,
    /// What is asked of the roles.
    pub stage: ChangeoverStage,
    /// How far the version before works, by source; nothing as long as they are asked to freeze.
    pub heads: Vec<(SourceName, u64)>,
    /// The roles that did what is asked.
    pub acknowledged: Vec<String>,
}

/// What a change of a declaration asks of the roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeoverStage {
    /// Nothing that is spooled becomes an event.
    Freeze,
    /// The consumer settles everything up to the heads, and lets go.
    Drain,
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// The document.
    pub document: DocumentId,
    /// This version.
    pub version: VersionId,
    /// The version before.
    pub previous: Option<VersionId>,
    /// The source.
    pub source: SourceName,
    /// Path below the context root.
    pub path: String,
    /// Hash of the content.
    pub sha256: Sha256Hex,
    /// Size, bytes.
    pub byte_count: u64,
    /// What it is.
    pub content_type: String,
    /// `id` of valid frontmatter.
    pub frontmatter_id: Option<String>,
    /// The event that tells of it.
    pub event: EventId,
    /// The bytes.
    pub content: Sensitive<Vec<u8>>,
}

/// A document and the version its pointer names. All but the content of [`VersionRow`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// The document.
    pub document: DocumentId,
    /// The source.
    pub source: SourceName,
    /// Path below the context root.
    pub path: String,
    /// The last version; of a removed document the one before its removal.
    pub version: VersionId,
    /// Whether the document is there.
    pub existence: Existence,
    /// Hash of that version.
    pub sha256: Sha256Hex,
    /// Size, bytes.
    pub byte_count: u64,
}

/// Whether a document is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existence {
    /// Its pointer names a version.
    Present,
    /// It was removed.
    Removed,
}

/// A raw update that is no event yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolRow {
    /// Arrival order.
    pub ordinal: u64,
    /// The update's id.
    pub update: i64,
    /// Its bytes.
    pub body: Sensitive<Vec<u8>>,
    /// Failed tries.
    pub tries: u32,
    /// When it arrived.
    pub arrived_at: Timestamp,
}

/// How many raw updates wait, are parked, or were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpoolCounts {
    /// No event yet.
    pub pending: u64,
    /// Set aside after their tries.
    pub parked: u64,
    /// Of chats that are not admitted.
    pub dropped: u64,
}

/// A chat that wrote and is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedChatRow {
    /// The chat.
    pub chat: i64,
    /// Its kind.
    pub kind: String,
    /// Updates that were dropped.
    pub count: u64,
    /// When it last wrote.
    pub last_at: Timestamp,
}

/// Where a chunk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkState {
    /// Not sent yet.
    Pending,
    /// Its send is recorded; whether it was made is not known until an answer is recorded.
    Sending,
    /// Telegram gave it an id, or a person confirmed it.
    Sent,
    /// It may or may not have arrived.
    Uncertain,
    /// Telegram will not take it.
    Refused,
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// On its way.
    Sending,
    /// All chunks are sent, and the receipt names them.
    Delivered,
    /// A chunk may or may not have arrived; a person decides.
    Uncertain,
    /// It will not arrive.
    Refused,
}

macro_rules! stored_words {
    ($($name:ident { $($variant:ident = $word:literal),* })*) => {$(
        impl $name {
            /// The stored form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// The value of a stored form.
            pub fn from_word(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    )*};
}

mod proposal;

pub use proposal::{Base, ProposalCounts, ProposalFilter, ProposalRow, ProposalState};

stored_words! {
    ChangeoverStage { Freeze = "freeze", Drain = "drain" }
    ChunkState { Pending = "pending", Sending = "sending", Sent = "sent", Uncertain = "uncertain", Refused = "refused" }
    DeliveryState { Sending = "sending", Delivered = "delivered", Uncertain = "uncertain", Refused = "refused" }
}

/// What became of a person's own correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorrectionOutcome {
    /// This judgment was recorded.
    Judged(EventId),
    /// It matched no reply, or held no words, for this reason.
    Refused(String),
}

/// A person's own correction that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectionRow {
    /// Its place in the order in which corrections were looked at.
    pub ordinal: u64,
    /// The command.
    pub command: EventId,
    /// What became of it.
    pub outcome: CorrectionOutcome,
}

/// What is about to be written into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentRow {
    /// The decision that lets it through.
    pub decision: EventId,
    /// The proposal.
    pub proposal: EventId,
    /// Hash of the document as it will be.
    pub expected_sha256: Sha256Hex,
    /// Name of the temporary file in the context root.
    pub temporary: String,
    /// When it was made.
    pub made_at: Timestamp,
}

/// A chunk of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRow {
    /// From 0.
    pub ordinal: u32,
    /// Where it stands.
    pub state: ChunkState,
    /// Length, UTF-16 units.
    pub utf16_length: u64,
    /// Telegram's id of it.
    pub message: Option<i64>,
    /// Who confirmed it.
    pub confirmed_by: Option<String>,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// The output, or the event that a notice tells of.
    pub cause: EventId,
    /// What.
    pub kind: DeliveryKind,
    /// The channel's source.
    pub channel: SourceName,
    /// The chat.
    pub chat: i64,
    /// The forum topic.
    pub thread: Option<i64>,
    /// Where it stands.
    pub state: DeliveryState,
    /// Reason code of `refused` and `uncertain`, and of a delivery on its way that waits.
    pub reason: Option<String>,
    /// Its receipt.
    pub receipt: Option<EventId>,
    /// Its chunks, in order.
    pub chunks: Vec<ChunkRow>,
    /// When it was opened.
    pub opened_at: Timestamp,
}

/// What became of an output: the one question that history asks of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyState {
    /// Delivered; the receipt says so.
    Receipt(EventId),
    /// A dispatcher is at work on it, or will be.
    Sending,
    /// Not delivered, and nobody is about to.
    NotDelivered,
}

/// A completed or other run on a turn, with the evidence a reconstruction needs.
#[derive(Debug, Clone)]
pub struct HistoryRun {
    /// The run.
    pub run: RunRow,
    /// Its output, of a completed run.
    pub output: Option<StoredEvent>,
    /// Its completed event.
    pub completed: Option<StoredEvent>,
    /// The proposals that its completed event names, in order.
    pub proposals: Vec<StoredEvent>,
    /// What became of the output.
    pub reply: ReplyState,
    /// The receipt event, where there is one.
    pub receipt: Option<StoredEvent>,
    /// The active judgment on the output, where there is one.
    pub judgment: Option<StoredEvent>,
}

/// A turn of a conversation.
#[derive(Debug, Clone)]
pub struct HistoryTurn {
    /// Its stored ordinal in the conversation, from 1.
    pub ordinal: u64,
    /// What was said to the assistant.
    pub message: StoredEvent,
    /// The runs on it, in order of admission.
    pub runs: Vec<HistoryRun>,
}

/// Which turns of a conversation are asked for.
#[derive(Debug, Clone)]
pub struct HistoryQuery {
    /// The source.
    pub source: SourceName,
    /// The conversation within it.
    pub conversation: String,
    /// Turns below this ordinal.
    pub before_ordinal: u64,
    /// The newest of them, at most.
    pub limit: u32,
    /// Declarations whose runs are history.
    pub agents: Vec<String>,
}

/// From what a context is built.
#[derive(Debug, Clone)]
pub struct ContextQuery {
    /// What is answered.
    pub trigger: EventId,
    /// The newest turns before it, at most.
    pub turns_max: u32,
    /// Declarations whose runs are history.
    pub agents: Vec<String>,
    /// Ids of turns before those, at most.
    pub older_max: u32,
    /// The source of the documents and their paths below the context root.
    pub documents: Option<(SourceName, Vec<String>)>,
}

/// All that a context is built from, of one state of the store.
#[derive(Debug, Clone)]
pub struct ContextRows {
    /// The conversation of the trigger.
    pub conversation: String,
    /// The trigger's ordinal in it.
    pub ordinal: u64,
    /// The newest turns before it, oldest first, each with its evidence.
    pub turns: Vec<HistoryTurn>,
    /// Ids of the turns before those, newest first.
    pub older: Vec<EventId>,
    /// The documents that are there, each with the version that its pointer names, in the order of the query.
    pub documents: Vec<(DocumentRow, Option<VersionRow>)>,
}

/// Requests and tokens of a UTC day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// `YYYY-MM-DD`.
    pub day: String,
    /// The declaration.
    pub declaration: String,
    /// Requests counted.
    pub requests: u64,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
}

/// Which events are asked for.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Of these types; empty: of all.
    pub types: Vec<EventType>,
    /// Of this source.
    pub source: Option<SourceName>,
    /// Under this root.
    pub root: Option<EventId>,
    /// Above this position.
    pub after_position: u64,
    /// At most this many, oldest first.
    pub limit: u32,
}

/// Which runs are asked for.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Of this declaration.
    pub declaration: Option<String>,
    /// In these states; empty: in all.
    pub states: Vec<RunState>,
    /// On this trigger.
    pub trigger: Option<EventId>,
    /// Behind this place in the list.
    pub after_ordinal: u64,
    /// At most this many, oldest first.
    pub limit: u32,
}

/// What the engine did since it was opened; tests count with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Durable commits: transactions that reached the disk.
    pub commits: u64,
    /// Commands acknowledged; several may share one commit.
    pub commands: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows written.
    pub rows_written: u64,
    /// Database pages asked for, from cache or disk.
    pub pages_read: u64,
}
