//! The walk of a context root: which documents it holds, and their bytes, through one descriptor of the root.
//!
//! It reads and never decides what becomes of a document; it follows no link and waits for no pipe.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;
use thought_protocol::Sensitive;
use thought_protocol::limits::LABEL_CHARACTERS_MAX;

use crate::limits::{BATCH_BYTES_MAX, DEPTH_MAX, DOCUMENTS_MAX, ENTRIES_MAX};
use crate::root::{Look, ReadError, look, look_at, open_beneath, read_beneath};

/// A root whose documents cannot be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// More documents than a root may hold.
    #[error("list the documents: there are more than {DOCUMENTS_MAX}")]
    TooManyDocuments,
    /// More names of any kind than are read.
    #[error("list the documents: the folders hold more than {ENTRIES_MAX} names")]
    TooManyEntries,
    /// Anything else.
    #[error("list the documents: {0}")]
    Io(#[from] Errno),
}

/// Looks by path. None stands for a path that must be looked into again whatever it looks like.
pub(crate) type Looks = BTreeMap<String, Option<Look>>;

/// What a root holds.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Regular files that are documents by name, by path.
    pub(crate) files: Vec<String>,
    /// Names of documents that stand for no regular file, or that are none, each with a reason code.
    pub(crate) refused: Vec<(String, &'static str)>,
    /// Folders that are not looked into, each with a reason code: what was in them is not gone.
    pub(crate) barred: Vec<(String, &'static str)>,
    /// What everything but the files looked like, before it was looked into.
    pub(crate) looks: Looks,
    names: usize,
}

/// A document as it was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) path: String,
    pub(crate) outcome: Result<Sensitive<Vec<u8>>, ReadError>,
    pub(crate) look: Option<Look>,
}

/// Whether the documents of a root can be listed, and so scanned.
///
/// # Errors
/// [`WalkError`].
pub fn listable(root: &OwnedFd) -> Result<(), WalkError> {
    list(root).map(drop)
}

/// Lists the documents of a root.
pub(crate) fn list(root: &OwnedFd) -> Result<Listing, WalkError> {
    let mut listing = Listing::default();
    let opened = match open_beneath(root, ".", OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(opened) => opened,
        Err(ReadError::Io(errno)) => return Err(errno.into()),
        // The root itself is always a folder; only one that was deleted has no name `.` any more.
        Err(_) => return Err(Errno::NOENT.into()),
    };
    folder(root, "", opened, 1, &mut listing)?;
    listing.files.sort();
    Ok(listing)
}

fn folder(
    root: &OwnedFd,
    prefix: &str,
    opened: OwnedFd,
    depth: usize,
    listing: &mut Listing,
) -> Result<(), WalkError> {
    let at = if prefix.is_empty() { "." } else { prefix.trim_end_matches('/') };
    // Looked at before it is listed, so that whatever comes later changes the look.
    listing.looks.insert(at.to_owned(), Some(look_at(&opened)?));
    for entry in Dir::new(opened)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes().starts_with(b".") {
            continue;
        }
        listing.names += 1;
        if listing.names > ENTRIES_MAX {
            return Err(WalkError::TooManyEntries);
        }
        let Ok(name) = name.to_str() else {
            if name.to_bytes().ends_with(b".md") {
                refuse(listing, format!("{prefix}{}", name.to_string_lossy()), "name-invalid");
            }
            continue;
        };
        if entry.file_type() == FileType::RegularFile && !name.ends_with(".md") {
            continue;
        }
        entry_of(root, format!("{prefix}{name}"), depth, listing)?;
        if listing.files.len() + listing.refused.len() > DOCUMENTS_MAX {
            return Err(WalkError::TooManyDocuments);
        }
    }
    Ok(())
}

fn entry_of(root: &OwnedFd, path: String, depth: usize, listing: &mut Listing) -> Result<(), WalkError> {
    // It went since it was listed: then its folder's look has changed.
    let Ok(found) = look(root, &path) else { return Ok(()) };
    if found.kind() == FileType::Symlink {
        listing.barred.push((path.clone(), ReadError::Symlink.reason()));
    }
    if path.ends_with(".md") {
        match found.kind() {
            _ if !is_path_admitted(&path) => refuse(listing, path.clone(), "name-invalid"),
            FileType::RegularFile => listing.files.push(path.clone()),
            FileType::Symlink => refuse(listing, path.clone(), ReadError::Symlink.reason()),
            _ => refuse(listing, path.clone(), ReadError::NotRegular.reason()),
        }
        if found.kind() != FileType::RegularFile {
            listing.looks.insert(path.clone(), Some(found));
        }
    }
    if found.kind() != FileType::Directory || depth == DEPTH_MAX {
        return Ok(());
    }
    match open_beneath(root, &path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(opened) => folder(root, &format!("{path}/"), opened, depth + 1, listing),
        Err(ReadError::Absent) => Ok(()),
        Err(error) => {
            let is_lasting = matches!(error, ReadError::Io(Errno::ACCESS));
            listing.looks.insert(path.clone(), is_lasting.then_some(found));
            listing.barred.push((path, error.reason()));
            Ok(())
        }
    }
}

/// Names a refused path; what it shows holds nothing that moves a terminal.
fn refuse(listing: &mut Listing, path: String, reason: &'static str) {
    let shown = if path.chars().any(char::is_control) {
        path.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
    } else {
        path
    };
    listing.refused.push((shown, reason));
}

fn is_path_admitted(path: &str) -> bool {
    path.chars().count() <= LABEL_CHARACTERS_MAX && !path.chars().any(char::is_control)
}

/// Reads documents from `first` on until their bytes fill a batch.
pub(crate) fn read_batch(root: &OwnedFd, paths: &[String], first: usize, bytes_max: u64) -> Vec<Read> {
    let mut batch = Vec::new();
    let mut bytes_read = 0;
    for path in paths.iter().skip(first) {
        // Before it is read: a file that is mended while it is refused looks different afterwards.
        let before = look(root, path);
        let (outcome, look) = match read_beneath(root, path, bytes_max) {
            Ok((bytes, look)) => {
                bytes_read += bytes.len();
                (Ok(Sensitive::new(bytes)), Some(look))
            }
            Err(error) => {
                let is_passing = matches!(error, ReadError::Absent | ReadError::Changing)
                    || matches!(error, ReadError::Io(errno) if errno != Errno::ACCESS);
                let look = match before {
                    Ok(before) if !is_passing => Some(before),
                    _ => None,
                };
                (Err(error), look)
            }
        };
        batch.push(Read { path: path.clone(), outcome, look });
        if bytes_read >= BATCH_BYTES_MAX {
            break;
        }
    }
    batch
}
