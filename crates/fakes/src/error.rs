//! What can go wrong on the test's side of a fake. What goes wrong on the wire is answered there, not returned here.

use std::io;

/// A fake could not do what its owner asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No loopback port could be bound.
    #[error("bind a loopback port")]
    Bind(#[source] io::Error),
    /// What was waited for did not happen in time.
    #[error("wait for {wanted} of {what}: {seen} came in time")]
    WaitRanOut {
        /// What was counted.
        what: &'static str,
        /// How many were wanted.
        wanted: usize,
        /// How many had come when time ran out.
        seen: usize,
    },
    /// An update that was to be pushed is not a JSON object with an integer `update_id`, or is unknown.
    #[error("push an update: {0}")]
    Update(&'static str),
}
