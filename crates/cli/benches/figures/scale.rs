//! A store with a million events beside one with ten thousand and an empty one: what a turn costs, how fast `serve` is
//! ready, and what it keeps resident while it waits.

use std::time::{Duration, Instant};

use anyhow::Result;
use thought_fakes::Reply;

use crate::cost::{self, Cost};
use crate::fill::Filler;
use crate::options::Options;
use crate::place::{Observer, Place, Servers, Serving};
use crate::proc::{self, Memory};
use crate::stats::Sample;
use crate::table::{Row, Table, remark};
use crate::turns;

/// Events of the smaller store.
const FEW: u64 = 10_000;
/// Turns whose cost is counted in each store.
const COUNTED: usize = 40;
/// Starts of each home.
const STARTS: usize = 9;
/// How long a started process is left alone before it is called idle.
const IDLE: Duration = Duration::from_millis(1_500);
/// Turns after which a store's context is as full as it gets: 64, and the ids of as many that are left out.
const FULL_CONTEXT: usize = 130;

/// Kills in the middle of a turn.
const KILLS: usize = 5;
const READY_MS_MAX: f64 = 40.0;
const RESIDENT_MIB_MAX: f64 = 18.0;

/// How a process starts and waits.
struct Standing {
    ready: Sample,
    last: Memory,
    /// Resident after a few turns.
    after_turns: Memory,
}

/// Prints the comparison.
pub(crate) fn compare(options: &Options, table: &mut Table) -> Result<()> {
    let servers = Servers::start()?;
    let empty = Place::beside(&options.memory, &servers)?;
    let first = Serving::start(&empty)?;
    let first_ready = first.ready_after;
    first.stop()?;
    let in_empty = standing(&empty, &servers, Idle::NoTurns)?;
    drop(empty);

    let place = Place::beside(&options.memory, &servers)?;
    let serving = Serving::start(&place)?;
    turns::speak(&servers, &place.observer()?, FULL_CONTEXT)?;
    serving.stop()?;
    let few = fill(&servers, &place, FEW)?;
    let cost_of_few = cost::of_turns(&place, &servers, COUNTED)?;
    let in_few = standing(&place, &servers, Idle::AfterTurns)?;
    let many = fill(&servers, &place, options.events)?;
    let cost_of_many = cost::of_turns(&place, &servers, COUNTED)?;
    let in_many = standing(&place, &servers, Idle::AfterTurns)?;

    let recovered = recovery(&place, &servers)?;
    costs(table, (few, &cost_of_few), (many, &cost_of_many));
    let bytes = std::fs::metadata(place.database())?.len();
    table.row(Row::new("database file", bytes as f64 / 1_048_576.0, "MiB").note(format!("{many} events")));
    starts(table, first_ready, [("an empty store", &in_empty), ("few", &in_few), ("many", &in_many)])?;
    table.group(format!(
        "After a kill in the middle of a turn, in a store with {many} events (median of {KILLS})"
    ));
    let mut bare = Sample::default();
    for _ in 0..30 {
        bare.push_ms(crate::place::bare_start()?);
    }
    let row =
        Row::new("from the start to the ready line", recovered.ready.median(), "ms").at_most(READY_MS_MAX);
    table.row(row.beside("a bare process", bare.median()));
    let row = Row::new("from the start to the receipt of the reply", recovered.receipt.median(), "ms");
    table.row(
        row.beside("a bare process", bare.median()).note("the first request is lost, and is made once more"),
    );
    Ok(())
}

/// How a process takes up what a killed one left.
#[derive(Default)]
struct Recovered {
    ready: Sample,
    receipt: Sample,
}

/// Kills `serve` while the model is asked, and starts it again.
fn recovery(place: &Place, servers: &Servers) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    let observer = place.observer()?;
    for _ in 0..KILLS {
        let asked = servers.model.request_count();
        servers.model.script(vec![Reply::Hang]);
        let serving = Serving::start(place)?;
        let known = observer.newest_receipt()?;
        servers.say();
        while servers.model.request_count() == asked {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Dropped, it is killed.
        drop(serving);
        let began = Instant::now();
        let serving = Serving::start(place)?;
        recovered.ready.push_ms(serving.ready_after);
        recovered.receipt.push_ms(observer.wait_for_receipt(known)?.at - began);
        serving.stop()?;
    }
    Ok(recovered)
}

fn fill(servers: &Servers, place: &Place, events: u64) -> Result<u64> {
    remark(&format!("filling a store up to {events} events"));
    let began = Instant::now();
    let mut filler = Filler::open(&servers.runtime, &place.database())?;
    let held = filler.fill(events)?;
    filler.check(200)?;
    remark(&format!(
        "filled in {:.0} s; 200 hashes were computed again and hold",
        began.elapsed().as_secs_f64()
    ));
    Ok(held)
}

fn costs(table: &mut Table, (few, cost_of_few): (u64, &Cost), (many, cost_of_many): (u64, &Cost)) {
    table.group(format!(
        "A turn in a store with {many} events, beside one with {few} (medians of {COUNTED} turns)"
    ));
    type Kind = (&'static str, fn(&Cost) -> &Sample, f64);
    let kinds: [Kind; 5] = [
        ("durable commits", |cost| &cost.commits, 1.0),
        ("rows read", |cost| &cost.rows_read, 1.0),
        ("rows written", |cost| &cost.rows_written, 1.0),
        ("pages read that were in no cache", |cost| &cost.pages_read, 1.1),
        ("pages written", |cost| &cost.pages_written, 1.1),
    ];
    let (few_written, many_written) = (&cost_of_few.pages_read_to_write, &cost_of_many.pages_read_to_write);
    for (name, of, most) in kinds {
        let (small, large) = (of(cost_of_few), of(cost_of_many));
        let row =
            Row::new(name, large.median(), "").beside("few", small.median()).at_most(small.median() * most);
        table.row(row.note(format!("mean {:.1}, with few {:.1}", large.mean(), small.mean())));
    }
    let row = Row::new("  of those read, by the writer", many_written.median(), "");
    let row = row.beside("few", few_written.median());
    table.row(row.note("ids are hashes: each new one has a page of its own in a large index"));
}

enum Idle {
    NoTurns,
    AfterTurns,
}

fn standing(place: &Place, servers: &Servers, idle: Idle) -> Result<Standing> {
    let mut ready = Sample::default();
    for _ in 1..STARTS {
        let serving = Serving::start(place)?;
        ready.push_ms(serving.ready_after);
        serving.stop()?;
    }
    let serving = Serving::start(place)?;
    ready.push_ms(serving.ready_after);
    std::thread::sleep(IDLE);
    let last = proc::memory(serving.pid())?;
    let observer: Observer = place.observer()?;
    if matches!(idle, Idle::AfterTurns) {
        turns::speak(servers, &observer, COUNTED)?;
        std::thread::sleep(IDLE);
    }
    let after_turns = proc::memory(serving.pid())?;
    serving.stop()?;
    Ok(Standing { ready, last, after_turns })
}

fn starts(table: &mut Table, first_ready: Duration, standings: [(&str, &Standing); 3]) -> Result<()> {
    let mut bare = Sample::default();
    for _ in 0..30 {
        bare.push_ms(crate::place::bare_start()?);
    }
    table.group(format!("From the start of `thought serve` to its ready line (median of {STARTS})"));
    for (name, standing) in standings {
        let row = Row::new(format!("ready, {name}"), standing.ready.median(), "ms").at_most(READY_MS_MAX);
        let spread = format!("10th percentile {:.1}, 95th {:.1}", standing.ready.p10(), standing.ready.p95());
        table.row(row.beside("a bare process", bare.median()).note(spread));
    }
    let row = Row::new("the very first start of a home", crate::stats::ms(first_ready), "ms");
    table.row(row.beside("a bare process", bare.median()).note("installs the declarations"));
    table.group("Resident while idle, without the warm worker");
    let mib = |kib: f64| kib / 1_024.0;
    let empty = mib(standings[0].1.last.resident_kib);
    for (name, standing) in standings {
        for (when, memory) in [("idle", standing.last), ("idle after turns", standing.after_turns)] {
            if name == "an empty store" && when != "idle" {
                continue;
            }
            let row = Row::new(format!("resident, {name}, {when}"), mib(memory.resident_kib), "MiB");
            let row = if when == "idle" { row.at_most(RESIDENT_MIB_MAX) } else { row };
            table.row(row.beside("empty", empty).note(format!(
                "{:.1} of it the program's own file, {:.1} anonymous, {} threads",
                mib(memory.file_kib),
                mib(memory.anonymous_kib),
                memory.threads
            )));
        }
    }
    Ok(())
}
