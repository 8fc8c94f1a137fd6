//! What can go wrong with a call. No variant can hold a URL, a token or a description: descriptions quote requests.

use thiserror::Error;

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The name has no address.
    Name,
    /// It took too long.
    TimedOut,
    /// The certificate or the TLS of the other side.
    Tls,
    /// Refused, no route, or anything else.
    Other,
}

/// What a failed send means for the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It did not arrive and may be sent again, not before so many seconds (0: after the usual backoff).
    Retry {
        /// Seconds to wait at least.
        after_s: u64,
    },
    /// It did not arrive with these entities and may be sent once without.
    RetryPlain,
    /// It may have arrived: never sent again by itself.
    Uncertain,
    /// It did not arrive and never will.
    Final,
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ClientError {
    /// Too many calls; the wait is the one in the answer's body, bounded.
    #[error("call the bot api: asked to wait {seconds} s")]
    RetryAfter {
        /// Seconds to wait.
        seconds: u64,
    },
    /// A webhook is set, or another poll runs.
    #[error("call the bot api: another receiver of updates is active")]
    Conflict,
    /// The token is not known.
    #[error("call the bot api: the token is not accepted")]
    Unauthorized,
    /// The bot was blocked, removed, or may not speak there.
    #[error("call the bot api: not allowed in that chat")]
    Forbidden,
    /// The group has become a supergroup.
    #[error("call the bot api: the group has become chat {to}")]
    Migrated {
        /// The supergroup.
        to: crate::ids::ChatId,
    },
    /// The entities are not accepted.
    #[error("call the bot api: the entities are not accepted")]
    BadEntities,
    /// Refused for another reason.
    #[error("call the bot api: refused with {code}")]
    BadRequest {
        /// The error's code.
        code: i64,
    },
    /// The server failed.
    #[error("call the bot api: the server failed with {code}")]
    Server {
        /// The error's code, 500 to 599.
        code: i64,
    },
    /// There was no connection: certainly nothing was written.
    #[error("connect to the bot api")]
    Unreachable {
        /// Why.
        cause: ConnectFailure,
    },
    /// The request may have been written, and there is no complete answer.
    #[error("read the bot api's answer")]
    Uncertain,
    /// A complete answer that is not one of the Bot API.
    #[error("understand the bot api's answer")]
    Malformed,
    /// An answer or a file beyond its bound.
    #[error("read the bot api's answer: more than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: usize,
    },
}

impl ClientError {
    /// What it means for a message that was being sent.
    pub const fn delivery(self) -> Delivery {
        match self {
            Self::RetryAfter { seconds } => Delivery::Retry { after_s: seconds },
            // A server that fails says so before it has sent anything; a token or a receiver is mended by a person.
            Self::Server { .. } | Self::Unreachable { .. } | Self::Conflict | Self::Unauthorized => {
                Delivery::Retry { after_s: 0 }
            }
            Self::BadEntities => Delivery::RetryPlain,
            Self::Uncertain | Self::Malformed | Self::TooLarge { .. } => Delivery::Uncertain,
            Self::Forbidden | Self::Migrated { .. } | Self::BadRequest { .. } => Delivery::Final,
        }
    }

    /// Its name in events, rows and logs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::RetryAfter { .. } => "retry-after",
            Self::Conflict => "conflict",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Migrated { .. } => "migrated",
            Self::BadEntities => "bad-entities",
            Self::BadRequest { .. } => "bad-request",
            Self::Server { .. } => "server",
            Self::Unreachable { .. } => "unreachable",
            Self::Uncertain => "uncertain",
            Self::Malformed => "malformed",
            Self::TooLarge { .. } => "too-large",
        }
    }
}
