//! What of a conversation is history: a pure reading of evidence, turn by turn.
//!
//! A person's (or a sending agent's) words are history whatever became of the answer. An assistant's side is history
//! only where the log proves it whole: one completed run, its one output, the completion that names that output, and in
//! a chat the receipt of its delivery. What the proof lacks is named by a reason; nothing here guesses, and nothing here
//! reads the words to decide.

mod content;
mod evidence;
mod reply;

use serde::{Deserialize, Serialize};
use thought_protocol::packet::HistoryCall;
use thought_protocol::{EventId, RunId};

use crate::declaration::{AgentId, ContextKind, Declaration};
use crate::event::{Actor, SourceName, StoredEvent};
use crate::payload::{AgentMessage, CorrectionTarget, TelegramMessage};

pub use content::{EvidenceError, IMAGE_PLACEHOLDER, Words, effective_output, message_words, proposal_calls};
pub use evidence::{Reply, RunEvidence, TurnEvidence};
pub(crate) use reply::completed_id;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

/// Why a trigger opens no conversation of a declaration: such a run is never put before a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TriggerRefusal {
    /// The declaration does not subscribe to events of this type from this source.
    #[error("open a conversation: the declaration does not follow this type and source")]
    NotSubscribed,
    /// The payload does not decode, or the event is not the root of its own lineage.
    #[error("open a conversation: the trigger is malformed")]
    Malformed,
    /// Source, actor, sender, recipient, thread and outside id do not agree.
    #[error("open a conversation: the trigger came by a route that is not admitted")]
    Route,
    /// Neither words nor an image.
    #[error("open a conversation: the trigger holds no words")]
    Empty,
}

codes! {
    /// Why a stored turn is no part of the transcript at all.
    TurnExclusion {
        /// Not decodable, or not the root of its own lineage.
        Malformed = "malformed",
        /// Another source, chat, thread, sender or recipient.
        OtherConversation = "other-conversation",
        /// Not before the current message.
        Later = "later",
        /// Neither words nor an image.
        Empty = "empty",
    }
    /// Why the assistant's side of a turn is not in the transcript.
    ReplyOmission {
        /// No run on it was completed.
        NoCompletedRun = "no-completed-run",
        /// Completed by agents alone that are not on the list.
        AgentNotAdmitted = "agent-not-admitted",
        /// More than one completed run.
        SeveralCompletedRuns = "several-completed-runs",
        /// No output event.
        OutputMissing = "output-missing",
        /// The output is not the canonical one of its run and trigger.
        OutputInvalid = "output-invalid",
        /// The completed event is missing or names another output.
        CompletionInvalid = "completion-invalid",
        /// The completed event names a proposal that is missing or not its own.
        ProposalInvalid = "proposal-invalid",
        /// Its delivery was still on the way when waiting ended.
        DeliveryPending = "delivery-pending",
        /// It was not delivered.
        NotDelivered = "not-delivered",
        /// The receipt names another output, chat, thread or root.
        DeliveryInvalid = "delivery-invalid",
        /// The judgment on it is not of it.
        JudgmentInvalid = "judgment-invalid",
    }
}

/// One conversation as a declaration sees it from its newest message.
#[derive(Debug, Clone)]
pub struct Conversation<'a> {
    kind: ContextKind,
    agents: Vec<&'a AgentId>,
    trigger: &'a StoredEvent,
    place: Place,
}

/// Where the words are exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A chat and its forum topic.
    Chat {
        /// The chat.
        chat_id: i64,
        /// The forum topic.
        thread_id: Option<i64>,
    },
    /// A thread between two agents.
    Thread {
        /// Who writes.
        sender: String,
        /// Who answers.
        recipient: String,
        /// The thread.
        thread: String,
    },
}

/// A turn that is history.
#[derive(Debug, Clone)]
pub struct AdmittedTurn<'a> {
    /// Its stored ordinal in the conversation.
    pub ordinal: u64,
    /// What was said to the assistant.
    pub message: &'a StoredEvent,
    /// Its length as history shows it, characters.
    pub characters: usize,
    /// What the assistant said, or why that is left out.
    pub reply: Result<AdmittedReply<'a>, ReplyOmission>,
}

/// An assistant's side that the evidence proves whole. `Debug` shows ids alone.
#[derive(Clone)]
pub struct AdmittedReply<'a> {
    /// The completed run.
    pub run: &'a RunId,
    /// Its output.
    pub output: &'a StoredEvent,
    /// Its completed event.
    pub completed: &'a StoredEvent,
    /// What it proposed, in order.
    pub proposals: Vec<&'a StoredEvent>,
    /// The receipt of its delivery; an agent's thread has none.
    pub receipt: Option<&'a StoredEvent>,
    /// The judgment that replaces its words.
    pub judgment: Option<&'a StoredEvent>,
    /// The effective words.
    pub text: String,
    /// The calls as history shows them.
    pub calls: Vec<HistoryCall>,
    /// What a correction of it would be bound to, where it may be corrected in this conversation.
    pub target: Option<CorrectionTarget>,
}

impl std::fmt::Debug for AdmittedReply<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdmittedReply")
            .field("run", self.run)
            .field("output", &self.output.envelope.id)
            .field("calls", &self.calls.len())
            .field("corrected", &self.judgment.is_some())
            .finish_non_exhaustive()
    }
}

impl AdmittedReply<'_> {
    /// Its length as history shows it, characters: words and arguments.
    pub fn characters(&self) -> usize {
        self.text.chars().count()
            + self.calls.iter().map(|call| call.arguments.chars().count()).sum::<usize>()
    }
}

/// A stored turn that is no history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedTurn {
    /// Its stored ordinal.
    pub ordinal: u64,
    /// Its message.
    pub event: EventId,
    /// Why.
    pub reason: TurnExclusion,
}

/// A stored turn after it was looked at.
#[derive(Debug, Clone)]
pub enum ReadTurn<'a> {
    /// It is history.
    Admitted(AdmittedTurn<'a>),
    /// It is not.
    Excluded(ExcludedTurn),
}

impl ReadTurn<'_> {
    /// Its stored ordinal.
    pub fn ordinal(&self) -> u64 {
        match self {
            Self::Admitted(turn) => turn.ordinal,
            Self::Excluded(turn) => turn.ordinal,
        }
    }
}

impl<'a> Conversation<'a> {
    /// The conversation that this trigger belongs to.
    ///
    /// # Errors
    /// [`TriggerRefusal`] when the declaration may not answer it.
    pub fn open(declaration: &'a Declaration, trigger: &'a StoredEvent) -> Result<Self, TriggerRefusal> {
        let followed = |subscription: &crate::declaration::Subscription| {
            subscription.event_type == trigger.envelope.event_type
                && subscription.source == trigger.envelope.source
        };
        if !declaration.subscriptions().iter().any(followed) {
            return Err(TriggerRefusal::NotSubscribed);
        }
        let kind = declaration.context();
        let ReadMessage { place, route, words } =
            read_message(kind, trigger).ok_or(TriggerRefusal::Malformed)?;
        let own = match &place {
            Place::Chat { .. } => true,
            Place::Thread { recipient, .. } => recipient == declaration.id().as_str(),
        };
        if route == Route::Broken || !own {
            return Err(TriggerRefusal::Route);
        }
        if words.is_empty() {
            return Err(TriggerRefusal::Empty);
        }
        // An endpoint's thread knows its own answers alone; a chat those of the agents on the list.
        let agents = match kind {
            ContextKind::TelegramConversation => declaration.history_agents().iter().collect(),
            ContextKind::AgentConversation => vec![declaration.id()],
        };
        Ok(Self { kind, agents, trigger, place })
    }

    /// The declarations whose answers are history, in every version.
    pub fn agents(&self) -> &[&'a AgentId] {
        &self.agents
    }

    /// Where the words are exchanged.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The newest message.
    pub fn trigger(&self) -> &'a StoredEvent {
        self.trigger
    }

    /// Reads stored turns, oldest first, each by itself.
    pub fn read(&self, turns: &'a [TurnEvidence]) -> Vec<ReadTurn<'a>> {
        turns.iter().map(|turn| self.read_turn(turn)).collect()
    }

    fn read_turn(&self, turn: &'a TurnEvidence) -> ReadTurn<'a> {
        match self.admit_message(&turn.message) {
            Ok(characters) => ReadTurn::Admitted(AdmittedTurn {
                ordinal: turn.ordinal,
                message: &turn.message,
                characters,
                reply: self.admit_reply(&turn.message, &turn.runs),
            }),
            Err(reason) => ReadTurn::Excluded(ExcludedTurn {
                ordinal: turn.ordinal,
                event: turn.message.envelope.id.clone(),
                reason,
            }),
        }
    }

    fn admit_message(&self, message: &StoredEvent) -> Result<usize, TurnExclusion> {
        let ReadMessage { place, route, words } =
            read_message(self.kind, message).ok_or(TurnExclusion::Malformed)?;
        if route == Route::Broken {
            return Err(TurnExclusion::Malformed);
        }
        if message.envelope.source != self.trigger.envelope.source || place != self.place {
            return Err(TurnExclusion::OtherConversation);
        }
        if message.envelope.sequence >= self.trigger.envelope.sequence {
            return Err(TurnExclusion::Later);
        }
        if words.is_empty() { Err(TurnExclusion::Empty) } else { Ok(words.history_characters()) }
    }
}

/// Whether everything that names the route of a message agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Exact,
    Broken,
}

impl Route {
    const fn of(exact: bool) -> Self {
        if exact { Self::Exact } else { Self::Broken }
    }
}

struct ReadMessage {
    place: Place,
    route: Route,
    words: Words,
}

/// Where a message belongs and what it says; `None` when it is no readable message of this kind of conversation.
fn read_message(kind: ContextKind, message: &StoredEvent) -> Option<ReadMessage> {
    let envelope = &message.envelope;
    if envelope.root_id != envelope.id || envelope.parent_id.is_some() {
        return None;
    }
    match kind {
        ContextKind::TelegramConversation => match message.payload::<TelegramMessage>() {
            Ok(payload) => {
                let route = envelope.actor == Actor::new(format!("human:telegram:{}", payload.user_id));
                let place = Place::Chat { chat_id: payload.chat_id, thread_id: payload.thread_id };
                Some(ReadMessage { place, route: Route::of(route), words: payload.into() })
            }
            Err(_content_dark) => None,
        },
        ContextKind::AgentConversation => match message.payload::<AgentMessage>() {
            Ok(payload) => {
                let sender = &payload.sender_agent_id;
                let route = envelope.source == SourceName::agent_message(sender)
                    && envelope.actor == Actor::new(format!("agent:{sender}"))
                    && envelope.correlation_id.as_deref() == Some(&payload.thread_id)
                    && envelope.external_id.as_deref() == Some(&payload.message_id);
                let place = Place::Thread {
                    sender: sender.clone(),
                    recipient: payload.recipient_agent_id.clone(),
                    thread: payload.thread_id.clone(),
                };
                Some(ReadMessage { place, route: Route::of(route), words: payload.into() })
            }
            Err(_content_dark) => None,
        },
    }
}
