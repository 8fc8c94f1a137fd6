//! `sendMessage` and `sendChatAction`: what Telegram refuses, and the message that it answers with.

use serde_json::{Value, json};

use super::params::Params;
use super::spec::{ChatKind, ChatSpec};
use super::state::State;
use super::{Refusal, SentMessage, refuse};
use crate::limits::{ENTITIES_MAX, TEXT_UNITS_MAX};

const ENTITY_KINDS: [&str; 19] = [
    "mention",
    "hashtag",
    "cashtag",
    "bot_command",
    "url",
    "email",
    "phone_number",
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
];

const ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];

/// Accepts a message and records it, or refuses it.
pub(crate) fn send_message(state: &mut State, params: &Params) -> Result<Value, Refusal> {
    let chat = known_chat(state, params)?;
    let text = params.text("text").unwrap_or_default();
    if text.trim().is_empty() {
        return refuse("Bad Request: message text is empty");
    }
    if text.encode_utf16().count() > TEXT_UNITS_MAX {
        return refuse("Bad Request: message is too long");
    }
    let parse_mode = params.text("parse_mode").filter(|mode| !mode.is_empty());
    if parse_mode
        .as_deref()
        .is_some_and(|mode| !["html", "markdown", "markdownv2"].contains(&mode.to_ascii_lowercase().as_str()))
    {
        return refuse("Bad Request: unsupported parse_mode");
    }
    let entities = params.list("entities")?.unwrap_or_default();
    check_entities(&text, &entities)?;
    let thread = known_thread(state, params, &chat)?;
    let reply_to = replied_message(state, params, &chat)?;

    let message_id = state.next_message_id(chat.id);
    let mut message = json!({
        "message_id": message_id,
        "from": state.bot,
        "chat": chat.to_json(),
        "date": state.tick(),
        "text": text,
    });
    if !entities.is_empty() {
        message["entities"] = Value::Array(entities.clone());
    }
    if let Some(thread) = thread {
        message["message_thread_id"] = json!(thread);
        message["is_topic_message"] = json!(true);
    }
    if let Some(answered) = reply_to {
        message["reply_to_message"] = state.quoted(chat.id, answered);
    }
    state.remember_message(chat.id, message_id, message.clone());
    state.sent.push(SentMessage {
        chat_id: chat.id,
        message_id,
        text,
        entities,
        thread,
        reply_to,
        parse_mode,
        params: Value::Object(params.0.clone()),
        was_answered: false,
    });
    Ok(message)
}

/// Accepts a chat action, or refuses it.
pub(crate) fn send_chat_action(state: &State, params: &Params) -> Result<Value, Refusal> {
    let chat = known_chat(state, params)?;
    known_thread(state, params, &chat)?;
    match params.text("action") {
        Some(action) if ACTIONS.contains(&action.as_str()) => Ok(json!(true)),
        _ => refuse("Bad Request: wrong parameter action in request"),
    }
}

fn known_chat(state: &State, params: &Params) -> Result<ChatSpec, Refusal> {
    let given = params.text("chat_id").unwrap_or_default();
    if given.is_empty() {
        return refuse("Bad Request: chat_id is empty");
    }
    match given.parse::<i64>() {
        Ok(id) => {
            state.chats.get(&id).cloned().ok_or_else(|| "Bad Request: chat not found".to_owned().into())
        }
        Err(_) => refuse("Bad Request: chat not found"),
    }
}

fn known_thread(state: &State, params: &Params, chat: &ChatSpec) -> Result<Option<i64>, Refusal> {
    match params.integer("message_thread_id")? {
        None | Some(0) => Ok(None),
        Some(thread) if state.has_thread(chat, thread) => Ok(Some(thread)),
        Some(_) => refuse("Bad Request: message thread not found"),
    }
}

/// The message that is answered. A forum's topic is answered by its thread, any other message must be known.
fn replied_message(state: &State, params: &Params, chat: &ChatSpec) -> Result<Option<i64>, Refusal> {
    let Some(reply) = params.structure("reply_parameters")? else {
        return match params.integer("reply_to_message_id")? {
            Some(id) if state.messages.contains_key(&(chat.id, id)) => Ok(Some(id)),
            Some(_) if !params.is_true("allow_sending_without_reply") => {
                refuse("Bad Request: message to be replied not found")
            }
            _ => Ok(None),
        };
    };
    let Some(id) = reply.get("message_id").and_then(Value::as_i64).filter(|id| *id > 0) else {
        return refuse("Bad Request: can't parse reply parameters: message_id is needed");
    };
    if reply.get("chat_id").and_then(Value::as_i64).is_some_and(|other| other != chat.id)
        && chat.kind == ChatKind::Channel
    {
        return refuse("Bad Request: replies to other chats are not allowed");
    }
    let Some(answered) = state.messages.get(&(chat.id, id)) else {
        return match reply.get("allow_sending_without_reply").and_then(Value::as_bool) {
            Some(true) => Ok(None),
            _ => refuse("Bad Request: message to be replied not found"),
        };
    };
    let quoted = reply.get("quote").and_then(Value::as_str).unwrap_or("");
    let text = answered.get("text").or(answered.get("caption")).and_then(Value::as_str).unwrap_or("");
    if !text.contains(quoted) {
        return refuse("Bad Request: QUOTE_TEXT_INVALID");
    }
    Ok(Some(id))
}

/// Entities must be of known kinds and lie within the text, in UTF-16 units, without splitting a surrogate pair.
fn check_entities(text: &str, entities: &[Value]) -> Result<(), Refusal> {
    let cannot = |why: String| refuse(&format!("Bad Request: can't parse entities: {why}"));
    if entities.len() > ENTITIES_MAX {
        return cannot(format!("too many entities: {}", entities.len()));
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    let splits = |at: usize| units.get(at).is_some_and(|unit| (0xdc00..0xe000).contains(unit));
    for entity in entities {
        let number = |name: &str| {
            entity.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
        };
        let (Some(offset), Some(length)) = (number("offset"), number("length")) else {
            return cannot("offset and length must be integers".to_owned());
        };
        let end = offset.saturating_add(length);
        if length == 0 {
            return cannot(format!("empty entity at UTF-16 offset {offset}"));
        }
        if end > units.len() {
            return cannot(format!(
                "entity beginning at UTF-16 offset {offset} ends after the end of the text at UTF-16 offset {end}"
            ));
        }
        if splits(offset) || splits(end) {
            return cannot(format!(
                "entity at UTF-16 offset {offset} begins or ends in a middle of a symbol"
            ));
        }
        let kind = entity.get("type").and_then(Value::as_str).unwrap_or("");
        if !ENTITY_KINDS.contains(&kind) {
            return cannot("unknown entity type".to_owned());
        }
        let complete = match kind {
            "text_link" => entity.get("url").and_then(Value::as_str).is_some_and(|url| !url.is_empty()),
            "text_mention" => entity.pointer("/user/id").and_then(Value::as_i64).is_some(),
            "custom_emoji" => entity.get("custom_emoji_id").and_then(Value::as_str).is_some(),
            _ => true,
        };
        if !complete {
            return cannot(format!("entity of type {kind} lacks what it points to"));
        }
    }
    Ok(())
}
