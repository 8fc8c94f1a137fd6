//! The one place that writes a document: an owner-only temporary file in the root, exchanged with the document.
//!
//! What comes out of an exchange is looked at: the frozen base, or a person saved meanwhile, and then it is exchanged back
//! until what comes out is what was put in, so that the newest save stands. Everything goes through the descriptor of the
//! locked folder; nothing here follows a link, and nothing here decides what a failure means for a decision.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, fchmod, fsync, openat2, renameat_with, unlinkat,
};
use rustix::io::Errno;
use thought_protocol::Sha256Hex;
use thought_protocol::limits::DOCUMENT_BYTES_MAX_CEILING;

use crate::limits::EXCHANGES_MAX;
use crate::lock::{LockError, RootGuard};
use crate::reason::Reason;
use crate::root::{ContextRoot, Look, ReadError, RootError, look, read_beneath};

use super::CrashPoints;

/// What stands under a name.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Nothing.
    Absent,
    /// A regular file.
    File(Sha256Hex),
    /// Anything else, or a file that cannot be read whole.
    Other(Look, Reason),
    /// It cannot even be looked at.
    Unknown,
}

impl Content {
    /// Whether nothing was written to it since.
    fn is_still(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::File(now), Self::File(then)) => now == then,
            (Self::Other(now, _), Self::Other(then, _)) => now.is_unmodified_since(then),
            _ => false,
        }
    }

    /// Whether it is a file of this hash.
    pub(super) fn is(&self, sha256: &Sha256Hex) -> bool {
        matches!(self, Self::File(found) if found == sha256)
    }
}

/// The names of one exchange, beneath the locked folder.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) root: &'a ContextRoot,
    pub(super) guard: &'a RootGuard,
    pub(super) document: &'a str,
    pub(super) temporary: &'a str,
    pub(super) points: &'a dyn CrashPoints,
}

/// How a write ended that did not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) reason: Reason,
    pub(super) leftover: Leftover,
}

/// Whether the temporary file is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftover {
    /// It is.
    None,
    /// It may be there, and what it holds must be looked at before anything else.
    Kept,
}

impl Site<'_> {
    fn folder(&self) -> &OwnedFd {
        self.guard.folder()
    }

    /// What stands under the document's name.
    pub(super) fn document(&self) -> Content {
        self.content(self.document)
    }

    /// What stands under the temporary name.
    pub(super) fn temporary(&self) -> Content {
        self.content(self.temporary)
    }

    fn content(&self, name: &str) -> Content {
        let reason = match read_beneath(self.folder(), name, DOCUMENT_BYTES_MAX_CEILING) {
            Ok((bytes, _)) => return Content::File(Sha256Hex::of(&bytes)),
            Err(ReadError::Absent) => return Content::Absent,
            Err(ReadError::Symlink) => Reason::Symlink,
            Err(ReadError::Outside) => Reason::OutsideRoot,
            Err(ReadError::NotRegular) => Reason::NotRegularFile,
            // A base is within every configured bound and at rest: this is another.
            Err(ReadError::TooLarge { .. } | ReadError::Changing) => Reason::StaleBase,
            Err(ReadError::Io(_)) => Reason::WriteFailed,
        };
        match look(self.folder(), name) {
            Ok(found) => Content::Other(found, reason),
            Err(Errno::NOENT) => Content::Absent,
            Err(_) => Content::Unknown,
        }
    }

    /// The document is the frozen base.
    pub(super) fn check_base(&self, base: &Sha256Hex) -> Result<(), Reason> {
        match self.document() {
            Content::File(found) if found == *base => Ok(()),
            Content::File(_) => Err(Reason::StaleBase),
            Content::Absent => Err(Reason::BaseMissing),
            Content::Other(_, reason) => Err(reason),
            Content::Unknown => Err(Reason::WriteFailed),
        }
    }

    /// The root's path still leads to the locked folder.
    pub(super) fn check_root(&self) -> Result<(), Reason> {
        self.guard.check(self.root).map_err(|error| of_lock(&error))
    }

    /// Writes the new document and exchanges it with the base.
    pub(super) fn write(&self, base: &Sha256Hex, new: &[u8]) -> Result<(), Failed> {
        if let Err(reason) = self.write_temporary(new) {
            return Err(self.cleared(reason));
        }
        self.points.reach("temporary.after");
        self.swap(base, &Sha256Hex::of(new))
    }

    /// Exchanges the temporary file, which holds the new document, with the base.
    fn swap(&self, base: &Sha256Hex, new: &Sha256Hex) -> Result<(), Failed> {
        if let Err(reason) = self.check_root().and_then(|()| self.check_base(base)) {
            return Err(self.cleared(reason));
        }
        self.points.reach("exchange.before");
        match self.exchange() {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(self.cleared(Reason::BaseMissing)),
            Err(errno) if is_unable(errno) => return self.rename_over(base),
            Err(_) => return Err(self.cleared(Reason::WriteFailed)),
        }
        self.points.reach("exchange.after");
        self.settle(base, new)
    }

    /// Looks at what came out of an exchange, and lets the new document stand or takes it back.
    pub(super) fn settle(&self, base: &Sha256Hex, new: &Sha256Hex) -> Result<(), Failed> {
        let out = self.temporary();
        if !out.is(base) {
            let reason = match &out {
                Content::Other(_, reason) => *reason,
                Content::File(_) | Content::Absent | Content::Unknown => Reason::StaleBase,
            };
            return Err(self.take_back(out, new, reason));
        }
        if let Err(reason) = self.check_root() {
            return Err(self.take_back(out, new, reason));
        }
        if fsync(self.folder()).is_err() {
            return Err(self.take_back(out, new, Reason::WriteFailed));
        }
        // Whoever still had the old file open may have written to it since.
        let again = self.temporary();
        if again.is(base) { Ok(()) } else { Err(self.take_back(again, new, Reason::StaleBase)) }
    }

    /// Exchanges back until what comes out is what was put in, so that the newest save of a person stands.
    pub(super) fn take_back(&self, mut holding: Content, new: &Sha256Hex, reason: Reason) -> Failed {
        let mut put = Content::File(new.clone());
        for _ in 0..EXCHANGES_MAX {
            match self.exchange() {
                Ok(()) => {}
                // The document was removed meanwhile: what was saved before goes to its place, if nothing newer is there.
                Err(Errno::NOENT) => match self.move_back() {
                    Ok(()) => return self.cleared(reason),
                    Err(Errno::EXIST) => continue,
                    Err(_) => return Failed { reason: Reason::WriteFailed, leftover: Leftover::Kept },
                },
                Err(_) => return Failed { reason: Reason::WriteFailed, leftover: Leftover::Kept },
            }
            self.points.reach("back.after");
            let out = self.temporary();
            if out.is_still(&put) {
                let _unheard = fsync(self.folder());
                return self.cleared(reason);
            }
            put = holding;
            holding = out;
        }
        Failed { reason: Reason::WriteFailed, leftover: Leftover::Kept }
    }

    fn exchange(&self) -> Result<(), Errno> {
        if self.points.cannot_exchange() {
            return Err(Errno::INVAL);
        }
        let folder = self.folder();
        renameat_with(folder, self.temporary, folder, self.document, RenameFlags::EXCHANGE)
    }

    fn move_back(&self) -> Result<(), Errno> {
        let folder = self.folder();
        renameat_with(folder, self.temporary, folder, self.document, RenameFlags::NOREPLACE)
    }

    /// Where a file system cannot exchange: the base is looked at once more, and the new document takes its name.
    fn rename_over(&self, base: &Sha256Hex) -> Result<(), Failed> {
        let folder = self.folder();
        let ready = self.check_base(base).and_then(|()| self.check_root());
        if let Err(reason) = ready {
            return Err(self.cleared(reason));
        }
        if rustix::fs::renameat(folder, self.temporary, folder, self.document).is_err() {
            return Err(self.cleared(Reason::WriteFailed));
        }
        self.points.reach("exchange.after");
        match fsync(folder) {
            Ok(()) => Ok(()),
            // Written and maybe not durable: what stands there is looked at when it is tried again.
            Err(_) => Err(Failed { reason: Reason::WriteFailed, leftover: Leftover::Kept }),
        }
    }

    fn write_temporary(&self, bytes: &[u8]) -> Result<(), Reason> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let owner_only = Mode::RUSR | Mode::WUSR;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(self.folder(), self.temporary, flags, owner_only, resolve);
        let mut file = File::from(opened.map_err(|_errno| Reason::WriteFailed)?);
        // The mask of this process may have taken bits away.
        let written = fchmod(&file, owner_only)
            .map_err(std::io::Error::from)
            .and_then(|()| self.points.write())
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| file.sync_all())
            .and_then(|()| fsync(self.folder()).map_err(std::io::Error::from));
        written.map_err(|_content_dark| Reason::WriteFailed)
    }

    /// Removes the temporary file; nothing in it is worth keeping.
    pub(super) fn remove_temporary(&self) -> Leftover {
        match unlinkat(self.folder(), self.temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Leftover::None,
            Err(_) => Leftover::Kept,
        }
    }

    fn cleared(&self, reason: Reason) -> Failed {
        Failed { reason, leftover: self.remove_temporary() }
    }
}

/// Whether the file system of a locked root exchanges two names; asked with two files of its own.
///
/// # Errors
/// The system's error when it cannot be told.
pub fn can_exchange(guard: &RootGuard) -> Result<Exchange, Errno> {
    let folder = guard.folder();
    let names = [".thought-probe-1", ".thought-probe-2"];
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let made = names.iter().try_for_each(|name| {
        openat2(folder, *name, flags, Mode::RUSR | Mode::WUSR, ResolveFlags::BENEATH).map(drop)
    });
    let told = made.and_then(|()| renameat_with(folder, names[0], folder, names[1], RenameFlags::EXCHANGE));
    for name in names {
        let _unheard = unlinkat(folder, name, AtFlags::empty());
    }
    match told {
        Ok(()) => Ok(Exchange::Able),
        Err(errno) if is_unable(errno) => Ok(Exchange::Unable),
        Err(errno) => Err(errno),
    }
}

/// What a file system can do with two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// It exchanges them.
    Able,
    /// It does not: a document is renamed over, after a second look.
    Unable,
}

const fn is_unable(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// What a lock that is not had, or no longer, means for a write.
pub(super) const fn of_lock(error: &LockError) -> Reason {
    match error {
        LockError::Root(RootError::Symlink) => Reason::RootSymlink,
        LockError::Root(RootError::Outside) => Reason::OutsideRoot,
        LockError::Root(RootError::NotDirectory) => Reason::RootNotDirectory,
        LockError::Root(RootError::Home(_) | RootError::Io(_))
        | LockError::Held
        | LockError::Invalid { .. }
        | LockError::RootMoved
        | LockError::CannotWrite(_)
        | LockError::Io(_)
        | LockError::Thread => Reason::WriteFailed,
    }
}
