//! What a person sees of a proposal before a decision: all of its text, what it would change, and what to be wary of.
//!
//! Pure, and the same on every surface. It hides nothing and repairs nothing: a text is shown whole, its hidden
//! characters can be made visible, and a warning is a mark for a person, never a verdict.

use std::fmt;

use similar::TextDiff;
use thought_protocol::canonical::{self, CanonicalError};
use thought_protocol::{Sensitive, Sha256Hex};

use crate::change::changed;
use crate::payload::{
    CorrectionProposed, FocusProposed, MemoryChangeProposed, MemoryOperation, OperatorMemoryChangeProposed,
};

pub mod hidden;
pub mod secret;

pub use hidden::{has_hidden, visible};
pub use secret::possible_secret;

/// Lines around a change that a diff shows.
const DIFF_CONTEXT_LINES: usize = 3;
/// Most lines, old and new together, that are compared one by one. Beyond it everything between the common beginning and
/// end is shown as replaced: the cost of the finest diff grows with the square of what differs.
pub const DIFF_LINES_MAX: usize = 8_000;

/// Something to be wary of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Warning {
    /// The text holds something of the shape of a key.
    PossibleSecret,
    /// The text holds characters that do not show.
    HiddenCharacters,
    /// What it is bound to has moved on.
    StaleBase,
}

impl Warning {
    /// The code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PossibleSecret => "possible-secret",
            Self::HiddenCharacters => "hidden-characters",
            Self::StaleBase => "stale-base",
        }
    }
}

/// Whether what a proposal is bound to still stands, as the store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Current,
    /// It has moved on.
    Stale,
}

/// What is reviewed, with what it would change.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A memory change, and the text of the version that it is bound to.
    MemoryChange(&'a MemoryChangeProposed, &'a Sensitive<String>),
    /// A memory change that a person proposed, and the text of the version that it is bound to.
    OperatorChange(&'a OperatorMemoryChangeProposed, &'a Sensitive<String>),
    /// A correction, and what the answer says now.
    Correction(&'a CorrectionProposed, &'a Sensitive<String>),
    /// A focus, which changes nothing.
    Focus(&'a FocusProposed),
}

/// A proposal as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The proposed text, whole. Of a focus the canonical form of its declaration.
    pub text: Sensitive<String>,
    /// Its length, characters.
    pub text_length: u64,
    /// Its hash.
    pub text_sha256: Sha256Hex,
    /// What it would change, as a unified diff. Empty when it would change nothing.
    pub diff: Sensitive<String>,
    /// What to be wary of.
    pub warnings: Vec<Warning>,
}

/// What stands on either side of a diff, and its names.
struct Sides<'a> {
    before: (&'a str, &'a str),
    after: (&'a str, &'a str),
}

impl Review {
    /// Reviews a proposal.
    ///
    /// # Errors
    /// Only for a focus declaration that has no canonical form, which no stored one is.
    pub fn of(subject: Subject<'_>, standing: Standing) -> Result<Self, CanonicalError> {
        match subject {
            Subject::MemoryChange(proposed, base) => {
                let text = (proposed.proposed_text.as_str(), proposed.reason.as_str());
                Ok(Self::of_memory(proposed.operation, text, base.expose(), standing))
            }
            Subject::OperatorChange(proposed, base) => {
                let text = (proposed.proposed_text.as_str(), "");
                Ok(Self::of_memory(proposed.operation, text, base.expose(), standing))
            }
            Subject::Correction(proposed, answer) => {
                let text = (proposed.replacement.summary.as_str(), proposed.reason.as_str());
                Ok(Self::of_answer(text, answer.expose(), standing))
            }
            Subject::Focus(proposed) => {
                let text = canonical::to_string(&proposed.declaration)?;
                let pretty = serde_json::to_string_pretty(&proposed.declaration).map(|text| line(&text));
                let pretty = pretty.map_err(CanonicalError::Serialize)?;
                let sides = Sides { before: ("nothing", ""), after: ("focus declaration", &pretty) };
                Ok(Self::new((&text, ""), &sides, standing))
            }
        }
    }

    /// Reviews a change of a document: the text with its reason, and the document's text now.
    pub fn of_memory(
        operation: MemoryOperation,
        (text, reason): (&str, &str),
        base: &str,
        standing: Standing,
    ) -> Self {
        let after = changed(base, operation, text);
        let sides = Sides { before: ("memory.md", base), after: ("memory.md, changed", &after) };
        Self::new((text, reason), &sides, standing)
    }

    /// Reviews a correction of an answer: the words with their reason, and what the answer says now.
    pub fn of_answer((text, reason): (&str, &str), answer: &str, standing: Standing) -> Self {
        let (before, after) = (line(answer), line(text));
        let sides = Sides { before: ("answer", &before), after: ("answer, corrected", &after) };
        Self::new((text, reason), &sides, standing)
    }

    fn new((text, reason): (&str, &str), sides: &Sides<'_>, standing: Standing) -> Self {
        let mut warnings = Vec::new();
        if possible_secret(text) || possible_secret(reason) {
            warnings.push(Warning::PossibleSecret);
        }
        if has_hidden(text) || has_hidden(reason) {
            warnings.push(Warning::HiddenCharacters);
        }
        if standing == Standing::Stale {
            warnings.push(Warning::StaleBase);
        }
        Self {
            text: Sensitive::new(text.to_owned()),
            text_length: text.chars().count() as u64,
            text_sha256: Sha256Hex::of(text.as_bytes()),
            diff: Sensitive::new(diff(sides)),
            warnings,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text as whole lines.
fn line(text: &str) -> String {
    if text.ends_with('\n') || text.is_empty() { text.to_owned() } else { format!("{text}\n") }
}

fn diff(sides: &Sides<'_>) -> String {
    let ((old_name, old), (new_name, new)) = (sides.before, sides.after);
    if old == new {
        return String::new();
    }
    if differing_lines(old, new) > DIFF_LINES_MAX {
        return replaced_whole(sides);
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(DIFF_CONTEXT_LINES)
        .header(old_name, new_name)
        .to_string()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// How many lines stand between the common beginning and the common end.
fn differing_lines(old: &str, new: &str) -> usize {
    let (old, new) = (lines(old), lines(new));
    let begin = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[begin..], &new[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    old.len() + new.len() - 2 * end
}

/// A diff that compares nothing: all of the old, all of the new.
fn replaced_whole(sides: &Sides<'_>) -> String {
    let (old, new) = (lines(sides.before.1), lines(sides.after.1));
    let mut whole =
        format!("--- {}\n+++ {}\n@@ -1,{} +1,{} @@\n", sides.before.0, sides.after.0, old.len(), new.len());
    for (mark, lines) in [('-', old), ('+', new)] {
        for text in lines {
            whole.push(mark);
            whole.push_str(text);
            if !text.ends_with('\n') {
                whole.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "---\nid: memory\n---\n# Memory\n\n- Likes tea.\n";

    fn append(text: &str, standing: Standing) -> Review {
        Review::of_memory(MemoryOperation::Append, (text, "asked for"), BASE, standing)
    }

    #[test]
    fn an_append_shows_what_is_added_and_where() {
        let review = append("- Lives in Lisbon.", Standing::Current);
        assert_eq!(
            review.diff.expose(),
            "--- memory.md\n+++ memory.md, changed\n@@ -4,3 +4,5 @@\n # Memory\n \n - Likes tea.\n+\n+- Lives in Lisbon.\n"
        );
        assert_eq!((review.text_length, review.warnings.len()), (18, 0));
        assert_eq!(review.text_sha256, Sha256Hex::of(b"- Lives in Lisbon."));
    }

    #[test]
    fn report_19_the_last_line_of_the_longest_text_can_be_reached() {
        let mut text = "a harmless line\n".repeat(2_047);
        text.push_str("send it");
        text.insert_str(0, &"x".repeat(32_768 - text.chars().count()));
        let review = append(&text, Standing::Current);
        assert_eq!((review.text_length, review.text.expose()), (32_768, &text));
        assert!(review.diff.expose().ends_with("+send it\n"));
    }

    #[test]
    fn a_replacement_shows_what_goes_and_what_comes() {
        let text = BASE.replace("tea", "coffee");
        let review =
            Review::of_memory(MemoryOperation::ReplaceDocument, (&text, "r"), BASE, Standing::Current);
        let diff = review.diff.expose();
        assert!(diff.contains("\n-- Likes tea.\n+- Likes coffee.\n"), "{diff}");
        let same = Review::of_memory(MemoryOperation::ReplaceDocument, (BASE, "r"), BASE, Standing::Current);
        assert_eq!(same.diff.expose(), "");
    }

    #[test]
    fn a_correction_shows_what_the_answer_says_and_should_say() {
        let review = Review::of_answer(("It is Tuesday.", "r"), "It is Monday.", Standing::Stale);
        assert!(review.diff.expose().ends_with("\n-It is Monday.\n+It is Tuesday.\n"));
        assert_eq!((review.text_length, &review.warnings[..]), (14, &[Warning::StaleBase][..]));
    }

    #[test]
    fn two_long_and_different_texts_are_shown_whole_and_not_compared() {
        let old: String = (0..DIFF_LINES_MAX).map(|number| format!("old {number}\n")).collect();
        let new: String = (0..DIFF_LINES_MAX).map(|number| format!("new {number}\n")).collect();
        let shown = |new: &str| {
            let sides = Sides { before: ("a", &old), after: ("b", new) };
            diff(&sides)
        };
        let whole = shown(&new);
        assert_eq!(whole.lines().count(), 3 + 2 * DIFF_LINES_MAX);
        assert!(whole.contains("\n-old 0\n") && whole.ends_with("+new 7999\n"));
        // However long they are, texts that differ little are compared.
        assert!(shown(&old.replace("old 17\n", "new 17\n")).lines().count() < 12);
        assert!(shown("short").ends_with("+short\n\\ No newline at end of file\n"));
    }

    #[test]
    fn warnings_are_about_the_text_and_its_reason() {
        let codes = |review: Review| review.warnings.iter().map(|w| w.as_str()).collect::<Vec<_>>();
        assert_eq!(codes(append("a\u{202e}b", Standing::Stale)), ["hidden-characters", "stale-base"]);
        let key = format!("the key is sk-ant-{}", "a1".repeat(20));
        assert_eq!(codes(append(&key, Standing::Current)), ["possible-secret"]);
        let reasoned = Review::of_memory(MemoryOperation::Append, ("x", &key), BASE, Standing::Current);
        assert_eq!(codes(reasoned), ["possible-secret"]);
        assert!(append("plain words, and 12:30", Standing::Current).warnings.is_empty());
    }

    #[test]
    fn a_review_does_not_print_its_content() {
        let printed = format!("{:?}", append("private words", Standing::Current));
        assert!(!printed.contains("private") && !printed.contains("tea"), "{printed}");
    }
}
