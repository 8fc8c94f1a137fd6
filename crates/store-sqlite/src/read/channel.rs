//! What channels keep beside the log: raw updates, refused chats, cursors, deliveries.

use std::collections::HashMap;

use rusqlite::{Row, params};
use thought_contract::event::SourceName;
use thought_contract::payload::DeliveryKind;
use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::row::{
    ChunkRow, ChunkState, DeliveryRow, DeliveryState, RefusedChatRow, ReplyState, RunRow, SpoolCounts,
    SpoolRow,
};

use super::run::{self, Placed};
use crate::fields::Fields;
use crate::session::Session;

pub(crate) fn spool(s: Session<'_>, channel: &SourceName, limit: u32) -> Result<Vec<SpoolRow>, StoreError> {
    let sql = "SELECT ordinal, update_id, body, tries, arrived_ms FROM spool
        WHERE channel = (SELECT id FROM sources WHERE name = ?1) AND parked = 0 ORDER BY ordinal LIMIT ?2";
    s.all(sql, params![channel.as_str(), limit], |row| {
        let mut fields = Fields::of("spool", row);
        Ok(SpoolRow {
            ordinal: fields.get()?,
            update: fields.get()?,
            body: fields.content()?,
            tries: fields.get()?,
            arrived_at: fields.time()?,
        })
    })
}

pub(crate) fn spool_counts(s: Session<'_>, channel: &SourceName) -> Result<SpoolCounts, StoreError> {
    let sql = "SELECT
            (SELECT count(*) FROM spool WHERE channel = sources.id AND parked = 0),
            (SELECT count(*) FROM spool WHERE channel = sources.id AND parked = 1),
            coalesce((SELECT dropped FROM channels WHERE source = sources.id), 0)
        FROM sources WHERE name = ?1";
    let counts = s.first(sql, [channel.as_str()], |row| {
        let mut fields = Fields::of("spool", row);
        Ok(SpoolCounts { pending: fields.get()?, parked: fields.get()?, dropped: fields.get()? })
    })?;
    Ok(counts.unwrap_or(SpoolCounts { pending: 0, parked: 0, dropped: 0 }))
}

pub(crate) fn refused_chats(s: Session<'_>, channel: &SourceName) -> Result<Vec<RefusedChatRow>, StoreError> {
    let sql = "SELECT chat, kind, updates, last_ms FROM refused_chats
        WHERE channel = (SELECT id FROM sources WHERE name = ?1) ORDER BY seen DESC";
    s.all(sql, [channel.as_str()], |row| {
        let mut fields = Fields::of("refused_chats", row);
        Ok(RefusedChatRow {
            chat: fields.get()?,
            kind: fields.get()?,
            count: fields.get()?,
            last_at: fields.time()?,
        })
    })
}

pub(crate) fn cursor(s: Session<'_>, name: &str) -> Result<u64, StoreError> {
    let position = s.first("SELECT position FROM cursors WHERE name = ?1", [name], |row| {
        Fields::of("cursors", row).get::<u64>()
    })?;
    Ok(position.unwrap_or(0))
}

const SELECT_DELIVERY: &str = "SELECT deliveries.ordinal, deliveries.cause, deliveries.kind, sources.name,
        deliveries.chat, deliveries.thread, deliveries.state, deliveries.reason, deliveries.receipt,
        deliveries.opened_ms, deliveries.receipt_position
    FROM deliveries JOIN sources ON sources.id = deliveries.channel";

fn decode_delivery(row: &Row<'_>) -> Result<(i64, DeliveryRow), StoreError> {
    let mut fields = Fields::of("deliveries", row);
    let key = fields.get()?;
    let delivery = DeliveryRow {
        cause: fields.parse()?,
        kind: fields.word(DeliveryKind::from_word)?,
        channel: SourceName::new(fields.get::<String>()?),
        chat: fields.get()?,
        thread: fields.get()?,
        state: fields.word(DeliveryState::from_word)?,
        reason: fields.get()?,
        receipt: fields.parse_optional()?,
        opened_at: fields.time()?,
        chunks: Vec::new(),
    };
    if delivery.state == DeliveryState::Delivered && delivery.receipt.is_none() {
        return Err(fields.corrupt());
    }
    Ok((key, delivery))
}

fn with_chunks(s: Session<'_>, (key, mut delivery): (i64, DeliveryRow)) -> Result<DeliveryRow, StoreError> {
    let sql = "SELECT ordinal, state, utf16_length, message, confirmed_by FROM chunks
        WHERE delivery = ?1 ORDER BY ordinal";
    delivery.chunks = s.all(sql, [key], |row| {
        let mut fields = Fields::of("chunks", row);
        Ok(ChunkRow {
            ordinal: fields.get()?,
            state: fields.word(ChunkState::from_word)?,
            utf16_length: fields.get()?,
            message: fields.get()?,
            confirmed_by: fields.get()?,
        })
    })?;
    Ok(delivery)
}

fn head_of(
    s: Session<'_>,
    cause: &EventId,
    kind: DeliveryKind,
) -> Result<Option<(i64, DeliveryRow)>, StoreError> {
    let sql = format!(
        "{SELECT_DELIVERY} WHERE deliveries.cause_position = (SELECT position FROM events WHERE id = ?1)
           AND deliveries.kind = ?2 AND deliveries.cause = ?1"
    );
    s.first(&sql, [cause.as_str(), kind.as_str()], decode_delivery)
}

pub(crate) fn delivery(
    s: Session<'_>,
    cause: &EventId,
    kind: DeliveryKind,
) -> Result<Option<DeliveryRow>, StoreError> {
    head_of(s, cause, kind)?.map(|found| with_chunks(s, found)).transpose()
}

pub(crate) fn unfinished(
    s: Session<'_>,
    channel: &SourceName,
    states: &[DeliveryState],
    limit: u32,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let words: Vec<String> = states.iter().map(|state| format!("'{}'", state.as_str())).collect();
    let wanted = match words.as_slice() {
        [] => String::new(),
        words => format!("AND deliveries.state IN ({})", words.join(", ")),
    };
    let sql = format!(
        "{SELECT_DELIVERY} WHERE deliveries.channel = (SELECT id FROM sources WHERE name = ?1)
           AND deliveries.state <> 'delivered' {wanted} ORDER BY deliveries.ordinal LIMIT ?2"
    );
    let found = s.all(&sql, params![channel.as_str(), limit], decode_delivery)?;
    found.into_iter().map(|found| with_chunks(s, found)).collect()
}

/// What the delivery of an output came to, and where its receipt stands.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) state: ReplyState,
    pub(super) receipt_position: Option<u64>,
}

pub(crate) fn reply_state(s: Session<'_>, output: &EventId) -> Result<ReplyState, StoreError> {
    if let Some((_, delivery)) = head_of(s, output, DeliveryKind::Reply)? {
        return Ok(state_of(delivery));
    }
    match run::of_output(s, output)? {
        Some(run) => undelivered(s, &run),
        None => Ok(ReplyState::NotDelivered),
    }
}

/// The replies to the outputs at these positions, by position, as far as they were opened.
pub(super) fn replies(s: Session<'_>, outputs: &[u64]) -> Result<HashMap<u64, Reply>, StoreError> {
    let select = SELECT_DELIVERY.replacen(
        "deliveries.receipt_position\n",
        "deliveries.receipt_position, deliveries.cause_position\n",
        1,
    );
    let sql = format!(
        "{select} WHERE deliveries.cause_position IN ({}) AND deliveries.kind = 'reply'",
        super::placeholders(1, super::BATCH)
    );
    let mut replies = HashMap::with_capacity(outputs.len());
    for batch in outputs.chunks(super::BATCH) {
        let positions = batch.iter().map(|position| i64::try_from(*position).unwrap_or(i64::MAX));
        let found = s.all(&sql, super::batch(positions), |row| {
            let (_, delivery) = decode_delivery(row)?;
            match (row.get("receipt_position"), row.get("cause_position")) {
                (Ok(receipt_position), Ok(cause_position)) => {
                    Ok((cause_position, Reply { state: state_of(delivery), receipt_position }))
                }
                _ => Err(Fields::of("deliveries", row).corrupt()),
            }
        })?;
        replies.extend(found);
    }
    Ok(replies)
}

/// As [`reply_state`], for an output of which no delivery was found at its position.
pub(super) fn reply_without_delivery(
    s: Session<'_>,
    placed: &Placed,
    output: &EventId,
) -> Result<ReplyState, StoreError> {
    if placed.output_position.is_none() { reply_state(s, output) } else { undelivered(s, &placed.run) }
}

fn state_of(delivery: DeliveryRow) -> ReplyState {
    match (delivery.state, delivery.receipt) {
        (DeliveryState::Delivered, Some(receipt)) => ReplyState::Receipt(receipt),
        (DeliveryState::Sending, _) => ReplyState::Sending,
        _ => ReplyState::NotDelivered,
    }
}

/// Only a Telegram source has a dispatcher; its role is named after it.
const DELIVERED_SOURCES: &str = "telegram:";

fn undelivered(s: Session<'_>, run: &RunRow) -> Result<ReplyState, StoreError> {
    if !run.source.as_str().starts_with(DELIVERED_SOURCES) {
        return Ok(ReplyState::NotDelivered);
    }
    let role = format!("dispatcher:{}", run.source);
    let at_work = s.first("SELECT role, at_work FROM roles WHERE role = ?1", [&role], |row| {
        let mut fields = Fields::of("roles", row);
        let _: String = fields.get()?;
        fields.get::<bool>()
    })?;
    Ok(if at_work == Some(true) { ReplyState::Sending } else { ReplyState::NotDelivered })
}
