//! The provider codecs: the request's bytes from a packet, and an answer from raw bytes.
//!
//! Pure and the same on both sides of the wall: the worker renders and reads, the parent renders and reads again and
//! demands equality. Nothing here knows a key, an address or a header, and nothing repairs what a provider sent.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{Answer, FailReason, RawCall, Usage};
use crate::canonical::{self, CanonicalError, INTEGER_MAX};
use crate::limits::{CALLS_MAX, REQUEST_BYTES_MAX};
use crate::packet::{Api, HistoryCall, Packet, PacketImage, PacketMessage, ToolChoice};
use crate::proposal::ToolName;
use crate::strict_json::{self, StrictJsonError};

mod anthropic;
mod openai;
mod status;

pub use status::{StatusClass, classify_status};

/// Media types of images that both APIs take.
pub const IMAGE_MEDIA_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// A packet from which no request can be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The conversation does not start and end with a user's message.
    #[error("render a request: the conversation does not start and end with a user's message")]
    Order,
    /// A message without content.
    #[error("render a request: message {index} has no content")]
    EmptyMessage {
        /// Which one, from 0.
        index: usize,
    },
    /// An image whose media type or bytes are out of contract.
    #[error("render a request: message {index} has an image out of contract")]
    Image {
        /// Which message, from 0.
        index: usize,
    },
    /// A call in history whose id, number or arguments are out of contract.
    #[error("render a request: message {index} has a call out of contract")]
    HistoryCall {
        /// Which message, from 0.
        index: usize,
    },
    /// The tools are not unique, or listed without a choice, or the other way round.
    #[error("render a request: the tools and their choice do not fit")]
    Tools,
    /// No token for the answer.
    #[error("render a request: no token is left for the answer")]
    TokenLimit,
    /// The request is over its bound.
    #[error("render a request: {length} bytes are over the bound")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// A schema has no canonical form.
    #[error("render a request: write a schema")]
    Schema(#[source] CanonicalError),
    /// The request did not serialize.
    #[error("render a request: serialize it")]
    Serialize(#[source] serde_json::Error),
}

impl RenderError {
    /// The reason under which an attempt ends.
    pub const fn fail_reason(&self) -> FailReason {
        match self {
            Self::TooLong { .. } => FailReason::ContextTooLarge,
            _ => FailReason::PacketUnrenderable,
        }
    }
}

/// The bytes of the one request. The same packet gives the same bytes, in every process and for ever: renderers of a
/// packet format are frozen.
///
/// # Errors
/// [`RenderError`].
pub fn render_request(packet: &Packet) -> Result<Vec<u8>, RenderError> {
    check_packet(packet)?;
    let bytes = match packet.api {
        Api::AnthropicMessages => anthropic::render(packet),
        Api::OpenaiChat => openai::render(packet),
    }?;
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(RenderError::TooLong { length: bytes.len() });
    }
    Ok(bytes)
}

/// Reads a provider's raw answer (the body under status 200): accepted stops and parts alone. The calls are not
/// validated yet; [`crate::answer::validate`] does that.
///
/// # Errors
/// The first [`FailReason`].
pub fn read_answer(packet: &Packet, body: &[u8]) -> Result<Answer, FailReason> {
    match strict_json::check(body) {
        Ok(()) => {}
        Err(StrictJsonError::DuplicateKey) => return Err(FailReason::DuplicateKey),
        Err(_) => return Err(FailReason::MalformedBody),
    }
    match packet.api {
        Api::AnthropicMessages => anthropic::read(body),
        Api::OpenaiChat => openai::read(body),
    }
}

fn check_packet(packet: &Packet) -> Result<(), RenderError> {
    let is_user = |message: Option<&PacketMessage>| matches!(message, Some(PacketMessage::User { .. }));
    if !is_user(packet.messages.first()) || !is_user(packet.messages.last()) {
        return Err(RenderError::Order);
    }
    if packet.max_output_tokens == 0 {
        return Err(RenderError::TokenLimit);
    }
    let repeated = packet.tools.iter().enumerate().any(|(at, tool)| packet.tools[..at].contains(tool));
    if repeated || packet.tools.is_empty() != packet.tool_choice.is_none() {
        return Err(RenderError::Tools);
    }
    packet.messages.iter().enumerate().try_for_each(|(index, message)| check_message(index, message))
}

fn check_message(index: usize, message: &PacketMessage) -> Result<(), RenderError> {
    match message {
        PacketMessage::User { text, images } => {
            if text.is_empty() && images.is_empty() {
                return Err(RenderError::EmptyMessage { index });
            }
            if images.iter().all(is_image) { Ok(()) } else { Err(RenderError::Image { index }) }
        }
        PacketMessage::Assistant { text } if text.is_empty() => Err(RenderError::EmptyMessage { index }),
        PacketMessage::Assistant { .. } => Ok(()),
        PacketMessage::ToolTurn { calls } => {
            let number = (1..=CALLS_MAX).contains(&calls.len());
            let unique =
                calls.iter().enumerate().all(|(at, call)| calls[..at].iter().all(|c| c.id != call.id));
            if number && unique && calls.iter().all(is_history_call) {
                Ok(())
            } else {
                Err(RenderError::HistoryCall { index })
            }
        }
    }
}

fn is_image(image: &PacketImage) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    IMAGE_MEDIA_TYPES.contains(&image.media_type.as_str())
        && !image.data_base64.is_empty()
        && image.data_base64.bytes().all(base64)
}

/// Ids within what the strictest provider takes; arguments one strict JSON object.
fn is_history_call(call: &HistoryCall) -> bool {
    let id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=40).contains(&call.id.len())
        && call.id.bytes().all(id)
        && call.arguments.starts_with('{')
        && strict_json::check(call.arguments.as_bytes()).is_ok()
}

/// A tool's schema as bytes in canonical order. It is static, so it is built once.
fn schema(tool: ToolName) -> Result<Box<RawValue>, RenderError> {
    static SCHEMAS: [OnceLock<Box<RawValue>>; ToolName::ALL.len()] =
        [const { OnceLock::new() }; ToolName::ALL.len()];
    let place = match tool {
        ToolName::RequestMemoryChange => &SCHEMAS[0],
        ToolName::SubmitCorrection => &SCHEMAS[1],
        ToolName::ProposeFocus => &SCHEMAS[2],
    };
    if let Some(schema) = place.get() {
        return Ok(schema.clone());
    }
    let text = canonical::to_string(&crate::proposal::request_schema(tool)).map_err(RenderError::Schema)?;
    let schema = RawValue::from_string(text).map_err(RenderError::Serialize)?;
    Ok(place.get_or_init(|| schema).clone())
}

/// The word of a choice, for a packet that lists tools.
const fn choice_word(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::None => "none",
    }
}

fn to_bytes<T: Serialize>(request: &T) -> Result<Vec<u8>, RenderError> {
    serde_json::to_vec(request).map_err(RenderError::Serialize)
}

/// What a stop reason allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Text alone.
    Text,
    /// Text alone, cut.
    Length,
    /// Calls, with or without text.
    Calls,
    /// Text or calls: some servers say the same for both.
    TextOrCalls,
}

/// The parts of an answer, in order.
#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    calls: Vec<RawCall>,
    thinking: u32,
    usage: Usage,
}

impl Parts {
    fn drop_thinking(&mut self, parts: usize) {
        self.thinking = self.thinking.saturating_add(u32::try_from(parts).unwrap_or(u32::MAX));
    }

    /// Puts the parts together as the stop allows.
    fn assemble(self, stop: Stop) -> Result<Answer, FailReason> {
        let texts: Vec<&str> =
            self.texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        if self.calls.is_empty() {
            if stop == Stop::Calls {
                return Err(FailReason::CallsMissing);
            }
        } else {
            match stop {
                Stop::Length => return Err(FailReason::LengthWithCalls),
                Stop::Text => return Err(FailReason::StopWithCalls),
                Stop::Calls | Stop::TextOrCalls if texts.len() > 1 => return Err(FailReason::TwoTextParts),
                Stop::Calls | Stop::TextOrCalls => {}
            }
        }
        let text = Some(texts.concat().trim().to_owned()).filter(|text| !text.is_empty());
        if text.is_none() && self.calls.is_empty() {
            return Err(FailReason::EmptyAnswer);
        }
        Ok(Answer {
            text,
            truncated: stop == Stop::Length,
            calls: self.calls,
            thinking_parts_dropped: self.thinking,
            usage: self.usage,
        })
    }
}

/// A count of tokens, if it is one: usage is told, never trusted, so nonsense is none.
fn tokens(usage: Option<&Value>, member: &str) -> Option<u64> {
    usage?.get(member)?.as_u64().filter(|count| *count <= INTEGER_MAX.unsigned_abs())
}

/// A member that must be a string.
fn string(value: Option<&RawValue>) -> Result<String, FailReason> {
    let raw = value.ok_or(FailReason::MalformedBody)?;
    serde_json::from_str(raw.get()).or(Err(FailReason::MalformedBody))
}

/// A call's id: absent, null and ill-typed are as bad as empty.
fn call_id(value: Option<&RawValue>) -> Result<String, FailReason> {
    string(value).or(Err(FailReason::EmptyCallId))
}
