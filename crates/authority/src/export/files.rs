//! The two files of an export: written aside under a name of their own, synced, and put in place whole.
//!
//! The manifest is put in place first and the output last, so that an output implies its manifest. As long as an export
//! is under way its temporary output is locked; a temporary file that nobody locks is the leftover of one that was
//! killed, and the next export in that folder names and removes it, together with a manifest that was put in place for
//! it and that no output follows any more. It removes nothing else, and it overwrites nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, fchmod, flock, fstat, fsync, linkat, openat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use thought_contract::review::visible;
use thought_protocol::Sha256Hex;
use thought_protocol::hash::Hasher;

use super::destination::{DestinationError, is_own_file, is_there, manifest_of};
use super::manifest::Manifest;
use crate::limits::{LEFTOVERS_LOOKED_AT_MAX, MANIFEST_BYTES_MAX};

/// How the names of unfinished files end.
pub(super) const TEMPORARY_SUFFIX: &str = ".thought-export.part";

/// A file that could not be written or put in place. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Another export writes under this name now.
    #[error("write the export: another one writes to this destination now")]
    Busy,
    /// Something stands where the unfinished file goes, and no export made it.
    #[error(
        "write the export: {name} stands in the folder, where the unfinished file goes, and is no file of an export"
    )]
    Odd {
        /// Its name, with what does not print spelled out.
        name: String,
    },
    /// The name was taken meanwhile.
    #[error("write the export: its name was taken meanwhile, and nothing is overwritten")]
    Taken,
    /// The disk is full.
    #[error("write the export: no space is left")]
    NoSpace,
    /// Anything else.
    #[error("write the export: {}", .0.kind())]
    Io(#[source] io::Error),
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            _ => Self::Io(error),
        }
    }
}

/// The name under which a file is written before it is put in place.
pub(super) fn temporary_of(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(TEMPORARY_SUFFIX);
    temporary
}

/// The name that an unfinished file was meant for.
fn meant_by(temporary: &OsStr) -> Option<OsString> {
    let inner = temporary.as_bytes().strip_prefix(b".")?.strip_suffix(TEMPORARY_SUFFIX.as_bytes())?;
    (!inner.is_empty()).then(|| OsStr::from_bytes(inner).to_owned())
}

/// A file on its way; dropped before it is in place, it is removed.
#[derive(Debug)]
pub(super) struct Staged<'a> {
    folder: &'a OwnedFd,
    temporary: Option<OsString>,
    name: OsString,
    file: File,
}

impl<'a> Staged<'a> {
    /// Makes it: for the owner alone, new, and locked.
    pub(super) fn create(folder: &'a OwnedFd, name: &OsStr) -> Result<Self, FileError> {
        let temporary = temporary_of(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(folder, &temporary, flags, mode).map_err(|errno| match errno {
            Errno::EXIST => FileError::Busy,
            other => other.into(),
        })?;
        let staged = Self { folder, temporary: Some(temporary), name: name.to_owned(), file: file.into() };
        // The mode that was asked for, whatever mask this process has.
        fchmod(&staged.file, mode)?;
        match flock(&staged.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(staged.lost()),
            Err(other) => return Err(other.into()),
        }
        // Between its making and its lock it looked like a leftover.
        if fstat(&staged.file)?.st_nlink == 0 {
            return Err(staged.lost());
        }
        Ok(staged)
    }

    /// The name is another's by now.
    fn lost(mut self) -> FileError {
        self.temporary = None;
        FileError::Busy
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The disk has it.
    pub(super) fn sync(&self) -> Result<(), FileError> {
        Ok(fsync(&self.file)?)
    }

    /// Puts it in place, where nothing stands.
    pub(super) fn publish(mut self) -> Result<Published<'a>, FileError> {
        let Some(temporary) = &self.temporary else { return Err(FileError::Busy) };
        let (folder, name) = (self.folder, self.name.clone());
        match renameat_with(folder, temporary, folder, &name, RenameFlags::NOREPLACE) {
            // A file system without that kind of renaming still refuses a second name that is taken.
            Err(Errno::INVAL) => {
                linkat(folder, temporary, folder, &name, AtFlags::empty()).map_err(taken)?;
                unlinkat(folder, temporary, AtFlags::empty())?;
            }
            outcome => outcome.map_err(taken)?,
        }
        self.temporary = None;
        let published = Published { folder, name: Some(name) };
        fsync(folder)?;
        Ok(published)
    }
}

fn taken(errno: Errno) -> FileError {
    if errno == Errno::EXIST { FileError::Taken } else { errno.into() }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // One that cannot be removed is what the next export names and removes.
            let _left = unlinkat(self.folder, temporary, AtFlags::empty());
        }
    }
}

/// A file in its place; dropped before it is kept, it is removed.
#[derive(Debug)]
pub(super) struct Published<'a> {
    folder: &'a OwnedFd,
    name: Option<OsString>,
}

impl Published<'_> {
    /// It stays.
    pub(super) fn keep(mut self) {
        self.name = None;
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _left = unlinkat(self.folder, name, AtFlags::empty());
        }
    }
}

/// Removes what killed exports left in a folder, and names it.
///
/// `own` is the name that the next export writes to: where another one writes to it now, that is an error.
pub(super) fn sweep(folder: &OwnedFd, own: &OsStr) -> Result<Vec<String>, FileError> {
    let mut leftovers = Vec::new();
    for entry in Dir::read_from(folder)?.take(LEFTOVERS_LOOKED_AT_MAX) {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if let Some(meant) = meant_by(&name) {
            leftovers.push((name, meant));
        }
    }
    leftovers.sort();
    let mut swept = Vec::new();
    for (temporary, meant) in leftovers {
        match sweep_one(folder, &temporary, &meant)? {
            Swept::Busy if meant == own => return Err(FileError::Busy),
            Swept::Odd if meant == own || meant == manifest_of(own) => {
                return Err(FileError::Odd { name: visible(&temporary.to_string_lossy()) });
            }
            Swept::Busy | Swept::Odd => {}
            Swept::Removed(names) => {
                swept.extend(names.iter().map(|name| name.to_string_lossy().into_owned()))
            }
        }
    }
    if !swept.is_empty() {
        fsync(folder)?;
    }
    Ok(swept)
}

enum Swept {
    /// Somebody writes it now.
    Busy,
    /// It is nothing of ours.
    Odd,
    Removed(Vec<OsString>),
}

fn sweep_one(folder: &OwnedFd, temporary: &OsStr, meant: &OsStr) -> Result<Swept, FileError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: File = match openat(folder, temporary, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(Errno::NOENT) => return Ok(Swept::Removed(Vec::new())),
        Err(_not_ours) => return Ok(Swept::Odd),
    };
    if !is_own_file(&fstat(&file)?) {
        return Ok(Swept::Odd);
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Swept::Busy),
        Err(other) => return Err(other.into()),
    }
    let mut removed = Vec::new();
    let manifest = manifest_of(meant);
    if is_orphan(folder, (&manifest, meant), &file)? {
        // First, so that a manifest never outlives what shows that it is a leftover.
        unlinkat(folder, &manifest, AtFlags::empty())?;
        fsync(folder)?;
        removed.push(manifest);
    }
    unlinkat(folder, temporary, AtFlags::empty())?;
    removed.push(temporary.to_owned());
    Ok(Swept::Removed(removed))
}

/// Whether a manifest was put in place for this unfinished output, and no output followed.
fn is_orphan(
    folder: &OwnedFd,
    (manifest, output): (&OsStr, &OsStr),
    unfinished: &File,
) -> Result<bool, FileError> {
    let has_output = is_there(folder, output).map_err(unreadable)?;
    if has_output || !is_there(folder, manifest).map_err(unreadable)? {
        return Ok(false);
    }
    let found = statat(folder, manifest, AtFlags::SYMLINK_NOFOLLOW)?;
    let size = u64::try_from(found.st_size).unwrap_or(u64::MAX);
    if !is_own_file(&found) || size > MANIFEST_BYTES_MAX {
        return Ok(false);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut bytes = Vec::new();
    let file = File::from(openat(folder, manifest, flags, Mode::empty())?);
    file.take(MANIFEST_BYTES_MAX).read_to_end(&mut bytes)?;
    let Ok(told) = serde_json::from_slice::<Manifest>(&bytes) else { return Ok(false) };
    Ok(hash(unfinished)? == told.output.sha256)
}

fn unreadable(error: DestinationError) -> FileError {
    match error {
        DestinationError::Io(errno) => errno.into(),
        other => FileError::Io(io::Error::other(other)),
    }
}

fn hash(mut file: &File) -> Result<Sha256Hex, FileError> {
    let mut hash = Hasher::default();
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hash.update(piece.get(..count).unwrap_or_default()),
        }
    }
    Ok(hash.finish())
}
