//! Cutting a text into messages.
//!
//! Owns the rule where a message ends: at a paragraph, else a line, else a word, else a grapheme, and only within a
//! grapheme that is longer than a message, at a character. A message with as many entities as it may hold ends before
//! the next one begins, so that no address and no style is lost. It never makes an empty message, never loses anything
//! visible, and never cuts an entity or a surrogate pair in a way that the Bot API would refuse.

use unicode_segmentation::UnicodeSegmentation;

use crate::entities::{Entity, EntityKind, Formatted, is_blank};
use crate::limits::{CHUNK_ENTITIES_MAX, CHUNK_UTF16_MAX};
use crate::markdown;
use crate::notices::CUT_SHORT;

/// Whether the text of an answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// All of it.
    Whole,
    /// Its end is missing, because the model ran into its length limit.
    CutShort,
}

/// The messages of one answer, in order: Markdown rendered, the fixed line added where the answer was cut short, split.
/// Empty only if nothing in the text is visible and it is whole.
pub fn reply(markdown: &str, completeness: Completeness) -> Vec<Formatted> {
    let rendered = markdown::render(markdown);
    split(&match completeness {
        Completeness::Whole => rendered,
        Completeness::CutShort => rendered.with_line(CUT_SHORT),
    })
}

/// Splits a text into messages of 1 to [`CHUNK_UTF16_MAX`] units and at most [`crate::limits::CHUNK_ENTITIES_MAX`]
/// entities. Joined again they are the text, but for white space (and characters that show nothing) at the cuts.
pub fn split(text: &Formatted) -> Vec<Formatted> {
    let whole = text.text();
    let pre = code_blocks(text);
    let mut chunks = Vec::new();
    // Both name the same place: bytes and UTF-16 units.
    let mut at = 0;
    let mut at_utf16 = 0;
    while at < whole.len() {
        let within_code = pre.iter().any(|(from, to)| *from < at_utf16 && at_utf16 < *to);
        let skipped = leading(&whole[at..], within_code || pre.iter().any(|(from, _)| *from == at_utf16));
        at_utf16 += crate::entities::utf16_length(&whole[at..at + skipped]);
        at += skipped;
        let rest = &whole[at..];
        let length = cut(rest, units_max(text.entities(), at_utf16));
        let visible = rest[..length].trim_end();
        if !is_blank(visible) {
            chunks.push(text.slice(at..at + visible.len(), at_utf16));
        }
        at_utf16 += crate::entities::utf16_length(&rest[..length]);
        at += length;
    }
    chunks
}

/// Units of a message that begins here: all that one may hold, or up to where one entity too many begins.
fn units_max(entities: &[Entity], at_utf16: usize) -> usize {
    let beyond = entities.iter().filter(|entity| entity.end() > at_utf16).nth(CHUNK_ENTITIES_MAX);
    // Entities that begin at one place are of different kinds, and there are far fewer kinds than entities allowed.
    beyond.map_or(CHUNK_UTF16_MAX, |entity| (entity.offset - at_utf16).clamp(1, CHUNK_UTF16_MAX))
}

/// Where code blocks lie, in UTF-16 units.
fn code_blocks(text: &Formatted) -> Vec<(usize, usize)> {
    let blocks = text.entities().iter().filter(|entity| matches!(entity.kind, EntityKind::Pre { .. }));
    blocks.map(|entity| (entity.offset, entity.end())).collect()
}

/// Bytes of white space that a message need not begin with. Within code, the indentation of a line is meant.
fn leading(rest: &str, within_code: bool) -> usize {
    let kept = if within_code { rest.trim_start_matches(['\n', '\r']) } else { rest.trim_start() };
    rest.len() - kept.len()
}

/// Bytes of the next message: all of `rest` if it fits, else up to the best place to cut. At least one character.
fn cut(rest: &str, units_max: usize) -> usize {
    let Some(window) = window(rest, units_max) else { return rest.len() };
    // A break that begins exactly where the message is full is as good as one before, so each search looks past it.
    let bytes = rest.as_bytes();
    let paragraph = (0..=window).rev().find(|at| bytes[*at..].starts_with(b"\n\n"));
    let line = || (0..=window).rev().find(|at| bytes.get(*at) == Some(&b'\n'));
    let word = || {
        if rest[window..].starts_with(is_word_break) {
            Some(window)
        } else {
            rest[..window].rfind(is_word_break)
        }
    };
    let visible = |cut: &usize| !is_blank(&rest[..*cut]);
    paragraph
        .filter(visible)
        .or_else(|| line().filter(visible))
        .or_else(|| word().filter(visible))
        .or_else(|| grapheme(rest, window))
        .unwrap_or(window)
}

/// The bytes that fit so many units, at least one character; `None` if all do.
fn window(rest: &str, units_max: usize) -> Option<usize> {
    let mut units = 0;
    for (index, c) in rest.char_indices() {
        units += c.len_utf16();
        if units > units_max && index > 0 {
            return Some(index);
        }
    }
    None
}

/// White space where a line may break.
fn is_word_break(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{202f}' | '\u{2007}')
}

/// The last boundary between graphemes that fits, if there is one behind the first character.
fn grapheme(rest: &str, window: usize) -> Option<usize> {
    rest.grapheme_indices(true)
        .map(|(index, _)| index)
        .take_while(|index| *index <= window)
        .last()
        .filter(|at| *at > 0)
}
