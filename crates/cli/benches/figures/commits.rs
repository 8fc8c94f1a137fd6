//! Durable commits: the smallest that the engine can make, and the one that settles a run.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fill::Filler;
use crate::stats::Sample;
use crate::table::{Row, Table};

/// Settlements that are measured.
const SETTLEMENTS: usize = 200;

/// The smallest durable commit: one row, write-ahead log, `synchronous=FULL`, in the folder that is asked about.
pub(crate) struct BareCommits {
    _folder: TempDir,
    connection: Connection,
}

impl BareCommits {
    pub(crate) fn open(below: &Path) -> Result<Self> {
        std::fs::create_dir_all(below)?;
        let folder = tempfile::Builder::new().prefix("thought-figures-").tempdir_in(below)?;
        let connection = Connection::open(folder.path().join("bare.db")).context("open a bare database")?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;
             CREATE TABLE rows (id INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT;",
        )?;
        let bare = Self { _folder: folder, connection };
        // The first commits make the log and fill its file.
        for _ in 0..50 {
            bare.commit()?;
        }
        Ok(bare)
    }

    fn commit(&self) -> Result<()> {
        let mut insert = self.connection.prepare_cached("INSERT INTO rows (value) VALUES (?1)")?;
        insert.execute([[7_u8; 200].as_slice()])?;
        Ok(())
    }

    /// Adds timed commits to a sample.
    pub(crate) fn time(&self, count: usize, sample: &mut Sample) -> Result<()> {
        for _ in 0..count {
            sample.time(|| self.commit())?;
        }
        Ok(())
    }
}

/// The settlement's commit beside a bare one, turn about, so that a disk that changes its mood changes both.
pub(crate) fn settlement(below: &Path, name: &str, table: &mut Table) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let bare = BareCommits::open(below)?;
    let folder = tempfile::Builder::new().prefix("thought-figures-").tempdir_in(below)?;
    let mut filler = Filler::make(&runtime, &folder.path().join("thought.db"))?;
    let (mut commits, mut settlements) = (Sample::default(), Sample::default());
    for _ in 0..SETTLEMENTS {
        bare.time(1, &mut commits)?;
        let ops = filler.unsettled()?;
        settlements.time(|| filler.commit(ops))?;
    }
    table.group(format!("Settlement of a run, one commit, on {name} ({SETTLEMENTS} each, turn about)"));
    let row = Row::new("settlement, median", settlements.median(), "ms");
    table.row(row.beside("a bare commit", commits.median()));
    let row = Row::new("settlement, 95th percentile", settlements.p95(), "ms");
    table.row(row.beside("a bare commit's", commits.p95()));
    Ok(())
}
