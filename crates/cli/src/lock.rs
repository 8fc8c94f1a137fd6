//! Role locks: one file per role under `run/`, held with `flock` for as long as the role works.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use crate::exit::{Exit, Failure};
use crate::home::Home;

/// A held role; dropped, it is free.
#[derive(Debug)]
pub struct RoleLock {
    _file: File,
}

/// Whether a role could be taken.
#[derive(Debug)]
pub enum Taken {
    /// It is ours now.
    Ours(RoleLock),
    /// Another process has it.
    Held,
}

/// The role of one declaration's consumer.
pub fn consumer(declaration: &str) -> String {
    format!("consume-{declaration}")
}

/// The role of whoever sends what a chat hears.
pub const DISPATCH: &str = "dispatch";
/// The role of whoever changes a declaration.
pub const ACTIVATE: &str = "activate";

/// Whether somebody holds a role now. A lock that cannot be looked at counts as held: what its holder asked for stands.
pub fn is_held(home: &Home, role: &str) -> bool {
    let path = home.below("run").join(format!("{role}.lock"));
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match open(&path, flags, Mode::empty()) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
        Err(errno) => errno != rustix::io::Errno::NOENT,
    }
}

/// How often a lock that looks held is tried again, and after which pause. A child that its killed parent left behind in
/// the middle of its launch holds what the parent held until it has closed it, which takes a moment.
const TRIES: u32 = 6;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes what is free, or becomes free within a moment.
///
/// # Errors
/// What `take` failed with.
pub fn patiently(mut take: impl FnMut() -> Result<Taken, Failure>) -> Result<Taken, Failure> {
    for _ in 1..TRIES {
        if let Taken::Ours(lock) = take()? {
            return Ok(Taken::Ours(lock));
        }
        std::thread::sleep(PAUSE);
    }
    take()
}

/// Tries to take a role.
///
/// # Errors
/// [`Failure`] when the lock file cannot be opened.
pub fn take(home: &Home, role: &str) -> Result<Taken, Failure> {
    let path = home.run_folder()?.join(format!("{role}.lock"));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(&path, flags, Mode::from_raw_mode(0o600)).map_err(|errno| cannot(&path, errno))?;
    hold(file, &path)
}

/// Takes the home itself for the one `serve` that may work on it: a lock on the folder's own inode, which nobody can
/// remove from under the process that holds it.
///
/// # Errors
/// [`Failure`] when the folder cannot be opened.
pub fn take_home(home: &Home) -> Result<Taken, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(&home.path, flags, Mode::empty()).map_err(|errno| cannot(&home.path, errno))?;
    hold(folder, &home.path)
}

fn hold(file: OwnedFd, path: &Path) -> Result<Taken, Failure> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Taken::Ours(RoleLock { _file: file.into() })),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Taken::Held),
        Err(errno) => Err(cannot(path, errno)),
    }
}

fn cannot(path: &Path, errno: rustix::io::Errno) -> Failure {
    let kind = std::io::Error::from(errno).kind();
    Failure::new(Exit::Machine, "cannot-lock", format!("lock {}: {kind}", path.display()))
}
