//! What a test or the demonstration says about people, chats and messages, and its form in Telegram's JSON.

use serde_json::{Map, Value, json};

/// What kind of chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatKind {
    /// One person and the bot; the chat's id is the person's.
    Private,
    /// A basic group.
    Group,
    /// A supergroup.
    Supergroup,
    /// A supergroup with topics.
    Forum,
    /// A channel.
    Channel,
}

/// A chat.
#[derive(Clone)]
pub struct ChatSpec {
    /// The chat's id; groups have negative ones.
    pub id: i64,
    /// What kind of chat.
    pub kind: ChatKind,
    /// Title of a group, first name in a private chat.
    pub title: String,
}

impl ChatSpec {
    /// A private chat.
    #[must_use]
    pub fn private(id: i64) -> Self {
        Self { id, kind: ChatKind::Private, title: "Alex".to_owned() }
    }

    /// A chat of another kind.
    #[must_use]
    pub fn of(kind: ChatKind, id: i64) -> Self {
        Self { id, kind, title: "The chat".to_owned() }
    }

    pub(crate) fn to_json(&self) -> Value {
        match self.kind {
            ChatKind::Private => json!({"id": self.id, "first_name": self.title, "type": "private"}),
            ChatKind::Group => json!({"id": self.id, "title": self.title, "type": "group"}),
            ChatKind::Supergroup => json!({"id": self.id, "title": self.title, "type": "supergroup"}),
            ChatKind::Forum => {
                json!({"id": self.id, "title": self.title, "is_forum": true, "type": "supergroup"})
            }
            ChatKind::Channel => json!({"id": self.id, "title": self.title, "type": "channel"}),
        }
    }

    /// Reads the chat of a raw update, so that it can be answered.
    pub(crate) fn from_json(chat: &Value) -> Option<Self> {
        let kind = match (chat.get("type")?.as_str()?, chat.get("is_forum").and_then(Value::as_bool)) {
            ("private", _) => ChatKind::Private,
            ("group", _) => ChatKind::Group,
            ("supergroup", Some(true)) => ChatKind::Forum,
            ("supergroup", _) => ChatKind::Supergroup,
            ("channel", _) => ChatKind::Channel,
            _ => return None,
        };
        let title = chat.get("title").or(chat.get("first_name")).and_then(Value::as_str).unwrap_or("");
        Some(Self { id: chat.get("id")?.as_i64()?, kind, title: title.to_owned() })
    }
}

/// A person, or another bot.
#[derive(Clone)]
pub struct UserSpec {
    /// The account's id.
    pub id: i64,
    /// The name shown.
    pub first_name: String,
    /// The name after `@`, if there is one.
    pub username: Option<String>,
    /// Whether it is a bot.
    pub is_bot: bool,
}

impl UserSpec {
    /// A person.
    #[must_use]
    pub fn person(id: i64) -> Self {
        Self { id, first_name: "Alex".to_owned(), username: None, is_bot: false }
    }

    /// The account behind which an anonymous administrator writes.
    #[must_use]
    pub fn anonymous_admin() -> Self {
        Self {
            id: 1_087_968_824,
            first_name: "Group".to_owned(),
            username: Some("GroupAnonymousBot".to_owned()),
            is_bot: true,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut user = json!({"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name});
        if let Some(username) = &self.username {
            user["username"] = json!(username);
        }
        if !self.is_bot {
            user["language_code"] = json!("en");
        }
        user
    }
}

/// One size of a photo.
#[derive(Clone)]
pub struct PhotoSize {
    /// The file.
    pub bytes: Vec<u8>,
    /// Width in pixels, as told.
    pub width: u32,
    /// Height in pixels, as told.
    pub height: u32,
}

/// A photo in the sizes that Telegram offers, smallest first.
#[derive(Clone)]
pub struct PhotoSpec {
    /// At least one.
    pub sizes: Vec<PhotoSize>,
}

impl PhotoSpec {
    /// A photo in one size of 1280 × 960.
    #[must_use]
    pub fn single(bytes: Vec<u8>) -> Self {
        Self { sizes: vec![PhotoSize { bytes, width: 1280, height: 960 }] }
    }
}

/// A message that a person (or a bot, or a channel) sends.
#[derive(Clone)]
pub struct MessageSpec {
    /// Where.
    pub chat: ChatSpec,
    /// Who; channels post without.
    pub from: Option<UserSpec>,
    /// The text; with a photo it is the caption.
    pub text: Option<String>,
    /// Entities of the text; where none are given, leading `/commands` are marked as Telegram does.
    pub entities: Vec<Value>,
    /// A photo.
    pub photo: Option<PhotoSpec>,
    /// The album that the photo belongs to.
    pub media_group_id: Option<String>,
    /// The topic, or the reply thread of a chat without topics.
    pub thread: Option<i64>,
    /// Whether `thread` is a topic (`is_topic_message`).
    pub is_topic: bool,
    /// The message of the same chat that is answered.
    pub reply_to: Option<i64>,
    /// Anything else that shall stand in the message: `sticker`, `via_bot`, `sender_chat`, `quote`, …
    pub extra: Map<String, Value>,
}

impl MessageSpec {
    /// A text message.
    #[must_use]
    pub fn text(chat: ChatSpec, from: UserSpec, text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::bare(chat, Some(from)) }
    }

    /// A photo, with or without a caption.
    #[must_use]
    pub fn photo(chat: ChatSpec, from: UserSpec, photo: PhotoSpec, caption: Option<&str>) -> Self {
        Self { photo: Some(photo), text: caption.map(str::to_owned), ..Self::bare(chat, Some(from)) }
    }

    /// A message with neither text nor photo, to be filled by [`Self::with`].
    #[must_use]
    pub fn bare(chat: ChatSpec, from: Option<UserSpec>) -> Self {
        Self {
            chat,
            from,
            text: None,
            entities: Vec::new(),
            photo: None,
            media_group_id: None,
            thread: None,
            is_topic: false,
            reply_to: None,
            extra: Map::new(),
        }
    }

    /// Puts it in a topic.
    #[must_use]
    pub fn in_topic(self, thread: i64) -> Self {
        Self { thread: Some(thread), is_topic: true, ..self }
    }

    /// Makes it an answer to a message of the same chat.
    #[must_use]
    pub fn replying_to(self, message_id: i64) -> Self {
        Self { reply_to: Some(message_id), ..self }
    }

    /// Adds a member to the message.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extra.insert(name.to_owned(), value);
        self
    }

    /// The entities that Telegram would mark by itself, or those given.
    pub(crate) fn entities_or_commands(&self) -> Vec<Value> {
        if !self.entities.is_empty() {
            return self.entities.clone();
        }
        let text = self.text.as_deref().unwrap_or("");
        let command: String = text.chars().take_while(|character| !character.is_whitespace()).collect();
        let name = command.split('@').next().unwrap_or("");
        let named = name.len() > 1
            && name.len() <= 33
            && name.starts_with('/')
            && name[1..].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if named {
            vec![json!({"offset": 0, "length": command.encode_utf16().count(), "type": "bot_command"})]
        } else {
            Vec::new()
        }
    }
}

/// An update that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The update's id.
    pub update_id: i64,
    /// The message's id in its chat.
    pub message_id: i64,
}
