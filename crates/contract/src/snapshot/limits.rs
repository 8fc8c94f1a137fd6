//! The bounds of snapshots that no other room needs.

/// A snapshot's canonical bytes: the longest transcript with every id and hash stays below a quarter of it.
pub const SNAPSHOT_BYTES_MAX: usize = 1024 * 1024;
/// All images of the current message that are sent, bytes before base64.
pub const SENT_IMAGES_BYTES_MAX: u64 = 20 * 1024 * 1024;
