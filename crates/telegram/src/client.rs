//! The calls to the Bot API.
//!
//! Owns the bot token and the one question that decides about a message: may it have arrived? It never follows a
//! redirect, asks the environment for a proxy, sends anything twice, or lets the URL (which holds the token) reach an
//! error. Answers are bounded and every wait has an end.

mod config;
mod error;
mod first;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thought_protocol::Sensitive;

pub use config::{BotToken, ClientConfig, ConfigError, Timeouts, check_api_url, is_public_url};
pub use error::{ClientError, ConnectFailure, Delivery};

use crate::entities::{Entity, Formatted};
use crate::ids::{ChatId, MessageId, ThreadId, UpdateId};
use crate::limits::{
    ANSWER_BYTES_MAX, FILE_BYTES_MAX, FIRST_UPDATE_BYTES, POLL_SECONDS_MAX, UPDATES_BYTES_MAX,
    UPDATES_PER_BATCH_MAX,
};
use crate::wire::{BotCommand, BotIdentity, FileInfo, SentMessage, WebhookInfo};
pub use transport::Carrier;
use transport::{Bound, Transport};

/// The kinds of update that are asked for, every time: left out, the server would keep an older choice.
const ALLOWED_UPDATES: [&str; 2] = ["message", "edited_message"];

/// An update as it came. It is never stored so: it may hold the words of people who are not heard.
#[derive(Clone, PartialEq, Eq)]
pub struct RawUpdate {
    /// Its number.
    pub update_id: UpdateId,
    /// Its JSON.
    pub bytes: Vec<u8>,
}

impl RawUpdate {
    /// An update of which only the number is looked at; `None` if it has none.
    pub(crate) fn of(bytes: Vec<u8>) -> Option<Self> {
        match serde_json::from_slice::<Numbered>(&bytes) {
            Ok(Numbered { update_id }) => Some(Self { update_id, bytes }),
            Err(_no_number) => None,
        }
    }
}

impl std::fmt::Debug for RawUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawUpdate({}, {} bytes)", self.update_id, self.bytes.len())
    }
}

/// A message to send.
#[derive(Debug, Clone, Copy)]
pub struct SendMessage<'a> {
    /// The chat.
    pub chat_id: ChatId,
    /// The topic; none for the General topic.
    pub thread_id: Option<ThreadId>,
    /// Text and entities, within the bounds of one message.
    pub text: &'a Formatted,
    /// The message to reply to; if it is gone, this is sent all the same.
    pub reply_to: Option<MessageId>,
}

/// Where updates shall go.
#[derive(Debug, Clone, Copy)]
pub struct SetWebhook<'a> {
    /// The public address.
    pub url: &'a str,
    /// What every post must carry.
    pub secret: &'a Sensitive<String>,
}

#[derive(Serialize)]
struct SendMessageBody<'a> {
    chat_id: ChatId,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<ThreadId>,
    text: &'a str,
    #[serde(skip_serializing_if = "<[Entity]>::is_empty")]
    entities: &'a [Entity],
    link_preview_options: LinkPreviewOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_parameters: Option<ReplyParameters>,
}

/// A preview would make a server fetch an address that a model wrote, before any person chose to open it.
#[derive(Serialize)]
struct LinkPreviewOptions {
    is_disabled: bool,
}

#[derive(Serialize)]
struct ReplyParameters {
    message_id: MessageId,
    allow_sending_without_reply: bool,
}

#[derive(Serialize)]
struct GetUpdatesBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
    timeout: u32,
    limit: u8,
    allowed_updates: [&'static str; 2],
}

#[derive(Serialize)]
struct ChatActionBody {
    chat_id: ChatId,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<ThreadId>,
    action: &'static str,
}

#[derive(Serialize)]
struct SetWebhookBody<'a> {
    url: &'a str,
    secret_token: &'a str,
    max_connections: u8,
    allowed_updates: [&'static str; 2],
}

#[derive(Serialize)]
struct DeleteWebhookBody {
    drop_pending_updates: bool,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct CommandsBody<'a> {
    commands: &'a [BotCommand],
}

#[derive(Serialize)]
struct FileBody<'a> {
    file_id: &'a str,
}

#[derive(Deserialize)]
struct Numbered {
    update_id: UpdateId,
}

/// A bot's view of the Bot API. `Debug` shows neither the address nor the token.
#[derive(Debug)]
pub struct BotClient {
    transport: Transport,
    timeouts: Timeouts,
}

impl BotClient {
    /// Prepares the client; nothing is sent.
    ///
    /// # Errors
    /// If the address is not one of https, or of http on loopback, or if TLS cannot be set up.
    pub fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        let timeouts = config.timeouts;
        Ok(Self { transport: Transport::new(config)?, timeouts })
    }

    /// A client whose calls somebody carries in the network's stead; no token is needed, and nothing leaves the process.
    pub fn carried(carrier: Arc<dyn Carrier>) -> Self {
        Self { transport: Transport::Carried(carrier), timeouts: Timeouts::default() }
    }

    /// Who the bot is.
    ///
    /// # Errors
    /// As every call: [`ClientError`].
    pub async fn get_me(&self) -> Result<BotIdentity, ClientError> {
        self.call("getMe", &Nothing {}).await
    }

    /// Updates from `offset` on, as they came. Waits up to `timeout_s` (at most [`POLL_SECONDS_MAX`]) for one.
    /// An offset confirms every update before it.
    ///
    /// # Errors
    /// [`ClientError::Conflict`] where a webhook is set or another poll runs; [`ClientError::Malformed`] if an update
    /// has no number, since then it could never be confirmed.
    pub async fn get_updates_raw(
        &self,
        offset: Option<UpdateId>,
        timeout_s: u32,
        limit: u8,
    ) -> Result<Vec<RawUpdate>, ClientError> {
        let timeout_s = timeout_s.min(POLL_SECONDS_MAX);
        let body = GetUpdatesBody {
            offset: offset.map(|id| id.0),
            timeout: timeout_s,
            limit: limit.clamp(1, UPDATES_PER_BATCH_MAX),
            allowed_updates: ALLOWED_UPDATES,
        };
        let bound = Bound {
            bytes_max: UPDATES_BYTES_MAX,
            timeout: Duration::from_secs(u64::from(timeout_s)) + self.timeouts.request(),
        };
        let updates: Vec<Box<RawValue>> = self.transport.poll("getUpdates", &body, bound).await?;
        updates
            .into_iter()
            .map(|raw| {
                let bytes = String::from(Box::<str>::from(raw)).into_bytes();
                RawUpdate::of(bytes).ok_or(ClientError::Malformed)
            })
            .collect()
    }

    /// The number of the update that stands at `offset` and is too large to be read, seen in the beginning of the answer.
    /// `None` if it is not too large (any more), or if its number does not stand before all else.
    ///
    /// # Errors
    /// As every call.
    pub async fn too_large_update(&self, offset: Option<UpdateId>) -> Result<Option<UpdateId>, ClientError> {
        let body = GetUpdatesBody {
            offset: offset.map(|id| id.0),
            timeout: 0,
            limit: 1,
            allowed_updates: ALLOWED_UPDATES,
        };
        let bound = Bound { bytes_max: UPDATES_BYTES_MAX, timeout: self.timeouts.request() };
        let beginning = self.transport.beginning("getUpdates", &body, bound, FIRST_UPDATE_BYTES).await?;
        Ok(beginning.and_then(|beginning| first::update_id(&beginning)))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`ClientError::delivery`] says whether the message may have arrived.
    pub async fn send_message(&self, message: SendMessage<'_>) -> Result<SentMessage, ClientError> {
        let body = SendMessageBody {
            chat_id: message.chat_id,
            message_thread_id: message.thread_id,
            text: message.text.text(),
            entities: message.text.entities(),
            link_preview_options: LinkPreviewOptions { is_disabled: true },
            reply_parameters: message
                .reply_to
                .map(|message_id| ReplyParameters { message_id, allow_sending_without_reply: true }),
        };
        self.call("sendMessage", &body).await
    }

    /// Shows "typing" for about five seconds.
    ///
    /// # Errors
    /// As every call; none is worth more than a log line.
    pub async fn send_typing(&self, chat_id: ChatId, thread_id: Option<ThreadId>) -> Result<(), ClientError> {
        let body = ChatActionBody { chat_id, message_thread_id: thread_id, action: "typing" };
        self.acknowledged("sendChatAction", &body).await
    }

    /// Sets the command menu.
    ///
    /// # Errors
    /// As every call.
    pub async fn set_my_commands(&self, commands: &[BotCommand]) -> Result<(), ClientError> {
        self.acknowledged("setMyCommands", &CommandsBody { commands }).await
    }

    /// The command menu as it is set.
    ///
    /// # Errors
    /// As every call.
    pub async fn get_my_commands(&self) -> Result<Vec<BotCommand>, ClientError> {
        self.call("getMyCommands", &Nothing {}).await
    }

    /// Has updates posted, one at a time, so that a chat keeps its order.
    ///
    /// # Errors
    /// As every call.
    pub async fn set_webhook(&self, webhook: SetWebhook<'_>) -> Result<(), ClientError> {
        let body = SetWebhookBody {
            url: webhook.url,
            secret_token: webhook.secret.expose(),
            max_connections: 1,
            allowed_updates: ALLOWED_UPDATES,
        };
        self.acknowledged("setWebhook", &body).await
    }

    /// Has updates kept for polling; those that wait are kept too.
    ///
    /// # Errors
    /// As every call.
    pub async fn delete_webhook(&self) -> Result<(), ClientError> {
        self.acknowledged("deleteWebhook", &DeleteWebhookBody { drop_pending_updates: false }).await
    }

    /// Where updates go.
    ///
    /// # Errors
    /// As every call.
    pub async fn get_webhook_info(&self) -> Result<WebhookInfo, ClientError> {
        self.call("getWebhookInfo", &Nothing {}).await
    }

    /// Where a file lies.
    ///
    /// # Errors
    /// As every call.
    pub async fn get_file(&self, file_id: &str) -> Result<FileInfo, ClientError> {
        self.call("getFile", &FileBody { file_id }).await
    }

    /// Downloads a file of at most `bytes_max` (and never more than [`FILE_BYTES_MAX`]).
    ///
    /// # Errors
    /// [`ClientError::TooLarge`] before or during the download; [`ClientError::Malformed`] if the path is none.
    pub async fn download(&self, file: &FileInfo, bytes_max: usize) -> Result<Vec<u8>, ClientError> {
        let bytes_max = bytes_max.min(FILE_BYTES_MAX);
        if file.file_size.is_some_and(|size| size > bytes_max as u64) {
            return Err(ClientError::TooLarge { bytes_max });
        }
        let path = file.file_path.as_deref().ok_or(ClientError::Malformed)?;
        self.transport.download(path, Bound { bytes_max, timeout: self.timeouts.download() }).await
    }

    async fn call<T: for<'de> Deserialize<'de>>(
        &self,
        method: &'static str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let bound = Bound { bytes_max: ANSWER_BYTES_MAX, timeout: self.timeouts.request() };
        self.transport.call(method, body, bound).await
    }

    async fn acknowledged(&self, method: &'static str, body: &impl Serialize) -> Result<(), ClientError> {
        self.call::<serde::de::IgnoredAny>(method, body).await.map(|_| ())
    }
}
