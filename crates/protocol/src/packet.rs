//! The packet: all that the jail is told about one attempt, and the only thing.
//!
//! It holds no key, no address and no path. Its bytes are canonical JSON, so that the stored snapshot rebuilds them
//! exactly; both sides of the wall render the provider's request from it and nothing else.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::canonical::{self, CanonicalError};
use crate::capability::PacketCapability;
use crate::hash::Sha256Hex;
use crate::proposal::ToolName;
use crate::strict_json::{self, StrictJsonError};

/// The version of the packet's form. It moves when the form or a renderer moves, apart from every event schema.
pub const PACKET_FORMAT: u32 = 1;

/// Which provider API the request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Anthropic Messages, `POST {base_url}/v1/messages`.
    AnthropicMessages,
    /// OpenAI chat completions, `POST {base_url}/chat/completions`.
    OpenaiChat,
}

impl Api {
    /// The name in configuration, packets and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiChat => "openai-chat",
        }
    }
}

/// What stands beside the tool calls of an assistant's message in history (OpenAI chat completions alone).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compat {
    /// No `content` member beside `tool_calls`, as the vendor's contract allows.
    #[default]
    Standard,
    /// `"content": null`, for servers that want the member.
    ContentNull,
    /// `"content": ""`, for servers that want a string.
    ContentEmpty,
}

impl Compat {
    /// The name in configuration and packets.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::ContentNull => "content-null",
            Self::ContentEmpty => "content-empty",
        }
    }
}

/// The member that bounds the answer's tokens (OpenAI chat completions alone; Anthropic has one name for it).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenLimit {
    /// `max_completion_tokens`, the current name.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, for older and local servers.
    MaxTokens,
}

impl TokenLimit {
    /// The name in configuration, packets and requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxTokens => "max_tokens",
        }
    }
}

/// What the visible answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputMode {
    /// A person's conversation: text, and calls where tools are on offer.
    ConversationText,
    /// One JSON value and nothing else; a call is a failure.
    StrictJson,
}

impl OutputMode {
    /// The name in declarations and packets.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConversationText => "conversation-text",
            Self::StrictJson => "strict-json",
        }
    }
}

/// Whether the model may call what the packet lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolChoice {
    /// The listed tools are on offer.
    Auto,
    /// The tools are listed because history calls them; none is on offer.
    None,
}

/// An image of the current message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PacketImage {
    /// `image/jpeg`, `image/png`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// The bytes in standard base64 with padding.
    pub data_base64: String,
}

/// One call of an earlier turn, rebuilt from a durable proposal event.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HistoryCall {
    /// The synthetic id: [`crate::proposal::synthetic_call_id`].
    pub id: String,
    /// Which tool was called.
    pub name: ToolName,
    /// The arguments as canonical JSON text, one object, the resolved target in it.
    pub arguments: String,
}

/// One message of the conversation, chronological.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum PacketMessage {
    /// A person's (or a sending agent's) words.
    User {
        /// The words, once and unbroken. Empty only beside images.
        text: String,
        /// Images; only the trigger's are ever sent.
        images: Vec<PacketImage>,
    },
    /// What the assistant was seen to say.
    Assistant {
        /// The effective text.
        text: String,
    },
    /// The assistant's calls alone, then one [`crate::proposal::NORMALIZED_RESULT`] for each. What was delivered
    /// follows as an [`PacketMessage::Assistant`].
    ToolTurn {
        /// The calls in their order, one to three.
        calls: Vec<HistoryCall>,
    },
}

/// Everything one attempt needs in the jail.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Packet {
    /// [`PACKET_FORMAT`].
    pub packet_format: u32,
    /// The provider's API.
    pub api: Api,
    /// The model's name as the provider knows it.
    pub model: String,
    /// See [`Compat`].
    pub compat: Compat,
    /// See [`TokenLimit`].
    pub token_limit: TokenLimit,
    /// Most tokens of the answer, at least 1.
    pub max_output_tokens: u32,
    /// What the visible answer must be.
    pub output_mode: OutputMode,
    /// The system text: prompt, documents, and the trusted block of ids.
    pub system: String,
    /// History and the current message; it is last and a [`PacketMessage::User`].
    pub messages: Vec<PacketMessage>,
    /// The tools to list, unique.
    pub tools: Vec<ToolName>,
    /// Absent exactly when no tool is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// What calls may aim at and cite.
    pub capability: PacketCapability,
}

/// Bytes that are no packet of this build.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The bytes are not strict JSON.
    #[error("read a packet: the bytes are not strict JSON")]
    Json(#[source] StrictJsonError),
    /// Another version of the form than this build speaks.
    #[error("read a packet: it has format {found}, this build speaks {PACKET_FORMAT}")]
    Format {
        /// The version that stands in the bytes.
        found: u64,
    },
    /// JSON of the right version with a missing, unknown or ill-typed member. The source is left out: it may quote
    /// content.
    #[error("read a packet: a member is missing, unknown or ill-typed at line {line}, column {column}")]
    Shape {
        /// Where, counted from 1.
        line: usize,
        /// Where, counted from 1.
        column: usize,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormatOnly {
    packet_format: u64,
}

impl Packet {
    /// The canonical bytes.
    ///
    /// # Errors
    /// [`CanonicalError`] never in practice: a packet holds strings and small integers alone.
    pub fn encode(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical::to_vec(self)
    }

    /// Reads a packet strictly. Another version is told apart from every other fault, so that a run can end
    /// `blocked: protocol-version`.
    ///
    /// # Errors
    /// [`PacketError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, PacketError> {
        strict_json::check(bytes).map_err(PacketError::Json)?;
        let shape =
            |error: serde_json::Error| PacketError::Shape { line: error.line(), column: error.column() };
        let found = serde_json::from_slice::<FormatOnly>(bytes).map_err(shape)?.packet_format;
        if found != u64::from(PACKET_FORMAT) {
            return Err(PacketError::Format { found });
        }
        serde_json::from_slice(bytes).map_err(shape)
    }

    /// SHA-256 over the canonical bytes.
    ///
    /// # Errors
    /// As [`Packet::encode`].
    pub fn sha256(&self) -> Result<Sha256Hex, CanonicalError> {
        Ok(Sha256Hex::of(&self.encode()?))
    }

    /// The tools that the model may call in this turn: none under [`ToolChoice::None`].
    pub fn offered(&self) -> &[ToolName] {
        match self.tool_choice {
            Some(ToolChoice::Auto) => &self.tools,
            Some(ToolChoice::None) | None => &[],
        }
    }
}

impl fmt::Debug for PacketImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketImage({} base64 bytes)", self.data_base64.len())
    }
}

impl fmt::Debug for HistoryCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HistoryCall({}, {} bytes)", self.name, self.arguments.len())
    }
}

impl fmt::Debug for PacketMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { text, images } => write!(f, "User({} bytes, {} images)", text.len(), images.len()),
            Self::Assistant { text } => write!(f, "Assistant({} bytes)", text.len()),
            Self::ToolTurn { calls } => write!(f, "ToolTurn({} calls)", calls.len()),
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("packet_format", &self.packet_format)
            .field("api", &self.api)
            .field("output_mode", &self.output_mode)
            .field("system_bytes", &self.system.len())
            .field("messages", &self.messages.len())
            .field("tools", &self.tools.len())
            .field("tool_choice", &self.tool_choice)
            .field("correction_targets", &self.capability.correction_targets.len())
            .field("evidence", &self.capability.evidence.len())
            .finish_non_exhaustive()
    }
}
