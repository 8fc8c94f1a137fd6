//! The frontmatter of a document: the fenced head that gives a file its identity.
//!
//! Owns one rule for every file and every line end. It reads and refuses; it never rewrites a byte, never guesses an
//! id, and never tells in an error what the file said.

use std::fmt;

use crate::yaml::{self, Resolved, YamlErrorKind};

/// The line end of a document: that of its first fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
}

impl LineEnd {
    /// The characters themselves.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// What the head of a document says. `Debug` shows the id's length only: the file is a person's.
#[derive(Clone, PartialEq, Eq)]
pub struct Frontmatter {
    /// The identity of the document: a string, taken as written, with at least one character that is no white space.
    pub id: String,
    /// Where the body begins, bytes: behind the line end of the closing fence.
    pub body_offset: usize,
    /// The line end of the first fence.
    pub line_end: LineEnd,
}

impl fmt::Debug for Frontmatter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontmatter")
            .field("id_length", &self.id.len())
            .field("body_offset", &self.body_offset)
            .field("line_end", &self.line_end)
            .finish()
    }
}

/// Why a document has no usable frontmatter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    /// The file does not begin with a line that is exactly `---`.
    #[error("read frontmatter: the file does not begin with a line of exactly three hyphens")]
    Missing,
    /// It begins like frontmatter and is none.
    #[error("read frontmatter: line {line}: {why}")]
    Invalid {
        /// What is wrong, in fixed words.
        why: &'static str,
        /// Line of the file, from 1.
        line: usize,
    },
    /// The file is not UTF-8.
    #[error("read frontmatter: the file is not UTF-8")]
    InvalidUtf8,
}

impl FrontmatterError {
    /// The reason code of a materialization that ends here.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "frontmatter-missing",
            Self::Invalid { .. } => "frontmatter-invalid",
            Self::InvalidUtf8 => "invalid-utf8",
        }
    }
}

/// Reads the frontmatter of a whole file.
///
/// The file begins with exactly `---` and LF or CRLF, and the head ends at the first line that is exactly `---`. What
/// stands between is one YAML 1.2 mapping without duplicate keys, anchors, aliases, tags or document markers, and its
/// `id` is a string. Lines end with LF or CRLF, mixed as they like; a lone CR in the head, which YAML would take for a
/// line end of its own, is refused.
///
/// # Errors
/// [`FrontmatterError`], which names a line and never the text.
pub fn read(bytes: &[u8]) -> Result<Frontmatter, FrontmatterError> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => return Err(FrontmatterError::InvalidUtf8),
    };
    if text.starts_with('\u{feff}') {
        return Err(invalid("the file begins with a byte order mark", 1));
    }
    let (line_end, head_offset) = if text.starts_with("---\n") {
        (LineEnd::Lf, 4)
    } else if text.starts_with("---\r\n") {
        (LineEnd::CrLf, 5)
    } else {
        return Err(FrontmatterError::Missing);
    };
    let head = find_head(text, head_offset)?;
    let id = read_id(&text[head_offset..head.end])?;
    Ok(Frontmatter { id, body_offset: head.body_offset, line_end })
}

struct Head {
    /// Where the closing fence begins, bytes.
    end: usize,
    /// Where the line after it begins, bytes.
    body_offset: usize,
}

fn find_head(text: &str, head_offset: usize) -> Result<Head, FrontmatterError> {
    let mut offset = head_offset;
    for (index, whole) in text[head_offset..].split_inclusive('\n').enumerate() {
        let bare = whole.strip_suffix('\n').unwrap_or(whole);
        let line = match bare.strip_suffix('\r') {
            Some(line) if bare.len() < whole.len() => line,
            _ => bare,
        };
        if line == "---" {
            return Ok(Head { end: offset, body_offset: offset + whole.len() });
        }
        // Line 1 is the fence.
        let number = index + 2;
        if line.contains('\r') {
            return Err(invalid("a carriage return that ends no line", number));
        }
        if is_marker(line) {
            return Err(invalid("a document marker inside the frontmatter", number));
        }
        offset += whole.len();
    }
    Err(invalid("no closing line of exactly three hyphens", 1))
}

/// YAML would begin or end a document at such a line.
fn is_marker(line: &str) -> bool {
    ["---", "..."]
        .into_iter()
        .filter_map(|marker| line.strip_prefix(marker))
        .any(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn read_id(head: &str) -> Result<String, FrontmatterError> {
    let root = match yaml::load(head) {
        Ok(root) => root,
        Err(error) => return Err(invalid(words(error.kind), error.position.line + 1)),
    };
    if root.as_mapping().is_none() {
        return Err(invalid("the frontmatter is not a mapping", root.line() + 1));
    }
    let Some(id) = root.get("id") else {
        return Err(invalid("the id is missing", 1));
    };
    match id.resolve() {
        Some(Resolved::Str(text)) if text.trim().is_empty() => Err(invalid("the id is empty", id.line() + 1)),
        Some(Resolved::Str(text)) => Ok(text.to_owned()),
        _ => Err(invalid("the id is not a string", id.line() + 1)),
    }
}

fn words(kind: YamlErrorKind) -> &'static str {
    match kind {
        YamlErrorKind::ByteOrderMark => "a byte order mark in the frontmatter",
        YamlErrorKind::Character => "a character that YAML does not allow",
        YamlErrorKind::TooLong => "the frontmatter is too long",
        YamlErrorKind::TooDeep => "the frontmatter is nested too deep",
        YamlErrorKind::TooManyNodes => "the frontmatter has too many entries",
        YamlErrorKind::Syntax => "the frontmatter is not valid YAML",
        YamlErrorKind::Empty => "the frontmatter is empty",
        YamlErrorKind::SecondDocument => "more than one document in the frontmatter",
        YamlErrorKind::Directive => "a directive in the frontmatter",
        YamlErrorKind::Anchor => "an anchor in the frontmatter",
        YamlErrorKind::Alias => "an alias in the frontmatter",
        YamlErrorKind::Tag => "a tag in the frontmatter",
        YamlErrorKind::DuplicateKey => "a duplicate key in the frontmatter",
        YamlErrorKind::KeyNotScalar => "a key that is no scalar in the frontmatter",
    }
}

fn invalid(why: &'static str, line: usize) -> FrontmatterError {
    FrontmatterError::Invalid { why, line }
}
