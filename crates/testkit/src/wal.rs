//! Counts commits from outside, in SQLite's write-ahead log: a frame that ends a transaction carries the size of the
//! database after it, every other frame carries zero.

use std::fs;
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// What a log holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commits {
    /// Transactions that stand in it.
    pub count: usize,
    /// Which log it is: another value means that it was begun anew in between.
    pub salt: u64,
}

/// Counts the transactions in the log beside a database.
///
/// # Panics
/// When there is no log, or it is not of the documented form.
#[must_use]
pub fn commits(database: &Path) -> Commits {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let bytes = fs::read(&log).unwrap();
    count(&bytes)
}

fn count(bytes: &[u8]) -> Commits {
    assert!(bytes.len() >= HEADER_BYTES, "a log begins with {HEADER_BYTES} bytes");
    assert!(matches!(word(bytes, 0), 0x377f_0682 | 0x377f_0683), "the log's first word is SQLite's");
    let page_bytes = word(bytes, 8) as usize;
    let salt = long(bytes, 16);
    // Frames behind the last one of this log belong to an earlier one: their salt differs.
    let frames = bytes[HEADER_BYTES..].chunks_exact(FRAME_HEADER_BYTES + page_bytes);
    let own = frames.take_while(|frame| long(frame, 8) == salt);
    Commits { count: own.filter(|frame| word(frame, 4) != 0).count(), salt }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(size_after: u32, salt: u64) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 1];
        bytes.extend(size_after.to_be_bytes());
        bytes.extend(salt.to_be_bytes());
        bytes.resize(FRAME_HEADER_BYTES + 512, 0);
        bytes
    }

    #[test]
    fn only_the_last_frame_of_a_transaction_of_this_log_counts() {
        let mut log = vec![0; HEADER_BYTES];
        log[..4].copy_from_slice(&0x377f_0682_u32.to_be_bytes());
        log[8..12].copy_from_slice(&512_u32.to_be_bytes());
        log[16..24].copy_from_slice(&7_u64.to_be_bytes());
        for (size_after, salt) in [(0, 7), (3, 7), (3, 7), (4, 6), (5, 7)] {
            log.extend(frame(size_after, salt));
        }
        assert_eq!(count(&log), Commits { count: 2, salt: 7 });
    }
}
