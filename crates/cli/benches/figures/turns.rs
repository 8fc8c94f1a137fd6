//! Turns through the real binary: from a pushed update to its committed receipt, and where that time goes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::commits::BareCommits;
use crate::cost;
use crate::options::Options;
use crate::place::{Moment, Observer, Place, Servers, Serving, bare_start};
use crate::proc::{self, Scheduled};
use crate::stats::{Sample, ms};
use crate::table::{Row, Table};

/// Turns before the measured ones: a context holds 64, and caches are warm by then.
const WARM_UP: usize = 70;
/// Pause between a receipt and the next message, so that each turn finds the machine at rest.
const REST: Duration = Duration::from_millis(30);
/// Bare commits and process starts before and after the turns.
const BARE: usize = 100;

const OVERHEAD_MS_MAX: f64 = 6.0;
const SNAPSHOT_KIB_MAX: f64 = 16.0;

/// One turn as the bench saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pushed: Moment,
    sent: Moment,
    receipt: Moment,
}

/// Has the person say something this often, and waits for each answer's receipt.
pub(crate) fn speak(servers: &Servers, observer: &Observer, turns: usize) -> Result<Vec<Seen>> {
    let mut seen = Vec::with_capacity(turns);
    let mut sent = servers.bot.call_count("sendMessage");
    for _ in 0..turns {
        std::thread::sleep(REST);
        let known = observer.newest_receipt()?;
        let pushed = servers.say();
        sent += 1;
        let sent_at = servers.wait_for_sent(sent)?;
        let receipt = observer.wait_for_receipt(known)?;
        seen.push(Seen { pushed, sent: sent_at, receipt });
    }
    Ok(seen)
}

/// What was measured on one file system.
struct Measured {
    whole: Sample,
    stages: Vec<(&'static str, Sample)>,
    /// The servers' own parts of a turn.
    model: Sample,
    send: Sample,
    commit: Sample,
    start: Sample,
    /// Of `serve` alone, a turn.
    scheduled: Scheduled,
    snapshot_bytes: f64,
    place: Place,
    servers: Servers,
}

impl Measured {
    fn overhead(&self, of: f64) -> f64 {
        of - self.model.median()
    }
}

fn measure(below: &Path, turns: usize) -> Result<Measured> {
    let servers = Servers::start()?;
    let place = Place::beside(below, &servers)?;
    let bare = BareCommits::open(below)?;
    let (mut commit, mut start) = (Sample::default(), Sample::default());
    let mut time_bare = || -> Result<()> {
        bare.time(BARE, &mut commit)?;
        for _ in 0..BARE / 2 {
            start.push_ms(bare_start()?);
        }
        Ok(())
    };
    time_bare()?;
    let serving = Serving::start(&place)?;
    let observer = place.observer()?;
    speak(&servers, &observer, WARM_UP)?;
    let arrived_before = servers.arrivals().len();
    let before = proc::scheduled(serving.pid())?;
    let seen = speak(&servers, &observer, turns)?;
    let after = proc::scheduled(serving.pid())?;
    let each = |of: fn(&Scheduled) -> f64| (of(&after) - of(&before)) / turns as f64;
    let scheduled = Scheduled { run_ms: each(|s| s.run_ms), wait_ms: each(|s| s.wait_ms) };
    let arrivals = servers.arrivals().split_off(arrived_before);
    ensure!(arrivals.len() == turns, "{} requests were made in {turns} turns", arrivals.len());
    ensure!(servers.model.refusals().is_empty(), "the model refused a request");
    serving.stop()?;
    time_bare()?;
    let (mut model, mut send) = (Sample::default(), Sample::default());
    for _ in 0..BARE {
        model.push_ms(servers.model_time()?);
        send.push_ms(servers.send_time()?);
    }
    let mut whole = Sample::default();
    for turn in &seen {
        whole.push_ms(turn.receipt.at - turn.pushed.at);
    }
    let stages = stages(&observer, &seen, &arrivals)?;
    let sql = "SELECT length(bytes) FROM snapshots WHERE run_ordinal = (SELECT max(ordinal) FROM runs)";
    let snapshot_bytes = observer.0.query_row(sql, [], |row| row.get::<_, f64>(0))?;
    Ok(Measured { whole, stages, model, send, commit, start, scheduled, snapshot_bytes, place, servers })
}

/// Times that the store recorded of one turn, milliseconds since the epoch. The store writes whole milliseconds, rounded
/// down: half of one is added, so that means come out right.
struct Recorded {
    event: f64,
    attempt: f64,
    settled: f64,
    opened: f64,
}

fn recorded(observer: &Observer, turns: usize) -> Result<Vec<Recorded>> {
    let sql = "SELECT e.recorded_ms, a.started_ms, r.ended_ms, d.opened_ms
               FROM runs r JOIN events e ON e.id = r.trigger_id JOIN attempts a ON a.run = r.id
                   JOIN deliveries d ON d.cause = r.output_id
               ORDER BY r.ordinal DESC LIMIT ?1";
    let mut statement = observer.0.prepare(sql)?;
    let rows = statement.query_map([turns as i64], |row| {
        let at = |index: usize| row.get::<_, i64>(index).map(|ms| ms as f64 + 0.5);
        Ok(Recorded { event: at(0)?, attempt: at(1)?, settled: at(2)?, opened: at(3)? })
    })?;
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    rows.reverse();
    ensure!(rows.len() == turns, "the store tells of {} turns, not {turns}", rows.len());
    Ok(rows)
}

fn stages(observer: &Observer, seen: &[Seen], arrivals: &[Moment]) -> Result<Vec<(&'static str, Sample)>> {
    let rows = recorded(observer, seen.len())?;
    type Stage = fn(&Seen, &Moment, &Recorded) -> f64;
    let kinds: [(&str, Stage); 7] = [
        ("update pushed to event (poll, spool)", |seen, _, row| row.event - seen.pushed.wall_ms),
        ("event to attempt (admission, context)", |_, _, row| row.attempt - row.event),
        ("attempt to request (jail, connection)", |_, arrival, row| arrival.wall_ms - row.attempt),
        ("request to settlement (answer, validation)", |_, arrival, row| row.settled - arrival.wall_ms),
        ("settlement to delivery opened", |_, _, row| row.opened - row.settled),
        ("delivery opened to message sent", |seen, _, row| seen.sent.wall_ms - row.opened),
        ("message sent to receipt", |seen, _, _| ms(seen.receipt.at - seen.sent.at)),
    ];
    let each = |stage: Stage| {
        let mut sample = Sample::default();
        for ((seen, arrival), row) in seen.iter().zip(arrivals).zip(&rows) {
            sample.push(stage(seen, arrival, row));
        }
        sample
    };
    Ok(kinds.into_iter().map(|(name, stage)| (name, each(stage))).collect())
}

/// The overhead of a turn where commits cost next to nothing, and the size of its snapshot.
pub(crate) fn on_memory(options: &Options, table: &mut Table) -> Result<()> {
    let measured = measure(&options.memory, options.turns)?;
    overhead(table, "a memory file system", &measured);
    table.group("Snapshot of a context of 64 turns");
    let row = Row::new("snapshot in the store", measured.snapshot_bytes / 1_024.0, "KiB");
    let packet = measured.servers.model.requests().last().map_or(0, |request| request.body.len());
    table.row(row.beside("the request itself", packet as f64 / 1_024.0).at_most(SNAPSHOT_KIB_MAX));
    Ok(())
}

fn overhead(table: &mut Table, name: &str, measured: &Measured) {
    let whole = &measured.whole;
    table.group(format!("A turn on {name}: update pushed to receipt committed ({} turns)", whole.len()));
    let start = measured.start.median();
    let row = Row::new("overhead (all but the model), median", measured.overhead(whole.median()), "ms");
    let row = if name.contains("memory") { row.at_most(OVERHEAD_MS_MAX) } else { row };
    table.row(row.beside("a bare process", start));
    table.row(Row::new("overhead, 95th percentile", measured.overhead(whole.p95()), "ms"));
    table.row(Row::new("overhead, 10th percentile", measured.overhead(whole.p10()), "ms"));
    table.row(Row::new("with the model, median", whole.median(), "ms"));
    table.row(Row::new("the model's own part, median", measured.model.median(), "ms"));
    table.row(Row::new("Telegram's own part of the message, median", measured.send.median(), "ms"));
    table.row(Row::new("a bare durable commit there, median", measured.commit.median(), "ms"));
    let scheduled = &measured.scheduled;
    let row = Row::new("serve's processor time a turn, mean", scheduled.run_ms, "ms");
    table.row(row.note("all threads, the rest between turns included, the worker's own not"));
    let row = Row::new("serve's wait for a processor a turn, mean", scheduled.wait_ms, "ms");
    table.row(row.note("what other work on the machine adds, threads added up"));
    for (stage, sample) in &measured.stages {
        table.row(Row::new(format!("  mean: {stage}"), sample.mean(), "ms"));
    }
}

/// The same turn on a disk: its commits, and the rest.
pub(crate) fn on_disk(options: &Options, table: &mut Table) -> Result<()> {
    let measured = measure(&options.disk, options.turns)?;
    overhead(table, "a disk", &measured);
    let cost = cost::of_turns(&measured.place, &measured.servers, 20)?;
    let (commits, commit) = (cost.commits.median(), measured.commit.median());
    let turn = measured.overhead(measured.whole.median());
    table.group("The turn on a disk as its commits and the rest");
    table.row(Row::new("durable commits of a turn, counted", commits, "").note("the cursor's own included"));
    table.row(
        Row::new("commits x a bare durable commit", commits * commit, "ms").beside("a bare commit", commit),
    );
    table.row(Row::new("the rest", turn - commits * commit, "ms"));
    table.row(Row::new("turn", turn, "ms").beside("a bare commit", commit));
    table.row(Row::new("turn", turn, "ms").beside("a bare process", measured.start.median()));
    Ok(())
}
