//! The one validator of the authority chain: from a proposal back to the words that it answers, link by link.
//!
//! Whoever decides, projects or writes takes a [`VerifiedChain`], and only [`validate`] makes one. It trusts no row by
//! its place: each event is compared with the one that the table of events would make of its payload (id, source, actor,
//! root, parent, correlation), with its hashes, and with what the frozen context admits. It never writes, and what it
//! refuses it names by link and reason alone. How much it reads depends on the frozen context, never on the log.

mod agent;
mod decision;
mod load;
mod operator;
mod seal;
mod target;

use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::{CorrectionTarget, MemoryOperation, MemoryTarget, Purpose};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, RunId, Sensitive, Sha256Hex};
use thought_store::StoreError;
use thought_store::handle::Reader;

use crate::limits::LINEAGE_DEPTH_MAX;
use thought_store::{Images, ImagesError};

pub(crate) use agent::installed;
pub(crate) use decision::replacement_fits;
pub use decision::{
    Decided, DecidedChain, VerifiedDecision, decision_of, replacement_bytes_max, validate_decision,
};
pub(crate) use load::{packet as rebuilt_packet, snapshot as frozen_snapshot};
pub(crate) use operator::before_the_change;
pub use seal::{decision_id, judgment_id, materialized_id};
pub(crate) use seal::{is_sealed, payload as payload_of, receipt_of, same as is_the_event_of};
pub(crate) use target::{Aim, verify as verify_target};

/// A link of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// The proposal's event.
    Proposal,
    /// The run that proposed.
    Run,
    /// The attempt that answered.
    Attempt,
    /// The message that was answered.
    Trigger,
    /// The declaration as it was activated.
    Declaration,
    /// The event of its activation.
    Activation,
    /// The frozen context.
    Snapshot,
    /// The packet that the frozen context rebuilds to.
    Packet,
    /// The answer that the proposal came with.
    Output,
    /// The completed run's receipt, which names the proposal.
    Completion,
    /// The arguments and the evidence that they cite.
    Arguments,
    /// The document version that a memory change is bound to.
    MemoryTarget,
    /// The answer that a correction is bound to, with run, root and receipt.
    CorrectionTarget,
    /// The proposal that an operator's proposal goes back to.
    Origin,
    /// The decision.
    Decision,
}

impl Link {
    /// The stable code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposal => "proposal",
            Self::Run => "run",
            Self::Attempt => "attempt",
            Self::Trigger => "trigger",
            Self::Declaration => "declaration",
            Self::Activation => "activation",
            Self::Snapshot => "snapshot",
            Self::Packet => "packet",
            Self::Output => "output",
            Self::Completion => "completion",
            Self::Arguments => "arguments",
            Self::MemoryTarget => "memory-target",
            Self::CorrectionTarget => "correction-target",
            Self::Origin => "origin",
            Self::Decision => "decision",
        }
    }
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A chain that was not verified. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// No such event.
    #[error("validate the chain: event {id} is not there")]
    NotFound {
        /// What was asked for.
        id: EventId,
    },
    /// A focus proposal: it is inert, and nobody decides on it.
    #[error("validate the chain: {id} is a focus proposal, which nobody decides on")]
    Inert {
        /// The proposal.
        id: EventId,
    },
    /// A link does not hold.
    #[error("validate the chain: the {link} does not hold ({reason})")]
    Refused {
        /// Which.
        link: Link,
        /// Reason code.
        reason: &'static str,
    },
    /// The store did not answer.
    #[error("validate the chain: read the store")]
    Store(#[from] StoreError),
    /// An image of the frozen context could not be read.
    #[error("validate the chain: read an image")]
    Images(#[from] ImagesError),
}

pub(crate) type Proof<T> = Result<T, ChainError>;

pub(crate) const fn refused(link: Link, reason: &'static str) -> ChainError {
    ChainError::Refused { link, reason }
}

/// Refuses a link unless this holds.
pub(crate) fn hold(holds: bool, link: Link, reason: &'static str) -> Proof<()> {
    if holds { Ok(()) } else { Err(refused(link, reason)) }
}

/// Who asked for a memory change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorship {
    /// A model, in this run.
    Agent {
        /// The run.
        run: RunId,
    },
    /// A person, going back to an earlier proposal.
    Operator {
        /// That proposal.
        origin: EventId,
        /// Why.
        purpose: Purpose,
    },
}

/// A change of the memory document. `Debug` shows lengths alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryChange {
    /// How.
    pub operation: MemoryOperation,
    /// The proposed text.
    pub text: Sensitive<String>,
    /// Its hash.
    pub text_sha256: Sha256Hex,
    /// What it is bound to.
    pub target: MemoryTarget,
    /// Who asked.
    pub authorship: Authorship,
}

/// A correction of an answer. `Debug` shows lengths alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfCorrection {
    /// What it should have said.
    pub replacement: Sensitive<String>,
    /// What it is bound to.
    pub target: CorrectionTarget,
}

/// A proposal whose whole chain was verified. There is no way to one but [`validate`].
#[derive(Debug, Clone)]
pub struct VerifiedChain<K> {
    proposal: StoredEvent,
    subject: K,
}

impl<K> VerifiedChain<K> {
    /// The proposal's event.
    pub fn proposal(&self) -> &StoredEvent {
        &self.proposal
    }

    /// The proposal's id.
    pub fn id(&self) -> &EventId {
        &self.proposal.envelope.id
    }

    /// What is proposed.
    pub fn subject(&self) -> &K {
        &self.subject
    }
}

/// A verified chain of either kind that is decided on.
#[derive(Debug, Clone)]
pub enum Verified {
    /// A memory change.
    Memory(VerifiedChain<MemoryChange>),
    /// A correction.
    Correction(VerifiedChain<SelfCorrection>),
}

impl Verified {
    /// The proposal's event.
    pub fn proposal(&self) -> &StoredEvent {
        match self {
            Self::Memory(chain) => chain.proposal(),
            Self::Correction(chain) => chain.proposal(),
        }
    }

    /// The kind.
    pub const fn kind(&self) -> ProposalKind {
        match self {
            Self::Memory(_) => ProposalKind::MemoryChange,
            Self::Correction(_) => ProposalKind::SelfCorrection,
        }
    }

    /// The proposed words.
    pub fn text(&self) -> &Sensitive<String> {
        match self {
            Self::Memory(chain) => &chain.subject.text,
            Self::Correction(chain) => &chain.subject.replacement,
        }
    }

    /// Hash of the proposed words.
    pub fn text_sha256(&self) -> Sha256Hex {
        Sha256Hex::of(self.text().expose().as_bytes())
    }

    /// The document version that a memory change is bound to.
    pub fn base(&self) -> Option<&MemoryTarget> {
        match self {
            Self::Memory(chain) => Some(&chain.subject.target),
            Self::Correction(_) => None,
        }
    }
}

/// Replays the whole authority chain of a proposal.
///
/// # Errors
/// [`ChainError`]: the first link that does not hold, or what kept it from being read.
pub async fn validate(reader: &Reader, images: &dyn Images, proposal: &EventId) -> Proof<Verified> {
    let lineage = lineage(reader, proposal).await?;
    let mut verified: Option<Verified> = None;
    for event in lineage.into_iter().rev() {
        verified = Some(match verified {
            None => agent::verify(reader, images, event).await?,
            Some(Verified::Memory(origin)) => {
                Verified::Memory(operator::verify(reader, &origin, event).await?)
            }
            Some(Verified::Correction(_)) => return Err(refused(Link::Origin, "not-a-memory-change")),
        });
    }
    verified.ok_or_else(|| ChainError::NotFound { id: proposal.clone() })
}

/// A proposal and what it goes back to, newest first: operators' proposals, the last of which goes back to a model's.
async fn lineage(reader: &Reader, proposal: &EventId) -> Proof<Vec<StoredEvent>> {
    let mut last = fetch(reader, proposal).await?;
    let mut lineage = Vec::new();
    while last.envelope.event_type == EventType::OperatorMemoryChangeProposed {
        hold(lineage.len() + 1 < LINEAGE_DEPTH_MAX, Link::Origin, "lineage-too-deep")?;
        let origin = operator::origin_of(&last)?;
        let before = match fetch(reader, &origin).await {
            Err(ChainError::NotFound { .. }) => return Err(refused(Link::Origin, "missing")),
            found => found?,
        };
        lineage.push(std::mem::replace(&mut last, before));
    }
    lineage.push(last);
    Ok(lineage)
}

/// Whether one more proposal may go back to this one: a chain that is longer is verified by nobody.
///
/// # Errors
/// [`ChainError`]: the lineage does not hold.
pub(crate) async fn has_room_behind(reader: &Reader, proposal: &EventId) -> Proof<bool> {
    Ok(lineage(reader, proposal).await?.len() < LINEAGE_DEPTH_MAX)
}

async fn fetch(reader: &Reader, id: &EventId) -> Proof<StoredEvent> {
    reader.event(id.clone()).await?.ok_or_else(|| ChainError::NotFound { id: id.clone() })
}

/// An event that must be there for a link to hold.
pub(crate) async fn evidence(reader: &Reader, id: &EventId, link: Link) -> Proof<StoredEvent> {
    let event = reader.event(id.clone()).await?.ok_or(refused(link, "missing"))?;
    hold(event.envelope.id == *id, link, "id")?;
    seal::sealed(&event, link)?;
    Ok(event)
}

/// A scanned version is what its bytes and its event say.
pub(crate) async fn verify_version(reader: &Reader, row: &thought_store::row::VersionRow) -> Proof<()> {
    operator::version(reader, row, Link::MemoryTarget).await
}
