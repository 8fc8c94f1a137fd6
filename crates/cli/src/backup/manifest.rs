//! The last member of an archive: what is in it.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use thought_contract::time::Timestamp;
use thought_protocol::Sha256Hex;
use thought_protocol::hash::Hasher;

/// The form of an archive.
pub(super) const FORMAT: u32 = 1;

/// What is in an archive.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Manifest {
    /// [`FORMAT`].
    pub(super) format: u32,
    /// Version of the binary that wrote it.
    pub(super) tool: String,
    /// When.
    pub(super) made_at: Timestamp,
    /// Path of the store below the home.
    pub(super) store: String,
    /// Where every source stood: an anchor against a removed tail.
    pub(super) sources: Vec<Head>,
    /// Every member before this one, in order.
    pub(super) members: Vec<Member>,
}

/// Where a source stood.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Head {
    /// The source.
    pub(super) source: String,
    /// Sequence of its newest event.
    pub(super) head: u64,
    /// Chain hash of it.
    pub(super) head_sha256: Sha256Hex,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Member {
    /// Path below the home.
    pub(super) path: String,
    /// Size, bytes.
    pub(super) bytes: u64,
    /// Hash of its bytes.
    pub(super) sha256: Sha256Hex,
}

/// Counts and hashes what passes.
pub(super) struct Hashing<T> {
    inner: T,
    hash: Hasher,
    bytes: u64,
}

impl<T> Hashing<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, hash: Hasher::default(), bytes: 0 }
    }

    /// What passed, and the way on.
    pub(super) fn finish(self) -> (T, u64, Sha256Hex) {
        (self.inner, self.bytes, self.hash.finish())
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.pass(&buffer[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.pass(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
