//! Who the bot is: asked before anything is decided, because a group's commands name it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use super::ChannelState;
use crate::admit::Policy;
use crate::client::{BotClient, ClientError};
use crate::ids::{ChatId, UserId};
use crate::limits::{BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS};
use crate::stop::{Backoff, Next, Stop};

/// Who may speak, as the configuration says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed {
    /// `telegram.allowed_chats`.
    pub chats: BTreeSet<ChatId>,
    /// `telegram.allowed_users`.
    pub users: BTreeSet<UserId>,
}

/// The policy once Telegram has told who the bot is; asks until it does. `None` when told to stop before.
pub async fn identify(
    client: &BotClient,
    allowed: Allowed,
    state: &watch::Sender<ChannelState>,
    stop: &Stop,
) -> Option<Arc<Policy>> {
    let mut backoff = Backoff::new(BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS);
    loop {
        match stop.unless(client.get_me()).await? {
            Ok(bot) => {
                tracing::info!(bot = bot.id.0, "the bot is known");
                let Allowed { chats, users } = allowed;
                return Some(Arc::new(Policy { allowed_chats: chats, allowed_users: users, bot }));
            }
            Err(error) => {
                state.send_replace(ChannelState::Problem { code: error.code() });
                let pause = pause_after(error, &mut backoff);
                tracing::warn!(code = error.code(), "who the bot is cannot be asked; tried again");
                if stop.pause(pause).await == Next::Stop {
                    return None;
                }
            }
        }
    }
}

/// How long is paused after a failed call: what Telegram asks for, or the backoff.
pub(super) fn pause_after(error: ClientError, backoff: &mut Backoff) -> std::time::Duration {
    let pause = backoff.next_pause();
    match error {
        ClientError::RetryAfter { seconds } => std::time::Duration::from_secs(seconds),
        _ => pause,
    }
}
