//! Events: the registry of types, the envelope around every payload, and the hash chain that binds each to the one
//! before it.
//!
//! The registry is the one place that says who may write what: privacy, actor, source and key kind of each type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thought_protocol::canonical::{self, CanonicalError};
use thought_protocol::{EventId, Sensitive, Sha256Hex};

use crate::time::Timestamp;

/// How widely an event may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privacy {
    /// Holds a person's or an agent's words: shown only after an acknowledgment.
    Sensitive,
    /// Holds no content; still nobody's business but the owner's.
    Private,
}

impl Privacy {
    /// The written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sensitive => "sensitive",
            Self::Private => "private",
        }
    }
}

/// A name that is not in the registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read an event type: the registry has no such name")]
pub struct UnknownEventType;

macro_rules! registry {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $privacy:ident, $key:literal;)*) => {
        /// Every type of event that the log may hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventType {
            $($(#[$doc])* $variant,)*
        }

        impl EventType {
            /// The whole registry, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The full wire name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => concat!("stream.thought.", $name),)* }
            }

            /// The privacy of every event of this type.
            pub const fn privacy(self) -> Privacy {
                match self { $(Self::$variant => Privacy::$privacy,)* }
            }

            /// The kind that its stable key starts with; the terminal run events share one, so that a run ends once.
            pub const fn key_kind(self) -> &'static str {
                match self { $(Self::$variant => $key,)* }
            }
        }

        impl FromStr for EventType {
            type Err = UnknownEventType;
            fn from_str(text: &str) -> Result<Self, UnknownEventType> {
                match text.strip_prefix("stream.thought.") {
                    $(Some($name) => Ok(Self::$variant),)*
                    _ => Err(UnknownEventType),
                }
            }
        }
    };
}

registry! {
    /// A person's message that starts a turn.
    TelegramMessage = "source.telegram.message@1", Sensitive, "stream.thought.source.telegram.message@1";
    /// A command that no model answers.
    TelegramCommand = "source.telegram.command@1", Sensitive, "stream.thought.source.telegram.command@1";
    /// A new version of a document of the context root.
    FileVersion = "source.file.version@1", Sensitive, "stream.thought.source.file.version@1";
    /// A document that is gone from the context root.
    FileRemoved = "source.file.removed@1", Sensitive, "stream.thought.source.file.removed@1";
    /// A private message of an admitted agent.
    AgentMessage = "source.agent.message@1", Sensitive, "stream.thought.source.agent.message@1";
    /// The answer of a conversation turn.
    MessageObservation = "derived.message.observation@1", Sensitive, "stream.thought.derived.message.observation@1";
    /// The answer to a private agent message.
    DerivedAgentMessage = "derived.agent.message@1", Sensitive, "stream.thought.derived.agent.message@1";
    /// A memory change that a model proposed.
    MemoryChangeProposed = "agent.memory-change.proposed@1", Sensitive, "stream.thought.agent.memory-change.proposed@1";
    /// A correction of itself that a model proposed.
    CorrectionProposed = "agent.correction.proposed@1", Sensitive, "stream.thought.agent.correction.proposed@1";
    /// A focus declaration that a model proposed.
    FocusProposed = "focus.declaration.proposed@1", Sensitive, "stream.thought.focus.declaration.proposed@1";
    /// A memory change that a person proposed again or in reverse.
    OperatorMemoryChangeProposed = "operator.memory-change.proposed@1", Sensitive, "stream.thought.operator.memory-change.proposed@1";
    /// A run that ended with an answer.
    RunCompleted = "run.completed@1", Private, "run.terminal";
    /// A run that ended without a valid answer.
    RunFailed = "run.failed@1", Private, "run.terminal";
    /// A run that may not go on.
    RunBlocked = "run.blocked@1", Private, "run.terminal";
    /// A run that was given up.
    RunAbandoned = "run.abandoned@1", Private, "run.terminal";
    /// A person's word on a proposal.
    ProposalDecision = "agent.proposal.decision@1", Sensitive, "stream.thought.agent.proposal.decision@1";
    /// A correction that counts.
    JudgmentRecorded = "judgment.recorded@2", Sensitive, "stream.thought.judgment.recorded@2";
    /// A memory change that was written and verified.
    MemoryMaterialized = "agent.memory-change.materialized@1", Sensitive, "stream.thought.agent.memory-change.materialized@1";
    /// A memory change that could not be written.
    MaterializationFailed = "agent.memory-change.materialization.failed@1", Sensitive, "stream.thought.agent.memory-change.materialization.failed@1";
    /// A reply or notice that reached its chat.
    DeliveryTelegram = "delivery.telegram@1", Sensitive, "stream.thought.delivery.telegram@1";
    /// A notice that no other event tells of.
    NoticeRequested = "notice.requested@1", Private, "stream.thought.notice.requested@1";
    /// A declaration that became active.
    DeclarationActivated = "declaration.activated@1", Private, "stream.thought.declaration.activated@1";
    /// Something that an operator should look at.
    Incident = "incident@1", Private, "stream.thought.incident@1";
}

impl EventType {
    /// Whether each event of this type is a turn of its conversation and gets a stored ordinal there.
    pub const fn is_turn(self) -> bool {
        matches!(self, Self::TelegramMessage | Self::AgentMessage)
    }

    /// The other types that stand in the source of this one, where that is a source which declarations follow: whoever
    /// follows it passes them by, and is to hear of them.
    pub const fn beside(self) -> &'static [Self] {
        match self {
            Self::TelegramMessage => &[Self::TelegramCommand],
            Self::TelegramCommand => &[Self::TelegramMessage],
            Self::FileVersion => &[Self::FileRemoved],
            Self::FileRemoved => &[Self::FileVersion],
            _ => &[],
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for EventType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes a name as it is written in an event.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The written form.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// The source that an event belongs to, such as `telegram:stream`. One producer role owns it.
    SourceName;
    /// Who speaks in an event, such as `human:telegram:4242` or `system:runtime`.
    Actor;
}

/// The source of every scanned document.
pub const CONTEXT_SOURCE: &str = "filesystem:telegram-agent-context";

impl SourceName {
    /// The source of the context root's documents.
    pub fn context() -> Self {
        Self::new(CONTEXT_SOURCE)
    }

    /// The source that a declaration's outputs and run events belong to.
    pub fn agent(declaration: &str) -> Self {
        Self(format!("agent:{declaration}"))
    }

    /// The source of an agent's private messages.
    pub fn agent_message(sender: &str) -> Self {
        Self(format!("agent-message:{sender}"))
    }

    /// The source of the deliveries of a Telegram source (`telegram:stream` → `delivery:telegram:stream`).
    pub fn delivery(telegram: &Self) -> Self {
        Self(format!("delivery:{}", telegram.0))
    }
}

/// Everything of an event but its payload. Its chain hash binds it to the event before it in its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    /// The stable id.
    pub id: EventId,
    /// The registered type.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The source it belongs to.
    pub source: SourceName,
    /// Its place in the source, gapless from 1.
    pub sequence: u64,
    /// Its place in the store, in commit order.
    pub position: u64,
    /// Who speaks.
    pub actor: Actor,
    /// The event at the root of its lineage; itself for a source event.
    pub root_id: EventId,
    /// The event it follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EventId>,
    /// How widely it may be shown.
    pub privacy: Privacy,
    /// What it belongs together with: a conversation, a thread, a run or a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Its id in the world outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// When it happened, by the clock of whoever saw it.
    pub occurred_at: Timestamp,
    /// When it was appended.
    pub recorded_at: Timestamp,
    /// Hash of the payload's canonical bytes.
    pub payload_sha256: Sha256Hex,
    /// Chain hash of the event before it in the source; zeros for the first.
    pub previous_sha256: Sha256Hex,
}

impl Envelope {
    /// The chain hash: SHA-256 over the canonical bytes of this envelope.
    ///
    /// # Errors
    /// [`CanonicalError`] when a number lies outside the contract's integers.
    pub fn chain_sha256(&self) -> Result<Sha256Hex, CanonicalError> {
        Ok(Sha256Hex::of(&canonical::to_vec(self)?))
    }
}

/// An event as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// All but the payload.
    pub envelope: Envelope,
    /// Hash of the envelope, and with it of everything before.
    pub chain_sha256: Sha256Hex,
    /// The payload's canonical bytes.
    pub payload: Sensitive<Vec<u8>>,
}

/// A stored payload that is not what its type demands.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The event is of another type than the caller asked for.
    #[error("read event {id}: expected type {expected}, found {found}")]
    Type {
        /// The event.
        id: EventId,
        /// What was asked for.
        expected: EventType,
        /// What it is.
        found: EventType,
    },
    /// The bytes do not decode. The reason is dropped on purpose: it may quote content.
    #[error("read event {id}: its payload of {length} bytes is not a valid {event_type}")]
    Decode {
        /// The event.
        id: EventId,
        /// Its type.
        event_type: EventType,
        /// Length of the payload, bytes.
        length: usize,
    },
}

impl StoredEvent {
    /// The payload as its type.
    ///
    /// # Errors
    /// [`PayloadError`] when the event is of another type, or its bytes do not decode strictly.
    pub fn payload<P: crate::payload::Payload>(&self) -> Result<P, PayloadError> {
        if !P::TYPES.contains(&self.envelope.event_type) {
            return Err(PayloadError::Type {
                id: self.envelope.id.clone(),
                expected: P::TYPES[0],
                found: self.envelope.event_type,
            });
        }
        let bytes = self.payload.expose();
        match serde_json::from_slice(bytes) {
            Ok(payload) => Ok(payload),
            Err(_content_dark) => Err(PayloadError::Decode {
                id: self.envelope.id.clone(),
                event_type: self.envelope.event_type,
                length: bytes.len(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_is_unique() {
        for event_type in EventType::ALL {
            assert_eq!(event_type.as_str().parse::<EventType>().unwrap(), *event_type);
            assert!(event_type.as_str().starts_with("stream.thought."));
        }
        let mut names: Vec<_> = EventType::ALL.iter().map(|t| t.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EventType::ALL.len());
        assert!("stream.thought.run.completed@2".parse::<EventType>().is_err());
    }

    #[test]
    fn the_terminal_events_share_one_key_kind() {
        let terminal: Vec<_> = EventType::ALL.iter().filter(|t| t.key_kind() == "run.terminal").collect();
        assert_eq!(terminal.len(), 4);
    }
}
