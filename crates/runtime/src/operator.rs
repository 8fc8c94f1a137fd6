//! What an operator may do to a run from outside: give it up, or have its trigger answered anew.
//!
//! Both are compare-and-set against whoever holds the run. Neither touches an answer that was settled.

use thought_contract::draft::{self, DraftError, Ending};
use thought_contract::payload::RunEnded;
use thought_contract::run::{AttemptState, RunState, run_id};
use thought_contract::time::Clock;
use thought_protocol::RunId;
use thought_store::command::{AttemptEnd, NewRun};
use thought_store::handle::{Admission, ConsumerRuns, Reader};
use thought_store::row::{RunFilter, RunRow};
use thought_store::{Precondition, StoreError};

use crate::limits::{ABANDON_TRIES_MAX, RUNS_PER_TRIGGER_MAX};
use crate::reason;

/// An operation on a run that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such run.
    #[error("find the run {run}")]
    NotFound {
        /// Which.
        run: RunId,
    },
    /// The run is in a state that the operation does not take.
    #[error("{operation} the run {run}: it is {state}")]
    State {
        /// `abandon` or `retry`.
        operation: &'static str,
        /// Which.
        run: RunId,
        /// Where it stands, as lists show it.
        state: &'static str,
    },
    /// Another run on the same trigger is open or has answered it.
    #[error("retry the run {run}: the run {other} on the same trigger is {state}")]
    Answered {
        /// Which.
        run: RunId,
        /// The other.
        other: RunId,
        /// Where that one stands.
        state: &'static str,
    },
    /// The handle is of another declaration than the run.
    #[error("{operation} the run {run}: the handle is of {handle}")]
    Handle {
        /// `abandon` or `retry`.
        operation: &'static str,
        /// Which.
        run: RunId,
        /// The handle's declaration.
        handle: String,
    },
    /// No version of its declaration is active.
    #[error("retry the run {run}: its declaration is not installed")]
    NotInstalled {
        /// Which.
        run: RunId,
    },
    /// The run moved each time that it was read.
    #[error("abandon the run {run}: it kept moving")]
    Moving {
        /// Which.
        run: RunId,
    },
    /// The terminal event cannot be drafted.
    #[error("draft the end of a run")]
    Draft(#[from] DraftError),
    /// The store.
    #[error("reach the store for a run")]
    Store(#[from] StoreError),
}

async fn find(
    operation: &'static str,
    reader: &Reader,
    runs: &ConsumerRuns,
    run: &RunId,
) -> Result<RunRow, Error> {
    let row = reader.run(run.clone()).await?.ok_or_else(|| Error::NotFound { run: run.clone() })?;
    if row.declaration == runs.declaration() {
        Ok(row)
    } else {
        Err(Error::Handle { operation, run: run.clone(), handle: runs.declaration().to_owned() })
    }
}

/// Gives up an open run. Whoever works on it finds its attempt ended and discards the answer.
///
/// # Errors
/// [`Error::State`] when it has ended; [`Error`].
pub async fn abandon(
    reader: &Reader,
    runs: &ConsumerRuns,
    clock: &dyn Clock,
    run: &RunId,
) -> Result<(), Error> {
    for _ in 0..ABANDON_TRIES_MAX {
        let row = find("abandon", reader, runs, run).await?;
        if !row.state.is_open() {
            return Err(Error::State { operation: "abandon", run: run.clone(), state: row.state.shown() });
        }
        let started = reader.attempts(run.clone()).await?.pop().filter(|a| a.state == AttemptState::Started);
        let trigger = reader
            .event(row.trigger.clone())
            .await?
            .ok_or_else(|| StoreError::Corrupt { what: format!("trigger of {run}") })?;
        let payload =
            RunEnded { run: run.clone(), attempts: row.attempts, reason: reason::OPERATOR.to_owned() };
        let event = draft::run_ended(Ending::Abandoned, &row.declaration, &trigger, &payload, clock.now())?;
        let end = started.map(|attempt| AttemptEnd {
            attempt: attempt.id,
            state: AttemptState::Abandoned,
            reason: Some(reason::OPERATOR.to_owned()),
            input_tokens: None,
            output_tokens: None,
        });
        match runs.end(run.clone(), None, end, reason::OPERATOR, event).await {
            Ok(_) => {
                tracing::info!(run = %run, "run abandoned by the operator");
                return Ok(());
            }
            // It was settled, or its attempt ended, between the reading and the commit: read again.
            Err(StoreError::Precondition(_) | StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Moving { run: run.clone() })
}

/// Opens a new run on the trigger of one that ended without an answer, under the active version. The consumer takes it
/// as soon as it sees it.
///
/// # Errors
/// [`Error::State`] for a run that is open or completed; [`Error::Answered`] when another run on the trigger is;
/// [`Error`].
pub async fn retry(reader: &Reader, runs: &ConsumerRuns, run: &RunId) -> Result<RunId, Error> {
    let row = find("retry", reader, runs, run).await?;
    if !matches!(row.state, RunState::Failed | RunState::Blocked | RunState::Abandoned) {
        return Err(Error::State { operation: "retry", run: run.clone(), state: row.state.shown() });
    }
    let active = reader
        .declaration(row.declaration.clone())
        .await?
        .ok_or_else(|| Error::NotInstalled { run: run.clone() })?;
    let filter = RunFilter {
        declaration: Some(row.declaration.clone()),
        trigger: Some(row.trigger.clone()),
        limit: RUNS_PER_TRIGGER_MAX,
        ..RunFilter::default()
    };
    let siblings = reader.runs(filter).await?;
    let answered = siblings.iter().find(|other| other.state.is_open() || other.state == RunState::Completed);
    if let Some(other) = answered {
        return Err(Error::Answered {
            run: run.clone(),
            other: other.id.clone(),
            state: other.state.shown(),
        });
    }
    let ordinal = siblings.iter().map(|other| other.retry).max().unwrap_or(row.retry).saturating_add(1);
    let id = run_id(&row.declaration, active.version, &row.trigger, ordinal);
    let sequence = row.sequence;
    let new = NewRun {
        id: id.clone(),
        declaration: row.declaration,
        version: active.version,
        trigger: row.trigger,
        source: row.source,
        sequence,
        conversation: row.conversation,
        retry: ordinal,
    };
    match runs.admit(Admission { run: new, scanned: sequence }).await {
        Ok(()) => {}
        // Two retries at the same time are one.
        Err(StoreError::Precondition(Precondition::RunAbsent)) => {}
        Err(error) => return Err(error.into()),
    }
    tracing::info!(run = %run, retry = %id, "run opened again by the operator");
    Ok(id)
}
