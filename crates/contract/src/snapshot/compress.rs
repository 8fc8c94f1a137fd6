//! The stored form of a snapshot's bytes: zlib, bounded on the way in and on the way out.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::limits::SNAPSHOT_BYTES_MAX;

/// Bytes that cannot be stored or read back. It holds no content.
#[derive(Debug, thiserror::Error)]
pub enum CompressError {
    /// Over the bound.
    #[error("compress a snapshot: it is over {SNAPSHOT_BYTES_MAX} bytes")]
    TooLong,
    /// The compressor failed.
    #[error("compress a snapshot")]
    Compress(#[source] std::io::Error),
    /// The stored bytes are cut, damaged or followed by others.
    #[error("decompress a snapshot: the stored bytes are damaged")]
    Damaged,
}

/// Most of a snapshot is hashes, of which more effort makes nothing less: the default is a quarter of a percent smaller, and
/// a turn waits for it.
const LEVEL: u32 = 4;

pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, CompressError> {
    if bytes.len() > SNAPSHOT_BYTES_MAX {
        return Err(CompressError::TooLong);
    }
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 3), Compression::new(LEVEL));
    encoder.write_all(bytes).map_err(CompressError::Compress)?;
    encoder.finish().map_err(CompressError::Compress)
}

pub(super) fn decompress(compressed: &[u8]) -> Result<Vec<u8>, CompressError> {
    let bound = u64::try_from(SNAPSHOT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut decoder = ZlibDecoder::new(compressed);
    let mut bytes = Vec::new();
    let read = (&mut decoder).take(bound + 1).read_to_end(&mut bytes);
    if read.is_err() {
        return Err(CompressError::Damaged);
    }
    if bytes.len() > SNAPSHOT_BYTES_MAX {
        return Err(CompressError::TooLong);
    }
    if decoder.total_in() == u64::try_from(compressed.len()).unwrap_or(u64::MAX) {
        Ok(bytes)
    } else {
        Err(CompressError::Damaged)
    }
}
