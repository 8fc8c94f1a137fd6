//! Reading a backup: strictly, into a folder that nobody uses, which becomes the home only when all of it was verified.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use serde_json::json;
use tar::{Archive, Entry, EntryType};
use thought_store::Store;
use thought_store_sqlite::{OpenOptions as StoreOptions, SqliteStore};

use super::manifest::{FORMAT, Hashing, Manifest, Member};
use super::{DEPTH_MAX, MANIFEST, MANIFEST_BYTES_MAX, MEMBERS_MAX};
use crate::command::verify;
use crate::compose::SystemClock;
use crate::exit::{Exit, Failure};
use crate::home;
use crate::print::{self, Printer};

/// An archive that is torn, cut, changed, or none of this product.
fn torn(what: &str) -> Failure {
    Failure::refused("torn-backup", format!("read the backup: {what}"))
        .hint("nothing was restored; take another backup, and look at where this one was kept")
}

/// `restore`.
///
/// # Errors
/// [`Failure`]: the folder is not empty (3), the archive is torn, cut or changed (3), there is none (5), a full disk (8). The
/// folder is then as it was.
pub async fn restore(input: &Path, folder: &Path, printer: Printer) -> Result<(), Failure> {
    let found = std::fs::symlink_metadata(input).map_err(|error| {
        Failure::new(Exit::NotFound, "no-file", format!("look at {}: {}", input.display(), error.kind()))
    })?;
    if !found.is_file() {
        return Err(Failure::refused(
            "not-a-regular-file",
            format!("{} is no regular file", input.display()),
        ));
    }
    let place = Place::new(folder)?;
    let manifest = read(input, Keep::Below(&place.partial))?;
    verify_restored(&place.partial, &manifest).await?;
    place.finish()?;
    let events: u64 = manifest.sources.iter().map(|head| head.head).sum();
    let value = json!({
        "home": folder, "files": manifest.members.len(), "events": events, "madeAt": manifest.made_at,
        "sources": manifest.sources,
    });
    printer.either(&value, || {
        vec![
            format!(
                "restored {} files and {events} events into {}",
                manifest.members.len(),
                print::path(folder)
            ),
            format!("as they were at {}; every hash was verified", manifest.made_at),
            "key files are not part of a backup; let only one home answer for a bot at a time".to_owned(),
        ]
    })
}

/// Reads an archive that was just written, and holds it against what it should say.
///
/// # Errors
/// [`Failure`] when it does not.
pub(super) fn check(archive: &Path, expected: &Manifest) -> Result<(), Failure> {
    if read(archive, Keep::Nothing)? == *expected { Ok(()) } else { Err(torn("it is not what was written")) }
}

/// What becomes of the members of an archive.
enum Keep<'a> {
    /// They are hashed alone.
    Nothing,
    /// They are written below this folder.
    Below(&'a Path),
}

/// Reads an archive to its end: every member is where it may be, and is what the manifest says.
fn read(input: &Path, keep: Keep<'_>) -> Result<Manifest, Failure> {
    let file = File::open(input).map_err(|error| torn(&error.kind().to_string()))?;
    let mut archive = Archive::new(BufReader::new(file));
    let cut = |_error: std::io::Error| torn("it is cut or damaged");
    let mut members: Vec<Member> = Vec::new();
    let mut manifest = None;
    for entry in archive.entries().map_err(cut)? {
        let mut entry = entry.map_err(cut)?;
        if manifest.is_some() || members.len() >= MEMBERS_MAX {
            return Err(torn("something stands behind its end"));
        }
        if entry.header().entry_type() != EntryType::Regular {
            return Err(torn("it holds something that is no file"));
        }
        let path = member_path(&entry)?;
        if path == MANIFEST {
            manifest = Some(read_manifest(&mut entry)?);
            continue;
        }
        members.push(take(entry, path, &keep)?);
    }
    let manifest = manifest.ok_or_else(|| torn("it has no end"))?;
    let mut names: Vec<&str> = members.iter().map(|member| member.path.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(torn("it holds a file twice"));
    }
    if manifest.members != members || !names.contains(&manifest.store.as_str()) {
        return Err(torn("a file in it is not what its manifest says"));
    }
    Ok(manifest)
}

/// The path of a member: below the home, and of plain parts.
fn member_path(entry: &Entry<'_, impl Read>) -> Result<String, Failure> {
    let path = entry.path().map_err(|_error| torn("a name in it cannot be read"))?;
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    match parts {
        Some(parts) if !parts.is_empty() && parts.len() <= DEPTH_MAX + 2 => Ok(parts.join("/")),
        _ => Err(torn("a name in it leads out of the home")),
    }
}

fn read_manifest(entry: &mut Entry<'_, impl Read>) -> Result<Manifest, Failure> {
    if entry.size() > MANIFEST_BYTES_MAX {
        return Err(torn("its manifest is too large"));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|_error| torn("it is cut or damaged"))?;
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|_error| torn("its manifest does not read"))?;
    if manifest.format == FORMAT {
        Ok(manifest)
    } else {
        Err(Failure::refused("backup-format", format!("the backup has format {}", manifest.format))
            .hint("it was made by a newer thought; install that version"))
    }
}

fn take(entry: Entry<'_, impl Read>, path: String, keep: &Keep<'_>) -> Result<Member, Failure> {
    let mut hashing = Hashing::new(entry);
    let copied = match keep {
        Keep::Nothing => std::io::copy(&mut hashing, &mut std::io::sink()),
        Keep::Below(folder) => create(folder, &path).and_then(|mut file| {
            std::io::copy(&mut hashing, &mut file).and_then(|count| file.sync_all().map(|()| count))
        }),
    };
    copied.map_err(|error| match error.kind() {
        std::io::ErrorKind::StorageFull => {
            Failure::new(Exit::Machine, "no-space", format!("restore {path}: no space"))
                .hint("free some space; nothing was restored")
        }
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            Failure::new(Exit::Machine, "cannot-write", format!("restore {path}: {}", error.kind()))
        }
        _ => torn("it is cut or damaged"),
    })?;
    let (_, bytes, sha256) = hashing.finish();
    Ok(Member { path, bytes, sha256 })
}

fn create(folder: &Path, path: &str) -> std::io::Result<File> {
    let file = folder.join(path);
    if let Some(parent) = file.parent() {
        DirBuilder::new().mode(0o700).recursive(true).create(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)
}

/// The restored store is whole, stands where the manifest says, and rebuilds every context.
async fn verify_restored(folder: &Path, manifest: &Manifest) -> Result<(), Failure> {
    let engine = SqliteStore::open(&folder.join(&manifest.store), StoreOptions::default())?;
    let store = Store::new(engine, std::sync::Arc::new(SystemClock));
    let audit = store.reader().audit().await?;
    let verified = verify::Verified { audit, ..verify::Verified::default() };
    verify::must_be_whole(&verified, "the restored store")?;
    let same = verified.audit.sources.len() == manifest.sources.len()
        && verified.audit.sources.iter().zip(&manifest.sources).all(|(row, head)| {
            row.source.as_str() == head.source && row.head == head.head && row.head_sha256 == head.head_sha256
        });
    if same { Ok(()) } else { Err(torn("its store does not stand where its manifest says")) }
}

/// The folder that will be the home, and the one beside it in which it grows.
struct Place {
    folder: PathBuf,
    partial: PathBuf,
}

impl Place {
    fn new(folder: &Path) -> Result<Self, Failure> {
        let shown = folder.display();
        match std::fs::read_dir(folder) {
            Ok(mut entries) => {
                home::check_folder(folder)?;
                if entries.next().is_some() {
                    return Err(Failure::refused("not-empty", format!("{shown} is not empty"))
                        .hint("restore into a folder that is empty or not there"));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Failure::refused("folder", format!("look at {shown}: {}", error.kind())));
            }
        }
        let name = folder
            .file_name()
            .ok_or_else(|| Failure::refused("folder", format!("{shown} names no folder")))?;
        let parent =
            folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let partial = parent.join(format!(".{}.restoring-{}", name.display(), std::process::id()));
        drop(std::fs::remove_dir_all(&partial));
        DirBuilder::new().mode(0o700).create(&partial).map_err(|error| {
            Failure::refused("folder", format!("make a folder beside {shown}: {}", error.kind()))
        })?;
        Ok(Self { folder: folder.to_owned(), partial })
    }

    fn finish(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            let message = format!("make {} the home: {}", self.folder.display(), error.kind());
            Failure::new(Exit::Machine, "cannot-write", message)
        };
        sync_folders(&self.partial).map_err(failed)?;
        // An empty folder of that name is replaced, one that was filled meanwhile is not.
        std::fs::rename(&self.partial, &self.folder).map_err(failed)?;
        let parent = self.folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // After a rename there is nothing of that name.
        drop(std::fs::remove_dir_all(&self.partial));
    }
}

fn sync_folders(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}
