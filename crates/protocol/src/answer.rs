//! What a provider answered, first as read and then as validated against the packet.
//!
//! Both sides of the wall run the same two steps on the same raw bytes. Neither repairs anything: an answer is taken
//! whole or the run fails with one stable reason and proposes nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::proposal::ProposalCall;

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
    /// The visible text as written, untrimmed; absent when no non-empty text part stands in the answer.
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

/// Text that is no reason code of this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read a reason code: it is none that this build knows")]
pub struct FailReasonError;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// Why an attempt gave no valid answer. The codes are stable: they stand in events and in output.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FailReason {
            $($(#[$doc])* $name,)*
        }

        impl FailReason {
            /// Every reason, in the order of this list.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }

        impl FromStr for FailReason {
            type Err = FailReasonError;
            fn from_str(text: &str) -> Result<Self, FailReasonError> {
                match text {
                    $($code => Ok(Self::$name),)*
                    _ => Err(FailReasonError),
                }
            }
        }
    };
}

reasons! {
    /// The model refused.
    Refusal = "refusal",
    /// The provider's filter stopped the answer.
    ContentFilter = "content-filter",
    /// The model ran out of its context while answering.
    ContextOverflow = "context-overflow",
    /// A stop reason that is not accepted, or none.
    UnknownStop = "unknown-stop",
    /// Calls under a stop for length: an argument may be cut.
    LengthWithCalls = "length-with-calls",
    /// Calls under a stop that takes text alone.
    StopWithCalls = "stop-with-calls",
    /// A stop for calls, and no call.
    CallsMissing = "calls-missing",
    /// No text and no call.
    EmptyAnswer = "empty-answer",
    /// A part or call of a kind that is not known.
    UnknownPart = "unknown-part",
    /// More than one non-empty text part beside calls.
    TwoTextParts = "two-text-parts",
    /// Not the API's JSON.
    MalformedBody = "malformed-body",
    /// A key that stands twice in one object.
    DuplicateKey = "duplicate-key",
    /// More than one choice.
    SecondChoice = "second-choice",
    /// The retired `function_call` member.
    FunctionCall = "function-call",
    /// Another role than assistant.
    UnknownRole = "unknown-role",
    /// A call of a tool that was not on offer.
    UnknownTool = "unknown-tool",
    /// Two calls with one id.
    DuplicateCallId = "duplicate-call-id",
    /// A call without an id, or with one out of bounds.
    EmptyCallId = "empty-call-id",
    /// More than three calls.
    TooManyCalls = "too-many-calls",
    /// Two calls of one kind.
    DuplicateKind = "duplicate-kind",
    /// Arguments that are not one strict JSON object.
    ArgumentsMalformed = "arguments-malformed",
    /// Arguments that break a bound or the shape.
    ArgumentsInvalid = "arguments-invalid",
    /// Evidence that the snapshot did not admit.
    EvidenceNotAdmitted = "evidence-not-admitted",
    /// A target that the snapshot did not admit.
    TargetNotAdmitted = "target-not-admitted",
    /// Visible text over its bound.
    TextTooLong = "text-too-long",
    /// U+0000 in the visible text.
    TextInvalid = "text-invalid",
    /// Strict-JSON mode, and the text is not one JSON value.
    NotJson = "not-json",
    /// Strict-JSON mode, and there is a call.
    CallsInStrictJson = "calls-in-strict-json",
    /// The worker's result is not what the parent reads in the same bytes.
    WorkerMismatch = "worker-mismatch",
    /// The worker's request is not what the packet demands.
    RequestMismatch = "request-mismatch",
    /// The worker broke the frame protocol or died.
    WorkerProtocol = "worker-protocol",
    /// A packet or result of another version.
    ProtocolVersion = "protocol-version",
    /// A packet that is not one.
    PacketMalformed = "packet-malformed",
    /// A packet from which no request can be rendered.
    PacketUnrenderable = "packet-unrenderable",
    /// The request is larger than the model takes, or than the frame.
    ContextTooLarge = "context-too-large",
    /// An answer larger than its bound.
    AnswerTooLarge = "answer-too-large",
    /// The provider refused the key or its rights.
    ProviderUnauthorized = "provider-unauthorized",
    /// Quota, credit or spend limit: waiting does not help.
    ProviderQuota = "provider-quota",
    /// The model or the address is not there.
    ProviderNotFound = "provider-not-found",
    /// The provider refused the request.
    ProviderRefused = "provider-refused",
    /// The provider answered with a redirect; it is never followed.
    ProviderRedirected = "provider-redirected",
    /// A status that the API does not document.
    ProviderStatus = "provider-status",
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for FailReason {}

impl Serialize for FailReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
