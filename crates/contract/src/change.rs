//! What a document would be after a memory change: the one rule that a review shows and a materializer writes.
//!
//! Pure. It decides nothing and checks nothing but the form: whether a change may be made is the business of whoever
//! writes it.

use crate::frontmatter::{self, LineEnd};
use crate::payload::MemoryOperation;

/// The whole document after a change.
///
/// `append` keeps every byte of the base, adds line ends until one blank line stands behind it, and then the text with
/// its line ends turned into the one of the base's first fence, without white space at its end but one line end.
/// `replace-document` is the text as it was given, with one line end at its end.
pub fn changed(base: &str, operation: MemoryOperation, text: &str) -> String {
    match operation {
        MemoryOperation::Append => appended(base, text),
        MemoryOperation::ReplaceDocument => replaced(text),
    }
}

fn appended(base: &str, text: &str) -> String {
    let end = match frontmatter::read(base.as_bytes()) {
        Ok(front) if front.line_end == LineEnd::CrLf => "\r\n",
        // Without a head there is no fence to follow; such a change is refused before it is written.
        Ok(_) | Err(_) => "\n",
    };
    let mut whole = base.to_owned();
    for _missing in trailing_line_ends(base).min(2)..2 {
        whole.push_str(end);
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    for (index, line) in text.trim_end().split('\n').enumerate() {
        if index > 0 {
            whole.push_str(end);
        }
        whole.push_str(line);
    }
    whole.push_str(end);
    whole
}

/// How many line ends stand at the end; an empty text counts as if a blank line stood before it.
fn trailing_line_ends(text: &str) -> usize {
    if text.is_empty() {
        return 2;
    }
    let mut rest = text;
    let mut count = 0;
    while let Some(before) = rest.strip_suffix('\n') {
        rest = before.strip_suffix('\r').unwrap_or(before);
        count += 1;
    }
    count
}

fn replaced(text: &str) -> String {
    let end = if text.ends_with("\r\n") { "\r\n" } else { "\n" };
    format!("{}{end}", text.trim_end_matches(['\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "---\nid: memory\n---\n";
    const HEAD_CRLF: &str = "---\r\nid: memory\r\n---\r\n";

    #[test]
    fn an_append_keeps_the_base_and_stands_behind_one_blank_line() {
        for (base, text, added) in [
            ("", "- tea", "\n- tea\n"),
            ("- a", "- tea", "\n\n- tea\n"),
            ("- a\n", "- tea\n\n \t\n", "\n- tea\n"),
            ("- a\n\n", "- tea", "- tea\n"),
            ("- a\n\n\n", "- tea", "- tea\n"),
            ("- a\n", "  indented\nsecond", "\n  indented\nsecond\n"),
            ("- a\r\n", "one\r\ntwo\rthree", "\none\ntwo\nthree\n"),
        ] {
            let base = format!("{HEAD}{base}");
            let whole = changed(&base, MemoryOperation::Append, text);
            assert_eq!(whole.strip_prefix(&base), Some(added), "{base:?} + {text:?}");
        }
    }

    #[test]
    fn report_10_an_append_follows_the_line_end_of_the_first_fence_and_rewrites_none() {
        let base = format!("{HEAD_CRLF}mixed\nlines\r\n");
        let whole = changed(&base, MemoryOperation::Append, "one\ntwo\r\nthree");
        assert_eq!(whole.strip_prefix(&base), Some("\r\none\r\ntwo\r\nthree\r\n"));
    }

    #[test]
    fn a_replacement_is_the_text_with_one_line_end() {
        for (text, whole) in [
            ("a", "a\n"),
            ("a\n", "a\n"),
            ("a\n\n\n", "a\n"),
            ("a\r\n", "a\r\n"),
            ("a\r\nb\r\n\r\n", "a\r\nb\r\n"),
            ("a  \n", "a  \n"),
        ] {
            assert_eq!(changed("base", MemoryOperation::ReplaceDocument, text), whole, "{text:?}");
        }
    }
}
