//! What a provider answered, first as read and then as validated against the packet.
//!
//! Both sides of the wall run the same two steps on the same raw bytes. Neither repairs anything: an answer is taken
//! whole or the run fails with one stable reason and proposes nothing.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::{ARGUMENTS_BYTES_MAX, CALL_ID_CHARACTERS_MAX, CALLS_MAX, VISIBLE_TEXT_CHARACTERS_MAX};
use crate::packet::{OutputMode, Packet};
use crate::proposal::{self, ProposalCall, ProposalKind, ToolName};
use crate::strict_json;

pub use crate::reason::{FailReason, FailReasonError};

/// Tokens as the provider counted them; absent where it did not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// One call as the model wrote it. Nothing about it is trusted yet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RawCall {
    /// The provider's id of the call.
    pub id: String,
    /// The name that the model gave.
    pub name: String,
    /// The raw bytes of the arguments, as text.
    pub arguments: String,
}

/// A provider's answer as read: one choice, an accepted stop, thinking dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The visible text, trimmed; absent when nothing is left of it.
    pub text: Option<String>,
    /// Whether the text was cut by length.
    pub truncated: bool,
    /// The calls in their order.
    pub calls: Vec<RawCall>,
    /// How many thinking parts were dropped.
    pub thinking_parts_dropped: u32,
    /// Tokens.
    pub usage: Usage,
}

/// An answer that may be settled.
#[derive(Clone, PartialEq, Eq)]
pub struct ValidatedAnswer {
    /// What the person sees: the model's trimmed text, or the fixed acknowledgment of a tool-only answer.
    pub summary: String,
    /// Whether the summary is the model's own text.
    pub text_from_model: bool,
    /// Whether the text was cut by length.
    pub truncated: bool,
    /// Zero to three proposals, at most one of each kind, in the order of the calls.
    pub proposals: Vec<ProposalCall>,
    /// How many thinking parts were dropped.
    pub thinking_parts_dropped: u32,
    /// Tokens.
    pub usage: Usage,
}

impl fmt::Debug for RawCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawCall({} bytes)", self.arguments.len())
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("text_bytes", &self.text.as_ref().map(String::len))
            .field("truncated", &self.truncated)
            .field("calls", &self.calls.len())
            .field("thinking_parts_dropped", &self.thinking_parts_dropped)
            .field("usage", &self.usage)
            .finish()
    }
}

impl fmt::Debug for ValidatedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValidatedAnswer")
            .field("summary_bytes", &self.summary.len())
            .field("text_from_model", &self.text_from_model)
            .field("truncated", &self.truncated)
            .field("proposals", &self.proposals)
            .field("thinking_parts_dropped", &self.thinking_parts_dropped)
            .field("usage", &self.usage)
            .finish()
    }
}

/// Validates an answer against the packet: text within its bounds, every call offered, unique, well-formed, and within
/// the capability. All or nothing.
///
/// # Errors
/// The first [`FailReason`].
pub fn validate(packet: &Packet, answer: &Answer) -> Result<ValidatedAnswer, FailReason> {
    let text = validate_text(answer.text.as_deref())?;
    if packet.output_mode == OutputMode::StrictJson {
        validate_strict_json(text, answer)?;
    }
    if answer.truncated && !answer.calls.is_empty() {
        return Err(FailReason::LengthWithCalls);
    }
    let proposals = validate_calls(packet, &answer.calls)?;
    let kinds: Vec<ProposalKind> = proposals.iter().map(ProposalCall::kind).collect();
    let summary = match text {
        Some(text) => text,
        None => proposal::acknowledgment(&kinds).ok_or(FailReason::EmptyAnswer)?,
    };
    Ok(ValidatedAnswer {
        summary: summary.to_owned(),
        text_from_model: text.is_some(),
        truncated: answer.truncated,
        proposals,
        thinking_parts_dropped: answer.thinking_parts_dropped,
        usage: answer.usage,
    })
}

fn validate_text(text: Option<&str>) -> Result<Option<&str>, FailReason> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    if text.contains('\0') {
        return Err(FailReason::TextInvalid);
    }
    if text.chars().nth(VISIBLE_TEXT_CHARACTERS_MAX).is_some() {
        return Err(FailReason::TextTooLong);
    }
    Ok(Some(text))
}

fn validate_strict_json(text: Option<&str>, answer: &Answer) -> Result<(), FailReason> {
    if !answer.calls.is_empty() {
        return Err(FailReason::CallsInStrictJson);
    }
    let text = text.ok_or(FailReason::EmptyAnswer)?;
    // A number or literal that was cut may still be JSON, so a cut text is none here.
    if answer.truncated || strict_json::check(text.as_bytes()).is_err() {
        return Err(FailReason::NotJson);
    }
    Ok(())
}

fn validate_calls(packet: &Packet, calls: &[RawCall]) -> Result<Vec<ProposalCall>, FailReason> {
    if calls.len() > CALLS_MAX {
        return Err(unknown_tool(packet, calls).unwrap_or(FailReason::TooManyCalls));
    }
    let mut ids = HashSet::new();
    let mut kinds = HashSet::new();
    let mut proposals = Vec::with_capacity(calls.len());
    for call in calls {
        if call.id.is_empty() || call.id.chars().nth(CALL_ID_CHARACTERS_MAX).is_some() {
            return Err(FailReason::EmptyCallId);
        }
        if !ids.insert(call.id.as_str()) {
            return Err(FailReason::DuplicateCallId);
        }
        let tool = offered_tool(packet, &call.name).ok_or(FailReason::UnknownTool)?;
        if !kinds.insert(tool.kind()) {
            return Err(FailReason::DuplicateKind);
        }
        proposals.push(validate_arguments(packet, tool, &call.arguments)?);
    }
    Ok(proposals)
}

/// An unknown tool says more about an answer than its number of calls.
fn unknown_tool(packet: &Packet, calls: &[RawCall]) -> Option<FailReason> {
    calls.iter().any(|call| offered_tool(packet, &call.name).is_none()).then_some(FailReason::UnknownTool)
}

fn offered_tool(packet: &Packet, name: &str) -> Option<ToolName> {
    ToolName::from_wire(name).filter(|tool| packet.offered().contains(tool))
}

fn validate_arguments(packet: &Packet, tool: ToolName, arguments: &str) -> Result<ProposalCall, FailReason> {
    if arguments.len() > ARGUMENTS_BYTES_MAX {
        return Err(FailReason::ArgumentsInvalid);
    }
    let value = match strict_json::parse(arguments.as_bytes()) {
        Ok(value) if value.is_object() => value,
        Ok(_) | Err(_) => return Err(FailReason::ArgumentsMalformed),
    };
    ProposalCall::from_arguments(tool, &value, &packet.capability).map_err(|error| error.fail_reason())
}
