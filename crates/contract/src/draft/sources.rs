//! What comes in from outside: messages, commands, scanned documents, private agent messages. Each is its own root.

use serde_json::{Value, json};

use super::{Draft, DraftError, Parts};
use crate::event::{EventType, SourceName};
use crate::payload as p;
use crate::time::Timestamp;

/// The correlation of everything in a Telegram conversation: `<chat>:<thread or 0>`.
pub fn telegram_correlation(chat_id: i64, thread_id: Option<i64>) -> String {
    format!("{chat_id}:{}", thread_id.unwrap_or(0))
}

/// A person's message; an album is one message. Whatever it says, the same message is the same event.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn telegram_message(
    source: &SourceName,
    bot_id: i64,
    payload: &p::TelegramMessage,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let correlation = telegram_correlation(payload.chat_id, payload.thread_id);
    let message: Value = match &payload.media_group_id {
        Some(album) => json!(["album", album]),
        None => json!(payload.message_id),
    };
    let actor = format!("human:telegram:{}", payload.user_id);
    Parts::new((EventType::TelegramMessage, source.clone(), actor), payload, occurred_at)
        .identity(vec![json!(source), json!(bot_id), json!(payload.chat_id), message])
        .equal_by(vec![])
        .correlates(correlation.clone())
        .external(format!("{}:{}", payload.chat_id, payload.message_id))
        .turn_of(correlation)
        .draft()
}

/// A command that no model answers.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn telegram_command(
    source: &SourceName,
    bot_id: i64,
    payload: &p::TelegramCommand,
    occurred_at: Timestamp,
) -> Result<Draft, DraftError> {
    let actor = format!("human:telegram:{}", payload.user_id);
    Parts::new((EventType::TelegramCommand, source.clone(), actor), payload, occurred_at)
        .identity(vec![json!(source), json!(bot_id), json!(payload.chat_id), json!(payload.message_id)])
        .equal_by(vec![])
        .correlates(telegram_correlation(payload.chat_id, payload.thread_id))
        .external(format!("{}:{}", payload.chat_id, payload.message_id))
        .draft()
}

/// Who scans the documents.
const CONNECTOR: &str = "system:filesystem";

/// A scanned version of a document.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn file_version(payload: &p::FileVersion, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    let source = SourceName::context();
    Parts::new((EventType::FileVersion, source.clone(), CONNECTOR), payload, occurred_at)
        .identity(vec![json!(source), json!(payload.document_id), json!(payload.version_id)])
        .draft()
}

/// A document that is gone.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn file_removed(payload: &p::FileRemoved, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    let source = SourceName::context();
    Parts::new((EventType::FileRemoved, source.clone(), CONNECTOR), payload, occurred_at)
        .identity(vec![json!(source), json!(payload.document_id), json!(payload.previous_version_id)])
        .draft()
}

/// A private message of an admitted agent.
///
/// # Errors
/// [`DraftError`] when the payload has no canonical form.
pub fn agent_message(payload: &p::AgentMessage, occurred_at: Timestamp) -> Result<Draft, DraftError> {
    let (sender, recipient) = (&payload.sender_agent_id, &payload.recipient_agent_id);
    let source = SourceName::agent_message(sender);
    Parts::new((EventType::AgentMessage, source, format!("agent:{sender}")), payload, occurred_at)
        .identity(vec![json!(sender), json!(recipient), json!(payload.thread_id), json!(payload.message_id)])
        .equal_by(vec![json!(payload.text)])
        .correlates(payload.thread_id.clone())
        .external(payload.message_id.clone())
        .turn_of(format!("{recipient}/{}", payload.thread_id))
        .draft()
}
