//! Drafts: events before they have a place in the log. One constructor per type says which fields make its identity,
//! which make it equal to a repetition, who speaks, and under which root it stands.
//!
//! Nothing else in the product builds a draft, so the table of events is the constructors below this file.

use serde_json::{Value, json};
use thought_protocol::canonical::{self, CanonicalError};
use thought_protocol::{EventId, Sensitive, Sha256Hex};

use crate::event::{Actor, EventType, SourceName, StoredEvent};
use crate::payload::Payload;
use crate::time::Timestamp;

mod again;
mod outputs;
mod person;
mod sources;
mod system;

pub use again::{AgainError, Identity, again, difference, drafted_from};
pub use outputs::{
    Ending, correction_proposed, derived_agent_message, focus_proposed, memory_change_proposed, observation,
    output_id, run_completed, run_ended,
};
pub use person::{
    judgment_recorded, materialization_failed, memory_materialized, operator_memory_change_proposed,
    proposal_decision,
};
pub use sources::{
    agent_message, file_removed, file_version, telegram_command, telegram_correlation, telegram_message,
};
pub use system::{NoticeSubject, declaration_activated, delivery, incident, notice_requested};

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

/// An event as its constructor describes it. What is not said stays absent; an event is its own root until it is told
/// where it hangs, and a repetition must share identity, actor, root, parent and payload until it is told otherwise.
struct Parts<'a, P> {
    event_type: EventType,
    source: SourceName,
    actor: String,
    payload: &'a P,
    occurred_at: Timestamp,
    identity: Vec<Value>,
    lineage: Option<(EventId, EventId)>,
    narrow: Option<Vec<Value>>,
    correlation_id: Option<String>,
    external_id: Option<String>,
    conversation: Option<String>,
}

impl<'a, P: Payload> Parts<'a, P> {
    /// An event of this type, in this source, by this actor.
    fn new(
        (event_type, source, actor): (EventType, SourceName, impl Into<String>),
        payload: &'a P,
        occurred_at: Timestamp,
    ) -> Self {
        Self {
            event_type,
            source,
            actor: actor.into(),
            payload,
            occurred_at,
            identity: Vec::new(),
            lineage: None,
            narrow: None,
            correlation_id: None,
            external_id: None,
            conversation: None,
        }
    }

    /// The fields that make it the event it is.
    fn identity(self, identity: Vec<Value>) -> Self {
        Self { identity, ..self }
    }

    /// Under which root, and from which event.
    fn under(self, root: &EventId, parent: &EventId) -> Self {
        Self { lineage: Some((root.clone(), parent.clone())), ..self }
    }

    /// Under the root of an event, and from that event.
    fn follows(self, event: &StoredEvent) -> Self {
        self.under(&event.envelope.root_id, &event.envelope.id)
    }

    /// A repetition must share the identity and these values alone.
    fn equal_by(self, values: Vec<Value>) -> Self {
        Self { narrow: Some(values), ..self }
    }

    /// What it belongs together with.
    fn correlates(self, correlation_id: impl Into<Option<String>>) -> Self {
        Self { correlation_id: correlation_id.into(), ..self }
    }

    /// Its id outside.
    fn external(self, external_id: String) -> Self {
        Self { external_id: Some(external_id), ..self }
    }

    /// The conversation in which it is a turn.
    fn turn_of(self, conversation: String) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    /// The draft.
    fn draft(self) -> Result<Draft, DraftError> {
        let event_type = self.event_type;
        let fail = |source| DraftError { event_type, source };
        let id = EventId::of(event_type.key_kind(), &self.identity);
        let payload = canonical::to_vec(self.payload).map_err(fail)?;
        let equality = match self.narrow {
            Some(values) => json!([event_type.as_str(), self.identity, values]),
            None => {
                let (root, parent) = match &self.lineage {
                    Some((root, parent)) => (root.into(), parent.into()),
                    None => (Value::Null, Value::Null),
                };
                let payload = Sha256Hex::of(&payload);
                json!([event_type.as_str(), self.identity, self.actor, root, parent, payload])
            }
        };
        let (root, parent) = match self.lineage {
            Some((root, parent)) => (Root::Of(root), Some(parent)),
            None => (Root::Itself, None),
        };
        Ok(Draft {
            id,
            event_type,
            source: self.source,
            actor: Actor::new(self.actor),
            root,
            parent,
            correlation_id: self.correlation_id,
            external_id: self.external_id,
            conversation: self.conversation,
            occurred_at: self.occurred_at,
            equality_sha256: Sha256Hex::of(&canonical::to_vec(&equality).map_err(fail)?),
            payload: Sensitive::new(payload),
        })
    }
}
