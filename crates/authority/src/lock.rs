//! The root lock: one writer of the context root at a time, across processes, with evidence of who holds it.
//!
//! The lock file lies in the root and is never unlinked. It is held by `flock`, and while it is held it carries one JSON
//! object that names the holder. It is free only when the `flock` can be had *and* the evidence is empty or names an
//! owner that is gone: dead, of another boot, with a reused pid, or of another pid namespace. Whoever holds the lock
//! works through the folder that it lies in, so that a root swapped meanwhile is not written under the lock of another.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, ResolveFlags, fchmod, flock, ftruncate, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::limits::{EVIDENCE_BYTES_MAX, LOCK_RETRY_PAUSE, PID_MAX};
use crate::root::{ContextRoot, Look, RootError, look, look_at};

/// Name of the lock file in the context root.
pub const LOCK_FILE: &str = ".thought.lock";

/// Why a lock file is left to a person that is the lock's own, but for what stands in it.
pub const EVIDENCE_MALFORMED: &str = "its evidence is malformed";

const MALFORMED: LockError = LockError::Invalid { why: EVIDENCE_MALFORMED };
const REPLACED: LockError = LockError::Invalid { why: "the lock file was replaced" };

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
    /// The root's path leads to another folder than the one that is locked.
    #[error("keep the root lock: the context root was moved or replaced")]
    RootMoved,
    /// The evidence could not be written.
    #[error("write the evidence of the root lock: {0}")]
    CannotWrite(Errno),
    /// The root.
    #[error("reach the root lock")]
    Root(#[from] RootError),
    /// Anything else.
    #[error("reach the root lock: {0}")]
    Io(Errno),
    /// The thread that tried is gone.
    #[error("take the root lock: its thread ended")]
    Thread,
}

/// What stands in the way of whoever wants the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockState {
    /// Nothing: there is no lock file yet, or nobody holds it.
    Free,
    /// A live owner, by `flock` or by evidence.
    Held,
    /// Evidence or a file that only a person may clear.
    Invalid {
        /// What is wrong.
        why: &'static str,
    },
}

impl OwnEvidence {
    /// The evidence of this process, with a token of 32 hex digits.
    ///
    /// # Errors
    /// [`LockError::Invalid`] for another token, [`LockError::Io`] when `/proc` does not tell.
    pub fn of_this_process(token: String) -> Result<Self, LockError> {
        let boot_id = read_proc("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let process_start = start_of("self")?.ok_or(LockError::Io(Errno::NOENT))?;
        let own =
            Self { boot_id, pid: std::process::id(), process_start, pid_namespace: namespace()?, token };
        if own.is_well_formed() {
            Ok(own)
        } else {
            Err(LockError::Invalid { why: "the own evidence is malformed" })
        }
    }

    fn is_well_formed(&self) -> bool {
        self.token.len() == 32
            && self.token.bytes().all(|c| c.is_ascii_hexdigit())
            && (1..=PID_MAX).contains(&self.pid)
            && !self.boot_id.is_empty()
            && !self.pid_namespace.is_empty()
    }

    /// Whether the owner that this names still lives, as seen by a process with evidence `own` that has the `flock`.
    fn is_live(&self, own: &Self) -> Result<bool, LockError> {
        // Its own name under a `flock` that was free is what a release could not empty.
        if self == own || self.boot_id != own.boot_id || self.pid_namespace != own.pid_namespace {
            return Ok(false);
        }
        Ok(start_of(&self.pid.to_string())? == Some(self.process_start))
    }
}

/// The held lock; dropped, its evidence is emptied and it is free.
#[derive(Debug)]
pub struct RootGuard {
    folder: Arc<OwnedFd>,
    file: OwnedFd,
    evidence: Vec<u8>,
    taken: Look,
}

impl RootGuard {
    /// The folder that is locked: what is done under the lock is done through this descriptor.
    pub fn folder(&self) -> &Arc<OwnedFd> {
        &self.folder
    }

    /// What the lock file looked like once the evidence stood in it: the file system's own time of the taking.
    pub fn taken(&self) -> &Look {
        &self.taken
    }

    /// Whether this still locks the root: its path leads to the locked folder, and the lock file there is the one that
    /// is held, with the evidence that was written. To be asked before and after a write.
    ///
    /// # Errors
    /// [`LockError::RootMoved`], [`LockError::Invalid`], or what kept it from being seen.
    pub fn check(&self, root: &ContextRoot) -> Result<(), LockError> {
        if !root.is_at(&*self.folder)? {
            return Err(LockError::RootMoved);
        }
        if !is_in_place(&self.folder, &self.file)? || read_evidence(&self.file)? != self.evidence {
            return Err(REPLACED);
        }
        Ok(())
    }
}

impl Drop for RootGuard {
    fn drop(&mut self) {
        // Evidence that cannot be emptied names this process: it sees that it is its own, and others that it is gone.
        let _unheard = ftruncate(&self.file, 0);
        // Closing would not do: a child that is being started holds a copy of the descriptor until it executes.
        let _unheard = flock(&self.file, FlockOperation::Unlock);
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
                std::thread::sleep(LOCK_RETRY_PAUSE);
                waited += LOCK_RETRY_PAUSE;
            }
            outcome => return outcome,
        }
    }
}

/// Takes the lock, waiting for a live owner at most this long, without a thread that waits: dropped, it ends.
///
/// # Errors
/// [`LockError`].
pub async fn acquire_within(
    root: &ContextRoot,
    own: &OwnEvidence,
    wait: Duration,
) -> Result<RootGuard, LockError> {
    let mut waited = Duration::ZERO;
    loop {
        let (root, own) = (root.clone(), own.clone());
        let tried = tokio::task::spawn_blocking(move || attempt(&root, &own)).await;
        match tried.unwrap_or(Err(LockError::Thread)) {
            Err(LockError::Held) if waited < wait => {
                tokio::time::sleep(LOCK_RETRY_PAUSE).await;
                waited += LOCK_RETRY_PAUSE;
            }
            outcome => return outcome,
        }
    }
}

fn attempt(root: &ContextRoot, own: &OwnEvidence) -> Result<RootGuard, LockError> {
    let folder = root.directory()?;
    let file = open_file(&folder, OFlags::CREATE)?;
    lock_file(&folder, &file)?;
    match judge(&file, own)? {
        LockState::Free => {}
        LockState::Held => return Err(LockError::Held),
        LockState::Invalid { why } => return Err(LockError::Invalid { why }),
    }
    if look_at(&file).map_err(LockError::Io)?.mode() != 0o600 {
        fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(LockError::CannotWrite)?;
    }
    let evidence = match serde_json::to_vec(own) {
        Ok(evidence) if evidence.len() <= EVIDENCE_BYTES_MAX => evidence,
        _ => return Err(LockError::Invalid { why: "the own evidence is malformed" }),
    };
    ftruncate(&file, 0).map_err(LockError::CannotWrite)?;
    match rustix::io::pwrite(&file, &evidence, 0) {
        Ok(written) if written == evidence.len() => {}
        Ok(_) => {
            let _unheard = ftruncate(&file, 0);
            return Err(LockError::CannotWrite(Errno::NOSPC));
        }
        Err(errno) => return Err(LockError::CannotWrite(errno)),
    }
    let taken = look_at(&file).map_err(LockError::Io)?;
    Ok(RootGuard { folder: Arc::new(folder), file, evidence, taken })
}

/// What stands in the way of the lock now, without taking or making it.
///
/// # Errors
/// [`LockError`], when it cannot be told.
pub fn state(root: &ContextRoot, own: &OwnEvidence) -> Result<LockState, LockError> {
    let folder = root.directory()?;
    let judged = match open_file(&folder, OFlags::empty()) {
        Ok(file) => lock_file(&folder, &file).and_then(|()| judge(&file, own)),
        Err(LockError::Io(Errno::NOENT)) => Ok(LockState::Free),
        Err(error) => Err(error),
    };
    match judged {
        Err(LockError::Held) => Ok(LockState::Held),
        Err(LockError::Invalid { why }) => Ok(LockState::Invalid { why }),
        judged => judged,
    }
}

/// Empties the evidence after a person said yes. The `flock` must be free.
///
/// # Errors
/// [`LockError::Held`] when a process holds the lock; [`LockError::Invalid`] for a file that is not the lock's own.
pub fn clear(root: &ContextRoot) -> Result<(), LockError> {
    let folder = root.directory()?;
    let file = match open_file(&folder, OFlags::empty()) {
        Err(LockError::Io(Errno::NOENT)) => return Ok(()),
        opened => opened?,
    };
    lock_file(&folder, &file)?;
    ftruncate(&file, 0).map_err(LockError::CannotWrite)
}

/// Gets the `flock`, which ends with the descriptor.
fn lock_file(folder: &OwnedFd, file: &OwnedFd) -> Result<(), LockError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(LockError::Held),
        Err(errno) => return Err(LockError::Io(errno)),
    }
    if is_in_place(folder, file)? { Ok(()) } else { Err(REPLACED) }
}

fn is_in_place(folder: &OwnedFd, file: &OwnedFd) -> Result<bool, LockError> {
    match look(folder, LOCK_FILE) {
        Ok(there) => Ok(there.is_same_file(&look_at(file).map_err(LockError::Io)?)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(LockError::Io(errno)),
    }
}

/// Judges the evidence in a file whose `flock` was had.
fn judge(file: &OwnedFd, own: &OwnEvidence) -> Result<LockState, LockError> {
    let evidence = read_evidence(file)?;
    if evidence.is_empty() {
        return Ok(LockState::Free);
    }
    match serde_json::from_slice::<OwnEvidence>(&evidence) {
        Ok(found) if found.is_well_formed() => {
            Ok(if found.is_live(own)? { LockState::Held } else { LockState::Free })
        }
        _ => Err(MALFORMED),
    }
}

fn open_file(folder: &OwnedFd, create: OFlags) -> Result<OwnedFd, LockError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | create;
    let mode = if create.is_empty() { Mode::empty() } else { Mode::RUSR | Mode::WUSR };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(folder, LOCK_FILE, flags, mode, resolve).map_err(|errno| match errno {
        Errno::LOOP | Errno::XDEV => LockError::Invalid { why: "the lock file is a link" },
        Errno::ISDIR | Errno::NXIO => LockError::Invalid { why: "the lock file is no regular file" },
        Errno::NOSPC | Errno::DQUOT | Errno::ROFS => LockError::CannotWrite(errno),
        other => LockError::Io(other),
    })?;
    let found = look_at(&file).map_err(LockError::Io)?;
    if found.kind() != FileType::RegularFile {
        return Err(LockError::Invalid { why: "the lock file is no regular file" });
    }
    // Emptying it would empty what else bears the other name.
    if found.links() > 1 {
        return Err(LockError::Invalid { why: "the lock file has a second name" });
    }
    Ok(file)
}

fn read_evidence(file: &OwnedFd) -> Result<Vec<u8>, LockError> {
    let mut bytes = vec![0; EVIDENCE_BYTES_MAX + 1];
    let read = rustix::io::pread(file, bytes.as_mut_slice(), 0).map_err(LockError::Io)?;
    if read > EVIDENCE_BYTES_MAX {
        return Err(MALFORMED);
    }
    bytes.truncate(read);
    Ok(bytes)
}

fn of_proc(error: &std::io::Error) -> LockError {
    LockError::Io(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

fn read_proc(path: &str) -> Result<String, LockError> {
    std::fs::read_to_string(path).map_err(|error| of_proc(&error))
}

/// Start time of a process by its `/proc` name; none when there is no such process (a zombie is none: it writes no more).
fn start_of(process: &str) -> Result<Option<u64>, LockError> {
    // The name in it is any bytes that the process likes.
    let bytes = match std::fs::read(format!("/proc/{process}/stat")) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::SRCH) => return Ok(None),
            _ => return Err(of_proc(&error)),
        },
    };
    start_in(&String::from_utf8_lossy(&bytes))
}

fn start_in(stat: &str) -> Result<Option<u64>, LockError> {
    // The name in parentheses may hold anything; the fields behind the last one are numbers.
    let Some((_, fields)) = stat.rsplit_once(')') else { return Err(LockError::Io(Errno::INVAL)) };
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return Ok(None);
    }
    // State is field 3; the start time is field 22.
    match fields.nth(18).map(str::parse) {
        Some(Ok(start)) => Ok(Some(start)),
        _ => Err(LockError::Io(Errno::INVAL)),
    }
}

fn namespace() -> Result<String, LockError> {
    let link = std::fs::read_link("/proc/self/ns/pid").map_err(|error| of_proc(&error))?;
    Ok(link.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_stands_behind_any_name() {
        let tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        for name in ["thought", "a) Z 1 (b", "x y", ")", "(("] {
            assert_eq!(start_in(&format!("7 ({name}) {tail}")).unwrap(), Some(4_711), "{name}");
        }
    }

    #[test]
    fn a_zombie_is_gone_and_a_cut_line_is_an_error() {
        assert_eq!(start_in("7 (x) Z 1 2 3").unwrap(), None);
        assert_eq!(start_in("7 (x) X 1 2 3").unwrap(), None);
        for bad in ["", "7 (x", "7 (x) S 1 2 3", "7 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 no"] {
            assert!(matches!(start_in(bad), Err(LockError::Io(_))), "{bad}");
        }
    }

    #[test]
    fn this_process_is_told_as_the_system_tells_it() {
        let own = OwnEvidence::of_this_process("0123456789abcdef0123456789abcdef".to_owned()).unwrap();
        assert_eq!(own.pid, std::process::id());
        assert!(own.pid_namespace.starts_with("pid:["));
        let text = serde_json::to_string(&own).unwrap();
        for field in ["bootId", "pid", "processStart", "pidNamespace", "token"] {
            assert!(text.contains(&format!("\"{field}\":")), "{text}");
        }
        assert!(OwnEvidence::of_this_process("short".to_owned()).is_err());
    }
}
