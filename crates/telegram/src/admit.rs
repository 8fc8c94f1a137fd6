//! What an update means, decided before anything of it is kept.
//!
//! Owns the one rule who may speak and what becomes a turn. Pure: from an update and the policy to an admission. It
//! never lets the words of a stranger through, and an edited message never starts a turn.

use std::collections::BTreeSet;

use thought_protocol::Sensitive;
use thought_protocol::limits::TELEGRAM_TEXT_CHARACTERS_MAX;

use crate::commands::{self, CommandName};
use crate::ids::{ChatId, MessageId, ThreadId, UserId};
use crate::limits::{OPAQUE_ID_BYTES_MAX, PHOTO_BYTES_MAX};
use crate::wire::{BotIdentity, Chat, ChatKind, Message, PhotoSize, Update};

/// The account through which anonymous administrators of a group speak.
const GROUP_ANONYMOUS_BOT: UserId = UserId(1_087_968_824);

/// Who may speak, and who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The chats that are heard.
    pub allowed_chats: BTreeSet<ChatId>,
    /// The people who are heard in groups.
    pub allowed_users: BTreeSet<UserId>,
    /// The bot, as `getMe` tells.
    pub bot: BotIdentity,
}

/// Where and by whom something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The chat.
    pub chat_id: ChatId,
    /// The topic, where the message belongs to one.
    pub thread_id: Option<ThreadId>,
    /// The message, unique in its chat.
    pub message_id: MessageId,
    /// The person.
    pub user_id: UserId,
    /// The bot that heard it.
    pub bot_id: UserId,
    /// When Telegram says it was sent, seconds since 1970; `None` where it does not say.
    pub sent_at_s: Option<i64>,
    /// The message it replies to.
    pub reply_to_message_id: Option<MessageId>,
}

/// A photo to download, in the size chosen.
#[derive(Clone, PartialEq, Eq)]
pub struct PhotoRef {
    /// What `getFile` takes.
    pub file_id: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
}

impl std::fmt::Debug for PhotoRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PhotoRef({}x{})", self.width, self.height)
    }
}

/// A message that becomes a turn. It has a text, a photo or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Where and by whom.
    pub origin: Origin,
    /// The text or the caption, as it was written, not blank.
    pub text: Option<Sensitive<String>>,
    /// The photos to take: of one message at most one.
    pub photos: Vec<PhotoRef>,
    /// The album this is a part of.
    pub media_group_id: Option<String>,
}

/// A command, which is never a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommand {
    /// Where and by whom.
    pub origin: Origin,
    /// Which.
    pub command: CommandName,
    /// What stands behind it, trimmed.
    pub argument: Option<Sensitive<String>>,
}

/// Why a message is not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The chat is not in `allowed_chats`; the one case in which a line of configuration helps.
    ChatNotAllowed,
    /// In a group, the person is not in `allowed_users`; in a private chat, the sender is not its person.
    UserNotAllowed,
    /// It was sent in the name of a chat: an anonymous administrator or a channel.
    SentAsChat,
    /// It was sent by a bot, or through one.
    Bot,
    /// Channels are not heard, whatever is allowed.
    Channel,
    /// It has no sender.
    NoSender,
}

impl Refusal {
    /// Its name in logs and incidents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChatNotAllowed => "chat-not-allowed",
            Self::UserNotAllowed => "user-not-allowed",
            Self::SentAsChat => "sent-as-chat",
            Self::Bot => "bot",
            Self::Channel => "channel",
            Self::NoSender => "no-sender",
        }
    }
}

/// Chats that a line of configuration is written out with; beside more, it would be no line to read.
const CHATS_WRITTEN_OUT_MAX: usize = 8;

/// What to write into the configuration, so that one more chat is heard and none is forgotten.
pub fn line_to_allow(allowed: &[ChatId], chat: ChatId) -> String {
    if allowed.len() > CHATS_WRITTEN_OUT_MAX {
        return format!("add {chat} to allowed_chats");
    }
    let all: Vec<String> = allowed.iter().chain([&chat]).map(ToString::to_string).collect();
    format!("allowed_chats = [{}]", all.join(", "))
}

/// What an update means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// A turn of a conversation.
    Message(NewMessage),
    /// A command.
    Command(NewCommand),
    /// Something from a person who is heard, of a kind that is not read: one fixed notice (one per album).
    Unsupported {
        /// Where and by whom.
        origin: Origin,
        /// The kind, as a name.
        kind: &'static str,
        /// The caption of a part of an album, which is read where other parts are.
        caption: Option<Sensitive<String>>,
        /// The album this is a part of.
        media_group_id: Option<String>,
    },
    /// A message that was changed: nothing follows.
    Edited,
    /// Not heard: dropped and counted, nothing of it is kept but this.
    Refused {
        /// The chat.
        chat_id: ChatId,
        /// Its kind.
        chat_kind: ChatKind,
        /// Why.
        reason: Refusal,
    },
    /// A chat that is heard has become another, which is not heard until the operator says so.
    Migrated {
        /// The group.
        chat_id: ChatId,
        /// The supergroup.
        to: ChatId,
    },
    /// A service message, an empty one, or another kind of update: nothing follows.
    Ignored,
}

/// Decides what an update means.
pub fn admit(update: &Update, policy: &Policy) -> Admission {
    if let Some(message) = update.message.as_ref() {
        return match sender(message, policy) {
            Ok(user_id) => content(message, user_id, policy),
            Err(reason) => refused(message.chat, reason),
        };
    }
    match &update.edited_message {
        Some(message) => match sender(message, policy) {
            Ok(_) => Admission::Edited,
            Err(reason) => refused(message.chat, reason),
        },
        None => Admission::Ignored,
    }
}

const fn refused(chat: Chat, reason: Refusal) -> Admission {
    Admission::Refused { chat_id: chat.id, chat_kind: chat.kind, reason }
}

/// The person behind a message, if that person is heard.
fn sender(message: &Message, policy: &Policy) -> Result<UserId, Refusal> {
    let chat = message.chat;
    if matches!(chat.kind, ChatKind::Channel | ChatKind::Unknown) {
        return Err(Refusal::Channel);
    }
    if !policy.allowed_chats.contains(&chat.id) {
        return Err(Refusal::ChatNotAllowed);
    }
    if message.sender_chat.is_some() {
        return Err(Refusal::SentAsChat);
    }
    let from = message.from.ok_or(Refusal::NoSender)?;
    if from.id == GROUP_ANONYMOUS_BOT {
        return Err(Refusal::SentAsChat);
    }
    if from.is_bot || from.id == policy.bot.id || message.via_bot.is_some() {
        return Err(Refusal::Bot);
    }
    let is_heard = match chat.kind {
        ChatKind::Private => from.id.0 == chat.id.0,
        _ => policy.allowed_users.contains(&from.id),
    };
    if is_heard { Ok(from.id) } else { Err(Refusal::UserNotAllowed) }
}

/// What a message of somebody who is heard means.
fn content(message: &Message, user_id: UserId, policy: &Policy) -> Admission {
    if let Some(to) = message.migrate_to_chat_id {
        return Admission::Migrated { chat_id: message.chat.id, to };
    }
    let origin = origin(message, user_id, policy);
    let media_group_id = message.media_group_id.clone().filter(|id| id.len() <= OPAQUE_ID_BYTES_MAX);
    let caption = message.caption.as_deref().filter(|text| !text.trim().is_empty() && is_readable(text));
    let caption = caption.filter(|_| media_group_id.is_some());
    let unsupported = |kind| Admission::Unsupported {
        origin,
        kind,
        caption: caption.map(|text| Sensitive::new(text.to_owned())),
        media_group_id: media_group_id.clone(),
    };
    // Alone, a caption under something that is not read would be answered without knowing what it is about.
    if let Some(kind) = message.other.kind() {
        return unsupported(kind);
    }
    if let Some(text) = message.text.as_deref()
        && is_readable(text)
        && let Some(parsed) = commands::parse(text, &policy.bot.username)
    {
        let argument = parsed.argument.map(|argument| Sensitive::new(argument.to_owned()));
        return Admission::Command(NewCommand { origin, command: parsed.name, argument });
    }
    let text = message.text.as_deref().or(message.caption.as_deref()).filter(|text| !text.trim().is_empty());
    if text.is_some_and(|text| !is_readable(text)) {
        return unsupported("text");
    }
    let photo = largest(&message.photo);
    if photo.is_none() && !message.photo.is_empty() {
        return unsupported("photo");
    }
    if text.is_none() && photo.is_none() {
        return Admission::Ignored;
    }
    Admission::Message(NewMessage {
        origin,
        text: text.map(|text| Sensitive::new(text.to_owned())),
        photos: photo.into_iter().collect(),
        media_group_id,
    })
}

fn origin(message: &Message, user_id: UserId, policy: &Policy) -> Origin {
    let thread_id = message.message_thread_id.filter(|_| message.is_topic_message);
    // In a topic, a message that replies to nothing names the message that opened the topic.
    let reply = message.reply_to_message.map(|reply| reply.message_id);
    let reply_to_message_id = reply.filter(|reply| thread_id.is_none_or(|thread| thread.0 != reply.0));
    Origin {
        chat_id: message.chat.id,
        thread_id,
        message_id: message.message_id,
        user_id,
        bot_id: policy.bot.id,
        sent_at_s: message.date,
        reply_to_message_id,
    }
}

/// Bounded text, as every event demands it.
fn is_readable(text: &str) -> bool {
    !text.contains('\0') && text.chars().count() <= TELEGRAM_TEXT_CHARACTERS_MAX
}

/// The largest size that may be taken. Where Telegram gives no number of bytes, the download has the bound.
fn largest(sizes: &[PhotoSize]) -> Option<PhotoRef> {
    sizes
        .iter()
        .filter(|size| size.file_size.is_none_or(|bytes| bytes <= PHOTO_BYTES_MAX))
        .filter(|size| (1..=OPAQUE_ID_BYTES_MAX).contains(&size.file_id.len()))
        .max_by_key(|size| u64::from(size.width) * u64::from(size.height))
        .map(|size| PhotoRef { file_id: size.file_id.clone(), width: size.width, height: size.height })
}

#[cfg(test)]
mod tests;
