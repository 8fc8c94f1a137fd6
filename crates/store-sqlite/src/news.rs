//! News of other processes: a look at SQLite's version of the data every few milliseconds.
//!
//! A look costs a few microseconds and reads no page. What this process commits is told by the writer itself, with its
//! topics; where a look cannot tell that from the work of others, the writer is asked, whose own commits leave its version
//! alone. So a commit here wakes only whom it concerns, and one of another process wakes everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use rusqlite::Connection;
use thought_store::{Herald, Topics};
use tokio::sync::mpsc;

use crate::counters::Totals;
use crate::failure;
use crate::limits::NEWS_INTERVAL_MS;
use crate::writer::Task;

/// What looks for commits of other processes.
pub(crate) struct Watch {
    pub(crate) connection: Connection,
    pub(crate) totals: Arc<Totals>,
    pub(crate) news: Herald,
    pub(crate) writer: Option<mpsc::Sender<Task>>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Watch {
    /// Looks until it is told to stop.
    pub(crate) fn run(self) {
        let mut known = None;
        let mut failing = false;
        let mut over_before = self.totals.commits_over.load(SeqCst);
        while !self.stop.load(SeqCst) {
            // What is over now was counted by the look before; what has begun by the end of this one may be seen in it.
            let over = self.totals.commits_over.load(SeqCst);
            match version(&self.connection) {
                Ok(version) => {
                    failing = false;
                    if known.replace(version).is_some_and(|before| before != version) {
                        self.tell(over_before);
                    }
                }
                Err(error) if failing => drop(error),
                Err(error) => {
                    failing = true;
                    tracing::warn!(error = %failure::of("look for news", &error), "news may come late");
                }
            }
            over_before = over;
            std::thread::sleep(Duration::from_millis(NEWS_INTERVAL_MS));
        }
    }

    /// The data is other than at the last look, before which this many commits of the writer were over.
    fn tell(&self, over_before: u64) {
        let is_ours_maybe = self.totals.commits_begun.load(SeqCst) != over_before;
        if is_ours_maybe && let Some(writer) = &self.writer {
            // A queue that is full or closed cannot say: then everybody looks.
            if writer.try_send(Task::LookElsewhere).is_ok() {
                return;
            }
        }
        self.news.tell(Topics::ALL);
    }
}

/// SQLite's version of the data: other than before when another connection committed.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}
