//! The blobs of a home: files under `blobs/`, each named by the SHA-256 of its bytes, for the owner alone.
//!
//! A blob is durable before anything names it: its bytes are synced under a name of their own, then it takes its place,
//! then the folder is synced. What is read is hashed again; a blob that is gone or changed is a typed failure and never
//! other bytes. Nothing here follows a link, writes over a blob, or takes one away.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use thought_protocol::{Sensitive, Sha256Hex};
use thought_store::{BoxFuture, Images, ImagesError};
use thought_telegram::limits::PHOTO_BYTES_MAX;
use thought_telegram::spool::{BlobError, Blobs};

use crate::exit::{Exit, Failure};
use crate::home::{self, Home};

/// The folder below the home.
const FOLDER: &str = "blobs";
/// How the name of a file begins that has not taken its place yet; a blob's name has only digits and letters.
const UNFINISHED: &str = ".part-";

/// Numbers the files that have not taken their place, within this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The blobs of one home, held by descriptor.
#[derive(Debug, Clone)]
pub struct HomeBlobs(Arc<OwnedFd>);

impl HomeBlobs {
    /// Holds the folder, made when it is not there.
    ///
    /// # Errors
    /// [`Failure`]: a folder that is a link, or open to others (3); one that cannot be had (8).
    pub fn open(home: &Home) -> Result<Self, Failure> {
        let path = home.below(FOLDER);
        home::make_folder(&path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(folder) => Ok(Self(Arc::new(folder))),
            Err(errno) => {
                let kind = std::io::Error::from(errno).kind();
                Err(Failure::new(Exit::Machine, "cannot-read", format!("open {FOLDER}: {kind}")))
            }
        }
    }

    /// Takes away what an earlier process left unfinished. For the process that alone writes blobs.
    ///
    /// # Errors
    /// [`Failure`] (8) when the folder cannot be read.
    pub fn sweep(&self) -> Result<(), Failure> {
        let cannot = |errno: Errno| {
            let kind = std::io::Error::from(errno).kind();
            Failure::new(Exit::Machine, "cannot-read", format!("look through {FOLDER}: {kind}"))
        };
        for entry in rustix::fs::Dir::read_from(self.0.as_fd()).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            if entry.file_name().to_bytes().starts_with(UNFINISHED.as_bytes()) {
                rustix::fs::unlinkat(&self.0, entry.file_name(), AtFlags::empty()).map_err(cannot)?;
            }
        }
        Ok(())
    }

    /// Names of everything in the folder, sorted.
    ///
    /// # Errors
    /// [`Failure`] (8) when the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        let cannot = |errno: Errno| {
            let kind = std::io::Error::from(errno).kind();
            Failure::new(Exit::Machine, "cannot-read", format!("look through {FOLDER}: {kind}"))
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.0.as_fd()).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn keep_now(&self, bytes: &[u8]) -> Result<Sha256Hex, BlobError> {
        let name = Sha256Hex::of(bytes);
        if matches!(self.read_now(&name), Ok(kept) if kept.expose() == bytes) {
            return Ok(name);
        }
        let part = format!("{UNFINISHED}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let written = self.write(&part, name.as_str(), bytes);
        if written.is_err() {
            // It may not even be there; the next start sweeps what is left.
            let _swept_later = rustix::fs::unlinkat(&self.0, &part, AtFlags::empty());
        }
        written.map(|()| name).map_err(|errno| BlobError { code: code(errno) })
    }

    fn write(&self, part: &str, name: &str, bytes: &[u8]) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, part, flags, Mode::from_raw_mode(0o600))?;
        let mut file = std::fs::File::from(file);
        let synced = file.write_all(bytes).and_then(|()| file.sync_all());
        synced.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        rustix::fs::renameat(&self.0, part, &self.0, name)?;
        rustix::fs::fsync(&self.0)
    }

    fn read_now(&self, sha256: &Sha256Hex) -> Result<Sensitive<Vec<u8>>, ImagesError> {
        let failed = |code| ImagesError { sha256: sha256.clone(), code };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(&self.0, sha256.as_str(), flags, Mode::empty()).map_err(
                |errno| match errno {
                    Errno::NOENT => failed("missing"),
                    Errno::LOOP | Errno::NXIO => failed("not-regular"),
                    _ => failed("unreadable"),
                },
            )?;
        let most = usize::try_from(PHOTO_BYTES_MAX).unwrap_or(usize::MAX);
        let bytes = home::read_bounded(file.into(), most).map_err(|problem| match problem {
            home::ReadProblem::NotRegular => failed("not-regular"),
            home::ReadProblem::TooLarge(_) => failed("changed"),
            home::ReadProblem::Absent | home::ReadProblem::Io(_) => failed("unreadable"),
        })?;
        if Sha256Hex::of(&bytes) == *sha256 { Ok(Sensitive::new(bytes)) } else { Err(failed("changed")) }
    }
}

fn code(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC | Errno::DQUOT => "no-space",
        Errno::ROFS | Errno::ACCESS | Errno::PERM => "not-writable",
        _ => "cannot-write",
    }
}

impl Blobs for HomeBlobs {
    fn keep(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<Sha256Hex, BlobError>> {
        let blobs = self.clone();
        let work = tokio::task::spawn_blocking(move || blobs.keep_now(&bytes));
        Box::pin(async move { work.await.unwrap_or(Err(BlobError { code: "broke-off" })) })
    }
}

impl Images for HomeBlobs {
    fn read(&self, sha256: &Sha256Hex) -> BoxFuture<'_, Result<Sensitive<Vec<u8>>, ImagesError>> {
        let (blobs, name) = (self.clone(), sha256.clone());
        let broke_off = ImagesError { sha256: sha256.clone(), code: "broke-off" };
        let work = tokio::task::spawn_blocking(move || blobs.read_now(&name));
        Box::pin(async move {
            let read = work.await.unwrap_or(Err(broke_off));
            if let Err(error) = &read {
                tracing::error!(blob = %error.sha256, code = error.code, "a blob cannot be read");
            }
            read
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;
    use crate::config::Config;

    fn home() -> (tempfile::TempDir, Home, HomeBlobs) {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::parse("[operator]\nnames = [\"alex\"]\n", "thought.toml").unwrap();
        let home = Home { path: folder.path().to_owned(), config, handed_token: None };
        let blobs = HomeBlobs::open(&home).unwrap();
        (folder, home, blobs)
    }

    #[test]
    fn a_blob_is_named_by_its_bytes_for_the_owner_alone_and_kept_once() {
        let (_folder, home, blobs) = home();
        let name = blobs.keep_now(b"bytes").unwrap();
        assert_eq!(name, Sha256Hex::of(b"bytes"));
        let path = home.below("blobs").join(name.as_str());
        let first = path.metadata().unwrap();
        assert_eq!(first.mode() & 0o7777, 0o600);
        assert_eq!(blobs.keep_now(b"bytes").unwrap(), name);
        assert_eq!(path.metadata().unwrap().ino(), first.ino());
        assert_eq!(std::fs::read_dir(home.below("blobs")).unwrap().count(), 1);
        assert_eq!(blobs.read_now(&name).unwrap().expose(), b"bytes");
    }

    #[test]
    fn what_is_gone_changed_or_a_link_is_told_and_nothing_else_is_read() {
        let (_folder, home, blobs) = home();
        let name = blobs.keep_now(b"bytes").unwrap();
        let path = home.below("blobs").join(name.as_str());
        let told = || blobs.read_now(&name).unwrap_err().code;
        std::fs::write(&path, b"other").unwrap();
        assert_eq!(told(), "changed");
        std::fs::write(&path, vec![0; 6 * 1024 * 1024]).unwrap();
        assert_eq!(told(), "changed");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(told(), "missing");
        let outside = home.below("outside");
        std::fs::write(&outside, b"bytes").unwrap();
        symlink(&outside, &path).unwrap();
        assert_eq!(told(), "not-regular");
        // Kept again, the link is replaced and what it named is not touched.
        blobs.keep_now(b"bytes").unwrap();
        assert_eq!(blobs.read_now(&name).unwrap().expose(), b"bytes");
        assert!(path.symlink_metadata().unwrap().is_file() && outside.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_nothing_else() {
        let (_folder, home, blobs) = home();
        let name = blobs.keep_now(b"bytes").unwrap();
        std::fs::write(home.below("blobs/.part-1-0"), b"by").unwrap();
        blobs.sweep().unwrap();
        let left: Vec<_> =
            std::fs::read_dir(home.below("blobs")).unwrap().map(|f| f.unwrap().file_name()).collect();
        assert_eq!(left, [std::ffi::OsString::from(name.as_str())]);
        std::fs::set_permissions(home.below("blobs"), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(HomeBlobs::open(&home).is_err());
    }
}
