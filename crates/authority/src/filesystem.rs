//! The connector of the context root: files become scanned, immutable versions with an event each.
//!
//! It reads under the root lock, never writes a document, and never decides what a document is for. A file that cannot
//! be admitted (too large, a link, no regular file) keeps its last version in the store and is named in the report.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{Dir, FileType, OFlags, Stat};
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

use crate::lock::{self, LockError, OwnEvidence, RootGuard};
use crate::root::{ContextRoot, ReadError, RootError, look, open_beneath, read_beneath};

/// Folders below the root that are looked into.
const DEPTH_MAX: usize = 4;
/// Documents of one root.
const DOCUMENTS_MAX: usize = 256;
/// Tries of one document whose pointer another process moves meanwhile.
const POINTER_TRIES_MAX: u32 = 4;

/// A scan that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The root.
    #[error("scan the context root")]
    Root(#[from] RootError),
    /// Its lock.
    #[error("scan the context root")]
    Lock(#[from] LockError),
    /// The store.
    #[error("scan the context root")]
    Store(#[from] StoreError),
    /// An event that has no canonical form.
    #[error("scan the context root")]
    Draft(#[from] DraftError),
    /// More documents than a root may hold.
    #[error("scan the context root: it holds more than {DOCUMENTS_MAX} documents")]
    TooManyDocuments,
    /// The scan's thread is gone.
    #[error("scan the context root: its thread ended")]
    Thread,
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
    /// Files that cannot be admitted, each with a reason code.
    pub refused: Vec<(String, &'static str)>,
}

/// What became of a look at the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing had changed.
    Unchanged,
    /// Something had, and it was scanned.
    Scanned(ScanReport),
    /// Something may have, and another process holds the lock.
    LockHeld,
}

/// What a file or folder looked like: enough to see that it changed without reading it.
type Look = (u64, u64, i64, i64, i64, i64);

fn look_of(stat: &Stat) -> Look {
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let mtime_ns = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    let ctime_ns = i64::try_from(stat.st_ctime_nsec).unwrap_or_default();
    (stat.st_ino, size, stat.st_mtime, mtime_ns, stat.st_ctime, ctime_ns)
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
    seen: Mutex<Option<BTreeMap<String, Look>>>,
    scanning: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for FilesystemConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilesystemConnector").field("bytes_max", &self.inner.bytes_max).finish_non_exhaustive()
    }
}

/// A file of the root as a walk found it.
struct Found {
    path: String,
    outcome: Result<Vec<u8>, ReadError>,
}

struct Walk {
    files: Vec<Found>,
    seen: BTreeMap<String, Look>,
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

    /// Scans if something changed since the last scan of this connector, waiting for the lock at most 5 s.
    ///
    /// # Errors
    /// [`ScanError`]; a lock that stays held is no error.
    pub async fn refresh(&self) -> Result<Refreshed, ScanError> {
        if !self.changed() {
            return Ok(Refreshed::Unchanged);
        }
        let _one_at_a_time = self.inner.scanning.lock().await;
        if !self.changed() {
            return Ok(Refreshed::Unchanged);
        }
        let inner = self.inner.clone();
        let wait = Duration::from_secs(SCAN_LOCK_WAIT_SECONDS_MAX);
        let taken = blocking(move || lock::acquire(&inner.root, &inner.evidence, wait)).await?;
        match taken {
            Ok(guard) => Ok(Refreshed::Scanned(self.scan(&guard).await?)),
            Err(LockError::Held) => Ok(Refreshed::LockHeld),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether something may have changed since the last scan: a look without a lock. Before the first scan it is.
    pub fn changed(&self) -> bool {
        let seen = self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = seen.as_ref() else { return true };
        let Ok(directory) = self.inner.root.directory() else { return true };
        seen.iter().any(|(path, before)| match look(&directory, path) {
            Ok(stat) => look_of(&stat) != *before,
            Err(_) => true,
        })
    }

    /// Scans the root. Holding the guard is the caller's proof that nobody else writes.
    ///
    /// # Errors
    /// [`ScanError`]; what was appended before the failure stays.
    pub async fn scan(&self, _guard: &RootGuard) -> Result<ScanReport, ScanError> {
        let inner = self.inner.clone();
        let walk = blocking(move || walk(&inner.root, inner.bytes_max)).await??;
        let source = SourceName::context();
        let known = self.inner.reader.documents(source).await?;
        let mut known: BTreeMap<String, DocumentRow> =
            known.into_iter().map(|row| (row.path.clone(), row)).collect();
        let mut report = ScanReport::default();
        for Found { path, outcome } in walk.files {
            let row = known.remove(&path);
            match outcome {
                Ok(bytes) => self.admit(path, row, bytes, &mut report).await?,
                Err(error) => report.refused.push((path, error.reason())),
            }
        }
        for (path, row) in known {
            if row.existence == Existence::Present {
                self.remove(&row).await?;
                report.removed.push(path);
            }
        }
        *self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(walk.seen);
        Ok(report)
    }

    async fn admit(
        &self,
        path: String,
        row: Option<DocumentRow>,
        bytes: Vec<u8>,
        report: &mut ScanReport,
    ) -> Result<(), ScanError> {
        let sha256 = Sha256Hex::of(&bytes);
        let is_same = |row: &DocumentRow| row.existence == Existence::Present && row.sha256 == sha256;
        if row.as_ref().is_some_and(is_same) {
            report.unchanged += 1;
            return Ok(());
        }
        let is_new = row.as_ref().is_none_or(|row| row.existence == Existence::Removed);
        let mut row = row;
        for _ in 0..POINTER_TRIES_MAX {
            match self.append(&path, row.as_ref(), &sha256, &bytes).await {
                Ok(_) => {
                    let list = if is_new { &mut report.added } else { &mut report.changed };
                    list.push(path);
                    return Ok(());
                }
                // Another process scanned the same file first: look at what it left.
                Err(ScanError::Store(StoreError::Precondition(Precondition::DocumentVersion))) => {
                    row = self.inner.reader.document(document_id(&path)).await?;
                    if row.as_ref().is_some_and(is_same) {
                        report.unchanged += 1;
                        return Ok(());
                    }
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
        let frontmatter_id = frontmatter::read(bytes).ok().map(|found| found.id);
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

    async fn remove(&self, row: &DocumentRow) -> Result<(), ScanError> {
        let payload = FileRemoved {
            document_id: row.document.clone(),
            previous_version_id: row.version.clone(),
            path: row.path.clone(),
        };
        let event = draft::file_removed(&payload, self.inner.clock.now())?;
        match self.inner.store.removed(event, row.document.clone(), row.version.clone()).await {
            Ok(appended) => {
                tracing::info!(event = %appended.id, "document removed");
                Ok(())
            }
            // Another process saw the removal, or a newer version, first.
            Err(StoreError::Precondition(Precondition::DocumentVersion)) => Ok(()),
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

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ScanError> {
    tokio::task::spawn_blocking(work).await.map_err(|_joined| ScanError::Thread)
}

fn walk(root: &ContextRoot, bytes_max: u64) -> Result<Walk, ScanError> {
    let directory = root.directory()?;
    let mut walk = Walk { files: Vec::new(), seen: BTreeMap::new() };
    folder(&directory, "", (0, bytes_max), &mut walk)?;
    walk.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walk)
}

fn folder(
    root: &OwnedFd,
    prefix: &str,
    (depth, bytes_max): (usize, u64),
    walk: &mut Walk,
) -> Result<(), ScanError> {
    let at = if prefix.is_empty() { "." } else { prefix.trim_end_matches('/') };
    let io = |errno| ScanError::Root(RootError::Io(errno));
    let opened = match open_beneath(root, at, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(opened) => opened,
        // It was swapped or removed since it was listed: the next look finds what is there then.
        Err(_) if depth > 0 => return Ok(()),
        Err(_) => return Err(ScanError::Root(RootError::NotDirectory)),
    };
    let stat = rustix::fs::fstat(&opened).map_err(io)?;
    walk.seen.insert(at.to_owned(), look_of(&stat));
    for entry in Dir::new(opened).map_err(io)? {
        let entry = entry.map_err(io)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{prefix}{name}");
        let Ok(stat) = look(root, &path) else { continue };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth + 1 < DEPTH_MAX => {
                folder(root, &format!("{path}/"), (depth + 1, bytes_max), walk)?;
            }
            FileType::Directory => {}
            _ if !is_document(&path) => {}
            _ => {
                if walk.files.len() == DOCUMENTS_MAX {
                    return Err(ScanError::TooManyDocuments);
                }
                let outcome = read_beneath(root, &path, bytes_max);
                let seen = outcome.as_ref().map_or(stat, |(_, read)| *read);
                walk.seen.insert(path.clone(), look_of(&seen));
                walk.files.push(Found { path, outcome: outcome.map(|(bytes, _)| bytes) });
            }
        }
    }
    Ok(())
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md") && path.chars().count() <= LABEL_CHARACTERS_MAX && path.chars().all(|c| !c.is_control())
}
