//! One turn as the store tells it: waited for, read back, held together, and told.

use std::time::Duration;

use serde_json::json;
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::{DeliveryTelegram, RunCompleted, TelegramMessage};
use thought_contract::run::RunState;
use thought_protocol::EventId;
use thought_store::handle::Reader;
use thought_store::row::{EventFilter, RunFilter, RunRow};

use super::TURN_WAIT;
use super::show::{Show, not_there};
use crate::command::resolve::short;
use crate::exit::Failure;

/// Messages that are looked through, more than the demonstration has.
const MESSAGES_MAX: u32 = 16;
/// Children of an event that are looked through.
const CHILDREN_MAX: u32 = 16;
/// Between two looks where the store says nothing of news.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Looks at the store until there is something, at most [`TURN_WAIT`].
///
/// # Errors
/// [`Failure`] of a look, or when it does not come.
pub(super) async fn until<T>(
    reader: &Reader,
    what: &str,
    look: impl AsyncFn() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let mut news = reader.news();
    let waited = tokio::time::timeout(TURN_WAIT, async {
        loop {
            news.mark_unchanged();
            if let Some(found) = look().await? {
                return Ok::<T, Failure>(found);
            }
            // A store whose news ended still answers; look again after a while.
            let _news = tokio::time::timeout(LOOK_AGAIN, news.changed()).await;
        }
    });
    waited.await.map_err(|_late| not_there(&format!("{what} within {} s", TURN_WAIT.as_secs())))?
}

/// The receipt of what was delivered for an event, once there is one.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub(super) async fn delivered(reader: &Reader, of: &EventId) -> Result<Option<StoredEvent>, Failure> {
    let children = reader.children(of.clone(), CHILDREN_MAX).await?;
    Ok(children.into_iter().find(|event| event.envelope.event_type == EventType::DeliveryTelegram))
}

/// A message, its run, and the receipt of its answer.
pub(super) struct Turn {
    /// The message.
    pub(super) message: StoredEvent,
    /// The run.
    pub(super) run: RunRow,
    /// The receipt.
    pub(super) receipt: StoredEvent,
}

impl Turn {
    /// Waits until a message, by its id in the chat, has a delivered answer.
    ///
    /// # Errors
    /// [`Failure`] when it does not come, or its run ends otherwise.
    pub(super) async fn wait(reader: &Reader, message_id: i64) -> Result<Self, Failure> {
        until(reader, "an answer", async || Self::find(reader, message_id).await).await
    }

    async fn find(reader: &Reader, message_id: i64) -> Result<Option<Self>, Failure> {
        let filter = EventFilter {
            types: vec![EventType::TelegramMessage],
            limit: MESSAGES_MAX,
            ..EventFilter::default()
        };
        let mut message = None;
        for event in reader.events(filter).await? {
            let told: TelegramMessage = event.payload().map_err(|error| Failure::internal(&error))?;
            if told.message_id == message_id {
                message = Some(event);
            }
        }
        let Some(message) = message else { return Ok(None) };
        let on_it =
            RunFilter { trigger: Some(message.envelope.id.clone()), limit: 1, ..RunFilter::default() };
        let Some(run) = reader.runs(on_it).await?.into_iter().next() else { return Ok(None) };
        if !run.state.is_open() && run.state != RunState::Completed {
            let reason = run.reason.clone().unwrap_or_default();
            return Err(not_there(&format!("an answer: run {} ended {} ({reason})", run.id, run.state)));
        }
        let Some(output) = run.output.clone() else { return Ok(None) };
        Ok(delivered(reader, &output).await?.map(|receipt| Self { message, run, receipt }))
    }

    /// Tells it, each id read back.
    ///
    /// # Errors
    /// [`Failure`] when something of it is not there.
    pub(super) async fn tell(&self, show: &Show, reader: &Reader) -> Result<(), Failure> {
        let message = &self.message.envelope;
        show.event("event", &self.message, format!("{}  root", message.event_type))?;
        let run = &self.run;
        let snapshot =
            reader.snapshot(run.id.clone()).await?.ok_or_else(|| not_there("the snapshot of the run"))?;
        let bytes = snapshot.bytes.expose().len();
        let value = json!({"run": run.id, "snapshot": snapshot.id, "storedBytes": bytes});
        show.step("run", &value, || {
            let agent = format!("{} v{}", run.declaration, run.version);
            format!(
                "{}  {agent}  snapshot {} ({bytes} bytes)",
                short(run.id.as_str()),
                short(snapshot.id.as_str())
            )
        })?;
        let attempts = reader.attempts(run.id.clone()).await?;
        let [attempt] = attempts.as_slice() else { return Err(not_there("exactly one attempt")) };
        let value = json!({"attempt": attempt.id, "outcome": attempt.state, "sandbox": attempt.sandbox});
        show.step("model", &value, || {
            let attempt_id = short(attempt.id.as_str());
            format!("{attempt_id}  one attempt in the jail ({}): {}", attempt.sandbox, attempt.state)
        })?;
        let (output, completed) = self.settled(reader).await?;
        let value = json!({"output": output.envelope.id, "completed": completed.envelope.id});
        show.step("settled", &value, || {
            let (output, completed) = (&output.envelope.id, &completed.envelope.id);
            format!(
                "output {}  completed {}  one transaction",
                short(output.as_str()),
                short(completed.as_str())
            )
        })?;
        let delivery: DeliveryTelegram = self.receipt.payload().map_err(|error| Failure::internal(&error))?;
        let ids: Vec<i64> = delivery.chunks.iter().filter_map(|chunk| chunk.message_id).collect();
        show.event("receipt", &self.receipt, format!("delivered; Telegram calls it {ids:?}"))
    }

    /// The output and the completed event, read back and held against each other.
    async fn settled(&self, reader: &Reader) -> Result<(StoredEvent, StoredEvent), Failure> {
        let read = async |id: Option<EventId>, what: &str| {
            let id = id.ok_or_else(|| not_there(what))?;
            reader.event(id).await?.ok_or_else(|| not_there(what))
        };
        let output = read(self.run.output.clone(), "the output event").await?;
        let completed = read(self.run.terminal.clone(), "the completed event").await?;
        let receipt: RunCompleted = completed.payload().map_err(|error| Failure::internal(&error))?;
        if receipt.output != output.envelope.id || receipt.run != self.run.id {
            return Err(not_there("a completed event that names this run and its output"));
        }
        if self.receipt.envelope.root_id != self.message.envelope.id {
            return Err(not_there("a receipt under the message's root"));
        }
        Ok((output, completed))
    }
}
