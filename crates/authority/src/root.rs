//! The context root: reached through descriptors alone, so that no link below the home is ever followed.
//!
//! The home is opened once. The root is opened beneath it anew for each operation: a root that was swapped for a link is
//! refused then, whatever it was before. What one operation does, it does through the one descriptor it got.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, open, openat2, statx};
use rustix::io::Errno;

use crate::limits::{COARSE_TICK_NS, READ_TRIES_MAX, TICK_NS};

/// The context root of one home.
#[derive(Debug, Clone)]
pub struct ContextRoot {
    home: Arc<OwnedFd>,
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
    /// Its path leads out of the home.
    #[error("open the context root: its path leads out of the home")]
    Outside,
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
            Self::Outside => "outside-root",
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
    /// Its path leads out of the root.
    #[error("read a document: its path leads out of the root")]
    Outside,
    /// A folder, a pipe, a device.
    #[error("read a document: it is no regular file")]
    NotRegular,
    /// Larger than the bound.
    #[error("read a document: it is larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: u64,
    },
    /// It was written each time it was read.
    #[error("read a document: somebody is writing it")]
    Changing,
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
            Self::Outside => "outside-root",
            Self::NotRegular => "not-regular-file",
            Self::TooLarge { .. } => "too-large",
            Self::Changing => "changing",
            Self::Io(_) => "unreadable",
        }
    }
}

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

impl ContextRoot {
    /// Holds the home, and checks that the root is there. Links on the way to the home are followed, this once.
    ///
    /// # Errors
    /// [`RootError`].
    pub fn open(home: &Path, relative: &Path) -> Result<Self, RootError> {
        let root = Self::beneath(home, relative)?;
        root.directory().map(drop)?;
        Ok(root)
    }

    /// Holds the home alone: each operation sees for itself whether the root is there. For whoever must record what a
    /// broken root does to a person's word.
    ///
    /// # Errors
    /// [`RootError::Home`].
    pub fn beneath(home: &Path, relative: &Path) -> Result<Self, RootError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let home = open(home, flags, Mode::empty()).map_err(RootError::Home)?;
        Ok(Self { home: Arc::new(home), relative: relative.to_owned() })
    }

    /// The root as it stands now.
    ///
    /// # Errors
    /// [`RootError`].
    pub fn directory(&self) -> Result<OwnedFd, RootError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(&*self.home, &self.relative, flags, Mode::empty(), BENEATH).map_err(|errno| match errno {
            Errno::LOOP => RootError::Symlink,
            Errno::XDEV => RootError::Outside,
            Errno::NOTDIR | Errno::NOENT => RootError::NotDirectory,
            other => RootError::Io(other),
        })
    }

    /// Whether the root's path leads to this very folder now. A swap afterwards is not seen.
    ///
    /// # Errors
    /// [`RootError`].
    pub fn is_at(&self, folder: impl AsFd) -> Result<bool, RootError> {
        let now = look_at(self.directory()?).map_err(RootError::Io)?;
        Ok(now.is_same_file(&look_at(folder).map_err(RootError::Io)?))
    }
}

/// A moment in the file system's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    seconds: i64,
    nanoseconds: u32,
}

impl Moment {
    fn ns(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }
}

/// What a file or folder looked like: enough to see that it changed without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    kind: FileType,
    mode: u16,
    links: u32,
    device: (u32, u32),
    inode: u64,
    size_bytes: u64,
    modified: Moment,
    changed: Moment,
}

impl Look {
    fn of(found: &Statx) -> Self {
        Self {
            kind: FileType::from_raw_mode(found.stx_mode.into()),
            mode: found.stx_mode & 0o7777,
            links: found.stx_nlink,
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            size_bytes: found.stx_size,
            modified: Moment { seconds: found.stx_mtime.tv_sec, nanoseconds: found.stx_mtime.tv_nsec },
            changed: Moment { seconds: found.stx_ctime.tv_sec, nanoseconds: found.stx_ctime.tv_nsec },
        }
    }

    /// What it is.
    pub const fn kind(&self) -> FileType {
        self.kind
    }

    /// Permission bits.
    pub const fn mode(&self) -> u16 {
        self.mode
    }

    /// Names that it has.
    pub const fn links(&self) -> u32 {
        self.links
    }

    /// Size, bytes.
    pub const fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether both are looks at one file, changed or not.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether both are looks at one file to which nothing was written in between. A new name is no writing.
    pub(crate) fn is_unmodified_since(&self, before: &Self) -> bool {
        self.is_same_file(before) && (self.size_bytes, self.modified) == (before.size_bytes, before.modified)
    }

    /// Whether it last changed clearly before `reference` did: a change that comes after `reference` then bears another
    /// time. Both times are the file system's, so no clock of this machine matters. Only the change time counts: a
    /// person can set the other.
    pub fn is_settled_before(&self, reference: &Self) -> bool {
        let tick_ns = if self.changed.nanoseconds == 0 { COARSE_TICK_NS } else { TICK_NS };
        self.changed.ns() + tick_ns < reference.changed.ns()
    }
}

/// What an open file or folder looks like.
///
/// # Errors
/// The system's error.
pub fn look_at(file: impl AsFd) -> Result<Look, Errno> {
    statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(|found| Look::of(&found))
}

/// What a path beneath a directory looks like; no part of it is followed, the last one included.
///
/// # Errors
/// The system's error.
pub fn look(directory: impl AsFd, path: &str) -> Result<Look, Errno> {
    if path.contains('/') {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        return look_at(openat2(directory, path, flags, Mode::empty(), BENEATH)?);
    }
    statx(directory, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS).map(|found| Look::of(&found))
}

/// Opens a file beneath a directory through no link; a pipe or device does not hold it up.
///
/// # Errors
/// [`ReadError`].
pub fn open_beneath(directory: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, ReadError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    openat2(directory, path, flags, Mode::empty(), BENEATH).map_err(|errno| match errno {
        Errno::NOENT => ReadError::Absent,
        Errno::LOOP => ReadError::Symlink,
        Errno::XDEV => ReadError::Outside,
        Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => ReadError::NotRegular,
        other => ReadError::Io(other),
    })
}

/// The bytes of a regular file beneath a directory, and what the file looked like before and after they were read.
///
/// # Errors
/// [`ReadError`]. A file that is written each time it is read is [`ReadError::Changing`].
pub fn read_beneath(directory: impl AsFd, path: &str, bytes_max: u64) -> Result<(Vec<u8>, Look), ReadError> {
    for _ in 0..READ_TRIES_MAX {
        let file = open_beneath(&directory, path, OFlags::RDONLY)?;
        let before = look_at(&file).map_err(ReadError::Io)?;
        if before.kind != FileType::RegularFile {
            return Err(ReadError::NotRegular);
        }
        if before.size_bytes > bytes_max {
            return Err(ReadError::TooLarge { bytes_max });
        }
        let mut file = File::from(file);
        let mut bytes = Vec::new();
        // One byte more than was told shows a file that grows.
        let read = (&mut file).take(before.size_bytes.saturating_add(1)).read_to_end(&mut bytes);
        if let Err(error) = read {
            return Err(ReadError::Io(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
        }
        let after = look_at(&file).map_err(ReadError::Io)?;
        if after == before && bytes.len() as u64 == before.size_bytes {
            return Ok((bytes, after));
        }
    }
    Err(ReadError::Changing)
}
