//! Events, sources and ids.

use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use thought_contract::event::{Actor, Envelope, EventType, SourceName, StoredEvent};
use thought_protocol::{EventId, Sha256Hex};
use thought_store::StoreError;
use thought_store::row::{EventFilter, SourceRow};

use crate::fields::Fields;
use crate::session::Session;

/// The columns of an event, in the order in which [`decode`] reads them.
const SELECT: &str =
    "SELECT events.id, events.type, sources.name, events.sequence, events.position, events.actor,
        events.root_id, events.parent_id, events.correlation_id, events.external_id, events.occurred_ms,
        events.recorded_ms, events.payload_sha256, events.previous_sha256, events.chain_sha256, events.payload
    FROM events JOIN sources ON sources.id = events.source";

fn decode(row: &Row<'_>) -> Result<StoredEvent, StoreError> {
    let mut fields = Fields::of("events", row);
    let id = fields.parse()?;
    let event_type: EventType = fields.parse()?;
    let envelope = Envelope {
        id,
        event_type,
        source: SourceName::new(fields.get::<String>()?),
        sequence: fields.get()?,
        position: fields.get()?,
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
    Ok(StoredEvent { envelope, chain_sha256: fields.parse()?, payload: fields.content()? })
}

pub(crate) fn event(s: Session<'_>, id: &EventId) -> Result<Option<StoredEvent>, StoreError> {
    s.first(&format!("{SELECT} WHERE events.id = ?1"), [id.as_str()], decode)
}

/// The events at these positions, as far as there are any.
pub(super) fn at(s: Session<'_>, positions: &[u64]) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = format!("{SELECT} WHERE events.position IN ({})", super::placeholders(1, super::BATCH));
    let mut events = Vec::with_capacity(positions.len());
    for batch in positions.chunks(super::BATCH) {
        events.extend(s.all(&sql, super::batch(batch.iter().copied().map(integer)), decode)?);
    }
    Ok(events)
}

/// The events between two positions, neither included.
pub(super) fn between(
    s: Session<'_>,
    from: u64,
    to: u64,
    limit: usize,
) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = format!(
        "{SELECT} WHERE events.position > ?1 AND events.position < ?2 ORDER BY events.position LIMIT ?3"
    );
    s.all(&sql, params![from, to, limit as u64], decode)
}

pub(crate) fn source_events(
    s: Session<'_>,
    source: &SourceName,
    after: u64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    // Most looks find nothing new, which the head tells without a look at the log.
    if self::source(s, source)?.head <= after {
        return Ok(Vec::new());
    }
    let sql = format!(
        "{SELECT} WHERE events.source = (SELECT id FROM sources WHERE name = ?1) AND events.sequence > ?2
         ORDER BY events.sequence LIMIT ?3"
    );
    s.all(&sql, params![source.as_str(), after, limit], decode)
}

pub(crate) fn children(s: Session<'_>, parent: &EventId, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = format!(
        "{SELECT} WHERE events.parent_position = (SELECT position FROM events WHERE id = ?1)
         ORDER BY events.position LIMIT ?2"
    );
    s.all(&sql, params![parent.as_str(), limit], decode)
}

/// The turns of a conversation below an ordinal, newest first, each with its ordinal.
pub(super) fn turns(
    s: Session<'_>,
    source: &SourceName,
    conversation: &str,
    before_ordinal: u64,
    limit: u32,
) -> Result<Vec<(u64, StoredEvent)>, StoreError> {
    let select = SELECT.replacen("events.payload\n", "events.payload, events.conversation_ordinal\n", 1);
    let sql = format!(
        "{select} WHERE events.source = (SELECT id FROM sources WHERE name = ?1) AND events.conversation = ?2
           AND events.conversation_ordinal < ?3 AND events.conversation_ordinal IS NOT NULL
         ORDER BY events.conversation_ordinal DESC LIMIT ?4"
    );
    s.all(&sql, params![source.as_str(), conversation, before_ordinal, limit], |row| {
        let event = decode(row)?;
        let ordinal = match row.get("conversation_ordinal") {
            Ok(ordinal) => ordinal,
            Err(_content_dark) => return Err(Fields::of("events", row).corrupt()),
        };
        Ok((ordinal, event))
    })
}

/// Events by filter, oldest first. Every filter walks an index from the asked position on: by root, by source, or by
/// each of the types, whose walks are merged.
pub(crate) fn events(s: Session<'_>, filter: &EventFilter) -> Result<Vec<StoredEvent>, StoreError> {
    let types: Vec<Value> =
        filter.types.iter().map(|event_type| Value::Text(event_type.as_str().to_owned())).collect();
    let mut values = vec![integer(filter.after_position), Value::Integer(i64::from(filter.limit))];
    let mut conditions = vec!["events.position > ?1".to_owned()];
    if filter.root.is_none() && filter.source.is_none() {
        if types.is_empty() {
            let sql = format!("{SELECT} WHERE {} ORDER BY events.position LIMIT ?2", conditions[0]);
            return s.all(&sql, params_from_iter(values), decode);
        }
        return match tail(s, filter.after_position)? {
            Tail::Short => {
                let list = super::placeholders(values.len() + 1, types.len());
                let sql = format!(
                    "{SELECT} WHERE {} AND +events.type IN ({list}) ORDER BY events.position LIMIT ?2",
                    conditions[0]
                );
                values.extend(types);
                s.all(&sql, params_from_iter(values), decode)
            }
            Tail::Long => by_type(s, values, types),
        };
    }
    if !types.is_empty() {
        let list = super::placeholders(values.len() + 1, types.len());
        // The unary plus keeps the walk on the index of the root or source.
        conditions.push(format!("+events.type IN ({list})"));
        values.extend(types);
    }
    let mut order = "events.position";
    if let Some(root) = &filter.root {
        values.push(Value::Text(root.as_str().to_owned()));
        let number = values.len();
        conditions.push(format!("events.root_position = (SELECT position FROM events WHERE id = ?{number})"));
    }
    if let Some(source) = &filter.source {
        values.push(Value::Text(source.as_str().to_owned()));
        let plus = if filter.root.is_some() { "+" } else { "" };
        let number = values.len();
        conditions.push(format!("{plus}events.source = (SELECT id FROM sources WHERE name = ?{number})"));
        if filter.root.is_none() {
            values.push(integer(sequence_behind(s, source, filter.after_position)?));
            conditions[0] = format!("?1 IS NOT NULL AND events.sequence > ?{}", values.len());
            order = "events.sequence";
        }
    }
    let sql = format!("{SELECT} WHERE {} ORDER BY {order} LIMIT ?2", conditions.join(" AND "));
    s.all(&sql, params_from_iter(values), decode)
}

/// How much of the log lies behind a position.
enum Tail {
    /// So little that looking at each event is less than looking for each type.
    Short,
    Long,
}

/// Events that are looked at one by one.
const TAIL_EVENTS_MAX: u64 = 32;

fn tail(s: Session<'_>, position: u64) -> Result<Tail, StoreError> {
    // Positions have no gaps, so the last is the count, which the heads of the sources tell.
    let last = count(s)?;
    Ok(if last.saturating_sub(position) <= TAIL_EVENTS_MAX { Tail::Short } else { Tail::Long })
}

fn by_type(
    s: Session<'_>,
    mut values: Vec<Value>,
    types: Vec<Value>,
) -> Result<Vec<StoredEvent>, StoreError> {
    let walks: Vec<String> = (values.len() + 1..=values.len() + types.len())
        .map(|number| {
            format!(
                "SELECT * FROM (SELECT position FROM events WHERE type = ?{number} AND position > ?1
                 ORDER BY position LIMIT ?2)"
            )
        })
        .collect();
    values.extend(types);
    let walks = walks.join(" UNION ALL ");
    let sql = format!(
        "{SELECT} WHERE events.position IN (SELECT position FROM ({walks}) ORDER BY position LIMIT ?2)
         ORDER BY events.position"
    );
    s.all(&sql, params_from_iter(values), decode)
}

/// The highest sequence of a source whose position is not above the given one. Both rise together, so it is found by
/// halving.
fn sequence_behind(s: Session<'_>, source: &SourceName, position: u64) -> Result<u64, StoreError> {
    if position == 0 {
        return Ok(0);
    }
    let (mut low, mut high) = (0, self::source(s, source)?.head);
    let sql = "SELECT position FROM events
        WHERE source = (SELECT id FROM sources WHERE name = ?1) AND sequence = ?2";
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let found =
            s.first(sql, params![source.as_str(), middle], |row| Fields::of("events", row).get::<u64>())?;
        match found {
            Some(found) if found <= position => low = middle,
            Some(_) => high = middle - 1,
            None => {
                return Err(StoreError::Corrupt { what: format!("a row of sources ({source})") });
            }
        }
    }
    Ok(low)
}

/// No position or sequence reaches beyond SQLite's integers; a higher bound stands for the highest.
fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Every table with stable ids, and how its ids begin. Attempts and snapshots are found by their run; their own ids are
/// in no index, so these two are walked, and only for a prefix that is theirs.
const IDENTIFIED: [(&str, &str); 6] = [
    ("events", "evt_"),
    ("runs", "run_"),
    ("attempts", "att_"),
    ("snapshots", "snap_"),
    ("documents", "doc_"),
    ("versions", "ver_"),
];

pub(crate) fn ids_with_prefix(s: Session<'_>, prefix: &str, limit: u32) -> Result<Vec<String>, StoreError> {
    let mut ids = Vec::new();
    for (table, beginning) in IDENTIFIED {
        if !(prefix.starts_with(beginning) || beginning.starts_with(prefix)) {
            continue;
        }
        let left = limit as usize - ids.len();
        if left == 0 {
            break;
        }
        // `{` follows `z`, the highest character of an id.
        let sql = format!("SELECT id FROM {table} WHERE id >= ?1 AND id < ?1 || '{{' ORDER BY id LIMIT ?2");
        ids.extend(s.all(&sql, params![prefix, left as u64], |row| Fields::of(table, row).get::<String>())?);
    }
    Ok(ids)
}

/// Sequences are gapless, so the heads add up to all events.
pub(crate) fn count(s: Session<'_>) -> Result<u64, StoreError> {
    let sum =
        s.first("SELECT sum(head) FROM sources", [], |row| Fields::of("sources", row).get::<Option<u64>>())?;
    Ok(sum.flatten().unwrap_or(0))
}

pub(crate) fn count_of(s: Session<'_>, event_type: EventType, at_most: u64) -> Result<u64, StoreError> {
    let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
    let sql = "SELECT count(*) FROM (SELECT 1 FROM events WHERE type = ?1 LIMIT ?2)";
    let count =
        s.first(sql, params![event_type.as_str(), at_most], |row| Fields::of("events", row).get::<u64>())?;
    Ok(count.unwrap_or(0))
}

fn decode_source(row: &Row<'_>) -> Result<SourceRow, StoreError> {
    let mut fields = Fields::of("sources", row);
    Ok(SourceRow {
        source: SourceName::new(fields.get::<String>()?),
        head: fields.get()?,
        head_sha256: fields.parse()?,
    })
}

pub(crate) fn sources(s: Session<'_>) -> Result<Vec<SourceRow>, StoreError> {
    s.all("SELECT name, head, head_sha256 FROM sources WHERE head > 0 ORDER BY name", [], decode_source)
}

pub(crate) fn source(s: Session<'_>, name: &SourceName) -> Result<SourceRow, StoreError> {
    let sql = "SELECT name, head, head_sha256 FROM sources WHERE name = ?1";
    let found = s.first(sql, [name.as_str()], decode_source)?;
    Ok(found.unwrap_or_else(|| SourceRow { source: name.clone(), head: 0, head_sha256: Sha256Hex::zero() }))
}

/// Where a turn stands.
pub(super) struct Place {
    pub(super) source: SourceName,
    pub(super) conversation: String,
    pub(super) ordinal: u64,
}

pub(super) fn place(s: Session<'_>, event: &EventId) -> Result<Option<Place>, StoreError> {
    let sql = "SELECT events.id, sources.name, events.conversation, events.conversation_ordinal
        FROM events JOIN sources ON sources.id = events.source
        WHERE events.id = ?1 AND events.conversation_ordinal IS NOT NULL";
    s.first(sql, [event.as_str()], |row| {
        let mut fields = Fields::of("events", row);
        let _: EventId = fields.parse()?;
        let source = SourceName::new(fields.get::<String>()?);
        Ok(Place { source, conversation: fields.get()?, ordinal: fields.get()? })
    })
}

pub(crate) fn turn_ordinal(s: Session<'_>, event: &EventId) -> Result<Option<(String, u64)>, StoreError> {
    Ok(place(s, event)?.map(|place| (place.conversation, place.ordinal)))
}

pub(crate) fn turn_ids(
    s: Session<'_>,
    source: &SourceName,
    conversation: &str,
    (from, to): (u64, u64),
    limit: u32,
) -> Result<Vec<EventId>, StoreError> {
    let to = i64::try_from(to).unwrap_or(i64::MAX);
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let sql = "SELECT id FROM events
        WHERE source = (SELECT id FROM sources WHERE name = ?1) AND conversation = ?2
          AND conversation_ordinal IS NOT NULL AND conversation_ordinal >= ?3 AND conversation_ordinal < ?4
        ORDER BY conversation_ordinal DESC LIMIT ?5";
    s.all(sql, params![source.as_str(), conversation, from, to, limit], |row| {
        Fields::of("events", row).parse()
    })
}
