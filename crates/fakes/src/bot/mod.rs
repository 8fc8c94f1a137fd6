//! A Telegram Bot API server: people write to it by plain methods of [`BotApi`], the bot talks to it by HTTP.
//!
//! It owns Telegram's side as far as this product meets it: the queue of updates with its offsets, long polling,
//! the webhook, messages, files and menus. It refuses what Telegram refuses, in Telegram's words.

mod failures;
mod menu;
mod methods;
mod params;
mod send;
mod spec;
mod state;
mod webhook;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;

pub use failures::Failure;
pub use spec::{ChatKind, ChatSpec, MessageSpec, PhotoSize, PhotoSpec, Pushed, UserSpec};

use crate::error::Error;
use crate::http::Server;
use crate::record::Watched;
use state::{Filter, State};

/// Who the bot is, and where the counters start.
#[derive(Clone)]
pub struct BotConfig {
    /// The token that every path must carry.
    pub token: String,
    /// The bot's account id.
    pub bot_id: i64,
    /// The bot's name after `@`.
    pub username: String,
    /// The bot's name as shown.
    pub first_name: String,
    /// The id of the first update.
    pub first_update_id: i64,
    /// Unix seconds of the start; every message is a second later than the one before.
    pub date: i64,
    /// How long a webhook may take to answer, in milliseconds.
    pub webhook_timeout_ms: u64,
}

impl BotConfig {
    /// A bot with this token and usual values for the rest.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self {
            token: token.to_owned(),
            bot_id: 123_456,
            username: "thought_stream_bot".to_owned(),
            first_name: "thought stream".to_owned(),
            first_update_id: 700_001,
            date: 1_796_000_000,
            webhook_timeout_ms: 10_000,
        }
    }
}

/// One call of a method, whatever became of it. Files that were fetched stand here as method `file`.
#[derive(Clone)]
pub struct Call {
    /// The method's documented name.
    pub method: String,
    /// What was given, as an object; from a form, every value is text.
    pub params: Value,
}

/// A message that the bot sent and Telegram accepted.
#[derive(Clone)]
pub struct SentMessage {
    /// Where.
    pub chat_id: i64,
    /// Its id in the chat.
    pub message_id: i64,
    /// The text as given.
    pub text: String,
    /// The entities as given.
    pub entities: Vec<Value>,
    /// The topic.
    pub thread: Option<i64>,
    /// The message that it answers.
    pub reply_to: Option<i64>,
    /// As given.
    pub parse_mode: Option<String>,
    /// Everything that was given.
    pub params: Value,
    /// False when the bot never got the answer (an ambiguous send).
    pub was_answered: bool,
}

/// One try to deliver an update to the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookPost {
    /// Which update.
    pub update_id: i64,
    /// What the receiver answered, if it did.
    pub status: Option<u16>,
}

/// A refusal in Telegram's form.
pub(crate) struct Refusal {
    code: u16,
    description: String,
}

impl From<String> for Refusal {
    fn from(description: String) -> Self {
        Self { code: 400, description }
    }
}

fn refuse<T>(description: &str) -> Result<T, Refusal> {
    Err(description.to_owned().into())
}

pub(crate) struct Shared {
    token: String,
    state: Watched<State>,
}

/// A running Bot API server; it ends with this value. All methods may be called from any thread.
pub struct BotApi {
    shared: Arc<Shared>,
    server: Server,
    delivery: JoinHandle<()>,
}

impl BotApi {
    /// Starts on a free loopback port, on the current tokio runtime.
    ///
    /// # Errors
    /// [`Error::Bind`] when no port can be had.
    pub async fn start(config: BotConfig) -> Result<Self, Error> {
        let shared =
            Arc::new(Shared { token: config.token.clone(), state: Watched::new(State::new(&config)) });
        let server = Server::start(Arc::clone(&shared)).await?;
        let timeout = Duration::from_millis(config.webhook_timeout_ms);
        let delivery = tokio::spawn(webhook::deliver(Arc::clone(&shared), timeout));
        Ok(Self { shared, server, delivery })
    }

    /// `http://127.0.0.1:<port>`: methods are at `{base_url}/bot<token>/<method>`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Makes a chat known without a message, as one that wrote to the bot long ago.
    pub fn add_chat(&self, chat: ChatSpec) {
        self.shared.state.change(|state| state.chats.insert(chat.id, chat));
    }

    /// A text message of a person. Returns the update's id.
    pub fn push_message(&self, chat: ChatSpec, from: UserSpec, text: &str) -> i64 {
        self.push(&MessageSpec::text(chat, from, text)).update_id
    }

    /// A message of any kind; in a channel it is a `channel_post`.
    pub fn push(&self, spec: &MessageSpec) -> Pushed {
        let kind = if spec.chat.kind == ChatKind::Channel { "channel_post" } else { "message" };
        self.shared.state.change(|state| {
            let (message_id, message) = state.compose(spec);
            state.push_message(kind, message_id, message)
        })
    }

    /// An album: one update for each photo, with one `media_group_id`.
    pub fn push_album(
        &self,
        chat: &ChatSpec,
        from: &UserSpec,
        media_group_id: &str,
        photos: Vec<(PhotoSpec, Option<&str>)>,
    ) -> Vec<Pushed> {
        let specs = photos.into_iter().map(|(photo, caption)| MessageSpec {
            media_group_id: Some(media_group_id.to_owned()),
            ..MessageSpec::photo(chat.clone(), from.clone(), photo, caption)
        });
        specs.map(|spec| self.push(&spec)).collect()
    }

    /// An `edited_message` update of a message that was pushed before: same message id, new text.
    ///
    /// # Errors
    /// [`Error::Update`] when the chat has no such message.
    pub fn push_edit(&self, chat_id: i64, message_id: i64, text: &str) -> Result<Pushed, Error> {
        self.shared.state.change(|state| {
            let known = state.messages.get(&(chat_id, message_id)).cloned();
            let mut message = known.ok_or(Error::Update("the chat has no such message"))?;
            message["edit_date"] = state.tick().into();
            let name = if message.get("photo").is_some() { "caption" } else { "text" };
            message[name] = text.into();
            Ok(state.push_message("edited_message", message_id, message))
        })
    }

    /// Any update under its own `update_id`, subject to `allowed_updates`. Ids may repeat, leave gaps, go backwards.
    ///
    /// # Errors
    /// [`Error::Update`] when there is no integer `update_id`.
    pub fn push_update(&self, update: Value) -> Result<i64, Error> {
        self.push_raw(update, Filter::AsAllowed)
    }

    /// As [`Self::push_update`], but delivered whatever `allowed_updates` says, as updates are that were queued
    /// before it changed.
    ///
    /// # Errors
    /// [`Error::Update`] when there is no integer `update_id`.
    pub fn push_update_unasked(&self, update: Value) -> Result<i64, Error> {
        self.push_raw(update, Filter::Never)
    }

    fn push_raw(&self, update: Value, filter: Filter) -> Result<i64, Error> {
        let id = update.get("update_id").and_then(Value::as_i64);
        let id = id.ok_or(Error::Update("it has no integer update_id"))?;
        self.shared.state.change(|state| state.push(id, update, filter));
        Ok(id)
    }

    /// Delivers an update that was pushed before once more.
    ///
    /// # Errors
    /// [`Error::Update`] when no such update was pushed.
    pub fn push_again(&self, update_id: i64) -> Result<(), Error> {
        let update = self.update(update_id).ok_or(Error::Update("no such update was pushed"))?;
        self.push_update(update).map(|_| ())
    }

    /// The JSON of an update that was pushed.
    #[must_use]
    pub fn update(&self, update_id: i64) -> Option<Value> {
        self.shared.state.lock().pushed(update_id)
    }

    /// The next update gets this id, as ids restart anywhere after a quiet week. The documentation of the Bot API lets
    /// every integer fit 32 bits with a sign unless it says otherwise, and of an update's id it says only that it is
    /// positive; clients keep it in as little.
    pub fn set_next_update_id(&self, update_id: i32) {
        self.shared.state.change(|state| state.set_next_update_id(update_id.into()));
    }

    /// Scripts what becomes of the next call of a method (`file` for downloads); several calls queue up.
    pub fn fail(&self, method: &str, failure: Failure) {
        self.fail_times(method, 1, failure);
    }

    /// Scripts the next `times` calls of a method alike.
    pub fn fail_times(&self, method: &str, times: usize, failure: Failure) {
        self.shared.state.change(|state| {
            let queue = state.failures.entry(method.to_owned()).or_default();
            queue.extend(std::iter::repeat_n(failure, times));
        });
    }

    /// Forgets all scripted failures.
    pub fn clear_failures(&self) {
        self.shared.state.change(|state| state.failures.clear());
    }

    /// What the bot sent and Telegram accepted, in order.
    #[must_use]
    pub fn sent(&self) -> Vec<SentMessage> {
        self.shared.state.lock().sent.all()
    }

    /// Waits until at least `count` messages were sent, and returns them.
    ///
    /// # Errors
    /// [`Error::WaitRanOut`].
    pub async fn wait_for_sent(&self, count: usize, timeout: Duration) -> Result<Vec<SentMessage>, Error> {
        self.shared.state.wait_for("sent messages", count, timeout, |state| state.sent.total()).await?;
        Ok(self.sent())
    }

    /// Every call, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.shared.state.lock().calls.all()
    }

    /// How often a method was called.
    #[must_use]
    pub fn call_count(&self, method: &str) -> usize {
        count_calls(&self.shared.state.lock(), method)
    }

    /// Waits until a method was called at least `count` times.
    ///
    /// # Errors
    /// [`Error::WaitRanOut`].
    pub async fn wait_for_calls(&self, method: &str, count: usize, timeout: Duration) -> Result<(), Error> {
        self.shared.state.wait_for("calls", count, timeout, |state| count_calls(state, method)).await
    }

    /// Ids of the updates that are not confirmed yet, in the order of delivery.
    #[must_use]
    pub fn pending_updates(&self) -> Vec<i64> {
        self.shared.state.lock().queue.iter().map(|queued| queued.id).collect()
    }

    /// Waits until every update is confirmed.
    ///
    /// # Errors
    /// [`Error::WaitRanOut`].
    pub async fn wait_until_confirmed(&self, timeout: Duration) -> Result<(), Error> {
        let drained = |state: &State| usize::from(state.queue.is_empty());
        self.shared.state.wait_for("confirmed queues", 1, timeout, drained).await
    }

    /// How many pushed updates `allowed_updates` kept out.
    #[must_use]
    pub fn filtered_count(&self) -> usize {
        self.shared.state.lock().filtered
    }

    /// How many requests came with a wrong token.
    #[must_use]
    pub fn unauthorized_count(&self) -> usize {
        self.shared.state.lock().unauthorized
    }

    /// The address of the webhook that is set.
    #[must_use]
    pub fn webhook_url(&self) -> Option<String> {
        self.shared.state.lock().webhook.as_ref().map(|webhook| webhook.url.clone())
    }

    /// Every try to deliver to the webhook, in order.
    #[must_use]
    pub fn webhook_posts(&self) -> Vec<WebhookPost> {
        self.shared.state.lock().webhook_posts.all()
    }

    /// The menu of a scope (`default`, `all_private_chats`, `chat:4242`, …) and language (may be empty).
    #[must_use]
    pub fn menu(&self, scope: &str, language_code: &str) -> Vec<Value> {
        let key = (scope.to_owned(), language_code.to_owned());
        self.shared.state.lock().commands.get(&key).cloned().unwrap_or_default()
    }
}

fn count_calls(state: &State, method: &str) -> usize {
    state.calls.iter().filter(|call| call.method == method).count()
}

impl Drop for BotApi {
    fn drop(&mut self) {
        self.delivery.abort();
    }
}

impl fmt::Debug for BotApi {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BotApi").field("address", &self.server.address).finish_non_exhaustive()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

impl fmt::Debug for SentMessage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SentMessage")
            .field("chat_id", &self.chat_id)
            .field("message_id", &self.message_id)
            .field("text_bytes", &self.text.len())
            .field("was_answered", &self.was_answered)
            .finish_non_exhaustive()
    }
}
