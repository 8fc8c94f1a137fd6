//! What became of the one request, as a value.
//!
//! Owns the line between "the provider cannot have seen it" and "nobody can tell", on which every decision about a
//! second attempt rests. It must never decide that itself, and never read a body.

use std::time::Duration;

use thought_protocol::Sensitive;

/// How long the parts of one request took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From the call to status and headers: name, connection, handshake, request and the provider's work.
    pub first_byte: Duration,
    /// From the call to the last byte that was read.
    pub total: Duration,
}

/// Why the request was never written: the provider cannot have seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BeforeReason {
    /// The connection was refused, reset or had no route.
    Connect,
    /// The host's name was not resolved.
    Dns,
    /// The TLS handshake failed: certificate, protocol, or not a TLS server.
    Tls,
    /// Name, connection and handshake did not end in time.
    ConnectTimeout,
    /// The client refused to build the request. A defect, as endpoint and key were checked before.
    NotBuilt,
}

impl BeforeReason {
    /// The stable code of this reason in events, logs and incidents.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::ConnectTimeout => "connect-timeout",
            Self::NotBuilt => "not-built",
        }
    }
}

/// Why nobody can tell whether the provider did the work (and bills it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnknownReason {
    /// No complete answer within the total time-out.
    Timeout,
    /// The connection broke before status and headers were complete, or what came was not HTTP/1.1.
    BrokenConnection,
    /// A 200 whose body ended before its announced end, or whose framing is broken.
    TruncatedBody,
    /// A 200 whose body is longer than [`thought_protocol::limits::ANSWER_BYTES_MAX`]; the rest was not read.
    BodyTooLarge,
}

impl UnknownReason {
    /// The stable code of this reason in events, logs and incidents.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::BrokenConnection => "broken-connection",
            Self::TruncatedBody => "truncated-body",
            Self::BodyTooLarge => "body-too-large",
        }
    }
}

/// What became of the one request. Bodies are raw: nothing was decoded, repaired or judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Status 200 with its whole body, at most [`thought_protocol::limits::ANSWER_BYTES_MAX`] bytes. A body without
    /// an announced length ends where the connection does; whether it is whole is for its reader to find out.
    Answered {
        /// The raw body.
        body: Sensitive<Vec<u8>>,
        /// How long it took.
        timings: Timings,
    },
    /// Any other final status, redirects among them: a definite answer, even if its body broke off.
    Status {
        /// The HTTP status, never 200.
        status: u16,
        /// `Retry-After` in its form of whole seconds, uncapped; a date, nonsense or two different values are none.
        retry_after_seconds: Option<u64>,
        /// The first [`crate::limits::STATUS_BODY_BYTES_MAX`] bytes of the body, or what came of it.
        body: Sensitive<Vec<u8>>,
        /// How long it took.
        timings: Timings,
    },
    /// The request was never written.
    RefusedBeforeRequest {
        /// Why.
        reason: BeforeReason,
    },
    /// The request may have been written, and there is no complete answer.
    Unknown {
        /// Why.
        reason: UnknownReason,
    },
}
