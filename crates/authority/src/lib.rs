//! Everything that a person's word sets in motion: the documents of the context root, the chain validator, decisions,
//! projectors, the materializer.
//!
//! Here now: the root, held by descriptor, its lock, and the connector that turns files into scanned versions. It must
//! never follow a link below the home, act on a model's word, or put a document's text into an error or a log.

pub mod filesystem;
pub mod limits;
pub mod lock;
pub mod root;
mod walk;
pub mod watch;
