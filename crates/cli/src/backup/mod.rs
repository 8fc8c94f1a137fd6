//! Backups: the whole home as one tar file, taken while `serve` works, verified as it is written and as it is read.
//!
//! The archive holds the store as one state of it, the context, declarations, prompts, blobs and configuration, and last a
//! manifest with the hash of each of them and the head of every source; without the manifest it is torn. It holds words:
//! it is written for its owner alone. Key files, locks and what runs are not in it.

mod manifest;
mod read;
mod write;

pub use read::restore;
pub use write::backup;

/// Name of the manifest in the archive.
const MANIFEST: &str = "manifest.json";
/// Size of a manifest, bytes.
const MANIFEST_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Members of an archive.
const MEMBERS_MAX: usize = 1_000_000;
/// Folders below each other.
const DEPTH_MAX: usize = 16;
