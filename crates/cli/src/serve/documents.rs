//! The documents' adapter: the connector of the context root behind the runtime's port.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use thought_authority::filesystem::{FilesystemConnector, Refreshed, ScanError, ScanReport};
use thought_authority::lock::{self, LockError, OwnEvidence};
use thought_authority::root::ContextRoot;
use thought_authority::watch::RootWatch;
use thought_runtime::port::{Documents, DocumentsError};
use thought_store::{BoxFuture, Store};
use thought_telegram::stop::Stop;
use tokio::task::JoinSet;

use crate::compose::SystemClock;
use crate::exit::{Exit, Failure, chain};
use crate::home::Home;
use crate::print::Printer;

/// The documents of a home.
#[derive(Debug)]
pub(super) struct ScannedDocuments {
    connector: FilesystemConnector,
    evidence: OwnEvidence,
}

impl ScannedDocuments {
    /// Holds the context root of a home.
    ///
    /// # Errors
    /// [`Failure`]: a root that is a link or no folder (3).
    pub(super) fn open(home: &Home, store: &Store) -> Result<Self, Failure> {
        let config = &home.config.context;
        let root = ContextRoot::open(&home.path, &config.root)
            .map_err(|error| Failure::refused(error.reason(), chain(&error)))?;
        let evidence = OwnEvidence::of_this_process(token()?).map_err(|error| Failure::internal(&error))?;
        let handles = (store.filesystem(), store.reader());
        let connector = FilesystemConnector::new(
            Arc::new(root),
            evidence.clone(),
            config.max_file_bytes,
            handles,
            Arc::new(SystemClock),
        );
        Ok(Self { connector, evidence })
    }

    /// The scan at start.
    ///
    /// # Errors
    /// [`Failure`] when the root cannot be scanned; a lock that stays held is a remark.
    pub(super) async fn first_scan(&self, printer: Printer) -> Result<(), Failure> {
        match self.connector.refresh().await {
            Ok(Refreshed::Scanned(report)) => {
                for (path, reason) in &report.refused {
                    printer.remark(&format!("document {path} is not admitted: {reason}"));
                }
                Ok(())
            }
            Ok(Refreshed::Unchanged) => Ok(()),
            Ok(Refreshed::LockHeld) => {
                printer.remark("another process holds the lock of the context root; it is scanned later");
                Ok(())
            }
            Err(error) => Err(failure(&error)),
        }
    }

    /// Scans after every notification, until told to stop.
    pub(super) fn follow(self: Arc<Self>, tasks: &mut JoinSet<Result<(), Failure>>, stop: Stop) {
        let root = self.connector.root().clone();
        let watch = match RootWatch::start(&root) {
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::warn!(target: "thought::documents", error = %error, "edits are seen at the next turn only");
                None
            }
        };
        tasks.spawn(async move {
            let Some(watch) = watch else {
                stop.said().await;
                return Ok(());
            };
            let mut moved = watch.moved();
            // What moved between the scan at start and the watch was told to nobody.
            self.look().await;
            loop {
                tokio::select! {
                    () = stop.said() => return Ok(()),
                    changed = moved.changed() => {
                        if changed.is_err() {
                            stop.said().await;
                            return Ok(());
                        }
                    }
                }
                self.look().await;
            }
        });
    }

    async fn look(&self) {
        if let Err(error) = self.connector.refresh().await {
            tracing::warn!(target: "thought::documents", error = %chain(&error), "scan failed");
        }
    }
}

impl Documents for ScannedDocuments {
    fn refresh(&self) -> BoxFuture<'_, Result<(), DocumentsError>> {
        Box::pin(async move {
            match self.connector.refresh().await {
                // Another process writes: the versions that the store names now are whole, and are what counts.
                Ok(Refreshed::Unchanged | Refreshed::Scanned(_) | Refreshed::LockHeld) => Ok(()),
                Err(error) => {
                    tracing::warn!(target: "thought::documents", error = %chain(&error), "scan failed");
                    Err(DocumentsError { code: code(&error) })
                }
            }
        })
    }
}

const fn code(error: &ScanError) -> &'static str {
    match error {
        ScanError::Root(root) => root.reason(),
        ScanError::Lock(LockError::Held) => "lock-held",
        ScanError::Lock(LockError::RootMoved) => "root-moved",
        ScanError::Lock(LockError::CannotWrite(_)) => "write-failed",
        ScanError::Lock(_) => "lock-invalid",
        ScanError::Walk(_) => "unwalkable",
        ScanError::Store(_) => "store",
        ScanError::Draft(_) => "draft",
        ScanError::Thread => "thread",
    }
}

/// 32 hex digits that nobody else has.
fn token() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(16) => Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        Ok(_) | Err(_) => {
            Err(Failure::new(Exit::Machine, "no-randomness", "ask the system for random bytes"))
        }
    }
}

fn failure(error: &ScanError) -> Failure {
    let message = chain(error);
    match error {
        ScanError::Lock(LockError::Held) => Failure::new(Exit::Conflict, "lock-held", message),
        ScanError::Lock(LockError::RootMoved) => Failure::new(Exit::Conflict, "root-moved", message),
        ScanError::Lock(LockError::CannotWrite(_)) => Failure::new(Exit::Machine, "cannot-write", message)
            .hint("see that the disk that holds the home can be written and has some space left"),
        ScanError::Lock(LockError::Invalid { .. }) => Failure::refused("lock-invalid", message)
            .hint("look who wrote .thought.lock in the context root; empty it once no process uses it"),
        ScanError::Root(root) => Failure::refused(root.reason(), message),
        ScanError::Walk(_) => Failure::refused("unwalkable", message),
        _ => Failure::internal(error),
    }
}

/// `scan`.
///
/// # Errors
/// [`Failure`]: the lock stays held (4) or is invalid (3), a root that is a link or no folder (3).
pub async fn scan_once(home: &Home, store: &Store, printer: Printer) -> Result<(), Failure> {
    let documents = ScannedDocuments::open(home, store)?;
    let wait = Duration::from_secs(thought_protocol::limits::SCAN_LOCK_WAIT_SECONDS_MAX);
    let taken = lock::acquire_within(documents.connector.root(), &documents.evidence, wait).await;
    let guard = taken.map_err(|error| failure(&ScanError::Lock(error)))?;
    let report = documents.connector.scan(&guard).await.map_err(|error| failure(&error))?;
    drop(guard);
    print(&report, printer)
}

fn print(report: &ScanReport, printer: Printer) -> Result<(), Failure> {
    let refused: Vec<_> =
        report.refused.iter().map(|(path, reason)| json!({"path": path, "reason": reason})).collect();
    let value = json!({
        "added": report.added, "changed": report.changed, "removed": report.removed,
        "unchanged": report.unchanged, "refused": refused,
    });
    printer.either(&value, || {
        let lists = [("added", &report.added), ("changed", &report.changed), ("removed", &report.removed)];
        let mut lines: Vec<String> = lists
            .iter()
            .flat_map(|(word, paths)| paths.iter().map(move |path| format!("{word:<10}{path}")))
            .collect();
        lines.extend(report.refused.iter().map(|(path, reason)| format!("refused   {path} ({reason})")));
        lines.push(format!("unchanged {}", report.unchanged));
        lines
    })
}
