//! The documents' adapter: the connector of the context root behind the runtime's port.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use thought_authority::filesystem::{Refreshed, ScanError, ScanReport};
use thought_authority::lock::{self, LockError};
use thought_authority::watch::RootWatch;
use thought_runtime::port::{Documents, DocumentsError};
use thought_store::{BoxFuture, Store};
use thought_telegram::stop::Stop;
use tokio::task::JoinSet;

use crate::exit::{Failure, chain};
use crate::home::Home;
use crate::print::Printer;
use crate::word::{self, LOCK_HINT, scan_failure};

/// The documents of a home.
#[derive(Debug)]
pub(super) struct ScannedDocuments {
    documents: word::Documents,
}

impl ScannedDocuments {
    /// Holds the context root of a home.
    ///
    /// # Errors
    /// [`Failure`]: a root that is a link or no folder (3).
    pub(super) fn open(home: &Home, store: &Store) -> Result<Self, Failure> {
        Ok(Self { documents: word::Documents::open(home, store)? })
    }

    /// What this process holds of the context root.
    pub(super) fn documents(&self) -> &word::Documents {
        &self.documents
    }

    /// The scan at start.
    ///
    /// # Errors
    /// [`Failure`] when the root cannot be scanned; a lock that stays held is a remark.
    pub(super) async fn first_scan(&self, printer: Printer) -> Result<(), Failure> {
        match self.documents.connector.refresh().await {
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
            Err(error) => Err(scan_failure(&error)),
        }
    }

    /// Scans after every notification, until told to stop.
    pub(super) fn follow(self: Arc<Self>, tasks: &mut JoinSet<Result<(), Failure>>, stop: Stop) {
        let root = self.documents.connector.root().clone();
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
        if let Err(error) = self.documents.connector.refresh().await {
            let hint = scan_failure(&error).hint;
            tracing::warn!(target: "thought::documents", error = %chain(&error), hint, "scan failed");
        }
    }
}

impl Documents for ScannedDocuments {
    fn refresh(&self) -> BoxFuture<'_, Result<(), DocumentsError>> {
        Box::pin(async move {
            match self.documents.connector.refresh().await {
                // Another process writes: the versions that the store names now are whole, and are what counts.
                Ok(Refreshed::Unchanged | Refreshed::Scanned(_) | Refreshed::LockHeld) => Ok(()),
                // Nor is anything lost while a person has not looked at the evidence: the last whole version answers.
                Err(error @ ScanError::Lock(LockError::Invalid { .. })) => {
                    tracing::warn!(
                        target: "thought::documents", error = %chain(&error), hint = LOCK_HINT,
                        "not scanned: the turn goes on with the last versions"
                    );
                    Ok(())
                }
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

/// `scan`.
///
/// # Errors
/// [`Failure`]: the lock stays held (4) or is invalid (3), a root that is a link or no folder (3).
pub async fn scan_once(home: &Home, store: &Store, printer: Printer) -> Result<(), Failure> {
    let documents = word::Documents::open(home, store)?;
    let wait = Duration::from_secs(thought_protocol::limits::SCAN_LOCK_WAIT_SECONDS_MAX);
    let taken = lock::acquire_within(documents.connector.root(), &documents.evidence, wait).await;
    let guard = taken.map_err(|error| scan_failure(&ScanError::Lock(error)))?;
    let report = documents.connector.scan(&guard).await.map_err(|error| scan_failure(&error))?;
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
