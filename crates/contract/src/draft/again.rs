//! A stored event drafted again: what its constructor makes of its payload and of the event it follows from. What stands
//! in the log must be that, member by member; so a hand that changed one of them is seen, also where a hash was set right.

use thought_protocol::EventId;

use super::{Draft, DraftError, Ending, NoticeSubject, system};
use super::{outputs, person, sources};
use crate::event::{EventType, PayloadError, SourceName, StoredEvent};
use crate::payload as p;

/// A stored event that cannot be drafted again.
#[derive(Debug, thiserror::Error)]
pub enum AgainError {
    /// Its payload does not decode.
    #[error("draft a stored event again")]
    Payload(#[from] PayloadError),
    /// Its payload has no canonical form.
    #[error("draft a stored event again")]
    Draft(#[from] DraftError),
    /// It follows from an event, and that one is not at hand.
    #[error("draft a stored event again: the event it follows from is not there")]
    CauseMissing,
    /// Its source or actor is none of its type.
    #[error("draft a stored event again: its source or actor is none that its type has")]
    Voice,
}

/// Whether every field that makes an event's identity stands in the event itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// All do, so that id and digest of equality can be compared.
    Known,
    /// One is known to its producer alone (which bot received a message, what a notice was about).
    Outside,
}

/// The event that a stored one is drafted from, by id; none for one that stands alone.
///
/// # Errors
/// [`PayloadError`] when the payload does not decode.
pub fn drafted_from(event: &StoredEvent) -> Result<Option<EventId>, PayloadError> {
    use EventType as T;
    Ok(match event.envelope.event_type {
        T::MemoryChangeProposed => Some(event.payload::<p::MemoryChangeProposed>()?.proposer.trigger),
        T::CorrectionProposed => Some(event.payload::<p::CorrectionProposed>()?.proposer.trigger),
        T::FocusProposed => Some(event.payload::<p::FocusProposed>()?.proposer.trigger),
        T::MessageObservation
        | T::DerivedAgentMessage
        | T::OperatorMemoryChangeProposed
        | T::RunCompleted
        | T::RunFailed
        | T::RunBlocked
        | T::RunAbandoned
        | T::ProposalDecision
        | T::MemoryMaterialized
        | T::MaterializationFailed
        | T::DeliveryTelegram => event.envelope.parent_id.clone(),
        T::TelegramMessage
        | T::TelegramCommand
        | T::FileVersion
        | T::FileRemoved
        | T::AgentMessage
        | T::JudgmentRecorded
        | T::NoticeRequested
        | T::DeclarationActivated
        | T::Incident => None,
    })
}

/// Drafts a stored event again; `cause` is the event that [`drafted_from`] names.
///
/// # Errors
/// [`AgainError`].
pub fn again(event: &StoredEvent, cause: Option<&StoredEvent>) -> Result<(Draft, Identity), AgainError> {
    use EventType as T;
    let envelope = &event.envelope;
    let at = envelope.occurred_at;
    let cause = || cause.ok_or(AgainError::CauseMissing);
    let behind =
        |name: &str, prefix: &str| name.strip_prefix(prefix).map(str::to_owned).ok_or(AgainError::Voice);
    let agent = || behind(envelope.source.as_str(), "agent:");
    let ended =
        |ending| Ok::<_, AgainError>(outputs::run_ended(ending, &agent()?, cause()?, &event.payload()?, at)?);
    let draft = match envelope.event_type {
        T::TelegramMessage => {
            behind(envelope.source.as_str(), "telegram:")?;
            let draft = sources::telegram_message(&envelope.source, 0, &event.payload()?, at)?;
            return Ok((draft, Identity::Outside));
        }
        T::TelegramCommand => {
            behind(envelope.source.as_str(), "telegram:")?;
            let draft = sources::telegram_command(&envelope.source, 0, &event.payload()?, at)?;
            return Ok((draft, Identity::Outside));
        }
        T::NoticeRequested => {
            let role = behind(envelope.source.as_str(), "notices:")?;
            let cause = envelope.parent_id.clone().map(|parent| (envelope.root_id.clone(), parent));
            let about = NoticeSubject { subject: String::new(), day: None, cause };
            return Ok((system::notice_requested(&role, &about, &event.payload()?, at)?, Identity::Outside));
        }
        T::FileVersion => sources::file_version(&event.payload()?, at)?,
        T::FileRemoved => sources::file_removed(&event.payload()?, at)?,
        T::AgentMessage => sources::agent_message(&event.payload()?, at)?,
        T::MessageObservation => outputs::observation(cause()?, &event.payload()?, at)?,
        T::DerivedAgentMessage => outputs::derived_agent_message(cause()?, &event.payload()?, at)?,
        T::MemoryChangeProposed => outputs::memory_change_proposed(cause()?, &event.payload()?, at)?,
        T::CorrectionProposed => outputs::correction_proposed(cause()?, &event.payload()?, at)?,
        T::FocusProposed => outputs::focus_proposed(cause()?, &event.payload()?, at)?,
        T::OperatorMemoryChangeProposed => {
            person::operator_memory_change_proposed(cause()?, &event.payload()?, at)?
        }
        // The output stands under its trigger's root, which is all that an ending takes of the trigger.
        T::RunCompleted => outputs::run_completed(&agent()?, cause()?, &event.payload()?, at)?,
        T::RunFailed => ended(Ending::Failed)?,
        T::RunBlocked => ended(Ending::Blocked)?,
        T::RunAbandoned => ended(Ending::Abandoned)?,
        T::ProposalDecision => person::proposal_decision(cause()?, &event.payload()?, at)?,
        T::JudgmentRecorded => person::judgment_recorded(&event.payload()?, at)?,
        T::MemoryMaterialized => person::memory_materialized(cause()?, &event.payload()?, at)?,
        T::MaterializationFailed => person::materialization_failed(cause()?, &event.payload()?, at)?,
        T::DeliveryTelegram => {
            let telegram = SourceName::new(behind(envelope.source.as_str(), "delivery:")?);
            system::delivery(&telegram, cause()?, &event.payload()?, at)?
        }
        T::DeclarationActivated => system::declaration_activated(&event.payload()?, at)?,
        T::Incident => {
            let role = behind(envelope.actor.as_str(), "system:")?;
            system::incident(&role, &event.payload()?, at)?
        }
    };
    Ok((draft, Identity::Known))
}

/// What of a stored event is not what its draft says; the name of the first such member.
pub fn difference(event: &StoredEvent, draft: &Draft, identity: Identity) -> Option<&'static str> {
    let envelope = &event.envelope;
    let root = if draft.root == super::Root::Itself { &envelope.id } else { draft.root_id() };
    let members = [
        ("id", identity == Identity::Outside || envelope.id == *draft.id()),
        ("source", envelope.source == *draft.source()),
        ("actor", envelope.actor == *draft.actor()),
        ("root", envelope.root_id == *root),
        ("parent", envelope.parent_id.as_ref() == draft.parent()),
        ("correlation", envelope.correlation_id.as_deref() == draft.correlation_id()),
        ("external-id", envelope.external_id.as_deref() == draft.external_id()),
        ("payload", event.payload == *draft.payload()),
    ];
    members.into_iter().find(|(_, same)| !same).map(|(name, _)| name)
}
