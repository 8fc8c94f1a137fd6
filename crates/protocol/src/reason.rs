//! Reason codes: why an attempt gave no valid answer.
//!
//! Each is a stable word that may stand in events, logs and output. None ever carries content.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
