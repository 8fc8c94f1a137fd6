//! `event-list` and `event-show`.

use serde_json::{Value, json};
use thought_contract::declaration::nearest_name;
use thought_contract::event::{EventType, Privacy, SourceName, StoredEvent};
use thought_contract::review::visible;
use thought_store::handle::Reader;
use thought_store::row::EventFilter;

use super::resolve::{resolve, short};
use crate::exit::{Exit, Failure};
use crate::print::{Consent, Content, Printer};

/// Rows of a printed page.
pub const PAGE_PRINTED: u32 = 50;
/// Rows asked of the store at a time.
const PAGE_READ: u32 = 500;

/// What `event-list` was asked for.
#[derive(Debug)]
pub struct ListOptions {
    /// Of this type.
    pub event_type: Option<String>,
    /// Of this source.
    pub source: Option<String>,
    /// Above this position.
    pub after: u64,
    /// At most this many.
    pub limit: Option<u32>,
    /// Whether content is printed.
    pub content: Content,
}

/// `event-list`.
///
/// # Errors
/// [`Failure`]: an unknown type (2), a store that cannot be read.
pub async fn list(reader: &Reader, printer: Printer, options: ListOptions) -> Result<(), Failure> {
    let types = match &options.event_type {
        Some(text) => vec![event_type(text)?],
        None => vec![],
    };
    let limit = options.limit.unwrap_or(if printer.is_json() { u32::MAX } else { PAGE_PRINTED });
    let mut filter = EventFilter {
        types,
        source: options.source.map(SourceName::new),
        root: None,
        after_position: options.after,
        limit: limit.min(PAGE_READ),
    };
    let mut left = limit;
    let mut rows = Vec::new();
    loop {
        let page = reader.events(filter.clone()).await?;
        for event in &page {
            if printer.is_json() {
                printer.object(&event_json(event, options.content))?;
            } else {
                rows.push(event_row(event));
            }
        }
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        let Some(last) = page.last() else { break };
        filter.after_position = last.envelope.position;
        if left == 0 || page.len() < filter.limit as usize {
            break;
        }
        filter.limit = left.min(PAGE_READ);
    }
    if !printer.is_json() {
        printer.table(&["position", "event", "type", "source", "recorded"], &rows)?;
        let last = filter.after_position;
        if left == 0 {
            let total = reader.event_count().await?;
            printer.remark(&format!("{} of {total}; go on with --after {last}", rows.len()));
        }
    }
    Ok(())
}

/// An event type by its full name, or the part behind `stream.thought.`.
fn event_type(text: &str) -> Result<EventType, Failure> {
    let full = format!("stream.thought.{text}");
    if let Ok(found) = text.parse::<EventType>().or_else(|_error| full.parse()) {
        return Ok(found);
    }
    let known: Vec<&str> = EventType::ALL.iter().map(|t| &t.as_str()["stream.thought.".len()..]).collect();
    let failure = Failure::new(Exit::Usage, "unknown-type", "there is no event type of this name".to_owned());
    let short = text.trim_start_matches("stream.thought.");
    Err(match nearest_name(short, &known) {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure.hint(format!("one of: {}", known.join(" "))),
    })
}

fn event_row(event: &StoredEvent) -> Vec<String> {
    let envelope = &event.envelope;
    vec![
        envelope.position.to_string(),
        short(envelope.id.as_str()),
        envelope.event_type.as_str()["stream.thought.".len()..].to_owned(),
        envelope.source.to_string(),
        envelope.recorded_at.to_string(),
    ]
}

/// An event as `--json` shows it.
pub fn event_json(event: &StoredEvent, content: Content) -> Value {
    let e = &event.envelope;
    let mut value = json!({
        "id": e.id, "type": e.event_type, "source": e.source, "sequence": e.sequence, "position": e.position,
        "rootId": e.root_id, "actor": e.actor, "privacy": e.privacy, "recordedAt": e.recorded_at,
        "occurredAt": e.occurred_at, "payloadSha256": e.payload_sha256, "previousSha256": e.previous_sha256,
        "chainSha256": event.chain_sha256,
    });
    if let Some(parent) = &e.parent_id {
        value["parentId"] = json!(parent);
    }
    if let Some(correlation) = &e.correlation_id {
        value["correlationId"] = json!(correlation);
    }
    if let Some(external) = &e.external_id {
        value["externalId"] = json!(external);
    }
    if content == Content::Shown {
        value["payload"] = serde_json::from_slice(event.payload.expose()).unwrap_or(Value::Null);
    }
    value
}

/// `event-show`.
///
/// # Errors
/// [`Failure`]: no such event (5).
pub async fn show(reader: &Reader, printer: Printer, id: &str, consent: Consent) -> Result<(), Failure> {
    let id: thought_protocol::EventId = resolve(reader, id, "evt", "event").await?;
    let event = reader.event(id.clone()).await?.ok_or_else(|| Failure::not_found("event", id.as_str()))?;
    let content = match event.envelope.privacy {
        Privacy::Sensitive => printer.content(consent, "the payload"),
        // What is not sensitive holds no content; it is still printed with the acknowledgment alone.
        _ if consent == Consent::Given => Content::Shown,
        _ => Content::Dark,
    };
    let value = event_json(&event, content);
    printer.either(&value, || {
        let e = &event.envelope;
        let mut lines = vec![
            format!("event       {}", printer.bold(e.id.as_str())),
            format!("type        {}", e.event_type),
            format!("source      {} #{}, position {}", e.source, e.sequence, e.position),
            format!("actor       {}", e.actor),
            format!("root        {}", e.root_id),
        ];
        lines.extend(e.parent_id.iter().map(|parent| format!("parent      {parent}")));
        lines.extend(e.correlation_id.iter().map(|text| format!("correlation {text}")));
        lines.extend(e.external_id.iter().map(|text| format!("external    {text}")));
        lines.push(format!("occurred    {}", e.occurred_at));
        lines.push(format!("recorded    {}", e.recorded_at));
        let bytes = event.payload.expose().len();
        lines.push(format!("payload     {bytes} bytes, sha256 {}", e.payload_sha256));
        lines.push(format!("chain       {}", event.chain_sha256));
        if content == Content::Shown {
            let pretty = serde_json::from_slice::<Value>(event.payload.expose())
                .and_then(|value| serde_json::to_string_pretty(&value));
            lines.extend(pretty.map(|text| visible(&text)).ok());
        } else if e.privacy == Privacy::Sensitive {
            lines.push(printer.dim("the payload is private; --acknowledge-sensitive-private prints it"));
        }
        lines
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_may_be_written_short_and_a_wrong_one_gets_a_hint() {
        assert_eq!(event_type("run.completed@1").unwrap(), EventType::RunCompleted);
        assert_eq!(event_type("stream.thought.incident@1").unwrap(), EventType::Incident);
        let failure = event_type("run.complete@1").unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean run.completed@1?"));
        assert_eq!(failure.exit, Exit::Usage);
    }
}
