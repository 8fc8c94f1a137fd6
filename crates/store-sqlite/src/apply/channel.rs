//! What channels keep beside the log: raw updates, refused chats, cursors, and who is at work.

use rusqlite::params;
use thought_contract::event::SourceName;
use thought_contract::time::Timestamp;
use thought_protocol::Sensitive;
use thought_store::StoreError;
use thought_store::command::Presence;

use super::event::source_key;
use crate::limits::REFUSED_CHATS_KEPT;
use crate::session::Session;

pub(super) fn spool_put(
    s: Session<'_>,
    at: Timestamp,
    channel: &SourceName,
    update: i64,
    body: &Sensitive<Vec<u8>>,
) -> Result<(), StoreError> {
    let channel = source_key(s, channel)?;
    s.write(
        "INSERT INTO spool (channel, update_id, tries, parked, arrived_ms, body) VALUES (?1, ?2, 0, 0, ?3, ?4)
         ON CONFLICT (channel, update_id) DO NOTHING",
        params![channel, update, at.ms(), body.expose()],
    )?;
    Ok(())
}

pub(super) fn spool_delete(s: Session<'_>, channel: &SourceName, update: i64) -> Result<(), StoreError> {
    let channel = source_key(s, channel)?;
    s.write("DELETE FROM spool WHERE channel = ?1 AND update_id = ?2", params![channel, update])?;
    Ok(())
}

pub(super) fn spool_failed(
    s: Session<'_>,
    channel: &SourceName,
    update: i64,
    park: bool,
) -> Result<(), StoreError> {
    let channel = source_key(s, channel)?;
    s.write(
        "UPDATE spool SET tries = tries + 1, parked = max(parked, ?3) WHERE channel = ?1 AND update_id = ?2",
        params![channel, update, park],
    )?;
    Ok(())
}

pub(super) fn count_refused(
    s: Session<'_>,
    at: Timestamp,
    channel: &SourceName,
    chat: i64,
    kind: &str,
) -> Result<(), StoreError> {
    let channel = source_key(s, channel)?;
    s.write(
        "INSERT INTO channels (source, dropped) VALUES (?1, 1)
         ON CONFLICT (source) DO UPDATE SET dropped = dropped + 1",
        [channel],
    )?;
    s.write(
        "INSERT INTO refused_chats (channel, chat, kind, updates, seen, last_ms)
         VALUES (?1, ?2, ?3, 1,
            (SELECT coalesce(max(seen), 0) + 1 FROM refused_chats WHERE channel = ?1), ?4)
         ON CONFLICT (channel, chat) DO UPDATE SET
            kind = excluded.kind, updates = updates + 1, seen = excluded.seen, last_ms = excluded.last_ms",
        params![channel, chat, kind, at.ms()],
    )?;
    s.write(
        "DELETE FROM refused_chats WHERE channel = ?1 AND chat NOT IN
            (SELECT chat FROM refused_chats WHERE channel = ?1 ORDER BY seen DESC LIMIT ?2)",
        params![channel, REFUSED_CHATS_KEPT],
    )?;
    Ok(())
}

pub(super) fn set_cursor(s: Session<'_>, name: &str, position: u64) -> Result<(), StoreError> {
    s.write(
        "INSERT INTO cursors (name, position) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE excluded.position > position",
        params![name, position],
    )?;
    Ok(())
}

pub(super) fn set_role(s: Session<'_>, role: &str, presence: Presence) -> Result<(), StoreError> {
    s.write(
        "INSERT INTO roles (role, at_work) VALUES (?1, ?2)
         ON CONFLICT (role) DO UPDATE SET at_work = excluded.at_work WHERE excluded.at_work <> at_work",
        params![role, presence == Presence::AtWork],
    )?;
    Ok(())
}
