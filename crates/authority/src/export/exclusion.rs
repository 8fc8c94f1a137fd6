//! Why a judgment is in no export: stable codes, counted and never explained with content.

use thought_store::StoreError;

use crate::chain::{ChainError, Link};

/// Why a judgment became no example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// Another judgment took its place.
    Superseded,
    /// It may not train.
    NotQualityEligible,
    /// It may not leave the house.
    NotExternallyEligible,
    /// Its frozen context shows an answer in the words of an accepted self-correction, and those do not leave the house.
    SelfCorrectionInContext,
    /// A part of its provenance is not there, or is not what it must be.
    Provenance {
        /// Which part.
        part: Part,
        /// Reason code.
        reason: &'static str,
    },
}

/// A part of the provenance of an example, as its example names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The judgment itself.
    Judgment,
    /// What it rests on: the decision on a proposal, or a person's command.
    Feedback,
    /// The completed run.
    Run,
    /// The message that was answered.
    Trigger,
    /// The answer.
    Output,
    /// The receipt of its one delivery.
    DeliveryReceipt,
    /// The frozen context of the run, with the declaration and packet that it names.
    ContextSnapshot,
    /// A link of the chain behind the feedback, or one that binds several of these together.
    Chain(Link),
}

impl Part {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Judgment => "judgment",
            Self::Feedback => "feedback",
            Self::Run => "run",
            Self::Trigger => "trigger",
            Self::Output => "output",
            Self::DeliveryReceipt => "delivery-receipt",
            Self::ContextSnapshot => "context-snapshot",
            Self::Chain(link) => link.as_str(),
        }
    }
}

impl Exclusion {
    /// The stable code.
    pub fn code(self) -> String {
        match self {
            Self::Superseded => "superseded".to_owned(),
            Self::NotQualityEligible => "not-quality-eligible".to_owned(),
            Self::NotExternallyEligible => "not-externally-eligible".to_owned(),
            Self::SelfCorrectionInContext => "self-correction-in-context".to_owned(),
            Self::Provenance { part, reason } => format!("{}-{reason}", part.as_str()),
        }
    }
}

/// What came of looking at a judgment: a value, an exclusion, or a store that did not answer.
#[derive(Debug)]
pub(super) enum Halt {
    Excluded(Exclusion),
    Store(StoreError),
}

pub(super) type Sought<T> = Result<T, Halt>;

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        match error {
            // A row that is not what was written spoils the example that needs it, and no other.
            StoreError::Corrupt { .. } => Self::Excluded(lacks(Part::Chain(Link::Packet), "corrupt")),
            other => Self::Store(other),
        }
    }
}

impl From<ChainError> for Halt {
    fn from(error: ChainError) -> Self {
        match error {
            ChainError::Store(error) => error.into(),
            ChainError::Refused { link, reason } => Self::Excluded(lacks(Part::Chain(link), reason)),
            ChainError::NotFound { .. } => Self::Excluded(lacks(Part::Chain(Link::Proposal), "missing")),
            ChainError::Inert { .. } => Self::Excluded(lacks(Part::Chain(Link::Proposal), "inert")),
            ChainError::Images(_) => Self::Excluded(lacks(Part::ContextSnapshot, "image-unreadable")),
        }
    }
}

pub(super) const fn lacks(part: Part, reason: &'static str) -> Exclusion {
    Exclusion::Provenance { part, reason }
}

/// Goes on only where this holds.
pub(super) fn demand(holds: bool, part: Part, reason: &'static str) -> Sought<()> {
    if holds { Ok(()) } else { Err(Halt::Excluded(lacks(part, reason))) }
}
