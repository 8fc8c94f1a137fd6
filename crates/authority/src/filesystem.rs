//! The connector of the context root: files become scanned, immutable versions with an event each.
//!
//! It reads under the root lock, never writes a document, and never decides what a document is for. A file that cannot
//! be admitted (too large, a link, no regular file) keeps its last version in the store and is named in the report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use thought_contract::draft::{self, DraftError};
use thought_contract::event::SourceName;
use thought_contract::frontmatter;
use thought_contract::payload::{FileRemoved, FileVersion};
use thought_contract::time::Clock;
use thought_protocol::limits::{LABEL_CHARACTERS_MAX, SCAN_LOCK_WAIT_SECONDS_MAX};
use thought_protocol::{DocumentId, EventId, Sensitive, Sha256Hex, VersionId};
use thought_store::command::NewVersion;
use thought_store::handle::{Filesystem, Reader};
use thought_store::row::{DocumentRow, Existence};
use thought_store::{Precondition, StoreError};
use tokio::time::{Instant, timeout_at};

use crate::limits::{POINTER_TRIES_MAX, SECOND_LOOK_PAUSE};
use crate::lock::{self, LockError, OwnEvidence, RootGuard};
use crate::root::{ContextRoot, ReadError, RootError, look};
use crate::walk::{self, Looks, Read, WalkError};

/// A scan that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The root.
    #[error("scan the context root")]
    Root(#[from] RootError),
    /// Its lock; never [`LockError::Root`].
    #[error("scan the context root")]
    Lock(#[source] LockError),
    /// Its folders.
    #[error("scan the context root")]
    Walk(#[from] WalkError),
    /// The store.
    #[error("scan the context root")]
    Store(#[from] StoreError),
    /// An event that has no canonical form.
    #[error("scan the context root")]
    Draft(#[from] DraftError),
    /// The scan's thread is gone.
    #[error("scan the context root: its thread ended")]
    Thread,
}

impl From<LockError> for ScanError {
    /// A root that cannot be reached is that, whoever met it first.
    fn from(error: LockError) -> Self {
        match error {
            LockError::Root(root) => Self::Root(root),
            other => Self::Lock(other),
        }
    }
}

/// What a scan found; paths are relative to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// New documents.
    pub added: Vec<String>,
    /// Documents with a new version.
    pub changed: Vec<String>,
    /// Documents that are gone.
    pub removed: Vec<String>,
    /// Documents as they were.
    pub unchanged: u64,
    /// Files that cannot be admitted, each with a reason code. Their last version stays.
    pub refused: Vec<(String, &'static str)>,
}

/// What became of a look at the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing had changed.
    Unchanged,
    /// Something had or may have, and it was scanned.
    Scanned(ScanReport),
    /// Something may have, and another holds the lock.
    LockHeld,
}

/// The connector.
#[derive(Clone)]
pub struct FilesystemConnector {
    inner: Arc<Inner>,
}

struct Inner {
    root: Arc<ContextRoot>,
    evidence: OwnEvidence,
    bytes_max: u64,
    store: Filesystem,
    reader: Reader,
    clock: Arc<dyn Clock>,
    seen: Mutex<Option<Looks>>,
    scanning: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for FilesystemConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilesystemConnector")
            .field("bytes_max", &self.inner.bytes_max)
            .finish_non_exhaustive()
    }
}

/// A scan under way.
#[derive(Default)]
struct Progress {
    report: ScanReport,
    /// Documents of the store that the walk has not come by.
    known: BTreeMap<String, DocumentRow>,
    /// Documents that seem gone or emptied, to be looked at once more.
    doubtful: BTreeSet<String>,
    looks: Looks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Glance {
    First,
    Second,
}

impl FilesystemConnector {
    /// A connector of one root. `bytes_max` bounds one document.
    pub fn new(
        root: Arc<ContextRoot>,
        evidence: OwnEvidence,
        bytes_max: u64,
        (store, reader): (Filesystem, Reader),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let inner = Inner {
            root,
            evidence,
            bytes_max,
            store,
            reader,
            clock,
            seen: Mutex::new(None),
            scanning: tokio::sync::Mutex::new(()),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The root.
    pub fn root(&self) -> &Arc<ContextRoot> {
        &self.inner.root
    }

    /// Scans if something changed since the last scan of this connector, waiting at most 5 s for another scan or
    /// whoever else holds the lock. Dropped, it leaves the lock free.
    ///
    /// # Errors
    /// [`ScanError`]; a lock that stays held is no error.
    pub async fn refresh(&self) -> Result<Refreshed, ScanError> {
        if !self.changed() {
            return Ok(Refreshed::Unchanged);
        }
        let inner = &self.inner;
        let deadline = Instant::now() + Duration::from_secs(SCAN_LOCK_WAIT_SECONDS_MAX);
        let Ok(_one_at_a_time) = timeout_at(deadline, inner.scanning.lock()).await else {
            return Ok(Refreshed::LockHeld);
        };
        if !self.changed() {
            return Ok(Refreshed::Unchanged);
        }
        let wait = deadline.saturating_duration_since(Instant::now());
        match lock::acquire_within(&inner.root, &inner.evidence, wait).await {
            Ok(guard) => Ok(Refreshed::Scanned(self.scan(&guard).await?)),
            Err(LockError::Held) => Ok(Refreshed::LockHeld),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether something may have changed since the last scan: a look without a lock. Before the first scan it is, and
    /// once more after a scan that came so soon behind a change that another could hide behind the same time.
    pub fn changed(&self) -> bool {
        let seen = self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = seen.as_ref() else { return true };
        let Ok(folder) = self.inner.root.directory() else { return true };
        seen.iter().any(|(path, before)| match (before, look(&folder, path)) {
            (Some(before), Ok(now)) => now != *before,
            _ => true,
        })
    }

    /// Scans the root. The guard is the caller's proof that nobody else writes, and names the folder that is scanned.
    ///
    /// # Errors
    /// [`ScanError`]; what was appended before the failure stays.
    pub async fn scan(&self, guard: &RootGuard) -> Result<ScanReport, ScanError> {
        guard.check(&self.inner.root)?;
        let folder = guard.folder().clone();
        let listing = blocking(move || walk::list(&folder)).await??;
        let known = self.inner.reader.documents(SourceName::context()).await?;
        let mut progress = Progress { looks: listing.looks, ..Progress::default() };
        progress.known = known.into_iter().map(|row| (row.path.clone(), row)).collect();
        progress.report.refused = listing.refused;
        for (path, _) in &progress.report.refused {
            progress.known.remove(path);
        }
        for (folder, reason) in &listing.barred {
            let below = format!("{folder}/");
            let is_below = |path: &String, row: &DocumentRow| {
                path.starts_with(&below) && row.existence == Existence::Present
            };
            let kept: Vec<_> = progress.known.extract_if(.., |path, row| is_below(path, row)).collect();
            progress.report.refused.extend(kept.into_iter().map(|(path, _)| (path, *reason)));
        }
        self.read(guard, listing.files, Glance::First, &mut progress).await?;

        let is_there = |row: &&DocumentRow| row.existence == Existence::Present;
        let missing = progress.known.values().filter(is_there).map(|row| row.path.clone());
        let mut doubtful = std::mem::take(&mut progress.doubtful);
        doubtful.extend(missing);
        if !doubtful.is_empty() {
            tokio::time::sleep(SECOND_LOOK_PAUSE).await;
            self.read(guard, doubtful.into_iter().collect(), Glance::Second, &mut progress).await?;
        }
        for look in progress.looks.values_mut() {
            *look = look.filter(|look| look.is_settled_before(guard.taken()));
        }
        *self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress.looks);
        Ok(progress.report)
    }

    /// Records a version that stood in the root until somebody saved over it, so that what is scanned next follows it. The
    /// caller knows by evidence of its own that it stood; the guard is the proof that nobody else scans.
    ///
    /// # Errors
    /// [`ScanError`].
    pub(crate) async fn record(&self, guard: &RootGuard, path: &str, bytes: &[u8]) -> Result<(), ScanError> {
        guard.check(&self.inner.root)?;
        let row = self.inner.reader.document(document_id(path)).await?;
        self.admit(path.to_owned(), row, bytes, &mut ScanReport::default()).await
    }

    /// Reads these documents and settles each, a batch at a time.
    async fn read(
        &self,
        guard: &RootGuard,
        paths: Vec<String>,
        glance: Glance,
        progress: &mut Progress,
    ) -> Result<(), ScanError> {
        let paths: Arc<[String]> = paths.into();
        let mut first = 0;
        while first < paths.len() {
            let (folder, paths, bytes_max) = (guard.folder().clone(), paths.clone(), self.inner.bytes_max);
            let batch = blocking(move || walk::read_batch(&folder, &paths, first, bytes_max)).await?;
            first += batch.len();
            for read in batch {
                self.settle(read, glance, progress).await?;
            }
        }
        Ok(())
    }

    async fn settle(&self, read: Read, glance: Glance, progress: &mut Progress) -> Result<(), ScanError> {
        let Read { path, outcome, look } = read;
        match (outcome, glance) {
            // It went after it was listed: it is among the missing, if it was ever known.
            (Err(ReadError::Absent), Glance::First) => return Ok(()),
            (Err(ReadError::Absent), Glance::Second) => {
                if let Some(row) = progress.known.remove(&path)
                    && self.remove(&row).await?
                {
                    progress.report.removed.push(path);
                }
                return Ok(());
            }
            (Err(error), _) => {
                progress.known.remove(&path);
                progress.report.refused.push((path.clone(), error.reason()));
            }
            (Ok(bytes), Glance::First)
                if bytes.expose().is_empty() && has_content(progress.known.get(&path)) =>
            {
                progress.doubtful.insert(path.clone());
            }
            (Ok(bytes), _) => {
                let row = progress.known.remove(&path);
                self.admit(path.clone(), row, bytes.expose(), &mut progress.report).await?;
            }
        }
        progress.looks.insert(path, look);
        Ok(())
    }

    async fn admit(
        &self,
        path: String,
        mut row: Option<DocumentRow>,
        bytes: &[u8],
        report: &mut ScanReport,
    ) -> Result<(), ScanError> {
        let sha256 = Sha256Hex::of(bytes);
        let is_new = row.as_ref().is_none_or(|row| row.existence == Existence::Removed);
        for _ in 0..POINTER_TRIES_MAX {
            if row.as_ref().is_some_and(|row| row.existence == Existence::Present && row.sha256 == sha256) {
                report.unchanged += 1;
                return Ok(());
            }
            match self.append(&path, row.as_ref(), &sha256, bytes).await {
                Ok(_) => {
                    let list = if is_new { &mut report.added } else { &mut report.changed };
                    list.push(path);
                    return Ok(());
                }
                // Another process scanned the same file first: look at what it left.
                Err(ScanError::Store(StoreError::Precondition(Precondition::DocumentVersion))) => {
                    row = self.inner.reader.document(document_id(&path)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Precondition(Precondition::DocumentVersion).into())
    }

    async fn append(
        &self,
        path: &str,
        row: Option<&DocumentRow>,
        sha256: &Sha256Hex,
        bytes: &[u8],
    ) -> Result<EventId, ScanError> {
        let document = document_id(path);
        let previous = row.map(|row| row.version.clone());
        let version = version_id(&document, previous.as_ref(), sha256);
        let is_text = std::str::from_utf8(bytes).is_ok();
        let content_type = if is_text { "text/markdown" } else { "application/octet-stream" };
        let frontmatter_id = identity_in(bytes);
        let payload = FileVersion {
            document_id: document.clone(),
            version_id: version.clone(),
            previous_version_id: previous.clone(),
            path: path.to_owned(),
            sha256: sha256.clone(),
            byte_count: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            content_type: content_type.to_owned(),
            frontmatter_id: frontmatter_id.clone(),
        };
        let event = draft::file_version(&payload, self.inner.clock.now())?;
        let new = NewVersion {
            document,
            version,
            previous,
            source: SourceName::context(),
            path: path.to_owned(),
            sha256: sha256.clone(),
            content_type: content_type.to_owned(),
            frontmatter_id,
            content: Sensitive::new(bytes.to_vec()),
            event: event.id().clone(),
        };
        let appended = self.inner.store.version(event, new).await?;
        tracing::info!(event = %appended.id, bytes = bytes.len(), "document version scanned");
        Ok(appended.id)
    }

    /// Whether the removal is this scan's own.
    async fn remove(&self, row: &DocumentRow) -> Result<bool, ScanError> {
        let payload = FileRemoved {
            document_id: row.document.clone(),
            previous_version_id: row.version.clone(),
            path: row.path.clone(),
        };
        let event = draft::file_removed(&payload, self.inner.clock.now())?;
        match self.inner.store.removed(event, row.document.clone(), row.version.clone()).await {
            Ok(appended) => {
                tracing::info!(event = %appended.id, "document removed");
                Ok(true)
            }
            // Another process saw the removal, or a newer version, first.
            Err(StoreError::Precondition(Precondition::DocumentVersion)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The identity of a document: its source and path.
pub fn document_id(path: &str) -> DocumentId {
    DocumentId::of("document", &[json!(SourceName::context()), json!(path)])
}

/// The identity of a version: what it follows and what it holds, so that going back to old bytes is a version of its own.
pub fn version_id(document: &DocumentId, previous: Option<&VersionId>, sha256: &Sha256Hex) -> VersionId {
    VersionId::of("version", &[json!(document), json!(previous), json!(sha256)])
}

fn has_content(row: Option<&DocumentRow>) -> bool {
    row.is_some_and(|row| row.existence == Existence::Present && row.byte_count > 0)
}

/// The id in valid frontmatter, if it is one that a contract can hold.
fn identity_in(bytes: &[u8]) -> Option<String> {
    match frontmatter::read(bytes) {
        Ok(found) if found.id.chars().count() <= LABEL_CHARACTERS_MAX && !found.id.contains('\0') => {
            Some(found.id)
        }
        _ => None,
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ScanError> {
    // What a panic said is not passed on: it might hold a document's text.
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(_) => Err(ScanError::Thread),
    }
}
