//! The frozen context of a run, with the packet that it rebuilds to.

use thought_contract::event::StoredEvent;
use thought_contract::run::snapshot_id;
use thought_contract::snapshot::evidence::{images_of, proposals_of};
use thought_contract::snapshot::{
    DeclarationBytes, Evidence, LoadedEvidence, RebuildError, Snapshot, SnapshotError, rebuild_packet,
};
use thought_protocol::packet::Packet;
use thought_protocol::{EventId, Sha256Hex};
use thought_store::handle::Reader;
use thought_store::row::{DeclarationRow, RunRow};

use super::{Link, Proof, hold, refused};
use thought_store::Images;

/// The snapshot of a run, whose row, uncompressed bytes and names agree; with the hash of those bytes.
pub(crate) async fn snapshot(reader: &Reader, run: &RunRow) -> Proof<(Snapshot, Sha256Hex)> {
    let link = Link::Snapshot;
    let row = reader.snapshot(run.id.clone()).await?.ok_or(refused(link, "missing"))?;
    let id = snapshot_id(&run.id);
    hold(row.id == id && row.run == run.id && run.snapshot.as_ref() == Some(&id), link, "id")?;
    let snapshot = match Snapshot::decode(row.bytes.expose()) {
        Ok(snapshot) => snapshot,
        Err(SnapshotError::Format { .. }) => return Err(refused(link, "format")),
        Err(_content_dark) => return Err(refused(link, "bytes")),
    };
    match snapshot.canonical_bytes() {
        Ok(bytes) => hold(Sha256Hex::of(&bytes) == row.sha256, link, "hash")?,
        Err(_content_dark) => return Err(refused(link, "bytes")),
    }
    hold(snapshot.packet_sha256 == row.packet_sha256, link, "packet-hash")?;
    hold(snapshot.trigger.event == run.trigger, link, "trigger")?;
    hold(
        snapshot.trigger.source == run.source && snapshot.trigger.sequence == run.sequence,
        link,
        "trigger",
    )?;
    hold(
        snapshot.declaration.id.as_str() == run.declaration && snapshot.declaration.version == run.version,
        link,
        "declaration",
    )?;
    Ok((snapshot, row.sha256))
}

/// The packet rebuilds to its hash from the immutable evidence that the snapshot names.
pub(crate) async fn packet(
    reader: &Reader,
    images: &dyn Images,
    snapshot: &Snapshot,
    declaration: &DeclarationRow,
) -> Proof<Packet> {
    let mut loaded = LoadedEvidence::default();
    let references = snapshot.references();
    for id in &references.events {
        put(reader, id, &mut loaded).await?;
    }
    for id in &references.completed {
        let named = loaded.event(id).map(proposals_of).unwrap_or_default();
        for proposal in named {
            put(reader, &proposal, &mut loaded).await?;
        }
    }
    for id in references.versions {
        let version = reader.version(id.clone()).await?.ok_or(refused(Link::Packet, "version-missing"))?;
        loaded.put_version(id, version.content);
    }
    let bytes = DeclarationBytes {
        declaration: declaration.declaration.expose(),
        prompt: declaration.prompt.expose(),
        manifest: declaration.manifest.expose(),
    };
    loaded.put_declaration(&declaration.id, declaration.version, bytes);
    let sent = loaded.event(&snapshot.trigger.event).map(images_of).unwrap_or_default();
    for sha256 in sent {
        let content = images.read(&sha256).await?;
        loaded.put_image(sha256, content);
    }
    match rebuild_packet(snapshot, &loaded) {
        Ok(packet) => Ok(packet),
        Err(error) => Err(refused(Link::Packet, reason(&error))),
    }
}

async fn put(reader: &Reader, id: &EventId, loaded: &mut LoadedEvidence) -> Proof<()> {
    let event: StoredEvent = reader.event(id.clone()).await?.ok_or(refused(Link::Packet, "event-missing"))?;
    loaded.put_event(event);
    Ok(())
}

const fn reason(error: &RebuildError) -> &'static str {
    match error {
        RebuildError::EventMissing { .. } => "event-missing",
        RebuildError::EventChanged { .. } => "event-changed",
        RebuildError::VersionMissing { .. } => "version-missing",
        RebuildError::VersionChanged { .. } => "version-changed",
        RebuildError::DeclarationMissing { .. } => "declaration-missing",
        RebuildError::DeclarationChanged { .. } => "declaration-changed",
        RebuildError::Prompt => "prompt",
        RebuildError::Image { .. } => "image",
        RebuildError::Evidence(_) | RebuildError::Completed(_) => "evidence",
        RebuildError::PacketChanged { .. } => "packet-changed",
        RebuildError::Canonical(_) => "bytes",
    }
}
