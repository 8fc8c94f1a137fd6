//! Exports of many judgments by the real binary: judgments a second beside a bare read of the same rows, and the most
//! memory that it took with few and with many.

#[path = "../../tests/export/fill.rs"]
mod judged;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rusqlite::{Connection, params};

use self::judged::Filler;
use crate::options::Options;
use crate::place::{Place, Servers};
use crate::stats::ms;
use crate::table::{Row, Table, remark};

/// Judgments of the smaller store.
const FEW: i64 = 10_000;
/// Judgments of the larger one.
const MANY: i64 = 100_000;
const PEAK_MIB_MAX: f64 = 64.0;

/// What one export took.
struct Exported {
    took: Duration,
    peak_kib: f64,
    bytes: u64,
}

/// From the same home with few judgments, then with many.
pub(crate) fn of_many(options: &Options, table: &mut Table) -> Result<()> {
    let servers = Servers::start()?;
    let place = Place::beside(&options.memory, &servers)?;
    run(&place.home, &["scan"])?.wait_with_output()?;
    let mut filler = servers.runtime.block_on(Filler::open(&place.database()))?;
    let mut peaks = Vec::new();
    for (held, more) in [(FEW, FEW), (MANY, MANY - FEW)] {
        remark(&format!("judging {more} turns"));
        servers.runtime.block_on(filler.fill(more))?;
        let exported = export(&place.home, held)?;
        let bare = bare_read(&place.database(), held)?;
        table.group(format!("A private export of {held} judgments, each with its whole chain replayed"));
        let rate = |took: Duration| held as f64 / took.as_secs_f64();
        let row = Row::new("judgments exported", rate(exported.took), "/s").beside("a bare read", rate(bare));
        let took = format!("{:.1} s, {:.0} ms bare", exported.took.as_secs_f64(), ms(bare));
        table.row(row.note(format!("{took}, {:.1} MiB written", exported.bytes as f64 / 1_048_576.0)));
        peaks.push(exported.peak_kib / 1_024.0);
    }
    if let [few, many] = peaks[..] {
        let row = Row::new(format!("most memory, {MANY} judgments"), many, "MiB");
        table.row(row.beside(format!("with {FEW}"), few).at_most(PEAK_MIB_MAX));
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a bench starts the binary that it measures")]
fn run(home: &Path, arguments: &[&str]) -> Result<std::process::Child> {
    Command::new(env!("CARGO_BIN_EXE_thought"))
        .arg("--home")
        .arg(home)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("start thought")
}

fn export(home: &Path, judgments: i64) -> Result<Exported> {
    let name = format!("export-{judgments}.jsonl");
    let output = home.join(name);
    let path = output.to_str().context("name the export")?;
    let acknowledge = "--acknowledge-sensitive-private-training";
    let began = Instant::now();
    let mut child = run(home, &["--json", "private-training-export", "--output", path, acknowledge])?;
    let mut peak_kib = 0.0_f64;
    let status = loop {
        // It only grows, so the last look before the end is the one that counts.
        let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let most = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = most.and_then(|line| line.split_whitespace().next()).map_or(Ok(0.0), str::parse::<f64>)?;
        peak_kib = peak_kib.max(kib);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let took = began.elapsed();
    if !status.success() {
        bail!("the export ended with {status}");
    }
    let lines = std::fs::read(&output)?.iter().filter(|byte| **byte == b'\n').count();
    ensure!(i64::try_from(lines)? == judgments, "the export holds {lines} examples");
    Ok(Exported { took, peak_kib, bytes: std::fs::metadata(&output)?.len() })
}

/// The rows that an example rests on, each by its key and none looked into: judgment, feedback, trigger, output, receipt
/// and completion, the run, its attempts and its frozen context.
fn bare_read(database: &Path, judgments: i64) -> Result<Duration> {
    let connection = Connection::open(database)?;
    let began = Instant::now();
    let mut page = connection.prepare(
        "SELECT position, root_id, parent_id, payload FROM events
         WHERE type = 'stream.thought.judgment.recorded@2' AND position > ?1 ORDER BY position LIMIT 64",
    )?;
    let mut target = connection.prepare("SELECT output FROM judgments WHERE position = ?1")?;
    let mut event = connection.prepare("SELECT * FROM events WHERE id = ?1")?;
    let mut children = connection.prepare(
        "SELECT * FROM events WHERE parent_position = (SELECT position FROM events WHERE id = ?1)",
    )?;
    let mut of_output = connection
        .prepare("SELECT * FROM runs WHERE output_position = (SELECT position FROM events WHERE id = ?1)")?;
    let mut attempts = connection
        .prepare("SELECT * FROM attempts WHERE run_ordinal = (SELECT ordinal FROM runs WHERE id = ?1)")?;
    let mut snapshot = connection
        .prepare("SELECT * FROM snapshots WHERE run_ordinal = (SELECT ordinal FROM runs WHERE id = ?1)")?;
    let (mut after, mut seen) = (0_i64, 0_i64);
    loop {
        let rows: Vec<(i64, String, String, Vec<u8>)> = page
            .query_map(params![after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<Result<_, _>>()?;
        let Some(last) = rows.last() else { break };
        after = last.0;
        for (position, root, feedback, _payload) in &rows {
            let output: String = target.query_row(params![position], |row| row.get(0))?;
            let id = |row: &rusqlite::Row<'_>| row.get::<_, String>("id");
            for one in [root, feedback, &output] {
                event.query_row(params![one], id)?;
            }
            let below = children.query_map(params![output], id)?.count();
            let run = of_output.query_row(params![output], id)?;
            attempts.query_row(params![run], id)?;
            snapshot.query_row(params![run], |row| row.get::<_, Vec<u8>>("bytes"))?;
            ensure!(below == 2, "an output has {below} events below it");
        }
        seen += i64::try_from(rows.len())?;
    }
    ensure!(seen == judgments, "a bare read found {seen} judgments");
    Ok(began.elapsed())
}
