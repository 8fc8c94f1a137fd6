//! `judgment-list`: what people held against answers, and which of it counts. Reads, and only reads.

use serde_json::{Value, json};
use thought_authority::judge::{JudgeError, Listed, Standing, list as listed};
use thought_contract::event::EventType;
use thought_protocol::EventId;
use thought_store::handle::Reader;

use super::events::PAGE_PRINTED;
use super::resolve::{resolve, short};
use crate::exit::Failure;
use crate::print::{Content, Printer};

/// Rows asked of the store at a time.
const PAGE_READ: u32 = 200;

/// What `judgment-list` was asked for.
#[derive(Debug)]
pub struct ListOptions {
    /// Behind this judgment.
    pub after: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Whether the corrected words are printed.
    pub content: Content,
}

/// `judgment-list`.
///
/// # Errors
/// [`Failure`]: an unknown judgment in `--after` (5), a store that cannot be read.
pub async fn list(reader: &Reader, printer: Printer, options: ListOptions) -> Result<(), Failure> {
    let mut after_position = match &options.after {
        Some(text) => position(reader, text).await?,
        None => 0,
    };
    let limit = options.limit.unwrap_or(if printer.is_json() { u32::MAX } else { PAGE_PRINTED });
    let mut left = limit;
    let mut rows = Vec::new();
    let mut last = None;
    while left > 0 {
        let asked = left.min(PAGE_READ);
        let page = listed(reader, after_position, asked).await.map_err(failure)?;
        for judgment in &page {
            if printer.is_json() {
                printer.object(&judgment_json(judgment, options.content))?;
            } else {
                rows.push(row(judgment));
            }
        }
        let count = u32::try_from(page.len()).unwrap_or(u32::MAX);
        left = left.saturating_sub(count);
        let Some(newest) = page.last() else { break };
        after_position = newest.event.envelope.position;
        last = Some(newest.event.envelope.id.clone());
        if count < asked {
            break;
        }
    }
    if !printer.is_json() {
        let head =
            ["judgment", "criterion", "output", "actor", "standing", "quality", "external", "recorded"];
        printer.table(&head, &rows)?;
        if let (0, Some(last)) = (left, last) {
            let total = reader.event_count_of(EventType::JudgmentRecorded, u64::MAX).await?;
            printer.remark(&format!("{} of {total} judgments; go on with --after {last}", rows.len()));
        }
    }
    Ok(())
}

fn failure(error: JudgeError) -> Failure {
    match error {
        JudgeError::Store(error) => error.into(),
        JudgeError::Draft(_) | JudgeError::Payload(_) => Failure::internal(&error),
    }
}

/// Where a judgment stands in the log.
async fn position(reader: &Reader, text: &str) -> Result<u64, Failure> {
    let id: EventId = resolve(reader, text, "evt", "judgment").await?;
    match reader.event(id.clone()).await? {
        Some(event) if event.envelope.event_type == EventType::JudgmentRecorded => {
            Ok(event.envelope.position)
        }
        _ => Err(Failure::not_found("judgment", id.as_str())),
    }
}

const fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Active => "active",
        Standing::Superseded => "superseded",
    }
}

const fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn row(listed: &Listed) -> Vec<String> {
    let (envelope, judgment) = (&listed.event.envelope, &listed.judgment);
    vec![
        short(envelope.id.as_str()),
        judgment.criterion.clone(),
        short(judgment.target.output.as_str()),
        judgment.actor.clone(),
        standing(listed.standing).to_owned(),
        yes_or_no(judgment.quality_eligible).to_owned(),
        yes_or_no(judgment.external_export_eligible).to_owned(),
        envelope.recorded_at.to_string(),
    ]
}

/// A judgment as `--json` lists it.
fn judgment_json(listed: &Listed, content: Content) -> Value {
    let (envelope, judgment) = (&listed.event.envelope, &listed.judgment);
    let mut value = json!({
        "id": envelope.id, "kind": judgment.kind, "criterion": judgment.criterion,
        "criterionVersion": judgment.criterion_version, "target": judgment.target, "actor": judgment.actor,
        "feedback": judgment.feedback, "standing": standing(listed.standing),
        "qualityEligible": judgment.quality_eligible,
        "externalExportEligible": judgment.external_export_eligible, "recordedAt": envelope.recorded_at,
    });
    if let Some(before) = &judgment.supersedes {
        value["supersedes"] = json!(before);
    }
    if content == Content::Shown {
        value["replacement"] = json!(judgment.replacement);
    }
    value
}
