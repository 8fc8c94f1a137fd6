//! `run-list`, `run-show`, `run-abandon`, `run-retry`.

use serde_json::{Value, json};
use thought_contract::payload::RunCompleted;
use thought_contract::run::RunState;
use thought_contract::time::Timestamp;
use thought_protocol::RunId;
use thought_runtime::operator;
use thought_store::Store;
use thought_store::handle::Reader;
use thought_store::row::{AttemptRow, RunFilter, RunRow};

use super::events::PAGE_PRINTED;
use super::resolve::{resolve, short};
use crate::compose::SystemClock;
use crate::exit::Failure;
use crate::print::Printer;

const PAGE_READ: u32 = 500;

/// What `run-list` was asked for.
#[derive(Debug)]
pub struct ListOptions {
    /// Of this declaration.
    pub agent: Option<String>,
    /// In this shown state.
    pub state: Option<String>,
    /// Behind this run.
    pub after: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

/// `run-list`.
///
/// # Errors
/// [`Failure`]: an unknown run in `--after`, a store that cannot be read.
pub async fn list(reader: &Reader, printer: Printer, options: ListOptions) -> Result<(), Failure> {
    let states = options
        .state
        .iter()
        .flat_map(|shown| RunState::ALL.iter().copied().filter(move |state| state.shown() == shown.as_str()));
    let after_ordinal = match &options.after {
        Some(text) => find(reader, text).await?.ordinal,
        None => 0,
    };
    let limit = options.limit.unwrap_or(if printer.is_json() { u32::MAX } else { PAGE_PRINTED });
    let mut filter = RunFilter {
        declaration: options.agent.clone(),
        states: states.collect(),
        trigger: None,
        after_ordinal,
        limit: limit.min(PAGE_READ),
    };
    let mut left = limit;
    let mut rows = Vec::new();
    let mut last = None;
    loop {
        let page = reader.runs(filter.clone()).await?;
        for run in &page {
            if printer.is_json() {
                printer.object(&run_json(reader, run).await?)?;
            } else {
                rows.push(run_row(run));
            }
        }
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        let Some(newest) = page.last() else { break };
        filter.after_ordinal = newest.ordinal;
        last = Some(newest.id.clone());
        if left == 0 || page.len() < filter.limit as usize {
            break;
        }
        filter.limit = left.min(PAGE_READ);
    }
    if !printer.is_json() {
        printer.table(&["run", "agent", "version", "state", "attempts", "admitted"], &rows)?;
        if let (0, Some(last)) = (left, last) {
            let counts = reader.run_counts().await?;
            let total: u64 = counts.iter().map(|(_, count)| count).sum();
            printer.remark(&format!("{} of {total} runs; go on with --after {last}", rows.len()));
        }
    }
    Ok(())
}

/// A run by its id or a beginning of it.
///
/// # Errors
/// [`Failure`]: no such run (5).
pub async fn find(reader: &Reader, text: &str) -> Result<RunRow, Failure> {
    let id: RunId = resolve(reader, text, "run", "run").await?;
    reader.run(id.clone()).await?.ok_or_else(|| Failure::not_found("run", id.as_str()))
}

fn run_row(run: &RunRow) -> Vec<String> {
    let state = match &run.reason {
        Some(reason) => format!("{} ({reason})", run.state.shown()),
        None => run.state.shown().to_owned(),
    };
    vec![
        short(run.id.as_str()),
        run.declaration.clone(),
        run.version.to_string(),
        state,
        run.attempts.to_string(),
        run.admitted_at.to_string(),
    ]
}

/// A run as `--json` shows it.
///
/// # Errors
/// [`Failure`] when its completed event cannot be read.
pub async fn run_json(reader: &Reader, run: &RunRow) -> Result<Value, Failure> {
    let mut proposals = Vec::new();
    if let (RunState::Completed, Some(terminal)) = (run.state, &run.terminal)
        && let Some(event) = reader.event(terminal.clone()).await?
    {
        let completed: RunCompleted = event.payload().map_err(|error| Failure::internal(&error))?;
        proposals = completed.proposals.into_iter().map(|reference| reference.event).collect();
    }
    let mut value = json!({
        "id": run.id, "agent": run.declaration, "version": run.version, "trigger": run.trigger,
        "state": run.state.shown(), "attempts": run.attempts, "proposals": proposals,
        "admittedAt": run.admitted_at, "retry": run.retry,
    });
    let optional = [
        ("reason", run.reason.as_ref().map(|v| json!(v))),
        ("snapshot", run.snapshot.as_ref().map(|v| json!(v))),
        ("output", run.output.as_ref().map(|v| json!(v))),
        ("terminal", run.terminal.as_ref().map(|v| json!(v))),
        ("endedAt", run.ended_at.map(|v| json!(v))),
    ];
    for (name, member) in optional {
        if let Some(member) = member {
            value[name] = member;
        }
    }
    Ok(value)
}

fn attempt_json(attempt: &AttemptRow) -> Value {
    json!({
        "id": attempt.id, "ordinal": attempt.ordinal, "outcome": attempt.state, "reason": attempt.reason,
        "sandbox": attempt.sandbox, "startedAt": attempt.started_at, "endedAt": attempt.ended_at,
        "milliseconds": attempt.ended_at.map(|ended| ended.since_ms(attempt.started_at)),
        "inputTokens": attempt.input_tokens, "outputTokens": attempt.output_tokens,
    })
}

/// `run-show`.
///
/// # Errors
/// [`Failure`]: no such run (5).
pub async fn show(reader: &Reader, printer: Printer, id: &str) -> Result<(), Failure> {
    let run = find(reader, id).await?;
    let attempts = reader.attempts(run.id.clone()).await?;
    let mut value = run_json(reader, &run).await?;
    value["attempts"] = Value::Array(attempts.iter().map(attempt_json).collect());
    printer.either(&value, || {
        let reason = run.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        let mut lines = vec![
            format!("run       {}", printer.bold(run.id.as_str())),
            format!("agent     {} v{}", run.declaration, run.version),
            format!("trigger   {}", run.trigger),
            format!("state     {}{reason}", run.state.shown()),
        ];
        lines.extend(run.snapshot.iter().map(|id| format!("snapshot  {id}")));
        lines.extend(run.output.iter().map(|id| format!("output    {id}")));
        lines.extend(run.terminal.iter().map(|id| format!("ended by  {id}")));
        lines.push(format!("admitted  {}", run.admitted_at));
        lines.extend(run.ended_at.iter().map(|at| format!("ended     {at}")));
        for attempt in &attempts {
            lines.push(attempt_line(attempt));
        }
        lines
    })
}

fn attempt_line(attempt: &AttemptRow) -> String {
    let took = attempt
        .ended_at
        .map_or(String::new(), |ended: Timestamp| format!(", {} ms", ended.since_ms(attempt.started_at)));
    let reason = attempt.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    let tokens = match (attempt.input_tokens, attempt.output_tokens) {
        (Some(input), Some(output)) => format!(", {input} tokens in, {output} out"),
        _ => String::new(),
    };
    format!("attempt   {} {}{reason}, jail {}{took}{tokens}", attempt.ordinal, attempt.state, attempt.sandbox)
}

/// `run-abandon`.
///
/// # Errors
/// [`Failure`]: no such run (5), one that has ended (3).
pub async fn abandon(store: &Store, printer: Printer, id: &str) -> Result<(), Failure> {
    let reader = store.reader();
    let run = find(&reader, id).await?;
    let runs = store.consumer(&run.declaration);
    operator::abandon(&reader, &runs, &SystemClock, &run.id).await.map_err(|error| refusal(&error))?;
    let value = json!({"run": run.id, "status": "abandoned"});
    printer.either(&value, || vec![format!("{} is abandoned", run.id)])
}

/// `run-retry`.
///
/// # Errors
/// [`Failure`]: no such run (5), one that is open or completed (3).
pub async fn retry(store: &Store, printer: Printer, id: &str) -> Result<(), Failure> {
    let reader = store.reader();
    let run = find(&reader, id).await?;
    let runs = store.consumer(&run.declaration);
    let new = operator::retry(&reader, &runs, &run.id).await.map_err(|error| refusal(&error))?;
    let value = json!({"run": new});
    printer.either(&value, || vec![format!("{new} will run as soon as thought serve sees it")])
}

fn refusal(error: &operator::Error) -> Failure {
    match error {
        operator::Error::Store(_) | operator::Error::Draft(_) => Failure::internal(error),
        operator::Error::Moving { .. } => {
            Failure::new(crate::exit::Exit::Conflict, "changed-meanwhile", crate::exit::chain(error))
        }
        _ => Failure::refused("run-state", crate::exit::chain(error)),
    }
}
