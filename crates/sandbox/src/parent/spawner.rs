//! The one thread that starts every worker.
//!
//! The kernel ties the death of a child to the *thread* that made it, so workers must not be started
//! from a thread that may end before the process does. This one never ends. It only starts; waiting for
//! a seal is the caller's.

use std::io::PipeWriter;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::errno_of;
use super::process::WorkerProcess;
use crate::LaunchError;

const THREAD_NAME: &str = "thought-launch";
/// The name of a worker in the process list.
const WORKER_NAME: &str = "thought-worker";

/// All that a start needs.
pub(super) struct Start {
    pub(super) executable: Arc<OwnedFd>,
    pub(super) argument: &'static str,
    pub(super) order: String,
    pub(super) channel: OwnedFd,
    pub(super) errors: PipeWriter,
}

struct Job {
    start: Start,
    answer: SyncSender<Result<WorkerProcess, LaunchError>>,
}

/// Starts a process on the dedicated thread. An answer that comes too late is killed and reaped there.
pub(super) fn spawn(start: Start, timeout: Duration) -> Result<WorkerProcess, LaunchError> {
    let (answer, answers) = sync_channel(1);
    let jobs = spawner().as_ref().map_err(|error| *error)?;
    if jobs.send(Job { start, answer }).is_err() {
        return Err(LaunchError::Thread);
    }
    match answers.recv_timeout(timeout) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => {
            Err(LaunchError::Timeout { timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX) })
        }
        Err(RecvTimeoutError::Disconnected) => Err(LaunchError::Thread),
    }
}

fn spawner() -> &'static Result<Sender<Job>, LaunchError> {
    static SPAWNER: OnceLock<Result<Sender<Job>, LaunchError>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new().name(THREAD_NAME.into()).spawn(move || serve(&queue));
        match thread {
            Ok(_detached) => Ok(jobs),
            Err(error) => Err(LaunchError::Spawn { errno: errno_of(&error) }),
        }
    })
}

fn serve(queue: &Receiver<Job>) {
    // The sender is in a static: the loop ends with the process.
    while let Ok(Job { start, answer }) = queue.recv() {
        // If nobody waits any more, dropping the process kills and reaps it.
        drop(answer.send(start_process(start)));
    }
}

fn start_process(start: Start) -> Result<WorkerProcess, LaunchError> {
    let spawn_error = |error: std::io::Error| LaunchError::Spawn { errno: errno_of(&error) };
    let output = start.errors.try_clone().map_err(spawn_error)?;
    // The link names the very file that is held open, whatever its path leads to by now.
    let program = format!("/proc/self/fd/{}", start.executable.as_raw_fd());
    #[expect(clippy::disallowed_methods, reason = "this is the one door through which processes are started")]
    let mut command = Command::new(program);
    command
        .arg0(WORKER_NAME)
        .args([start.argument, &start.order])
        .env_clear()
        .stdin(Stdio::from(start.channel))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(start.errors));
    // Nothing here needs code between fork and exec, so the library starts without copying memory.
    let child = command.spawn().map_err(spawn_error)?;
    let pid = i32::try_from(child.id()).map_err(|error| {
        debug_assert!(false, "a process id is positive: {error}");
        LaunchError::Report
    })?;
    // The library's handle neither kills nor waits when it is dropped.
    WorkerProcess::adopt(pid)
}
