//! Documents and their versions.

use rusqlite::Row;
use thought_contract::event::SourceName;
use thought_protocol::{DocumentId, VersionId};
use thought_store::StoreError;
use thought_store::row::{DocumentRow, Existence, VersionRow};

use crate::fields::Fields;
use crate::session::Session;

const SELECT: &str =
    "SELECT documents.id, sources.name, documents.path, documents.version, documents.present,
        versions.sha256, versions.byte_count
    FROM documents JOIN sources ON sources.id = documents.source
        JOIN versions ON versions.id = documents.version";

fn decode(row: &Row<'_>) -> Result<DocumentRow, StoreError> {
    let mut fields = Fields::of("documents", row);
    Ok(DocumentRow {
        document: fields.parse()?,
        source: SourceName::new(fields.get::<String>()?),
        path: fields.get()?,
        version: fields.parse()?,
        existence: if fields.get()? { Existence::Present } else { Existence::Removed },
        sha256: fields.parse()?,
        byte_count: fields.get()?,
    })
}

pub(crate) fn documents(s: Session<'_>, source: &SourceName) -> Result<Vec<DocumentRow>, StoreError> {
    s.all(&format!("{SELECT} WHERE sources.name = ?1 ORDER BY documents.path"), [source.as_str()], decode)
}

pub(crate) fn document(s: Session<'_>, id: &DocumentId) -> Result<Option<DocumentRow>, StoreError> {
    s.first(&format!("{SELECT} WHERE documents.id = ?1"), [id.as_str()], decode)
}

/// The document at a path, there or removed.
pub(super) fn at_path(
    s: Session<'_>,
    source: &SourceName,
    path: &str,
) -> Result<Option<DocumentRow>, StoreError> {
    let sql = format!("{SELECT} WHERE sources.name = ?1 AND documents.path = ?2");
    s.first(&sql, [source.as_str(), path], decode)
}

pub(crate) fn version(s: Session<'_>, id: &VersionId) -> Result<Option<VersionRow>, StoreError> {
    let sql = "SELECT versions.id, versions.document, versions.previous, sources.name, versions.path,
            versions.sha256, versions.byte_count, versions.content_type, versions.frontmatter_id, versions.event,
            versions.content
        FROM versions JOIN sources ON sources.id = versions.source WHERE versions.id = ?1";
    s.first(sql, [id.as_str()], |row| {
        let mut fields = Fields::of("versions", row);
        Ok(VersionRow {
            version: fields.parse()?,
            document: fields.parse()?,
            previous: fields.parse_optional()?,
            source: SourceName::new(fields.get::<String>()?),
            path: fields.get()?,
            sha256: fields.parse()?,
            byte_count: fields.get()?,
            content_type: fields.get()?,
            frontmatter_id: fields.get()?,
            event: fields.parse()?,
            content: fields.content()?,
        })
    })
}
