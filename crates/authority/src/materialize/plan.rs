//! What a memory change makes of the frozen base: pure, and on the base's own bytes.
//!
//! Nothing is merged and no line end of the base is ever rewritten.

use thought_contract::frontmatter::{self, FrontmatterError};
use thought_contract::payload::MemoryOperation;
use thought_protocol::{Sensitive, Sha256Hex};

use crate::reason::Reason;

/// The document as it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its bytes.
    pub bytes: Sensitive<Vec<u8>>,
    /// Their hash.
    pub sha256: Sha256Hex,
}

/// Plans a change.
///
/// `append` keeps every byte of the base, separates by a blank line, and adds the text without its trailing white space,
/// in the line ends of the base's first fence. `replace-document` takes the text as given, with one final line end.
///
/// # Errors
/// A final [`Reason`]: the base or the result has no usable frontmatter, the id would change, or the result is larger than
/// `bytes_max`.
pub fn plan(base: &[u8], operation: MemoryOperation, text: &str, bytes_max: u64) -> Result<Planned, Reason> {
    let head = frontmatter::read(base).map_err(|error| reason(&error))?;
    let bytes = match operation {
        MemoryOperation::Append => append(base, text, head.line_end.as_str()),
        MemoryOperation::ReplaceDocument => replace(text),
    };
    if u64::try_from(bytes.len()).map_or(true, |length| length > bytes_max) {
        return Err(Reason::TooLarge);
    }
    let new = frontmatter::read(&bytes).map_err(|error| reason(&error))?;
    if new.id != head.id {
        return Err(Reason::FrontmatterIdChanged);
    }
    let sha256 = Sha256Hex::of(&bytes);
    Ok(Planned { bytes: Sensitive::new(bytes), sha256 })
}

const fn reason(error: &FrontmatterError) -> Reason {
    match error {
        FrontmatterError::Missing => Reason::FrontmatterMissing,
        FrontmatterError::Invalid { .. } => Reason::FrontmatterInvalid,
        FrontmatterError::InvalidUtf8 => Reason::InvalidUtf8,
    }
}

fn append(base: &[u8], text: &str, line_end: &str) -> Vec<u8> {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines = lines.trim_end().replace('\n', line_end);
    let mut bytes = base.to_vec();
    while !ends_with_blank_line(&bytes) {
        bytes.extend_from_slice(line_end.as_bytes());
    }
    bytes.extend_from_slice(lines.as_bytes());
    bytes.extend_from_slice(line_end.as_bytes());
    bytes
}

/// Whether the last line is ended and blank: white space at most.
fn ends_with_blank_line(bytes: &[u8]) -> bool {
    let Some(before) = bytes.strip_suffix(b"\n") else { return false };
    let last = before.rsplit(|byte| *byte == b'\n').next().unwrap_or(before);
    before.contains(&b'\n') && last.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

fn replace(text: &str) -> Vec<u8> {
    let body = text.trim_end_matches(['\r', '\n']);
    // The line end that it ends with already, else that of its first line.
    let line_end = match (&text[body.len()..], text.split_once('\n')) {
        ("", Some((first, _))) if first.ends_with('\r') => "\r\n",
        (tail, _) if tail.starts_with("\r\n") => "\r\n",
        _ => "\n",
    };
    [body.as_bytes(), line_end.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 262_144;

    fn appended(base: &str, text: &str) -> String {
        let planned = plan(base.as_bytes(), MemoryOperation::Append, text, MAX).unwrap();
        assert!(planned.bytes.expose().starts_with(base.as_bytes()));
        String::from_utf8(planned.bytes.into_inner()).unwrap()
    }

    fn replaced(base: &str, text: &str) -> Result<String, Reason> {
        plan(base.as_bytes(), MemoryOperation::ReplaceDocument, text, MAX)
            .map(|planned| String::from_utf8(planned.bytes.into_inner()).unwrap())
    }

    #[test]
    fn an_appended_text_stands_behind_one_blank_line_whatever_the_base_ends_with() {
        let head = "---\nid: m\n---\n";
        for (body, between) in [
            ("", "\n"),
            ("a", "\n\n"),
            ("a\n", "\n"),
            ("a\n\n", ""),
            ("a\n\n\n", ""),
            ("a\n \t\n", ""),
            ("a\n  b", "\n\n"),
        ] {
            let base = format!("{head}{body}");
            assert_eq!(appended(&base, "x"), format!("{base}{between}x\n"), "{body:?}");
        }
        assert_eq!(appended("---\nid: m\n---", "x"), "---\nid: m\n---\n\nx\n");
    }

    #[test]
    fn an_appended_text_takes_the_line_ends_of_the_first_fence_and_the_base_keeps_its_own() {
        let text = " one\r\ntwo\rthree\nfour \n\t\n";
        assert_eq!(appended("---\nid: m\n---\na\n", text), "---\nid: m\n---\na\n\n one\ntwo\nthree\nfour\n");
        assert_eq!(
            appended("---\r\nid: m\r\n---\r\na\r\n", text),
            "---\r\nid: m\r\n---\r\na\r\n\r\n one\r\ntwo\r\nthree\r\nfour\r\n"
        );
        assert_eq!(
            appended("---\r\nid: m\n---\na\nb\r\nc\n", text),
            "---\r\nid: m\n---\na\nb\r\nc\n\r\n one\r\ntwo\r\nthree\r\nfour\r\n"
        );
    }

    #[test]
    fn a_replacement_is_taken_as_given_with_one_final_line_end() {
        let base = "---\nid: m\n---\nold\n";
        for (text, expected) in [
            ("---\nid: m\n---\nnew", "---\nid: m\n---\nnew\n"),
            ("---\nid: m\n---\nnew \n\n\n", "---\nid: m\n---\nnew \n"),
            ("---\r\nid: m\r\n---\r\nnew\r\nand\n", "---\r\nid: m\r\n---\r\nnew\r\nand\n"),
            ("---\r\nid: m\r\n---\r\nnew\r\n\r\n", "---\r\nid: m\r\n---\r\nnew\r\n"),
            ("---\r\nid: m\r\n---\r\nnew", "---\r\nid: m\r\n---\r\nnew\r\n"),
        ] {
            assert_eq!(replaced(base, text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn frontmatter_is_demanded_of_the_base_and_of_the_result() {
        let good = "---\nid: m\n---\nold\n";
        for (base, text, expected) in [
            ("no head\n", good, Reason::FrontmatterMissing),
            (good, "no head\n", Reason::FrontmatterMissing),
            (good, "---\nid: m\n", Reason::FrontmatterInvalid),
            (good, "---\nid: m\nid: m\n---\n", Reason::FrontmatterInvalid),
            (good, "---\nid: &a m\nb: *a\n---\n", Reason::FrontmatterInvalid),
            (good, "---\nid: [m]\n---\n", Reason::FrontmatterInvalid),
            (good, "---\nid: 0x10\n---\n", Reason::FrontmatterInvalid),
            (good, "---\nid: m\ndescription: \"abc \"def\" ghi\"\n---\n", Reason::FrontmatterInvalid),
            (good, "\u{feff}---\nid: m\n---\n", Reason::FrontmatterInvalid),
            (good, "---\nid: other\n---\nnew\n", Reason::FrontmatterIdChanged),
            (good, "---\nid: yes\n---\nnew\n", Reason::FrontmatterIdChanged),
            (good, "\n---\nid: m\n---\n", Reason::FrontmatterMissing),
        ] {
            assert_eq!(replaced(base, text), Err(expected), "{text:?}");
        }
        let fine = "---\nid: m\ndescription: a \u{201c}quoted\u{201d} word\n---\n--- not a fence\n---\n---\n";
        assert_eq!(replaced(good, fine).unwrap(), fine);
        assert_eq!(
            plan(b"---\nid: m\n---\n\xff\n", MemoryOperation::Append, "x", MAX),
            Err(Reason::InvalidUtf8)
        );
    }

    #[test]
    fn the_bound_is_on_the_result_to_the_byte() {
        let base = "---\nid: m\n---\na\n";
        let exact = u64::try_from(appended(base, "x").len()).unwrap();
        assert!(plan(base.as_bytes(), MemoryOperation::Append, "x", exact).is_ok());
        assert_eq!(plan(base.as_bytes(), MemoryOperation::Append, "x", exact - 1), Err(Reason::TooLarge));
    }
}
