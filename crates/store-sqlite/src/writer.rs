//! The writer: one thread, one connection, group commit.
//!
//! Commits queue; whatever waits when the thread is free shares one durable transaction. Each is applied inside its own
//! savepoint, so that one whose precondition does not hold takes nobody with it. Everyone is answered after the disk has
//! it. The thread never ends on a failure: a full disk today is not one tomorrow.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rusqlite::Connection;
use thought_store::command::Commit;
use thought_store::engine::Committed;
use thought_store::{Herald, StoreError, Topics};
use tokio::sync::{mpsc, oneshot};

use crate::apply;
use crate::counters::{PageProbe, Totals};
use crate::failure;
use crate::faults::{Faults, Verdict};
use crate::limits::{COMMITS_PER_TRANSACTION_MAX, LOG_RESTART_BYTES, LOG_RESTART_COMMITS};
use crate::news;
use crate::open::PageCounting;
use crate::session::Session;

/// A commit that waits, and whoever waits for it.
pub(crate) struct Job {
    pub(crate) commit: Commit,
    pub(crate) answer: oneshot::Sender<Result<Committed, StoreError>>,
}

/// What the writer is asked for.
pub(crate) enum Task {
    /// A commit.
    Commit(Job),
    /// Whether another process committed something: the data looks other than before, and the writer itself committed
    /// meanwhile. Its own connection alone can tell the one from the other.
    LookElsewhere,
}

/// Everything that the thread owns.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) totals: Arc<Totals>,
    pub(crate) news: Herald,
    pub(crate) faults: Option<Arc<dyn Faults>>,
    pub(crate) page_counting: PageCounting,
    pub(crate) busy_timeout_ms: u32,
    /// The write-ahead log's file.
    pub(crate) log: PathBuf,
    /// Durable transactions so far.
    pub(crate) transactions: u64,
    /// The transaction at which the log may next be asked to start over.
    pub(crate) log_restart_due: u64,
    /// SQLite's version of the data as this connection saw it last; only other connections' commits move it.
    pub(crate) data_version: Option<i64>,
}

type Outcome = Result<Committed, StoreError>;

impl Writer {
    /// Serves commits until every sender is gone.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<Task>) {
        while let Some(first) = queue.blocking_recv() {
            let mut look = false;
            let mut jobs = Vec::new();
            let mut next = Some(first);
            while let Some(task) = next {
                match task {
                    Task::Commit(job) => jobs.push(job),
                    Task::LookElsewhere => look = true,
                }
                let has_room = jobs.len() < COMMITS_PER_TRANSACTION_MAX;
                next = if has_room { queue.try_recv().ok() } else { None };
            }
            if !jobs.is_empty() {
                self.serve(jobs);
            }
            if look {
                self.look_elsewhere();
            }
        }
    }

    /// Tells of what other processes committed since the last look.
    fn look_elsewhere(&mut self) {
        match news::version(&self.connection) {
            Ok(version) => {
                if self.data_version.replace(version).is_some_and(|before| before != version) {
                    self.news.tell(Topics::ALL);
                }
            }
            Err(error) => {
                tracing::warn!(error = %failure::of("look for news", &error), "news is told unseen");
                self.news.tell(Topics::ALL);
            }
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
        self.totals.commits_begun.fetch_add(1, SeqCst);
        let ended = self.execute("COMMIT", "commit");
        self.totals.commits_over.fetch_add(1, SeqCst);
        ended?;
        self.transactions = transaction;
        Totals::add(&self.totals.commits, 1);
        let done = commits.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok());
        self.news.tell(done.fold(Topics::NONE, |all, (commit, _)| all.and(Topics::of(commit))));
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
