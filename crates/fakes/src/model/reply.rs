//! What the model server can be told to answer.

use std::time::Duration;

use serde_json::Value;

/// One answer, in words that fit both APIs; each is rendered in the API that the request came by.
#[derive(Clone)]
pub enum Reply {
    /// A text and nothing more.
    Text(String),
    /// Tool calls, with a text before them or without. Each call is a tool's name and its arguments.
    Calls {
        /// The text before the calls.
        text: Option<String>,
        /// Name and arguments of each call.
        calls: Vec<(String, Value)>,
    },
    /// Tool calls whose arguments are these very characters, well formed or not. In Anthropic's form arguments
    /// are part of the body's JSON, so broken ones break the whole body.
    RawCalls {
        /// The text before the calls.
        text: Option<String>,
        /// Name and argument characters of each call.
        calls: Vec<(String, String)>,
    },
    /// Thinking first, then the text.
    Thinking {
        /// What it thinks.
        thinking: String,
        /// What it says.
        text: String,
    },
    /// The model declines.
    Refusal {
        /// The words of it.
        text: String,
    },
    /// The vendor's filter cut the answer (`content_filter`; in Anthropic's form a refusal).
    ContentFilter,
    /// The output limit was reached.
    LengthStop {
        /// What was said until then.
        text: String,
    },
    /// An answer in all its parts, for what the others do not say.
    Answer(Answer),
    /// Any bytes as the body. `transfer-encoding: chunked` among the headers sends it in chunks.
    RawBody {
        /// The status.
        status: u16,
        /// All headers but the length.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// An error in the vendor's form.
    Status {
        /// The status.
        status: u16,
        /// The vendor's error type; `None`: the one that usually goes with the status.
        vendor_error_type: Option<String>,
        /// The vendor's code (`insufficient_quota`, `enforced_spend_limit_reached`, …).
        code: Option<String>,
        /// The message.
        message: String,
        /// The value of a `retry-after` header.
        retry_after: Option<String>,
    },
    /// The connection ends when the first byte of a request has arrived, before any is read.
    DropBeforeRead,
    /// The connection ends after the request was read and recorded.
    DropAfterRead,
    /// An answer that breaks off in the middle of its body.
    Truncated,
    /// The head and half of the body, then nothing until the client goes.
    Stalled,
    /// Nothing until the client goes.
    Hang,
    /// A text after this time.
    SlowText(Duration, String),
    /// 307 to this address.
    Redirect307(String),
    /// A valid answer with a text of this many bytes.
    Huge(usize),
}

impl Reply {
    /// One call without text.
    #[must_use]
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::Calls { text: None, calls: vec![(name.to_owned(), arguments)] }
    }

    /// An error with the type that usually goes with its status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            vendor_error_type: None,
            code: None,
            message: format!("scripted status {status}"),
            retry_after: None,
        }
    }

    /// 429 with a `retry-after` header.
    #[must_use]
    pub fn rate_limited(retry_after: &str) -> Self {
        Self::Status {
            status: 429,
            vendor_error_type: None,
            code: None,
            message: "scripted rate limit".to_owned(),
            retry_after: Some(retry_after.to_owned()),
        }
    }

    /// 429 that no waiting heals: the vendor's type and code of an exhausted quota.
    #[must_use]
    pub fn out_of_quota(vendor_error_type: &str, code: &str) -> Self {
        Self::Status {
            status: 429,
            vendor_error_type: Some(vendor_error_type.to_owned()),
            code: Some(code.to_owned()),
            message: "scripted exhausted quota".to_owned(),
            retry_after: None,
        }
    }

    /// 200 with this JSON as the body.
    #[must_use]
    pub fn json(body: &Value) -> Self {
        Self::RawBody {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        }
    }
}

/// An answer in all its parts.
#[derive(Clone, Default)]
pub struct Answer {
    /// Thinking or reasoning before the rest.
    pub thinking: Option<String>,
    /// Text parts; OpenAI's form joins them.
    pub texts: Vec<String>,
    /// Tool calls.
    pub calls: Vec<AnsweredCall>,
    /// The words of a refusal.
    pub refusal: Option<String>,
    /// The stop or finish reason as written; `None`: the one that fits.
    pub stop: Option<String>,
}

/// One tool call of an [`Answer`].
#[derive(Clone)]
pub struct AnsweredCall {
    /// Its id; `None`: a fresh one in the vendor's form.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// The arguments of a call.
#[derive(Clone)]
pub enum Arguments {
    /// As JSON.
    Json(Value),
    /// As these characters, well formed or not.
    Raw(String),
}

impl Answer {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], ..Self::default() }
    }

    pub(super) fn calls(text: Option<String>, calls: impl Iterator<Item = (String, Arguments)>) -> Self {
        let calls = calls.map(|(name, arguments)| AnsweredCall { id: None, name, arguments }).collect();
        Self { texts: text.into_iter().collect(), calls, ..Self::default() }
    }
}
