//! The renderer of format 1: a snapshot and its evidence in, the packet out. Frozen: a change of what it writes is a
//! new format.

use thought_protocol::canonical::CanonicalError;
use thought_protocol::packet::{Packet, PacketImage, PacketMessage, ToolChoice};
use thought_protocol::proposal::ToolName;
use thought_protocol::{EventId, Fingerprint, Sha256Hex, VersionId};

use super::evidence::{Evidence, completed_event_id};
use super::limits::SENT_IMAGES_BYTES_MAX;
use super::system::{Body, system_text};
use super::{DocumentReference, Snapshot, TurnReference};
use crate::conversation::{EvidenceError, Words, effective_output, message_words, proposal_calls};
use crate::declaration::fingerprint;
use crate::event::{PayloadError, StoredEvent};
use crate::payload::{Image, RunCompleted};

/// A packet that cannot be rebuilt. It holds no content.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// An event is not there.
    #[error("rebuild a packet: event {id} is missing")]
    EventMissing {
        /// The event.
        id: EventId,
    },
    /// An event's payload is not the one that was read.
    #[error("rebuild a packet: the payload of event {id} is not the one that was read")]
    EventChanged {
        /// The event.
        id: EventId,
    },
    /// A document's version is not there.
    #[error("rebuild a packet: document version {id} is missing")]
    VersionMissing {
        /// The version.
        id: VersionId,
    },
    /// A version's bytes are not the ones that were read.
    #[error("rebuild a packet: document version {id} is not the one that was read")]
    VersionChanged {
        /// The version.
        id: VersionId,
    },
    /// The declaration version is not there.
    #[error("rebuild a packet: declaration {id} version {version} is missing")]
    DeclarationMissing {
        /// Declaration id.
        id: String,
        /// Its version.
        version: u32,
    },
    /// The activated bytes do not have the fingerprint.
    #[error("rebuild a packet: the declaration's fingerprint is {found}, not {expected}")]
    DeclarationChanged {
        /// What the snapshot names.
        expected: Fingerprint,
        /// What the bytes have.
        found: Fingerprint,
    },
    /// The prompt is not UTF-8.
    #[error("rebuild a packet: the prompt is not UTF-8")]
    Prompt,
    /// An image is missing or is not the one that was received.
    #[error("rebuild a packet: image {sha256} is missing or changed")]
    Image {
        /// Name of its blob.
        sha256: Sha256Hex,
    },
    /// Evidence that does not say what its place demands.
    #[error("rebuild a packet")]
    Evidence(#[from] EvidenceError),
    /// A completed event does not decode.
    #[error("rebuild a packet: read a completed run")]
    Completed(#[source] PayloadError),
    /// The packet is not the one that was sent.
    #[error("rebuild a packet: its hash is {found}, not {expected}")]
    PacketChanged {
        /// What the snapshot names.
        expected: Sha256Hex,
        /// What it came to.
        found: Sha256Hex,
    },
    /// No canonical form.
    #[error("rebuild a packet: write it")]
    Canonical(#[from] CanonicalError),
}

/// The one way from a snapshot to a packet.
pub(super) fn render(snapshot: &Snapshot, evidence: &dyn Evidence) -> Result<Packet, RebuildError> {
    let prompt = prompt(snapshot, evidence)?;
    let documents: Vec<Body<'_>> =
        snapshot.documents.iter().map(|document| body(document, evidence)).collect::<Result<_, _>>()?;
    let messages = messages(snapshot, evidence)?;
    let offered = snapshot.offered_tools();
    let (tools, tool_choice) = if offered.is_empty() {
        let called = called_tools(&messages);
        let choice = (!called.is_empty()).then_some(ToolChoice::None);
        (called, choice)
    } else {
        (offered, Some(ToolChoice::Auto))
    };
    Ok(Packet {
        packet_format: snapshot.packet_format,
        api: snapshot.api,
        model: snapshot.model.clone(),
        compat: snapshot.compat,
        token_limit: snapshot.token_limit,
        max_output_tokens: snapshot.limits.max_output_tokens,
        output_mode: snapshot.declaration.output_mode,
        system: system_text(snapshot, prompt, &documents),
        messages,
        tools,
        tool_choice,
        capability: snapshot.packet_capability(),
    })
}

fn prompt<'e>(snapshot: &Snapshot, evidence: &'e dyn Evidence) -> Result<&'e str, RebuildError> {
    let named = &snapshot.declaration;
    let stored = evidence.declaration(named.id.as_str(), named.version).ok_or_else(|| {
        RebuildError::DeclarationMissing { id: named.id.as_str().to_owned(), version: named.version }
    })?;
    let found = fingerprint(stored.declaration, stored.prompt, stored.manifest);
    if found != named.fingerprint {
        return Err(RebuildError::DeclarationChanged { expected: named.fingerprint.clone(), found });
    }
    match std::str::from_utf8(stored.prompt) {
        Ok(prompt) => Ok(prompt),
        Err(_content_dark) => Err(RebuildError::Prompt),
    }
}

fn body<'e>(document: &'e DocumentReference, evidence: &'e dyn Evidence) -> Result<Body<'e>, RebuildError> {
    let id = &document.version_id;
    let content = evidence.version(id).ok_or_else(|| RebuildError::VersionMissing { id: id.clone() })?;
    if Sha256Hex::of(content) != document.sha256 {
        return Err(RebuildError::VersionChanged { id: id.clone() });
    }
    Ok(Body { path: &document.path, text: document_text(content) })
}

/// The text of a document; `None` for bytes that are none, which stay out of every packet.
pub(super) fn document_text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

fn messages(snapshot: &Snapshot, evidence: &dyn Evidence) -> Result<Vec<PacketMessage>, RebuildError> {
    let mut messages = Vec::with_capacity(snapshot.turns.len());
    let last = snapshot.turns.len().saturating_sub(1);
    for (index, turn) in snapshot.turns.iter().enumerate() {
        let event = named_event(turn, evidence)?;
        match turn {
            TurnReference::User { .. } if index == last => {
                messages.push(current_message(&message_words(event)?, evidence)?);
            }
            TurnReference::User { .. } => {
                let text = message_words(event)?.as_history();
                messages.push(PacketMessage::User { text, images: Vec::new() });
            }
            TurnReference::Assistant { run, judgment, .. } => {
                let judgment = judgment.as_ref().map(|id| find(id, evidence)).transpose()?;
                let completed: RunCompleted =
                    find(&completed_event_id(run), evidence)?.payload().map_err(RebuildError::Completed)?;
                let proposals: Vec<&StoredEvent> = completed
                    .proposals
                    .iter()
                    .map(|reference| find(&reference.event, evidence))
                    .collect::<Result<_, _>>()?;
                let calls = proposal_calls(proposals)?;
                if !calls.is_empty() {
                    messages.push(PacketMessage::ToolTurn { calls });
                }
                messages.push(PacketMessage::Assistant { text: effective_output(event, judgment)?.summary });
            }
        }
    }
    Ok(messages)
}

fn find<'e>(id: &EventId, evidence: &'e dyn Evidence) -> Result<&'e StoredEvent, RebuildError> {
    evidence.event(id).ok_or_else(|| RebuildError::EventMissing { id: id.clone() })
}

fn named_event<'e>(
    turn: &TurnReference,
    evidence: &'e dyn Evidence,
) -> Result<&'e StoredEvent, RebuildError> {
    let event = find(turn.event(), evidence)?;
    let same = event.envelope.payload_sha256 == *turn.payload_sha256()
        && Sha256Hex::of(event.payload.expose()) == *turn.payload_sha256();
    if same { Ok(event) } else { Err(RebuildError::EventChanged { id: turn.event().clone() }) }
}

/// The current message: its words unbroken, its images beside them as far as they may be sent.
fn current_message(words: &Words, evidence: &dyn Evidence) -> Result<PacketMessage, RebuildError> {
    let sent = sent_images(words);
    let images = sent
        .iter()
        .map(|image| {
            let sha256 = &image.blob_sha256;
            match evidence.image(sha256) {
                Some(bytes) if Sha256Hex::of(bytes) == *sha256 => {
                    Ok(PacketImage { media_type: image.media_type.clone(), data_base64: base64(bytes) })
                }
                Some(_) | None => Err(RebuildError::Image { sha256: sha256.clone() }),
            }
        })
        .collect::<Result<_, _>>()?;
    Ok(PacketMessage::User { text: words.with_placeholders(words.images.len() - sent.len()), images })
}

/// The images of a current message that are sent: the first of them, as long as all together stay within the bound.
pub(super) fn sent_images(words: &Words) -> Vec<Image> {
    let mut total = 0_u64;
    words
        .images
        .iter()
        .take_while(|image| {
            total = total.saturating_add(image.byte_count);
            total <= SENT_IMAGES_BYTES_MAX
        })
        .cloned()
        .collect()
}

/// The tools that history calls, once each, in the order of the list.
fn called_tools(messages: &[PacketMessage]) -> Vec<ToolName> {
    let called = |tool: &ToolName| {
        messages.iter().any(|message| match message {
            PacketMessage::ToolTurn { calls } => calls.iter().any(|call| call.name == *tool),
            PacketMessage::User { .. } | PacketMessage::Assistant { .. } => false,
        })
    };
    ToolName::ALL.into_iter().filter(called).collect()
}

/// Standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(DIGITS[((word >> (18 - 6 * place)) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_the_standard_one() {
        let vectors = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, expected) in vectors.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }
}
