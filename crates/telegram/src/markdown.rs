//! Markdown as text with entities.
//!
//! Owns the reading of what a model writes as Markdown. It never loses a word: what has no entity stays as text, HTML
//! and broken markup stay as they were written, and an address that may not be a link is shown beside its words. It
//! never fails: a text that cannot be rendered well is sent as it is.

mod definitions;
mod table;
mod writer;

use pulldown_cmark::{Options, Parser};

use crate::entities::{Formatted, is_blank, utf16_length};
use crate::limits::{CHUNK_UTF16_MAX, RENDER_GROWTH_MAX};

/// What is read beyond CommonMark. Task lists, footnotes and mathematics stay literal: Telegram has nothing for them.
const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// The longest address that becomes a link, bytes.
const URL_BYTES_MAX: usize = 2_048;

/// Renders Markdown. The text is free of white space at its end; it is blank only if the source is.
pub fn render(source: &str) -> Formatted {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let Some(prepared) = definitions::shown(&source) else {
        return Formatted::plain(source.trim());
    };
    let mut writer = writer::Writer::new(&prepared);
    for (event, range) in Parser::new_ext(&prepared, OPTIONS).into_offset_iter() {
        writer.event(event, range);
    }
    let made = writer.finish();
    let length_max = utf16_length(&source) * RENDER_GROWTH_MAX + CHUNK_UTF16_MAX;
    if is_blank(made.text()) || made.utf16_length() > length_max {
        return Formatted::plain(source.trim());
    }
    made
}

/// Whether an address may stand behind other words: a known scheme, nothing that could hide in it, bounded.
fn is_linkable(url: &str) -> bool {
    let scheme_known = ["http://", "https://", "tg://", "mailto:"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    scheme_known
        && url.len() <= URL_BYTES_MAX
        && !url.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"'))
}

#[cfg(test)]
mod tests;
