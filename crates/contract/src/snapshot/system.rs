//! The system text of format 1: the prompt, the documents, and for a person's conversation the trusted block of ids.

use thought_protocol::limits::ID_BLOCK_TURNS_MAX;

use super::{Snapshot, TurnReference};

/// A document as the system text shows it.
pub(super) struct Body<'a> {
    pub(super) path: &'a str,
    /// `None` when the bytes are no text.
    pub(super) text: Option<&'a str>,
}

const UNREADABLE: &str = "(This document is not readable as text.)";

pub(super) fn system_text(snapshot: &Snapshot, prompt: &str, documents: &[Body<'_>]) -> String {
    let mut sections = vec![prompt.trim_end().to_owned()];
    sections.extend(documents.iter().map(document));
    // Ids serve calls alone; a conversation without a tool on offer shows none.
    if !snapshot.offered_tools().is_empty() {
        sections.push(ids(&snapshot.turns));
    }
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n")
}

/// The whole file between two fences that stand nowhere in it.
fn document(body: &Body<'_>) -> String {
    let text = body.text.unwrap_or(UNREADABLE);
    let fence = "=".repeat(longest_run(text).max(3) + 1);
    let path = body.path;
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence} document {path} {fence}\n{text}{line_end}{fence} end of {path} {fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '=').map(str::len).max().unwrap_or(0)
}

/// `ordinal role id` of the newest turns, oldest first.
fn ids(turns: &[TurnReference]) -> String {
    let skipped = turns.len().saturating_sub(ID_BLOCK_TURNS_MAX);
    let mut lines = vec![
        "Ids of the newest turns (ordinal role id), written by the system for tool calls. The last is the current message."
            .to_owned(),
    ];
    for (index, turn) in turns.iter().enumerate().skip(skipped) {
        lines.push(format!("{} {} {}", index + 1, turn.role(), turn.event()));
    }
    lines.join("\n")
}
