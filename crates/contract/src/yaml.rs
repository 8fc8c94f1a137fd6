//! A small, strict reader of YAML 1.2, for declarations and for the frontmatter of documents.
//!
//! Owns the way from text to a tree that remembers its lines, and the core schema that says what a plain scalar is. It
//! accepts one document of scalars, sequences and mappings and nothing that makes a reader guess: no duplicate key, no
//! anchor, alias, tag or directive. It never puts the text it read into an error, never repairs, and never follows
//! what is nested deeper or longer than its bounds.

use std::collections::HashSet;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// Longest text that is read, bytes.
pub const YAML_BYTES_MAX: usize = 256 * 1024;
/// Deepest nesting of sequences and mappings.
pub const YAML_DEPTH_MAX: usize = 32;
/// Most nodes of one document, keys included.
pub const YAML_NODES_MAX: usize = 16_384;

/// Where something stands: both counted from 1. Order is the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line of the text, from 1.
    pub line: usize,
    /// Character of the line, from 1.
    pub column: usize,
}

/// One node of a document, with the place where it begins.
///
/// It may hold a person's words, so its `Debug` shows kinds and places alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    /// What the node is.
    pub value: NodeValue,
    /// Where it begins.
    pub position: Position,
}

/// The three kinds of node.
#[derive(Clone, PartialEq, Eq)]
pub enum NodeValue {
    /// Text, quoted or plain.
    Scalar(Scalar),
    /// A list, in the order written.
    Sequence(Vec<Node>),
    /// Keys and values in the order written; every key is a scalar and no two are equal.
    Mapping(Vec<(Node, Node)>),
}

/// A scalar as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct Scalar {
    /// The text after unescaping and folding.
    pub text: String,
    /// Whether the core schema may make anything but a string of it.
    pub style: Style,
}

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Bare: resolved by the core schema.
    Plain,
    /// In quotes or as a block: a string whatever it says.
    Quoted,
}

/// What the core schema of YAML 1.2 makes of a scalar. `yes`, `on` and dates are strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved<'a> {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer in decimal, `0o` or `0x` form.
    Int(i64),
    /// A number that is no 64-bit integer.
    OtherNumber,
    /// Anything else, and all that is quoted.
    Str(&'a str),
}

/// Why a text was refused. It never says what the text was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum YamlErrorKind {
    /// It begins with a byte order mark.
    #[error("a byte order mark")]
    ByteOrderMark,
    /// A control character, a surrogate stand-in or another character that YAML does not print.
    #[error("a character that YAML does not allow")]
    Character,
    /// More than [`YAML_BYTES_MAX`] bytes.
    #[error("too long")]
    TooLong,
    /// More than [`YAML_DEPTH_MAX`] levels.
    #[error("nested too deep")]
    TooDeep,
    /// More than [`YAML_NODES_MAX`] nodes.
    #[error("too many nodes")]
    TooManyNodes,
    /// It is not YAML.
    #[error("not valid YAML")]
    Syntax,
    /// There is no document.
    #[error("nothing but white space and comments")]
    Empty,
    /// A second document begins.
    #[error("more than one document")]
    SecondDocument,
    /// A `%` directive.
    #[error("a directive")]
    Directive,
    /// An anchor.
    #[error("an anchor")]
    Anchor,
    /// An alias.
    #[error("an alias")]
    Alias,
    /// A tag.
    #[error("a tag")]
    Tag,
    /// The same key twice in one mapping.
    #[error("a duplicate key")]
    DuplicateKey,
    /// A key that is a list or a mapping.
    #[error("a key that is no scalar")]
    KeyNotScalar,
}

/// A refused text: the reason and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read YAML: line {}, column {}: {kind}", position.line, position.column)]
pub struct YamlError {
    /// Why.
    pub kind: YamlErrorKind,
    /// Where.
    pub position: Position,
}

/// Reads the one document of a text.
///
/// # Errors
/// [`YamlError`] for whatever is not a single document of plain nodes within the bounds of this module.
pub fn load(text: &str) -> Result<Node, YamlError> {
    check_characters(text)?;
    check_directives(text)?;
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder { lines: lines_of(text), ..Builder::default() };
    loop {
        match parser.next_event() {
            Some(Ok((event, span))) => {
                let end = matches!(event, Event::StreamEnd);
                builder.take(event, span)?;
                if end {
                    break;
                }
            }
            Some(Err(error)) => {
                let marker = error.marker();
                let at = position_of(marker.line().min(builder.lines), marker.col());
                return Err(refusal(YamlErrorKind::Syntax, at));
            }
            None => break,
        }
    }
    builder.root.ok_or_else(|| refusal(YamlErrorKind::Empty, position_of(1, 1)))
}

fn refusal(kind: YamlErrorKind, position: Position) -> YamlError {
    YamlError { kind, position }
}

/// Lines as YAML counts them: a carriage return ends one too, alone or before a line feed.
fn lines_of(text: &str) -> usize {
    text.matches(['\n', '\r']).count() - text.matches("\r\n").count() + 1
}

/// A parser's columns begin at 0 on some lines; ours never do.
fn position_of(line: usize, column: usize) -> Position {
    Position { line: line.max(1), column: column.max(1) }
}

/// The parser takes U+0000 for the end of its input and lets other controls pass; YAML allows neither.
fn check_characters(text: &str) -> Result<(), YamlError> {
    if text.len() > YAML_BYTES_MAX {
        return Err(refusal(YamlErrorKind::TooLong, position_of(1, 1)));
    }
    if text.starts_with('\u{feff}') {
        return Err(refusal(YamlErrorKind::ByteOrderMark, position_of(1, 1)));
    }
    let (mut line, mut column) = (1, 1);
    for character in text.chars() {
        let allowed = matches!(character,
            '\t' | '\n' | '\r' | '\u{20}'..='\u{7e}' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
        if !allowed {
            return Err(refusal(YamlErrorKind::Character, position_of(line, column)));
        }
        if character == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    Ok(())
}

/// Directives stand before the document, so the first line that is neither blank nor a comment decides.
fn check_directives(text: &str) -> Result<(), YamlError> {
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('%') {
            return Err(refusal(YamlErrorKind::Directive, position_of(index + 1, 1)));
        }
        let bare = line.trim_start();
        if !bare.is_empty() && !bare.starts_with('#') {
            return Ok(());
        }
    }
    Ok(())
}

/// A collection that is still open.
struct Open {
    position: Position,
    items: Items,
}

enum Items {
    Sequence(Vec<Node>),
    Mapping { pairs: Vec<(Node, Node)>, key: Option<Node>, seen: HashSet<String> },
}

#[derive(Default)]
struct Builder {
    /// Lines of the text. Where it ends too early, the parser names one behind the last.
    lines: usize,
    stack: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let at = position_of(span.start.line().min(self.lines), span.start.col() + 1);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { Err(refusal(YamlErrorKind::SecondDocument, at)) } else { Ok(()) }
            }
            Event::Alias(_) => Err(refusal(YamlErrorKind::Alias, at)),
            Event::Scalar(text, style, anchor, tag) => {
                check_bare(anchor, tag.is_some(), at)?;
                let style = if style == ScalarStyle::Plain { Style::Plain } else { Style::Quoted };
                let scalar = Scalar { text: text.into_owned(), style };
                self.place(Node { value: NodeValue::Scalar(scalar), position: at })
            }
            Event::SequenceStart(anchor, tag) => {
                check_bare(anchor, tag.is_some(), at)?;
                self.open(Open { position: at, items: Items::Sequence(Vec::new()) })
            }
            Event::MappingStart(anchor, tag) => {
                check_bare(anchor, tag.is_some(), at)?;
                let items = Items::Mapping { pairs: Vec::new(), key: None, seen: HashSet::new() };
                self.open(Open { position: at, items })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
        }
    }

    fn open(&mut self, open: Open) -> Result<(), YamlError> {
        if self.stack.len() >= YAML_DEPTH_MAX {
            return Err(refusal(YamlErrorKind::TooDeep, open.position));
        }
        if let Some(Open { items: Items::Mapping { key: None, .. }, .. }) = self.stack.last() {
            return Err(refusal(YamlErrorKind::KeyNotScalar, open.position));
        }
        self.stack.push(open);
        Ok(())
    }

    fn close(&mut self, at: Position) -> Result<(), YamlError> {
        let Some(open) = self.stack.pop() else {
            return Err(refusal(YamlErrorKind::Syntax, at));
        };
        let value = match open.items {
            Items::Sequence(items) => NodeValue::Sequence(items),
            Items::Mapping { pairs, key: None, .. } => NodeValue::Mapping(pairs),
            Items::Mapping { key: Some(_), .. } => return Err(refusal(YamlErrorKind::Syntax, at)),
        };
        self.place(Node { value, position: open.position })
    }

    /// Puts a whole node where the innermost open collection wants it.
    fn place(&mut self, node: Node) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > YAML_NODES_MAX {
            return Err(refusal(YamlErrorKind::TooManyNodes, node.position));
        }
        match self.stack.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(node),
            Some(Items::Sequence(items)) => items.push(node),
            Some(Items::Mapping { pairs, key, seen }) => match key.take() {
                Some(name) => pairs.push((name, node)),
                None => {
                    let NodeValue::Scalar(scalar) = &node.value else {
                        return Err(refusal(YamlErrorKind::KeyNotScalar, node.position));
                    };
                    if !seen.insert(key_identity(scalar)) {
                        return Err(refusal(YamlErrorKind::DuplicateKey, node.position));
                    }
                    *key = Some(node);
                }
            },
        }
        Ok(())
    }
}

fn check_bare(anchor: usize, tagged: bool, at: Position) -> Result<(), YamlError> {
    if anchor != 0 {
        return Err(refusal(YamlErrorKind::Anchor, at));
    }
    if tagged {
        return Err(refusal(YamlErrorKind::Tag, at));
    }
    Ok(())
}

/// Two keys are the same when they resolve to the same value: `1` and `0x1` are, `1` and `"1"` are not.
fn key_identity(scalar: &Scalar) -> String {
    match scalar.resolve() {
        Resolved::Null => "null".to_owned(),
        Resolved::Bool(value) => format!("bool {value}"),
        Resolved::Int(value) => format!("int {value}"),
        Resolved::OtherNumber => format!("number {}", scalar.text),
        Resolved::Str(text) => format!("str {text}"),
    }
}

impl Scalar {
    /// The value under the core schema of YAML 1.2.
    pub fn resolve(&self) -> Resolved<'_> {
        if self.style == Style::Quoted {
            return Resolved::Str(&self.text);
        }
        match self.text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
            "true" | "True" | "TRUE" => Resolved::Bool(true),
            "false" | "False" | "FALSE" => Resolved::Bool(false),
            text => number(text).unwrap_or(Resolved::Str(text)),
        }
    }
}

fn number(text: &str) -> Option<Resolved<'_>> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_digit(radix))
        {
            return Some(integer(i64::from_str_radix(digits, radix)));
        }
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Some(integer(text.parse()));
    }
    let special = matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN");
    (special || is_float(unsigned)).then_some(Resolved::OtherNumber)
}

fn integer(parsed: Result<i64, std::num::ParseIntError>) -> Resolved<'static> {
    parsed.map_or(Resolved::OtherNumber, Resolved::Int)
}

/// `( \. digits | digits ( \. digits? )? ) ( [eE] [-+]? digits )?`
fn is_float(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(|part| digits(part.strip_prefix(['-', '+']).unwrap_or(part)))
}

impl Node {
    /// The line on which the node begins, from 1.
    pub fn line(&self) -> usize {
        self.position.line
    }

    /// What the core schema makes of it; absent for a list or a mapping.
    pub fn resolve(&self) -> Option<Resolved<'_>> {
        match &self.value {
            NodeValue::Scalar(scalar) => Some(scalar.resolve()),
            NodeValue::Sequence(_) | NodeValue::Mapping(_) => None,
        }
    }

    /// The text, if the node is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self.resolve() {
            Some(Resolved::Str(text)) => Some(text),
            _ => None,
        }
    }

    /// The value, if the node is `true` or `false`.
    pub fn as_bool(&self) -> Option<bool> {
        match self.resolve() {
            Some(Resolved::Bool(value)) => Some(value),
            _ => None,
        }
    }

    /// The value, if the node is a 64-bit integer.
    pub fn as_int(&self) -> Option<i64> {
        match self.resolve() {
            Some(Resolved::Int(value)) => Some(value),
            _ => None,
        }
    }

    /// Whether the node is empty, `~` or `null`.
    pub fn is_null(&self) -> bool {
        self.resolve() == Some(Resolved::Null)
    }

    /// The items, if the node is a list.
    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.value {
            NodeValue::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The keys and values, if the node is a mapping.
    pub fn as_mapping(&self) -> Option<&[(Node, Node)]> {
        match &self.value {
            NodeValue::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The value under a string key of a mapping.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.as_mapping()?.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, count) = match &self.value {
            NodeValue::Scalar(scalar) => ("scalar", scalar.text.len()),
            NodeValue::Sequence(items) => ("sequence", items.len()),
            NodeValue::Mapping(pairs) => ("mapping", pairs.len()),
        };
        write!(f, "Node({kind} of {count} at {}:{})", self.position.line, self.position.column)
    }
}
