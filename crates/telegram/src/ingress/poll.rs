//! Long polling.
//!
//! The next offset is the number just received plus one, in the order of arrival: numbers restart anywhere after a quiet
//! week, so they are never compared and never stored. A batch is confirmed by the next call, which is made only once the
//! batch is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use thought_store::StoreError;
use thought_store::handle::{RefusedChat, TelegramIngress};
use tokio::sync::watch;

use super::identity::{Allowed, identify, pause_after};
use super::{ChannelState, sift};
use crate::admit::Policy;
use crate::client::{BotClient, ClientError, RawUpdate};
use crate::ids::{ChatId, UpdateId};
use crate::limits::{
    BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS, POLL_SECONDS, REFUSED_CHATS_TOLD_MAX, UPDATES_PER_BATCH_MAX,
};
use crate::stop::{Backoff, Next, Stop};

/// How is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollOptions {
    /// How long one poll waits for an update, seconds.
    pub wait_s: u32,
    /// Updates of one batch.
    pub batch_max: u8,
    /// First and longest pause after a failure, milliseconds.
    pub backoff_ms: (u64, u64),
}

impl Default for PollOptions {
    fn default() -> Self {
        Self {
            wait_s: POLL_SECONDS,
            batch_max: UPDATES_PER_BATCH_MAX,
            backoff_ms: (BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS),
        }
    }
}

/// Fetches updates and spools them.
#[derive(Debug)]
pub struct Poller {
    client: Arc<BotClient>,
    ingress: TelegramIngress,
    allowed: Allowed,
    options: PollOptions,
    state: watch::Sender<ChannelState>,
    policy: watch::Sender<Option<Arc<Policy>>>,
}

enum Problem {
    Client(ClientError),
    Store(StoreError),
}

impl Poller {
    /// Prepares; nothing is called.
    pub fn new(
        client: Arc<BotClient>,
        ingress: TelegramIngress,
        allowed: Allowed,
        options: PollOptions,
    ) -> Self {
        let state = watch::Sender::new(ChannelState::Starting);
        let policy = watch::Sender::new(None);
        Self { client, ingress, allowed, options, state, policy }
    }

    /// How the channel stands.
    pub fn state(&self) -> watch::Receiver<ChannelState> {
        self.state.subscribe()
    }

    /// The policy, once it is known who the bot is: what the spooler waits for.
    pub fn policy(&self) -> watch::Receiver<Option<Arc<Policy>>> {
        self.policy.subscribe()
    }

    /// Polls until told to stop; a poll that waits is given up at once, since nothing of it was confirmed.
    pub async fn run(self, stop: Stop) {
        let Some(policy) = identify(&self.client, self.allowed.clone(), &self.state, &stop).await else {
            return;
        };
        self.policy.send_replace(Some(Arc::clone(&policy)));
        let mut backoff = Backoff::new(self.options.backoff_ms.0, self.options.backoff_ms.1);
        let mut offset = None;
        let mut told = VecDeque::new();
        while !stop.is_said() {
            let fetched = self.client.get_updates_raw(offset, self.wait_s(), self.options.batch_max);
            let Some(fetched) = stop.unless(fetched).await else { return };
            let problem = match fetched {
                Ok(updates) => match self.keep(updates, &policy, &mut told).await {
                    Ok(next) => {
                        offset = next.or(offset);
                        backoff.reset();
                        self.tell(ChannelState::Ok);
                        continue;
                    }
                    Err(error) => Problem::Store(error),
                },
                Err(error) => Problem::Client(error),
            };
            if self.pause(problem, &mut backoff, &stop).await == Next::Stop {
                return;
            }
        }
    }

    /// How long the next poll waits: not at all as long as it is not known to work, so that it is known at once.
    fn wait_s(&self) -> u32 {
        if *self.state.borrow() == ChannelState::Ok { self.options.wait_s } else { 0 }
    }

    /// Makes a batch durable. The offset that confirms it, if it holds anything.
    async fn keep(
        &self,
        updates: Vec<RawUpdate>,
        policy: &Policy,
        told: &mut VecDeque<i64>,
    ) -> Result<Option<UpdateId>, StoreError> {
        let Some(last) = updates.last().map(|raw| raw.update_id) else { return Ok(None) };
        let received = updates.len();
        let sifted = sift(updates, policy);
        let (kept, refused) = (sifted.kept.len(), sifted.refused.len());
        sifted.refused.iter().for_each(|chat| name_refused(chat, policy, told));
        self.ingress.spool(sifted.kept, sifted.refused).await?;
        tracing::debug!(received, kept, refused, "a batch of updates is spooled");
        Ok(Some(UpdateId(last.0.wrapping_add(1))))
    }

    async fn pause(&self, problem: Problem, backoff: &mut Backoff, stop: &Stop) -> Next {
        let (code, pause) = match problem {
            Problem::Client(error) => (self.code(error, stop).await, pause_after(error, backoff)),
            Problem::Store(error) => {
                tracing::error!(error = %error, "a batch of updates cannot be kept and stays with Telegram");
                ("store", backoff.next_pause())
            }
        };
        self.tell(ChannelState::Problem { code });
        stop.pause(pause).await
    }

    /// The code of a failed poll. Of a conflict, whether a webhook stands behind it, since a person mends that.
    async fn code(&self, error: ClientError, stop: &Stop) -> &'static str {
        if error != ClientError::Conflict {
            return error.code();
        }
        match stop.unless(self.client.get_webhook_info()).await {
            Some(Ok(webhook)) if webhook.is_set() => "webhook-set",
            _ => "other-poller",
        }
    }

    /// Tells of a change, once.
    fn tell(&self, state: ChannelState) {
        let changed = self.state.send_if_modified(|known| std::mem::replace(known, state) != state);
        match (changed, state) {
            (true, ChannelState::Problem { code }) => {
                tracing::warn!(code, "polling does not work at present")
            }
            (true, _) => tracing::info!("polling works"),
            (false, _) => {}
        }
    }
}

/// Names a refused chat, unless it is among the last that were named: a stranger who writes on fills no log.
fn name_refused(refused: &RefusedChat, policy: &Policy, told: &mut VecDeque<i64>) {
    let RefusedChat { chat, kind } = refused;
    if told.contains(chat) {
        return;
    }
    if told.len() == REFUSED_CHATS_TOLD_MAX {
        told.pop_front();
    }
    told.push_back(*chat);
    if policy.allowed_chats.contains(&ChatId(*chat)) {
        tracing::info!(chat, kind, "somebody who is not admitted wrote there");
    } else {
        tracing::info!(
            chat,
            kind,
            "a chat that is not admitted wrote; to admit it: allowed_chats = [{chat}]"
        );
    }
}
