//! Runs and attempts: admission, snapshot, attempts, endings, and how far a consumer has come.

use rusqlite::params;
use thought_contract::event::SourceName;
use thought_contract::run::{AttemptState, HeldReason, RunState};
use thought_contract::time::Timestamp;
use thought_protocol::{EventId, RunId};
use thought_store::command::{AttemptEnd, NewAttempt, NewRun, NewSnapshot};
use thought_store::{Precondition, StoreError};

use super::event::{position, source_key};
use super::require;
use crate::failure;
use crate::fields::Fields;
use crate::session::Session;

/// What the writer must know of a run.
struct Standing {
    ordinal: i64,
    state: RunState,
    attempts: u32,
    declaration: String,
    source: i64,
    snapshot: Option<String>,
}

fn standing(s: Session<'_>, run: &RunId) -> Result<Option<Standing>, StoreError> {
    let sql = "SELECT id, ordinal, state, attempts, declaration, source, snapshot_id FROM runs WHERE id = ?1";
    s.first(sql, [run.as_str()], |row| {
        let mut fields = Fields::of("runs", row);
        let _: RunId = fields.parse()?;
        Ok(Standing {
            ordinal: fields.get()?,
            state: fields.word(RunState::from_code)?,
            attempts: fields.get()?,
            declaration: fields.get()?,
            source: fields.get()?,
            snapshot: fields.get()?,
        })
    })
}

fn open_standing(s: Session<'_>, run: &RunId) -> Result<Standing, StoreError> {
    standing(s, run)?
        .filter(|standing| standing.state.is_open())
        .ok_or(StoreError::Precondition(Precondition::RunState))
}

pub(super) fn admit(s: Session<'_>, at: Timestamp, new: &NewRun) -> Result<(), StoreError> {
    require(standing(s, &new.id)?.is_none(), Precondition::RunAbsent)?;
    let source = source_key(s, &new.source)?;
    s.write(
        "INSERT INTO runs (id, declaration, version, trigger_id, source, sequence, conversation, retry, state,
            attempts, admitted_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10)",
        params![
            new.id.as_str(),
            new.declaration,
            new.version,
            new.trigger.as_str(),
            source,
            new.sequence,
            new.conversation,
            new.retry,
            RunState::Admitted.as_str(),
            at.ms(),
        ],
    )?;
    count(s, RunState::Admitted, 1)
}

pub(super) fn set_scanned(
    s: Session<'_>,
    declaration: &str,
    source: &SourceName,
    sequence: u64,
) -> Result<(), StoreError> {
    let source = source_key(s, source)?;
    let rows = s.write(
        "UPDATE consumers SET scanned = max(scanned, ?3) WHERE declaration = ?1 AND source = ?2",
        params![declaration, source, sequence],
    )?;
    require(rows == 1, Precondition::ConsumerInstalled)?;
    settle_progress(s, declaration, source)
}

/// Progress is all that is settled without a gap: up to the lowest open run above it, else up to `scanned`. It never
/// goes down; a retry on an old trigger lies below it and does not count.
fn settle_progress(s: Session<'_>, declaration: &str, source: i64) -> Result<(), StoreError> {
    s.write(
        "UPDATE consumers SET progress = max(progress, coalesce(
            (SELECT min(runs.sequence) - 1 FROM runs
             WHERE runs.declaration = ?1 AND runs.source = ?2 AND runs.ended_ms IS NULL
               AND runs.sequence > consumers.progress),
            scanned))
         WHERE declaration = ?1 AND source = ?2",
        params![declaration, source],
    )?;
    Ok(())
}

pub(super) fn put_snapshot(s: Session<'_>, run: &RunId, new: &NewSnapshot) -> Result<(), StoreError> {
    let standing = open_standing(s, run)?;
    if standing.snapshot.is_some() {
        let sql = "SELECT id, sha256 FROM snapshots WHERE run_ordinal = ?1";
        let kept = s.first(sql, [standing.ordinal], |row| {
            let mut fields = Fields::of("snapshots", row);
            Ok((fields.get::<String>()?, fields.get::<String>()?))
        })?;
        let same = kept.is_some_and(|(id, sha256)| id == new.id.as_str() && sha256 == new.sha256.as_str());
        return require(same, Precondition::Snapshot);
    }
    s.write(
        "INSERT INTO snapshots (run_ordinal, id, run, sha256, packet_sha256, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            standing.ordinal,
            new.id.as_str(),
            run.as_str(),
            new.sha256.as_str(),
            new.packet_sha256.as_str(),
            new.bytes.expose(),
        ],
    )?;
    s.write("UPDATE runs SET snapshot_id = ?2 WHERE id = ?1", params![run.as_str(), new.id.as_str()])?;
    Ok(())
}

pub(super) fn start_attempt(
    s: Session<'_>,
    at: Timestamp,
    run: &RunId,
    attempt: &NewAttempt,
) -> Result<(), StoreError> {
    let standing = open_standing(s, run)?;
    require(standing.snapshot.is_some(), Precondition::Snapshot)?;
    let sql = "SELECT 1 FROM attempts WHERE run_ordinal = ?1 AND state = 'started'";
    let on = s.first(sql, [standing.ordinal], |row| Fields::of("attempts", row).get::<i64>())?;
    require(on.is_none() && attempt.ordinal == standing.attempts + 1, Precondition::AttemptOrdinal)?;
    let sql = "SELECT requests FROM usage WHERE day = ?1 AND declaration = ?2";
    let counted = s.first(sql, params![attempt.day, standing.declaration], |row| {
        Fields::of("usage", row).get::<u64>()
    })?;
    require(counted.unwrap_or(0) < attempt.requests_per_day_max, Precondition::DailyBudget)?;
    s.write(
        "INSERT INTO attempts (run_ordinal, id, run, ordinal, state, sandbox, day, started_ms)
         VALUES (?1, ?2, ?3, ?4, 'started', ?5, ?6, ?7)",
        params![
            standing.ordinal,
            attempt.id.as_str(),
            run.as_str(),
            attempt.ordinal,
            attempt.sandbox,
            attempt.day,
            at.ms(),
        ],
    )?;
    s.write(
        "INSERT INTO usage (day, declaration, requests, input_tokens, output_tokens) VALUES (?1, ?2, 1, 0, 0)
         ON CONFLICT (day, declaration) DO UPDATE SET requests = requests + 1",
        params![attempt.day, standing.declaration],
    )?;
    s.write(
        "UPDATE runs SET attempts = ?2, reason = NULL WHERE id = ?1",
        params![run.as_str(), attempt.ordinal],
    )?;
    move_state(s, run, standing.state, RunState::Running)
}

pub(super) fn end_attempt(s: Session<'_>, at: Timestamp, end: &AttemptEnd) -> Result<(), StoreError> {
    if end.state == AttemptState::Started {
        return Err(failure::engine("end an attempt", "started is no ending"));
    }
    // Its tokens are counted while it is among those that are open: afterwards no index knows its id.
    count_tokens(s, end)?;
    let rows = s.write(
        "UPDATE attempts SET state = ?2, reason = ?3, ended_ms = ?4, input_tokens = ?5, output_tokens = ?6
         WHERE id = ?1 AND state = 'started'",
        params![
            end.attempt.as_str(),
            end.state.as_str(),
            end.reason,
            at.ms(),
            end.input_tokens,
            end.output_tokens,
        ],
    )?;
    require(rows == 1, Precondition::AttemptStarted)
}

fn count_tokens(s: Session<'_>, end: &AttemptEnd) -> Result<(), StoreError> {
    if end.input_tokens.is_none() && end.output_tokens.is_none() {
        return Ok(());
    }
    s.write(
        "UPDATE usage SET input_tokens = input_tokens + ?2, output_tokens = output_tokens + ?3
         WHERE (day, declaration) = (SELECT attempts.day, runs.declaration FROM attempts
            JOIN runs ON runs.ordinal = attempts.run_ordinal WHERE attempts.id = ?1 AND attempts.state = 'started')",
        params![end.attempt.as_str(), end.input_tokens.unwrap_or(0), end.output_tokens.unwrap_or(0)],
    )?;
    Ok(())
}

pub(super) fn hold(s: Session<'_>, run: &RunId, reason: HeldReason) -> Result<(), StoreError> {
    let standing = open_standing(s, run)?;
    let waits = standing.state != RunState::Running && standing.attempts == 0;
    require(waits, Precondition::RunState)?;
    s.write("UPDATE runs SET reason = ?2 WHERE id = ?1", params![run.as_str(), reason.as_str()])?;
    move_state(s, run, standing.state, RunState::Held)
}

/// How a run ends.
pub(super) struct Ending<'a> {
    pub(super) run: &'a RunId,
    pub(super) state: RunState,
    pub(super) reason: &'a Option<String>,
    pub(super) output: &'a Option<EventId>,
    pub(super) terminal: &'a EventId,
}

pub(super) fn end(s: Session<'_>, at: Timestamp, ending: &Ending<'_>) -> Result<(), StoreError> {
    if ending.state.is_open() {
        return Err(failure::engine("end a run", "an open state is no ending"));
    }
    let standing = open_standing(s, ending.run)?;
    let output_position = ending.output.as_ref().map(|output| position(s, output)).transpose()?.flatten();
    s.write(
        "UPDATE runs SET reason = ?2, output_id = ?3, output_position = ?4, terminal_id = ?5, terminal_position = ?6,
            ended_ms = ?7
         WHERE id = ?1",
        params![
            ending.run.as_str(),
            ending.reason,
            ending.output.as_ref().map(|id| id.as_str()),
            output_position,
            ending.terminal.as_str(),
            position(s, ending.terminal)?,
            at.ms(),
        ],
    )?;
    move_state(s, ending.run, standing.state, ending.state)?;
    settle_progress(s, &standing.declaration, standing.source)
}

fn move_state(s: Session<'_>, run: &RunId, from: RunState, to: RunState) -> Result<(), StoreError> {
    if from == to {
        return Ok(());
    }
    s.write("UPDATE runs SET state = ?2 WHERE id = ?1", params![run.as_str(), to.as_str()])?;
    count(s, from, -1)?;
    count(s, to, 1)
}

fn count(s: Session<'_>, state: RunState, change: i64) -> Result<(), StoreError> {
    s.write(
        "INSERT INTO run_counts (state, runs) VALUES (?1, ?2)
         ON CONFLICT (state) DO UPDATE SET runs = runs + excluded.runs",
        params![state.as_str(), change],
    )?;
    Ok(())
}
