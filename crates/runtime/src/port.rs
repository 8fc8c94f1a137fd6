//! What the runtime needs from outside, as ports: a jail, a model, the documents, a person's corrections, time, and named
//! crash points.
//!
//! The runtime knows no adapter. A port carries payloads, codes and ids; it never carries a key, an address or a path.

use std::time::{Duration, Instant};

use thought_contract::event::StoredEvent;
use thought_contract::run::HeldReason;
use thought_protocol::Sensitive;
use thought_protocol::packet::{Api, Compat, TokenLimit};
use thought_store::BoxFuture;

/// What is wrong with a jail or a worker in it. Content-dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("use the jail: {code}")]
pub struct JailError {
    /// A stable code, such as those of [`WORKER_LOST_CODES`]. Where the worker itself said why, the
    /// [`thought_protocol::answer::FailReason`]'s own.
    pub code: &'static str,
    /// Whether the machine cannot do it, or this one worker failed.
    pub kind: JailErrorKind,
}

/// Whose fault a [`JailError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JailErrorKind {
    /// No jail can be had: runs are held.
    Unavailable,
    /// This worker died, spoke out of turn, or said that it cannot go on.
    Worker,
}

/// The codes of a worker that is lost rather than lying: it died, gave nothing in its time, or its channel broke. Before
/// the request was made, another worker may do; a worker that said something wrong never gets a second word.
pub const WORKER_LOST_CODES: [&str; 3] = ["worker-died", "worker-silent", "worker-channel"];

impl JailError {
    /// Whether the worker was lost, and said nothing wrong.
    pub fn is_worker_lost(&self) -> bool {
        self.kind == JailErrorKind::Worker && WORKER_LOST_CODES.contains(&self.code)
    }
}

/// The jail: hands out sealed workers.
pub trait Jail: Send + Sync + 'static {
    /// A worker that is sealed and has read nothing yet. It serves one attempt.
    fn checkout(&self) -> BoxFuture<'_, Result<Box<dyn Worker>, JailError>>;
    /// The tier, as the evidence of an attempt names it.
    fn tier(&self) -> String;
}

/// One sealed worker. Dropping it ends it.
pub trait Worker: Send {
    /// Hands the packet in (the payload of a packet frame) and takes the request out (of a request frame).
    fn render(&mut self, packet: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>>;
    /// Hands the raw answer in and takes the result out.
    fn read(&mut self, answer: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>>;
}

/// Which API and model a provider's name stands for: the part of the configuration that a snapshot freezes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The provider's name in the configuration.
    pub provider: String,
    /// Its API.
    pub api: Api,
    /// The model.
    pub model: String,
    /// See [`Compat`].
    pub compat: Compat,
    /// See [`TokenLimit`].
    pub token_limit: TokenLimit,
}

/// What became of the one request.
#[derive(Debug, Clone)]
pub enum ModelReply {
    /// Status 200 with its whole body.
    Answered {
        /// The raw body.
        body: Sensitive<Vec<u8>>,
    },
    /// Another status.
    Status {
        /// The status.
        status: u16,
        /// `Retry-After` where it holds whole seconds.
        retry_after_seconds: Option<u64>,
        /// The first bytes of the body.
        body: Sensitive<Vec<u8>>,
    },
    /// The request was never written.
    RefusedBeforeRequest {
        /// A stable code: `connect`, `dns`, `tls`, `connect-timeout`, or `not-built` for a defect.
        code: &'static str,
    },
    /// The request may have been written, and no complete answer came.
    Unknown {
        /// A stable code.
        code: &'static str,
    },
    /// The two renderings differ: nothing was sent.
    BytesDiffer,
}

/// The provider, behind the room that holds its key.
pub trait Model: Send + Sync + 'static {
    /// What a provider's name stands for now.
    ///
    /// # Errors
    /// [`HeldReason::ProviderUnconfigured`] when there is no usable provider of that name.
    fn binding(&self, provider: &str) -> Result<Binding, HeldReason>;
    /// Compares the two renderings and, if no byte differs, makes the one request. Dropping the future closes the
    /// connection; the request may have been written.
    fn request(
        &self,
        provider: &str,
        parent_rendered: Vec<u8>,
        worker_rendered: Vec<u8>,
    ) -> BoxFuture<'_, ModelReply>;
}

/// A look at the documents that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("refresh the documents: {code}")]
pub struct DocumentsError {
    /// A stable code; those of [`ROOT_GONE_CODES`] say that the root itself is not to be had.
    pub code: &'static str,
}

/// The codes of a context root that is not there, is no folder, is a link, or cannot be opened. Only a person brings it
/// back, so runs are held and told; any other failure may pass by itself.
pub const ROOT_GONE_CODES: [&str; 3] = ["root-not-directory", "root-symlink", "root-unreadable"];

impl DocumentsError {
    /// Whether no document can be had, as the root cannot.
    pub fn is_root_gone(&self) -> bool {
        ROOT_GONE_CODES.contains(&self.code)
    }
}

/// The context root.
pub trait Documents: Send + Sync + 'static {
    /// Scans the root if something in it changed, so that the store's pointers name what is there now.
    fn refresh(&self) -> BoxFuture<'_, Result<(), DocumentsError>>;
}

/// A person's corrections that could not be settled now. Content-dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("settle a person's corrections: {code}")]
pub struct CorrectionsError {
    /// A stable code.
    pub code: &'static str,
}

/// A person's own corrections of earlier answers.
pub trait Corrections: Send + Sync + 'static {
    /// Comes back once every correction that was said in this message's conversation before the message is judged or
    /// refused. Whoever is asked may do that by itself: there is nobody who would have to be waited for.
    ///
    /// # Errors
    /// [`CorrectionsError`]; the run is taken again later, and is not answered before.
    fn settle_before<'a>(&'a self, message: &'a StoredEvent) -> BoxFuture<'a, Result<(), CorrectionsError>>;
}

/// There are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCorrections;

impl Corrections for NoCorrections {
    fn settle_before<'a>(&'a self, _message: &'a StoredEvent) -> BoxFuture<'a, Result<(), CorrectionsError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Waiting, so that tests own the time.
///
/// Whatever is waited for is counted here and never by the calendar, which a person or a time server may move.
pub trait Sleeper: Send + Sync + 'static {
    /// The present moment of the clock that the sleeps follow. It never steps, and says nothing of the day.
    fn moment(&self) -> Instant;
    /// Ends after this many milliseconds.
    fn sleep_ms(&self, ms: u64) -> BoxFuture<'static, ()>;
}

/// Waits on the runtime's own timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSleeper;

impl Sleeper for TokioSleeper {
    fn moment(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep_ms(&self, ms: u64) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// Named moments at which a test may end the process: before and after each commit, and around the request.
pub trait CrashPoints: Send + Sync + 'static {
    /// Passes a point.
    fn reach(&self, name: &'static str);
}

/// No point does anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCrashPoints;

impl CrashPoints for NoCrashPoints {
    fn reach(&self, _name: &'static str) {}
}

/// Every point that the runtime passes, by name.
pub const CRASH_POINTS: [&str; 20] = [
    "admit.before",
    "admit.after",
    "start.before",
    "start.after",
    "request.before",
    "request.after",
    "attempt-end.before",
    "attempt-end.after",
    "settle.before",
    "settle.after",
    "end.before",
    "end.after",
    "hold.before",
    "hold.after",
    "scanned.before",
    "scanned.after",
    "notice.before",
    "notice.after",
    "incident.before",
    "incident.after",
];
