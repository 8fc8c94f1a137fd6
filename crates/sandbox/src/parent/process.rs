//! One worker process as its launcher holds it: a process descriptor, so that no signal and no wait can
//! ever meet another process that has the same id by now.

use std::io::PipeReader;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

use crate::limits::{REAP_TIMEOUT, STDERR_BYTES};
use crate::{ExitKind, LaunchError, StderrReport};

/// A launched worker without its channel. Dropping it kills and reaps.
#[derive(Debug)]
pub struct WorkerProcess {
    pid: Pid,
    pidfd: OwnedFd,
    errors: Option<PipeReader>,
    was_reaped: bool,
}

impl WorkerProcess {
    /// Takes charge of a child of this process, which nothing else waits for.
    pub(super) fn adopt(pid: i32) -> Result<Self, LaunchError> {
        let pid = Pid::from_raw(pid).ok_or(LaunchError::Report)?;
        let is_child =
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
        let spawn = |errno: Errno| LaunchError::Spawn { errno: errno.raw_os_error() };
        is_child.map_err(spawn)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(spawn)?;
        Ok(Self { pid, pidfd, errors: None, was_reaped: false })
    }

    pub(super) fn with_errors(mut self, errors: PipeReader) -> Self {
        self.errors = Some(errors);
        self
    }

    pub(super) fn take_errors(&mut self) -> Option<PipeReader> {
        self.errors.take()
    }

    /// The process id in the launcher's namespace, for reports.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// How much the worker wrote to its standard output and error.
    #[must_use]
    pub fn stderr(&self) -> StderrReport {
        let count = self.errors.as_ref().map_or(Ok(0), rustix::io::ioctl_fionread);
        // What can't be counted is taken for a flood, not for silence.
        let bytes = count.map_or(STDERR_BYTES, |count| usize::try_from(count).unwrap_or(usize::MAX));
        StderrReport { bytes: bytes.min(STDERR_BYTES), is_full: bytes >= STDERR_BYTES }
    }

    /// Whether the worker still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.was_reaped && !self.ends_within(Duration::ZERO)
    }

    /// Kills the worker, unless it ended before, and collects its status.
    pub fn kill_and_reap(mut self) -> ExitKind {
        self.end_now()
    }

    /// Waits for the worker to end by itself; kills it when `timeout` has passed.
    pub fn wait(mut self, timeout: Duration) -> ExitKind {
        if self.ends_within(timeout) { self.collect() } else { self.end_now() }
    }

    /// As [`Self::wait`], until a moment.
    pub(super) fn settle(&mut self, deadline: Option<Instant>) -> ExitKind {
        if wait_readable(&self.pidfd, deadline) == Ok(true) { self.collect() } else { self.end_now() }
    }

    /// Kills, unless it ended before, and collects.
    pub(super) fn end_now(&mut self) -> ExitKind {
        if self.ends_within(Duration::ZERO) {
            return self.collect();
        }
        // It fails only for a process that is gone.
        let was_sent = pidfd_send_signal(&self.pidfd, Signal::KILL).is_ok();
        if !self.ends_within(REAP_TIMEOUT) {
            return ExitKind::Lost;
        }
        match self.collect() {
            ExitKind::Signal(signal) if was_sent && signal == Signal::KILL.as_raw() => ExitKind::Killed,
            other => other,
        }
    }

    /// Whether the process ends within the time; a process descriptor is readable from then on.
    fn ends_within(&self, timeout: Duration) -> bool {
        wait_readable(&self.pidfd, Instant::now().checked_add(timeout)) == Ok(true)
    }

    fn collect(&mut self) -> ExitKind {
        if self.was_reaped {
            return ExitKind::Lost;
        }
        self.was_reaped = true;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = loop {
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), options) {
                Ok(Some(status)) => break status,
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return ExitKind::Lost,
            }
        };
        match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) => ExitKind::Clean,
            (Some(code), _) => ExitKind::Code(code),
            (None, Some(signal)) => ExitKind::Signal(signal),
            (None, None) => ExitKind::Lost,
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if !self.was_reaped {
            self.end_now();
        }
    }
}

/// Waits until the descriptor is readable or hung up; `false` at the deadline. No deadline is none.
pub(super) fn wait_readable(fd: impl AsFd, deadline: Option<Instant>) -> Result<bool, Errno> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = match left.map(Timespec::try_from) {
            Some(Ok(timeout)) => Some(timeout),
            Some(Err(_)) | None => None,
        };
        let mut entries = [PollFd::new(&fd, PollFlags::IN)];
        match poll(&mut entries, timeout.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
