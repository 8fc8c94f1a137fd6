//! Claims: what a short command works at beside `serve`, one file each under `run/`, held with `flock` as long as the command
//! works and marked before it begins. Who ends in good order takes the file away; a process that dies leaves it marked and
//! free, and so whoever comes next knows that nobody is at it any more. A dispatcher that begins takes over what every claim
//! was on and takes the files away, the held ones too: what is being sent from then on is its own work.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use thought_protocol::EventId;

use crate::exit::{Exit, Failure};
use crate::home::Home;

/// How the files of claims on deliveries begin.
const DELIVERY: &str = "delivery-";
/// What a marked file holds.
const MARK: &[u8] = b"claimed\n";
/// Tries to take one.
const TRIES: u32 = 16;

/// Between two of them, where another process has it: one that only looks lets go within a moment.
const PAUSE: Duration = Duration::from_millis(10);

/// A claim. Dropped with its mark on, its file stays behind for the next one.
#[derive(Debug)]
pub struct Claim {
    file: File,
    path: PathBuf,
    was_left: bool,
    is_marked: bool,
}

impl Claim {
    /// Takes the claim on a delivery; none where another process has it.
    ///
    /// # Errors
    /// [`Failure`] (8) when its file cannot be made.
    pub fn take(home: &Home, delivery: &EventId) -> Result<Option<Self>, Failure> {
        let path = home.run_folder()?.join(name(delivery));
        for _ in 0..TRIES {
            let file = open(&path, true).map_err(|error| cannot(&path, &error))?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                std::thread::sleep(PAUSE);
                continue;
            }
            // Whoever had it may have taken the file away in between; then what is held is nobody's claim.
            let mut claim = Self { file, path: path.clone(), was_left: false, is_marked: true };
            if claim.standing().is_there() {
                claim.was_left = is_marked(&mut claim.file);
                claim.is_marked = claim.was_left;
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    /// Whether a process died in the middle of what it claimed.
    pub const fn was_left(&self) -> bool {
        self.was_left
    }

    /// The way to tell later whether a dispatcher took over what this is a claim on.
    pub fn standing(&self) -> Standing {
        Standing { file: inode(self.file.metadata()), path: self.path.clone() }
    }

    /// From here on something is begun that another process has to know of, should this one die.
    ///
    /// # Errors
    /// [`Failure`] (8) when the mark cannot be written.
    pub fn mark(&mut self) -> Result<(), Failure> {
        if !self.is_marked {
            self.file.write_all(MARK).map_err(|error| cannot(&self.path, &error))?;
            self.is_marked = true;
        }
        Ok(())
    }

    /// What was begun is at an end.
    pub fn settle(mut self) {
        self.is_marked = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // One that was taken over has left its place, perhaps to another.
        if !self.is_marked && self.standing().is_there() {
            // A file that stays is unmarked or of no process that lives; the next dispatcher takes it away.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Where a claim stood when it was taken. Its holder keeps the file open, so that no other file can pass for it.
#[derive(Debug, Clone)]
pub struct Standing {
    file: Option<Inode>,
    path: PathBuf,
}

impl Standing {
    /// Whether it stands there still: no dispatcher has begun since.
    pub fn is_there(&self) -> bool {
        self.file.is_some() && self.file == inode(std::fs::symlink_metadata(&self.path))
    }
}

/// Whether a process died with the claim on a delivery.
pub fn is_left(home: &Home, delivery: &EventId) -> bool {
    let Ok(mut file) = open(&home.below("run").join(name(delivery)), false) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared).is_ok() && is_marked(&mut file)
}

/// Takes every claim away, held or left. For whoever takes over what was claimed, before anything of it is read: a dispatcher
/// that begins. A command that still lives finds its claim gone, and then what it waited with taken up.
pub fn take_over(home: &Home) {
    let Ok(entries) = std::fs::read_dir(home.below("run")) else { return };
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.file_name().is_some_and(is_of_a_delivery)) {
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!(kind = %error.kind(), "a claim on a delivery cannot be taken over");
        }
    }
}

fn name(delivery: &EventId) -> String {
    format!("{DELIVERY}{delivery}.claim")
}

fn is_of_a_delivery(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(DELIVERY) && name.ends_with(".claim"))
}

fn open(path: &Path, make: bool) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK).bits();
    let mut options = File::options();
    options.read(true).write(true).create(make).mode(0o600).custom_flags(flags.cast_signed());
    options.open(path)
}

/// The device and number of a file.
type Inode = (u64, u64);

fn inode(metadata: std::io::Result<Metadata>) -> Option<Inode> {
    metadata.ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn is_marked(file: &mut File) -> bool {
    matches!(file.read(&mut [0]), Ok(read) if read > 0)
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    let kind: ErrorKind = error.kind();
    Failure::new(Exit::Machine, "cannot-claim", format!("claim {}: {kind}", path.display()))
}
