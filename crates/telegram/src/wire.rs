//! The types of the Bot API that are used, and nothing of the rest.
//!
//! Every type takes what it does not know without complaint: a new field or a new kind of update must never stop the
//! ones behind it. Nothing here has a derived `Debug` where a person's words would show.

use std::fmt;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::ids::{ChatId, MessageId, ThreadId, UpdateId, UserId};

/// An update that cannot be read. What a parser says about it may quote it, so only the place is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read an update: {} at byte {column}", if *is_json { "a field of another type" } else { "not JSON" })]
pub struct UnreadableUpdate {
    /// Whether it is JSON at all.
    pub is_json: bool,
    /// Where reading ended: the column of the one line that an update is.
    pub column: usize,
}

/// Reads an update.
///
/// # Errors
/// If it is not JSON, or if a field that is used has another type.
pub fn parse_update(bytes: &[u8]) -> Result<Update, UnreadableUpdate> {
    match serde_json::from_slice(bytes) {
        Ok(update) => Ok(update),
        Err(error) => Err(UnreadableUpdate { is_json: error.is_data(), column: error.column() }),
    }
}

/// An answer of the Bot API.
#[derive(Deserialize)]
pub struct Response<T> {
    /// Whether it is a result.
    pub ok: bool,
    /// The result.
    #[serde(default = "none")]
    pub result: Option<T>,
    /// The error's code, mostly the HTTP status.
    pub error_code: Option<i64>,
    /// The error in words. It may quote the request: it is looked at and never kept.
    pub description: Option<String>,
    /// What to do about the error.
    pub parameters: Option<ResponseParameters>,
}

const fn none<T>() -> Option<T> {
    None
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct ResponseParameters {
    /// Seconds to wait.
    pub retry_after: Option<u64>,
    /// The supergroup that the group has become.
    pub migrate_to_chat_id: Option<ChatId>,
}

/// Something that happened. Of the kinds not named here only the number is kept.
#[derive(Deserialize)]
pub struct Update {
    /// The number of the update.
    pub update_id: UpdateId,
    /// A new message.
    pub message: Option<Message>,
    /// A message that was changed.
    pub edited_message: Option<Message>,
}

/// A message. What it shows beyond text and photos is known by its presence alone.
#[derive(Deserialize)]
pub struct Message {
    /// Its number in its chat.
    pub message_id: MessageId,
    /// Its chat.
    pub chat: Chat,
    /// Who sent it; absent in channels.
    pub from: Option<User>,
    /// The chat that it was sent in the name of.
    pub sender_chat: Option<ChatRef>,
    /// The bot through which it was sent.
    pub via_bot: Option<Presence>,
    /// When it was sent, seconds since 1970.
    pub date: Option<i64>,
    /// Its text.
    pub text: Option<String>,
    /// The text under its media.
    pub caption: Option<String>,
    /// One photo in several sizes.
    #[serde(default)]
    pub photo: Vec<PhotoSize>,
    /// The album it belongs to.
    pub media_group_id: Option<String>,
    /// A topic, or merely the head of a thread of replies.
    pub message_thread_id: Option<ThreadId>,
    /// Whether that thread is a topic.
    #[serde(default)]
    pub is_topic_message: bool,
    /// The message it replies to.
    pub reply_to_message: Option<MessageRef>,
    /// The supergroup that this group has become.
    pub migrate_to_chat_id: Option<ChatId>,
    /// What else it shows.
    #[serde(flatten)]
    pub other: OtherContent,
}

/// Content that is not read, by presence. Whatever is not listed is a service message, which wants no answer.
#[derive(Default, Deserialize)]
pub struct OtherContent {
    animation: Option<Presence>,
    audio: Option<Presence>,
    checklist: Option<Presence>,
    contact: Option<Presence>,
    dice: Option<Presence>,
    document: Option<Presence>,
    game: Option<Presence>,
    giveaway: Option<Presence>,
    invoice: Option<Presence>,
    location: Option<Presence>,
    paid_media: Option<Presence>,
    poll: Option<Presence>,
    rich_message: Option<Presence>,
    sticker: Option<Presence>,
    story: Option<Presence>,
    venue: Option<Presence>,
    video: Option<Presence>,
    video_note: Option<Presence>,
    voice: Option<Presence>,
}

impl OtherContent {
    /// The kind of content, if there is any that is not read.
    pub fn kind(&self) -> Option<&'static str> {
        let kinds = [
            // An animation carries a document and a venue a location: the more exact name comes first.
            ("animation", &self.animation),
            ("audio", &self.audio),
            ("checklist", &self.checklist),
            ("contact", &self.contact),
            ("dice", &self.dice),
            ("document", &self.document),
            ("game", &self.game),
            ("giveaway", &self.giveaway),
            ("invoice", &self.invoice),
            ("venue", &self.venue),
            ("location", &self.location),
            ("paid-media", &self.paid_media),
            ("poll", &self.poll),
            ("rich-message", &self.rich_message),
            ("sticker", &self.sticker),
            ("story", &self.story),
            ("video", &self.video),
            ("video-note", &self.video_note),
            ("voice", &self.voice),
        ];
        kinds.into_iter().find(|(_, content)| content.is_some()).map(|(kind, _)| kind)
    }
}

/// Something of which only its being there matters.
#[derive(Debug, Clone, Copy)]
pub struct Presence;

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|IgnoredAny| Self)
    }
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").field("update_id", &self.update_id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("message_id", &self.message_id)
            .field("chat", &self.chat)
            .finish_non_exhaustive()
    }
}

/// A chat. Titles and names are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Chat {
    /// Its number.
    pub id: ChatId,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: ChatKind,
}

/// A chat of which only the number is known to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ChatRef {
    /// Its number.
    pub id: ChatId,
}

/// The kind of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatKind {
    /// One person and the bot.
    Private,
    /// A basic group.
    Group,
    /// A large group, possibly with topics.
    Supergroup,
    /// A channel.
    Channel,
    /// A kind that did not exist when this was written.
    #[serde(other)]
    Unknown,
}

impl ChatKind {
    /// Its name in `status`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Group => "group",
            Self::Supergroup => "supergroup",
            Self::Channel => "channel",
            Self::Unknown => "unknown",
        }
    }
}

/// A person or a bot. Names are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct User {
    /// Its number.
    pub id: UserId,
    /// Whether it is a bot.
    #[serde(default)]
    pub is_bot: bool,
}

/// A message of which only the number matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct MessageRef {
    /// Its number.
    pub message_id: MessageId,
}

/// One size of a photo.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct PhotoSize {
    /// What `getFile` takes.
    pub file_id: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Bytes, where Telegram says so.
    pub file_size: Option<u64>,
}

impl fmt::Debug for PhotoSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PhotoSize({}x{})", self.width, self.height)
    }
}

/// The bot itself, as `getMe` tells.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BotIdentity {
    /// Its number.
    pub id: UserId,
    /// Its name without the `@`.
    pub username: String,
}

/// A message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct SentMessage {
    /// Its number in its chat.
    pub message_id: MessageId,
}

/// An entry of the command menu.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BotCommand {
    /// The word without its slash.
    pub command: String,
    /// What it does.
    pub description: String,
}

/// Where updates go. `Debug` tells only whether there is an address: some people put secrets in it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct WebhookInfo {
    /// The address, empty if none is set.
    #[serde(default)]
    pub url: String,
    /// Updates that wait.
    #[serde(default)]
    pub pending_update_count: u64,
    /// When the last delivery failed, seconds since 1970.
    pub last_error_date: Option<i64>,
}

impl WebhookInfo {
    /// Whether one is set.
    pub const fn is_set(&self) -> bool {
        !self.url.is_empty()
    }
}

impl fmt::Debug for WebhookInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookInfo")
            .field("is_set", &self.is_set())
            .field("pending_update_count", &self.pending_update_count)
            .finish_non_exhaustive()
    }
}

/// A file that can be downloaded for about an hour.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct FileInfo {
    /// Bytes, where Telegram says so.
    pub file_size: Option<u64>,
    /// Where it lies on the server.
    pub file_path: Option<String>,
}

impl fmt::Debug for FileInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileInfo").field("file_size", &self.file_size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_no_hindrance() {
        let bytes = br#"{"update_id": 9007199254740991, "new": {"a": [null]}, "message": {"message_id": 4503599627370495,
            "chat": {"id": -1002147483648, "type": "supergroup", "is_forum": true}, "date": 1, "text": "x",
            "entities": [{"type": "new", "offset": 0, "length": 1}], "quote": {"text": "y", "position": 0},
            "reply_to_message": {"message_id": 2, "chat": {"id": 1}, "text": "z"}}}"#;
        let update = parse_update(bytes).unwrap();
        let message = update.message.unwrap();
        assert_eq!(
            (update.update_id.0, message.message_id.0),
            (9_007_199_254_740_991, 4_503_599_627_370_495)
        );
        assert_eq!((message.chat.id.0, message.other.kind()), (-1_002_147_483_648, None));
    }

    #[test]
    fn an_unreadable_update_says_where_and_never_what() {
        let bytes = br#"{"update_id": 1, "message": {"message_id": "canary"}}"#;
        let error = parse_update(bytes).unwrap_err();
        assert!(error.is_json);
        assert!(!format!("{error} {error:?}").contains("canary"));
        let error = parse_update(b"{\"canary").unwrap_err();
        assert_eq!(error.to_string(), "read an update: not JSON at byte 8");
        assert!(parse_update(b"{}").is_err());
        assert!(parse_update(&[b'['; 100_000]).is_err());
    }
}
