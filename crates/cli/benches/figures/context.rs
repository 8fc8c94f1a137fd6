//! The context of a turn: what is read of the store for it, in stores from a thousand events to a million.

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use thought_store::Reads;
use thought_store::row::ContextQuery;
use thought_store_sqlite::{OpenOptions, SqliteStore};

use crate::fill::Filler;
use crate::options::Options;
use crate::place::{AGENT, Place, Servers, Serving};
use crate::stats::Sample;
use crate::table::{Row, Table, remark};
use crate::turns;

/// Turns of the conversation: more than a context shows.
const TURNS: usize = 70;
/// Earlier turns that are read for one whose context holds 64 events.
const READ: u32 = 32;
/// Reads in each store.
const READS: usize = 300;

/// Prints how long it takes, store by store.
pub(crate) fn at_each_size(options: &Options, table: &mut Table) -> Result<()> {
    let servers = Servers::start()?;
    let place = Place::beside(&options.memory, &servers)?;
    let serving = Serving::start(&place)?;
    turns::speak(&servers, &place.observer()?, TURNS)?;
    serving.stop()?;
    table.group(format!(
        "The evidence of a context, {READ} turns with their answers and receipts, read at once"
    ));
    let mut first = None;
    for size in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|size| *size <= options.events) {
        remark(&format!("filling a store up to {size} events"));
        let held = Filler::open(&servers.runtime, &place.database())?.fill(size)?;
        let store = SqliteStore::open(&place.database(), OpenOptions::default())?;
        let bare = Connection::open(place.database())?;
        let trigger: String = bare.query_row(NEWEST, [AGENT], |row| row.get(0))?;
        let query = ContextQuery {
            trigger: trigger.parse().context("read the id of a message")?,
            turns_max: READ,
            agents: vec![AGENT.to_owned()],
            older_max: 64,
            documents: None,
        };
        let mut found = bare.prepare(PLACES)?;
        let places: Vec<i64> = found.query_map([READ], |row| row.get(0))?.collect::<Result<_, _>>()?;
        ensure!(places.len() == 4 * READ as usize, "the evidence stands at {} places", places.len());
        let (mut whole, mut rows) = (Sample::default(), Sample::default());
        for _ in 0..READS {
            let read = whole.time(|| servers.runtime.block_on(store.context(query.clone())))?;
            ensure!(read.is_some_and(|rows| rows.turns.len() == READ as usize), "a context lacks turns");
            rows.time(|| bare_read(&bare, &places))?;
        }
        let row = Row::new(format!("with {held} events"), whole.median(), "ms");
        let note = format!("{:.2} x the first", whole.median() / *first.get_or_insert(whole.median()));
        table.row(row.beside("a bare read of its rows", rows.median()).note(note));
    }
    Ok(())
}

/// The newest message of the conversation that was spoken in, which is that of the first run.
const NEWEST: &str = "SELECT trigger_id FROM runs WHERE declaration = ?1 AND conversation =
    (SELECT conversation FROM runs WHERE ordinal = 1) ORDER BY ordinal DESC LIMIT 1";

/// Where the evidence of its newest turns stands.
const PLACES: &str = "WITH newest AS (SELECT * FROM runs WHERE conversation =
        (SELECT conversation FROM runs WHERE ordinal = 1) ORDER BY ordinal DESC LIMIT ?1)
    SELECT output_position FROM newest UNION SELECT terminal_position FROM newest
    UNION SELECT reply_position FROM newest
    UNION SELECT events.position FROM newest JOIN events ON events.id = newest.trigger_id ORDER BY 1";

/// The same events by their places, none looked into.
fn bare_read(store: &Connection, places: &[i64]) -> Result<()> {
    let mut event = store.prepare_cached("SELECT * FROM events WHERE position = ?1")?;
    for place in places {
        event.query_row([place], |row| row.get::<_, Vec<u8>>("payload"))?;
    }
    Ok(())
}
