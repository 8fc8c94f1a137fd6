//! The root lock: one writer of the context root at a time, across processes, with evidence of who holds it.
//!
//! The lock file lies in the root and is never unlinked. It is held by `flock`, and while it is held it carries one JSON
//! object that names the holder. It is free only when the `flock` can be had *and* the evidence is empty or names an
//! owner that is gone: dead, of another boot, with a reused pid, or of another pid namespace.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, ResolveFlags, flock, fstat, ftruncate, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::root::{ContextRoot, RootError};

/// Name of the lock file in the context root.
pub const LOCK_FILE: &str = ".thought.lock";
/// Bytes of evidence that are read.
const EVIDENCE_BYTES_MAX: usize = 1_024;
/// Pause between two tries.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Who holds the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnEvidence {
    /// This boot of the machine.
    pub boot_id: String,
    /// The process.
    pub pid: u32,
    /// When it started: field 22 of its `/proc` stat, clock ticks since boot.
    pub process_start: u64,
    /// Link text of its pid namespace.
    pub pid_namespace: String,
    /// 32 hex digits that nobody else has.
    pub token: String,
}

/// Why the lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A live owner holds it.
    #[error("take the root lock: a live process holds it")]
    Held,
    /// Its evidence is malformed, or the file is not what it should be.
    #[error("take the root lock: {why}")]
    Invalid {
        /// What is wrong.
        why: &'static str,
    },
    /// The evidence could not be written.
    #[error("write the evidence of the root lock: {0}")]
    CannotWrite(Errno),
    /// The root.
    #[error("reach the root lock")]
    Root(#[from] RootError),
    /// Anything else.
    #[error("reach the root lock: {0}")]
    Io(Errno),
}

impl OwnEvidence {
    /// The evidence of this process, with a token of 32 hex digits.
    ///
    /// # Errors
    /// [`LockError::Io`] when `/proc` does not tell.
    pub fn of_this_process(token: String) -> Result<Self, LockError> {
        let boot_id = read_proc("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let process_start = start_of("self")?.ok_or(LockError::Io(Errno::NOENT))?;
        Ok(Self { boot_id, pid: std::process::id(), process_start, pid_namespace: namespace()?, token })
    }

    fn is_well_formed(&self) -> bool {
        let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        self.token.len() == 32 && self.token.bytes().all(is_hex) && self.pid > 0 && !self.boot_id.is_empty()
    }

    /// Whether the owner that this names still lives, as seen by a process with evidence `own`.
    fn is_live(&self, own: &Self) -> Result<bool, LockError> {
        if self.boot_id != own.boot_id || self.pid_namespace != own.pid_namespace {
            return Ok(false);
        }
        Ok(start_of(&self.pid.to_string())? == Some(self.process_start))
    }
}

/// The held lock; dropped, its evidence is emptied and it is free.
#[derive(Debug)]
pub struct RootGuard {
    file: OwnedFd,
}

impl Drop for RootGuard {
    fn drop(&mut self) {
        // Evidence that cannot be emptied names a process that will be gone: the next taker sees that.
        let _unheard = ftruncate(&self.file, 0);
    }
}

/// Takes the lock, waiting for a live owner at most this long. Blocks the thread.
///
/// # Errors
/// [`LockError`].
pub fn acquire(root: &ContextRoot, own: &OwnEvidence, wait: Duration) -> Result<RootGuard, LockError> {
    let mut waited = Duration::ZERO;
    loop {
        match attempt(root, own) {
            Err(LockError::Held) if waited < wait => {
                std::thread::sleep(RETRY_PAUSE);
                waited += RETRY_PAUSE;
            }
            outcome => return outcome,
        }
    }
}

fn attempt(root: &ContextRoot, own: &OwnEvidence) -> Result<RootGuard, LockError> {
    let file = open_file(root)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(LockError::Held),
        Err(errno) => return Err(LockError::Io(errno)),
    }
    let evidence = read_evidence(&file)?;
    if !evidence.is_empty() {
        let found: OwnEvidence = serde_json::from_slice(&evidence)
            .map_err(|_malformed| LockError::Invalid { why: "its evidence is malformed" })?;
        if !found.is_well_formed() {
            return Err(LockError::Invalid { why: "its evidence is malformed" });
        }
        if found.is_live(own)? {
            return Err(LockError::Held);
        }
    }
    let bytes = serde_json::to_vec(own).map_err(|_error| LockError::Invalid { why: "no evidence can be written" })?;
    ftruncate(&file, 0).map_err(LockError::CannotWrite)?;
    match rustix::io::pwrite(&file, &bytes, 0) {
        Ok(written) if written == bytes.len() => Ok(RootGuard { file }),
        Ok(_) => {
            let _unheard = ftruncate(&file, 0);
            Err(LockError::CannotWrite(Errno::NOSPC))
        }
        Err(errno) => Err(LockError::CannotWrite(errno)),
    }
}

/// Empties the evidence after a person said yes. The `flock` must be free.
///
/// # Errors
/// [`LockError::Held`] when a process holds the lock.
pub fn clear(root: &ContextRoot) -> Result<(), LockError> {
    let file = open_file(root)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => ftruncate(&file, 0).map_err(LockError::CannotWrite),
        Err(Errno::WOULDBLOCK) => Err(LockError::Held),
        Err(errno) => Err(LockError::Io(errno)),
    }
}

fn open_file(root: &ContextRoot) -> Result<OwnedFd, LockError> {
    let directory = root.directory()?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&directory, LOCK_FILE, flags, Mode::RUSR | Mode::WUSR, resolve);
    let file = file.map_err(|errno| match errno {
        Errno::LOOP | Errno::XDEV => LockError::Invalid { why: "the lock file is a link" },
        Errno::ISDIR | Errno::NXIO => LockError::Invalid { why: "the lock file is no regular file" },
        Errno::NOSPC | Errno::DQUOT | Errno::ROFS => LockError::CannotWrite(errno),
        other => LockError::Io(other),
    })?;
    let stat = fstat(&file).map_err(LockError::Io)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile {
        Ok(file)
    } else {
        Err(LockError::Invalid { why: "the lock file is no regular file" })
    }
}

fn read_evidence(file: &OwnedFd) -> Result<Vec<u8>, LockError> {
    let mut bytes = vec![0; EVIDENCE_BYTES_MAX + 1];
    let read = rustix::io::pread(file, bytes.as_mut_slice(), 0).map_err(LockError::Io)?;
    if read > EVIDENCE_BYTES_MAX {
        return Err(LockError::Invalid { why: "its evidence is malformed" });
    }
    bytes.truncate(read);
    Ok(bytes)
}

fn read_proc(path: &str) -> Result<String, LockError> {
    std::fs::read_to_string(path)
        .map_err(|error| LockError::Io(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
}

/// Start time of a process by its `/proc` name; none when there is no such process (a zombie is none: it writes no more).
fn start_of(process: &str) -> Result<Option<u64>, LockError> {
    let text = match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::SRCH) => return Ok(None),
            errno => return Err(LockError::Io(errno.unwrap_or(Errno::IO))),
        },
    };
    // The name in parentheses may hold anything; the fields behind the last one are numbers.
    let Some((_, fields)) = text.rsplit_once(')') else { return Err(LockError::Io(Errno::INVAL)) };
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next().unwrap_or_default();
    if matches!(state, "Z" | "X") {
        return Ok(None);
    }
    // State is field 3; the start time is field 22.
    match fields.nth(18).map(str::parse) {
        Some(Ok(start)) => Ok(Some(start)),
        _ => Err(LockError::Io(Errno::INVAL)),
    }
}

fn namespace() -> Result<String, LockError> {
    let link = std::fs::read_link("/proc/self/ns/pid")
        .map_err(|error| LockError::Io(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    Ok(link.to_string_lossy().into_owned())
}
