//! "Typing…" in a chat, as long as an answer is being made there.
//!
//! A kindness and nothing more: a failure is of no consequence, and nothing ever waits for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::BotClient;
use crate::ids::{ChatId, ThreadId};
use crate::limits::{TYPING_AT_ONCE_MAX, TYPING_INTERVAL_MS};
use crate::stop::Stop;

/// A conversation as Telegram names it.
pub type Place = (ChatId, Option<ThreadId>);

/// Shows that an answer is being made.
#[derive(Debug)]
pub struct Typing {
    client: Arc<BotClient>,
    running: watch::Receiver<BTreeSet<Place>>,
    interval: Duration,
}

impl Typing {
    /// `running` are the conversations in which a run is on.
    pub fn new(client: Arc<BotClient>, running: watch::Receiver<BTreeSet<Place>>) -> Self {
        Self { client, running, interval: Duration::from_millis(TYPING_INTERVAL_MS) }
    }

    /// Another interval than the usual.
    #[must_use]
    pub fn every_ms(self, interval_ms: u64) -> Self {
        Self { interval: Duration::from_millis(interval_ms), ..self }
    }

    /// Works until told to stop, or until nobody can say any more what runs.
    pub async fn run(mut self, stop: Stop) {
        let mut calls = JoinSet::new();
        let mut shown = BTreeSet::new();
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.said() => break,
                _ = ticks.tick() => shown.clear(),
                changed = self.running.changed() => if changed.is_err() { break },
            }
            let running = self.running.borrow_and_update().clone();
            shown.retain(|place| running.contains(place));
            while calls.try_join_next().is_some() {}
            for place in running {
                if calls.len() < TYPING_AT_ONCE_MAX && shown.insert(place) {
                    calls.spawn(show(Arc::clone(&self.client), place, self.interval));
                }
            }
        }
        calls.shutdown().await;
    }
}

/// One call, given up before the next one is due.
async fn show(client: Arc<BotClient>, (chat, thread): Place, patience: Duration) {
    match tokio::time::timeout(patience, client.send_typing(chat, thread)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(chat = chat.0, code = error.code(), "typing could not be shown"),
        Err(_) => tracing::debug!(chat = chat.0, "typing could not be shown in time"),
    }
}
