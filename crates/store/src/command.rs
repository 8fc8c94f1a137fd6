//! Commands: what one commit does, as data. Every operation names its precondition; a commit whose precondition does
//! not hold changes nothing.
//!
//! Operations are values, so that an engine is an interpreter of this list and a test can count what a turn commits.

use thought_contract::draft::Draft;
use thought_contract::event::SourceName;
use thought_contract::payload::DeliveryKind;
use thought_contract::run::{AttemptState, HeldReason, RunState};
use thought_contract::time::Timestamp;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{
    AttemptId, DocumentId, EventId, Fingerprint, RunId, Sensitive, Sha256Hex, SnapshotId, VersionId,
};

use crate::row::{ChangeoverRow, ChunkState, CorrectionOutcome, DeliveryState, ProposalState};

/// One atomic, durable change. Operations are applied in order; the first unmet precondition undoes them all.
#[derive(Debug, Clone)]
pub struct Commit {
    /// When it is recorded, for every event in it.
    pub at: Timestamp,
    /// What it does.
    pub ops: Vec<Op>,
}

/// A run that is new to the store.
#[derive(Debug, Clone)]
pub struct NewRun {
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
    /// The conversation within the source; runs of one conversation are serial.
    pub conversation: String,
    /// 0, or the ordinal of an operator's retry.
    pub retry: u32,
}

/// A snapshot as it is stored.
#[derive(Debug, Clone)]
pub struct NewSnapshot {
    /// Identity.
    pub id: SnapshotId,
    /// Hash of the uncompressed bytes.
    pub sha256: Sha256Hex,
    /// Hash of the packet it rebuilds to.
    pub packet_sha256: Sha256Hex,
    /// Compressed canonical bytes.
    pub bytes: Sensitive<Vec<u8>>,
}

/// An attempt that begins.
#[derive(Debug, Clone)]
pub struct NewAttempt {
    /// The attempt.
    pub id: AttemptId,
    /// From 1. Precondition: one more than the attempts that the run has, none of them started.
    pub ordinal: u32,
    /// The tier of the jail, as evidence.
    pub sandbox: String,
    /// The UTC day the request counts for.
    pub day: String,
    /// Precondition: fewer requests than this were counted for the declaration on that day.
    pub requests_per_day_max: u64,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct AttemptEnd {
    /// The attempt. Precondition: it is `started`.
    pub attempt: AttemptId,
    /// What became of it; never `started`.
    pub state: AttemptState,
    /// Reason code.
    pub reason: Option<String>,
    /// Tokens that the provider told, counted for the day of the attempt.
    pub input_tokens: Option<u64>,
    /// Likewise.
    pub output_tokens: Option<u64>,
}

/// A declaration version that becomes active.
#[derive(Debug, Clone)]
pub struct NewDeclaration {
    /// Declaration id.
    pub id: String,
    /// Precondition: higher than the active version, which is `expected_active`.
    pub version: u32,
    /// Compare-and-set: the version that is active now.
    pub expected_active: Option<u32>,
    /// Fingerprint of the three below.
    pub fingerprint: Fingerprint,
    /// Canonical bytes of the declaration as written.
    pub declaration: Sensitive<Vec<u8>>,
    /// Bytes of the prompt.
    pub prompt: Sensitive<Vec<u8>>,
    /// Canonical bytes of the proposal manifest.
    pub manifest: Sensitive<Vec<u8>>,
    /// For each subscribed source the head behind which it begins.
    pub sources: Vec<(SourceName, u64)>,
}

/// A scanned version of a document.
#[derive(Debug, Clone)]
pub struct NewVersion {
    /// The document.
    pub document: DocumentId,
    /// This version.
    pub version: VersionId,
    /// Compare-and-set: the version that the pointer names now; none for a document that is new or was removed before
    /// any version was kept.
    pub previous: Option<VersionId>,
    /// The source.
    pub source: SourceName,
    /// Path below the context root.
    pub path: String,
    /// Hash of the content.
    pub sha256: Sha256Hex,
    /// What it is.
    pub content_type: String,
    /// `id` of valid frontmatter.
    pub frontmatter_id: Option<String>,
    /// The bytes.
    pub content: Sensitive<Vec<u8>>,
    /// The event that tells of it; appended in the same commit.
    pub event: EventId,
}

/// A proposal that enters the index of what waits for a person.
#[derive(Debug, Clone)]
pub struct NewProposal {
    /// The event that proposes; appended in the same commit, or there already.
    pub proposal: EventId,
    /// What it proposes. Its first state follows from this alone: see [`ProposalState::first`].
    pub kind: ProposalKind,
    /// The run that made it; none for a person's.
    pub run: Option<RunId>,
    /// What a memory change is bound to.
    pub base: Option<BaseVersion>,
}

/// What is about to be written into a document.
#[derive(Debug, Clone)]
pub struct NewIntent {
    /// The decision that lets it through.
    pub decision: EventId,
    /// The proposal.
    pub proposal: EventId,
    /// Hash of the document as it will be.
    pub expected_sha256: Sha256Hex,
    /// Name of the temporary file in the context root.
    pub temporary: String,
}

/// The document version that a memory change is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseVersion {
    /// The document.
    pub document: DocumentId,
    /// Its version.
    pub version: VersionId,
}

/// One operation of a commit.
#[derive(Debug, Clone)]
pub enum Op {
    /// Appends an event. An equal event already there is success and changes nothing; another under the same id is a
    /// conflict.
    Append(Box<Draft>),

    /// Keeps a raw update until it is an event. Known `(channel, update)` pairs are left as they are.
    SpoolPut {
        /// The channel's source.
        channel: SourceName,
        /// The update's id.
        update: i64,
        /// Its bytes.
        body: Sensitive<Vec<u8>>,
    },
    /// Forgets a raw update. Absent is success.
    SpoolDelete {
        /// The channel's source.
        channel: SourceName,
        /// The update's id.
        update: i64,
    },
    /// Counts a failed try of a raw update, and parks it when told so.
    SpoolFailed {
        /// The channel's source.
        channel: SourceName,
        /// The update's id.
        update: i64,
        /// Whether it is set aside for good.
        park: bool,
    },
    /// Counts an update from a chat that is not admitted; the newest eight chats are kept.
    CountRefusedChat {
        /// The channel's source.
        channel: SourceName,
        /// The chat.
        chat: i64,
        /// Its kind, as the channel names it.
        kind: String,
    },

    /// Opens a run as `admitted`. Precondition: no run of that id.
    AdmitRun(NewRun),
    /// Moves `scanned` of a consumer up to a sequence; never down.
    SetScanned {
        /// The consumer.
        declaration: String,
        /// The source.
        source: SourceName,
        /// Everything up to here was looked at.
        sequence: u64,
    },
    /// Keeps the frozen context of a run. Precondition: the run has none, or the same bytes.
    PutSnapshot {
        /// The run.
        run: RunId,
        /// What is kept.
        snapshot: NewSnapshot,
    },
    /// Begins an attempt and makes the run `running`. Preconditions: the run is open and has a snapshot, the ordinal is
    /// due, and the day's budget is not spent. Counts one request for the day.
    StartAttempt {
        /// The run.
        run: RunId,
        /// What begins.
        attempt: NewAttempt,
    },
    /// Ends an attempt that was started.
    EndAttempt(AttemptEnd),
    /// Holds a run that has no attempt. Precondition: it is admitted or held.
    HoldRun {
        /// The run.
        run: RunId,
        /// Why.
        reason: HeldReason,
    },
    /// Ends a run. Precondition: it is open. Sets the consumer's progress to the lowest open sequence above it − 1, else
    /// to `scanned`.
    EndRun {
        /// The run.
        run: RunId,
        /// How; a terminal state.
        state: RunState,
        /// Reason code of any ending but `completed`.
        reason: Option<String>,
        /// The output of `completed`.
        output: Option<EventId>,
        /// The terminal event, appended in the same commit.
        terminal: EventId,
    },

    /// Puts a proposal into the index. Precondition: its event is there. A proposal that is in it already is left as it
    /// stands.
    TrackProposal(NewProposal),
    /// Moves a proposal from one state to another.
    MoveProposal {
        /// The proposal.
        proposal: EventId,
        /// Compare-and-set.
        from: ProposalState,
        /// The new state.
        to: ProposalState,
    },

    /// Holds only if this judgment stands on an output now; none: if no judgment does.
    ExpectJudgment {
        /// The output.
        output: EventId,
        /// Compare-and-set.
        active: Option<EventId>,
    },
    /// Keeps what is about to be written, in the place of an older intent of that decision.
    PutIntent(NewIntent),
    /// Records what became of a person's own correction. Known is left as it is.
    SettleCorrection {
        /// The command.
        command: EventId,
        /// What became of it.
        outcome: CorrectionOutcome,
    },
    /// Forgets what was about to be written. Absent is success.
    ClearIntent {
        /// The decision.
        decision: EventId,
    },

    /// Installs a declaration version and its consumer rows. Progress begins at the head, or before the lowest run of the
    /// declaration that is open behind this commit.
    InstallDeclaration(NewDeclaration),
    /// Keeps where the change of a declaration at work stands, in the place of an older change of it; its heads and
    /// acknowledgments begin anew where its token is another.
    PutChangeover(ChangeoverRow),
    /// Records that a role did what a change asks of it. Precondition: the change has this token.
    AckChangeover {
        /// The declaration.
        declaration: String,
        /// Which change.
        token: String,
        /// The role.
        role: String,
    },
    /// Forgets a change. Another token, or none, is success and changes nothing.
    ClearChangeover {
        /// The declaration.
        declaration: String,
        /// Which change.
        token: String,
    },

    /// Keeps a scanned version and moves the document's pointer to it.
    PutVersion(NewVersion),
    /// Moves a document's pointer to nothing. Precondition: it names `previous`.
    RemoveDocument {
        /// The document.
        document: DocumentId,
        /// The version it names now.
        previous: VersionId,
    },

    /// Records that a cause will be delivered, chunk by chunk, the first being sent now. Precondition: no delivery of
    /// that cause and kind.
    OpenDelivery {
        /// The output, or the event that a notice tells of.
        cause: EventId,
        /// What.
        kind: DeliveryKind,
        /// The channel's source.
        channel: SourceName,
        /// The chat.
        chat: i64,
        /// The forum topic.
        thread: Option<i64>,
        /// Length of each chunk, UTF-16 units; at least one.
        chunk_utf16_lengths: Vec<u64>,
    },
    /// Moves a chunk from one state to another.
    MoveChunk {
        /// The cause.
        cause: EventId,
        /// What.
        kind: DeliveryKind,
        /// From 0.
        ordinal: u32,
        /// Compare-and-set.
        from: ChunkState,
        /// The new state.
        to: ChunkState,
        /// Telegram's id of the sent message.
        message: Option<i64>,
        /// Who confirmed an uncertain chunk.
        confirmed_by: Option<String>,
    },
    /// Moves a delivery to another state.
    MoveDelivery {
        /// The cause.
        cause: EventId,
        /// What.
        kind: DeliveryKind,
        /// The new state.
        to: DeliveryState,
        /// Reason code of `refused` and `uncertain`, and of a delivery on its way that waits.
        reason: Option<String>,
        /// The receipt of `delivered`, appended in the same commit.
        receipt: Option<EventId>,
    },
    /// Moves a follower's cursor up to a position; never down.
    SetCursor {
        /// The follower.
        name: String,
        /// Everything up to here was handled.
        position: u64,
    },
    /// Says whether a role is at work; a dispatcher that is not will deliver nothing.
    SetRole {
        /// The role.
        role: String,
        /// Whether it works now.
        presence: Presence,
    },
}

/// Whether a role is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    AtWork,
    /// It is not.
    Away,
}
