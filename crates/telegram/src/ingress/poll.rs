//! Long polling.
//!
//! The next offset is the number just received plus one, in the order of arrival: numbers restart anywhere after a quiet
//! week, so they are never compared and never stored. A batch is confirmed by the next call, which is made only once the
//! batch is durable. A batch beyond the bound of an answer is asked for in halves; one update that is beyond it alone is
//! passed over, where its number can be told, for else it would stop all behind it.

use std::collections::VecDeque;
use std::sync::Arc;

use thought_store::StoreError;
use thought_store::handle::{RefusedChat, TelegramIngress};
use tokio::sync::watch;

use super::identity::{Allowed, identify, pause_after};
use super::{ChannelState, sift};
use crate::admit::{Policy, line_to_allow};
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

/// Where polling stands.
struct Course {
    /// What the next poll confirms.
    offset: Option<UpdateId>,
    /// Updates that the next poll asks for.
    limit: u8,
    told: VecDeque<i64>,
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
        let mut course = Course { offset: None, limit: self.options.batch_max, told: VecDeque::new() };
        while !stop.is_said() {
            let Some(tried) = stop.unless(self.fetch(&mut course)).await else { return };
            let kept = match tried {
                Ok(updates) => self.keep(updates, &policy, &mut course).await.map_err(Problem::Store),
                Err(error) => Err(Problem::Client(error)),
            };
            match kept {
                Ok(()) => {
                    backoff.reset();
                    self.tell(ChannelState::Ok);
                }
                Err(problem) => {
                    if self.pause(problem, &mut backoff, &stop).await == Next::Stop {
                        return;
                    }
                }
            }
        }
    }

    /// The next batch: as many updates of it as an answer holds.
    async fn fetch(&self, course: &mut Course) -> Result<Vec<RawUpdate>, ClientError> {
        loop {
            let fetched = self.client.get_updates_raw(course.offset, self.wait_s(), course.limit).await;
            match fetched {
                Err(ClientError::TooLarge { .. }) if course.limit > 1 => {
                    course.limit /= 2;
                    tracing::warn!(limit = course.limit, "a batch of updates is too large and is halved");
                }
                Err(ClientError::TooLarge { bytes_max }) => {
                    match self.client.too_large_update(course.offset).await? {
                        Some(update) => {
                            tracing::warn!(
                                update = update.0,
                                bytes_max,
                                "an update is too large and is passed over"
                            );
                            course.offset = Some(behind(update));
                            course.limit = self.options.batch_max;
                        }
                        // Then its state says so, and it is tried again.
                        None => return Err(ClientError::TooLarge { bytes_max }),
                    }
                }
                fetched => return fetched,
            }
        }
    }

    /// How long the next poll waits: not at all as long as it is not known to work, so that it is known at once.
    fn wait_s(&self) -> u32 {
        if *self.state.borrow() == ChannelState::Ok { self.options.wait_s } else { 0 }
    }

    /// Makes a batch durable; the next poll confirms it.
    async fn keep(
        &self,
        updates: Vec<RawUpdate>,
        policy: &Policy,
        course: &mut Course,
    ) -> Result<(), StoreError> {
        course.limit = self.options.batch_max;
        let Some(last) = updates.last().map(|raw| raw.update_id) else { return Ok(()) };
        let received = updates.len();
        let sifted = sift(updates, policy);
        let (kept, refused) = (sifted.kept.len(), sifted.refused.len());
        sifted.refused.iter().for_each(|chat| name_refused(chat, policy, &mut course.told));
        self.ingress.spool(sifted.kept, sifted.refused).await?;
        tracing::debug!(received, kept, refused, "a batch of updates is spooled");
        course.offset = Some(behind(last));
        Ok(())
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

/// The offset that confirms an update.
const fn behind(update: UpdateId) -> UpdateId {
    UpdateId(update.0.wrapping_add(1))
}

/// Names a refused chat, unless it is among the last that were named: a stranger who writes on fills no log.
pub(super) fn name_refused(refused: &RefusedChat, policy: &Policy, told: &mut VecDeque<i64>) {
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
        let allowed: Vec<ChatId> = policy.allowed_chats.iter().copied().collect();
        let line = line_to_allow(&allowed, ChatId(*chat));
        tracing::info!(chat, kind, "a chat that is not admitted wrote; to admit it: {line}");
    }
}
