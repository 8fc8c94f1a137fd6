//! Exports: active judgments with their whole provenance become a file of preference examples beside its manifest.
//!
//! The selector replays the complete chain of each judgment; what lacks a part is left out and counted by reason. The writer
//! looks again by itself. Examples go into the one file that the person named and nowhere else: not to stdout, a log or an
//! error. Nothing here appends an event but [`release()`], and nothing here is on the way of a turn, so files are written
//! where the reading is awaited.

mod destination;
mod evidence;
mod example;
mod exclusion;
mod files;
mod manifest;
mod release;
mod select;

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use thought_protocol::canonical::CanonicalError;
use thought_store::handle::Reader;
use thought_store::{Images, StoreError};

pub use destination::DestinationError;
pub use example::{
    EXAMPLE_SCHEMA_VERSION, Example, ExampleWriter, Message, Provenance, Role, WriteError, Written,
    example_id,
};
pub use exclusion::{Exclusion, Part};
pub use files::FileError;
pub use manifest::{Head, MANIFEST_SCHEMA_VERSION, Manifest, OutputFile};
pub use release::{ReleaseError, Released, release};

use crate::limits::SPARE_BYTES;
use destination::Destination;
use evidence::Examiner;
use exclusion::Halt;
use files::Staged;
use select::{Heads, Judgments, survey};

/// Which judgments an export is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Those that may train privately.
    #[serde(rename = "private-training-export")]
    Private,
    /// Those that may also leave the house.
    #[serde(rename = "training-export")]
    External,
}

/// An export that did not come about; it leaves nothing behind. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The destination is refused.
    #[error("export judgments")]
    Destination(#[from] DestinationError),
    /// The files.
    #[error("export judgments")]
    File(#[from] FileError),
    /// The writer refused what the selector took.
    #[error("export judgments")]
    Write(#[source] WriteError),
    /// The manifest has no canonical form.
    #[error("export judgments: write the manifest")]
    Canonical(#[from] CanonicalError),
    /// The store.
    #[error("export judgments: read the store")]
    Store(#[from] StoreError),
}

impl From<WriteError> for ExportError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) => Self::File(error.into()),
            other => Self::Write(other),
        }
    }
}

/// Moments and faults for tests, and progress for people. Production moves on at every point.
pub trait Watcher: Send + Sync {
    /// Passes a point at which a test may end the process.
    fn reach(&self, _name: &'static str) {}

    /// Before bytes go to the file.
    ///
    /// # Errors
    /// The fault that the write comes to.
    fn write(&self) -> io::Result<()> {
        Ok(())
    }

    /// How many of how many judgments were looked at.
    fn progress(&self, _done: u64, _of: u64) {}
}

/// Every point that an export passes, in order.
pub const EXPORT_POINTS: [&str; 7] = [
    "export.begun",
    "export.written",
    "export.synced",
    "export.manifest-written",
    "export.manifest-placed",
    "export.output-placed",
    "export.done",
];

/// What is exported, and where to.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which judgments.
    pub scope: Scope,
    /// The file; its manifest lies beside it.
    pub output: &'a Path,
    /// What the manifest says the tool is.
    pub tool_version: &'a str,
}

/// What an export came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What the manifest says.
    pub manifest: Manifest,
    /// Leftovers of killed exports that were removed, by name.
    pub swept: Vec<String>,
}

/// Exports judgments into a file that is not there yet.
///
/// # Errors
/// [`ExportError`]. Whatever it is, neither the output nor its manifest is in place then.
pub async fn export(
    (reader, images): (&Reader, &dyn Images),
    request: Request<'_>,
    watcher: &dyn Watcher,
) -> Result<Report, ExportError> {
    let Request { scope, output, tool_version } = request;
    let place = Destination::open(output)?;
    let swept = files::sweep(&place.folder, &place.output)?;
    place.is_free()?;
    let heads = Heads::read(reader).await?;
    let expected = survey(reader, heads.last_judgment(), scope).await?;
    let needed_bytes = expected.bytes_min.saturating_add(SPARE_BYTES);
    let free_bytes = place.free_bytes()?;
    if free_bytes < needed_bytes {
        return Err(DestinationError::Space { free_bytes, needed_bytes }.into());
    }
    let staged = Staged::create(&place.folder, &place.output)?;
    watcher.reach("export.begun");
    let sink = BufWriter::new(Sink { staged: &staged, watcher });
    let mut writer = ExampleWriter::new(sink);
    let selection = Selection { reader, images, scope, head: heads.last_judgment() };
    let excluded = selection.write(&mut writer, watcher).await?;
    let (sink, written, sha256) = writer.finish()?;
    drop(sink);
    watcher.reach("export.written");
    staged.sync()?;
    watcher.reach("export.synced");
    let manifest = Manifest::of((scope, tool_version), &heads, excluded, (written, sha256));
    place_both(&place, staged, &manifest, watcher)?;
    watcher.reach("export.done");
    Ok(Report { manifest, swept })
}

/// The manifest first, the output last.
fn place_both(
    place: &Destination,
    output: Staged<'_>,
    manifest: &Manifest,
    watcher: &dyn Watcher,
) -> Result<(), ExportError> {
    let beside = Staged::create(&place.folder, &place.manifest)?;
    watcher.write().map_err(FileError::from)?;
    beside.file().write_all(&manifest.bytes()?).map_err(FileError::from)?;
    beside.sync()?;
    watcher.reach("export.manifest-written");
    let beside = beside.publish()?;
    watcher.reach("export.manifest-placed");
    let output = output.publish()?;
    watcher.reach("export.output-placed");
    output.keep();
    beside.keep();
    Ok(())
}

/// The file, with the faults that a test asks for.
struct Sink<'a> {
    staged: &'a Staged<'a>,
    watcher: &'a dyn Watcher,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.watcher.write()?;
        self.staged.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Selection<'a> {
    reader: &'a Reader,
    images: &'a dyn Images,
    scope: Scope,
    head: u64,
}

impl Selection<'_> {
    /// Writes every example, and counts what becomes none.
    async fn write<W: Write>(
        &self,
        writer: &mut ExampleWriter<W>,
        watcher: &dyn Watcher,
    ) -> Result<BTreeMap<String, u64>, ExportError> {
        let mut excluded: BTreeMap<String, u64> = BTreeMap::new();
        let mut judgments = Judgments::up_to(self.reader, self.head);
        let mut examiner = Examiner::new((self.reader, self.images), self.scope);
        let mut done = 0;
        loop {
            let page = judgments.page().await?;
            if page.is_empty() {
                return Ok(excluded);
            }
            for event in page {
                let found = match judgments.sift(&event, self.scope).await? {
                    Ok(_said) => examiner.example_of(&event).await,
                    Err(exclusion) => Err(Halt::Excluded(exclusion)),
                };
                match found {
                    Ok(example) => writer.write(&example)?,
                    Err(Halt::Excluded(exclusion)) => *excluded.entry(exclusion.code()).or_default() += 1,
                    Err(Halt::Store(error)) => return Err(error.into()),
                }
                done += 1;
                watcher.progress(done, self.head);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_every_other_failure() {
        let full = WriteError::Io(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(ExportError::from(full), ExportError::File(FileError::NoSpace)));
        let other = WriteError::Io(io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(matches!(ExportError::from(other), ExportError::File(FileError::Io(_))));
        let lacks = WriteError::Lacks { id: "run" };
        assert!(matches!(ExportError::from(lacks), ExportError::Write(_)));
    }

    #[test]
    fn scopes_are_called_as_their_commands() {
        let names = [Scope::Private, Scope::External].map(|scope| serde_json::to_string(&scope).unwrap());
        assert_eq!(names, ["\"private-training-export\"", "\"training-export\""]);
    }
}
