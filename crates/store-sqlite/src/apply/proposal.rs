//! Keeps the index of proposals: what enters it, and where each stands.

use rusqlite::params;
use thought_protocol::EventId;
use thought_store::command::NewProposal;
use thought_store::row::ProposalState;
use thought_store::{Precondition, StoreError};

use super::require;
use crate::failure;
use crate::fields::Fields;
use crate::session::Session;

/// Puts a proposal into the index, behind its event. One that is in it already stays as it stands.
pub(super) fn track(s: Session<'_>, new: &NewProposal) -> Result<(), StoreError> {
    let sql = "SELECT position, recorded_ms FROM events WHERE id = ?1";
    let event = s.first(sql, [new.proposal.as_str()], |row| {
        let mut fields = Fields::of("events", row);
        Ok((fields.get::<i64>()?, fields.get::<i64>()?))
    })?;
    let (position, recorded_ms) =
        event.ok_or_else(|| failure::engine("index a proposal", "its event is not there"))?;
    let state = ProposalState::first(new.kind);
    let rows = s.write(
        "INSERT INTO proposals (position, event, kind, run, document, base_version, state, proposed_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (position) DO NOTHING",
        params![
            position,
            new.proposal.as_str(),
            new.kind.as_str(),
            new.run.as_ref().map(|id| id.as_str()),
            new.base.as_ref().map(|base| base.document.as_str()),
            new.base.as_ref().map(|base| base.version.as_str()),
            state.as_str(),
            recorded_ms,
        ],
    )?;
    if rows == 0 { Ok(()) } else { count(s, state, 1) }
}

/// Moves a proposal, if it stands where it is expected.
pub(super) fn step(
    s: Session<'_>,
    proposal: &EventId,
    from: ProposalState,
    to: ProposalState,
) -> Result<(), StoreError> {
    let rows = s.write(
        "UPDATE proposals SET state = ?3 WHERE event = ?1 AND state = ?2",
        params![proposal.as_str(), from.as_str(), to.as_str()],
    )?;
    require(rows == 1, Precondition::ProposalState)?;
    count(s, from, -1)?;
    count(s, to, 1)
}

fn count(s: Session<'_>, state: ProposalState, change: i64) -> Result<(), StoreError> {
    s.write(
        "INSERT INTO proposal_counts (state, proposals) VALUES (?1, ?2)
         ON CONFLICT (state) DO UPDATE SET proposals = proposals + excluded.proposals",
        params![state.as_str(), change],
    )?;
    Ok(())
}
