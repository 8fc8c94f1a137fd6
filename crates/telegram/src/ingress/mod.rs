//! What comes in: how updates are fetched, and which of them are kept at all.
//!
//! Owns the way of an update to the spool. It never keeps anything of a person who is not heard, not
//! even what a message of somebody who is heard quotes of them, never acknowledges an
//! update to Telegram before it is durable, and never compares two update numbers.

mod gate;
mod identity;
mod poll;
mod reduce;
mod webhook;

pub(crate) use gate::glimpsed_chat;
pub use gate::{Sifted, sift};
pub use identity::{Allowed, identify};
pub use poll::{PollOptions, Poller};
pub use webhook::{Off, Reception, SecretError, Webhook, WebhookPorts, WebhookSecret};

/// How a side of the channel stands: for `status`, and for a person who wonders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelState {
    /// Nothing is known yet.
    Starting,
    /// The last call went well.
    Ok,
    /// It does not work at present, and is tried again.
    Problem {
        /// Stable code: `webhook-set`, `other-poller`, `webhook-not-set`, `webhook-elsewhere`, `webhook-not-heard`, those
        /// of [`Off`], `store`, or one of [`crate::client::ClientError::code`].
        code: &'static str,
    },
}

impl ChannelState {
    /// The code of a problem, if there is one.
    pub const fn problem(self) -> Option<&'static str> {
        match self {
            Self::Problem { code } => Some(code),
            Self::Starting | Self::Ok => None,
        }
    }
}
