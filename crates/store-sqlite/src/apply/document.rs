//! Keeps scanned versions and moves the documents' pointers.

use rusqlite::params;
use thought_protocol::{DocumentId, VersionId};
use thought_store::command::NewVersion;
use thought_store::{Precondition, StoreError};

use super::event::source_key;
use super::require;
use crate::fields::Fields;
use crate::session::Session;

struct Pointer {
    version: VersionId,
    present: bool,
}

fn pointer(s: Session<'_>, document: &DocumentId) -> Result<Option<Pointer>, StoreError> {
    let sql = "SELECT id, version, present FROM documents WHERE id = ?1";
    s.first(sql, [document.as_str()], |row| {
        let mut fields = Fields::of("documents", row);
        let _: DocumentId = fields.parse()?;
        Ok(Pointer { version: fields.parse()?, present: fields.get()? })
    })
}

/// Keeps a version behind the one before. A removed document goes on from its last version, so that the same bytes make
/// a new version when it comes back.
pub(super) fn put_version(s: Session<'_>, new: &NewVersion) -> Result<(), StoreError> {
    let pointer = pointer(s, &new.document)?;
    let before = pointer.as_ref().map(|pointer| &pointer.version);
    require(before == new.previous.as_ref(), Precondition::DocumentVersion)?;
    let known = s.first("SELECT id FROM versions WHERE id = ?1", [new.version.as_str()], |row| {
        Fields::of("versions", row).get::<String>()
    })?;
    require(known.is_none(), Precondition::DocumentVersion)?;
    let source = source_key(s, &new.source)?;
    s.write(
        "INSERT INTO versions (id, document, previous, source, path, sha256, byte_count, content_type,
            frontmatter_id, event, content)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            new.version.as_str(),
            new.document.as_str(),
            new.previous.as_ref().map(|id| id.as_str()),
            source,
            new.path,
            new.sha256.as_str(),
            new.content.expose().len() as u64,
            new.content_type,
            new.frontmatter_id,
            new.event.as_str(),
            new.content.expose(),
        ],
    )?;
    s.write(
        "INSERT INTO documents (id, source, path, version, present) VALUES (?1, ?2, ?3, ?4, 1)
         ON CONFLICT (id) DO UPDATE SET version = excluded.version, present = 1",
        params![new.document.as_str(), source, new.path, new.version.as_str()],
    )?;
    Ok(())
}

pub(super) fn remove(s: Session<'_>, document: &DocumentId, previous: &VersionId) -> Result<(), StoreError> {
    let pointer = pointer(s, document)?;
    let names_it = pointer.is_some_and(|pointer| pointer.present && pointer.version == *previous);
    require(names_it, Precondition::DocumentVersion)?;
    s.write("UPDATE documents SET present = 0 WHERE id = ?1", [document.as_str()])?;
    Ok(())
}
