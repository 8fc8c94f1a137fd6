//! What the log holds about one turn, as a reader of any store hands it over.

use thought_protocol::RunId;

use crate::event::StoredEvent;
use crate::run::RunState;

/// A stored turn with the runs on it.
#[derive(Debug, Clone)]
pub struct TurnEvidence {
    /// Its stored ordinal in the conversation, from 1.
    pub ordinal: u64,
    /// What was said to the assistant.
    pub message: StoredEvent,
    /// The runs on it.
    pub runs: Vec<RunEvidence>,
}

/// A run on a turn with everything that may prove its answer.
#[derive(Debug, Clone)]
pub struct RunEvidence {
    /// The run.
    pub run: RunId,
    /// The declaration.
    pub agent: String,
    /// Its version.
    pub version: u32,
    /// Where the run stands.
    pub state: RunState,
    /// Its output.
    pub output: Option<StoredEvent>,
    /// Its completed event.
    pub completed: Option<StoredEvent>,
    /// The proposals that its completed event names, in order.
    pub proposals: Vec<StoredEvent>,
    /// What became of the output in its channel.
    pub reply: Reply,
    /// The receipt of its delivery.
    pub receipt: Option<StoredEvent>,
    /// The active judgment on its output.
    pub judgment: Option<StoredEvent>,
}

/// What became of an output in its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Delivered; the receipt says so.
    Delivered,
    /// On its way.
    Pending,
    /// Not delivered, and nobody is about to.
    NotDelivered,
}
