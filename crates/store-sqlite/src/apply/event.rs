//! Appends events: identity, equality, sequence, position and the hash chain.

use rusqlite::{named_params, params};
use thought_contract::draft::Draft;
use thought_contract::event::{Envelope, EventType, SourceName, StoredEvent};
use thought_contract::payload::JudgmentRecorded;
use thought_contract::time::Timestamp;
use thought_protocol::limits::EVENT_PAYLOAD_BYTES_MAX;
use thought_protocol::{EventId, Sha256Hex};
use thought_store::StoreError;
use thought_store::row::{Appended, Novelty};

use crate::failure;
use crate::fields::Fields;
use crate::session::Session;

/// Where a source stands.
struct Head {
    key: i64,
    sequence: u64,
    sha256: Sha256Hex,
}

/// Appends an event, or finds the equal one that is there.
pub(super) fn append(s: Session<'_>, at: Timestamp, draft: &Draft) -> Result<Appended, StoreError> {
    if let Some(found) = existing(s, draft)? {
        return Ok(found);
    }
    if draft.payload().expose().len() > EVENT_PAYLOAD_BYTES_MAX {
        return Err(failure::engine("append an event", "its payload is longer than any may be"));
    }
    let head = head(s, draft.source())?;
    let event = seal(s, at, draft, &head)?;
    let (conversation, ordinal) = turn(s, draft, head.key)?.unzip();
    insert(s, draft, &event, head.key, (conversation, ordinal))?;
    s.write(
        "UPDATE sources SET head = ?2, head_sha256 = ?3 WHERE id = ?1",
        params![head.key, event.envelope.sequence, event.chain_sha256.as_str()],
    )?;
    if draft.event_type() == EventType::JudgmentRecorded {
        index_judgment(s, &event)?;
    }
    Ok(Appended {
        id: event.envelope.id,
        sequence: event.envelope.sequence,
        position: event.envelope.position,
        novelty: Novelty::New,
    })
}

fn existing(s: Session<'_>, draft: &Draft) -> Result<Option<Appended>, StoreError> {
    let sql = "SELECT id, position, sequence, type, equality_sha256 FROM events WHERE id = ?1";
    let found = s.first(sql, [draft.id().as_str()], |row| {
        let mut fields = Fields::of("events", row);
        let found = Appended {
            id: fields.parse()?,
            position: fields.get()?,
            sequence: fields.get()?,
            novelty: Novelty::Existing,
        };
        Ok((found, fields.parse::<EventType>()?, fields.parse::<Sha256Hex>()?))
    })?;
    match found {
        Some((_, event_type, equality)) if equality != *draft.equality_sha256() => {
            Err(StoreError::Conflict { id: draft.id().clone(), event_type })
        }
        found => Ok(found.map(|(appended, ..)| appended)),
    }
}

/// The key of a source; a source is there once it is named.
pub(super) fn source_key(s: Session<'_>, source: &SourceName) -> Result<i64, StoreError> {
    Ok(head(s, source)?.key)
}

/// Where an event stands, if it is there.
pub(super) fn position(s: Session<'_>, id: &EventId) -> Result<Option<u64>, StoreError> {
    s.first("SELECT position FROM events WHERE id = ?1", [id.as_str()], |row| Fields::of("events", row).get())
}

fn head(s: Session<'_>, source: &SourceName) -> Result<Head, StoreError> {
    let sql = "SELECT id, head, head_sha256 FROM sources WHERE name = ?1";
    let found = s.first(sql, [source.as_str()], |row| {
        let mut fields = Fields::of("sources", row);
        Ok(Head { key: fields.get()?, sequence: fields.get()?, sha256: fields.parse()? })
    })?;
    if let Some(head) = found {
        return Ok(head);
    }
    let sha256 = Sha256Hex::zero();
    s.write(
        "INSERT INTO sources (name, head, head_sha256) VALUES (?1, 0, ?2)",
        params![source.as_str(), sha256.as_str()],
    )?;
    Ok(Head { key: s.inserted(), sequence: 0, sha256 })
}

/// Gives a draft its place: behind everything in the store, and next in its source.
fn seal(s: Session<'_>, at: Timestamp, draft: &Draft, head: &Head) -> Result<StoredEvent, StoreError> {
    let last = s.first("SELECT max(position) FROM events", [], |row| {
        Fields::of("events", row).get::<Option<u64>>()
    })?;
    let envelope = Envelope {
        id: draft.id().clone(),
        event_type: draft.event_type(),
        source: draft.source().clone(),
        sequence: head.sequence + 1,
        position: last.flatten().unwrap_or(0) + 1,
        actor: draft.actor().clone(),
        root_id: draft.root_id().clone(),
        parent_id: draft.parent().cloned(),
        privacy: draft.event_type().privacy(),
        correlation_id: draft.correlation_id().map(str::to_owned),
        external_id: draft.external_id().map(str::to_owned),
        occurred_at: draft.occurred_at(),
        recorded_at: at,
        payload_sha256: Sha256Hex::of(draft.payload().expose()),
        previous_sha256: head.sha256.clone(),
    };
    let chain_sha256 = envelope
        .chain_sha256()
        .map_err(|error| StoreError::Engine { operation: "append an event", what: error.to_string() })?;
    Ok(StoredEvent { envelope, chain_sha256, payload: draft.payload().clone() })
}

/// The next ordinal of a turn's conversation.
fn turn(s: Session<'_>, draft: &Draft, source: i64) -> Result<Option<(String, u64)>, StoreError> {
    let Some(conversation) = draft.conversation().filter(|_| draft.event_type().is_turn()) else {
        return Ok(None);
    };
    s.write(
        "INSERT INTO conversations (source, name, last_ordinal) VALUES (?1, ?2, 1)
         ON CONFLICT (source, name) DO UPDATE SET last_ordinal = last_ordinal + 1",
        params![source, conversation],
    )?;
    let sql = "SELECT last_ordinal FROM conversations WHERE source = ?1 AND name = ?2";
    let ordinal =
        s.first(sql, params![source, conversation], |row| Fields::of("conversations", row).get::<u64>())?;
    Ok(ordinal.map(|ordinal| (conversation.to_owned(), ordinal)))
}

fn insert(
    s: Session<'_>,
    draft: &Draft,
    event: &StoredEvent,
    source: i64,
    (conversation, ordinal): (Option<String>, Option<u64>),
) -> Result<(), StoreError> {
    let envelope = &event.envelope;
    let root_position = match envelope.root_id == envelope.id {
        true => Some(envelope.position),
        false => position(s, &envelope.root_id)?,
    };
    let parent_position = match &envelope.parent_id {
        Some(parent) if *parent == envelope.root_id => root_position,
        Some(parent) => position(s, parent)?,
        None => None,
    };
    s.write(
        "INSERT INTO events (position, id, type, source, sequence, actor, root_id, parent_id, correlation_id,
            external_id, occurred_ms, recorded_ms, payload_sha256, previous_sha256, chain_sha256, equality_sha256,
            conversation, conversation_ordinal, payload, root_position, parent_position)
         VALUES (:position, :id, :type, :source, :sequence, :actor, :root, :parent, :correlation,
            :external, :occurred, :recorded, :payload_sha256, :previous_sha256, :chain_sha256, :equality_sha256,
            :conversation, :ordinal, :payload, :root_position, :parent_position)",
        named_params! {
            ":position": envelope.position,
            ":id": envelope.id.as_str(),
            ":type": envelope.event_type.as_str(),
            ":source": source,
            ":sequence": envelope.sequence,
            ":actor": envelope.actor.as_str(),
            ":root": envelope.root_id.as_str(),
            ":parent": envelope.parent_id.as_ref().map(|id| id.as_str()),
            ":correlation": envelope.correlation_id,
            ":external": envelope.external_id,
            ":occurred": envelope.occurred_at.ms(),
            ":recorded": envelope.recorded_at.ms(),
            ":payload_sha256": envelope.payload_sha256.as_str(),
            ":previous_sha256": envelope.previous_sha256.as_str(),
            ":chain_sha256": event.chain_sha256.as_str(),
            ":equality_sha256": draft.equality_sha256().as_str(),
            ":conversation": conversation,
            ":ordinal": ordinal,
            ":payload": event.payload.expose(),
            ":root_position": root_position,
            ":parent_position": parent_position,
        },
    )?;
    Ok(())
}

fn index_judgment(s: Session<'_>, event: &StoredEvent) -> Result<(), StoreError> {
    let judgment: JudgmentRecorded = event
        .payload()
        .map_err(|error| StoreError::Engine { operation: "append an event", what: error.to_string() })?;
    s.write(
        "INSERT INTO judgments (position, event, output, supersedes) VALUES (?1, ?2, ?3, ?4)",
        params![
            event.envelope.position,
            event.envelope.id.as_str(),
            judgment.target.output.as_str(),
            judgment.supersedes.as_ref().map(|id| id.as_str()),
        ],
    )?;
    Ok(())
}
