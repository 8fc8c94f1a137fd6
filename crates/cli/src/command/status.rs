//! `status`: how things stand, as one object or one page.

use serde_json::{Value, json};
use thought_authority::lock::{self, LockState, OwnEvidence};
use thought_authority::root::ContextRoot;
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload::DeliveryKind;
use thought_contract::run::RunState;
use thought_store::handle::Reader;
use thought_store::row::{DeliveryState, EventFilter, ProposalState, RunFilter};
use thought_telegram::admit::line_to_allow;
use thought_telegram::ids::ChatId;

use super::declaration::differences;
use super::delivery::status_of;
use super::resolve::short;
use crate::claim;
use crate::compose::SystemClock;
use crate::exit::Failure;
use crate::home::Home;
use crate::print::Printer;
use crate::word::{LOCK_HINT, token};

/// The file in which `serve` tells the code of the channel's present problem.
pub const CHANNEL_PROBLEM: &str = "run/channel.problem";
/// Days of usage that are shown.
const USAGE_DAYS: u32 = 7;
/// Unfinished deliveries and held runs that are shown.
const ROWS_SHOWN: u32 = 100;
/// Incidents counted at most.
const INCIDENTS_COUNTED: u64 = 10_000;

/// `status`.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub async fn show(home: &Home, reader: &Reader, printer: Printer) -> Result<(), Failure> {
    let value = gather(home, reader).await?;
    let differing = differences(home, reader).await?;
    printer.either(&value, || page(home, &value))?;
    for remark in differing {
        printer.remark(&remark);
    }
    Ok(())
}

async fn gather(home: &Home, reader: &Reader) -> Result<Value, Failure> {
    let sources = reader.sources().await?;
    let heads: Vec<Value> = sources
        .iter()
        .map(|row| json!({"source": row.source, "head": row.head, "headSha256": row.head_sha256}))
        .collect();
    let head_of =
        |name: &SourceName| sources.iter().find(|row| row.source == *name).map_or(0, |row| row.head);
    let held_filter = RunFilter { states: vec![RunState::Held], limit: ROWS_SHOWN, ..RunFilter::default() };
    let held = reader.runs(held_filter).await?;
    let mut consumers = Vec::new();
    for row in reader.consumers().await? {
        let waiting: Vec<Value> = held
            .iter()
            .filter(|run| run.declaration == row.declaration && run.source == row.source)
            .map(|run| json!({"run": run.id, "reason": run.reason, "since": run.admitted_at}))
            .collect();
        consumers.push(json!({
            "agent": row.declaration, "version": row.version, "source": row.source, "progress": row.progress,
            "scanned": row.scanned, "lag": head_of(&row.source).saturating_sub(row.progress), "held": waiting,
        }));
    }
    let mut runs = serde_json::Map::new();
    for (state, count) in reader.run_counts().await? {
        let before = runs.get(state.shown()).and_then(Value::as_u64).unwrap_or(0);
        runs.insert(state.shown().to_owned(), json!(before + count));
    }
    let channel = channel_source(home);
    let counts = reader.spool_counts(channel.clone()).await?;
    let refused = reader.refused_chats(channel.clone()).await?;
    let refused: Vec<Value> = refused.iter().map(|row| json!({"id": row.chat, "kind": row.kind})).collect();
    let deliveries = deliveries(home, reader, &channel).await?;
    let waiting = reader.proposal_counts().await?;
    let oldest = waiting.oldest_undecided_at.map(|at| super::proposals::age_seconds(&SystemClock, at));
    let proposals = json!({"undecided": waiting.of(ProposalState::Undecided), "oldestAgeSeconds": oldest});
    let usage = reader.usage(USAGE_DAYS).await?;
    let usage: Vec<Value> = usage
        .iter()
        .map(|row| {
            json!({
                "day": row.day, "agent": row.declaration, "requests": row.requests,
                "inputTokens": row.input_tokens, "outputTokens": row.output_tokens,
            })
        })
        .collect();
    Ok(json!({
        "home": home.path,
        "sources": heads,
        "consumers": consumers,
        "runs": runs,
        "deliveries": deliveries,
        "proposals": proposals,
        "updates": {"pending": counts.pending, "parked": counts.parked, "dropped": counts.dropped},
        "refusedChats": refused,
        "usage": usage,
        "incidents": reader.event_count_of(EventType::Incident, INCIDENTS_COUNTED).await?,
        "channel": channel_json(home),
        "context": context_json(home),
    }))
}

/// Reason of a delivery that a command died over; no dispatcher has it.
const INTERRUPTED: &str = "interrupted";

/// What is not delivered: the ids by state, and of each since when and why.
async fn deliveries(home: &Home, reader: &Reader, channel: &SourceName) -> Result<Value, Failure> {
    let states = [DeliveryState::Refused, DeliveryState::Uncertain, DeliveryState::Sending];
    let mut named = json!({});
    let mut waiting = Vec::new();
    for state in states {
        // Each state by itself, so that many of one do not hide another.
        let rows = reader.unfinished_deliveries(channel.clone(), vec![state], ROWS_SHOWN).await?;
        named[status_of(state)] = rows.iter().map(|row| json!(row.cause)).collect();
        waiting.extend(rows.iter().map(|row| {
            let is_left = state == DeliveryState::Sending && claim::is_left(home, &row.cause);
            let reason = if is_left { Some(INTERRUPTED) } else { row.reason.as_deref() };
            json!({
                "delivery": row.cause, "kind": row.kind, "state": status_of(state), "reason": reason,
                "since": row.opened_at, "chunksSent": row.chunks.iter().filter(|c| c.message.is_some()).count(),
                "chunks": row.chunks.len(),
            })
        }));
    }
    let filter = EventFilter {
        types: vec![EventType::MessageObservation],
        after_position: reader.cursor(format!("dispatcher:{channel}")).await?,
        limit: ROWS_SHOWN,
        ..EventFilter::default()
    };
    for event in reader.events(filter).await? {
        let id = event.envelope.id;
        if reader.delivery(id.clone(), DeliveryKind::Reply).await?.is_none() {
            let since = event.envelope.recorded_at;
            waiting.push(json!({
                "delivery": id, "kind": DeliveryKind::Reply, "state": "waiting", "reason": "not-begun", "since": since,
            }));
        }
    }
    named["waiting"] = Value::Array(waiting);
    Ok(named)
}

/// What to write into the configuration, so that a refused chat is heard: the chat, or where it is admitted already, the
/// person.
pub fn admit_hint(home: &Home, chat: i64) -> String {
    let telegram = home.config.telegram.as_ref();
    let allowed = telegram.map(|telegram| telegram.allowed_chats.iter().copied().map(ChatId).collect());
    let allowed: Vec<ChatId> = allowed.unwrap_or_default();
    if allowed.contains(&ChatId(chat)) {
        "the chat is admitted, the person is not: add their number to allowed_users".to_owned()
    } else {
        format!("to admit it: {}", line_to_allow(&allowed, ChatId(chat)))
    }
}

/// The configured channel's source.
pub fn channel_source(home: &Home) -> SourceName {
    let name = home.config.telegram.as_ref().map_or("telegram:stream", |telegram| &telegram.source);
    SourceName::new(name)
}

fn channel_json(home: &Home) -> Value {
    let Some(telegram) = &home.config.telegram else { return json!({"ingress": "off"}) };
    let mut value = json!({"ingress": telegram.ingress.as_str()});
    if let Ok(problem) = std::fs::read_to_string(home.below(CHANNEL_PROBLEM)) {
        let problem: String =
            problem.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(200).collect();
        if !problem.is_empty() {
            value["problem"] = json!(problem);
        }
    }
    value
}

/// Whether the lock of the context root can be had. What cannot be told is left away: `doctor` says why.
fn context_json(home: &Home) -> Value {
    let Ok(root) = ContextRoot::open(&home.path, &home.config.context.root) else { return json!({}) };
    let Ok(own) = token().map(OwnEvidence::of_this_process) else { return json!({}) };
    match own.and_then(|own| lock::state(&root, &own)) {
        Ok(LockState::Free) => json!({"lock": "free"}),
        Ok(LockState::Held) => json!({"lock": "held"}),
        Ok(LockState::Invalid { why }) => json!({"lock": "invalid", "problem": why}),
        Err(_told_by_doctor) => json!({}),
    }
}

fn page(home: &Home, value: &Value) -> Vec<String> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let list = |name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut lines = vec![format!("home       {}", text(&value["home"]))];
    let problem = value["channel"]["problem"].as_str().map_or(String::new(), |p| format!(" ({p})"));
    lines.push(format!("channel    {}{problem}", text(&value["channel"]["ingress"])));
    if let Some(problem) = value["context"]["problem"].as_str() {
        let what = "documents are neither scanned nor written";
        lines.push(format!("lock       invalid: {problem}; {what}: {LOCK_HINT}"));
    }
    for row in list("consumers") {
        lines.push(format!(
            "consumer   {} v{} on {}: settled up to {}, {} behind",
            text(&row["agent"]),
            row["version"],
            text(&row["source"]),
            row["progress"],
            row["lag"]
        ));
        for run in row["held"].as_array().into_iter().flatten() {
            lines.push(format!(
                "  held     {} ({}) since {}",
                short(&text(&run["run"])),
                text(&run["reason"]),
                text(&run["since"])
            ));
        }
    }
    lines.push(format!("runs       {}", run_counts(value)));
    lines.push(suggestions(value));
    lines.extend(undelivered(value));
    let updates = &value["updates"];
    lines.push(format!(
        "updates    {} pending, {} parked, {} dropped",
        updates["pending"], updates["parked"], updates["dropped"]
    ));
    for chat in list("refusedChats") {
        lines.push(format!(
            "  refused  a {} chat: {}",
            text(&chat["kind"]),
            admit_hint(home, chat["id"].as_i64().unwrap_or_default())
        ));
    }
    for row in list("usage") {
        lines.push(format!(
            "usage      {} {}: {} requests, {} tokens in, {} out",
            text(&row["day"]),
            text(&row["agent"]),
            row["requests"],
            row["inputTokens"],
            row["outputTokens"]
        ));
    }
    for row in list("sources") {
        let sha = text(&row["headSha256"]);
        lines.push(format!(
            "source     {} #{} {}",
            text(&row["source"]),
            row["head"],
            &sha[..sha.len().min(16)]
        ));
    }
    lines.push(format!("incidents  {}", value["incidents"]));
    lines
}

fn run_counts(value: &Value) -> String {
    let counts = value["runs"].as_object().into_iter().flatten();
    let counts: Vec<String> = counts.map(|(state, count)| format!("{count} {state}")).collect();
    if counts.is_empty() { "none yet".to_owned() } else { counts.join(", ") }
}

fn suggestions(value: &Value) -> String {
    let proposals = &value["proposals"];
    match proposals["oldestAgeSeconds"].as_u64() {
        Some(age) => {
            let age = super::proposals::age(age);
            let what = match proposals["undecided"].as_u64() {
                Some(1) => format!("1 suggestion, for {age}"),
                count => format!("{} suggestions, the oldest for {age}", count.unwrap_or(0)),
            };
            format!("waiting    {what}: thought proposal-list --state undecided")
        }
        None => "waiting    no suggestions".to_owned(),
    }
}

fn undelivered(value: &Value) -> Vec<String> {
    let word = |row: &Value, name: &str| row[name].as_str().unwrap_or("?").to_owned();
    let told = |row: &Value| {
        let what = match row["state"].as_str() {
            Some("undelivered") => "will not arrive",
            Some("uncertain") => "may or may not have arrived: thought delivery-retry, or delivery-confirm",
            Some("sending") if row["reason"] == INTERRUPTED => {
                "was left by a command that died: thought delivery-retry, or delivery-confirm"
            }
            Some("sending") => "is on its way",
            _ => "waits for thought serve",
        };
        let why = row["reason"].as_str().map_or(String::new(), |reason| format!(" ({reason})"));
        format!("delivery   {} since {}{why} {what}", short(&word(row, "delivery")), word(row, "since"))
    };
    value["deliveries"]["waiting"].as_array().into_iter().flatten().map(told).collect()
}
