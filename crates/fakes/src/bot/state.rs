//! The bot's side of Telegram: the queue of updates, known chats and messages, menus, files, and all that arrived.
//!
//! Changes are plain functions of what is asked; nothing here waits or talks to a socket.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::failures::Failure;
use super::spec::{ChatKind, ChatSpec, MessageSpec, PhotoSpec, Pushed};
use super::{BotConfig, Call, SentMessage, WebhookPost};
use crate::limits::{OFFSET_AHEAD_MAX, RECORDS_KEPT_MAX};
use crate::record::Kept;

/// Update kinds that are delivered only when they are asked for by name.
const OPT_IN_KINDS: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];
/// Members of an update that hold a message.
const MESSAGE_KINDS: [&str; 4] = ["message", "edited_message", "channel_post", "edited_channel_post"];

pub(crate) struct Queued {
    pub(crate) id: i64,
    pub(crate) update: Value,
    /// Its id is not above those before it: a repetition, or out of order. An offset does not pass over it unseen.
    late: bool,
    pub(crate) delivered: bool,
}

pub(crate) struct Webhook {
    pub(crate) url: String,
    pub(crate) secret: Option<String>,
    pub(crate) max_connections: i64,
    pub(crate) last_error: Option<(i64, String)>,
}

pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) unique_id: String,
    pub(crate) bytes: Vec<u8>,
    /// Its path was asked for; only then can it be fetched.
    pub(crate) open: bool,
}

pub(crate) struct State {
    pub(crate) bot: Value,
    next_update_id: i64,
    newest_update_id: i64,
    next_message_id: HashMap<i64, i64>,
    date: i64,
    next_file: u64,
    pub(crate) queue: VecDeque<Queued>,
    pushed: Kept<Value>,
    pub(crate) filtered: usize,
    /// `None`: never said, so the default.
    pub(crate) allowed_updates: Option<Vec<String>>,
    pub(crate) webhook: Option<Webhook>,
    /// Counts settings of the webhook, so that a post under way knows that it is stale.
    pub(crate) webhook_version: u64,
    pub(crate) webhook_posts: Kept<WebhookPost>,
    pub(crate) poll_ticket: u64,
    pub(crate) chats: HashMap<i64, ChatSpec>,
    pub(crate) threads: BTreeSet<(i64, i64)>,
    pub(crate) messages: BTreeMap<(i64, i64), Value>,
    pub(crate) files: BTreeMap<String, File>,
    pub(crate) commands: BTreeMap<(String, String), Vec<Value>>,
    pub(crate) failures: HashMap<String, VecDeque<Failure>>,
    pub(crate) calls: Kept<Call>,
    pub(crate) sent: Kept<SentMessage>,
    pub(crate) unauthorized: usize,
}

impl State {
    pub(crate) fn new(config: &BotConfig) -> Self {
        Self {
            bot: json!({
                "id": config.bot_id,
                "is_bot": true,
                "first_name": config.first_name,
                "username": config.username,
            }),
            next_update_id: config.first_update_id,
            newest_update_id: config.first_update_id - 1,
            next_message_id: HashMap::new(),
            date: config.date,
            next_file: 1,
            queue: VecDeque::new(),
            pushed: Kept::new(RECORDS_KEPT_MAX),
            filtered: 0,
            allowed_updates: None,
            webhook: None,
            webhook_version: 0,
            webhook_posts: Kept::new(RECORDS_KEPT_MAX),
            poll_ticket: 0,
            chats: HashMap::new(),
            threads: BTreeSet::new(),
            messages: BTreeMap::new(),
            files: BTreeMap::new(),
            commands: BTreeMap::new(),
            failures: HashMap::new(),
            calls: Kept::new(RECORDS_KEPT_MAX),
            sent: Kept::new(RECORDS_KEPT_MAX),
            unauthorized: 0,
        }
    }

    /// Time goes on by a second with every message.
    pub(crate) fn tick(&mut self) -> i64 {
        self.date += 1;
        self.date
    }

    pub(crate) fn next_message_id(&mut self, chat: i64) -> i64 {
        let next = self.next_message_id.entry(chat).or_insert(1);
        *next += 1;
        *next - 1
    }

    pub(crate) fn set_next_update_id(&mut self, id: i64) {
        self.next_update_id = id;
        self.newest_update_id = id - 1;
    }

    /// Makes the message's JSON and remembers it, its chat and its thread.
    pub(crate) fn compose(&mut self, spec: &MessageSpec) -> (i64, Value) {
        let chat = spec.chat.id;
        let message_id = self.next_message_id(chat);
        let mut message = json!({"message_id": message_id, "date": self.tick(), "chat": spec.chat.to_json()});
        if let Some(from) = &spec.from {
            message["from"] = from.to_json();
        }
        if let Some(thread) = spec.thread {
            message["message_thread_id"] = json!(thread);
            if spec.is_topic {
                message["is_topic_message"] = json!(true);
            }
        }
        if let Some(answered) = spec.reply_to {
            message["reply_to_message"] = self.quoted(chat, answered);
        }
        let entities = spec.entities_or_commands();
        let (text_name, entities_name) = match &spec.photo {
            Some(photo) => {
                message["photo"] = self.store_photo(photo);
                ("caption", "caption_entities")
            }
            None => ("text", "entities"),
        };
        if let Some(text) = &spec.text {
            message[text_name] = json!(text);
            if !entities.is_empty() {
                message[entities_name] = Value::Array(entities);
            }
        }
        if let Some(group) = &spec.media_group_id {
            message["media_group_id"] = json!(group);
        }
        for (name, value) in &spec.extra {
            message[name.as_str()] = value.clone();
        }
        (message_id, message)
    }

    /// A message as it stands inside an answer to it: without what it answered itself.
    pub(crate) fn quoted(&self, chat: i64, message_id: i64) -> Value {
        match self.messages.get(&(chat, message_id)) {
            Some(Value::Object(known)) => {
                let mut quoted: Map<String, Value> = known.clone();
                quoted.remove("reply_to_message");
                Value::Object(quoted)
            }
            _ => json!({"message_id": message_id, "date": self.date, "chat": {"id": chat}}),
        }
    }

    fn store_photo(&mut self, photo: &PhotoSpec) -> Value {
        let sizes = photo.sizes.iter().map(|size| {
            let number = self.next_file;
            self.next_file += 1;
            let id = format!("AgACAgIAAxkBAAI{number:08}");
            let unique_id = format!("AQAD{number:08}");
            let path = format!("photos/file_{number}.jpg");
            let described = json!({
                "file_id": id,
                "file_unique_id": unique_id,
                "file_size": size.bytes.len(),
                "width": size.width,
                "height": size.height,
            });
            self.files.insert(id, File { path, unique_id, bytes: size.bytes.clone(), open: false });
            described
        });
        Value::Array(sizes.collect())
    }

    /// Makes an update of a message and queues it.
    pub(crate) fn push_message(&mut self, kind: &str, message_id: i64, message: Value) -> Pushed {
        let update_id = self.next_update_id;
        let mut update = json!({"update_id": update_id});
        update[kind] = message;
        self.push(update_id, update, Filter::AsAllowed);
        Pushed { update_id, message_id }
    }

    /// Queues an update under its own id.
    pub(crate) fn push(&mut self, id: i64, update: Value, filter: Filter) {
        self.learn(&update);
        self.pushed.push(update.clone());
        let late = id <= self.newest_update_id;
        self.newest_update_id = self.newest_update_id.max(id);
        self.next_update_id = self.next_update_id.max(id + 1);
        let wanted = filter == Filter::Never
            || update.as_object().is_some_and(|members| {
                members.keys().filter(|name| *name != "update_id").all(|kind| self.is_allowed(kind))
            });
        if wanted {
            self.queue.push_back(Queued { id, update, late, delivered: false });
        } else {
            self.filtered += 1;
        }
    }

    fn is_allowed(&self, kind: &str) -> bool {
        match &self.allowed_updates {
            Some(kinds) if !kinds.is_empty() => kinds.iter().any(|allowed| allowed == kind),
            _ => !OPT_IN_KINDS.contains(&kind),
        }
    }

    /// Remembers the chat, thread and message of an update, so that they can be answered.
    fn learn(&mut self, update: &Value) {
        for message in MESSAGE_KINDS.iter().filter_map(|kind| update.get(kind)) {
            let Some(chat) = message.get("chat").and_then(ChatSpec::from_json) else { continue };
            if let Some(id) = message.get("message_id").and_then(Value::as_i64) {
                self.remember_message(chat.id, id, message.clone());
            }
            if message.get("is_topic_message").and_then(Value::as_bool) == Some(true)
                && let Some(thread) = message.get("message_thread_id").and_then(Value::as_i64)
            {
                self.threads.insert((chat.id, thread));
            }
            self.chats.insert(chat.id, chat);
        }
    }

    pub(crate) fn remember_message(&mut self, chat: i64, id: i64, message: Value) {
        if self.messages.len() >= RECORDS_KEPT_MAX {
            self.messages.pop_first();
        }
        let next = self.next_message_id.entry(chat).or_insert(1);
        *next = (*next).max(id + 1);
        self.messages.insert((chat, id), message);
    }

    pub(crate) fn pushed(&self, update_id: i64) -> Option<Value> {
        self.pushed.iter().find(|update| update["update_id"] == json!(update_id)).cloned()
    }

    /// Forgets what an offset confirms: everything below it. A late update (see [`Queued`]) is confirmed only once
    /// it was delivered, and an offset far beyond the newest id (ids restart after a quiet week) is ignored.
    pub(crate) fn confirm(&mut self, offset: i64) {
        if offset < 0 {
            let kept = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
            let forgotten = self.queue.len().saturating_sub(kept);
            self.queue.drain(..forgotten);
        } else if self.queue.iter().any(|queued| queued.delivered && queued.id == offset - 1) {
            self.queue.retain(|queued| queued.id >= offset || !queued.delivered);
        } else if offset <= self.newest_update_id + 1 + OFFSET_AHEAD_MAX {
            self.queue.retain(|queued| queued.id >= offset || (queued.late && !queued.delivered));
        }
    }

    pub(crate) fn deliver(&mut self, limit: usize) -> Vec<Value> {
        let batch = self.queue.iter_mut().take(limit).map(|queued| {
            queued.delivered = true;
            queued.update.clone()
        });
        batch.collect()
    }

    /// Whether a thread of a chat can be written to: a topic that was seen, and not the General topic.
    pub(crate) fn has_thread(&self, chat: &ChatSpec, thread: i64) -> bool {
        matches!(chat.kind, ChatKind::Forum | ChatKind::Private) && self.threads.contains(&(chat.id, thread))
    }
}

/// Whether `allowed_updates` decides if an update is queued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    AsAllowed,
    Never,
}
