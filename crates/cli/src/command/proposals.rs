//! `proposal-list` and `proposal-show`: what models and people suggested, as a reviewer sees it. Reads, and only reads.

use serde_json::{Value, json};
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::{
    CorrectionProposed, DerivedAgentMessage, FocusProposed, MemoryChangeProposed, MessageObservation,
};
use thought_contract::review::{Review, Standing, Subject, Warning, visible};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Sensitive};
use thought_store::handle::Reader;
use thought_store::row::{Base, ProposalFilter, ProposalRow, ProposalState};

use super::events::PAGE_PRINTED;
use super::resolve::{resolve, short};
use crate::exit::Failure;
use crate::print::{Consent, Content, Printer};

/// Rows asked of the store at a time.
const PAGE_READ: u32 = 200;

/// What `proposal-list` was asked for.
#[derive(Debug)]
pub struct ListOptions {
    /// In this state.
    pub state: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Behind this proposal.
    pub after: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

/// A proposal with everything that is shown of it.
struct Shown {
    row: ProposalRow,
    event: StoredEvent,
    review: Review,
    target: Value,
    details: Value,
}

/// `proposal-list`.
///
/// # Errors
/// [`Failure`]: an unknown proposal in `--after` (5), a store that cannot be read.
pub async fn list(
    (reader, clock): (&Reader, &dyn Clock),
    printer: Printer,
    options: ListOptions,
) -> Result<(), Failure> {
    let after_position = match &options.after {
        Some(text) => find(reader, text).await?.position,
        None => 0,
    };
    let limit = options.limit.unwrap_or(if printer.is_json() { u32::MAX } else { PAGE_PRINTED });
    let mut filter = ProposalFilter {
        states: options.state.as_deref().and_then(ProposalState::from_word).into_iter().collect(),
        kinds: ProposalKind::ALL
            .into_iter()
            .filter(|kind| options.kind.as_deref() == Some(kind.as_str()))
            .collect(),
        after_position,
        limit: limit.min(PAGE_READ),
    };
    let mut left = limit;
    let mut rows = Vec::new();
    let mut last = None;
    loop {
        let page = reader.proposals(filter.clone()).await?;
        let (count, newest) = (page.len(), page.last().map(|row| (row.position, row.proposal.clone())));
        for row in page {
            let shown = load(reader, row).await?;
            if printer.is_json() {
                printer.object(&row_json(&shown, clock))?;
            } else {
                rows.push(printed_row(&shown, clock));
            }
        }
        left = left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
        let Some((position, id)) = newest else { break };
        filter.after_position = position;
        last = Some(id);
        if left == 0 || count < filter.limit as usize {
            break;
        }
        filter.limit = left.min(PAGE_READ);
    }
    if !printer.is_json() {
        printer.table(&["proposal", "kind", "state", "base", "age", "length", "warnings"], &rows)?;
        if let (0, Some(last)) = (left, last) {
            let counts = reader.proposal_counts().await?;
            let total: u64 = counts.states.iter().map(|(_, count)| count).sum();
            printer.remark(&format!("{} of {total} proposals; go on with --after {last}", rows.len()));
        }
    }
    Ok(())
}

/// `proposal-show`.
///
/// # Errors
/// [`Failure`]: no such proposal (5), a store that cannot be read.
pub async fn show(
    (reader, clock): (&Reader, &dyn Clock),
    printer: Printer,
    id: &str,
    consent: Consent,
) -> Result<(), Failure> {
    let row = find(reader, id).await?;
    let shown = load(reader, row).await?;
    let content = printer.content(consent, "the suggestion");
    let mut value = row_json(&shown, clock);
    value["proposedAt"] = json!(shown.row.proposed_at);
    value["warnings"] = json!(shown.review.warnings.iter().map(|w| w.as_str()).collect::<Vec<_>>());
    if let Some(version) = &shown.row.base_version {
        value["baseVersion"] = json!(version);
    }
    if content == Content::Shown {
        value["text"] = json!(shown.review.text.expose());
        value["diff"] = json!(shown.review.diff.expose());
        if let (Some(value), Some(details)) = (value.as_object_mut(), shown.details.as_object()) {
            value.extend(details.clone());
        }
    }
    printer.either(&value, || page(printer, &shown, clock, content))
}

/// A proposal by its id or a beginning of it.
async fn find(reader: &Reader, text: &str) -> Result<ProposalRow, Failure> {
    let id: EventId = resolve(reader, text, "evt", "proposal").await?;
    reader.proposal(id.clone()).await?.ok_or_else(|| Failure::not_found("proposal", id.as_str()))
}

async fn load(reader: &Reader, row: ProposalRow) -> Result<Shown, Failure> {
    let event = reader
        .event(row.proposal.clone())
        .await?
        .ok_or_else(|| Failure::not_found("event", row.proposal.as_str()))?;
    let standing = match row.base {
        Base::Current => Standing::Current,
        Base::Stale => Standing::Stale,
    };
    let (review, target, details) = match row.kind {
        ProposalKind::MemoryChange => {
            let payload: MemoryChangeProposed = event.payload().map_err(|error| Failure::internal(&error))?;
            let base = base_text(reader, &payload).await?;
            let review = Review::of(Subject::MemoryChange(&payload, &base), standing);
            let details = json!({
                "operation": payload.operation, "reason": payload.reason, "evidence": payload.evidence,
            });
            (review, json!(payload.target), details)
        }
        ProposalKind::SelfCorrection => {
            let payload: CorrectionProposed = event.payload().map_err(|error| Failure::internal(&error))?;
            let answer = answer_text(reader, &payload.target.output).await?;
            let review = Review::of(Subject::Correction(&payload, &answer), standing);
            (review, json!(payload.target), json!({"reason": payload.reason, "evidence": payload.evidence}))
        }
        ProposalKind::FocusDeclaration => {
            let payload: FocusProposed = event.payload().map_err(|error| Failure::internal(&error))?;
            let review = Review::of(Subject::Focus(&payload), standing);
            let details = json!({"authority": payload.authority, "resolution": payload.resolution});
            (review, json!({"fingerprint": payload.fingerprint}), details)
        }
    };
    let review = review.map_err(|error| Failure::internal(&error))?;
    Ok(Shown { row, event, review, target, details })
}

/// The document's text in the version that a change is bound to. One that is no text could not have been a target.
async fn base_text(reader: &Reader, payload: &MemoryChangeProposed) -> Result<Sensitive<String>, Failure> {
    let version = reader.version(payload.target.version_id.clone()).await?;
    let version = version.ok_or_else(|| Failure::not_found("version", payload.target.version_id.as_str()))?;
    Ok(Sensitive::new(String::from_utf8_lossy(version.content.expose()).into_owned()))
}

/// What the answer says that a correction is bound to.
async fn answer_text(reader: &Reader, output: &EventId) -> Result<Sensitive<String>, Failure> {
    let event = reader.event(output.clone()).await?;
    let event = event.ok_or_else(|| Failure::not_found("output", output.as_str()))?;
    let said = match event.envelope.event_type {
        EventType::DerivedAgentMessage => event.payload::<DerivedAgentMessage>().map(|output| output.summary),
        _ => event.payload::<MessageObservation>().map(|output| output.summary),
    };
    said.map(Sensitive::new).map_err(|error| Failure::internal(&error))
}

/// How long ago something was, seconds; nothing lies in the future.
pub fn age_seconds(clock: &dyn Clock, at: Timestamp) -> u64 {
    u64::try_from(clock.now().since_ms(at) / 1_000).unwrap_or(0)
}

/// An age in the largest unit that it fills.
pub fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A proposal as `--json` lists it.
fn row_json(shown: &Shown, clock: &dyn Clock) -> Value {
    let row = &shown.row;
    let mut value = json!({
        "id": row.proposal, "kind": row.kind, "target": shown.target, "state": row.state.as_str(),
        "base": row.base.as_str(), "ageSeconds": age_seconds(clock, row.proposed_at),
        "textLength": shown.review.text_length, "textSha256": shown.review.text_sha256,
    });
    if let Some(run) = &row.run {
        value["run"] = json!(run);
    }
    value
}

fn warned(review: &Review) -> String {
    let marks: Vec<&str> = review.warnings.iter().copied().map(Warning::as_str).collect();
    marks.join(", ")
}

fn printed_row(shown: &Shown, clock: &dyn Clock) -> Vec<String> {
    let row = &shown.row;
    vec![
        short(row.proposal.as_str()),
        row.kind.to_string(),
        row.state.as_str().to_owned(),
        row.base.as_str().to_owned(),
        age(age_seconds(clock, row.proposed_at)),
        shown.review.text_length.to_string(),
        warned(&shown.review),
    ]
}

fn page(printer: Printer, shown: &Shown, clock: &dyn Clock, content: Content) -> Vec<String> {
    let (row, review) = (&shown.row, &shown.review);
    let envelope = &shown.event.envelope;
    let age = age(age_seconds(clock, row.proposed_at));
    let state = match row.state {
        ProposalState::Undecided => "undecided: nothing has changed because of it",
        ProposalState::Inert => "inert: it is a record, and nothing acts on it",
        other => other.as_str(),
    };
    let mut lines = vec![
        format!("proposal  {}", printer.bold(row.proposal.as_str())),
        format!("kind      {}", row.kind),
        format!("state     {state}"),
        format!("by        {}, {age} ago ({})", envelope.actor, row.proposed_at),
    ];
    lines.extend(row.run.iter().map(|run| format!("run       {run}")));
    lines
        .extend(row.base_version.iter().map(|version| format!("base      {version}, {}", row.base.as_str())));
    lines.push(format!("text      {} characters, sha256 {}", review.text_length, review.text_sha256));
    lines.extend(review.warnings.iter().map(|warning| format!("warning   {}", meaning(*warning))));
    if content == Content::Dark {
        lines.push(printer.dim("the text is private; --acknowledge-sensitive-private prints it"));
        return lines;
    }
    if let Some(reason) = shown.details["reason"].as_str() {
        lines.push(format!("reason    {}", visible(reason).replace('\n', "\n          ")));
    }
    lines.push(String::new());
    lines.extend(visible(review.text.expose()).lines().map(str::to_owned));
    lines.push(String::new());
    lines.extend(visible(review.diff.expose()).lines().map(str::to_owned));
    lines
}

fn meaning(warning: Warning) -> String {
    let what = match warning {
        Warning::PossibleSecret => "something in it has the shape of a key",
        Warning::HiddenCharacters => "it holds characters that do not show; here they are written out",
        Warning::StaleBase => "the document has changed since; it can no longer be written",
    };
    format!("{warning}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_the_largest_unit_that_they_fill() {
        for (seconds, told) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_599, "59 min"),
            (3_600, "1 h"),
            (86_400, "1 d"),
            (864_000, "10 d"),
        ] {
            assert_eq!(age(seconds), told);
        }
    }
}
