//! Starts a worker and waits for its report.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::errno_of;
use super::process::{WorkerProcess, wait_readable};
use super::spawner::{self, Start};
use crate::limits::{SEAL_TIMEOUT, STDERR_ROOM_BYTES};
use crate::order::Order;
use crate::record::{RECORD_BYTES, Record};
use crate::{ExitKind, LaunchError, SealEvidence, StderrReport, Tier, WorkerLimits};

/// Launches jailed workers from one executable, which it holds open: what runs is what was opened,
/// even if the file is replaced.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: Arc<OwnedFd>,
    sha256_hex: Arc<OnceLock<String>>,
    tier: Tier,
    limits: WorkerLimits,
    argument: &'static str,
    seal_timeout: Duration,
}

impl Launcher {
    /// A launcher of the executable behind a descriptor, opened for reading or as a path only. `argument`
    /// is the hidden subcommand that calls [`crate::enter`] with the argument that follows it.
    #[must_use]
    pub fn new(executable: OwnedFd, tier: Tier, limits: WorkerLimits, argument: &'static str) -> Self {
        Self {
            executable: Arc::new(executable),
            sha256_hex: Arc::new(OnceLock::new()),
            tier,
            limits,
            argument,
            seal_timeout: SEAL_TIMEOUT,
        }
    }

    /// A launcher of the running executable.
    ///
    /// # Errors
    /// [`LaunchError::Executable`] if it cannot be opened.
    pub fn of_self(tier: Tier, limits: WorkerLimits, argument: &'static str) -> Result<Self, LaunchError> {
        Self::of_path(Path::new("/proc/self/exe"), tier, limits, argument)
    }

    /// A launcher of the executable at a path, for tests.
    ///
    /// # Errors
    /// [`LaunchError::Executable`] if it cannot be opened.
    pub fn of_path(
        path: &Path,
        tier: Tier,
        limits: WorkerLimits,
        argument: &'static str,
    ) -> Result<Self, LaunchError> {
        let file = File::open(path).map_err(|error| executable_error(&error))?;
        Ok(Self::new(file.into(), tier, limits, argument))
    }

    /// The same launcher with another tier.
    #[must_use]
    pub fn with_tier(&self, tier: Tier) -> Self {
        Self { tier, ..self.clone() }
    }

    /// The same launcher with another bound for a launch, from its start to the report.
    #[must_use]
    pub fn with_seal_timeout(&self, seal_timeout: Duration) -> Self {
        Self { seal_timeout, ..self.clone() }
    }

    /// The tier it launches in.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// The sha256 of the executable's bytes, in lower-case hexadecimal; read once.
    ///
    /// # Errors
    /// [`LaunchError::Executable`] if it cannot be read.
    pub fn sha256_hex(&self) -> Result<&str, LaunchError> {
        if let Some(known) = self.sha256_hex.get() {
            return Ok(known);
        }
        let digest = self.digest().map_err(|error| executable_error(&error))?;
        Ok(self.sha256_hex.get_or_init(|| digest))
    }

    fn digest(&self) -> std::io::Result<String> {
        // Opened anew: a descriptor may be a path only, and its position is shared.
        let mut file = File::open(format!("/proc/self/fd/{}", self.executable.as_raw_fd()))?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = file.read(&mut buffer)?;
            let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { break };
            hasher.update(read);
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Starts a worker and waits until it has reported its seal. It has read nothing yet.
    ///
    /// # Errors
    /// The stage that failed; nothing is left running.
    pub fn launch(&self) -> Result<SealedWorker, LaunchError> {
        let deadline = Instant::now().checked_add(self.seal_timeout);
        let channel_error = |error: std::io::Error| LaunchError::Channel { errno: errno_of(&error) };
        let (channel, worker_end) = UnixStream::pair().map_err(channel_error)?;
        let (errors, worker_errors) = std::io::pipe().map_err(channel_error)?;
        rustix::pipe::fcntl_setpipe_size(&worker_errors, STDERR_ROOM_BYTES)
            .map_err(|errno| LaunchError::Channel { errno: errno.raw_os_error() })?;
        let start = Start {
            executable: Arc::clone(&self.executable),
            argument: self.argument,
            order: Order { tier: self.tier, limits: self.limits }.encode(),
            channel: worker_end.into(),
            errors: worker_errors,
        };
        let started = spawner::spawn(start, self.seal_timeout)?.with_errors(errors);
        let mut starting = Starting { channel, started, inner: None, deadline, launcher: self };
        match starting.wait_for_seal() {
            Ok(evidence) => starting.into_worker(evidence),
            Err(error) => {
                starting.abandon();
                Err(error)
            }
        }
    }
}

fn executable_error(error: &std::io::Error) -> LaunchError {
    LaunchError::Executable { errno: errno_of(error) }
}

/// A worker on its way to the seal. Dropping it kills and reaps what there is.
struct Starting<'a> {
    channel: UnixStream,
    started: WorkerProcess,
    /// In the full tier, the process that goes on.
    inner: Option<WorkerProcess>,
    deadline: Option<Instant>,
    launcher: &'a Launcher,
}

impl Starting<'_> {
    fn wait_for_seal(&mut self) -> Result<SealEvidence, LaunchError> {
        loop {
            match self.next_record()? {
                Record::Forked { pid } if self.needs_inner() && self.inner.is_none() => {
                    self.inner = Some(WorkerProcess::adopt(pid)?);
                }
                Record::Sealed { tier, landlock_abi } if self.accepts(tier, landlock_abi) => {
                    return Ok(SealEvidence { tier, landlock_abi: landlock_abi.unsigned_abs() });
                }
                Record::Refused { stage, errno } => return Err(LaunchError::Refused { stage, errno }),
                Record::Forked { .. } | Record::Sealed { .. } => return Err(LaunchError::Report),
            }
        }
    }

    fn needs_inner(&self) -> bool {
        self.launcher.tier == Tier::Full
    }

    fn accepts(&self, tier: Tier, landlock_abi: i32) -> bool {
        // Only an ablated test program may come without Landlock.
        let has_landlock = landlock_abi > 0 || cfg!(feature = "ablation");
        tier == self.launcher.tier && has_landlock && self.needs_inner() == self.inner.is_some()
    }

    fn next_record(&mut self) -> Result<Record, LaunchError> {
        let mut bytes = [0; RECORD_BYTES];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match wait_readable(&self.channel, self.deadline) {
                Ok(true) => {}
                Ok(false) => {
                    let timeout_ms =
                        u64::try_from(self.launcher.seal_timeout.as_millis()).unwrap_or(u64::MAX);
                    return Err(LaunchError::Timeout { timeout_ms });
                }
                Err(errno) => return Err(LaunchError::Channel { errno: errno.raw_os_error() }),
            }
            match self.channel.read(rest) {
                Ok(0) => return Err(self.died()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A worker that died with unread bytes resets the channel.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Err(self.died()),
                Err(error) => return Err(LaunchError::Channel { errno: errno_of(&error) }),
            }
        }
        Record::decode(&bytes).ok_or(LaunchError::Report)
    }

    /// The worker closed the channel without a report.
    fn died(&mut self) -> LaunchError {
        let process = self.inner.as_mut().unwrap_or(&mut self.started);
        LaunchError::Died { exit: process.settle(self.deadline) }
    }

    /// Ends what was started. An outer process may just have made an inner one: once it is gone, all that
    /// it can have said is on the channel.
    fn abandon(mut self) {
        self.started.end_now();
        let mut bytes = [0; RECORD_BYTES];
        while self.inner.is_none()
            && wait_readable(&self.channel, Some(Instant::now())) == Ok(true)
            && self.channel.read_exact(&mut bytes).is_ok()
        {
            // If it names no child of ours there is nothing to reap.
            if let Some(Record::Forked { pid }) = Record::decode(&bytes)
                && let Ok(process) = WorkerProcess::adopt(pid)
            {
                self.inner = Some(process);
            }
        }
    }

    fn into_worker(self, evidence: SealEvidence) -> Result<SealedWorker, LaunchError> {
        let Self { channel, mut started, inner, deadline, .. } = self;
        let Some(inner) = inner else {
            return Ok(SealedWorker { channel, process: started, evidence });
        };
        let errors = started.take_errors();
        // The outer process ended before the worker reported. Where the child signal is ignored its status
        // is lost; that it is gone is what counts.
        match started.settle(deadline) {
            ExitKind::Clean | ExitKind::Lost => {}
            exit => return Err(LaunchError::Died { exit }),
        }
        let process = match errors {
            Some(errors) => inner.with_errors(errors),
            None => inner,
        };
        Ok(SealedWorker { channel, process, evidence })
    }
}

/// A worker that is sealed and waits for its first byte. Dropping it kills and reaps.
#[derive(Debug)]
pub struct SealedWorker {
    channel: UnixStream,
    process: WorkerProcess,
    evidence: SealEvidence,
}

impl SealedWorker {
    /// The channel, blocking and without a time-out.
    pub fn channel(&mut self) -> &mut UnixStream {
        &mut self.channel
    }

    /// The channel, to be given to asynchronous code, and the process.
    #[must_use]
    pub fn into_parts(self) -> (UnixStream, WorkerProcess) {
        (self.channel, self.process)
    }

    /// What is in force.
    #[must_use]
    pub fn evidence(&self) -> SealEvidence {
        self.evidence
    }

    /// The process id in the launcher's namespace, for reports.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether the worker still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.process.is_alive()
    }

    /// How much the worker wrote to its standard output and error.
    #[must_use]
    pub fn stderr(&self) -> StderrReport {
        self.process.stderr()
    }

    /// Kills the worker, unless it ended before, and collects its status.
    pub fn kill_and_reap(self) -> ExitKind {
        self.process.kill_and_reap()
    }

    /// Closes the channel and waits for the worker to end by itself; kills it when `timeout` has passed.
    pub fn wait(self, timeout: Duration) -> ExitKind {
        drop(self.channel);
        self.process.wait(timeout)
    }
}
