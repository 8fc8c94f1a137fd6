//! The history of a conversation: its turns with all the evidence that a reconstruction needs, from one state of the
//! store, at a cost that grows with the number of turns alone.

use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::RunCompleted;
use thought_contract::run::RunState;
use thought_protocol::EventId;
use thought_protocol::limits::CALLS_MAX;
use thought_store::StoreError;
use thought_store::row::{HistoryQuery, HistoryRun, HistoryTurn, ReplyState};

use super::run::Placed;
use super::{channel, event, run};
use crate::fields::Fields;
use crate::session::Session;

/// The newest turns below an ordinal, oldest first.
pub(crate) fn history(s: Session<'_>, query: &HistoryQuery) -> Result<Vec<HistoryTurn>, StoreError> {
    let before = query.before_ordinal.min(i64::MAX.unsigned_abs());
    let mut turns = event::turns(s, &query.source, &query.conversation, before, query.limit)?
        .into_iter()
        .map(|(ordinal, message)| {
            let runs = run::on_trigger(s, &message.envelope)?
                .into_iter()
                .filter(|placed| query.agents.contains(&placed.run.declaration))
                .map(|placed| evidence(s, placed))
                .collect::<Result<_, _>>()?;
            Ok(HistoryTurn { ordinal, message, runs })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    turns.reverse();
    Ok(turns)
}

fn evidence(s: Session<'_>, placed: Placed) -> Result<HistoryRun, StoreError> {
    let (Some(output), RunState::Completed) = (placed.run.output.clone(), placed.run.state) else {
        return Ok(HistoryRun {
            run: placed.run,
            output: None,
            completed: None,
            proposals: Vec::new(),
            reply: ReplyState::NotDelivered,
            receipt: None,
            judgment: None,
        });
    };
    let terminal = placed.run.terminal.as_ref();
    let completed = terminal.map(|id| required(s, id, placed.terminal_position)).transpose()?;
    let proposals = match &completed {
        Some(completed) => proposals(s, &placed, completed)?,
        None => Vec::new(),
    };
    let reply = channel::reply(s, &placed, &output)?;
    let receipt = match &reply.state {
        ReplyState::Receipt(id) => Some(required(s, id, reply.receipt_position)?),
        ReplyState::Sending | ReplyState::NotDelivered => None,
    };
    let judgment = active_judgment(s, &output)?.map(|id| required(s, &id, None)).transpose()?;
    let output = Some(required(s, &output, placed.output_position)?);
    Ok(HistoryRun { run: placed.run, output, completed, proposals, reply: reply.state, receipt, judgment })
}

/// The proposals of a run. A settlement appends them between its output and its completed event, so they are looked for
/// there first.
fn proposals(
    s: Session<'_>,
    placed: &Placed,
    completed: &StoredEvent,
) -> Result<Vec<StoredEvent>, StoreError> {
    if completed.envelope.event_type != EventType::RunCompleted {
        return Err(missing(&completed.envelope.id));
    }
    let payload: RunCompleted = match completed.payload() {
        Ok(payload) => payload,
        Err(_content_dark) => return Err(missing(&completed.envelope.id)),
    };
    let near = match (placed.output_position, placed.terminal_position) {
        (Some(from), Some(to)) if !payload.proposals.is_empty() => event::between(s, from, to, CALLS_MAX)?,
        _ => Vec::new(),
    };
    payload
        .proposals
        .iter()
        .map(|proposal| match near.iter().find(|event| event.envelope.id == proposal.event) {
            Some(event) => Ok(event.clone()),
            None => required(s, &proposal.event, None),
        })
        .collect()
}

/// The newest judgment on an output that no other supersedes.
pub(crate) fn active_judgment(s: Session<'_>, output: &EventId) -> Result<Option<EventId>, StoreError> {
    let sql = "SELECT event FROM judgments WHERE output = ?1
           AND NOT EXISTS (SELECT 1 FROM judgments AS later WHERE later.supersedes = judgments.event)
         ORDER BY position DESC LIMIT 1";
    s.first(sql, [output.as_str()], |row| Fields::of("judgments", row).parse())
}

/// An event that another row names, and that must therefore be there.
fn required(s: Session<'_>, id: &EventId, position: Option<u64>) -> Result<StoredEvent, StoreError> {
    event::event_at(s, id, position)?.ok_or_else(|| missing(id))
}

fn missing(id: &EventId) -> StoreError {
    StoreError::Corrupt { what: format!("a row of events ({id})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Totals;
    use crate::schema;
    use rusqlite::{Connection, params};
    use serde_json::json;

    fn id(name: &str) -> EventId {
        EventId::of("judgment", &[json!(name)])
    }

    #[test]
    fn the_newest_judgment_that_no_other_supersedes_is_active() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let totals = Totals::default();
        let output = EventId::of("output", &[]);
        let insert = |position: i64, name: &str, of: &EventId, supersedes: Option<EventId>| {
            connection
                .execute(
                    "INSERT INTO judgments (position, event, output, supersedes) VALUES (?1, ?2, ?3, ?4)",
                    params![position, id(name).as_str(), of.as_str(), supersedes.map(|id| id.to_string())],
                )
                .unwrap();
        };
        let active = || active_judgment(Session::new(&connection, &totals), &output).unwrap();
        assert_eq!(active(), None);
        insert(1, "other", &EventId::of("another output", &[]), None);
        insert(2, "first", &output, None);
        assert_eq!(active(), Some(id("first")));
        insert(3, "second", &output, Some(id("first")));
        assert_eq!(active(), Some(id("second")));
        // A judgment that is superseded is not active, however late it came.
        insert(5, "late", &output, None);
        insert(4, "over the late one", &output, Some(id("late")));
        assert_eq!(active(), Some(id("over the late one")));
    }
}
