//! Intents of writes, and what became of people's own corrections.

use rusqlite::{Row, params};
use thought_contract::event::SourceName;
use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::row::{CorrectionOutcome, CorrectionRow, IntentRow};

use crate::fields::Fields;
use crate::session::Session;

fn decode(row: &Row<'_>) -> Result<IntentRow, StoreError> {
    let mut fields = Fields::of("intents", row);
    Ok(IntentRow {
        decision: fields.parse()?,
        proposal: fields.parse()?,
        expected_sha256: fields.parse()?,
        temporary: fields.get()?,
        made_at: fields.time()?,
    })
}

const SELECT: &str = "SELECT decision, proposal, expected_sha256, temporary, made_ms FROM intents";

pub(crate) fn intent(s: Session<'_>, decision: &EventId) -> Result<Option<IntentRow>, StoreError> {
    s.first(&format!("{SELECT} WHERE decision = ?1"), [decision.as_str()], decode)
}

pub(crate) fn intents(s: Session<'_>, limit: u32) -> Result<Vec<IntentRow>, StoreError> {
    s.all(&format!("{SELECT} ORDER BY made_ms, decision LIMIT ?1"), [limit], decode)
}

fn decode_correction(row: &Row<'_>) -> Result<CorrectionRow, StoreError> {
    let mut fields = Fields::of("corrections", row);
    let (ordinal, command) = (fields.get()?, fields.parse()?);
    let outcome = match (fields.parse_optional()?, fields.get::<Option<String>>()?) {
        (Some(judgment), None) => CorrectionOutcome::Judged(judgment),
        (None, Some(reason)) => CorrectionOutcome::Refused(reason),
        _ => return Err(fields.corrupt()),
    };
    Ok(CorrectionRow { ordinal, command, outcome })
}

pub(crate) fn correction(s: Session<'_>, command: &EventId) -> Result<Option<CorrectionRow>, StoreError> {
    let sql = "SELECT ordinal, command, judgment, reason FROM corrections WHERE command = ?1";
    s.first(sql, [command.as_str()], decode_correction)
}

pub(crate) fn refused_corrections(
    s: Session<'_>,
    after_ordinal: u64,
    limit: u32,
) -> Result<Vec<CorrectionRow>, StoreError> {
    let sql = "SELECT ordinal, command, judgment, reason FROM corrections
        WHERE reason IS NOT NULL AND ordinal > ?1 ORDER BY ordinal LIMIT ?2";
    s.all(sql, params![after_ordinal, limit], decode_correction)
}

pub(crate) fn reply_with_message(
    s: Session<'_>,
    channel: &SourceName,
    chat: i64,
    message: i64,
) -> Result<Option<EventId>, StoreError> {
    let sql = "SELECT receipt FROM chunks
        JOIN deliveries ON deliveries.ordinal = chunks.delivery
        JOIN sources ON sources.id = deliveries.channel
        WHERE chunks.message = ?3 AND sources.name = ?1 AND deliveries.chat = ?2 AND deliveries.kind = 'reply'
            AND deliveries.receipt IS NOT NULL
        ORDER BY deliveries.receipt_position DESC LIMIT 1";
    s.first(sql, params![channel.as_str(), chat, message], |row| Fields::of("deliveries", row).parse())
}

pub(crate) fn newest_reply(
    s: Session<'_>,
    channel: &SourceName,
    (chat, thread): (i64, Option<i64>),
    before_position: u64,
) -> Result<Option<EventId>, StoreError> {
    let sql = "SELECT receipt FROM deliveries
        WHERE channel = (SELECT id FROM sources WHERE name = ?1) AND chat = ?2 AND thread IS ?3
            AND kind = 'reply' AND receipt_position < ?4
        ORDER BY receipt_position DESC LIMIT 1";
    s.first(sql, params![channel.as_str(), chat, thread, before_position], |row| {
        Fields::of("deliveries", row).parse()
    })
}
