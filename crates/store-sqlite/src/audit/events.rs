//! The log: sequences, chains, hashes, lineage, and each event drafted again.

use std::collections::HashMap;

use rusqlite::Row;
use thought_contract::draft::{self, Draft, Identity};
use thought_contract::event::{Actor, Envelope, EventType, SourceName, StoredEvent};
use thought_protocol::limits::EVENT_PAYLOAD_BYTES_MAX;
use thought_protocol::{EventId, Sha256Hex};
use thought_store::StoreError;
use thought_store::audit::Audit;
use thought_store::row::SourceRow;

use super::walk as walk_rows;
use crate::fields::Fields;
use crate::read;
use crate::session::Session;

const SQL: &str = "SELECT events.position, events.id, events.type, sources.name, events.sequence, events.actor,
        events.root_id, events.parent_id, events.correlation_id, events.external_id, events.occurred_ms,
        events.recorded_ms, events.payload_sha256, events.previous_sha256, events.chain_sha256, events.payload,
        events.equality_sha256, events.conversation, events.conversation_ordinal
    FROM events LEFT JOIN sources ON sources.id = events.source
    WHERE events.position > ?1 ORDER BY events.position LIMIT ?2";

/// An event with what its row keeps beside it.
struct Placed {
    event: StoredEvent,
    equality: Sha256Hex,
    conversation: Option<String>,
    ordinal: Option<u64>,
}

fn decode(row: &Row<'_>) -> Result<Placed, StoreError> {
    let mut fields = Fields::of("events", row);
    let position = fields.get()?;
    let id = fields.parse()?;
    let event_type: EventType = fields.parse()?;
    let envelope = Envelope {
        id,
        event_type,
        source: SourceName::new(fields.get::<String>()?),
        sequence: fields.get()?,
        position,
        actor: Actor::new(fields.get::<String>()?),
        root_id: fields.parse()?,
        parent_id: fields.parse_optional()?,
        privacy: event_type.privacy(),
        correlation_id: fields.get()?,
        external_id: fields.get()?,
        occurred_at: fields.time()?,
        recorded_at: fields.time()?,
        payload_sha256: fields.parse()?,
        previous_sha256: fields.parse()?,
    };
    let event = StoredEvent { envelope, chain_sha256: fields.parse()?, payload: fields.content()? };
    Ok(Placed { event, equality: fields.parse()?, conversation: fields.get()?, ordinal: fields.get()? })
}

/// Where the walk stands.
#[derive(Default)]
struct Walked {
    position: u64,
    heads: HashMap<SourceName, (u64, Sha256Hex)>,
    turns: HashMap<(SourceName, String), u64>,
}

/// Looks at every event, in the order of the log.
pub(super) fn walk(s: Session<'_>, audit: &mut Audit) -> Result<(), StoreError> {
    let mut walked = Walked::default();
    // A payload that nobody could have appended is not even read: a few such would fill the memory.
    let bounded =
        format!("CASE WHEN length(events.payload) <= {EVENT_PAYLOAD_BYTES_MAX} THEN events.payload END,");
    walk_rows(s, &SQL.replace("events.payload,", &bounded), decode, |position, placed| {
        audit.events += 1;
        let before = std::mem::replace(&mut walked.position, u64::try_from(position).unwrap_or(0));
        audit.check(walked.position == before + 1, "events", position.to_string(), "position");
        match placed {
            Ok(placed) => event(s, audit, &mut walked, &placed),
            Err(_content_dark) => {
                audit.found("events", position.to_string(), "unreadable");
                Ok(())
            }
        }
    })?;
    audit.sources = walked
        .heads
        .into_iter()
        .map(|(source, (head, head_sha256))| SourceRow { source, head, head_sha256 })
        .collect();
    audit.sources.sort_by(|a, b| a.source.as_str().cmp(b.source.as_str()));
    Ok(())
}

fn event(s: Session<'_>, audit: &mut Audit, walked: &mut Walked, placed: &Placed) -> Result<(), StoreError> {
    let stored = &placed.event;
    let envelope = &stored.envelope;
    let mut fault = |fault| audit.found("events", envelope.id.as_str(), fault);

    let head = walked.heads.entry(envelope.source.clone()).or_insert_with(|| (0, Sha256Hex::zero()));
    if envelope.sequence != head.0 + 1 {
        fault("sequence");
    }
    if envelope.previous_sha256 != head.1 {
        fault("previous-hash");
    }
    *head = (envelope.sequence, stored.chain_sha256.clone());
    if Sha256Hex::of(stored.payload.expose()) != envelope.payload_sha256 {
        fault("payload-hash");
    }
    if envelope.chain_sha256().ok().as_ref() != Some(&stored.chain_sha256) {
        fault("chain-hash");
    }
    if let Some(broken) = lineage(s, envelope)? {
        fault(broken);
    }
    match drafted(s, stored)? {
        Ok((draft, identity)) => {
            if let Some(member) = draft::difference(stored, &draft, identity) {
                fault(member);
            }
            if identity == Identity::Known && *draft.equality_sha256() != placed.equality {
                fault("equality");
            }
            if let Some(broken) = turn(walked, placed, &draft) {
                fault(broken);
            }
        }
        Err(broken) => fault(broken),
    }
    Ok(())
}

/// Root and parent are there, and came before.
fn lineage(s: Session<'_>, envelope: &Envelope) -> Result<Option<&'static str>, StoreError> {
    let comes_before = |id: &EventId| -> Result<bool, StoreError> {
        let sql = "SELECT position FROM events WHERE id = ?1";
        let found = s.first(sql, [id.as_str()], |row| Fields::of("events", row).get::<u64>())?;
        Ok(found.is_some_and(|position| position < envelope.position))
    };
    if envelope.root_id != envelope.id && !comes_before(&envelope.root_id)? {
        return Ok(Some("root-missing"));
    }
    match &envelope.parent_id {
        Some(parent) if !comes_before(parent)? => Ok(Some("parent-missing")),
        _ => Ok(None),
    }
}

/// The event as its constructor makes it, or what keeps it from being made.
fn drafted(
    s: Session<'_>,
    stored: &StoredEvent,
) -> Result<Result<(Draft, Identity), &'static str>, StoreError> {
    let Ok(cause) = draft::drafted_from(stored) else { return Ok(Err("payload-unreadable")) };
    let cause = match cause {
        // A cause that does not decode is a finding of its own.
        Some(cause) if is_bounded(s, &cause)? => read::event::event(s, &cause).unwrap_or(None),
        Some(_) => None,
        None => None,
    };
    Ok(draft::again(stored, cause.as_ref()).map_err(|error| match error {
        draft::AgainError::CauseMissing => "cause-missing",
        draft::AgainError::Voice => "voice",
        draft::AgainError::Payload(_) | draft::AgainError::Draft(_) => "payload-unreadable",
    }))
}

/// Whether an event is there, and its payload of a size that can be read.
fn is_bounded(s: Session<'_>, id: &EventId) -> Result<bool, StoreError> {
    let sql = format!("SELECT length(payload) <= {EVENT_PAYLOAD_BYTES_MAX} FROM events WHERE id = ?1");
    Ok(s.first(&sql, [id.as_str()], |row| Fields::of("events", row).get::<bool>())?.unwrap_or(false))
}

/// A turn has the next ordinal of its conversation; nothing else has one.
fn turn(walked: &mut Walked, placed: &Placed, draft: &Draft) -> Option<&'static str> {
    let envelope = &placed.event.envelope;
    let expected = draft.conversation().filter(|_| envelope.event_type.is_turn());
    if placed.conversation.as_deref() != expected {
        return Some("conversation");
    }
    let expected = expected.map(|conversation| {
        let last = walked.turns.entry((envelope.source.clone(), conversation.to_owned())).or_insert(0);
        *last += 1;
        *last
    });
    (placed.ordinal != expected).then_some("turn-ordinal")
}
