//! From evidence to a snapshot: what is selected within the bounds, what it makes possible, and what is left out.
//!
//! Three pure steps, so that the reader of a store can look between them: [`select`] the transcript, [`compose`] the
//! snapshot, [`freeze`] it with the packet that it renders to.

use thought_protocol::limits::OMITTED_IDS_MAX;
use thought_protocol::packet::{Api, Compat, PACKET_FORMAT, Packet, TokenLimit};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Fingerprint, Sensitive, Sha256Hex};

use super::evidence::Evidence;
use super::render::{RebuildError, document_text, render};
use super::{
    Capability, DeclarationReference, DocumentReference, ExcludedReference, Limits, OmittedReply,
    OmittedTurns, Provenance, RouteReference, SNAPSHOT_FORMAT, Snapshot, TriggerReference, TurnReference,
};
use crate::conversation::{
    AdmittedReply, AdmittedTurn, Conversation, ExcludedTurn, Place, ReadTurn, TurnEvidence, message_words,
};
use crate::declaration::{Budget, Declaration};
use crate::event::{CONTEXT_SOURCE, StoredEvent};

/// The document without which a conversation does not begin.
pub const IDENTITY_PATH: &str = "identity.md";
/// The one document that a memory change may aim at.
pub const MEMORY_PATH: &str = "memory.md";

/// A document's version as it stands now.
#[derive(Debug, Clone)]
pub struct DocumentEvidence {
    /// What the snapshot will name.
    pub reference: DocumentReference,
    /// The `id` of valid frontmatter.
    pub frontmatter_id: Option<String>,
    /// Its bytes.
    pub content: Sensitive<Vec<u8>>,
}

impl DocumentEvidence {
    /// Characters that it adds to a context.
    fn characters(&self) -> usize {
        document_text(self.content.expose()).map_or(0, |text| text.chars().count())
    }

    /// Whether a memory change may be bound to it: the one path of the one source, text, with a valid head.
    fn is_memory_target(&self) -> bool {
        self.reference.source.as_str() == CONTEXT_SOURCE
            && self.reference.path == MEMORY_PATH
            && self.frontmatter_id.is_some()
            && document_text(self.content.expose()).is_some()
    }
}

/// Which model is asked, as far as a snapshot freezes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelBinding {
    /// The provider's API.
    pub api: Api,
    /// The model.
    pub model: String,
    /// See [`Compat`].
    pub compat: Compat,
    /// See [`TokenLimit`].
    pub token_limit: TokenLimit,
}

impl Snapshot {
    /// The model that it was frozen for; an attempt under another one may not use it.
    pub fn binding(&self) -> ModelBinding {
        ModelBinding {
            api: self.api,
            model: self.model.clone(),
            compat: self.compat,
            token_limit: self.token_limit,
        }
    }
}

/// Documents and current message alone are over the bound: leaving out history would not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("select a context: documents and current message have {found} characters, {max} are allowed")]
pub struct ContextTooLarge {
    /// What they have, characters.
    pub found: usize,
    /// The bound, characters.
    pub max: u32,
}

/// The turns that fit.
#[derive(Debug, Clone)]
pub struct Selection<'a> {
    turns: Vec<AdmittedTurn<'a>>,
    excluded: Vec<ExcludedTurn>,
    /// The oldest ordinal within the bounds; the trigger's where no earlier turn fits.
    first_ordinal: u64,
    characters: usize,
}

impl<'a> Selection<'a> {
    /// The turns before the current message, oldest first.
    pub fn turns(&self) -> &[AdmittedTurn<'a>] {
        &self.turns
    }

    /// Whether it went through all that was read, down to this ordinal: then an earlier turn, where there is one, may fit
    /// too.
    pub fn reaches(&self, oldest: u64) -> bool {
        self.first_ordinal <= oldest
    }

    /// The end of the omitted ordinals, which begin at 1; `None` when nothing is omitted.
    pub fn omitted_before(&self) -> Option<u64> {
        (self.first_ordinal > 1).then_some(self.first_ordinal)
    }
}

/// Selects the newest whole turns that fit: a message and its answer stay or go together.
///
/// # Errors
/// [`ContextTooLarge`] when the documents and the current message alone do not fit.
pub fn select<'a>(
    conversation: &Conversation<'a>,
    history: &'a [TurnEvidence],
    documents: &[DocumentEvidence],
    budget: &Budget,
    trigger_ordinal: u64,
) -> Result<Selection<'a>, ContextTooLarge> {
    let current = message_words(conversation.trigger()).map_or(0, |words| words.history_characters());
    let mut characters = current + documents.iter().map(DocumentEvidence::characters).sum::<usize>();
    let characters_max = usize::try_from(budget.characters_max).unwrap_or(usize::MAX);
    if characters > characters_max {
        return Err(ContextTooLarge { found: characters, max: budget.characters_max });
    }
    let mut events_left = budget.events_max.saturating_sub(1);
    let mut selection =
        Selection { turns: Vec::new(), excluded: Vec::new(), first_ordinal: trigger_ordinal, characters };
    for read in conversation.read(history).into_iter().rev() {
        let ordinal = read.ordinal();
        match read {
            ReadTurn::Excluded(turn) => selection.excluded.push(turn),
            ReadTurn::Admitted(turn) => {
                let reply = turn.reply.as_ref().map_or(0, AdmittedReply::characters);
                let events = 1 + u32::from(turn.reply.is_ok());
                let with_turn = characters + turn.characters + reply;
                if events > events_left || with_turn > characters_max {
                    break;
                }
                events_left -= events;
                characters = with_turn;
                selection.turns.push(turn);
            }
        }
        selection.first_ordinal = ordinal;
    }
    selection.turns.reverse();
    selection.excluded.reverse();
    selection.characters = characters;
    Ok(selection)
}

/// What a snapshot is composed of, beside the transcript.
#[derive(Debug)]
pub struct Composition<'a> {
    /// The declaration.
    pub declaration: &'a Declaration,
    /// Fingerprint of what was activated.
    pub fingerprint: &'a Fingerprint,
    /// The model.
    pub model: ModelBinding,
    /// Name of the conversation within the trigger's source.
    pub conversation: &'a str,
    /// The trigger's stored ordinal in it.
    pub ordinal: u64,
    /// The documents, in the order of the declaration.
    pub documents: &'a [DocumentEvidence],
    /// Declared documents that are not there.
    pub missing_documents: Vec<String>,
    /// The newest omitted turns, newest first; more than 64 are cut.
    pub omitted_newest: Vec<EventId>,
}

/// Puts a snapshot together. Its packet hash is still all zeros: [`freeze`] sets it.
pub fn compose(
    parts: Composition<'_>,
    conversation: &Conversation<'_>,
    selection: &Selection<'_>,
) -> Snapshot {
    let declaration = parts.declaration;
    let budget = declaration.budget();
    let trigger = &conversation.trigger().envelope;
    let transcript = transcript(conversation.trigger(), selection);
    Snapshot {
        snapshot_format: SNAPSHOT_FORMAT,
        packet_format: PACKET_FORMAT,
        declaration: DeclarationReference {
            id: declaration.id().clone(),
            version: declaration.version(),
            fingerprint: parts.fingerprint.clone(),
            context: declaration.context(),
            output_mode: declaration.output_mode(),
            proposals: declaration.proposals().to_vec(),
        },
        api: parts.model.api,
        model: parts.model.model,
        compat: parts.model.compat,
        token_limit: parts.model.token_limit,
        trigger: TriggerReference {
            event: trigger.id.clone(),
            source: trigger.source.clone(),
            sequence: trigger.sequence,
        },
        documents: parts.documents.iter().map(|document| document.reference.clone()).collect(),
        capability: capability(declaration.proposals(), parts.documents, &transcript),
        turns: transcript.turns,
        limits: Limits {
            max_events: budget.events_max,
            max_characters: budget.characters_max,
            max_output_tokens: budget.output_tokens_max,
        },
        provenance: Provenance {
            conversation: parts.conversation.to_owned(),
            ordinal: parts.ordinal,
            agents: conversation.agents().iter().map(|agent| (*agent).clone()).collect(),
            route: route(conversation.place()),
            characters: wide(selection.characters),
            missing_documents: parts.missing_documents,
            omitted_turns: omitted(selection, parts.omitted_newest),
            excluded_turns: selection.excluded.iter().map(excluded).collect(),
            omitted_replies: transcript.omitted,
        },
        packet_sha256: Sha256Hex::zero(),
    }
}

/// A snapshot with the packet that it renders to.
#[derive(Debug)]
pub struct Frozen {
    /// The snapshot, whole.
    pub snapshot: Snapshot,
    /// Its packet.
    pub packet: Packet,
    /// The packet's canonical bytes.
    pub packet_bytes: Sensitive<Vec<u8>>,
}

/// Renders a composed snapshot and binds it to its packet.
///
/// # Errors
/// [`RebuildError`] when evidence is missing or is not what the snapshot names.
pub fn freeze(snapshot: Snapshot, evidence: &dyn Evidence) -> Result<Frozen, RebuildError> {
    let packet = render(&snapshot, evidence)?;
    let bytes = packet.encode()?;
    let snapshot = Snapshot { packet_sha256: Sha256Hex::of(&bytes), ..snapshot };
    Ok(Frozen { snapshot, packet, packet_bytes: Sensitive::new(bytes) })
}

/// The transcript by reference.
struct Transcript {
    turns: Vec<TurnReference>,
    /// Indices of the answers that may be corrected.
    targets: Vec<u32>,
    omitted: Vec<OmittedReply>,
}

fn transcript(trigger: &StoredEvent, selection: &Selection<'_>) -> Transcript {
    let mut transcript = Transcript { turns: Vec::new(), targets: Vec::new(), omitted: Vec::new() };
    for turn in &selection.turns {
        let index = narrow(transcript.turns.len());
        transcript.turns.push(user(turn.message));
        match &turn.reply {
            Ok(reply) => {
                if reply.target.is_some() {
                    transcript.targets.push(index + 1);
                }
                transcript.turns.push(assistant(reply));
            }
            Err(reason) => transcript.omitted.push(OmittedReply { turn: index, reason: *reason }),
        }
    }
    transcript.turns.push(user(trigger));
    transcript
}

fn user(message: &StoredEvent) -> TurnReference {
    TurnReference::User {
        event: message.envelope.id.clone(),
        payload_sha256: message.envelope.payload_sha256.clone(),
    }
}

fn assistant(reply: &AdmittedReply<'_>) -> TurnReference {
    TurnReference::Assistant {
        event: reply.output.envelope.id.clone(),
        payload_sha256: reply.output.envelope.payload_sha256.clone(),
        run: reply.run.clone(),
        delivery_receipt: reply.receipt.map(|event| event.envelope.id.clone()),
        judgment: reply.judgment.map(|event| event.envelope.id.clone()),
    }
}

/// What the declared kinds may aim at and cite; nothing declared, nothing possible.
fn capability(
    declared: &[ProposalKind],
    documents: &[DocumentEvidence],
    transcript: &Transcript,
) -> Capability {
    if declared.is_empty() {
        return Capability::default();
    }
    let memory = documents.iter().position(DocumentEvidence::is_memory_target).map(narrow);
    let targets = transcript.targets.clone();
    Capability {
        memory_target: memory.filter(|_| declared.contains(&ProposalKind::MemoryChange)),
        correction_targets: if declared.contains(&ProposalKind::SelfCorrection) {
            targets
        } else {
            Vec::new()
        },
        evidence: (0..narrow(transcript.turns.len())).collect(),
    }
}

fn route(place: &Place) -> Option<RouteReference> {
    match place {
        Place::Chat { .. } => None,
        Place::Thread { sender, recipient, thread } => Some(RouteReference {
            sender: sender.clone(),
            recipient: recipient.clone(),
            thread: thread.clone(),
        }),
    }
}

fn omitted(selection: &Selection<'_>, mut newest: Vec<EventId>) -> Option<OmittedTurns> {
    let end = selection.omitted_before()?;
    newest.truncate(OMITTED_IDS_MAX);
    Some(OmittedTurns { count: end - 1, first_ordinal: 1, last_ordinal: end - 1, newest })
}

fn excluded(turn: &ExcludedTurn) -> ExcludedReference {
    ExcludedReference { event: turn.event.clone(), reason: turn.reason }
}

/// Lengths here are bounded by the turns and documents of one context.
fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
