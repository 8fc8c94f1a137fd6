//! One state of a store as a file of its own, taken while others go on writing.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use thought_store::StoreError;

use crate::failure;

/// How long the copy waits for a lock, milliseconds.
const BUSY_TIMEOUT_MS: u64 = 10_000;

/// Copies a store into an empty file that is there already, so that its owner and mode are the caller's choice. Blocks as
/// long as it takes to read and write the whole store; writers are not kept waiting.
///
/// # Errors
/// [`StoreError::NoSpace`] on a full disk; [`StoreError::Engine`] or [`StoreError::Unreachable`] when the store cannot be
/// read or the file not be written.
pub fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(from, flags).map_err(failure::during("open the store"))?;
    connection
        .busy_timeout(std::time::Duration::from_millis(BUSY_TIMEOUT_MS))
        .map_err(failure::during("set up a connection"))?;
    let Some(target) = to.to_str() else {
        return Err(failure::engine("copy the store", "the path is not UTF-8"));
    };
    connection.execute("VACUUM INTO ?1", [target]).map_err(failure::during("copy the store"))?;
    Ok(())
}
