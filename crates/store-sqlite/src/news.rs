//! News of other processes: a look at SQLite's version of the data every few milliseconds.
//!
//! A look costs a few microseconds and reads no page; what this process commits is told by the writer itself.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;

use crate::failure;
use crate::limits::NEWS_INTERVAL_MS;

/// Looks until it is told to stop.
pub(crate) fn watch(connection: &Connection, news: &watch::Sender<u64>, stop: &AtomicBool) {
    let mut known = None;
    let mut failing = false;
    while !stop.load(Relaxed) {
        match version(connection) {
            Ok(version) => {
                failing = false;
                if known.replace(version).is_some_and(|before| before != version) {
                    news.send_modify(|number| *number = number.wrapping_add(1));
                }
            }
            Err(error) if failing => drop(error),
            Err(error) => {
                failing = true;
                tracing::warn!(error = %failure::of("look for news", &error), "news may come late");
            }
        }
        std::thread::sleep(Duration::from_millis(NEWS_INTERVAL_MS));
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}
