//! A home with a context root and a store, and what a test asks of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use thought_authority::filesystem::{FilesystemConnector, Refreshed, ScanReport, document_id};
use thought_authority::lock::OwnEvidence;
use thought_authority::root::ContextRoot;
use thought_contract::event::SourceName;
use thought_contract::payload::{FileRemoved, FileVersion};
use thought_contract::time::{Clock, Timestamp};
use thought_store::Store;
use thought_store::handle::Reader;
use thought_store::row::{DocumentRow, Existence, VersionRow};
use thought_store_sqlite::{OpenOptions, SqliteStore};

pub(crate) const BYTES_MAX: u64 = 1_024;
pub(crate) const MEMORY: &str = "---\nid: memory\n---\nknows nothing yet\n";

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(1_796_072_531_402)
    }
}

pub(crate) fn token(n: u32) -> String {
    format!("{n:032x}")
}

pub(crate) fn own() -> OwnEvidence {
    OwnEvidence::of_this_process(token(1)).unwrap()
}

pub(crate) struct Home {
    folder: TempDir,
}

/// A connector and the store behind it, as one process has them.
pub(crate) struct Side {
    pub(crate) connector: FilesystemConnector,
    pub(crate) reader: Reader,
    _store: Store,
}

impl Home {
    /// A home whose context root is empty.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(folder.path().join("context")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/memory.md"), "OUTSIDE").unwrap();
        Self { folder }
    }

    /// A home with `memory.md`.
    pub(crate) fn with_memory() -> Self {
        let home = Self::new();
        home.write("memory.md", MEMORY);
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("context").join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(path), bytes).unwrap();
    }

    /// Puts a link to the file outside at a path of the root.
    pub(crate) fn link(&self, path: &str) {
        symlink(self.path().join("outside/memory.md"), self.at(path)).unwrap();
    }

    pub(crate) fn root(&self) -> ContextRoot {
        ContextRoot::open(self.path(), Path::new("context")).unwrap()
    }

    pub(crate) fn side(&self) -> Side {
        self.side_at("context")
    }

    pub(crate) fn side_at(&self, root: &str) -> Side {
        let engine = SqliteStore::open(&self.path().join("thought.db"), OpenOptions::create()).unwrap();
        let store = Store::new(engine, Arc::new(FixedClock));
        let root = Arc::new(ContextRoot::open(self.path(), Path::new(root)).unwrap());
        let reader = store.reader();
        let connector = FilesystemConnector::new(
            root,
            own(),
            BYTES_MAX,
            (store.filesystem(), store.reader()),
            Arc::new(FixedClock),
        );
        Side { connector, reader, _store: store }
    }
}

impl Side {
    /// One whole scan under the lock.
    pub(crate) async fn scan(&self) -> ScanReport {
        let root = self.connector.root();
        let guard = thought_authority::lock::acquire(root, &own(), std::time::Duration::ZERO).unwrap();
        self.connector.scan(&guard).await.unwrap()
    }

    pub(crate) async fn row(&self, path: &str) -> Option<DocumentRow> {
        self.reader.document(document_id(path)).await.unwrap()
    }

    pub(crate) async fn existence(&self, path: &str) -> Option<Existence> {
        self.row(path).await.map(|row| row.existence)
    }

    /// The version that a document's pointer names.
    pub(crate) async fn version(&self, path: &str) -> VersionRow {
        let row = self.row(path).await.expect("the document is known");
        self.reader.version(row.version).await.unwrap().expect("its version is there")
    }

    pub(crate) async fn content(&self, path: &str) -> Vec<u8> {
        self.version(path).await.content.expose().clone()
    }

    /// The events of the context source as words: `path` for a version, `-path` for a removal.
    pub(crate) async fn told(&self) -> Vec<String> {
        let events = self.reader.source_events(SourceName::context(), 0, 10_000).await.unwrap();
        events
            .iter()
            .map(|event| match event.payload::<FileVersion>() {
                Ok(version) => version.path,
                Err(_) => format!("-{}", event.payload::<FileRemoved>().unwrap().path),
            })
            .collect()
    }

    /// Looks until nothing is left to be looked at again.
    pub(crate) async fn settle(&self) {
        for _ in 0..200 {
            if self.connector.refresh().await.unwrap() == Refreshed::Unchanged {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the root never came to rest");
    }
}

/// What a report says, in one line: added, changed, removed, unchanged, refused.
pub(crate) fn line(report: &ScanReport) -> String {
    let refused: Vec<_> = report.refused.iter().map(|(path, why)| format!("{path}={why}")).collect();
    format!(
        "+{:?} ~{:?} -{:?} ={} !{}",
        report.added,
        report.changed,
        report.removed,
        report.unchanged,
        refused.join(",")
    )
    .replace('"', "")
}
