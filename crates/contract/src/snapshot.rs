//! The frozen context of a run: what the model was shown, by reference, so that it can be shown again byte for byte.
//!
//! A snapshot holds no words. It names immutable events, document versions and the activated declaration, and the hash
//! of the packet that they render to. The first packet and every later one come from the same renderer, so that a
//! snapshot that rebuilds to other bytes is a fault and never a variant.

pub mod build;
mod capability;
mod compress;
pub mod evidence;
pub mod limits;
mod render;
mod system;

use serde::{Deserialize, Serialize};
use thought_protocol::canonical::{self, CanonicalError};
use thought_protocol::packet::{Api, Compat, OutputMode, PACKET_FORMAT, Packet, TokenLimit};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{
    DocumentId, EventId, Fingerprint, RunId, Sensitive, Sha256Hex, VersionId, strict_json,
};

use crate::conversation::{ReplyOmission, TurnExclusion};
use crate::declaration::{AgentId, ContextKind};
use crate::event::SourceName;

pub use compress::CompressError;
pub use evidence::{DeclarationBytes, Evidence, LoadedEvidence, References};
pub use render::RebuildError;

/// The version of the snapshot's form and of the renderer that belongs to it.
pub const SNAPSHOT_FORMAT: u32 = 1;

/// The frozen context of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// [`SNAPSHOT_FORMAT`].
    pub snapshot_format: u32,
    /// The form of the packet that it renders to.
    pub packet_format: u32,
    /// Which declaration, and what of it shapes the packet.
    pub declaration: DeclarationReference,
    /// The provider's API.
    pub api: Api,
    /// The model.
    pub model: String,
    /// What stands beside calls in history.
    pub compat: Compat,
    /// The member that bounds the answer.
    pub token_limit: TokenLimit,
    /// What is answered.
    pub trigger: TriggerReference,
    /// The documents, in the order of the system text.
    pub documents: Vec<DocumentReference>,
    /// The transcript, oldest first; the trigger is the last.
    pub turns: Vec<TurnReference>,
    /// What proposals of this run may aim at and cite.
    pub capability: Capability,
    /// What bounded the transcript and bounds the answer.
    pub limits: Limits,
    /// Where the transcript comes from and what it lacks.
    pub provenance: Provenance,
    /// Hash of the packet's canonical bytes.
    pub packet_sha256: Sha256Hex,
}

/// The activated declaration behind a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclarationReference {
    /// Declaration id.
    pub id: AgentId,
    /// Its version.
    pub version: u32,
    /// Fingerprint of what was activated.
    pub fingerprint: Fingerprint,
    /// How the context was built.
    #[serde(with = "context_kind")]
    pub context: ContextKind,
    /// What the visible answer must be.
    pub output_mode: OutputMode,
    /// The kinds of proposal that it may make.
    pub proposals: Vec<ProposalKind>,
}

/// The event that a run answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TriggerReference {
    /// The event.
    pub event: EventId,
    /// Its source.
    pub source: SourceName,
    /// Its sequence in it.
    pub sequence: u64,
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DocumentReference {
    /// The source that scanned it.
    pub source: SourceName,
    /// The document.
    pub document_id: DocumentId,
    /// Path below the context root.
    pub path: String,
    /// The version.
    pub version_id: VersionId,
    /// Hash of its content.
    pub sha256: Sha256Hex,
    /// Its content type.
    pub content_type: String,
    /// Size, bytes.
    pub byte_count: u64,
}

/// One message of the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum TurnReference {
    /// What was said to the assistant.
    User {
        /// The source event.
        event: EventId,
        /// Hash of its payload.
        payload_sha256: Sha256Hex,
    },
    /// What the assistant said to the message before it.
    Assistant {
        /// The output event.
        event: EventId,
        /// Hash of its payload.
        payload_sha256: Sha256Hex,
        /// The completed run; with it the completed event and its proposals are named.
        run: RunId,
        /// The receipt of its delivery; absent in an agent's thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery_receipt: Option<EventId>,
        /// The judgment that replaces its words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judgment: Option<EventId>,
    },
}

impl TurnReference {
    /// The event whose words stand here.
    pub fn event(&self) -> &EventId {
        match self {
            Self::User { event, .. } | Self::Assistant { event, .. } => event,
        }
    }

    /// The hash of that event's payload.
    pub fn payload_sha256(&self) -> &Sha256Hex {
        match self {
            Self::User { payload_sha256, .. } | Self::Assistant { payload_sha256, .. } => payload_sha256,
        }
    }

    /// `user` or `assistant`.
    pub const fn role(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
        }
    }
}

/// What proposals may aim at and cite, by index into documents and turns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capability {
    /// The document that a memory change is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_target: Option<u32>,
    /// Assistant's turns that may be corrected, oldest first.
    pub correction_targets: Vec<u32>,
    /// Turns whose ids may be cited: a user's event, an assistant's output and delivery receipt.
    pub evidence: Vec<u32>,
}

/// The bounds of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Turns of the transcript, the trigger among them.
    pub max_events: u32,
    /// Characters of documents and transcript.
    pub max_characters: u32,
    /// Tokens of the answer.
    pub max_output_tokens: u32,
}

/// Where the transcript comes from and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provenance {
    /// The conversation within the trigger's source.
    pub conversation: String,
    /// The trigger's stored ordinal in it.
    pub ordinal: u64,
    /// The declarations whose answers are history.
    pub agents: Vec<AgentId>,
    /// The route of an agent's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteReference>,
    /// Characters of documents and transcript.
    pub characters: u64,
    /// Declared documents that are not there.
    pub missing_documents: Vec<String>,
    /// Older turns that the bounds leave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_turns: Option<OmittedTurns>,
    /// Turns within the bounds that are no history.
    pub excluded_turns: Vec<ExcludedReference>,
    /// Assistant's sides that are left out.
    pub omitted_replies: Vec<OmittedReply>,
}

/// Sender and recipient of an agent's thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RouteReference {
    /// Who writes.
    pub sender: String,
    /// Who answers.
    pub recipient: String,
    /// The thread.
    pub thread: String,
}

/// Older turns that the bounds leave out; none of them may be cited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OmittedTurns {
    /// How many.
    pub count: u64,
    /// The stored ordinal of the oldest.
    pub first_ordinal: u64,
    /// The stored ordinal of the newest.
    pub last_ordinal: u64,
    /// The newest of them, newest first, at most 64.
    pub newest: Vec<EventId>,
}

/// A turn within the bounds that is no history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExcludedReference {
    /// Its message.
    pub event: EventId,
    /// Why.
    pub reason: TurnExclusion,
}

/// An assistant's side that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OmittedReply {
    /// The turn that it answered, by index.
    pub turn: u32,
    /// Why.
    pub reason: ReplyOmission,
}

/// Bytes that are no snapshot of this build. It holds no content.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes do not decompress within their bound.
    #[error("read a snapshot")]
    Compress(#[from] CompressError),
    /// The bytes are not strict JSON.
    #[error("read a snapshot: the bytes are not strict JSON")]
    Json(#[source] strict_json::StrictJsonError),
    /// Another format than this build renders.
    #[error("read a snapshot: it has formats {snapshot} and {packet}, this build renders others")]
    Format {
        /// Of the snapshot.
        snapshot: u64,
        /// Of the packet.
        packet: u64,
    },
    /// A member is missing, unknown or ill-typed.
    #[error("read a snapshot: a member is missing, unknown or ill-typed at column {column}")]
    Shape {
        /// Where, counted from 1.
        column: usize,
    },
    /// The bytes are not the canonical ones of their value.
    #[error("read a snapshot: the bytes are not canonical")]
    NotCanonical,
    /// References that do not fit together.
    #[error("read a snapshot: its {what} do not fit together")]
    Reference {
        /// Which member.
        what: &'static str,
    },
    /// No canonical form.
    #[error("write a snapshot")]
    Canonical(#[from] CanonicalError),
}

/// A snapshot as it is stored.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// Hash of the uncompressed bytes.
    pub sha256: Sha256Hex,
    /// Compressed canonical bytes.
    pub compressed: Sensitive<Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormatsOnly {
    snapshot_format: u64,
    packet_format: u64,
}

impl Snapshot {
    /// The canonical bytes.
    ///
    /// # Errors
    /// [`CanonicalError`] when a number lies outside the contract's integers.
    pub fn canonical_bytes(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical::to_vec(self)
    }

    /// The stored form.
    ///
    /// # Errors
    /// [`SnapshotError`] when there is none, or it is over its bound.
    pub fn encode(&self) -> Result<Encoded, SnapshotError> {
        let bytes = self.canonical_bytes()?;
        Ok(Encoded { sha256: Sha256Hex::of(&bytes), compressed: Sensitive::new(compress::compress(&bytes)?) })
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn decode(compressed: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_canonical(&compress::decompress(compressed)?)
    }

    /// Reads canonical bytes strictly.
    ///
    /// # Errors
    /// [`SnapshotError`]; another format is told apart from every other fault.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, SnapshotError> {
        strict_json::check(bytes).map_err(SnapshotError::Json)?;
        let shape = |error: serde_json::Error| SnapshotError::Shape { column: error.column() };
        let formats: FormatsOnly = serde_json::from_slice(bytes).map_err(shape)?;
        if formats.snapshot_format != u64::from(SNAPSHOT_FORMAT)
            || formats.packet_format != u64::from(PACKET_FORMAT)
        {
            return Err(SnapshotError::Format {
                snapshot: formats.snapshot_format,
                packet: formats.packet_format,
            });
        }
        let snapshot: Self = serde_json::from_slice(bytes).map_err(shape)?;
        snapshot.check_references()?;
        if snapshot.canonical_bytes()? != bytes {
            return Err(SnapshotError::NotCanonical);
        }
        Ok(snapshot)
    }

    fn check_references(&self) -> Result<(), SnapshotError> {
        let turns = &self.turns;
        let is_user = |turn: Option<&TurnReference>| matches!(turn, Some(TurnReference::User { .. }));
        let paired = turns.windows(2).all(|pair| is_user(pair.first()) || is_user(pair.last()));
        let current = turns.last().is_some_and(|turn| *turn.event() == self.trigger.event);
        if !(is_user(turns.first()) && is_user(turns.last()) && paired && current) {
            return Err(SnapshotError::Reference { what: "turns" });
        }
        let rises = |list: &[u32]| list.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = |list: &[u32]| list.iter().all(|index| self.turn(*index).is_some());
        let capability = &self.capability;
        let targets = capability.correction_targets.iter().all(|index| {
            matches!(self.turn(*index), Some(TurnReference::Assistant { delivery_receipt: Some(_), .. }))
        });
        let memory = capability.memory_target.is_none_or(|index| self.document(index).is_some());
        let ordered = rises(&capability.correction_targets) && rises(&capability.evidence);
        if !(targets && memory && ordered && inside(&capability.evidence)) {
            return Err(SnapshotError::Reference { what: "capability" });
        }
        let replies: Vec<u32> = self.provenance.omitted_replies.iter().map(|reply| reply.turn).collect();
        if rises(&replies) && replies.iter().all(|index| is_user(self.turn(*index))) {
            Ok(())
        } else {
            Err(SnapshotError::Reference { what: "omitted replies" })
        }
    }

    fn turn(&self, index: u32) -> Option<&TurnReference> {
        usize::try_from(index).ok().and_then(|index| self.turns.get(index))
    }

    fn document(&self, index: u32) -> Option<&DocumentReference> {
        usize::try_from(index).ok().and_then(|index| self.documents.get(index))
    }
}

/// The packet that was sent: rebuilt from the snapshot and immutable evidence, and equal to it in every byte.
///
/// # Errors
/// [`RebuildError`] when evidence is missing or is not what it was, or the packet would be another.
pub fn rebuild_packet(snapshot: &Snapshot, evidence: &dyn Evidence) -> Result<Packet, RebuildError> {
    let packet = render::render(snapshot, evidence)?;
    let found = packet.sha256()?;
    if found == snapshot.packet_sha256 {
        Ok(packet)
    } else {
        Err(RebuildError::PacketChanged { expected: snapshot.packet_sha256.clone(), found })
    }
}

mod context_kind {
    //! The written form of how a context is built.

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::declaration::ContextKind;

    pub(super) fn serialize<S: Serializer>(kind: &ContextKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ContextKind, D::Error> {
        let text = String::deserialize(deserializer)?;
        [ContextKind::TelegramConversation, ContextKind::AgentConversation]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| D::Error::custom("no such kind of context"))
    }
}
