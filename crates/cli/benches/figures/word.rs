//! A person's word: one chain validated, and one change of memory decided, written, scanned and receipted.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use thought_authority::decide::Submission;
use thought_authority::project::Status;
use thought_cli::args::{Color, Global};
use thought_cli::command::decisions::carry_out;
use thought_cli::print::Printer;
use thought_cli::serve::{self, Ready};
use thought_contract::payload::{Disposition, Surface};
use thought_fakes::Reply;
use thought_protocol::EventId;

use crate::commits::BareCommits;
use crate::options::Options;
use crate::place::{Place, Servers, Serving};
use crate::stats::Sample;
use crate::table::{Row, Table};
use crate::turns;

/// Changes that are made, each on the one before.
const CHANGES: usize = 60;
/// Validations of each chain.
const VALIDATIONS: usize = 3;
/// Durable commits of a change: the decision, the intent, the new version, and the receipt.
const COMMITS: f64 = 4.0;

/// Prints what a word costs, on a memory file system and on a disk.
pub(crate) fn of_a_person(options: &Options, table: &mut Table) -> Result<()> {
    for (below, name) in [(&options.memory, "a memory file system"), (&options.disk, "a disk")] {
        let servers = Servers::start()?;
        let place = Place::beside(below, &servers)?;
        let first = suggested(&servers, &place)?;
        let printer = Printer::new(&Global {
            home: None,
            json: true,
            log_level: None,
            log_format: None,
            color: Color::Never,
        });
        let ready = servers.runtime.block_on(serve::prepare(place.open()?, printer))?;
        let bare = BareCommits::open(below)?;
        let measured = measure(&servers, &place, &ready, &bare, first)?;
        print(table, name, &measured);
    }
    Ok(())
}

/// A turn whose answer suggests a change; the suggestion.
fn suggested(servers: &Servers, place: &Place) -> Result<EventId> {
    let arguments = json!({"operation": "append", "proposed_text": "- trains at noon", "reason": "They said so.",
        "evidence_event_ids": []});
    let call = ("request_memory_change".to_owned(), arguments);
    servers.model.script(vec![Reply::Calls { text: None, calls: vec![call] }]);
    let serving = Serving::start(place)?;
    let observer = place.observer()?;
    turns::speak(servers, &observer, 1)?;
    serving.stop()?;
    let id: String = observer.0.query_row("SELECT event FROM proposals", [], |row| row.get(0))?;
    id.parse().context("read the id of a proposal")
}

#[derive(Default)]
struct Measured {
    validation: Sample,
    rows: Sample,
    change: Sample,
    commit: Sample,
    file: Sample,
}

fn measure(
    servers: &Servers,
    place: &Place,
    ready: &Ready,
    bare: &BareCommits,
    first: EventId,
) -> Result<Measured> {
    let (word, observer) = (ready.word(), place.observer()?);
    let mut measured = Measured::default();
    let mut proposal = first;
    for number in 0..CHANGES {
        for _ in 0..VALIDATIONS {
            let verified =
                measured.validation.time(|| servers.runtime.block_on(word.desk.verified(&proposal)));
            verified.context("validate a chain")?;
            measured.rows.time(|| chain_rows(&observer.0, &proposal))?;
        }
        bare.time(1, &mut measured.commit)?;
        measured.file.time(|| replace_a_file(&place.home))?;
        let submission = Submission {
            disposition: Disposition::Accept,
            replacement: None,
            submission_id: format!("figures-{number}"),
            actor: None,
            expect_sha256: None,
            expect_base: None,
            surface: Surface::Cli,
            uid: rustix::process::getuid().as_raw(),
        };
        let done =
            measured.change.time(|| servers.runtime.block_on(carry_out(&word, &proposal, &submission)));
        let (_, outcome) = done.map_err(anyhow::Error::new)?;
        ensure!(outcome?.status == Status::Materialized, "a change was not written");
        // What puts the version before back in its place is a change like any other.
        proposal = servers.runtime.block_on(word.operator_desk.revert(&proposal, None))?.proposal;
    }
    Ok(measured)
}

/// The rows that a chain rests on, each by its key and none looked into.
fn chain_rows(store: &rusqlite::Connection, proposal: &EventId) -> Result<()> {
    let mut event = store.prepare_cached("SELECT * FROM events WHERE id = ?1")?;
    let mut id = Some(proposal.to_string());
    while let Some(next) = id.take() {
        id = event.query_row([&next], |row| {
            row.get::<_, Vec<u8>>("payload")?;
            row.get("parent_id")
        })?;
    }
    let mut run = store.prepare_cached(
        "SELECT runs.ordinal, snapshots.bytes FROM runs JOIN snapshots ON snapshots.run_ordinal = runs.ordinal
         ORDER BY runs.ordinal DESC LIMIT 1",
    )?;
    run.query_row([], |row| row.get::<_, Vec<u8>>(1))?;
    Ok(())
}

/// The smallest durable replacement of a file.
fn replace_a_file(folder: &std::path::Path) -> Result<()> {
    let temporary = folder.join("bare.tmp");
    let file = std::fs::File::create(&temporary)?;
    std::io::Write::write_all(&mut &file, &[7; 512])?;
    file.sync_all()?;
    std::fs::rename(&temporary, folder.join("bare"))?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}

fn print(table: &mut Table, name: &str, measured: &Measured) {
    table.group(format!("A person's word on {name} (medians of {CHANGES} changes, each on the one before)"));
    let row = Row::new("one chain validated, every link", measured.validation.median(), "ms");
    table.row(row.beside("a bare read of its rows", measured.rows.median()));
    let row = Row::new("a change decided, written, receipted", measured.change.median(), "ms");
    table.row(
        row.beside("a bare commit", measured.commit.median())
            .note("the chain is validated three times on the way"),
    );
    let least = COMMITS * measured.commit.median() + measured.file.median();
    let row = Row::new("the same", measured.change.median(), "ms");
    table.row(row.beside("its commits and one bare replaced file", least));
}
