//! What a person's word leaves: proposals made again, decisions, judgments, and the receipts of what was written.

use serde_json::{Value, json};
use thought_protocol::EventId;

use super::{Draft, DraftError, Parts};
use crate::event::{CONTEXT_SOURCE, EventType, SourceName, StoredEvent};
use crate::payload as p;
use crate::time::Timestamp;

/// A memory change that a person proposed again or in reverse: under the origin's root, from the origin.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn operator_memory_change_proposed(
    origin: &StoredEvent,
    payload: &p::OperatorMemoryChangeProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let source = SourceName::new("operator:proposals");
    let actor = format!("human:{}", payload.operator);
    let base = &payload.target.version_id;
    Parts::new((EventType::OperatorMemoryChangeProposed, source, actor), payload, occurred_at)
        .identity(vec![(&payload.origin).into(), base.into(), json!(payload.purpose)])
        .follows(origin)
        .correlates(origin.envelope.correlation_id.clone())
        .draft()
}

/// A person's word on a proposal: one per proposal, whoever says it and however often it is submitted.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn proposal_decision(
    proposal: &StoredEvent,
    payload: &p::ProposalDecision,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let source = SourceName::new("review:decisions");
    let actor = format!("human:{}", payload.operator);
    Parts::new((EventType::ProposalDecision, source, actor), payload, occurred_at)
        .identity(vec![(&payload.proposal).into()])
        .follows(proposal)
        .equal_by(vec![
            json!(payload.proposal_kind),
            json!(payload.disposition),
            json!(payload.replacement.as_ref().map(|replacement| &replacement.text)),
            json!(payload.operator),
        ])
        .correlates(payload.proposal.to_string())
        .draft()
}

/// A correction that counts: under the target's root, from the decision or command it rests on.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn judgment_recorded(payload: &p::JudgmentRecorded, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    let source = SourceName::new("review:judgments");
    Parts::new((EventType::JudgmentRecorded, source, payload.actor.clone()), payload, occurred_at)
        .identity(vec![(&payload.feedback).into(), json!(payload.external_export_eligible)])
        .under(&payload.target.source_root, &payload.feedback)
        .draft()
}

fn materialization<'a, P: p::Payload>(
    event_type: EventType,
    (decision, proposal): (&StoredEvent, &EventId),
    identity: Vec<Value>,
    payload: &'a P,
    occurred_at: Timestamp,
) -> Parts<'a, P> {
    let source = SourceName::new(format!("materializer:{CONTEXT_SOURCE}"));
    Parts::new((event_type, source, "system:materializer"), payload, occurred_at)
        .identity(identity)
        .follows(decision)
        .correlates(proposal.to_string())
}

/// A memory change that was written and verified: one receipt per decision.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn memory_materialized(
    decision: &StoredEvent,
    payload: &p::MemoryMaterialized,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let identity = vec![(&payload.decision).into()];
    let about = (decision, &payload.proposal);
    materialization(EventType::MemoryMaterialized, about, identity, payload, occurred_at).draft()
}

/// A memory change that could not be written: one receipt per decision and reason.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn materialization_failed(
    decision: &StoredEvent,
    payload: &p::MaterializationFailed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let identity = vec![(&payload.decision).into(), json!(payload.reason)];
    let about = (decision, &payload.proposal);
    materialization(EventType::MaterializationFailed, about, identity, payload, occurred_at).draft()
}
