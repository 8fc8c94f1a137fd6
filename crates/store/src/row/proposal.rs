//! Rows of the index of proposals.

use thought_contract::time::Timestamp;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{DocumentId, EventId, RunId, VersionId};

/// Where a proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProposalState {
    /// Nobody has said a word on it.
    Undecided,
    /// A person accepted or edited it; what follows from that is not recorded yet.
    Decided,
    /// Everything that follows from the decision is recorded.
    Projected,
    /// It was accepted, and could not be carried out for a final reason.
    Failed,
    /// It cannot be decided, and waits for nothing.
    Inert,
}

impl ProposalState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Undecided, Self::Decided, Self::Projected, Self::Failed, Self::Inert];

    /// The state that a proposal begins in: a focus has nobody to decide it.
    pub const fn first(kind: ProposalKind) -> Self {
        match kind {
            ProposalKind::MemoryChange | ProposalKind::SelfCorrection => Self::Undecided,
            ProposalKind::FocusDeclaration => Self::Inert,
        }
    }
}

/// Whether what a proposal is bound to still stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// It does, or the proposal is bound to no document.
    Current,
    /// The document has moved on, or is gone.
    Stale,
}

/// A proposal in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalRow {
    /// The event that proposes.
    pub proposal: EventId,
    /// Its position in the store; the index is in this order.
    pub position: u64,
    /// What it proposes.
    pub kind: ProposalKind,
    /// The run that made it; none for a person's.
    pub run: Option<RunId>,
    /// The document that a memory change is bound to.
    pub document: Option<DocumentId>,
    /// The version of it.
    pub base_version: Option<VersionId>,
    /// Whether that is the document's version now.
    pub base: Base,
    /// Where it stands.
    pub state: ProposalState,
    /// When it was proposed.
    pub proposed_at: Timestamp,
}

/// Which proposals are asked for.
#[derive(Debug, Clone, Default)]
pub struct ProposalFilter {
    /// In these states; empty: in all.
    pub states: Vec<ProposalState>,
    /// Of these kinds; empty: of all.
    pub kinds: Vec<ProposalKind>,
    /// Behind this position.
    pub after_position: u64,
    /// At most this many, oldest first.
    pub limit: u32,
}

/// How many proposals stand where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposalCounts {
    /// For each state that has any.
    pub states: Vec<(ProposalState, u64)>,
    /// When the oldest undecided one was proposed.
    pub oldest_undecided_at: Option<Timestamp>,
}

impl ProposalCounts {
    /// How many stand in a state.
    pub fn of(&self, state: ProposalState) -> u64 {
        self.states.iter().find(|(found, _)| *found == state).map_or(0, |(_, count)| *count)
    }
}

stored_words! {
    ProposalState {
        Undecided = "undecided", Decided = "decided", Projected = "projected", Failed = "failed", Inert = "inert"
    }
    Base { Current = "current", Stale = "stale" }
}
