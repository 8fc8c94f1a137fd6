//! The materializer: a decided memory change becomes the next version of `memory.md`, or a receipt says why not.
//!
//! Under the root lock it replays the whole chain once more, checks base, pointer, root and document, plans on the frozen
//! bytes, and hands the write to `exchange`; then the connector scans, and only what the scan recorded is receipted. It
//! never rebases, never writes for a rejected or unverified decision, and never puts a document's text into a receipt.

mod exchange;
pub mod plan;
mod resume;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use thought_contract::draft::{self, DraftError};
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload as p;
use thought_contract::snapshot::build::MEMORY_PATH;
use thought_contract::time::Clock;
use thought_protocol::limits::DOCUMENT_BYTES_MAX_CEILING;
use thought_protocol::{EventId, Sha256Hex};
use thought_store::StoreError;
use thought_store::command::NewIntent;
use thought_store::handle::{Materializer, Reader, Remains, Resolution};
use thought_store::row::{Existence, VersionRow};

use crate::chain::{
    ChainError, Decided, DecidedChain, Link, MemoryChange, receipt_of, refused, validate_decision,
};
use crate::filesystem::FilesystemConnector;
pub use crate::limits::PROJECTION_LOCK_WAIT;
use crate::limits::RECORDED_MAX;
use crate::lock::{self, LockError, OwnEvidence, RootGuard};
use crate::reason::{Finality, Reason};
use thought_store::Images;

pub use exchange::{Exchange, can_exchange};
use exchange::{Failed, Leftover, Site};
use plan::{Planned, plan};

/// A materialization that came to no outcome; nothing was recorded, and it may be tried again. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum MaterializeError {
    /// The chain does not hold: no receipt is made from such ids.
    #[error("materialize a memory change")]
    Chain(#[from] ChainError),
    /// The store.
    #[error("materialize a memory change: reach the store")]
    Store(#[from] StoreError),
    /// A receipt has no canonical form.
    #[error("materialize a memory change: draft its receipt")]
    Draft(#[from] DraftError),
    /// The thread that wrote is gone; what it left is looked at by the next try.
    #[error("materialize a memory change: the writing thread ended")]
    Thread,
}

/// Named moments at which a test may end the process or meddle, and faults of the file system. Production does nothing.
pub trait CrashPoints: Send + Sync + 'static {
    /// Passes a point.
    fn reach(&self, _name: &'static str) {}

    /// Before the temporary file is written; an error is what the write comes to.
    ///
    /// # Errors
    /// The fault.
    fn write(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Whether the file system cannot exchange two names.
    fn cannot_exchange(&self) -> bool {
        false
    }
}

/// No point does anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCrashPoints;

impl CrashPoints for NoCrashPoints {}

/// Every point that a materialization passes, in order; `back.after` only where it takes a write back.
pub const CRASH_POINTS: [&str; 10] = [
    "intent.before",
    "intent.after",
    "temporary.after",
    "exchange.before",
    "exchange.after",
    "scan.before",
    "scan.after",
    "receipt.after",
    "removed.after",
    "back.after",
];

/// Why a materialization waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Another holds the root lock.
    LockHeld,
    /// The lock's evidence is malformed: a person must clear it.
    LockInvalid,
}

impl Waits {
    /// The stable code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LockHeld => "lock-held",
            Self::LockInvalid => "lock-invalid",
        }
    }
}

/// What a materialization came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Materialization {
    /// The memory holds the change, by this receipt.
    Materialized {
        /// The receipt.
        receipt: EventId,
    },
    /// It does not.
    Failed {
        /// Why.
        reason: Reason,
    },
    /// Nothing was tried.
    Pending(Waits),
}

/// Whether an outcome was reached by this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// By this one.
    Now,
    /// Before, or by somebody else.
    Before,
}

/// What a materializer is made of.
#[derive(Clone)]
pub struct MaterializerParts {
    /// Reads.
    pub reader: Reader,
    /// Appends receipts and intents.
    pub store: Materializer,
    /// Images of frozen contexts.
    pub images: Arc<dyn Images>,
    /// The connector of the root.
    pub connector: FilesystemConnector,
    /// This process, for the lock.
    pub evidence: OwnEvidence,
    /// The configured size of a document, bytes.
    pub bytes_max: u64,
    /// How long the root lock is waited for; [`PROJECTION_LOCK_WAIT`] but in tests.
    pub lock_wait: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Faults on purpose.
    pub points: Arc<dyn CrashPoints>,
}

/// Writes decided memory changes.
#[derive(Clone)]
pub struct MemoryMaterializer {
    parts: MaterializerParts,
}

impl std::fmt::Debug for MemoryMaterializer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryMaterializer").field("bytes_max", &self.parts.bytes_max).finish_non_exhaustive()
    }
}

/// A change that stands in the document and waits for its scan and receipt.
struct Written {
    base: VersionRow,
    sha256: Sha256Hex,
    pointer: verify::Pointer,
}

type Step<T> = Result<Result<T, Failed>, MaterializeError>;

const fn unwritten(reason: Reason) -> Failed {
    Failed { reason, leftover: Leftover::None }
}

impl MemoryMaterializer {
    /// A materializer of these parts.
    pub fn new(parts: MaterializerParts) -> Self {
        Self { parts }
    }

    /// Writes what a person let through, waiting for the root lock as long as its parts say. What is resolved stays as it is; what
    /// failed for a passing reason is tried again.
    ///
    /// # Errors
    /// [`MaterializeError`].
    pub async fn materialize(
        &self,
        decided: &Decided<MemoryChange>,
    ) -> Result<(Materialization, Tried), MaterializeError> {
        if let Some(resolved) = self.resolved(decided).await? {
            return Ok((resolved, Tried::Before));
        }
        let root = self.parts.connector.root();
        let taken = lock::acquire_within(root, &self.parts.evidence, self.parts.lock_wait).await;
        let guard = match taken {
            Ok(guard) => Arc::new(guard),
            Err(error @ (LockError::Held | LockError::Invalid { .. })) => {
                let waits =
                    if matches!(error, LockError::Held) { Waits::LockHeld } else { Waits::LockInvalid };
                let recorded = self.resolved(decided).await?;
                return Ok((recorded.unwrap_or(Materialization::Pending(waits)), Tried::Before));
            }
            Err(error) => {
                // What a dead process left in the true root must be looked at before the decision is spent.
                let intent = self.parts.reader.intent(decided.decision().id().clone()).await?;
                let reason = intent.map_or(exchange::of_lock(&error), |_| Reason::WriteFailed);
                let failed = Failed { reason, leftover: Leftover::Kept };
                return Ok((self.fail(decided, failed).await?, Tried::Now));
            }
        };
        // Under the lock nothing that was seen before counts any more.
        let id = decided.chain().id();
        let verified = validate_decision(&self.parts.reader, &*self.parts.images, id).await?;
        let DecidedChain::Memory(decided) = verified else {
            return Err(refused(Link::Proposal, "type").into());
        };
        if let Some(resolved) = self.resolved(&decided).await? {
            return Ok((resolved, Tried::Before));
        }
        let outcome = self.under_lock(&guard, &decided).await?;
        drop(guard);
        Ok((outcome, Tried::Now))
    }

    /// What is recorded and resolves the decision.
    async fn resolved(
        &self,
        decided: &Decided<MemoryChange>,
    ) -> Result<Option<Materialization>, MaterializeError> {
        let recorded = recorded(&self.parts.reader, decided).await?;
        Ok(recorded.filter(|found| match found {
            Materialization::Failed { reason } => reason.finality() == Finality::Final,
            Materialization::Materialized { .. } => true,
            Materialization::Pending(_) => false,
        }))
    }

    async fn under_lock(
        &self,
        guard: &Arc<RootGuard>,
        decided: &Decided<MemoryChange>,
    ) -> Result<Materialization, MaterializeError> {
        self.sweep(guard, decided).await?;
        let written = match self.parts.reader.intent(decided.decision().id().clone()).await? {
            Some(intent) => self.resume(guard, decided, &intent).await?,
            None => self.write(guard, decided).await?,
        };
        let written = match written {
            Ok(written) => written,
            Err(failed) => return self.fail(decided, failed).await,
        };
        self.parts.points.reach("scan.before");
        if let Err(error) = self.parts.connector.scan(guard).await {
            tracing::warn!(decision = %decided.decision().id(), %error, "written, and the scan failed");
            let failed = Failed { reason: Reason::ScanFailed, leftover: Leftover::Kept };
            return self.fail(decided, failed).await;
        }
        self.parts.points.reach("scan.after");
        match self.verify(guard, decided, &written).await? {
            Ok(receipt) => self.succeed(guard, decided, &receipt).await,
            Err(failed) => self.fail(decided, failed).await,
        }
    }

    /// The whole way from the checks to the exchanged document.
    async fn write(&self, guard: &Arc<RootGuard>, decided: &Decided<MemoryChange>) -> Step<Written> {
        let base = match self.base(decided).await? {
            Ok(base) => base,
            Err(reason) => return Ok(Err(unwritten(reason))),
        };
        let planned = match planned(decided, &base, self.parts.bytes_max)? {
            Ok(planned) => planned,
            Err(reason) => return Ok(Err(unwritten(reason))),
        };
        let expected = base.sha256.clone();
        let checked = self
            .at_site(guard, decided, move |site| site.check_root().and_then(|()| site.check_base(&expected)))
            .await?;
        if let Err(reason) = checked {
            return Ok(Err(unwritten(reason)));
        }
        let sha256 = planned.sha256.clone();
        // A change that changes nothing is there already.
        if sha256 != base.sha256 {
            self.intend(decided, &sha256).await?;
            let expected = base.sha256.clone();
            let written = self
                .at_site(guard, decided, move |site| site.write(&expected, planned.bytes.expose()))
                .await?;
            if let Err(failed) = written {
                return Ok(Err(failed));
            }
        }
        Ok(Ok(Written { base, sha256, pointer: verify::Pointer::NamesIt }))
    }

    /// The frozen base, if the document's pointer still names it.
    async fn base(
        &self,
        decided: &Decided<MemoryChange>,
    ) -> Result<Result<VersionRow, Reason>, MaterializeError> {
        let target = &decided.chain().subject().target;
        let Some(pointer) = self.parts.reader.document(target.document_id.clone()).await? else {
            return Ok(Err(Reason::BaseMissing));
        };
        if pointer.existence == Existence::Removed {
            return Ok(Err(Reason::BaseMissing));
        }
        let exact = pointer.version == target.version_id
            && pointer.sha256 == target.sha256
            && pointer.source == SourceName::context()
            && pointer.path == MEMORY_PATH
            && pointer.path == target.path;
        if !exact {
            return Ok(Err(Reason::StaleBase));
        }
        Ok(self.version(decided).await?.ok_or(Reason::BaseMissing))
    }

    /// The frozen base's version, if its bytes are what the proposal names.
    async fn version(&self, decided: &Decided<MemoryChange>) -> Result<Option<VersionRow>, MaterializeError> {
        let target = &decided.chain().subject().target;
        let row = self.parts.reader.version(target.version_id.clone()).await?;
        Ok(row.filter(|row| {
            row.document == target.document_id
                && row.source == target.source
                && row.path == target.path
                && row.content_type == target.content_type
                && row.sha256 == target.sha256
                && Sha256Hex::of(row.content.expose()) == target.sha256
                && u64::try_from(row.content.expose().len()) == Ok(row.byte_count)
        }))
    }

    async fn intend(
        &self,
        decided: &Decided<MemoryChange>,
        sha256: &Sha256Hex,
    ) -> Result<(), MaterializeError> {
        self.parts.points.reach("intent.before");
        let decision = decided.decision().id();
        let intent = NewIntent {
            decision: decision.clone(),
            proposal: decided.chain().id().clone(),
            expected_sha256: sha256.clone(),
            temporary: temporary_name(decision),
        };
        self.parts.store.intend(intent).await?;
        self.parts.points.reach("intent.after");
        Ok(())
    }

    /// Works on the folder in a thread of its own, which keeps the lock until it is done.
    async fn at_site<T: Send + 'static>(
        &self,
        guard: &Arc<RootGuard>,
        decided: &Decided<MemoryChange>,
        work: impl FnOnce(Site<'_>) -> T + Send + 'static,
    ) -> Result<T, MaterializeError> {
        let temporary = temporary_name(decided.decision().id());
        let (guard, root) = (guard.clone(), self.parts.connector.root().clone());
        let points = self.parts.points.clone();
        let done = tokio::task::spawn_blocking(move || {
            work(Site {
                root: &root,
                guard: &guard,
                document: MEMORY_PATH,
                temporary: &temporary,
                points: &*points,
            })
        });
        // What a panic said is not passed on: it might hold a document's text.
        done.await.map_err(|_content_dark| MaterializeError::Thread)
    }

    async fn succeed(
        &self,
        guard: &Arc<RootGuard>,
        decided: &Decided<MemoryChange>,
        payload: &p::MemoryMaterialized,
    ) -> Result<Materialization, MaterializeError> {
        let event = decided.decision().event();
        let receipt = draft::memory_materialized(event, payload, self.parts.clock.now())?;
        let id = receipt.id().clone();
        self.parts.store.materialized(receipt, resolution(decided)).await?;
        tracing::info!(decision = %event.envelope.id, receipt = %id, "memory change materialized");
        self.parts.points.reach("receipt.after");
        self.at_site(guard, decided, |site| site.remove_temporary()).await?;
        self.parts.points.reach("removed.after");
        Ok(Materialization::Materialized { receipt: id })
    }

    async fn fail(
        &self,
        decided: &Decided<MemoryChange>,
        failed: Failed,
    ) -> Result<Materialization, MaterializeError> {
        let event = decided.decision().event();
        let payload = p::MaterializationFailed {
            proposal: decided.chain().id().clone(),
            decision: event.envelope.id.clone(),
            reason: failed.reason.as_str().to_owned(),
        };
        let receipt = draft::materialization_failed(event, &payload, self.parts.clock.now())?;
        let is_final = failed.reason.finality() == Finality::Final;
        if is_final {
            self.parts.store.failed(receipt, resolution(decided)).await?;
        } else {
            let remains = match failed.leftover {
                Leftover::None => Remains::Nothing,
                Leftover::Kept => Remains::Intent,
            };
            self.parts.store.failed_for_now(receipt, resolution(decided), remains).await?;
        }
        tracing::warn!(decision = %event.envelope.id, reason = %failed.reason, "memory change not materialized");
        Ok(Materialization::Failed { reason: failed.reason })
    }
}

/// Whether a receipt of the change, if there is one, is of what the decision makes of its base; planned again.
///
/// # Errors
/// [`MaterializeError`]: the base is not there, or a receipt is not one.
pub async fn is_as_decided(
    reader: &Reader,
    decided: &Decided<MemoryChange>,
) -> Result<bool, MaterializeError> {
    let Some(Materialization::Materialized { receipt }) = recorded(reader, decided).await? else {
        return Ok(true);
    };
    let base = reader.version(decided.chain().subject().target.version_id.clone()).await?;
    let (Some(base), Some(receipt)) = (base, reader.event(receipt).await?) else { return Ok(false) };
    let Ok(told) = receipt.payload::<p::MemoryMaterialized>() else { return Ok(false) };
    let planned = planned(decided, &base, DOCUMENT_BYTES_MAX_CEILING)?;
    Ok(planned.is_ok_and(|planned| planned.sha256 == told.sha256))
}

/// What a decided change makes of its frozen base.
fn planned(
    decided: &Decided<MemoryChange>,
    base: &VersionRow,
    bytes_max: u64,
) -> Result<Result<Planned, Reason>, ChainError> {
    let text = decided.text().ok_or(refused(Link::Decision, "rejected"))?;
    let operation = decided.chain().subject().operation;
    Ok(plan(base.content.expose(), operation, text.expose(), bytes_max))
}

/// The temporary file of a decision: hidden from the scan, and never another decision's.
fn temporary_name(decision: &EventId) -> String {
    format!("{TEMPORARY_PREFIX}{decision}{TEMPORARY_SUFFIX}")
}

/// What the name of a temporary file begins with; the decision follows.
pub const TEMPORARY_PREFIX: &str = ".thought-";
/// What it ends in.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

fn resolution(decided: &Decided<MemoryChange>) -> Resolution {
    Resolution { proposal: decided.chain().id().clone(), decision: decided.decision().id().clone() }
}

/// What is recorded about a decision: its receipt, else a final failure, else the newest passing one.
///
/// # Errors
/// [`ChainError`] for a receipt that is not one; [`StoreError`].
pub(crate) async fn recorded(
    reader: &Reader,
    decided: &Decided<MemoryChange>,
) -> Result<Option<Materialization>, MaterializeError> {
    let decision = decided.decision();
    let mut found = None;
    for event in reader.children(decision.id().clone(), RECORDED_MAX).await? {
        match event.envelope.event_type {
            EventType::MemoryMaterialized => {
                let receipt = event.envelope.id.clone();
                receipt_of::<p::MemoryMaterialized>(decision.event(), &event, draft::memory_materialized)?;
                return Ok(Some(Materialization::Materialized { receipt }));
            }
            EventType::MaterializationFailed => {
                let told: p::MaterializationFailed =
                    receipt_of(decision.event(), &event, draft::materialization_failed)?;
                let reason =
                    Reason::from_code(&told.reason).ok_or(refused(Link::Decision, "receipt-reason"))?;
                if found.is_none_or(|before: Reason| before.finality() == Finality::Retried) {
                    found = Some(reason);
                }
            }
            _ => {}
        }
    }
    Ok(found.map(|reason| Materialization::Failed { reason }))
}
