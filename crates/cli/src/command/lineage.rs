//! `lineage`: everything under one root, as a tree, with the event that was asked for marked.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use thought_contract::event::StoredEvent;
use thought_protocol::EventId;
use thought_store::handle::Reader;
use thought_store::row::EventFilter;

use super::events::event_json;
use super::resolve::{resolve, short};
use crate::exit::Failure;
use crate::print::{Content, Printer};

/// Most events of a tree that is shown.
const LINEAGE_EVENTS_MAX: u32 = 1_000;

/// `lineage`.
///
/// # Errors
/// [`Failure`]: no such event (5).
pub async fn show(reader: &Reader, printer: Printer, id: &str) -> Result<(), Failure> {
    let id: EventId = resolve(reader, id, "evt", "event").await?;
    let event = reader.event(id.clone()).await?.ok_or_else(|| Failure::not_found("event", id.as_str()))?;
    let root = event.envelope.root_id.clone();
    let filter =
        EventFilter { root: Some(root.clone()), limit: LINEAGE_EVENTS_MAX, ..EventFilter::default() };
    let events = reader.events(filter).await?;
    let mut children: BTreeMap<Option<EventId>, Vec<&StoredEvent>> = BTreeMap::new();
    for event in &events {
        let is_root = event.envelope.id == root;
        // A parent under another root cannot be a branch here: such an event hangs from the root.
        let parent = event.envelope.parent_id.clone().filter(|_| !is_root);
        let known = parent.filter(|parent| events.iter().any(|other| other.envelope.id == *parent));
        let at = if is_root { None } else { Some(known.unwrap_or_else(|| root.clone())) };
        children.entry(at).or_default().push(event);
    }
    let tree = children.get(&None).into_iter().flatten().map(|event| branch(event, &children));
    let value = json!({"event": id, "root": root, "tree": tree.collect::<Vec<_>>()});
    printer.either(&value, || {
        let mut lines = Vec::new();
        for event in children.get(&None).into_iter().flatten() {
            draw(event, &children, &id, (String::new(), ""), printer, &mut lines);
        }
        lines
    })
}

fn branch(event: &StoredEvent, children: &BTreeMap<Option<EventId>, Vec<&StoredEvent>>) -> Value {
    let mut value = event_json(event, Content::Dark);
    let below = children.get(&Some(event.envelope.id.clone()));
    let below: Vec<Value> = below.into_iter().flatten().map(|child| branch(child, children)).collect();
    value["children"] = Value::Array(below);
    value
}

fn draw(
    event: &StoredEvent,
    children: &BTreeMap<Option<EventId>, Vec<&StoredEvent>>,
    asked: &EventId,
    (indent, turn): (String, &str),
    printer: Printer,
    lines: &mut Vec<String>,
) {
    let e = &event.envelope;
    let name = &e.event_type.as_str()["stream.thought.".len()..];
    let mark = if e.id == *asked { printer.bold("  ← this one") } else { String::new() };
    let by = printer.dim(&format!("{}, {}", e.actor, e.recorded_at));
    lines.push(format!("{indent}{turn}{}  {name}  {by}{mark}", short(e.id.as_str())));
    let below = children.get(&Some(e.id.clone()));
    let below: Vec<&&StoredEvent> = below.into_iter().flatten().collect();
    let indent = match turn {
        "" => indent,
        "└─ " => format!("{indent}   "),
        _ => format!("{indent}│  "),
    };
    for (index, child) in below.iter().enumerate() {
        let turn = if index + 1 == below.len() { "└─ " } else { "├─ " };
        draw(child, children, asked, (indent.clone(), turn), printer, lines);
    }
}
