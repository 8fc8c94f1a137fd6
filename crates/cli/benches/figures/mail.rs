//! Private mail across processes: this one appends a message, `thought serve` answers it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use thought_runtime::mail::{Errand, Outgoing, Response, SendStatus};

use crate::commits::BareCommits;
use crate::options::Options;
use crate::place::{Observer, Place, Servers, Serving};
use crate::stats::Sample;
use crate::table::{Row, Table};

const AGENT: &str = "stream-agent-conversation";
/// Messages before the measured ones.
const WARM_UP: usize = 20;
/// Measured messages; with the others below the shipped declaration's requests of a day.
const MESSAGES: usize = 150;
/// Longest wait for one answer, seconds.
const WAIT_SECONDS: u64 = 30;
const START_MS_MAX: f64 = 30.0;

/// From the append of a message by one process to the start of its run by another, on both file systems.
pub(crate) fn across(options: &Options, table: &mut Table) -> Result<()> {
    for (name, below) in [("a memory file system", &options.memory), ("a disk", &options.disk)] {
        let measured = measure(below)?;
        table.group(format!("Private mail between processes on {name} ({MESSAGES} messages)"));
        let row = Row::new("append to the start of its run, median", measured.starts.median(), "ms");
        table.row(row.beside("a bare commit", measured.commit.median()));
        let row = Row::new("append to the start of its run, 95th percentile", measured.starts.p95(), "ms");
        table.row(row.beside("a bare commit's", measured.commit.p95()).at_most(START_MS_MAX));
        table.row(Row::new("append to its response, median", measured.responses.median(), "ms"));
    }
    Ok(())
}

struct Measured {
    /// As the store recorded it: the attempt's start is durable before its packet leaves.
    starts: Sample,
    responses: Sample,
    commit: Sample,
}

fn measure(below: &Path) -> Result<Measured> {
    let servers = Servers::start()?;
    let place = Place::beside(below, &servers)?;
    let serving = Serving::start(&place)?;
    let home = place.open()?;
    let store = thought_cli::compose::open_store(&home).map_err(anyhow::Error::new)?;
    let desk = thought_cli::command::mail::desk(&store, "co");
    let mut responses = Sample::default();
    for number in 0..WARM_UP + MESSAGES {
        let id = format!("m-{number}");
        let text = format!("What do you make of the third point of what I sent before ({number})?");
        let message = Outgoing::new("co", AGENT, "figures", &id, text.as_bytes())?;
        let errand = Errand { message, wait_seconds: Some(WAIT_SECONDS), response: Response::Asked };
        let served = responses.time(|| servers.runtime.block_on(desk.serve(&errand)))?;
        ensure!(served.status == SendStatus::Completed, "message {number} is {}", served.status.as_str());
    }
    let starts = starts(&place.observer()?)?;
    ensure!(servers.model.request_count() == WARM_UP + MESSAGES, "one request a message");
    serving.stop()?;
    let mut commit = Sample::default();
    BareCommits::open(below)?.time(MESSAGES, &mut commit)?;
    Ok(Measured { starts, responses, commit })
}

fn starts(observer: &Observer) -> Result<Sample> {
    let sql = "SELECT a.started_ms - e.recorded_ms
               FROM runs r JOIN events e ON e.id = r.trigger_id JOIN attempts a ON a.run = r.id
               WHERE r.declaration = ?1 ORDER BY r.ordinal DESC LIMIT ?2";
    let mut statement = observer.0.prepare(sql)?;
    let limit = i64::try_from(MESSAGES).context("count the messages")?;
    let rows = statement.query_map(rusqlite::params![AGENT, limit], |row| row.get::<_, i64>(0))?;
    let mut sample = Sample::default();
    for row in rows {
        sample.push(row? as f64);
    }
    ensure!(sample.len() == MESSAGES, "the store tells of {} runs", sample.len());
    Ok(sample)
}
