//! Where a renderer finds what a snapshot names: immutable things by id, and nothing that could have changed.

use std::collections::HashMap;

use thought_protocol::{EventId, RunId, Sensitive, Sha256Hex, VersionId};

use super::{Snapshot, TurnReference};
use crate::conversation::message_words;
use crate::event::StoredEvent;

/// A source of immutable evidence.
pub trait Evidence {
    /// An event.
    fn event(&self, id: &EventId) -> Option<&StoredEvent>;
    /// The bytes of a document's version.
    fn version(&self, id: &VersionId) -> Option<&[u8]>;
    /// What an activation stored.
    fn declaration(&self, id: &str, version: u32) -> Option<DeclarationBytes<'_>>;
    /// The bytes of an image.
    fn image(&self, sha256: &Sha256Hex) -> Option<&[u8]>;
}

/// What an activation stored.
#[derive(Clone, Copy)]
pub struct DeclarationBytes<'a> {
    /// Canonical bytes of the declaration as written.
    pub declaration: &'a [u8],
    /// Bytes of the prompt.
    pub prompt: &'a [u8],
    /// Canonical bytes of the proposal manifest.
    pub manifest: &'a [u8],
}

impl std::fmt::Debug for DeclarationBytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "DeclarationBytes({} bytes)",
            self.declaration.len() + self.prompt.len() + self.manifest.len()
        )
    }
}

struct StoredDeclaration {
    declaration: Sensitive<Vec<u8>>,
    prompt: Sensitive<Vec<u8>>,
    manifest: Sensitive<Vec<u8>>,
}

/// Evidence that was read ahead. `Debug` counts.
#[derive(Default)]
pub struct LoadedEvidence {
    events: HashMap<EventId, StoredEvent>,
    versions: HashMap<VersionId, Sensitive<Vec<u8>>>,
    declarations: HashMap<(String, u32), StoredDeclaration>,
    images: HashMap<Sha256Hex, Sensitive<Vec<u8>>>,
}

impl LoadedEvidence {
    /// Keeps an event.
    pub fn put_event(&mut self, event: StoredEvent) {
        self.events.insert(event.envelope.id.clone(), event);
    }

    /// Keeps a version's bytes.
    pub fn put_version(&mut self, id: VersionId, content: Sensitive<Vec<u8>>) {
        self.versions.insert(id, content);
    }

    /// Keeps what an activation stored.
    pub fn put_declaration(&mut self, id: &str, version: u32, bytes: DeclarationBytes<'_>) {
        let stored = StoredDeclaration {
            declaration: Sensitive::new(bytes.declaration.to_vec()),
            prompt: Sensitive::new(bytes.prompt.to_vec()),
            manifest: Sensitive::new(bytes.manifest.to_vec()),
        };
        self.declarations.insert((id.to_owned(), version), stored);
    }

    /// Keeps an image's bytes.
    pub fn put_image(&mut self, sha256: Sha256Hex, content: Sensitive<Vec<u8>>) {
        self.images.insert(sha256, content);
    }
}

impl std::fmt::Debug for LoadedEvidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedEvidence")
            .field("events", &self.events.len())
            .field("versions", &self.versions.len())
            .field("declarations", &self.declarations.len())
            .field("images", &self.images.len())
            .finish()
    }
}

impl Evidence for LoadedEvidence {
    fn event(&self, id: &EventId) -> Option<&StoredEvent> {
        self.events.get(id)
    }

    fn version(&self, id: &VersionId) -> Option<&[u8]> {
        self.versions.get(id).map(|content| content.expose().as_slice())
    }

    fn declaration(&self, id: &str, version: u32) -> Option<DeclarationBytes<'_>> {
        self.declarations.get(&(id.to_owned(), version)).map(|stored| DeclarationBytes {
            declaration: stored.declaration.expose(),
            prompt: stored.prompt.expose(),
            manifest: stored.manifest.expose(),
        })
    }

    fn image(&self, sha256: &Sha256Hex) -> Option<&[u8]> {
        self.images.get(sha256).map(|content| content.expose().as_slice())
    }
}

/// What a snapshot names directly, so that a reader of the store can load it ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    /// Messages, outputs, judgments, and the completed event of each answer's run.
    pub events: Vec<EventId>,
    /// The completed events among them: each names proposals that belong to the evidence too.
    pub completed: Vec<EventId>,
    /// Document versions.
    pub versions: Vec<VersionId>,
}

/// The completed event of a run; the run alone decides its id.
pub fn completed_event_id(run: &RunId) -> EventId {
    crate::conversation::completed_id(run)
}

impl Snapshot {
    /// What must be loaded to rebuild the packet, beside the declaration and what
    /// [`proposals_of`] and [`images_of`] name in the loaded events.
    pub fn references(&self) -> References {
        let mut events = Vec::new();
        let mut completed = Vec::new();
        for turn in &self.turns {
            events.push(turn.event().clone());
            if let TurnReference::Assistant { run, judgment, .. } = turn {
                completed.push(completed_event_id(run));
                events.extend(judgment.clone());
            }
        }
        events.extend(completed.iter().cloned());
        let versions = self.documents.iter().map(|document| document.version_id.clone()).collect();
        References { events, completed, versions }
    }
}

/// The proposals that a completed event names; none where it does not decode (rendering refuses it then).
pub fn proposals_of(completed: &StoredEvent) -> Vec<EventId> {
    match completed.payload::<crate::payload::RunCompleted>() {
        Ok(payload) => payload.proposals.into_iter().map(|reference| reference.event).collect(),
        Err(_content_dark) => Vec::new(),
    }
}

/// The images of the current message that are sent, by the names of their blobs.
pub fn images_of(trigger: &StoredEvent) -> Vec<Sha256Hex> {
    match message_words(trigger) {
        Ok(words) => super::render::sent_images(&words).into_iter().map(|image| image.blob_sha256).collect(),
        Err(_content_dark) => Vec::new(),
    }
}
