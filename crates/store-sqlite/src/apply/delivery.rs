//! Deliveries and their chunks: every step is a compare-and-set.

use rusqlite::params;
use thought_contract::event::SourceName;
use thought_contract::payload::DeliveryKind;
use thought_contract::time::Timestamp;
use thought_protocol::EventId;
use thought_store::row::{ChunkState, DeliveryState};
use thought_store::{Precondition, StoreError};

use super::event::{position, source_key};
use super::require;
use crate::failure;
use crate::fields::Fields;
use crate::session::Session;

/// A delivery that begins.
pub(super) struct Opening<'a> {
    pub(super) cause: &'a EventId,
    pub(super) kind: DeliveryKind,
    pub(super) channel: &'a SourceName,
    pub(super) chat: i64,
    pub(super) thread: Option<i64>,
}

/// A chunk that moves.
pub(super) struct ChunkStep {
    pub(super) ordinal: u32,
    pub(super) from: ChunkState,
    pub(super) to: ChunkState,
    pub(super) message: Option<i64>,
}

struct Standing {
    key: i64,
    state: DeliveryState,
}

fn standing(s: Session<'_>, cause: &EventId, kind: DeliveryKind) -> Result<Option<Standing>, StoreError> {
    let sql = "SELECT ordinal, state FROM deliveries
        WHERE cause_position = (SELECT position FROM events WHERE id = ?1) AND kind = ?2 AND cause = ?1";
    s.first(sql, [cause.as_str(), kind.as_str()], |row| {
        let mut fields = Fields::of("deliveries", row);
        Ok(Standing { key: fields.get()?, state: fields.word(DeliveryState::from_word)? })
    })
}

pub(super) fn open(
    s: Session<'_>,
    at: Timestamp,
    opening: &Opening<'_>,
    chunk_utf16_lengths: &[u64],
) -> Result<(), StoreError> {
    require(standing(s, opening.cause, opening.kind)?.is_none(), Precondition::DeliveryAbsent)?;
    if chunk_utf16_lengths.is_empty() {
        return Err(failure::engine("open a delivery", "it has no chunk"));
    }
    let channel = source_key(s, opening.channel)?;
    let cause_position = position(s, opening.cause)?
        .ok_or_else(|| failure::engine("open a delivery", "its cause is no event of the store"))?;
    s.write(
        "INSERT INTO deliveries (cause, cause_position, kind, channel, chat, thread, state, opened_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            opening.cause.as_str(),
            cause_position,
            opening.kind.as_str(),
            channel,
            opening.chat,
            opening.thread,
            DeliveryState::Sending.as_str(),
            at.ms(),
        ],
    )?;
    let delivery = s.inserted();
    for (ordinal, length) in (0_u32..).zip(chunk_utf16_lengths) {
        let state = if ordinal == 0 { ChunkState::Sending } else { ChunkState::Pending };
        s.write(
            "INSERT INTO chunks (delivery, ordinal, state, utf16_length) VALUES (?1, ?2, ?3, ?4)",
            params![delivery, ordinal, state.as_str(), length],
        )?;
    }
    Ok(())
}

pub(super) fn move_chunk(
    s: Session<'_>,
    cause: &EventId,
    kind: DeliveryKind,
    step: &ChunkStep,
    confirmed_by: Option<&str>,
) -> Result<(), StoreError> {
    let delivery = unfinished(s, cause, kind)?;
    let rows = s.write(
        "UPDATE chunks SET state = ?4, message = coalesce(?5, message), confirmed_by = coalesce(?6, confirmed_by)
         WHERE delivery = ?1 AND ordinal = ?2 AND state = ?3",
        params![delivery, step.ordinal, step.from.as_str(), step.to.as_str(), step.message, confirmed_by],
    )?;
    require(rows == 1, Precondition::DeliveryState)
}

pub(super) fn move_delivery(
    s: Session<'_>,
    cause: &EventId,
    kind: DeliveryKind,
    to: DeliveryState,
    (reason, receipt): (Option<&str>, Option<&EventId>),
) -> Result<(), StoreError> {
    let delivery = unfinished(s, cause, kind)?;
    let receipt_position = receipt.map(|receipt| position(s, receipt)).transpose()?.flatten();
    if let (DeliveryKind::Reply, DeliveryState::Delivered) = (kind, to) {
        let sql = "UPDATE runs SET reply_position = ?2
            WHERE output_position = (SELECT position FROM events WHERE id = ?1) AND output_id = ?1";
        s.write(sql, params![cause.as_str(), receipt_position])?;
    }
    s.write(
        "UPDATE deliveries SET state = ?2, reason = ?3, receipt = ?4, receipt_position = ?5 WHERE ordinal = ?1",
        params![delivery, to.as_str(), reason, receipt.map(|id| id.as_str()), receipt_position],
    )?;
    Ok(())
}

/// A delivered delivery is done for good.
fn unfinished(s: Session<'_>, cause: &EventId, kind: DeliveryKind) -> Result<i64, StoreError> {
    standing(s, cause, kind)?
        .filter(|standing| standing.state != DeliveryState::Delivered)
        .map(|standing| standing.key)
        .ok_or(StoreError::Precondition(Precondition::DeliveryState))
}
