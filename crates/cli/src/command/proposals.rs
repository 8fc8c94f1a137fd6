//! `proposal-list` and `proposal-show`: what models and people suggested, as a reviewer sees it. Reads, and only reads.

pub mod evidence;
pub mod load;
pub mod look;

use serde_json::{Value, json};
use thought_contract::review::{Warning, visible};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::proposal::ProposalKind;
use thought_store::Images;
use thought_store::handle::Reader;
use thought_store::row::{ProposalFilter, ProposalRow, ProposalState};

use self::evidence::Evidence;
use self::load::{Shown, find, load};
use self::look::Files;
use super::events::PAGE_PRINTED;
use super::resolve::short;
use crate::exit::Failure;
use crate::home::Home;
use crate::print::{Consent, Content, Printer, Tint};

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

/// `proposal-list`.
///
/// # Errors
/// [`Failure`]: an unknown proposal in `--after` (5), a store that cannot be read.
pub async fn list(
    (home, reader, clock): (&Home, &Reader, &dyn Clock),
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
    let mut files = Files::of(home);
    let mut left = limit;
    let mut rows = Vec::new();
    let mut last = None;
    loop {
        let page = reader.proposals(filter.clone()).await?;
        let (count, newest) = (page.len(), page.last().map(|row| (row.position, row.proposal.clone())));
        for row in page {
            let shown = load(reader, files.look(reader, row).await?).await?;
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
    (home, reader, images, clock): (&Home, &Reader, &dyn Images, &dyn Clock),
    printer: Printer,
    id: &str,
    consent: Consent,
) -> Result<(), Failure> {
    let row = Files::of(home).look(reader, find(reader, id).await?).await?;
    let shown = load(reader, row).await?;
    let evidence = evidence::read(reader, images, &shown.row.proposal).await?;
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
    evidence.add_to(&mut value, content);
    printer.either(&value, || page(printer, (&shown, &evidence), clock, content))
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
    if let Some(again) = &shown.again {
        value["proposedAgainAs"] = json!({"proposal": again.proposal, "state": again.state});
    }
    value
}

/// Whether its base still matters: what was written, rejected or failed for good is not held against what came later.
fn is_open(row: &ProposalRow) -> bool {
    matches!(row.state, ProposalState::Undecided | ProposalState::Decided)
}

/// What to be wary of, as far as it still matters.
fn warnings(shown: &Shown) -> impl Iterator<Item = Warning> {
    let is_open = is_open(&shown.row);
    shown.review.warnings.iter().copied().filter(move |warning| is_open || *warning != Warning::StaleBase)
}

fn warned(shown: &Shown) -> String {
    let mut marks: Vec<String> = warnings(shown).map(|warning| warning.as_str().to_owned()).collect();
    let again = shown.again.as_ref();
    marks.extend(
        again.map(|again| format!("proposed again as {}, {}", short(again.proposal.as_str()), again.state)),
    );
    marks.join(", ")
}

fn printed_row(shown: &Shown, clock: &dyn Clock) -> Vec<String> {
    let row = &shown.row;
    vec![
        short(row.proposal.as_str()),
        row.kind.to_string(),
        row.state.as_str().to_owned(),
        if is_open(row) { row.base.as_str() } else { "-" }.to_owned(),
        age(age_seconds(clock, row.proposed_at)),
        shown.review.text_length.to_string(),
        warned(shown),
    ]
}

fn page(
    printer: Printer,
    (shown, evidence): (&Shown, &Evidence),
    clock: &dyn Clock,
    content: Content,
) -> Vec<String> {
    let mut lines = facts(printer, shown, clock);
    lines.extend(evidence.lines());
    if content == Content::Dark {
        lines.push(printer.dim("the text is private; --acknowledge-sensitive-private prints it"));
        return lines;
    }
    if let Some(reason) = shown.details["reason"].as_str() {
        lines.push(format!("reason    {}", visible(reason).replace('\n', "\n          ")));
    }
    lines.push(String::new());
    lines.extend(visible(shown.review.text.expose()).lines().map(str::to_owned));
    lines.push(String::new());
    let diff = tinted(shown.review.diff.expose());
    lines.extend(diff.iter().map(|(tint, line)| printer.tint(*tint, line)));
    if let Some(own) = evidence.replacement() {
        lines.extend([String::new(), "the operator's own text:".to_owned()]);
        lines.extend(visible(&own.text).lines().map(str::to_owned));
    }
    lines
}

/// What is told of a proposal before anybody consents to anything: ids, kinds, ages, lengths, hashes and marks.
pub fn facts(printer: Printer, shown: &Shown, clock: &dyn Clock) -> Vec<String> {
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
        format!("kind      {}{}", row.kind, of_an_operator(shown)),
        format!("state     {state}"),
        format!("by        {}, {age} ago ({})", visible(envelope.actor.as_str()), row.proposed_at),
    ];
    lines.extend(row.run.iter().map(|run| format!("run       {run}")));
    if let Some(again) = &shown.again {
        let away = match row.state {
            ProposalState::Undecided if again.is_written() => "; this one can be put away: reject it",
            _ => "",
        };
        lines.push(format!("again     proposed again as {}, {}{away}", again.proposal, again.state));
    }
    match (&row.base_version, row.kind) {
        (Some(version), _) if !is_open(row) => lines.push(format!("base      {version}")),
        (Some(version), _) => lines.push(format!("base      {version}, {}", row.base.as_str())),
        (None, ProposalKind::SelfCorrection) if !is_open(row) => {}
        (None, ProposalKind::SelfCorrection) => lines.push(format!("base      {}", row.base.as_str())),
        (None, _) => {}
    }
    lines.push(format!("text      {} characters, sha256 {}", review.text_length, review.text_sha256));
    lines.extend(warnings(shown).map(|warning| format!("warning   {}", meaning(warning, row.kind))));
    lines
}

/// A unified diff line by line, with what each does; what hides is written out. Only the first two lines name the sides:
/// a line that is taken away may look like them.
pub fn tinted(diff: &str) -> Vec<(Tint, String)> {
    let tint = |(place, line): (usize, &str)| match (place, line.as_bytes().first()) {
        (0 | 1, _) => Tint::Head,
        (_, Some(b'+')) => Tint::Added,
        (_, Some(b'-')) => Tint::Removed,
        (_, Some(b'@')) => Tint::Place,
        _ => Tint::Plain,
    };
    let visible = visible(diff);
    visible.lines().enumerate().map(|(place, line)| (tint((place, line)), line.to_owned())).collect()
}

/// What an operator's proposal goes back to, and why.
fn of_an_operator(shown: &Shown) -> String {
    match (shown.details["purpose"].as_str(), shown.details["origin"].as_str()) {
        (Some(purpose), Some(origin)) => format!(", {purpose} of {origin}"),
        _ => String::new(),
    }
}

/// A warning in words.
pub fn meaning(warning: Warning, kind: ProposalKind) -> String {
    let what = match (warning, kind) {
        (Warning::PossibleSecret, _) => "something in it has the shape of a key",
        (Warning::HiddenCharacters, _) => "it holds characters that do not show; here they are written out",
        (Warning::StaleBase, ProposalKind::SelfCorrection) => {
            "the answer has been corrected since; accepted, this one takes the place of that correction"
        }
        (Warning::StaleBase, _) => "the document has changed since; it can no longer be written",
    };
    format!("{warning}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_goes_is_no_name_of_a_side() {
        let diff =
            "--- a\n+++ b\n@@ -1 +1 @@\n--- gone\u{1b}[2J\n+++ come\n same\n\\ No newline at end of file\n";
        let tints: Vec<Tint> = tinted(diff).into_iter().map(|(tint, _)| tint).collect();
        let expected =
            [Tint::Head, Tint::Head, Tint::Place, Tint::Removed, Tint::Added, Tint::Plain, Tint::Plain];
        assert_eq!(tints, expected);
        assert_eq!(tinted(diff)[3].1, "--- gone<U+001B>[2J");
    }

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
