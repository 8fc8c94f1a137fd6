//! Drafts: events before they have a place in the log. One constructor per type says which fields make its identity,
//! which make it equal to a repetition, who speaks, and under which root it stands.
//!
//! Nothing else in the product builds a draft, so the table of events is this file.

use serde_json::{Value, json};
use thought_protocol::canonical::{self, CanonicalError};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Sensitive, Sha256Hex};

use crate::event::{Actor, EventType, SourceName, StoredEvent};
use crate::payload as p;
use crate::time::Timestamp;

/// Which event stands at the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// This one.
    Itself,
    /// Another.
    Of(EventId),
}

/// An event that wants a place in the log.
#[derive(Debug, Clone)]
pub struct Draft {
    id: EventId,
    event_type: EventType,
    source: SourceName,
    actor: Actor,
    root: Root,
    parent: Option<EventId>,
    correlation_id: Option<String>,
    external_id: Option<String>,
    conversation: Option<String>,
    occurred_at: Timestamp,
    equality_sha256: Sha256Hex,
    payload: Sensitive<Vec<u8>>,
}

impl Draft {
    /// The stable id.
    pub fn id(&self) -> &EventId {
        &self.id
    }
    /// The type.
    pub fn event_type(&self) -> EventType {
        self.event_type
    }
    /// The source it asks a place in.
    pub fn source(&self) -> &SourceName {
        &self.source
    }
    /// Who speaks.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }
    /// The id at the root: its own where it is a root itself.
    pub fn root_id(&self) -> &EventId {
        match &self.root {
            Root::Itself => &self.id,
            Root::Of(id) => id,
        }
    }
    /// The event it follows from.
    pub fn parent(&self) -> Option<&EventId> {
        self.parent.as_ref()
    }
    /// What it belongs together with.
    pub fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }
    /// Its id outside.
    pub fn external_id(&self) -> Option<&str> {
        self.external_id.as_deref()
    }
    /// The conversation in which a turn gets its ordinal; names one within the source.
    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }
    /// When it happened.
    pub fn occurred_at(&self) -> Timestamp {
        self.occurred_at
    }
    /// Digest over all that a repetition must share to be the same event.
    pub fn equality_sha256(&self) -> &Sha256Hex {
        &self.equality_sha256
    }
    /// Canonical bytes of the payload.
    pub fn payload(&self) -> &Sensitive<Vec<u8>> {
        &self.payload
    }
}

/// A draft that has no canonical form.
#[derive(Debug, thiserror::Error)]
#[error("draft an event of type {event_type}")]
pub struct DraftError {
    event_type: EventType,
    #[source]
    source: CanonicalError,
}

/// What of an event a repetition must share.
enum Equality {
    /// Identity, actor, root, parent and payload.
    Whole,
    /// Identity and these values alone.
    Narrow(Vec<Value>),
}

struct Parts<'a, P> {
    event_type: EventType,
    source: SourceName,
    actor: String,
    root: Root,
    parent: Option<EventId>,
    identity: Vec<Value>,
    equality: Equality,
    correlation_id: Option<String>,
    external_id: Option<String>,
    conversation: Option<String>,
    occurred_at: Timestamp,
    payload: &'a P,
}

fn build<P: p::Payload>(parts: Parts<'_, P>) -> Result<Draft, DraftError> {
    let event_type = parts.event_type;
    let fail = |source| DraftError { event_type, source };
    let id = EventId::of(event_type.key_kind(), &parts.identity);
    let payload = canonical::to_vec(parts.payload).map_err(fail)?;
    let equality = match parts.equality {
        Equality::Narrow(values) => json!([event_type.as_str(), parts.identity, values]),
        Equality::Whole => {
            let root = match &parts.root {
                Root::Itself => Value::Null,
                Root::Of(root) => root.into(),
            };
            let parent = parts.parent.as_ref().map_or(Value::Null, Value::from);
            json!([event_type.as_str(), parts.identity, parts.actor, root, parent, Sha256Hex::of(&payload)])
        }
    };
    let equality_sha256 = Sha256Hex::of(&canonical::to_vec(&equality).map_err(fail)?);
    Ok(Draft {
        id,
        event_type,
        source: parts.source,
        actor: Actor::new(parts.actor),
        root: parts.root,
        parent: parts.parent,
        correlation_id: parts.correlation_id,
        external_id: parts.external_id,
        conversation: parts.conversation,
        occurred_at: parts.occurred_at,
        equality_sha256,
        payload: Sensitive::new(payload),
    })
}

/// The correlation of everything in a Telegram conversation: `<chat>:<thread or 0>`.
pub fn telegram_correlation(chat_id: i64, thread_id: Option<i64>) -> String {
    format!("{chat_id}:{}", thread_id.unwrap_or(0))
}

/// A person's message.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form; so in every constructor below.
pub fn telegram_message(
    source: &SourceName,
    bot_id: i64,
    payload: &p::TelegramMessage,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let correlation = telegram_correlation(payload.chat_id, payload.thread_id);
    let message: Value = match &payload.media_group_id {
        Some(album) => json!(["album", album]),
        None => json!(payload.message_id),
    };
    build(Parts {
        event_type: EventType::TelegramMessage,
        source: source.clone(),
        actor: format!("human:telegram:{}", payload.user_id),
        root: Root::Itself,
        parent: None,
        identity: vec![json!(source), json!(bot_id), json!(payload.chat_id), message],
        equality: Equality::Narrow(vec![]),
        conversation: Some(correlation.clone()),
        correlation_id: Some(correlation),
        external_id: Some(format!("{}:{}", payload.chat_id, payload.message_id)),
        occurred_at,
        payload,
    })
}

/// A command that no model answers.
///
/// # Errors
/// As [`telegram_message`].
pub fn telegram_command(
    source: &SourceName,
    bot_id: i64,
    payload: &p::TelegramCommand,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::TelegramCommand,
        source: source.clone(),
        actor: format!("human:telegram:{}", payload.user_id),
        root: Root::Itself,
        parent: None,
        identity: vec![json!(source), json!(bot_id), json!(payload.chat_id), json!(payload.message_id)],
        equality: Equality::Narrow(vec![]),
        correlation_id: Some(telegram_correlation(payload.chat_id, payload.thread_id)),
        external_id: Some(format!("{}:{}", payload.chat_id, payload.message_id)),
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A scanned version of a document.
///
/// # Errors
/// As [`telegram_message`].
pub fn file_version(payload: &p::FileVersion, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    let source = SourceName::context();
    build(Parts {
        event_type: EventType::FileVersion,
        identity: vec![json!(source), json!(payload.document_id), json!(payload.version_id)],
        source,
        actor: "system:filesystem".to_owned(),
        root: Root::Itself,
        parent: None,
        equality: Equality::Whole,
        correlation_id: None,
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A document that is gone.
///
/// # Errors
/// As [`telegram_message`].
pub fn file_removed(payload: &p::FileRemoved, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    let source = SourceName::context();
    build(Parts {
        event_type: EventType::FileRemoved,
        identity: vec![json!(source), json!(payload.document_id), json!(payload.previous_version_id)],
        source,
        actor: "system:filesystem".to_owned(),
        root: Root::Itself,
        parent: None,
        equality: Equality::Whole,
        correlation_id: None,
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A private message of an admitted agent.
///
/// # Errors
/// As [`telegram_message`].
pub fn agent_message(payload: &p::AgentMessage, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::AgentMessage,
        source: SourceName::agent_message(&payload.sender_agent_id),
        actor: format!("agent:{}", payload.sender_agent_id),
        root: Root::Itself,
        parent: None,
        identity: vec![
            json!(payload.sender_agent_id),
            json!(payload.recipient_agent_id),
            json!(payload.thread_id),
            json!(payload.message_id),
        ],
        equality: Equality::Narrow(vec![json!(payload.text)]),
        correlation_id: Some(payload.thread_id.clone()),
        external_id: Some(payload.message_id.clone()),
        conversation: Some(format!("{}/{}", payload.recipient_agent_id, payload.thread_id)),
        occurred_at,
        payload,
    })
}

/// The id of the output that a run would settle with; known before it is settled, so that proposals can name it.
pub fn output_id(output_type: EventType, run: &thought_protocol::RunId) -> EventId {
    EventId::of(output_type.key_kind(), &[run.into()])
}

/// The answer of a conversation turn.
///
/// # Errors
/// As [`telegram_message`].
pub fn observation(
    trigger: &StoredEvent,
    payload: &p::MessageObservation,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::MessageObservation,
        source: SourceName::agent(&payload.agent.id),
        actor: format!("agent:{}", payload.agent.id),
        root: Root::Of(trigger.envelope.root_id.clone()),
        parent: Some(trigger.envelope.id.clone()),
        identity: vec![(&payload.run).into()],
        equality: Equality::Whole,
        correlation_id: trigger.envelope.correlation_id.clone(),
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// The answer to a private agent message.
///
/// # Errors
/// As [`telegram_message`].
pub fn derived_agent_message(
    trigger: &StoredEvent,
    payload: &p::DerivedAgentMessage,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::DerivedAgentMessage,
        source: SourceName::agent(&payload.agent.id),
        actor: format!("agent:{}", payload.agent.id),
        root: Root::Of(trigger.envelope.root_id.clone()),
        parent: Some(trigger.envelope.id.clone()),
        identity: vec![(&payload.run).into()],
        equality: Equality::Whole,
        correlation_id: trigger.envelope.correlation_id.clone(),
        external_id: Some(payload.message_id.clone()),
        conversation: None,
        occurred_at,
        payload,
    })
}

fn proposal<P: p::Payload>(
    (event_type, kind): (EventType, ProposalKind),
    proposer: &p::Proposer,
    root: EventId,
    parent: EventId,
    correlation_id: Option<String>,
    occurred_at: Timestamp,
    payload: &P,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type,
        source: SourceName::agent(&proposer.agent.id),
        actor: format!("agent:{}", proposer.agent.id),
        root: Root::Of(root),
        parent: Some(parent),
        identity: vec![(&proposer.run).into(), json!(kind)],
        equality: Equality::Whole,
        correlation_id,
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A memory change that a model proposed: under the trigger's root, from the new output.
///
/// # Errors
/// As [`telegram_message`].
pub fn memory_change_proposed(
    trigger: &StoredEvent,
    payload: &p::MemoryChangeProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    proposal(
        (EventType::MemoryChangeProposed, ProposalKind::MemoryChange),
        &payload.proposer,
        trigger.envelope.root_id.clone(),
        payload.proposer.output.clone(),
        trigger.envelope.correlation_id.clone(),
        occurred_at,
        payload,
    )
}

/// A correction that a model proposed: under the target's root, from the target.
///
/// # Errors
/// As [`telegram_message`].
pub fn correction_proposed(
    trigger: &StoredEvent,
    payload: &p::CorrectionProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    proposal(
        (EventType::CorrectionProposed, ProposalKind::SelfCorrection),
        &payload.proposer,
        payload.target.source_root.clone(),
        payload.target.output.clone(),
        trigger.envelope.correlation_id.clone(),
        occurred_at,
        payload,
    )
}

/// A focus that a model proposed: under the trigger's root, from the new output.
///
/// # Errors
/// As [`telegram_message`].
pub fn focus_proposed(
    trigger: &StoredEvent,
    payload: &p::FocusProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    proposal(
        (EventType::FocusProposed, ProposalKind::FocusDeclaration),
        &payload.proposer,
        trigger.envelope.root_id.clone(),
        payload.proposer.output.clone(),
        trigger.envelope.correlation_id.clone(),
        occurred_at,
        payload,
    )
}

fn run_terminal<P: p::Payload>(
    event_type: EventType,
    declaration: &str,
    run: &thought_protocol::RunId,
    trigger: &StoredEvent,
    parent: EventId,
    occurred_at: Timestamp,
    payload: &P,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type,
        source: SourceName::agent(declaration),
        actor: "system:runtime".to_owned(),
        root: Root::Of(trigger.envelope.root_id.clone()),
        parent: Some(parent),
        identity: vec![run.into()],
        equality: Equality::Whole,
        correlation_id: Some(run.to_string()),
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A run that ended with an answer.
///
/// # Errors
/// As [`telegram_message`].
pub fn run_completed(
    declaration: &str,
    trigger: &StoredEvent,
    payload: &p::RunCompleted,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let parent = payload.output.clone();
    run_terminal(EventType::RunCompleted, declaration, &payload.run, trigger, parent, occurred_at, payload)
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
/// As [`telegram_message`].
pub fn run_ended(
    ending: Ending,
    declaration: &str,
    trigger: &StoredEvent,
    payload: &p::RunEnded,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let parent = trigger.envelope.id.clone();
    run_terminal(ending.event_type(), declaration, &payload.run, trigger, parent, occurred_at, payload)
}

/// A reply or notice that reached its chat; `cause` is the output, or the event that a notice tells of.
///
/// # Errors
/// As [`telegram_message`].
pub fn delivery(
    telegram: &SourceName,
    cause: &StoredEvent,
    payload: &p::DeliveryTelegram,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let correlation = telegram_correlation(payload.chat_id, payload.thread_id);
    build(Parts {
        event_type: EventType::DeliveryTelegram,
        source: SourceName::delivery(telegram),
        actor: "system:dispatcher".to_owned(),
        root: Root::Of(cause.envelope.root_id.clone()),
        parent: Some(cause.envelope.id.clone()),
        identity: vec![(&cause.envelope.id).into(), json!(correlation), json!(payload.kind)],
        equality: Equality::Whole,
        correlation_id: Some(correlation),
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// What a requested notice is about.
#[derive(Debug, Clone)]
pub struct NoticeSubject {
    /// Id or name that makes the notice one of its kind.
    pub subject: String,
    /// The UTC day, where the notice is daily.
    pub day: Option<String>,
    /// The event it follows from, where there is one.
    pub cause: Option<(EventId, EventId)>,
}

/// A notice that no other event tells of. `cause` is `(root, cause)`.
///
/// # Errors
/// As [`telegram_message`].
pub fn notice_requested(
    role: &str,
    about: &NoticeSubject,
    payload: &p::NoticeRequested,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let mut identity = vec![json!(payload.name), json!(about.subject)];
    identity.extend(about.day.iter().map(|day| json!(day)));
    let (root, parent) = match &about.cause {
        Some((root, cause)) => (Root::Of(root.clone()), Some(cause.clone())),
        None => (Root::Itself, None),
    };
    // A daily notice is the same whichever event asked for it first.
    let equality = Equality::Narrow(vec![json!(payload.chat_id), json!(payload.thread_id)]);
    build(Parts {
        event_type: EventType::NoticeRequested,
        source: SourceName::new(format!("notices:{role}")),
        actor: format!("system:{role}"),
        root,
        parent,
        identity,
        equality,
        correlation_id: Some(telegram_correlation(payload.chat_id, payload.thread_id)),
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A declaration that became active.
///
/// # Errors
/// As [`telegram_message`].
pub fn declaration_activated(
    payload: &p::DeclarationActivated,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::DeclarationActivated,
        source: SourceName::new("system:activations"),
        actor: "system:runtime".to_owned(),
        root: Root::Itself,
        parent: None,
        identity: vec![json!(payload.declaration), json!(payload.version)],
        equality: Equality::Whole,
        correlation_id: None,
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// Something that an operator should look at.
///
/// # Errors
/// As [`telegram_message`].
pub fn incident(role: &str, payload: &p::Incident, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::Incident,
        source: SourceName::new("system:incidents"),
        actor: format!("system:{role}"),
        root: Root::Itself,
        parent: None,
        identity: vec![json!(payload.kind), json!(payload.subject), json!(payload.count)],
        equality: Equality::Whole,
        correlation_id: None,
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A memory change that a person proposed again or in reverse: under the origin's root, from the origin.
///
/// # Errors
/// As [`telegram_message`].
pub fn operator_memory_change_proposed(
    origin: &StoredEvent,
    payload: &p::OperatorMemoryChangeProposed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::OperatorMemoryChangeProposed,
        source: SourceName::new("operator:proposals"),
        actor: format!("human:{}", payload.operator),
        root: Root::Of(origin.envelope.root_id.clone()),
        parent: Some(origin.envelope.id.clone()),
        identity: vec![
            (&payload.origin).into(),
            (&payload.target.version_id).into(),
            json!(payload.purpose),
        ],
        equality: Equality::Whole,
        correlation_id: origin.envelope.correlation_id.clone(),
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A person's word on a proposal: one per proposal, whoever says it.
///
/// # Errors
/// As [`telegram_message`].
pub fn proposal_decision(
    proposal: &StoredEvent,
    payload: &p::ProposalDecision,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let equality = Equality::Narrow(vec![
        json!(payload.proposal_kind),
        json!(payload.disposition),
        json!(payload.replacement.as_ref().map(|replacement| &replacement.text)),
        json!(payload.operator),
    ]);
    build(Parts {
        event_type: EventType::ProposalDecision,
        source: SourceName::new("review:decisions"),
        actor: format!("human:{}", payload.operator),
        root: Root::Of(proposal.envelope.root_id.clone()),
        parent: Some(proposal.envelope.id.clone()),
        identity: vec![(&payload.proposal).into()],
        equality,
        correlation_id: Some(payload.proposal.to_string()),
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A correction that counts: under the target's root, from the decision or command it rests on.
///
/// # Errors
/// As [`telegram_message`].
pub fn judgment_recorded(
    payload: &p::JudgmentRecorded,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type: EventType::JudgmentRecorded,
        source: SourceName::new("review:judgments"),
        actor: payload.actor.clone(),
        root: Root::Of(payload.target.source_root.clone()),
        parent: Some(payload.feedback.clone()),
        identity: vec![(&payload.feedback).into(), json!(payload.external_export_eligible)],
        equality: Equality::Whole,
        correlation_id: None,
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// The source of the materializer's receipts.
fn materializer_source() -> SourceName {
    SourceName::new(format!("materializer:{}", crate::event::CONTEXT_SOURCE))
}

fn materialization<P: p::Payload>(
    event_type: EventType,
    decision: &StoredEvent,
    proposal: &EventId,
    identity: Vec<Value>,
    occurred_at: Timestamp,
    payload: &P,
) -> Result<Draft, DraftError> {
    build(Parts {
        event_type,
        source: materializer_source(),
        actor: "system:materializer".to_owned(),
        root: Root::Of(decision.envelope.root_id.clone()),
        parent: Some(decision.envelope.id.clone()),
        identity,
        equality: Equality::Whole,
        correlation_id: Some(proposal.to_string()),
        external_id: None,
        conversation: None,
        occurred_at,
        payload,
    })
}

/// A memory change that was written and verified: one receipt per decision.
///
/// # Errors
/// As [`telegram_message`].
pub fn memory_materialized(
    decision: &StoredEvent,
    payload: &p::MemoryMaterialized,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let identity = vec![(&payload.decision).into()];
    let proposal = &payload.proposal;
    materialization(EventType::MemoryMaterialized, decision, proposal, identity, occurred_at, payload)
}

/// A memory change that could not be written: one receipt per decision and reason.
///
/// # Errors
/// As [`telegram_message`].
pub fn materialization_failed(
    decision: &StoredEvent,
    payload: &p::MaterializationFailed,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let identity = vec![(&payload.decision).into(), json!(payload.reason)];
    let proposal = &payload.proposal;
    materialization(EventType::MaterializationFailed, decision, proposal, identity, occurred_at, payload)
}
