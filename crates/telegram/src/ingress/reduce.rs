//! What of an update is stored: what admission and the spool read, and nothing else. Pure.
//!
//! An update of somebody who is heard still carries the words and names of people who are not: the message it replies to,
//! a quotation, where it was forwarded from, whom it names, what was pinned. So no update is stored as it came. It is
//! written anew from a list of members; what is not on that list is never on the disk, where even deleted rows leave
//! traces. Of an update that cannot be read nothing is kept but its numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{ChatId, MessageId, ThreadId, UpdateId, UserId};
use crate::limits::OPAQUE_ID_BYTES_MAX;
use crate::wire::{Chat, Message, PhotoSize, Update};

#[derive(Serialize)]
struct StoredUpdate<'a> {
    update_id: UpdateId,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<StoredMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_message: Option<StoredMessage<'a>>,
}

/// The members of a message that are stored. One more here is one more that may hold what a stranger said.
#[derive(Serialize)]
struct StoredMessage<'a> {
    message_id: MessageId,
    chat: StoredChat,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<StoredUser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_chat: Option<StoredId<ChatId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    via_bot: Option<Present>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caption: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    photo: Vec<StoredPhoto<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_group_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<ThreadId>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_topic_message: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to_message: Option<StoredReply>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migrate_to_chat_id: Option<ChatId>,
    /// Content that is not read: its name and that it is there.
    #[serde(flatten)]
    other: BTreeMap<String, Present>,
}

#[derive(Serialize)]
struct StoredChat {
    id: ChatId,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct StoredUser {
    id: UserId,
    is_bot: bool,
}

#[derive(Serialize)]
struct StoredId<T> {
    id: T,
}

#[derive(Serialize)]
struct StoredReply {
    message_id: MessageId,
}

#[derive(Serialize)]
struct StoredPhoto<'a> {
    file_id: &'a str,
    width: u32,
    height: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_size: Option<u64>,
}

/// An empty object: something is there.
#[derive(Serialize)]
struct Present {}

/// An update without all that is not read. Admission decides the same about it under every policy.
///
/// # Errors
/// None that can be had: numbers and texts always have a form in JSON.
pub(super) fn reduced(update: &Update) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&StoredUpdate {
        update_id: update.update_id,
        message: update.message.as_ref().map(|message| stored(message, Words::of(message))),
        // The new message decides alone where both are there, and nothing an edit says is read.
        edited_message: match &update.message {
            Some(_) => None,
            None => update.edited_message.as_ref().map(|message| stored(message, Words::Unread)),
        },
    })
}

/// Which words of a message are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Read,
    /// Its caption alone: it is about an album, of which other parts may be read.
    Caption,
    Unread,
}

impl Words {
    /// A group that moved and a kind that is not read are told of without a word of theirs.
    fn of(message: &Message) -> Self {
        match (message.migrate_to_chat_id, message.other.kind()) {
            (None, None) => Self::Read,
            (None, Some(_)) if album(message).is_some() => Self::Caption,
            _ => Self::Unread,
        }
    }
}

fn stored(message: &Message, words: Words) -> StoredMessage<'_> {
    let is_read = words == Words::Read;
    let text = message.text.as_deref().filter(|_| is_read);
    let caption = message.caption.as_deref().filter(|_| words != Words::Unread && text.is_none());
    let photo = if is_read { message.photo.iter().map(photo).collect() } else { Vec::new() };
    let other = message.other.kind().map(|kind| (kind.replace('-', "_"), Present {}));
    StoredMessage {
        message_id: message.message_id,
        chat: chat(message.chat),
        from: message.from.map(|from| StoredUser { id: from.id, is_bot: from.is_bot }),
        sender_chat: message.sender_chat.map(|chat| StoredId { id: chat.id }),
        via_bot: message.via_bot.map(|_| Present {}),
        date: message.date,
        text,
        caption,
        photo,
        media_group_id: album(message),
        message_thread_id: message.message_thread_id.filter(|_| message.is_topic_message),
        is_topic_message: message.is_topic_message,
        reply_to_message: message.reply_to_message.map(|reply| StoredReply { message_id: reply.message_id }),
        migrate_to_chat_id: message.migrate_to_chat_id,
        other: other.into_iter().collect(),
    }
}

fn album(message: &Message) -> Option<&str> {
    message.media_group_id.as_deref().filter(|id| id.len() <= OPAQUE_ID_BYTES_MAX)
}

const fn chat(chat: Chat) -> StoredChat {
    StoredChat { id: chat.id, kind: chat.kind.as_str() }
}

/// A size whose id is beyond its bound is never taken: that it was there is enough.
fn photo(size: &PhotoSize) -> StoredPhoto<'_> {
    let file_id = if size.file_id.len() <= OPAQUE_ID_BYTES_MAX { size.file_id.as_str() } else { "" };
    StoredPhoto { file_id, width: size.width, height: size.height, file_size: size.file_size }
}

#[derive(Serialize)]
struct UnreadableUpdate {
    update_id: UpdateId,
    message: UnreadableMessage,
}

/// A message without the number that every message has: it cannot be read, as the one that it stands for.
#[derive(Serialize)]
struct UnreadableMessage {
    chat: StoredChat,
    unreadable: UnreadableMark,
}

#[derive(Serialize)]
struct UnreadableMark {
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<MessageId>,
}

#[derive(Deserialize)]
struct NumberedUpdate {
    message: Numbered,
}

#[derive(Deserialize)]
struct Numbered {
    message_id: MessageId,
}

/// What stands for an update that cannot be read: its number, its chat, the number of its message where that much can be
/// seen, and a mark. It is as unreadable as the update was, so that it is tried, set aside and told of.
///
/// # Errors
/// As [`reduced`].
pub(super) fn stand_in(
    update_id: UpdateId,
    in_chat: Chat,
    bytes: &[u8],
) -> Result<Vec<u8>, serde_json::Error> {
    let message_id = match serde_json::from_slice::<NumberedUpdate>(bytes) {
        Ok(update) => Some(update.message.message_id),
        Err(_not_even_that) => None,
    };
    let message = UnreadableMessage { chat: chat(in_chat), unreadable: UnreadableMark { message_id } };
    serde_json::to_vec(&UnreadableUpdate { update_id, message })
}

#[cfg(test)]
mod tests;
