//! The history of a conversation: its turns with all the evidence that a reconstruction needs, from one state of the
//! store, at a cost that grows with the number of turns alone.

use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::RunCompleted;
use thought_contract::run::RunState;
use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::row::{HistoryQuery, HistoryRun, HistoryTurn, ReplyState, RunRow};

use super::{channel, event, run};
use crate::fields::Fields;
use crate::session::Session;

/// The newest turns below an ordinal, oldest first.
pub(crate) fn history(s: Session<'_>, query: &HistoryQuery) -> Result<Vec<HistoryTurn>, StoreError> {
    let before = query.before_ordinal.min(i64::MAX.unsigned_abs());
    let mut turns = event::turns(s, &query.source, &query.conversation, before, query.limit)?
        .into_iter()
        .map(|(ordinal, message)| {
            let runs = run::on_trigger(s, &message.envelope.id)?
                .into_iter()
                .filter(|run| query.agents.contains(&run.declaration))
                .map(|run| evidence(s, run))
                .collect::<Result<_, _>>()?;
            Ok(HistoryTurn { ordinal, message, runs })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    turns.reverse();
    Ok(turns)
}

fn evidence(s: Session<'_>, run: RunRow) -> Result<HistoryRun, StoreError> {
    let (Some(output), RunState::Completed) = (run.output.clone(), run.state) else {
        return Ok(HistoryRun {
            run,
            output: None,
            completed: None,
            proposals: Vec::new(),
            reply: ReplyState::NotDelivered,
            receipt: None,
            judgment: None,
        });
    };
    let completed = run.terminal.as_ref().map(|id| required(s, id)).transpose()?;
    let proposals = match &completed {
        Some(completed) => proposals(s, completed)?,
        None => Vec::new(),
    };
    let reply = channel::reply_state(s, &output)?;
    let receipt = match &reply {
        ReplyState::Receipt(id) => Some(required(s, id)?),
        ReplyState::Sending | ReplyState::NotDelivered => None,
    };
    let judgment = active_judgment(s, &output)?.map(|id| required(s, &id)).transpose()?;
    let output = Some(required(s, &output)?);
    Ok(HistoryRun { run, output, completed, proposals, reply, receipt, judgment })
}

fn proposals(s: Session<'_>, completed: &StoredEvent) -> Result<Vec<StoredEvent>, StoreError> {
    if completed.envelope.event_type != EventType::RunCompleted {
        return Err(missing(&completed.envelope.id));
    }
    let payload: RunCompleted = match completed.payload() {
        Ok(payload) => payload,
        Err(_content_dark) => return Err(missing(&completed.envelope.id)),
    };
    payload.proposals.iter().map(|proposal| required(s, &proposal.event)).collect()
}

/// The newest judgment on an output that no other supersedes.
fn active_judgment(s: Session<'_>, output: &EventId) -> Result<Option<EventId>, StoreError> {
    let sql = "SELECT event FROM judgments WHERE output = ?1
           AND NOT EXISTS (SELECT 1 FROM judgments AS later WHERE later.supersedes = judgments.event)
         ORDER BY position DESC LIMIT 1";
    s.first(sql, [output.as_str()], |row| Fields::of("judgments", row).parse())
}

/// An event that another row names, and that must therefore be there.
fn required(s: Session<'_>, id: &EventId) -> Result<StoredEvent, StoreError> {
    event::event(s, id)?.ok_or_else(|| missing(id))
}

fn missing(id: &EventId) -> StoreError {
    StoreError::Corrupt { what: format!("a row of events ({id})") }
}
