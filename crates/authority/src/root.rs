//! The context root: reached through descriptors alone, so that no link below the home is ever followed.
//!
//! The home is opened once. The root is opened beneath it anew for each operation: a root that was swapped for a link is
//! refused then, whatever it was before.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2, statat};
use rustix::io::Errno;

/// The context root of one home.
#[derive(Debug)]
pub struct ContextRoot {
    home: OwnedFd,
    relative: PathBuf,
}

/// A root that cannot be used. The codes are those of failed materializations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// The home cannot be opened.
    #[error("open the home: {0}")]
    Home(Errno),
    /// A part of the root's path is a link.
    #[error("open the context root: a part of its path is a link")]
    Symlink,
    /// It is not there, or no folder.
    #[error("open the context root: it is not a folder")]
    NotDirectory,
    /// Anything else.
    #[error("open the context root: {0}")]
    Io(Errno),
}

impl RootError {
    /// The stable reason code.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Symlink => "root-symlink",
            Self::NotDirectory => "root-not-directory",
            Self::Home(_) | Self::Io(_) => "root-unreadable",
        }
    }
}

/// A document that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not there.
    #[error("read a document: it is not there")]
    Absent,
    /// It, or a folder on the way, is a link.
    #[error("read a document: a part of its path is a link")]
    Symlink,
    /// A folder, a pipe, a device.
    #[error("read a document: it is no regular file")]
    NotRegular,
    /// Larger than the bound.
    #[error("read a document: it is larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: u64,
    },
    /// Anything else.
    #[error("read a document: {0}")]
    Io(Errno),
}

impl ReadError {
    /// The stable reason code.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Symlink => "symlink",
            Self::NotRegular => "not-regular-file",
            Self::TooLarge { .. } => "too-large",
            Self::Io(_) => "unreadable",
        }
    }
}

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

impl ContextRoot {
    /// Holds the home, and checks that the root is there.
    ///
    /// # Errors
    /// [`RootError`].
    pub fn open(home: &Path, relative: &Path) -> Result<Self, RootError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let home = open(home, flags, Mode::empty()).map_err(RootError::Home)?;
        let root = Self { home, relative: relative.to_owned() };
        root.directory().map(drop)?;
        Ok(root)
    }

    /// The root as it stands now.
    ///
    /// # Errors
    /// [`RootError`].
    pub fn directory(&self) -> Result<OwnedFd, RootError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(&self.home, &self.relative, flags, Mode::empty(), BENEATH).map_err(|errno| match errno {
            Errno::LOOP | Errno::XDEV => RootError::Symlink,
            Errno::NOTDIR | Errno::NOENT => RootError::NotDirectory,
            other => RootError::Io(other),
        })
    }
}

/// Opens a file beneath a directory through no link.
///
/// # Errors
/// [`ReadError`].
pub fn open_beneath(directory: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, ReadError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    openat2(directory, path, flags, Mode::empty(), BENEATH).map_err(|errno| match errno {
        Errno::NOENT => ReadError::Absent,
        Errno::LOOP | Errno::XDEV => ReadError::Symlink,
        Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => ReadError::NotRegular,
        other => ReadError::Io(other),
    })
}

/// The bytes of a regular file beneath a directory, and what the file looked like while they were read.
///
/// # Errors
/// [`ReadError`].
pub fn read_beneath(directory: &OwnedFd, path: &str, bytes_max: u64) -> Result<(Vec<u8>, Stat), ReadError> {
    let file = open_beneath(directory, path, OFlags::RDONLY)?;
    let stat = fstat(&file).map_err(ReadError::Io)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ReadError::NotRegular);
    }
    let mut bytes = Vec::new();
    let read = File::from(file).take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
    if let Err(error) = read {
        return Err(ReadError::Io(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
    }
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
        return Err(ReadError::TooLarge { bytes_max });
    }
    Ok((bytes, stat))
}

/// What a path beneath a directory looks like, its last part not followed.
///
/// # Errors
/// The system's error.
pub fn look(directory: &OwnedFd, path: &str) -> Result<Stat, Errno> {
    statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)
}
