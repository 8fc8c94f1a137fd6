//! What a run leaves: its output, its proposals, its end.

use serde_json::json;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, RunId};

use super::{Draft, DraftError, Parts};
use crate::event::{EventType, SourceName, StoredEvent};
use crate::payload as p;
use crate::time::Timestamp;

/// The id of the output that a run would settle with; known before it is settled, so that proposals can name it.
pub fn output_id(output_type: EventType, run: &RunId) -> EventId {
    EventId::of(output_type.key_kind(), &[run.into()])
}

/// An event type in the source and by the voice of a declaration.
fn by_agent(event_type: EventType, declaration: &str) -> (EventType, SourceName, String) {
    (event_type, SourceName::agent(declaration), format!("agent:{declaration}"))
}

/// The answer of a conversation turn.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn observation(
    trigger: &StoredEvent,
    payload: &p::MessageObservation,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    Parts::new(by_agent(EventType::MessageObservation, &payload.agent.id), payload, occurred_at)
        .identity(vec![(&payload.run).into()])
        .follows(trigger)
        .correlates(trigger.envelope.correlation_id.clone())
        .draft()
}

/// The answer to a private agent message.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn derived_agent_message(
    trigger: &StoredEvent,
    payload: &p::DerivedAgentMessage,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    Parts::new(by_agent(EventType::DerivedAgentMessage, &payload.agent.id), payload, occurred_at)
        .identity(vec![(&payload.run).into()])
        .follows(trigger)
        .correlates(trigger.envelope.correlation_id.clone())
        .external(payload.message_id.clone())
        .draft()
}

fn proposal<'a, P: p::Payload>(
    (event_type, kind): (EventType, ProposalKind),
    (proposer, trigger): (&p::Proposer, &StoredEvent),
    payload: &'a P,
    occurred_at: Timestamp,
) -> Parts<'a, P> {
    Parts::new(by_agent(event_type, &proposer.agent.id), payload, occurred_at)
        .identity(vec![(&proposer.run).into(), json!(kind)])
        .under(&trigger.envelope.root_id, &proposer.output)
        .correlates(trigger.envelope.correlation_id.clone())
}

/// A memory change that a model proposed: under the trigger's root, from the new output.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn memory_change_proposed(
    trigger: &StoredEvent,
    payload: &p::MemoryChangeProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let kind = (EventType::MemoryChangeProposed, ProposalKind::MemoryChange);
    proposal(kind, (&payload.proposer, trigger), payload, occurred_at).draft()
}

/// A correction that a model proposed: under the *target's* root, from the *target*.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn correction_proposed(
    trigger: &StoredEvent,
    payload: &p::CorrectionProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let kind = (EventType::CorrectionProposed, ProposalKind::SelfCorrection);
    proposal(kind, (&payload.proposer, trigger), payload, occurred_at)
        .under(&payload.target.source_root, &payload.target.output)
        .draft()
}

/// A focus that a model proposed: under the trigger's root, from the new output.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn focus_proposed(
    trigger: &StoredEvent,
    payload: &p::FocusProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let kind = (EventType::FocusProposed, ProposalKind::FocusDeclaration);
    proposal(kind, (&payload.proposer, trigger), payload, occurred_at).draft()
}

fn run_terminal<'a, P: p::Payload>(
    (event_type, declaration): (EventType, &str),
    run: &RunId,
    (trigger, parent): (&StoredEvent, &EventId),
    payload: &'a P,
    occurred_at: Timestamp,
) -> Parts<'a, P> {
    let source = SourceName::agent(declaration);
    Parts::new((event_type, source, "system:runtime"), payload, occurred_at)
        .identity(vec![run.into()])
        .under(&trigger.envelope.root_id, parent)
        .correlates(run.to_string())
}

/// A run that ended with an answer.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn run_completed(
    declaration: &str,
    trigger: &StoredEvent,
    payload: &p::RunCompleted,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let ending = (EventType::RunCompleted, declaration);
    run_terminal(ending, &payload.run, (trigger, &payload.output), payload, occurred_at).draft()
}

/// How a run ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// No valid answer.
    Failed,
    /// It may not go on.
    Blocked,
    /// It was given up.
    Abandoned,
}

impl Ending {
    /// The event type that says so.
    pub const fn event_type(self) -> EventType {
        match self {
            Self::Failed => EventType::RunFailed,
            Self::Blocked => EventType::RunBlocked,
            Self::Abandoned => EventType::RunAbandoned,
        }
    }
}

/// A run that ended without an answer.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn run_ended(
    ending: Ending,
    declaration: &str,
    trigger: &StoredEvent,
    payload: &p::RunEnded,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let ending = (ending.event_type(), declaration);
    run_terminal(ending, &payload.run, (trigger, &trigger.envelope.id), payload, occurred_at).draft()
}
