//! One message to Telegram, until it is known what became of it.
//!
//! It is sent again only if it certainly did not arrive. Records nothing, and so makes no long pause by itself: who records
//! says first that the message was not sent, in case the process does not outlive the pause.

use std::time::Duration;

use tokio::sync::watch;

use crate::client::{BotClient, ClientError, Delivery, SendMessage};
use crate::entities::Formatted;
use crate::ids::{ChatId, MessageId, ThreadId};
use crate::ingress::ChannelState;
use crate::limits::LONG_PAUSE_MS;
use crate::stop::{Backoff, Next, Stop};

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// It arrived under this number.
    As(MessageId),
    /// It may have arrived.
    Uncertain {
        /// Reason code.
        code: &'static str,
    },
    /// It will never arrive.
    Refused {
        /// Reason code.
        code: &'static str,
    },
    /// It was certainly not sent, and the word to stop came before it could be.
    Not,
    /// It was certainly not sent, and may be sent again after so long.
    Later {
        /// How long, at least [`LONG_PAUSE_MS`].
        pause: Duration,
        /// Reason code.
        code: &'static str,
    },
}

/// A message and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) chat: ChatId,
    pub(super) thread: Option<ThreadId>,
    pub(super) text: &'a Formatted,
    pub(super) reply_to: Option<MessageId>,
}

/// Who sends one message, and what is known of it from earlier tries.
#[derive(Debug)]
pub(super) struct Sender<'a> {
    client: &'a BotClient,
    state: &'a watch::Sender<ChannelState>,
    backoff: Backoff,
    /// The text without entities, once they were refused.
    plain: Option<Formatted>,
}

impl<'a> Sender<'a> {
    /// Prepares; nothing is sent.
    pub(super) const fn new(
        client: &'a BotClient,
        state: &'a watch::Sender<ChannelState>,
        (first_ms, longest_ms): (u64, u64),
    ) -> Self {
        Self { client, state, backoff: Backoff::new(first_ms, longest_ms), plain: None }
    }

    /// Sends. A request that was begun is not given up for the word to stop: then it would be uncertain.
    pub(super) async fn send(&mut self, message: Message<'_>, stop: &Stop) -> Sent {
        loop {
            let text = self.plain.as_ref().unwrap_or(message.text);
            let request = SendMessage {
                chat_id: message.chat,
                thread_id: message.thread,
                text,
                reply_to: message.reply_to,
            };
            let error = match self.client.send_message(request).await {
                Ok(sent) => {
                    self.state.send_replace(ChannelState::Ok);
                    return Sent::As(sent.message_id);
                }
                Err(error) => error,
            };
            let code = error.code();
            match error.delivery() {
                Delivery::Uncertain => return Sent::Uncertain { code },
                Delivery::Final => return Sent::Refused { code },
                Delivery::RetryPlain if self.plain.is_some() => return Sent::Refused { code },
                Delivery::RetryPlain => {
                    tracing::info!(chat = message.chat.0, "entities were refused; the text is sent plain");
                    self.plain = Some(message.text.without_entities());
                }
                Delivery::Retry { after_s } => {
                    let asked = Duration::from_secs(after_s);
                    let pause = self.backoff.next_pause().max(asked);
                    self.tell(message.chat, error, pause);
                    if pause >= Duration::from_millis(LONG_PAUSE_MS) {
                        return Sent::Later { pause, code };
                    }
                    if stop.pause(pause).await == Next::Stop {
                        return Sent::Not;
                    }
                }
            }
        }
    }

    fn tell(&self, chat: ChatId, error: ClientError, pause: Duration) {
        let code = error.code();
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(chat = chat.0, code, pause_ms, "a message waits to be sent again");
        // Too many messages to one chat is no trouble of the channel.
        if !matches!(error, ClientError::RetryAfter { .. }) {
            self.state.send_replace(ChannelState::Problem { code });
        }
    }
}
