//! What an HTTP status means for an attempt: an answer to read, a fault that may pass, or one that will not.
//!
//! The body of an error is looked at for its codes alone and is never kept: it may quote the request.

use serde_json::Value;

use crate::limits::RETRY_AFTER_SECONDS_MAX;
use crate::packet::Api;
use crate::reason::FailReason;

/// What a status and its body mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// A body of the API's shape to be read with [`super::read_answer`].
    Answer,
    /// It may pass: another attempt is allowed.
    Transient {
        /// What the provider asked to wait, at most [`RETRY_AFTER_SECONDS_MAX`].
        retry_after_seconds: Option<u64>,
    },
    /// It will not pass.
    Permanent {
        /// Why.
        reason: FailReason,
    },
}

/// Codes of either vendor that mean quota, credit or spend: waiting does not help.
const QUOTA_CODES: [&str; 10] = [
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "enforced_spend_limit_reached",
    "access_terminated",
];

/// Codes that mean that the context is larger than the model takes.
const CONTEXT_CODES: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];

/// Phrases of error messages that mean the same, for errors that have no code of their own.
const CONTEXT_PHRASES: [&str; 5] = [
    "prompt is too long",
    "exceed context limit",
    "maximum context length",
    "exceeds the available context size",
    "context window",
];

/// Classifies a complete response.
///
/// `retry_after_seconds` is the header where it holds whole seconds; anything else is none.
pub fn classify_status(api: Api, status: u16, retry_after_seconds: Option<u64>, body: &[u8]) -> StatusClass {
    let permanent = |reason| StatusClass::Permanent { reason };
    let transient = StatusClass::Transient {
        retry_after_seconds: retry_after_seconds.map(|seconds| seconds.min(RETRY_AFTER_SECONDS_MAX)),
    };
    match status {
        200 if has_answer_shape(api, body) => StatusClass::Answer,
        200 => permanent(FailReason::MalformedBody),
        300..=399 => permanent(FailReason::ProviderRedirected),
        429 if Codes::of(body).has(&QUOTA_CODES) => permanent(FailReason::ProviderQuota),
        408 | 409 | 425 | 429 | 500..=599 => transient,
        401 | 403 => permanent(FailReason::ProviderUnauthorized),
        402 => permanent(FailReason::ProviderQuota),
        413 => permanent(FailReason::ContextTooLarge),
        400..=499 => {
            let codes = Codes::of(body);
            if codes.has(&CONTEXT_CODES) || codes.says_context() {
                permanent(FailReason::ContextTooLarge)
            } else if codes.has(&QUOTA_CODES) {
                permanent(FailReason::ProviderQuota)
            } else if status == 404 {
                permanent(FailReason::ProviderNotFound)
            } else {
                permanent(FailReason::ProviderRefused)
            }
        }
        _ => permanent(FailReason::ProviderStatus),
    }
}

/// Whether a body is the API's JSON at all. A key that stands twice is the reader's to refuse: such a body is an answer
/// that fails, not a fault of the transport.
fn has_answer_shape(api: Api, body: &[u8]) -> bool {
    let member = match api {
        Api::AnthropicMessages => "content",
        Api::OpenaiChat => "choices",
    };
    serde_json::from_slice::<Value>(body).is_ok_and(|value| value.get(member).is_some_and(Value::is_array))
}

/// The codes and the message of an error body, wherever either vendor or a local server puts them.
struct Codes {
    codes: Vec<String>,
    message: String,
}

impl Codes {
    fn of(body: &[u8]) -> Self {
        let error = match serde_json::from_slice::<Value>(body) {
            Ok(mut value) => value.get_mut("error").map_or(Value::Null, Value::take),
            Err(_) => Value::Null,
        };
        let codes = ["/type", "/code", "/error_code", "/details/error_code"];
        let text = |pointer: &str| error.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            codes: codes.into_iter().filter_map(text).collect(),
            message: error
                .as_str()
                .map(str::to_owned)
                .or_else(|| text("/message"))
                .unwrap_or_default()
                .to_ascii_lowercase(),
        }
    }

    fn has(&self, known: &[&str]) -> bool {
        self.codes.iter().any(|code| known.contains(&code.as_str()))
    }

    fn says_context(&self) -> bool {
        CONTEXT_PHRASES.iter().any(|phrase| self.message.contains(phrase))
    }
}
