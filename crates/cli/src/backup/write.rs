//! Writing a backup: one state of the store, and every file of the home that belongs to it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use tar::{Builder, Header};
use thought_authority::filesystem::ScanError;
use thought_authority::lock::{self, LOCK_FILE};
use thought_authority::materialize::PROJECTION_LOCK_WAIT;
use thought_contract::time::Clock;
use thought_store::Store;
use thought_store_sqlite::{OpenOptions as StoreOptions, SqliteStore};

use super::manifest::{FORMAT, Hashing, Head, Manifest, Member};
use super::{DEPTH_MAX, MANIFEST, MEMBERS_MAX};
use crate::command::verify;
use crate::compose::SystemClock;
use crate::exit::{Exit, Failure};
use crate::home::{self, Home};
use crate::print::{self, Printer};
use crate::word::{Documents, scan_failure};

/// The archive as it grows.
type Archive = Builder<BufWriter<File>>;

/// `backup`.
///
/// # Errors
/// [`Failure`]: the destination exists, its folder does not, or it lies in the home (3); the context stays locked (4); the
/// store is not whole (3); a full disk (8). Nothing is left behind.
pub async fn backup(home: &Home, store: &Store, printer: Printer, output: &Path) -> Result<(), Failure> {
    let target = Target::new(home, output)?;
    let staging = Staging::new(home)?;
    let documents = Documents::open(home, store)?;
    let mut archive = target.begin()?;
    let mut members = Vec::new();
    {
        // Nothing is written into the context meanwhile: the store and the documents are of one state.
        let taken =
            lock::acquire_within(documents.connector.root(), &documents.evidence, PROJECTION_LOCK_WAIT).await;
        let _guard = taken.map_err(|error| scan_failure(&ScanError::Lock(error)))?;
        thought_store_sqlite::copy(&home.database(), &staging.store())?;
        folder(&mut archive, home, &home.config.context.root, &mut members, printer)?;
    }
    let sources = verified(&staging.store()).await?;
    let store_path = relative(&home.path, &home.database())?;
    append(&mut archive, &staging.store(), &store_path, &mut members)?;
    append(&mut archive, &home.below(home::CONFIGURATION), home::CONFIGURATION, &mut members)?;
    // Blobs come behind the store: one is kept before an event names it.
    for part in ["agents", "prompts", "blobs"] {
        folder(&mut archive, home, Path::new(part), &mut members, printer)?;
    }
    let manifest = Manifest {
        format: FORMAT,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: SystemClock.now(),
        store: store_path,
        sources,
        members,
    };
    let (bytes, sha256) = target.finish(archive, &manifest)?;
    let events: u64 = manifest.sources.iter().map(|head| head.head).sum();
    let value = json!({
        "output": output, "bytes": bytes, "sha256": sha256, "files": manifest.members.len(), "events": events,
        "sources": manifest.sources,
    });
    printer.either(&value, || {
        let mut lines = vec![
            format!(
                "wrote {} ({bytes} bytes, {} files, {events} events)",
                print::path(output),
                manifest.members.len()
            ),
            format!("sha256 {sha256}"),
        ];
        let heads = manifest.sources.iter();
        lines.extend(heads.map(|head| format!("head  {} {} {}", head.source, head.head, head.head_sha256)));
        lines
    })
}

/// The copy is whole, and says where every source stands.
async fn verified(copy: &Path) -> Result<Vec<Head>, Failure> {
    let engine = SqliteStore::open(copy, StoreOptions::default())?;
    let store = Store::new(engine, std::sync::Arc::new(SystemClock));
    let verified = verify::Verified { audit: store.reader().audit().await?, ..verify::Verified::default() };
    verify::must_be_whole(&verified, "the store")?;
    let heads = verified.audit.sources.iter();
    Ok(heads
        .map(|row| Head {
            source: row.source.as_str().to_owned(),
            head: row.head,
            head_sha256: row.head_sha256.clone(),
        })
        .collect())
}

/// A folder of the home for the copy of the store; gone with this value.
struct Staging {
    folder: PathBuf,
}

impl Staging {
    fn new(home: &Home) -> Result<Self, Failure> {
        let folder = home.run_folder()?.join(format!("backup-{}", std::process::id()));
        // What a killed backup of a process of this number left is nobody's any more.
        drop(std::fs::remove_dir_all(&folder));
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| cannot("make", &folder, &error))?;
        let staging = Self { folder };
        home::write_new(&staging.store(), b"")?;
        Ok(staging)
    }

    fn store(&self) -> PathBuf {
        self.folder.join("thought.db")
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(target: "thought::backup", error = %error.kind(), "a staged copy stays in run/");
        }
    }
}

/// Where the backup goes.
struct Target {
    output: PathBuf,
    partial: PathBuf,
}

impl Target {
    fn new(home: &Home, output: &Path) -> Result<Self, Failure> {
        let shown = output.display();
        let name =
            output.file_name().ok_or_else(|| Failure::refused("output", format!("{shown} names no file")))?;
        let folder =
            output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(folder).map_err(|error| {
            Failure::refused("no-folder", format!("look at the folder of {shown}: {}", error.kind()))
                .hint("make it first")
        })?;
        if folder.starts_with(&home.path) {
            return Err(Failure::refused("inside-home", format!("{shown} lies inside the home"))
                .hint("a backup belongs outside of what it keeps"));
        }
        let output = folder.join(name);
        if std::fs::symlink_metadata(&output).is_ok() {
            return Err(Failure::refused("exists", format!("{shown} is there already"))
                .hint("nothing is overwritten; name another file"));
        }
        let partial = folder.join(format!(".{}.partial-{}", name.display(), std::process::id()));
        Ok(Self { output, partial })
    }

    fn begin(&self) -> Result<Archive, Failure> {
        drop(std::fs::remove_file(&self.partial));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.partial)
            .map_err(|error| cannot("write", &self.partial, &error))?;
        Ok(Builder::new(BufWriter::new(file)))
    }

    /// Ends the archive with its manifest, reads it back, and gives it its name.
    fn finish(
        &self,
        mut archive: Archive,
        manifest: &Manifest,
    ) -> Result<(u64, thought_protocol::Sha256Hex), Failure> {
        let io = |error: std::io::Error| cannot("write", &self.output, &error);
        let bytes = serde_json::to_vec(manifest).map_err(|error| Failure::internal(&error))?;
        let mut header = header(bytes.len() as u64);
        archive.append_data(&mut header, MANIFEST, bytes.as_slice()).map_err(io)?;
        let mut file =
            archive.into_inner().map_err(io)?.into_inner().map_err(|error| io(error.into_error()))?;
        file.flush().and_then(|()| file.sync_all()).map_err(io)?;
        drop(file);
        super::read::check(&self.partial, manifest)?;
        let mut hashing = Hashing::new(File::open(&self.partial).map_err(io)?);
        std::io::copy(&mut hashing, &mut std::io::sink()).map_err(io)?;
        let (_, bytes, sha256) = hashing.finish();
        renameat_with(CWD, &self.partial, CWD, &self.output, RenameFlags::NOREPLACE)
            .map_err(|errno| io(errno.into()))?;
        let folder = self.output.parent().unwrap_or(Path::new("/"));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        Ok((bytes, sha256))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // After a rename there is nothing of that name.
        drop(std::fs::remove_file(&self.partial));
    }
}

fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header
}

/// Appends one file, and notes what it was.
fn append(archive: &mut Archive, file: &Path, path: &str, members: &mut Vec<Member>) -> Result<(), Failure> {
    use rustix::fs::{Mode, OFlags, open};
    let io = |error: std::io::Error| cannot("back up", file, &error);
    if members.len() >= MEMBERS_MAX {
        return Err(Failure::refused("too-many-files", format!("a home of more than {MEMBERS_MAX} files")));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = File::from(open(file, flags, Mode::empty()).map_err(|errno| io(errno.into()))?);
    let length = opened.metadata().map_err(io)?.len();
    let mut hashing = Hashing::new(opened.take(length));
    archive.append_data(&mut header(length), path, &mut hashing).map_err(io)?;
    let (_, bytes, sha256) = hashing.finish();
    if bytes != length {
        return Err(Failure::new(
            Exit::Conflict,
            "changed-meanwhile",
            format!("{path} became shorter while it was read"),
        )
        .hint("run the backup again"));
    }
    members.push(Member { path: path.to_owned(), bytes, sha256 });
    Ok(())
}

/// Appends every regular file below a folder of the home, in the order of their names; links are told and left out.
fn folder(
    archive: &mut Archive,
    home: &Home,
    part: &Path,
    members: &mut Vec<Member>,
    printer: Printer,
) -> Result<(), Failure> {
    let mut waiting = vec![(home.below(part), 0_usize)];
    while let Some((folder, depth)) = waiting.pop() {
        let found = match std::fs::symlink_metadata(&folder) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(cannot("look at", &folder, &error)),
        };
        if !found.is_dir() || depth > DEPTH_MAX {
            printer.remark(&format!("{} is left out: a link, or too deep", folder.display()));
            continue;
        }
        let mut entries = std::fs::read_dir(&folder)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| cannot("list", &folder, &error))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| cannot("look at", &path, &error))?;
            if kind.is_dir() {
                waiting.push((path, depth + 1));
            } else if kind.is_file() && entry.file_name() != LOCK_FILE {
                append(archive, &path, &relative(&home.path, &path)?, members)?;
            } else if !kind.is_file() {
                printer.remark(&format!("{} is left out: no regular file", path.display()));
            }
        }
    }
    Ok(())
}

/// A path below the home as an archive names it.
fn relative(home: &Path, path: &Path) -> Result<String, Failure> {
    let below = path.strip_prefix(home).map_err(|error| Failure::internal(&error))?;
    let parts: Option<Vec<&str>> = below
        .components()
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    parts.map(|parts| parts.join("/")).ok_or_else(|| {
        Failure::refused("name", format!("{} has a name that is not UTF-8", path.display())).hint("rename it")
    })
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("{what} {}: {}", path.display(), error.kind());
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            Failure::new(Exit::Machine, "no-space", message).hint("free some space; nothing was left behind")
        }
        _ => Failure::new(Exit::Machine, "cannot-write", message),
    }
}
