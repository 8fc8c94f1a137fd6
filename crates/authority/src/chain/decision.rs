//! The decision as a link of the chain: one per proposal, a person's, within its bounds.

use thought_contract::draft;
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::{Disposition, ProposalDecision};
use thought_protocol::limits::{
    DOCUMENT_BYTES_MAX_CEILING, PROPOSED_TEXT_CHARACTERS_MAX, REPLACEMENT_CHARACTERS_MAX,
};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Sensitive, Sha256Hex};
use thought_store::handle::Reader;

use super::seal::{decision_id, payload, same, sealed};
use super::{
    Authorship, ChainError, Link, MemoryChange, Proof, SelfCorrection, Verified, VerifiedChain, hold,
    refused, validate,
};
use thought_store::Images;

/// A verified proposal with the verified word of a person on it.
#[derive(Debug, Clone)]
pub struct Decided<K> {
    chain: VerifiedChain<K>,
    decision: VerifiedDecision,
}

/// A decision whose event, lineage and text were verified.
#[derive(Debug, Clone)]
pub struct VerifiedDecision {
    event: StoredEvent,
    payload: ProposalDecision,
}

impl VerifiedDecision {
    /// Its event.
    pub fn event(&self) -> &StoredEvent {
        &self.event
    }

    /// Its id.
    pub fn id(&self) -> &EventId {
        &self.event.envelope.id
    }

    /// What it says.
    pub fn payload(&self) -> &ProposalDecision {
        &self.payload
    }
}

impl<K> Decided<K> {
    /// The proposal.
    pub fn chain(&self) -> &VerifiedChain<K> {
        &self.chain
    }

    /// The decision.
    pub fn decision(&self) -> &VerifiedDecision {
        &self.decision
    }
}

impl Decided<MemoryChange> {
    /// The text that a person let through: the proposed one, or the operator's own; none of a rejection.
    pub fn text(&self) -> Option<Sensitive<String>> {
        effective(&self.decision.payload, &self.chain.subject.text)
    }
}

impl Decided<SelfCorrection> {
    /// The words that a person let through; none of a rejection.
    pub fn text(&self) -> Option<Sensitive<String>> {
        effective(&self.decision.payload, &self.chain.subject.replacement)
    }
}

fn effective(decision: &ProposalDecision, proposed: &Sensitive<String>) -> Option<Sensitive<String>> {
    match decision.disposition {
        Disposition::Accept => Some(proposed.clone()),
        Disposition::Edit => decision.replacement.as_ref().map(|own| Sensitive::new(own.text.clone())),
        Disposition::Reject => None,
    }
}

/// A decided proposal of either kind.
#[derive(Debug, Clone)]
pub enum DecidedChain {
    /// A memory change.
    Memory(Decided<MemoryChange>),
    /// A correction.
    Correction(Decided<SelfCorrection>),
}

impl DecidedChain {
    /// The decision.
    pub fn decision(&self) -> &VerifiedDecision {
        match self {
            Self::Memory(decided) => &decided.decision,
            Self::Correction(decided) => &decided.decision,
        }
    }

    /// The proposal's event.
    pub fn proposal(&self) -> &StoredEvent {
        match self {
            Self::Memory(decided) => decided.chain.proposal(),
            Self::Correction(decided) => decided.chain.proposal(),
        }
    }
}

/// The decision on a verified proposal, where there is one.
///
/// # Errors
/// [`ChainError`] when the event under its id is no decision on this proposal.
pub async fn decision_of(reader: &Reader, chain: &Verified) -> Proof<Option<VerifiedDecision>> {
    let Some(event) = reader.event(decision_id(&chain.proposal().envelope.id)).await? else {
        return Ok(None);
    };
    let payload = verify(chain.proposal(), EventType::ProposalDecision, &event)?;
    hold(payload.proposal_kind == chain.kind(), Link::Decision, "kind")?;
    let own = payload.replacement.as_ref().map(|own| own.text.as_str());
    hold(own.is_none_or(|text| replacement_fits(chain, text)), Link::Decision, "out-of-bounds")?;
    Ok(Some(VerifiedDecision { event, payload }))
}

/// Replays the chain of a proposal and of the decision on it.
///
/// # Errors
/// [`ChainError`]; without a decision it is [`Link::Decision`] with `missing`.
pub async fn validate_decision(
    reader: &Reader,
    images: &dyn Images,
    proposal: &EventId,
) -> Proof<DecidedChain> {
    let chain = validate(reader, images, proposal).await?;
    let decision = decision_of(reader, &chain).await?.ok_or(refused(Link::Decision, "missing"))?;
    Ok(match chain {
        Verified::Memory(chain) => DecidedChain::Memory(Decided { chain, decision }),
        Verified::Correction(chain) => DecidedChain::Correction(Decided { chain, decision }),
    })
}

/// A decision's event: sealed, the one of its proposal, and strict in what it says.
pub(super) fn verify(
    proposal: &StoredEvent,
    event_type: EventType,
    event: &StoredEvent,
) -> Result<ProposalDecision, ChainError> {
    let link = Link::Decision;
    hold(event.envelope.event_type == event_type, link, "type")?;
    sealed(event, link)?;
    let said: ProposalDecision = payload(event, link)?;
    same(event, draft::proposal_decision(proposal, &said, event.envelope.occurred_at), link)?;
    hold(said.proposal == proposal.envelope.id, link, "proposal")?;
    hold(said.proposal_kind != ProposalKind::FocusDeclaration, link, "kind")?;
    let edited = said.disposition == Disposition::Edit;
    hold(edited == said.replacement.is_some(), link, "replacement")?;
    if let Some(own) = &said.replacement {
        let length = u64::try_from(own.text.chars().count()).unwrap_or(u64::MAX);
        hold(length == own.length, link, "replacement-length")?;
        hold(Sha256Hex::of(own.text.as_bytes()) == own.sha256, link, "replacement-hash")?;
    }
    Ok(said)
}

/// Whether a person's own text is within the bound of what it stands in for.
pub(crate) fn replacement_fits(chain: &Verified, text: &str) -> bool {
    let characters_max = match chain {
        Verified::Correction(_) => REPLACEMENT_CHARACTERS_MAX,
        Verified::Memory(chain) => match chain.subject().authorship {
            Authorship::Agent { .. } => PROPOSED_TEXT_CHARACTERS_MAX,
            Authorship::Operator { .. } => usize::try_from(DOCUMENT_BYTES_MAX_CEILING).unwrap_or(usize::MAX),
        },
    };
    !text.is_empty() && !text.contains('\0') && text.chars().nth(characters_max).is_none()
}

/// The most bytes that the replacement of this proposal can have, for whoever reads the file.
pub fn replacement_bytes_max(chain: &Verified) -> u64 {
    let characters = match chain {
        Verified::Correction(_) => REPLACEMENT_CHARACTERS_MAX,
        Verified::Memory(chain) if matches!(chain.subject().authorship, Authorship::Agent { .. }) => {
            PROPOSED_TEXT_CHARACTERS_MAX
        }
        Verified::Memory(_) => return DOCUMENT_BYTES_MAX_CEILING,
    };
    u64::try_from(characters).unwrap_or(u64::MAX).saturating_mul(4)
}
