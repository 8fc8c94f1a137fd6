//! What the engine did so far, counted where it happens.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use thought_store::row::Counters;

use crate::open::PageCounting;

/// Running totals of one open store.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) commits: AtomicU64,
    /// Transactions that went to the disk, whatever became of them; at least `commits`.
    pub(crate) commits_begun: AtomicU64,
    /// Of those, the ones that are over.
    pub(crate) commits_over: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) rows_read: AtomicU64,
    pub(crate) rows_written: AtomicU64,
    pub(crate) pages_read: AtomicU64,
    /// Steps of SQLite's machine: the tests' measure for work that no row shows.
    pub(crate) steps: AtomicU64,
}

impl Totals {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Counters {
        Counters {
            commits: self.commits.load(Relaxed),
            commands: self.commands.load(Relaxed),
            rows_read: self.rows_read.load(Relaxed),
            rows_written: self.rows_written.load(Relaxed),
            pages_read: self.pages_read.load(Relaxed),
        }
    }
}

const PAGE_BYTES: u64 = 4096;

/// Counts the pages that the calling thread takes in while a piece of work runs.
///
/// SQLite's own count is out of reach of safe code, so the kernel's count of bytes read by this thread stands in for it:
/// each page that is not in a connection's cache is one read of one page.
pub(crate) struct PageProbe {
    before_bytes: Option<u64>,
}

impl PageProbe {
    pub(crate) fn begin(counting: PageCounting) -> Self {
        let before_bytes = match counting {
            PageCounting::Off => None,
            PageCounting::On => bytes_read_by_this_thread(),
        };
        Self { before_bytes }
    }

    pub(crate) fn end(self, totals: &Totals) {
        if let (Some(before), Some(after)) =
            (self.before_bytes, self.before_bytes.and_then(|_| bytes_read_by_this_thread()))
        {
            // What reading the count itself costs is far less than a page.
            Totals::add(&totals.pages_read, after.saturating_sub(before) / PAGE_BYTES);
        }
    }
}

/// Bytes that this thread has read so far, where the kernel tells.
pub(crate) fn bytes_read_by_this_thread() -> Option<u64> {
    let table = match std::fs::read_to_string("/proc/thread-self/io") {
        Ok(table) => table,
        Err(error) => {
            tracing::debug!(kind = ?error.kind(), "the kernel tells no byte counts");
            return None;
        }
    };
    table.lines().find_map(|line| line.strip_prefix("rchar: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_read_is_counted() {
        let totals = Totals::default();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7_u8; 3 * 4096]).unwrap();
        let probe = PageProbe::begin(PageCounting::On);
        assert_eq!(std::fs::read(file.path()).unwrap().len(), 3 * 4096);
        probe.end(&totals);
        assert_eq!(totals.snapshot().pages_read, 3);
    }

    #[test]
    fn nothing_is_counted_unless_asked_for() {
        let totals = Totals::default();
        let probe = PageProbe::begin(PageCounting::Off);
        assert!(std::fs::read("/proc/self/stat").is_ok());
        probe.end(&totals);
        assert_eq!(totals.snapshot(), Counters::default());
    }
}
