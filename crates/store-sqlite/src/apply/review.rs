//! Keeps the intents of writes, and guards the one active judgment of an output.

use rusqlite::params;
use thought_contract::time::Timestamp;
use thought_protocol::EventId;
use thought_store::command::NewIntent;
use thought_store::row::CorrectionOutcome;
use thought_store::{Precondition, StoreError};

use super::require;
use crate::read::history::active_judgment;
use crate::session::Session;

pub(super) fn put_intent(s: Session<'_>, at: Timestamp, new: &NewIntent) -> Result<(), StoreError> {
    s.write(
        "INSERT INTO intents (decision, proposal, expected_sha256, temporary, made_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (decision) DO UPDATE SET proposal = excluded.proposal,
            expected_sha256 = excluded.expected_sha256, temporary = excluded.temporary, made_ms = excluded.made_ms",
        params![
            new.decision.as_str(),
            new.proposal.as_str(),
            new.expected_sha256.as_str(),
            new.temporary,
            at.ms(),
        ],
    )?;
    Ok(())
}

pub(super) fn clear_intent(s: Session<'_>, decision: &EventId) -> Result<(), StoreError> {
    s.write("DELETE FROM intents WHERE decision = ?1", [decision.as_str()])?;
    Ok(())
}

pub(super) fn expect_judgment(
    s: Session<'_>,
    output: &EventId,
    active: Option<&EventId>,
) -> Result<(), StoreError> {
    require(active_judgment(s, output)?.as_ref() == active, Precondition::ActiveJudgment)
}

pub(super) fn settle_correction(
    s: Session<'_>,
    command: &EventId,
    outcome: &CorrectionOutcome,
) -> Result<(), StoreError> {
    let (judgment, reason) = match outcome {
        CorrectionOutcome::Judged(judgment) => (Some(judgment.as_str()), None),
        CorrectionOutcome::Refused(reason) => (None, Some(reason.as_str())),
    };
    s.write(
        "INSERT INTO corrections (command, judgment, reason) VALUES (?1, ?2, ?3) ON CONFLICT (command) DO NOTHING",
        params![command.as_str(), judgment, reason],
    )?;
    Ok(())
}
