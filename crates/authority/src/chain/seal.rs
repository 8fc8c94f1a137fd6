//! What a stored event must be: sealed by its hashes, and the very event that the table of events would make of it.

use thought_contract::draft::{Draft, DraftError};
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::Payload;
use thought_contract::time::Timestamp;
use thought_protocol::{EventId, Sha256Hex};

use super::{Link, Proof, hold, refused};

/// The hashes of an event are those of its bytes, and its privacy is its type's.
pub(super) fn sealed(event: &StoredEvent, link: Link) -> Proof<()> {
    let envelope = &event.envelope;
    hold(Sha256Hex::of(event.payload.expose()) == envelope.payload_sha256, link, "payload-hash")?;
    hold(envelope.privacy == envelope.event_type.privacy(), link, "privacy")?;
    match envelope.chain_sha256() {
        Ok(chain) => hold(chain == event.chain_sha256, link, "chain-hash"),
        Err(_content_dark) => Err(refused(link, "chain-hash")),
    }
}

/// Whether the hashes of an event are those of its bytes.
pub(crate) fn is_sealed(event: &StoredEvent) -> bool {
    sealed(event, Link::Proposal).is_ok()
}

/// The payload of an event that must be of one type.
pub(crate) fn payload<P: Payload>(event: &StoredEvent, link: Link) -> Proof<P> {
    match event.payload() {
        Ok(payload) => Ok(payload),
        Err(_content_dark) => Err(refused(link, "payload")),
    }
}

/// The event is what this draft would become: nothing of it was chosen freely.
pub(crate) fn same(event: &StoredEvent, draft: Result<Draft, DraftError>, link: Link) -> Proof<()> {
    let draft = match draft {
        Ok(draft) => draft,
        Err(_content_dark) => return Err(refused(link, "payload")),
    };
    let envelope = &event.envelope;
    hold(envelope.event_type == draft.event_type(), link, "type")?;
    hold(envelope.id == *draft.id(), link, "id")?;
    hold(envelope.source == *draft.source(), link, "source")?;
    hold(envelope.actor == *draft.actor(), link, "actor")?;
    hold(envelope.root_id == *draft.root_id(), link, "root")?;
    hold(envelope.parent_id.as_ref() == draft.parent(), link, "parent")?;
    hold(envelope.correlation_id.as_deref() == draft.correlation_id(), link, "correlation")?;
    hold(envelope.external_id.as_deref() == draft.external_id(), link, "external-id")?;
    // Equal to the canonical bytes of what it decodes to, so that no member was smuggled in.
    hold(event.payload.expose() == draft.payload().expose(), link, "payload")
}

/// A receipt of a decision: sealed, and the one that follows from it.
pub(crate) fn receipt_of<P: Payload>(
    decision: &StoredEvent,
    event: &StoredEvent,
    of: impl FnOnce(&StoredEvent, &P, Timestamp) -> Result<Draft, DraftError>,
) -> Proof<P> {
    sealed(event, Link::Decision)?;
    let told: P = payload(event, Link::Decision)?;
    same(event, of(decision, &told, event.envelope.occurred_at), Link::Decision)?;
    Ok(told)
}

/// The id of the one decision on a proposal.
pub fn decision_id(proposal: &EventId) -> EventId {
    EventId::of(EventType::ProposalDecision.key_kind(), &[proposal.into()])
}

/// The id of the one receipt of a decision that was written.
pub fn materialized_id(decision: &EventId) -> EventId {
    EventId::of(EventType::MemoryMaterialized.key_kind(), &[decision.into()])
}

/// The id of the judgment that rests on this feedback and may not leave the house.
pub fn judgment_id(feedback: &EventId) -> EventId {
    EventId::of(EventType::JudgmentRecorded.key_kind(), &[feedback.into(), serde_json::json!(false)])
}
