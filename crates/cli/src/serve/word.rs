//! What a person's word sets in motion, as roles: decisions and corrections are projected as they come, corrections before
//! a message of their conversation is answered, and a chat hears once a day how many suggestions wait.
//!
//! It holds no rule: what follows from what stands in the authority's room, what a chat hears in Telegram's.

use std::sync::Arc;

use thought_authority::correct::{self, Corrections};
use thought_authority::follow::follow;
use thought_authority::judge::JudgeError;
use thought_contract::event::{EventType, StoredEvent};
use thought_runtime::port::{self, CorrectionsError};
use thought_store::handle::Reader;
use thought_store::{BoxFuture, Store, StoreError};
use thought_telegram::dispatcher::{Reminder, ReminderPorts};
use thought_telegram::ids::ChatId;
use thought_telegram::stop::Stop;
use tokio::task::JoinSet;

use super::Ready;
use crate::command::status::channel_source;
use crate::compose::SystemClock;
use crate::exit::Failure;

/// Projects until told to stop: at once what an earlier process left, then each decision and command as it comes.
pub(super) fn start(ready: &Ready, tasks: &mut JoinSet<Result<(), Failure>>, stop: Stop) {
    let word = ready.word();
    let reader = ready.store.reader();
    tasks.spawn(async move {
        follow(&reader, &word.projector, &word.corrections, stop.said()).await;
        Ok(())
    });
}

/// Counts what waits, for the chats that it came from. Only whoever sends what a chat hears does this.
pub(super) fn remind(ready: &Ready, tasks: &mut JoinSet<Result<(), Failure>>, stop: Stop) {
    let Some(telegram) = ready.home.config.telegram.as_ref().filter(|telegram| telegram.notices) else {
        return;
    };
    let ports = ReminderPorts {
        reader: ready.store.reader(),
        notices: ready.store.notices("telegram"),
        clock: Arc::new(SystemClock),
    };
    let chats = telegram.allowed_chats.iter().copied().map(ChatId).collect();
    let reminder = Reminder::new(ports, channel_source(&ready.home), chats);
    tasks.spawn(async move {
        reminder.run(stop).await;
        Ok(())
    });
}

/// Settles the corrections that a message has to wait for, by itself: a correction is projected under a condition, so it
/// does not matter who does it, and a consumer that works alone waits for no other process.
pub(super) struct Settler {
    reader: Reader,
    corrections: Corrections,
}

impl Settler {
    pub(super) fn new(store: &Store) -> Self {
        let corrections = Corrections::new((store.reader(), store.judgments()), Arc::new(SystemClock));
        Self { reader: store.reader(), corrections }
    }
}

impl port::Corrections for Settler {
    fn settle_before<'a>(&'a self, message: &'a StoredEvent) -> BoxFuture<'a, Result<(), CorrectionsError>> {
        Box::pin(async move {
            if message.envelope.event_type != EventType::TelegramMessage {
                return Ok(());
            }
            let is_settled = async || correct::is_settled_before(&self.reader, message).await;
            if is_settled().await.map_err(|error| unreachable_store(&error))? {
                return Ok(());
            }
            self.corrections.catch_up().await.map_err(|error| unsettled(&error))?;
            if is_settled().await.map_err(|error| unreachable_store(&error))? {
                return Ok(());
            }
            Err(CorrectionsError { code: "unsettled" })
        })
    }
}

fn unreachable_store(error: &StoreError) -> CorrectionsError {
    tracing::warn!(target: "thought::serve", %error, "corrections not looked at");
    CorrectionsError { code: "store" }
}

fn unsettled(error: &JudgeError) -> CorrectionsError {
    tracing::warn!(target: "thought::serve", %error, "corrections not settled");
    let code = match error {
        JudgeError::Store(_) => "store",
        JudgeError::Draft(_) => "draft",
        JudgeError::Payload(_) => "payload",
    };
    CorrectionsError { code }
}
