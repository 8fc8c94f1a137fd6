//! Installs declaration versions and their consumer rows.

use rusqlite::params;
use thought_contract::time::Timestamp;
use thought_store::command::NewDeclaration;
use thought_store::row::ChangeoverRow;
use thought_store::{Precondition, StoreError};

use super::event::source_key;
use super::require;
use crate::fields::Fields;
use crate::session::Session;

pub(super) fn install(s: Session<'_>, at: Timestamp, new: &NewDeclaration) -> Result<(), StoreError> {
    let sql = "SELECT version FROM declarations WHERE id = ?1 AND active = 1";
    let active = s.first(sql, [&new.id], |row| Fields::of("declarations", row).get::<u32>())?;
    let rises = active.is_none_or(|active| new.version > active);
    require(active == new.expected_active && rises, Precondition::ActiveVersion)?;
    s.write("UPDATE declarations SET active = 0 WHERE id = ?1 AND active = 1", [&new.id])?;
    s.write(
        "INSERT INTO declarations (id, version, active, fingerprint, activated_ms, declaration_content,
            prompt_content, manifest_content)
         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7)",
        params![
            new.id,
            new.version,
            new.fingerprint.as_str(),
            at.ms(),
            new.declaration.expose(),
            new.prompt.expose(),
            new.manifest.expose(),
        ],
    )?;
    for (source, head) in &new.sources {
        let source = source_key(s, source)?;
        s.write(
            "INSERT INTO consumers (declaration, source, version, scanned, progress) VALUES (?1, ?2, ?3, ?4,
                coalesce((SELECT min(?4, min(sequence) - 1) FROM runs
                    WHERE declaration = ?1 AND source = ?2 AND ended_ms IS NULL), ?4))
             ON CONFLICT (declaration, source) DO UPDATE SET
                version = excluded.version, scanned = excluded.scanned, progress = excluded.progress",
            params![new.id, source, new.version, head],
        )?;
    }
    // A source that this version does not subscribe to has no consumer any more.
    s.write("DELETE FROM consumers WHERE declaration = ?1 AND version <> ?2", params![new.id, new.version])?;
    Ok(())
}

pub(super) fn put_changeover(s: Session<'_>, row: &ChangeoverRow) -> Result<(), StoreError> {
    s.write(
        "DELETE FROM changeovers WHERE declaration = ?1 AND token <> ?2",
        params![row.declaration, row.token],
    )?;
    s.write(
        "INSERT INTO changeovers (declaration, version, token, stage) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (declaration) DO UPDATE SET stage = excluded.stage",
        params![row.declaration, row.version, row.token, row.stage.as_str()],
    )?;
    for (source, head) in &row.heads {
        s.write(
            "INSERT INTO changeover_heads (declaration, source, head) VALUES (?1, ?2, ?3)
             ON CONFLICT (declaration, source) DO UPDATE SET head = excluded.head",
            params![row.declaration, source_key(s, source)?, head],
        )?;
    }
    Ok(())
}

pub(super) fn ack_changeover(
    s: Session<'_>,
    declaration: &str,
    token: &str,
    role: &str,
) -> Result<(), StoreError> {
    let sql = "SELECT version FROM changeovers WHERE declaration = ?1 AND token = ?2";
    let there = s.first(sql, [declaration, token], |row| Fields::of("changeovers", row).get::<u32>())?;
    require(there.is_some(), Precondition::Changeover)?;
    s.write(
        "INSERT INTO changeover_acks (declaration, role) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        [declaration, role],
    )?;
    Ok(())
}

pub(super) fn clear_changeover(s: Session<'_>, declaration: &str, token: &str) -> Result<(), StoreError> {
    s.write("DELETE FROM changeovers WHERE declaration = ?1 AND token = ?2", [declaration, token])?;
    Ok(())
}
