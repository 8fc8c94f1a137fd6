//! Where an export may lie: in a folder of the caller's own that nobody else can enter, reached through no link, outside
//! every git work tree, under a name that is free. The folder is held by descriptor from the check on, so that what was
//! checked is what is written to.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatvfs, openat, openat2, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::files::{TEMPORARY_SUFFIX, temporary_of};
use crate::limits::{ANCESTORS_MAX, NAME_BYTES_MAX};

/// What the manifest's name has behind the output's.
const MANIFEST_SUFFIX: &str = ".manifest.json";
const GIT: &str = ".git";

/// A destination that an export may not have. It names no file but those that the caller named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The path ends in no name.
    #[error("check the destination: the path names no file")]
    NoName,
    /// The name is one that leftovers have.
    #[error("check the destination: names that end in {TEMPORARY_SUFFIX} are kept for unfinished exports")]
    NameKept,
    /// The names that come of it do not fit.
    #[error(
        "check the destination: the name is too long for the manifest and the unfinished files beside it"
    )]
    NameLong,
    /// The folder is not there.
    #[error("check the destination: its folder is not there")]
    Absent,
    /// The folder, or something on the way to it, is a link.
    #[error("check the destination: its folder, or a folder on the way to it, is a link")]
    Link,
    /// The parent is no folder.
    #[error("check the destination: what it should lie in is no folder")]
    NotFolder,
    /// The folder belongs to another account.
    #[error("check the destination: its folder belongs to another account")]
    NotOwned,
    /// The folder is open to others.
    #[error("check the destination: its folder is open to its group or to others")]
    Open,
    /// A folder above is a git work tree.
    #[error("check the destination: it lies in a git work tree")]
    GitWorkTree,
    /// The output's name is taken.
    #[error("check the destination: the output is there already, and nothing is overwritten")]
    OutputExists,
    /// The manifest's name is taken.
    #[error("check the destination: the manifest is there already, and nothing is overwritten")]
    ManifestExists,
    /// Not enough room.
    #[error(
        "check the destination: it has {free_bytes} bytes free, and the export needs {needed_bytes} at least"
    )]
    Space {
        /// What is free.
        free_bytes: u64,
        /// What is needed.
        needed_bytes: u64,
    },
    /// The system says no.
    #[error("check the destination: {}", std::io::Error::from(*.0).kind())]
    Io(Errno),
}

impl DestinationError {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoName | Self::NameKept | Self::NameLong => "destination-name",
            Self::Absent => "destination-absent",
            Self::Link => "destination-link",
            Self::NotFolder => "destination-not-a-folder",
            Self::NotOwned => "destination-not-owned",
            Self::Open => "destination-open",
            Self::GitWorkTree => "destination-in-git",
            Self::OutputExists | Self::ManifestExists => "destination-exists",
            Self::Space { .. } => "no-space",
            Self::Io(_) => "destination-unusable",
        }
    }
}

/// A folder that an export may lie in, and the two names in it.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) folder: OwnedFd,
    pub(super) output: OsString,
    pub(super) manifest: OsString,
}

impl Destination {
    /// Checks everything about the folder; the names are looked at by [`Destination::is_free`].
    pub(super) fn open(path: &Path) -> Result<Self, DestinationError> {
        let output = path.file_name().ok_or(DestinationError::NoName)?.to_owned();
        if output.as_encoded_bytes().ends_with(TEMPORARY_SUFFIX.as_bytes()) {
            return Err(DestinationError::NameKept);
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        if temporary_of(&manifest_of(&output)).len() > NAME_BYTES_MAX {
            return Err(DestinationError::NameLong);
        }
        // A relative path begins at the folder that this process is in, which no name leads to.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let beneath = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let folder = openat2(CWD, &parent, flags, Mode::empty(), beneath).map_err(|errno| match errno {
            Errno::LOOP => DestinationError::Link,
            Errno::NOENT => DestinationError::Absent,
            Errno::NOTDIR => DestinationError::NotFolder,
            other => DestinationError::Io(other),
        })?;
        let found = fstat(&folder).map_err(DestinationError::Io)?;
        if found.st_uid != geteuid().as_raw() {
            return Err(DestinationError::NotOwned);
        }
        if found.st_mode & 0o077 != 0 {
            return Err(DestinationError::Open);
        }
        outside_git(&folder)?;
        let manifest = manifest_of(&output);
        Ok(Self { folder, output, manifest })
    }

    /// Both names are free.
    pub(super) fn is_free(&self) -> Result<(), DestinationError> {
        if is_there(&self.folder, &self.output)? {
            return Err(DestinationError::OutputExists);
        }
        if is_there(&self.folder, &self.manifest)? {
            return Err(DestinationError::ManifestExists);
        }
        Ok(())
    }

    /// What this account can still write here, bytes.
    pub(super) fn free_bytes(&self) -> Result<u64, DestinationError> {
        let found = fstatvfs(&self.folder).map_err(DestinationError::Io)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// The manifest's name beside an output's.
pub(super) fn manifest_of(output: &OsStr) -> OsString {
    let mut name = output.to_owned();
    name.push(MANIFEST_SUFFIX);
    name
}

/// Whether a name stands in a folder, whatever it is.
pub(super) fn is_there(folder: &OwnedFd, name: &OsStr) -> Result<bool, DestinationError> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(other) => Err(DestinationError::Io(other)),
    }
}

/// Neither the folder nor any above it holds a `.git`, be it a folder or the file of a linked work tree.
fn outside_git(folder: &OwnedFd) -> Result<(), DestinationError> {
    let up = |from: &OwnedFd| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(from, "..", flags, Mode::empty()).map_err(DestinationError::Io)
    };
    let same = |a: &Stat, b: &Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    let mut here: Option<OwnedFd> = None;
    for _ in 0..ANCESTORS_MAX {
        let at = here.as_ref().unwrap_or(folder);
        if is_there(at, OsStr::new(GIT))? {
            return Err(DestinationError::GitWorkTree);
        }
        let above = up(at)?;
        let (low, high) =
            (fstat(at).map_err(DestinationError::Io)?, fstat(&above).map_err(DestinationError::Io)?);
        if same(&low, &high) {
            return Ok(());
        }
        here = Some(above);
    }
    Err(DestinationError::Io(Errno::NAMETOOLONG))
}

/// Whether this is a regular file of the caller's own.
pub(super) fn is_own_file(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_uid == geteuid().as_raw()
}
