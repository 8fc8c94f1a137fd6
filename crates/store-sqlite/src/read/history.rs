//! The history of a conversation: its turns with all the evidence that a reconstruction needs, from one state of the
//! store, at a cost that grows with the number of turns alone.

use std::collections::HashMap;

use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::RunCompleted;
use thought_contract::run::RunState;
use thought_protocol::EventId;
use thought_protocol::limits::CALLS_MAX;
use thought_store::StoreError;
use thought_store::row::{HistoryQuery, HistoryRun, HistoryTurn, ReplyState};

use super::channel::Reply;
use super::run::Placed;
use super::{BATCH, channel, event, run};
use crate::fields::Fields;
use crate::session::Session;

/// The newest turns below an ordinal, oldest first.
pub(crate) fn history(s: Session<'_>, query: &HistoryQuery) -> Result<Vec<HistoryTurn>, StoreError> {
    let before = query.before_ordinal.min(i64::MAX.unsigned_abs());
    let messages = event::turns(s, &query.source, &query.conversation, before, query.limit)?;
    let Some((oldest, _)) = messages.last() else { return Ok(Vec::new()) };
    let mut runs = run::on_turns(s, &query.source, &query.conversation, *oldest, before)?;
    runs.retain(|placed| query.agents.contains(&placed.run.declaration));
    let mut evidence = Found::of(s, &runs)?;
    let mut runs_of: HashMap<EventId, Vec<HistoryRun>> = HashMap::with_capacity(messages.len());
    for placed in runs {
        let trigger = placed.run.trigger.clone();
        runs_of.entry(trigger).or_default().push(evidence.run(s, placed)?);
    }
    let turns = messages.into_iter().rev().map(|(ordinal, message)| {
        let runs = runs_of.remove(&message.envelope.id).unwrap_or_default();
        HistoryTurn { ordinal, message, runs }
    });
    Ok(turns.collect())
}

/// What completed runs left, read ahead in a handful of walks instead of one question for each of hundreds of rows.
/// Positions are hints: what does not stand where it should is asked for by its id.
struct Found {
    /// Each is taken once.
    events: HashMap<EventId, StoredEvent>,
    /// The ids of receipts, by where they stand.
    receipts: HashMap<u64, EventId>,
    /// The deliveries of outputs whose run knows of no receipt.
    replies: HashMap<u64, Reply>,
    judgments: HashMap<EventId, EventId>,
}

impl Found {
    fn of(s: Session<'_>, runs: &[Placed]) -> Result<Self, StoreError> {
        let completed = || runs.iter().filter(|placed| placed.run.state == RunState::Completed);
        let undelivered: Vec<u64> = completed()
            .filter(|placed| placed.reply_position.is_none())
            .filter_map(|placed| placed.output_position)
            .collect();
        let replies = channel::replies(s, &undelivered)?;
        let mut positions: Vec<u64> = completed().filter_map(|placed| placed.output_position).collect();
        positions.extend(completed().filter_map(|placed| placed.reply_position));
        positions.extend(completed().filter_map(|placed| placed.terminal_position));
        positions.extend(replies.values().filter_map(|reply| reply.receipt_position));
        let events = event::at(s, &positions)?;
        let receipts = events.iter().filter(|event| event.envelope.event_type == EventType::DeliveryTelegram);
        let receipts = receipts.map(|event| (event.envelope.position, event.envelope.id.clone())).collect();
        let outputs: Vec<&EventId> = completed().filter_map(|placed| placed.run.output.as_ref()).collect();
        Ok(Self {
            events: events.into_iter().map(|event| (event.envelope.id.clone(), event)).collect(),
            receipts,
            replies,
            judgments: active_judgments(s, &outputs)?,
        })
    }

    fn run(&mut self, s: Session<'_>, placed: Placed) -> Result<HistoryRun, StoreError> {
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
        let completed = placed.run.terminal.as_ref().map(|id| self.take(s, id)).transpose()?;
        let proposals = match &completed {
            Some(completed) => proposals(s, &placed, completed)?,
            None => Vec::new(),
        };
        let reply = self.reply(s, &placed, &output)?;
        let receipt = match &reply {
            ReplyState::Receipt(id) => Some(self.take(s, id)?),
            ReplyState::Sending | ReplyState::NotDelivered => None,
        };
        let judgment = self.judgments.get(&output).map(|id| required(s, id)).transpose()?;
        let output = Some(self.take(s, &output)?);
        Ok(HistoryRun { run: placed.run, output, completed, proposals, reply, receipt, judgment })
    }

    fn reply(&mut self, s: Session<'_>, placed: &Placed, output: &EventId) -> Result<ReplyState, StoreError> {
        if let Some(position) = placed.reply_position {
            let receipt = self.receipts.get(&position).and_then(|id| self.events.get(id));
            return match receipt.filter(|event| event.envelope.parent_id.as_ref() == Some(output)) {
                Some(receipt) => Ok(ReplyState::Receipt(receipt.envelope.id.clone())),
                None => channel::reply_state(s, output),
            };
        }
        match placed.output_position.and_then(|position| self.replies.remove(&position)) {
            Some(reply) => Ok(reply.state),
            None => channel::reply_without_delivery(s, placed, output),
        }
    }

    fn take(&mut self, s: Session<'_>, id: &EventId) -> Result<StoredEvent, StoreError> {
        match self.events.remove(id) {
            Some(event) => Ok(event),
            None => required(s, id),
        }
    }
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
            None => required(s, &proposal.event),
        })
        .collect()
}

/// The active judgment of each output that has one.
fn active_judgments(s: Session<'_>, outputs: &[&EventId]) -> Result<HashMap<EventId, EventId>, StoreError> {
    let sql = format!(
        "SELECT output, event FROM judgments WHERE output IN ({})
           AND NOT EXISTS (SELECT 1 FROM judgments AS later WHERE later.supersedes = judgments.event)
         ORDER BY position",
        super::placeholders(1, BATCH)
    );
    let mut active = HashMap::new();
    for batch in outputs.chunks(BATCH) {
        let found = s.all(&sql, super::batch(batch.iter().map(|id| id.to_string())), |row| {
            let mut fields = Fields::of("judgments", row);
            Ok((fields.parse()?, fields.parse()?))
        })?;
        // The newest comes last and stays.
        active.extend(found);
    }
    Ok(active)
}

/// The newest judgment on an output that no other supersedes.
pub(crate) fn active_judgment(s: Session<'_>, output: &EventId) -> Result<Option<EventId>, StoreError> {
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
        let active = || {
            let session = Session::new(&connection, &totals);
            let one = active_judgment(session, &output).unwrap();
            let of_many = active_judgments(session, &[&EventId::of("none", &[]), &output]).unwrap();
            assert_eq!(of_many.get(&output), one.as_ref());
            one
        };
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
