//! The port through which the images of messages are read: when a context is frozen, and whenever a packet is rebuilt.
//!
//! Its users know names of blobs and nothing of where they lie; one adapter serves every room that rebuilds a packet.

use thought_protocol::{Sensitive, Sha256Hex};

use crate::engine::BoxFuture;

/// An image that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read image {sha256}: {code}")]
pub struct ImagesError {
    /// Name of its blob.
    pub sha256: Sha256Hex,
    /// A stable code.
    pub code: &'static str,
}

/// Content-addressed images.
pub trait Images: Send + Sync + 'static {
    /// The bytes of an image.
    fn read(&self, sha256: &Sha256Hex) -> BoxFuture<'_, Result<Sensitive<Vec<u8>>, ImagesError>>;
}

/// There are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoImages;

impl Images for NoImages {
    fn read(&self, sha256: &Sha256Hex) -> BoxFuture<'_, Result<Sensitive<Vec<u8>>, ImagesError>> {
        let error = ImagesError { sha256: sha256.clone(), code: "not-kept" };
        Box::pin(std::future::ready(Err(error)))
    }
}
