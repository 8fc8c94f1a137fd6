//! What the product's own roles say: deliveries, notices, activations, incidents.

use serde_json::json;
use thought_protocol::EventId;

use super::{Draft, DraftError, Parts, telegram_correlation};
use crate::event::{EventType, SourceName, StoredEvent};
use crate::payload as p;
use crate::time::Timestamp;

/// A reply or notice that reached its chat; `cause` is the output, or the event that a notice tells of.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn delivery(
    telegram: &SourceName,
    cause: &StoredEvent,
    payload: &p::DeliveryTelegram,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let correlation = telegram_correlation(payload.chat_id, payload.thread_id);
    let source = SourceName::delivery(telegram);
    Parts::new((EventType::DeliveryTelegram, source, "system:dispatcher"), payload, occurred_at)
        .identity(vec![(&cause.envelope.id).into(), json!(correlation), json!(payload.kind)])
        .follows(cause)
        .correlates(correlation)
        .draft()
}

/// What a requested notice is about.
#[derive(Debug, Clone)]
pub struct NoticeSubject {
    /// Id or name that makes the notice one of its kind.
    pub subject: String,
    /// The UTC day, where the notice is daily.
    pub day: Option<String>,
    /// Root and id of the event it follows from, where there is one.
    pub cause: Option<(EventId, EventId)>,
}

/// A notice that no other event tells of. A daily one is the same whichever event asked for it first.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn notice_requested(
    role: &str,
    about: &NoticeSubject,
    payload: &p::NoticeRequested,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let mut identity = vec![json!(payload.name), json!(about.subject)];
    identity.extend(about.day.iter().map(|day| json!(day)));
    let by =
        (EventType::NoticeRequested, SourceName::new(format!("notices:{role}")), format!("system:{role}"));
    let parts = Parts::new(by, payload, occurred_at)
        .identity(identity)
        .equal_by(vec![json!(payload.chat_id), json!(payload.thread_id)])
        .correlates(telegram_correlation(payload.chat_id, payload.thread_id));
    match &about.cause {
        Some((root, cause)) => parts.under(root, cause).draft(),
        None => parts.draft(),
    }
}

/// A declaration that became active.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn declaration_activated(
    payload: &p::DeclarationActivated,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let source = SourceName::new("system:activations");
    Parts::new((EventType::DeclarationActivated, source, "system:runtime"), payload, occurred_at)
        .identity(vec![json!(payload.declaration), json!(payload.version)])
        .draft()
}

/// Something that an operator should look at.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn incident(role: &str, payload: &p::Incident, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    let source = SourceName::new("system:incidents");
    Parts::new((EventType::Incident, source, format!("system:{role}")), payload, occurred_at)
        .identity(vec![json!(payload.kind), json!(payload.subject), json!(payload.count)])
        .draft()
}
