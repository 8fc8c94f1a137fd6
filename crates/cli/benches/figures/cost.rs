//! What a turn costs the store: the same roles as `serve` runs, in this process, where their counts can be read.

use std::time::Duration;

use anyhow::Result;
use thought_cli::args::{Color, Global};
use thought_cli::print::Printer;
use thought_cli::serve;

use crate::place::{Place, Servers};
use crate::proc::{self, Io};
use crate::stats::Sample;

/// Turns before the count, so that caches hold what they hold in use.
const WARM_UP: usize = 20;
/// Threads through which every page goes.
const STORE_THREADS: [&str; 2] = [WRITER, "store-reader"];
const WRITER: &str = "store-writer";
const PAGE_BYTES: f64 = 4_096.0;
/// How long after its receipt a turn has settled down: its cursor, its successor in the jail, late looks for news.
const QUIET: Duration = Duration::from_millis(60);

/// Counts of single turns.
#[derive(Default)]
pub(crate) struct Cost {
    pub(crate) commits: Sample,
    pub(crate) rows_read: Sample,
    pub(crate) rows_written: Sample,
    /// Pages that were in no connection's cache.
    pub(crate) pages_read: Sample,
    /// Those of them that the writer took in, when it moved the log into the database among them.
    pub(crate) pages_read_to_write: Sample,
    /// Pages written to the log and the database.
    pub(crate) pages_written: Sample,
}

/// Runs the roles of a home in this process and counts turn by turn. Nothing else may serve the home meanwhile.
pub(crate) fn of_turns(place: &Place, servers: &Servers, turns: usize) -> Result<Cost> {
    let printer = Printer::new(&Global {
        home: None,
        json: true,
        log_level: None,
        log_format: None,
        color: Color::Never,
    });
    let home = place.open()?;
    let (ready, roles) = servers.runtime.block_on(async {
        let mut ready = serve::prepare(home, printer).await?;
        let roles = serve::start(&mut ready).await?;
        Ok::<_, thought_cli::exit::Failure>((ready, roles))
    })?;
    let observer = place.observer()?;
    let reader = ready.store().reader();
    let mut cost = Cost::default();
    for turn in 0..WARM_UP + turns {
        std::thread::sleep(QUIET);
        let (counts, io) = (reader.counters(), proc::io_of_threads(&STORE_THREADS)?);
        let writer = proc::io_of_threads(&[WRITER])?.read_bytes;
        let known = observer.newest_receipt()?;
        servers.say();
        observer.wait_for_receipt(known)?;
        std::thread::sleep(QUIET);
        let (counts_after, io_after) = (reader.counters(), proc::io_of_threads(&STORE_THREADS)?);
        if turn < WARM_UP {
            continue;
        }
        cost.commits.push((counts_after.commits - counts.commits) as f64);
        cost.rows_read.push((counts_after.rows_read - counts.rows_read) as f64);
        cost.rows_written.push((counts_after.rows_written - counts.rows_written) as f64);
        let pages = |of: fn(&Io) -> u64| (of(&io_after) - of(&io)) as f64 / PAGE_BYTES;
        cost.pages_read.push(pages(|io| io.read_bytes));
        let writer_after = proc::io_of_threads(&[WRITER])?.read_bytes;
        cost.pages_read_to_write.push((writer_after - writer) as f64 / PAGE_BYTES);
        cost.pages_written.push(pages(|io| io.written_bytes));
    }
    servers.runtime.block_on(roles.finish());
    Ok(cost)
}
