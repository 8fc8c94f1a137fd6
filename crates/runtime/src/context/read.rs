//! The reads of a context: documents and images as they stand, and everything that a stored snapshot names.

use std::collections::HashMap;

use thought_contract::declaration::Declaration;
use thought_contract::event::StoredEvent;
use thought_contract::snapshot::build::{DocumentEvidence, IDENTITY_PATH};
use thought_contract::snapshot::evidence::{images_of, proposals_of};
use thought_contract::snapshot::{
    DocumentReference, Evidence, LoadedEvidence, RebuildError, Snapshot, rebuild_packet,
};
use thought_protocol::packet::Packet;
use thought_protocol::{EventId, RunId, Sha256Hex, VersionId};
use thought_store::handle::Reader;
use thought_store::row::{DocumentRow, VersionRow};

use super::{ContextError, evidence};
use thought_store::Images;

pub(super) enum DocumentSet {
    Found(FoundDocuments),
    IdentityMissing,
}

pub(super) struct FoundDocuments {
    pub(super) present: Vec<DocumentEvidence>,
    pub(super) missing: Vec<String>,
}

/// The declared documents as their pointers stand, in the order of the declaration.
pub(super) fn documents(
    declaration: &Declaration,
    rows: Vec<(DocumentRow, Option<VersionRow>)>,
) -> Result<DocumentSet, ContextError> {
    let mut found = FoundDocuments { present: Vec::new(), missing: Vec::new() };
    let Some(declared) = declaration.documents() else {
        return Ok(DocumentSet::Found(found));
    };
    let mut versions: HashMap<String, Option<VersionRow>> =
        rows.into_iter().map(|(row, version)| (row.path, version)).collect();
    for path in &declared.paths {
        match versions.remove(path) {
            Some(version) => found.present.push(document(version.ok_or(ContextError::VersionMissing)?)),
            None if path == IDENTITY_PATH => return Ok(DocumentSet::IdentityMissing),
            None => found.missing.push(path.clone()),
        }
    }
    Ok(DocumentSet::Found(found))
}

fn document(row: VersionRow) -> DocumentEvidence {
    DocumentEvidence {
        reference: DocumentReference {
            source: row.source,
            document_id: row.document,
            path: row.path,
            version_id: row.version,
            sha256: row.sha256,
            content_type: row.content_type,
            byte_count: row.byte_count,
        },
        frontmatter_id: row.frontmatter_id,
        content: row.content,
    }
}

/// Loads the images of the current message that are sent.
pub(super) async fn images(
    source: &dyn Images,
    trigger: &StoredEvent,
    loaded: &mut LoadedEvidence,
) -> Result<(), ContextError> {
    for sha256 in images_of(trigger) {
        let content = source.read(&sha256).await?;
        loaded.put_image(sha256, content);
    }
    Ok(())
}

/// The frozen context of a run with the packet that it rebuilds to, equal in every byte to the one that was sent.
///
/// # Errors
/// [`ContextError`] when the run has no snapshot, evidence is missing, or the packet would be another.
pub async fn rebuild(
    reader: &Reader,
    source: &dyn Images,
    run: &RunId,
) -> Result<(Snapshot, Packet), ContextError> {
    let snapshot = stored_snapshot(reader, run).await?;
    let mut loaded = LoadedEvidence::default();
    let references = snapshot.references();
    for id in &references.events {
        load_event(reader, id, &mut loaded).await?;
    }
    for id in &references.completed {
        if let Some(completed) = loaded.event(id).cloned() {
            for proposal in proposals_of(&completed) {
                load_event(reader, &proposal, &mut loaded).await?;
            }
        }
    }
    for id in references.versions {
        load_version(reader, id, &mut loaded).await?;
    }
    load_declaration(reader, &snapshot, &mut loaded).await?;
    if let Some(trigger) = loaded.event(&snapshot.trigger.event).cloned() {
        images(source, &trigger, &mut loaded).await?;
    }
    let packet = rebuild_packet(&snapshot, &loaded)?;
    Ok((snapshot, packet))
}

/// The snapshot of a run, checked against the row that keeps it.
async fn stored_snapshot(reader: &Reader, run: &RunId) -> Result<Snapshot, ContextError> {
    let missing = || ContextError::RunMissing { run: run.clone() };
    let row = reader.run(run.clone()).await?.ok_or_else(missing)?;
    let unfrozen = || ContextError::SnapshotMissing { run: run.clone() };
    let stored = reader.snapshot(run.clone()).await?.ok_or_else(unfrozen)?;
    let snapshot = Snapshot::decode(stored.bytes.expose())?;
    let own = Sha256Hex::of(&snapshot.canonical_bytes()?) == stored.sha256
        && snapshot.packet_sha256 == stored.packet_sha256
        && snapshot.trigger.event == row.trigger
        && snapshot.declaration.id.as_str() == row.declaration
        && snapshot.declaration.version == row.version;
    if own { Ok(snapshot) } else { Err(ContextError::SnapshotForeign { run: run.clone() }) }
}

async fn load_event(reader: &Reader, id: &EventId, loaded: &mut LoadedEvidence) -> Result<(), ContextError> {
    let event = reader.event(id.clone()).await?;
    loaded.put_event(event.ok_or_else(|| RebuildError::EventMissing { id: id.clone() })?);
    Ok(())
}

async fn load_version(
    reader: &Reader,
    id: VersionId,
    loaded: &mut LoadedEvidence,
) -> Result<(), ContextError> {
    let version = reader.version(id.clone()).await?;
    let version = version.ok_or_else(|| RebuildError::VersionMissing { id: id.clone() })?;
    loaded.put_version(id, version.content);
    Ok(())
}

/// The declaration version that was active when the snapshot was made.
async fn load_declaration(
    reader: &Reader,
    snapshot: &Snapshot,
    loaded: &mut LoadedEvidence,
) -> Result<(), ContextError> {
    let named = &snapshot.declaration;
    let active = reader.declaration(named.id.as_str().to_owned()).await?;
    let stored = match active.filter(|row| row.version == named.version) {
        Some(row) => Some(row),
        None => {
            let all = reader.declarations().await?;
            all.into_iter().find(|row| row.id == named.id.as_str() && row.version == named.version)
        }
    };
    if let Some(row) = stored {
        evidence::put_declaration(loaded, &row);
    }
    Ok(())
}
