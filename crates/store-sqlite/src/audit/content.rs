//! What hangs on a hash beside the log: versions, snapshots, declarations, and the ids of runs and attempts.

use thought_contract::declaration;
use thought_contract::run::{attempt_id, run_id, snapshot_id};
use thought_contract::snapshot::Snapshot;
use thought_protocol::{AttemptId, EventId, RunId, Sha256Hex};
use thought_store::StoreError;
use thought_store::audit::Audit;

use super::walk;
use crate::fields::Fields;
use crate::read;
use crate::session::Session;

/// Document versions are the bytes that their hash says.
pub(super) fn versions(s: Session<'_>, audit: &mut Audit) -> Result<(), StoreError> {
    let sql = "SELECT rowid, id, sha256, byte_count, content FROM versions WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
    let read = |row: &rusqlite::Row<'_>| {
        let mut fields = Fields::of("versions", row);
        fields.get::<i64>()?;
        Ok((
            fields.get::<String>()?,
            fields.parse::<Sha256Hex>()?,
            fields.get::<usize>()?,
            fields.get::<Vec<u8>>()?,
        ))
    };
    walk(s, sql, read, |place, row| {
        match row {
            Ok((id, sha256, byte_count, content)) => {
                let holds = content.len() == byte_count && Sha256Hex::of(&content) == sha256;
                audit.check(holds, "versions", id, "content-hash");
            }
            Err(_content_dark) => audit.found("versions", place.to_string(), "unreadable"),
        }
        Ok(())
    })
}

/// Snapshots are the bytes that their hash says, and of the run that they name.
pub(super) fn snapshots(s: Session<'_>, audit: &mut Audit) -> Result<(), StoreError> {
    let sql = "SELECT rowid, id, run, sha256, packet_sha256, bytes FROM snapshots
        WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
    let read = |row: &rusqlite::Row<'_>| {
        let mut fields = Fields::of("snapshots", row);
        fields.get::<i64>()?;
        let (id, run) = (fields.get::<String>()?, fields.parse::<RunId>()?);
        let hashes = (fields.parse::<Sha256Hex>()?, fields.parse::<Sha256Hex>()?);
        Ok((id, run, hashes, fields.content()?))
    };
    walk(s, sql, read, |place, row| {
        match row {
            Ok((id, run, (sha256, packet), bytes)) => {
                let is_whole = |snapshot: Snapshot| {
                    let hash = snapshot.canonical_bytes().map(|bytes| Sha256Hex::of(&bytes));
                    hash.is_ok_and(|hash| hash == sha256) && snapshot.packet_sha256 == packet
                };
                let holds =
                    id == snapshot_id(&run).as_str() && Snapshot::decode(bytes.expose()).is_ok_and(is_whole);
                audit.check(holds, "snapshots", id, "content-hash");
            }
            Err(_content_dark) => audit.found("snapshots", place.to_string(), "unreadable"),
        }
        Ok(())
    })
}

/// Declarations are what was activated.
pub(super) fn declarations(s: Session<'_>, audit: &mut Audit) -> Result<(), StoreError> {
    let rows = match read::run::declarations(s) {
        Ok(rows) => rows,
        Err(_content_dark) => {
            audit.found("declarations", "one of them", "unreadable");
            return Ok(());
        }
    };
    for row in rows {
        let bytes = (row.declaration.expose(), row.prompt.expose(), row.manifest.expose());
        let holds = declaration::fingerprint(bytes.0, bytes.1, bytes.2) == row.fingerprint;
        audit.check(holds, "declarations", format!("{} v{}", row.id, row.version), "fingerprint");
    }
    Ok(())
}

/// Runs and attempts have the names that follow from what they are.
pub(super) fn runs(s: Session<'_>, audit: &mut Audit) -> Result<(), StoreError> {
    let sql = "SELECT ordinal, id, declaration, version, trigger_id, retry FROM runs
        WHERE ordinal > ?1 ORDER BY ordinal LIMIT ?2";
    let read = |row: &rusqlite::Row<'_>| {
        let mut fields = Fields::of("runs", row);
        fields.get::<i64>()?;
        let id = fields.parse::<RunId>()?;
        let (declaration, version) = (fields.get::<String>()?, fields.get::<u32>()?);
        let (trigger, retry) = (fields.parse::<EventId>()?, fields.get::<u32>()?);
        Ok((id, run_id(&declaration, version, &trigger, retry)))
    };
    walk(s, sql, read, |place, row| {
        match row {
            Ok((id, expected)) => audit.check(id == expected, "runs", id.as_str(), "id"),
            Err(_content_dark) => audit.found("runs", place.to_string(), "unreadable"),
        }
        Ok(())
    })?;
    let sql = "SELECT rowid, id, run, ordinal FROM attempts WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
    let read = |row: &rusqlite::Row<'_>| {
        let mut fields = Fields::of("attempts", row);
        fields.get::<i64>()?;
        let (id, run) = (fields.parse::<AttemptId>()?, fields.parse::<RunId>()?);
        let ordinal = fields.get::<u32>()?;
        Ok((id, attempt_id(&run, ordinal)))
    };
    walk(s, sql, read, |place, row| {
        match row {
            Ok((id, expected)) => audit.check(id == expected, "attempts", id.as_str(), "id"),
            Err(_content_dark) => audit.found("attempts", place.to_string(), "unreadable"),
        }
        Ok(())
    })
}
