//! The words of messages and answers, and the calls of proposal turns, as history shows them.
//!
//! One reading for everyone: who selects turns, who renders a packet and who exports read the same words here.

use thought_protocol::packet::HistoryCall;
use thought_protocol::proposal::{
    CorrectionArguments, FocusDeclaration, MemoryChangeArguments, MemoryOperation, ProposalCall,
    ProposalKind, TargetOutput, synthetic_call_id,
};
use thought_protocol::{EventId, RunId};

use crate::event::{EventType, PayloadError, StoredEvent};
use crate::payload::{
    self, AgentMessage, ConversationText, CorrectionProposed, DerivedAgentMessage, FocusProposed, Image,
    JudgmentRecorded, MemoryChangeProposed, MessageObservation, TelegramMessage,
};

/// What stands for an image that is not sent.
pub const IMAGE_PLACEHOLDER: &str = "[image]";

/// Evidence that does not say what its place demands. It holds no content.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The event's bytes are not its type's.
    #[error("read the evidence of a conversation")]
    Payload(#[from] PayloadError),
    /// An event of a type that has no words.
    #[error("read the words of event {id}: a {event_type} has none")]
    NoWords {
        /// The event.
        id: EventId,
        /// Its type.
        event_type: EventType,
    },
    /// An answer or replacement without a character.
    #[error("read the words of event {id}: there are none")]
    Empty {
        /// The event.
        id: EventId,
    },
    /// A judgment that is not of this output.
    #[error("read the effective output of {output}: the judgment {judgment} is of another")]
    Judgment {
        /// The output.
        output: EventId,
        /// The judgment.
        judgment: EventId,
    },
    /// A proposal whose arguments have no place in history.
    #[error("read the call of proposal {id}: its arguments are out of contract")]
    Proposal {
        /// The proposal.
        id: EventId,
    },
}

/// What was said to the assistant. `Debug` shows lengths alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Words {
    /// The words, once and unbroken; empty where there are images alone.
    pub text: String,
    /// The images beside them.
    pub images: Vec<Image>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({} bytes, {} images)", self.text.len(), self.images.len())
    }
}

impl From<TelegramMessage> for Words {
    fn from(payload: TelegramMessage) -> Self {
        Self { text: payload.text.unwrap_or_default(), images: payload.images }
    }
}

impl From<AgentMessage> for Words {
    fn from(payload: AgentMessage) -> Self {
        Self { text: payload.text, images: Vec::new() }
    }
}

impl Words {
    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.images.is_empty()
    }

    /// The text of an earlier message: a line for each image, then the words.
    pub fn as_history(&self) -> String {
        self.with_placeholders(self.images.len())
    }

    /// The length of [`Words::as_history`], characters.
    pub fn history_characters(&self) -> usize {
        let lines = self.images.len() + usize::from(!self.text.is_empty());
        let placeholders = self.images.len() * IMAGE_PLACEHOLDER.chars().count();
        self.text.chars().count() + placeholders + lines.saturating_sub(1)
    }

    /// The words behind a line for each of so many images that are not sent.
    pub fn with_placeholders(&self, images: usize) -> String {
        let mut lines = vec![IMAGE_PLACEHOLDER; images];
        if !self.text.is_empty() {
            lines.push(&self.text);
        }
        lines.join("\n")
    }
}

/// The words of a message to the assistant.
///
/// # Errors
/// [`EvidenceError`] when the event is no such message or does not decode.
pub fn message_words(message: &StoredEvent) -> Result<Words, EvidenceError> {
    match message.envelope.event_type {
        EventType::TelegramMessage => {
            let payload: TelegramMessage = message.payload()?;
            Ok(payload.into())
        }
        EventType::AgentMessage => {
            let payload: AgentMessage = message.payload()?;
            Ok(payload.into())
        }
        event_type => Err(EvidenceError::NoWords { id: message.envelope.id.clone(), event_type }),
    }
}

/// What an output counts as having said: its own words, or the replacement of the judgment on it.
///
/// # Errors
/// [`EvidenceError`] when the output is none, the judgment is of another output, or there is no word.
pub fn effective_output(
    output: &StoredEvent,
    judgment: Option<&StoredEvent>,
) -> Result<ConversationText, EvidenceError> {
    let (own, run) = match output.envelope.event_type {
        EventType::MessageObservation => {
            let payload: MessageObservation = output.payload()?;
            (payload.summary, payload.run)
        }
        EventType::DerivedAgentMessage => {
            let payload: DerivedAgentMessage = output.payload()?;
            (payload.summary, payload.run)
        }
        event_type => return Err(EvidenceError::NoWords { id: output.envelope.id.clone(), event_type }),
    };
    effective_words(output, &run, own, judgment).map(|summary| ConversationText { summary })
}

/// The same for an output whose own words and run were read already.
pub(super) fn effective_words(
    output: &StoredEvent,
    run: &RunId,
    own: String,
    judgment: Option<&StoredEvent>,
) -> Result<String, EvidenceError> {
    let id = &output.envelope.id;
    let said = match judgment {
        None => own,
        Some(event) => {
            let judged: JudgmentRecorded = event.payload()?;
            let target = &judged.target;
            if target.output != *id || target.run != *run || target.source_root != output.envelope.root_id {
                let judgment = event.envelope.id.clone();
                return Err(EvidenceError::Judgment { output: id.clone(), judgment });
            }
            judged.replacement.summary
        }
    };
    if said.is_empty() { Err(EvidenceError::Empty { id: id.clone() }) } else { Ok(said) }
}

/// The calls of a proposal turn as history shows them: canonical arguments from the durable events, the resolved target
/// in them, under synthetic ids.
///
/// # Errors
/// [`EvidenceError`] when an event is no proposal of a model or does not decode.
pub fn proposal_calls<'a>(
    proposals: impl IntoIterator<Item = &'a StoredEvent>,
) -> Result<Vec<HistoryCall>, EvidenceError> {
    proposals.into_iter().map(proposal_call).collect()
}

fn proposal_call(event: &StoredEvent) -> Result<HistoryCall, EvidenceError> {
    let id = &event.envelope.id;
    let refuse = || EvidenceError::Proposal { id: id.clone() };
    let kind = proposal_kind(event.envelope.event_type).ok_or_else(refuse)?;
    let call = match kind {
        ProposalKind::MemoryChange => {
            let payload: MemoryChangeProposed = event.payload()?;
            ProposalCall::MemoryChange(MemoryChangeArguments {
                operation: match payload.operation {
                    payload::MemoryOperation::Append => MemoryOperation::Append,
                    payload::MemoryOperation::ReplaceDocument => MemoryOperation::ReplaceDocument,
                },
                proposed_text: payload.proposed_text,
                reason: payload.reason,
                evidence_event_ids: payload.evidence,
            })
        }
        ProposalKind::SelfCorrection => {
            let payload: CorrectionProposed = event.payload()?;
            ProposalCall::SelfCorrection(CorrectionArguments {
                target_output: TargetOutput::Output(payload.target.output),
                replacement: payload.replacement.summary,
                reason: payload.reason,
                evidence_event_ids: payload.evidence,
            })
        }
        ProposalKind::FocusDeclaration => {
            let payload: FocusProposed = event.payload()?;
            match FocusDeclaration::from_value(&payload.declaration) {
                Ok(declaration) => ProposalCall::FocusDeclaration(declaration),
                Err(_content_dark) => return Err(refuse()),
            }
        }
    };
    match call.canonical_arguments() {
        Ok(arguments) => Ok(HistoryCall { id: synthetic_call_id(id), name: kind.tool(), arguments }),
        Err(_content_dark) => Err(refuse()),
    }
}

/// The kind of a model's proposal, by the type of its event.
pub(super) const fn proposal_kind(event_type: EventType) -> Option<ProposalKind> {
    match event_type {
        EventType::MemoryChangeProposed => Some(ProposalKind::MemoryChange),
        EventType::CorrectionProposed => Some(ProposalKind::SelfCorrection),
        EventType::FocusProposed => Some(ProposalKind::FocusDeclaration),
        _ => None,
    }
}
