//! The writer: one thread, one connection, group commit.
//!
//! Commits queue; whatever waits when the thread is free shares one durable transaction. Each is applied inside its own
//! savepoint, so that one whose precondition does not hold takes nobody with it. Everyone is answered after the disk has
//! it. The thread never ends on a failure: a full disk today is not one tomorrow.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use thought_store::StoreError;
use thought_store::command::Commit;
use thought_store::engine::Committed;
use tokio::sync::{mpsc, oneshot, watch};

use crate::apply;
use crate::counters::{PageProbe, Totals};
use crate::failure;
use crate::faults::{Faults, Verdict};
use crate::limits::{COMMITS_PER_TRANSACTION_MAX, LOG_RESTART_BYTES, LOG_RESTART_COMMITS};
use crate::open::PageCounting;
use crate::session::Session;

/// A commit that waits, and whoever waits for it.
pub(crate) struct Job {
    pub(crate) commit: Commit,
    pub(crate) answer: oneshot::Sender<Result<Committed, StoreError>>,
}

/// Everything that the thread owns.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) totals: Arc<Totals>,
    pub(crate) news: watch::Sender<u64>,
    pub(crate) faults: Option<Arc<dyn Faults>>,
    pub(crate) page_counting: PageCounting,
    pub(crate) busy_timeout_ms: u32,
    /// The write-ahead log's file.
    pub(crate) log: PathBuf,
    /// Durable transactions so far.
    pub(crate) transactions: u64,
    /// The transaction at which the log may next be asked to start over.
    pub(crate) log_restart_due: u64,
}

type Outcome = Result<Committed, StoreError>;

impl Writer {
    /// Serves commits until every sender is gone.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(first) = queue.blocking_recv() {
            let mut jobs = vec![first];
            while jobs.len() < COMMITS_PER_TRANSACTION_MAX {
                match queue.try_recv() {
                    Ok(job) => jobs.push(job),
                    Err(_empty_or_closed) => break,
                }
            }
            self.serve(jobs);
        }
    }

    fn serve(&mut self, jobs: Vec<Job>) {
        let probe = PageProbe::begin(self.page_counting);
        let (commits, answers): (Vec<Commit>, Vec<_>) =
            jobs.into_iter().map(|job| (job.commit, job.answer)).unzip();
        let count = commits.len();
        let outcomes = match self.transaction(&commits) {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.undo();
                tracing::warn!(commits = count, %error, "a transaction failed");
                (0..count).map(|_| Err(failure::again(&error))).collect()
            }
        };
        probe.end(&self.totals);
        for (answer, outcome) in answers.into_iter().zip(outcomes) {
            if outcome.is_ok() {
                Totals::add(&self.totals.commands, 1);
            }
            // Nobody may be waiting any more; what was committed stays committed.
            let _gone = answer.send(outcome);
        }
        self.restart_log();
    }

    /// Applies the commits in one transaction. An error means that none of them happened, or that nobody can know.
    fn transaction(&mut self, commits: &[Commit]) -> Result<Vec<Outcome>, StoreError> {
        self.execute("BEGIN IMMEDIATE", "begin a transaction")?;
        let changes_before = self.connection.total_changes();
        let outcomes = match commits {
            [alone] => match apply::commit(Session::new(&self.connection, &self.totals), alone) {
                Ok(committed) => vec![Ok(committed)],
                Err(error) => {
                    self.undo();
                    return Ok(vec![Err(error)]);
                }
            },
            many => many.iter().map(|commit| self.within_savepoint(commit)).collect::<Result<Vec<_>, _>>()?,
        };
        if outcomes.iter().all(Result::is_err) {
            self.undo();
            return Ok(outcomes);
        }
        if self.connection.total_changes() == changes_before {
            self.execute("COMMIT", "end a transaction")?;
            return Ok(outcomes);
        }
        let transaction = self.transactions + 1;
        self.verdict(|faults| faults.before_commit(transaction))?;
        self.execute("COMMIT", "commit")?;
        self.transactions = transaction;
        Totals::add(&self.totals.commits, 1);
        self.news.send_modify(|number| *number = number.wrapping_add(1));
        self.verdict(|faults| faults.after_commit(transaction))?;
        Ok(outcomes)
    }

    /// Applies one commit of several. The outer error means that the whole transaction is lost.
    fn within_savepoint(&self, commit: &Commit) -> Result<Outcome, StoreError> {
        self.execute("SAVEPOINT command", "begin a command")?;
        let outcome = apply::commit(Session::new(&self.connection, &self.totals), commit);
        if let Err(error) = &outcome {
            if self.connection.is_autocommit() {
                return Err(failure::again(error));
            }
            self.execute("ROLLBACK TO command", "undo a command")?;
        }
        self.execute("RELEASE command", "end a command")?;
        Ok(outcome)
    }

    fn verdict(&self, ask: impl FnOnce(&dyn Faults) -> Verdict) -> Result<(), StoreError> {
        match self.faults.as_deref().map_or(Verdict::Proceed, ask) {
            Verdict::Proceed => Ok(()),
            Verdict::Fail => Err(failure::engine("commit", "input or output failed")),
            Verdict::NoSpace => Err(StoreError::NoSpace),
        }
    }

    fn undo(&self) {
        if self.connection.is_autocommit() {
            return;
        }
        if let Err(error) = self.execute("ROLLBACK", "undo a transaction") {
            tracing::error!(%error, "a transaction could not be undone");
        }
    }

    fn execute(&self, sql: &str, operation: &'static str) -> Result<(), StoreError> {
        let fail = failure::during(operation);
        self.connection.prepare_cached(sql).map_err(&fail)?.execute([]).map_err(&fail).map(drop)
    }

    /// Each commit moves the log's pages into the database by itself, and the log starts over once no reader needs it.
    /// Where readers follow each other so closely that this never happens, it is asked for here, without waiting.
    fn restart_log(&mut self) {
        if self.transactions < self.log_restart_due {
            return;
        }
        let long = std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LOG_RESTART_BYTES);
        if !long {
            return;
        }
        self.log_restart_due = self.transactions + LOG_RESTART_COMMITS;
        let outcome = self
            .connection
            .busy_timeout(std::time::Duration::ZERO)
            .and_then(|()| {
                self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))
            })
            .and_then(|_busy| {
                let ms = u64::from(self.busy_timeout_ms);
                self.connection.busy_timeout(std::time::Duration::from_millis(ms))
            });
        if let Err(error) = outcome {
            tracing::warn!(error = %failure::of("restart the log", &error), "the log was not restarted");
        }
    }
}
