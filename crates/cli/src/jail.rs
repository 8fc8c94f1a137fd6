//! The jail's adapter: becomes the worker when started as one, and hands sealed workers to the runtime.
//!
//! It moves frames between the runtime and a worker's channel. What is in them is the business of both ends.

use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use thought_protocol::frame::{FrameError, FrameKind, HEADER_BYTES, decode_header, encode_header};
use thought_runtime::port::{Jail, JailError, JailErrorKind, Worker};
use thought_sandbox::{
    ExitKind, JailReport, LaunchError, Launcher, Recommendation, SealEvidence, SealedWorker, Tier, WarmPool,
    WorkerLimits, WorkerProcess, limits,
};
use thought_store::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::config::SandboxMode;
use crate::exit::{Exit, Failure};

/// What an attempt records of a worker that broke off: it died.
const DIED: &str = "worker-died";
/// It did not take or give a whole frame within its time.
const SILENT: &str = "worker-silent";
/// As [`SILENT`], and its standard error is full.
const FLOODED: &str = "worker-flooded";
/// It gave a whole result and then neither ended nor said anything.
const LINGERED: &str = "worker-lingered";
/// It sent a frame that had passed, or one behind the last.
const SECOND_FRAME: &str = "worker-second-frame";
/// It announced a frame over the bound of its kind.
const FRAME_TOO_LONG: &str = "worker-frame-too-long";
/// Its channel could not be used.
const CHANNEL: &str = "worker-channel";

/// The hidden first argument of a worker. No command of this name is ever listed.
const WORKER_ARGUMENT: &str = "__worker";
/// Room that is made for the body of a frame before it is read.
const BODY_BYTES_AT_ONCE: usize = 64 * 1024;

/// When this process was started as a worker: seals it, serves one attempt, and answers the exit code.
pub fn become_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(WORKER_ARGUMENT)) {
        return None;
    }
    let order = arguments.next().unwrap_or_default();
    let code = match thought_sandbox::enter(&order) {
        Ok(channel) => thought_worker::serve(channel).code(),
        Err(_told_to_the_launcher) => u8::try_from(thought_sandbox::EXIT_REFUSED).unwrap_or(1),
    };
    Some(ExitCode::from(code))
}

/// The tier of a configured mode.
pub const fn tier(mode: SandboxMode) -> Tier {
    match mode {
        SandboxMode::Full => Tier::Full,
        SandboxMode::LandlockSeccomp => Tier::LandlockSeccomp,
    }
}

/// A launcher of this very executable.
///
/// # Errors
/// [`Failure`] (8) when the executable cannot be opened.
pub fn launcher(tier: Tier) -> Result<Launcher, Failure> {
    Launcher::of_self(tier, WorkerLimits::default(), WORKER_ARGUMENT).map_err(|error| unavailable(&error))
}

/// The failure of a machine without a jail.
fn unavailable(error: &LaunchError) -> Failure {
    Failure::new(Exit::Machine, "sandbox-unavailable", crate::exit::chain(error))
        .hint("thought doctor names the layer that is missing and how to get it")
}

/// What the machine allows, as a new configuration takes it.
#[derive(Debug)]
pub enum Allowed {
    /// Every layer.
    Full,
    /// All but namespaces; what the full tier lacks.
    Lesser(String),
    /// No jail at all; what is missing.
    Nothing(String),
}

impl Allowed {
    /// The mode to write.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::Full | Self::Nothing(_) => "full",
            Self::Lesser(_) => "landlock+seccomp",
        }
    }

    /// What a person is told.
    pub fn sentence(&self) -> String {
        match self {
            Self::Full => "this machine allows the full tier".to_owned(),
            Self::Lesser(why) => format!("this machine allows landlock+seccomp only: {why}"),
            Self::Nothing(why) => format!("this machine allows no jail, so no run will start here: {why}"),
        }
    }

    /// The comment beside the mode.
    pub fn remark(&self) -> Option<String> {
        match self {
            Self::Full => None,
            Self::Lesser(why) => Some(format!("\"full\" is refused here: {}", why.replace('\n', " "))),
            Self::Nothing(why) => Some(format!("no mode works here: {}", why.replace('\n', " "))),
        }
    }
}

/// Tries the tiers on this machine.
pub fn allowed() -> Allowed {
    let launcher = match launcher(Tier::Full) {
        Ok(launcher) => launcher,
        Err(failure) => return Allowed::Nothing(failure.message),
    };
    let why = |report: &JailReport| {
        let outcome = report.outcome.as_ref().err().map(|error| crate::exit::chain(error));
        format!("{} ({})", report.hint().unwrap_or("it refused"), outcome.unwrap_or_default())
    };
    match thought_sandbox::recommend(&launcher) {
        Recommendation::Full => Allowed::Full,
        Recommendation::LandlockSeccomp { full } => Allowed::Lesser(why(&full)),
        Recommendation::Refused { lesser, .. } => Allowed::Nothing(why(&lesser)),
    }
}

/// Sealed workers for the runtime, one always ready.
pub struct Jailer {
    pool: Arc<WarmPool>,
    tier: Tier,
    patience: Duration,
}

impl Jailer {
    /// Starts the pool.
    ///
    /// # Errors
    /// [`Failure`] (8) when no thread can be started.
    pub fn start(launcher: Launcher) -> Result<Self, Failure> {
        let tier = launcher.tier();
        let pool = WarmPool::new(launcher).map_err(|error| unavailable(&error))?;
        Ok(Self { pool: Arc::new(pool), tier, patience: limits::EXCHANGE_TIMEOUT })
    }

    /// With another bound for each exchange with a worker: one frame in, one out.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Waits for the first sealed worker.
    ///
    /// # Errors
    /// [`Failure`] (8) naming the layer that is missing.
    pub fn warm_up(&self) -> Result<SealEvidence, Failure> {
        self.pool.warm_up().map_err(|error| unavailable(&error))
    }
}

const fn worker_failed(code: &'static str) -> JailError {
    JailError { code, kind: JailErrorKind::Worker }
}

impl Jail for Jailer {
    fn checkout(&self) -> BoxFuture<'_, Result<Box<dyn Worker>, JailError>> {
        Box::pin(async move {
            // What is ready is taken at once; a launch is waited for elsewhere.
            let taken = match self.pool.checkout_ready() {
                Some(worker) => Ok(Ok(worker)),
                None => {
                    let pool = self.pool.clone();
                    tokio::task::spawn_blocking(move || pool.checkout()).await
                }
            };
            let unavailable = JailError { code: "sandbox-unavailable", kind: JailErrorKind::Unavailable };
            let worker = match taken {
                Ok(Ok(worker)) => worker,
                Ok(Err(error)) => {
                    tracing::warn!(target: "thought::jail", stage = error.stage(), "no sealed worker");
                    return Err(unavailable);
                }
                Err(_panicked) => return Err(unavailable),
            };
            Cell::new(worker, self.patience).map(|cell| Box::new(cell) as Box<dyn Worker>)
        })
    }

    fn tier(&self) -> String {
        self.tier.name().to_owned()
    }
}

/// One sealed worker with its channel.
struct Cell {
    channel: Option<UnixStream>,
    process: Option<WorkerProcess>,
    patience: Duration,
}

impl Cell {
    fn new(worker: SealedWorker, patience: Duration) -> Result<Self, JailError> {
        let (channel, process) = worker.into_parts();
        let channel = channel.set_nonblocking(true).and_then(|()| UnixStream::from_std(channel));
        match channel {
            Ok(channel) => Ok(Self { channel: Some(channel), process: Some(process), patience }),
            Err(_) => Err(worker_failed(CHANNEL)),
        }
    }

    /// One frame in and one out, within the patience: processor time ends a worker that computes for ever, and
    /// nothing but this one that waits for ever.
    async fn exchange(
        &mut self,
        send: FrameKind,
        body: &[u8],
        expect: FrameKind,
    ) -> Result<Vec<u8>, JailError> {
        let Some(channel) = self.channel.as_mut() else { return Err(worker_failed(CHANNEL)) };
        match tokio::time::timeout(self.patience, pass(channel, send, body, expect)).await {
            Ok(passed) => passed,
            Err(_late) => Err(worker_failed(self.silence())),
        }
    }

    /// After the result: the channel's end, and nothing else.
    async fn last_word(&mut self) -> Result<(), JailError> {
        let Some(channel) = self.channel.as_mut() else { return Err(worker_failed(CHANNEL)) };
        match tokio::time::timeout(self.patience, channel.read(&mut [0; 1])).await {
            // One byte more, and it is not the worker it should be.
            Ok(Ok(1..)) => Err(worker_failed(SECOND_FRAME)),
            // A reset is an end as good as any: the result was whole.
            Ok(Ok(0) | Err(_)) => Ok(()),
            Err(_late) => Err(worker_failed(LINGERED)),
        }
    }

    /// What a worker is called that took too long.
    fn silence(&self) -> &'static str {
        let is_full = self.process.as_ref().is_some_and(|process| process.stderr().is_full);
        if is_full { FLOODED } else { SILENT }
    }
}

async fn pass(
    channel: &mut UnixStream,
    send: FrameKind,
    body: &[u8],
    expect: FrameKind,
) -> Result<Vec<u8>, JailError> {
    let header = encode_header(send, body.len()).map_err(|error| reason(&error))?;
    let sent = async {
        channel.write_all(&header).await?;
        channel.write_all(body).await
    };
    // A worker that spoke out of turn and ended has broken the channel; what it said tells more.
    let sent = sent.await;
    let mut header = [0; HEADER_BYTES];
    channel.read_exact(&mut header).await.map_err(|_broken| worker_failed(DIED))?;
    let header = decode_header(&header).map_err(|error| reason(&error))?;
    let length = header.expect(expect).map_err(|error| reason(&error))?;
    sent.map_err(|_broken| worker_failed(DIED))?;
    // Room for what is usual at once; a longer body grows as it comes, whatever its header promised.
    let mut body = Vec::with_capacity(length.min(BODY_BYTES_AT_ONCE));
    let most = u64::try_from(length).unwrap_or(u64::MAX);
    let read = channel.take(most).read_to_end(&mut body).await;
    match read {
        Ok(read) if read == length => Ok(body),
        Ok(_) | Err(_) => Err(worker_failed(DIED)),
    }
}

/// What an attempt records of a frame that was not the one that was due.
fn reason(error: &FrameError) -> JailError {
    worker_failed(match error {
        FrameError::SecondFrame { .. } | FrameError::Trailing => SECOND_FRAME,
        FrameError::TooLong { .. } => FRAME_TOO_LONG,
        other => other.fail_reason().as_str(),
    })
}

impl Worker for Cell {
    fn render(&mut self, packet: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>> {
        Box::pin(async move { self.exchange(FrameKind::Packet, &packet, FrameKind::Request).await })
    }

    fn read(&mut self, answer: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>> {
        Box::pin(async move {
            let result = self.exchange(FrameKind::Answer, &answer, FrameKind::Result).await?;
            self.last_word().await?;
            Ok(result)
        })
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        drop(self.channel.take());
        let Some(process) = self.process.take() else { return };
        // Reaping waits for the kernel; it must not hold up a turn.
        match tokio::runtime::Handle::try_current() {
            Ok(handle) => drop(handle.spawn_blocking(move || reap(process))),
            Err(_) => reap(process),
        }
    }
}

/// Ends a worker and tells how it ended: an end by a signal that nobody here sent is an attempt at something forbidden.
fn reap(process: WorkerProcess) {
    let (pid, stderr_bytes) = (process.pid(), process.stderr().bytes);
    match process.kill_and_reap() {
        ExitKind::Clean | ExitKind::Killed => {
            tracing::debug!(target: "thought::jail", pid, stderr_bytes, "a worker ended");
        }
        end => tracing::warn!(target: "thought::jail", pid, stderr_bytes, ?end, "a worker ended by itself"),
    }
}
