//! One example, and the one writer of examples: it takes nothing on trust from whoever selected.
//!
//! The form is the conversational preference form with an explicit prompt: system text and history up to the message that
//! was answered, the replacement as `chosen`, the original answer as `rejected`. The prompt is the conversation of the
//! rebuilt packet. Calls of earlier turns are left out: they hold what a model suggested, which is in no export, and their
//! members beside role and content would make rows of unlike form; what was said in those turns stays. An image stands as
//! `[image]`. `Debug` shows ids and lengths alone.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;
use thought_contract::conversation::IMAGE_PLACEHOLDER;
use thought_protocol::canonical::{self, CanonicalError};
use thought_protocol::hash::Hasher;
use thought_protocol::packet::{Packet, PacketMessage};
use thought_protocol::{EventId, ExportId, RunId, Sensitive, Sha256Hex, SnapshotId};

/// The version of an example's form.
pub const EXAMPLE_SCHEMA_VERSION: u32 = 1;

/// Who says a message of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instructions and documents.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
}

/// A message of an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who.
    pub role: Role,
    /// What.
    pub content: Sensitive<String>,
}

/// What an example is made from, as somebody claims it. Every id may be lacking: the writer looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The judgment.
    pub judgment: Option<EventId>,
    /// The completed run.
    pub run: Option<RunId>,
    /// The answer.
    pub output: Option<EventId>,
    /// The message that was answered.
    pub trigger: Option<EventId>,
    /// What the judgment rests on.
    pub feedback: Option<EventId>,
    /// The receipt of the answer's one delivery.
    pub delivery_receipt: Option<EventId>,
    /// The frozen context.
    pub context_snapshot: Option<SnapshotId>,
    /// Hash of its uncompressed bytes.
    pub context_sha256: Option<Sha256Hex>,
}

/// An example before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// What the model was given, the message that it answered last.
    pub prompt: Vec<Message>,
    /// What it should have said.
    pub chosen: Sensitive<String>,
    /// What it said.
    pub rejected: Sensitive<String>,
    /// Where all of it comes from.
    pub provenance: Provenance,
}

/// An example that was not written. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An id is lacking.
    #[error("write an example: its provenance has no {id}")]
    Lacks {
        /// Which member.
        id: &'static str,
    },
    /// It is no preference between two answers to a prompt.
    #[error("write an example: its {part} is not what an example needs")]
    Form {
        /// Which member.
        part: &'static str,
    },
    /// It has no canonical form.
    #[error("write an example")]
    Canonical(#[from] CanonicalError),
    /// The file.
    #[error("write an example: {}", .0.kind())]
    Io(#[source] io::Error),
}

/// The conversation of a packet as a prompt.
pub(super) fn prompt(packet: &Packet) -> Vec<Message> {
    let message = |role, text: String| Message { role, content: Sensitive::new(text) };
    let mut prompt = Vec::with_capacity(packet.messages.len() + 1);
    if !packet.system.is_empty() {
        prompt.push(message(Role::System, packet.system.clone()));
    }
    for part in &packet.messages {
        match part {
            PacketMessage::User { text, images } => {
                let mut lines = vec![IMAGE_PLACEHOLDER; images.len()];
                if !text.is_empty() {
                    lines.push(text);
                }
                prompt.push(message(Role::User, lines.join("\n")));
            }
            PacketMessage::Assistant { text } => prompt.push(message(Role::Assistant, text.clone())),
            PacketMessage::ToolTurn { .. } => {}
        }
    }
    prompt
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    id: ExportId,
    schema_version: u32,
    prompt: Vec<LineMessage<'a>>,
    chosen: [LineMessage<'a>; 1],
    rejected: [LineMessage<'a>; 1],
    provenance: LineProvenance<'a>,
}

#[derive(Serialize)]
struct LineMessage<'a> {
    role: Role,
    content: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineProvenance<'a> {
    judgment: &'a EventId,
    run: &'a RunId,
    output: &'a EventId,
    trigger: &'a EventId,
    feedback: &'a EventId,
    delivery_receipt: &'a EventId,
    context_snapshot: &'a SnapshotId,
    context_sha256: &'a Sha256Hex,
}

fn whole(provenance: &Provenance) -> Result<LineProvenance<'_>, WriteError> {
    fn needed<'a, T>(found: Option<&'a T>, id: &'static str) -> Result<&'a T, WriteError> {
        found.ok_or(WriteError::Lacks { id })
    }
    Ok(LineProvenance {
        judgment: needed(provenance.judgment.as_ref(), "judgment")?,
        run: needed(provenance.run.as_ref(), "run")?,
        output: needed(provenance.output.as_ref(), "output")?,
        trigger: needed(provenance.trigger.as_ref(), "trigger")?,
        feedback: needed(provenance.feedback.as_ref(), "feedback")?,
        delivery_receipt: needed(provenance.delivery_receipt.as_ref(), "deliveryReceipt")?,
        context_snapshot: needed(provenance.context_snapshot.as_ref(), "contextSnapshot")?,
        context_sha256: needed(provenance.context_sha256.as_ref(), "contextSha256")?,
    })
}

fn formed(example: &Example) -> Result<(), WriteError> {
    let needs = |holds: bool, part| if holds { Ok(()) } else { Err(WriteError::Form { part }) };
    let prompt = &example.prompt;
    let answers = prompt.last().is_some_and(|last| last.role == Role::User);
    let system_once = prompt.iter().skip(1).all(|message| message.role != Role::System);
    let words = prompt.iter().all(|message| !message.content.expose().is_empty());
    needs(answers && system_once && words, "prompt")?;
    needs(!example.chosen.expose().is_empty(), "chosen")?;
    needs(!example.rejected.expose().is_empty(), "rejected")
}

/// The id of the example that a judgment makes.
pub fn example_id(judgment: &EventId) -> ExportId {
    ExportId::of("training.example", &[judgment.into(), json!(EXAMPLE_SCHEMA_VERSION)])
}

/// Writes examples, one a line, and keeps count and hash of what it wrote.
#[derive(Debug)]
pub struct ExampleWriter<W: Write> {
    out: W,
    hash: Hasher,
    written: Written,
}

/// What a writer wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Examples.
    pub examples: u64,
    /// Bytes.
    pub bytes: u64,
}

impl<W: Write> ExampleWriter<W> {
    /// Writes into this.
    pub fn new(out: W) -> Self {
        Self { out, hash: Hasher::default(), written: Written::default() }
    }

    /// Writes an example, whoever brings it.
    ///
    /// # Errors
    /// [`WriteError`]; of one that lacks an id or is no example, not a byte is written.
    pub fn write(&mut self, example: &Example) -> Result<(), WriteError> {
        let provenance = whole(&example.provenance)?;
        formed(example)?;
        let mut line = canonical::to_vec(&Line {
            id: example_id(provenance.judgment),
            schema_version: EXAMPLE_SCHEMA_VERSION,
            prompt: example
                .prompt
                .iter()
                .map(|message| LineMessage { role: message.role, content: message.content.expose() })
                .collect(),
            chosen: [LineMessage { role: Role::Assistant, content: example.chosen.expose() }],
            rejected: [LineMessage { role: Role::Assistant, content: example.rejected.expose() }],
            provenance,
        })?;
        line.push(b'\n');
        self.out.write_all(&line).map_err(WriteError::Io)?;
        self.hash.update(&line);
        self.written.examples += 1;
        self.written.bytes += u64::try_from(line.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Ends writing: hands back what was written into, with count and hash.
    ///
    /// # Errors
    /// [`WriteError::Io`] when the rest cannot be written.
    pub fn finish(mut self) -> Result<(W, Written, Sha256Hex), WriteError> {
        self.out.flush().map_err(WriteError::Io)?;
        Ok((self.out, self.written, self.hash.finish()))
    }
}
