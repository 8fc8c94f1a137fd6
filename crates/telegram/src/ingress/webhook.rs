//! The webhook: updates that Telegram posts.
//!
//! The secret is compared, in constant time, before anything of a post is read; then the post is bounded in size and
//! time, sifted, made durable, and only then acknowledged. What means nothing here is acknowledged too, for else it would
//! stop all behind it. Whoever does not know the secret learns nothing and leaves nothing.

mod server;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use subtle::ConstantTimeEq;
use thought_protocol::Sensitive;
use thought_store::handle::TelegramIngress;
use tokio::sync::watch;

use super::identity::{Allowed, identify};
use super::poll::name_refused;
use super::{ChannelState, sift};
use crate::admit::Policy;
use crate::client::{BotClient, RawUpdate};
use crate::limits::{WEBHOOK_LOOK_MS, WEBHOOK_SECRET_BYTES_MAX};
use crate::stop::{Next, Stop};

/// What every post must carry, once.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

/// The secret of the webhook. `Debug` shows its length alone.
#[derive(Debug, Clone)]
pub struct WebhookSecret(Sensitive<String>);

/// A secret that Telegram would not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "read the webhook's secret: expected 1 to {WEBHOOK_SECRET_BYTES_MAX} letters, digits, dashes and underscores"
)]
pub struct SecretError;

impl WebhookSecret {
    /// Takes a secret.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn new(secret: Sensitive<String>) -> Result<Self, SecretError> {
        let text = secret.expose();
        let is_one = (1..=WEBHOOK_SECRET_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if is_one { Ok(Self(secret)) } else { Err(SecretError) }
    }

    /// What Telegram is told.
    pub const fn as_sensitive(&self) -> &Sensitive<String> {
        &self.0
    }

    /// Whether this is it. Takes as long for one byte that is wrong as for all.
    fn is(&self, presented: &[u8]) -> bool {
        self.0.expose().as_bytes().ct_eq(presented).into()
    }
}

/// Why nothing is listened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// There is no secret, and without one anybody could post.
    NoSecret,
    /// The configuration says nothing of a webhook.
    NotConfigured,
}

impl Off {
    /// Stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoSecret => "webhook-secret-missing",
            Self::NotConfigured => "webhook-not-configured",
        }
    }
}

/// How posts are received.
#[derive(Debug)]
pub enum Reception {
    /// Here.
    On {
        /// Bound already; it must be in non-blocking mode.
        listener: std::net::TcpListener,
        /// The path that is posted to.
        path: String,
        /// What every post must carry.
        secret: WebhookSecret,
        /// Where Telegram is told to post.
        public_url: String,
    },
    /// Not at all; what was spooled before is worked off all the same.
    Off(Off),
}

/// What the webhook works with.
#[derive(Debug)]
pub struct WebhookPorts {
    /// Asks who the bot is, and where Telegram posts to.
    pub client: Arc<BotClient>,
    /// Keeps what is posted.
    pub ingress: TelegramIngress,
    /// Who may speak.
    pub allowed: Allowed,
}

/// Receives updates and spools them.
#[derive(Debug)]
pub struct Webhook {
    ports: WebhookPorts,
    reception: Reception,
    state: watch::Sender<ChannelState>,
    policy: watch::Sender<Option<Arc<Policy>>>,
}

/// What a post is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Durable, or nothing to keep.
    Taken,
    /// No update.
    Malformed,
    /// It cannot be kept at present; Telegram posts it again.
    NotNow,
}

/// What posts are judged and kept by.
#[derive(Debug)]
struct Desk {
    path: String,
    secret: WebhookSecret,
    ingress: TelegramIngress,
    state: watch::Sender<ChannelState>,
    policy: watch::Receiver<Option<Arc<Policy>>>,
    told: Mutex<VecDeque<i64>>,
}

impl Webhook {
    /// Prepares; nothing is called and no connection taken.
    pub fn new(ports: WebhookPorts, reception: Reception) -> Self {
        let state = watch::Sender::new(ChannelState::Starting);
        Self { ports, reception, state, policy: watch::Sender::new(None) }
    }

    /// How the channel stands.
    pub fn state(&self) -> watch::Receiver<ChannelState> {
        self.state.subscribe()
    }

    /// The policy, once it is known who the bot is: what the spooler waits for.
    pub fn policy(&self) -> watch::Receiver<Option<Arc<Policy>>> {
        self.policy.subscribe()
    }

    /// Receives until told to stop; posts on their way are finished.
    pub async fn run(self, stop: Stop) {
        let Self { ports, reception, state, policy } = self;
        let WebhookPorts { client, ingress, allowed } = ports;
        let (listener, path, secret, public_url) = match reception {
            Reception::On { listener, path, secret, public_url } => (listener, path, secret, public_url),
            Reception::Off(off) => {
                // Before and behind the question who the bot is: that one is answered, and this stays.
                state.send_replace(ChannelState::Problem { code: off.code() });
                if let Some(known) = identify(&client, allowed, &state, &stop).await {
                    policy.send_replace(Some(known));
                }
                state.send_replace(ChannelState::Problem { code: off.code() });
                return stop.said().await;
            }
        };
        let desk = Desk {
            path,
            secret,
            ingress,
            state: state.clone(),
            policy: policy.subscribe(),
            told: Mutex::default(),
        };
        let setting = async {
            if let Some(known) = identify(&client, allowed, &state, &stop).await {
                policy.send_replace(Some(known));
                follow_setting(&client, &public_url, &state, &stop).await;
            }
        };
        tokio::join!(server::serve(listener, Arc::new(desk), &stop), setting);
    }
}

/// Looks where Telegram posts to, since it is set by a command and may be set elsewhere.
async fn follow_setting(
    client: &BotClient,
    public_url: &str,
    state: &watch::Sender<ChannelState>,
    stop: &Stop,
) {
    loop {
        let Some(asked) = stop.unless(client.get_webhook_info()).await else { return };
        let seen = match asked {
            Ok(info) if info.url == public_url => ChannelState::Ok,
            Ok(info) if info.is_set() => ChannelState::Problem { code: "webhook-elsewhere" },
            Ok(_) => ChannelState::Problem { code: "webhook-not-set" },
            Err(error) => ChannelState::Problem { code: error.code() },
        };
        let is_new = state.send_if_modified(|known| std::mem::replace(known, seen) != seen);
        match seen {
            ChannelState::Problem { code } if is_new => {
                tracing::warn!(
                    code,
                    "nothing may be posted here: thought telegram-webhook-set tells Telegram where"
                );
            }
            _ if is_new => tracing::info!("telegram posts here"),
            _ => {}
        }
        let (while_not_ms, once_ms) = WEBHOOK_LOOK_MS;
        let pause_ms = if seen == ChannelState::Ok { once_ms } else { while_not_ms };
        if stop.pause(Duration::from_millis(pause_ms)).await == Next::Stop {
            return;
        }
    }
}

impl Desk {
    /// Whether exactly one secret is presented, and is the right one.
    fn admits<'a>(&self, mut presented: impl Iterator<Item = &'a [u8]>) -> bool {
        match (presented.next(), presented.next()) {
            (Some(only), None) => self.secret.is(only),
            _ => false,
        }
    }

    /// Keeps a post of Telegram's, durably.
    async fn keep(&self, body: Vec<u8>) -> Answer {
        let policy = self.policy.borrow().clone();
        let Some(policy) = policy else { return Answer::NotNow };
        let Some(update) = RawUpdate::of(body) else { return Answer::Malformed };
        let number = update.update_id.0;
        let sifted = sift(vec![update], &policy);
        let (kept, refused) = (sifted.kept.len(), sifted.refused.len());
        if !sifted.refused.is_empty() {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            sifted.refused.iter().for_each(|chat| name_refused(chat, &policy, &mut told));
        }
        match self.ingress.spool(sifted.kept, sifted.refused).await {
            Ok(()) => {
                tracing::debug!(update = number, kept, refused, "a posted update is taken");
                self.state
                    .send_if_modified(|known| std::mem::replace(known, ChannelState::Ok) != ChannelState::Ok);
                Answer::Taken
            }
            Err(error) => {
                tracing::error!(error = %error, "a posted update cannot be kept and stays with Telegram");
                self.state.send_replace(ChannelState::Problem { code: "store" });
                Answer::NotNow
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_what_telegram_takes() {
        let new = |text: &str| WebhookSecret::new(Sensitive::new(text.to_owned()));
        assert!(new("aZ9_-").is_ok() && new(&"x".repeat(256)).is_ok());
        for text in ["", "with space", "ümlaut", "a\n", &"x".repeat(257)] {
            assert_eq!(new(text).unwrap_err(), SecretError);
        }
        let secret = new("the-secret").unwrap();
        assert!(secret.is(b"the-secret"));
        for wrong in [&b""[..], b"the-secre", b"the-secret ", b"The-secret", b"the-secret-"] {
            assert!(!secret.is(wrong));
        }
        assert!(!format!("{secret:?}").contains("the-secret"));
    }
}
