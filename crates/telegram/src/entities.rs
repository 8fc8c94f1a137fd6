//! Text with entities: what a message carries instead of markup.
//!
//! Owns the two types and the arithmetic on UTF-16 offsets: slicing, trimming, and the rules by which entities may
//! overlap. An entity is never empty, never leaves its text and never splits a surrogate pair.

use std::fmt;
use std::ops::Range;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// What an entity does to its stretch of text. `Debug` shows no URL and no label: both are content.
#[derive(Clone, PartialEq, Eq)]
pub enum EntityKind {
    /// Bold text; headings too.
    Bold,
    /// Italic text.
    Italic,
    /// Struck-out text.
    Strikethrough,
    /// Code within a line.
    Code,
    /// A block of code, or a table.
    Pre {
        /// The label of the block, at most [`crate::limits::LANGUAGE_CHARACTERS_MAX`] characters.
        language: Option<String>,
    },
    /// A link under other words.
    TextLink {
        /// `http`, `https`, `tg` or `mailto`, nothing else.
        url: String,
    },
    /// A quotation; these do not nest.
    Blockquote,
}

impl EntityKind {
    /// The name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bold => "bold",
            Self::Italic => "italic",
            Self::Strikethrough => "strikethrough",
            Self::Code => "code",
            Self::Pre { .. } => "pre",
            Self::TextLink { .. } => "text_link",
            Self::Blockquote => "blockquote",
        }
    }

    /// A number for each kind.
    const fn number(&self) -> u8 {
        match self {
            Self::TextLink { .. } => 0,
            Self::Pre { .. } => 1,
            Self::Code => 2,
            Self::Blockquote => 3,
            Self::Bold => 4,
            Self::Strikethrough => 5,
            Self::Italic => 6,
        }
    }

    const fn is_style(&self) -> bool {
        matches!(self, Self::Bold | Self::Italic | Self::Strikethrough)
    }

    const fn is_code(&self) -> bool {
        matches!(self, Self::Code | Self::Pre { .. })
    }
}

impl fmt::Debug for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One stretch of a text, in UTF-16 units from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// What it does.
    pub kind: EntityKind,
    /// First unit.
    pub offset: usize,
    /// Units, at least one.
    pub length: usize,
}

impl Entity {
    /// One past the last unit.
    pub const fn end(&self) -> usize {
        self.offset + self.length
    }
}

impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("length", &self.length)?;
        match &self.kind {
            EntityKind::Pre { language: Some(language) } => map.serialize_entry("language", language)?,
            EntityKind::TextLink { url } => map.serialize_entry("url", url)?,
            _ => {}
        }
        map.end()
    }
}

/// A text and its entities. `Debug` shows lengths alone.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Formatted {
    text: String,
    entities: Vec<Entity>,
}

impl fmt::Debug for Formatted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Formatted({} bytes, {} entities)", self.text.len(), self.entities.len())
    }
}

impl Formatted {
    /// Text without entities.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), entities: Vec::new() }
    }

    /// Text with entities, which are brought into the form that the Bot API demands: inside the text, ordered, code
    /// free of styles, no quotation in a quotation, no link around code, nothing doubled or empty.
    pub fn new(text: String, entities: Vec<Entity>) -> Self {
        let entities = normalised(&text, entities);
        Self { text, entities }
    }

    /// The text a person sees.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The entities, by offset, the outer before the inner.
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// Length in UTF-16 units.
    pub fn utf16_length(&self) -> usize {
        utf16_length(&self.text)
    }

    /// The same text without entities, for a message whose entities were refused.
    #[must_use]
    pub fn without_entities(&self) -> Self {
        Self::plain(self.text.clone())
    }

    /// The same with a plain line of its own at the end.
    #[must_use]
    pub fn with_line(mut self, line: &str) -> Self {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(line);
        self
    }

    /// The bytes of `range` (on character boundaries) with what the entities have there. `utf16_start` is the UTF-16
    /// offset of `range.start`. Entities that hold nothing visible in the slice are left out.
    pub(crate) fn slice(&self, range: Range<usize>, utf16_start: usize) -> Self {
        let text = &self.text[range];
        let utf16_end = utf16_start + utf16_length(text);
        let map = Utf16Map::of(text);
        let mut entities = Vec::new();
        // Sorted by offset: what starts behind the slice ends the search.
        for entity in self.entities.iter().take_while(|entity| entity.offset < utf16_end) {
            let from = entity.offset.max(utf16_start);
            let to = entity.end().min(utf16_end);
            if from < to && !is_blank(map.slice(text, from - utf16_start, to - utf16_start)) {
                entities.push(Entity {
                    kind: entity.kind.clone(),
                    offset: from - utf16_start,
                    length: to - from,
                });
            }
        }
        Self { text: text.to_owned(), entities }
    }
}

/// Length of a text in UTF-16 units.
pub fn utf16_length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Whether a text shows nothing: white space, controls and the characters that Telegram counts as empty.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
                | '\u{2800}' | '\u{3164}' | '\u{feff}')
    })
}

/// From UTF-16 offsets of a text to its bytes, for offsets on character boundaries.
struct Utf16Map {
    /// Byte of each unit; a low surrogate has its character's end, so that a slice never splits a pair.
    bytes: Vec<usize>,
}

impl Utf16Map {
    fn of(text: &str) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        for (index, c) in text.char_indices() {
            bytes.push(index);
            if c.len_utf16() == 2 {
                bytes.push(index + c.len_utf8());
            }
        }
        bytes.push(text.len());
        Self { bytes }
    }

    fn len(&self) -> usize {
        self.bytes.len() - 1
    }

    fn slice<'a>(&self, text: &'a str, from: usize, to: usize) -> &'a str {
        &text[self.bytes[from.min(self.len())]..self.bytes[to.min(self.len())]]
    }
}

/// The Bot API's rules for overlap, applied once to a whole text.
fn normalised(text: &str, mut entities: Vec<Entity>) -> Vec<Entity> {
    let map = Utf16Map::of(text);
    entities.retain_mut(|entity| {
        let end = entity.end().min(map.len());
        entity.length = end.saturating_sub(entity.offset);
        entity.length > 0 && !is_blank(map.slice(text, entity.offset, end))
    });
    sort(&mut entities);
    let links = ranges(&entities, |kind| matches!(kind, EntityKind::TextLink { .. }));
    // Within a link, the address is worth more than the look.
    entities
        .retain(|entity| !(entity.kind.is_code() && overlaps_any(&links, &(entity.offset..entity.end()))));
    let code = ranges(&entities, EntityKind::is_code);
    let mut kept: Vec<Entity> = Vec::with_capacity(entities.len());
    // Per kind that must not nest, how far the last one kept reaches.
    let mut reach: [usize; 7] = [0; 7];
    for entity in entities {
        let end = entity.end();
        let reached = &mut reach[usize::from(entity.kind.number())];
        if end <= *reached || (entity.offset < *reached && !entity.kind.is_style()) {
            continue;
        }
        let from = entity.offset.max(*reached);
        *reached = end;
        if entity.kind.is_style() {
            for part in without(from..end, &code) {
                if !is_blank(map.slice(text, part.start, part.end)) {
                    kept.push(Entity { kind: entity.kind.clone(), offset: part.start, length: part.len() });
                }
            }
        } else {
            kept.push(entity);
        }
    }
    sort(&mut kept);
    kept
}

fn sort(entities: &mut [Entity]) {
    // Of two that cover the same, the one that may hold the other is the outer: quotations before links before code.
    let depth = |kind: &EntityKind| match kind {
        EntityKind::Blockquote => 0,
        EntityKind::Bold | EntityKind::Italic | EntityKind::Strikethrough => 1,
        EntityKind::TextLink { .. } => 2,
        EntityKind::Code | EntityKind::Pre { .. } => 3,
    };
    entities.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length, depth(&entity.kind)));
}

fn ranges(entities: &[Entity], wanted: impl Fn(&EntityKind) -> bool) -> Vec<Range<usize>> {
    entities.iter().filter(|entity| wanted(&entity.kind)).map(|entity| entity.offset..entity.end()).collect()
}

/// Whether any of the ordered ranges that do not overlap one another meets this one.
fn overlaps_any(ranges: &[Range<usize>], range: &Range<usize>) -> bool {
    let first = ranges.partition_point(|other| other.end <= range.start);
    ranges.get(first).is_some_and(|other| other.start < range.end)
}

/// What is left of a range when the ordered holes are cut out.
fn without(range: Range<usize>, holes: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = range.start;
    let first = holes.partition_point(|hole| hole.end <= range.start);
    for hole in holes[first..].iter().take_while(|hole| hole.start < range.end) {
        if from < hole.start {
            parts.push(from..hole.start);
        }
        from = from.max(hole.end);
    }
    if from < range.end {
        parts.push(from..range.end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(kind: EntityKind, offset: usize, length: usize) -> Entity {
        Entity { kind, offset, length }
    }

    #[test]
    fn a_style_is_cut_around_code_and_never_doubled() {
        let text = String::from("one two three");
        let made = Formatted::new(
            text,
            vec![
                entity(EntityKind::Bold, 0, 13),
                entity(EntityKind::Bold, 8, 5),
                entity(EntityKind::Code, 4, 3),
            ],
        );
        let seen: Vec<_> = made.entities().iter().map(|e| (e.kind.name(), e.offset, e.length)).collect();
        assert_eq!(seen, [("bold", 0, 4), ("code", 4, 3), ("bold", 7, 6)]);
    }

    #[test]
    fn entities_outside_the_text_or_without_anything_visible_are_left_out() {
        let made = Formatted::new(
            String::from("a   b"),
            vec![
                entity(EntityKind::Bold, 1, 2),
                entity(EntityKind::Italic, 4, 90),
                entity(EntityKind::Code, 70, 1),
            ],
        );
        let seen: Vec<_> = made.entities().iter().map(|e| (e.kind.name(), e.offset, e.length)).collect();
        assert_eq!(seen, [("italic", 4, 1)]);
    }

    #[test]
    fn quotations_do_not_nest_and_links_win_over_code() {
        let link = EntityKind::TextLink { url: String::from("https://a.example") };
        let made = Formatted::new(
            String::from("quoted code"),
            vec![
                entity(EntityKind::Blockquote, 0, 11),
                entity(EntityKind::Blockquote, 2, 4),
                entity(link.clone(), 7, 4),
                entity(EntityKind::Code, 7, 4),
            ],
        );
        assert_eq!(made.entities(), [entity(EntityKind::Blockquote, 0, 11), entity(link, 7, 4)]);
    }

    #[test]
    fn debug_shows_no_words_and_no_address() {
        let made = Formatted::new(
            String::from("canary words"),
            vec![entity(EntityKind::TextLink { url: String::from("https://canary.example") }, 0, 6)],
        );
        assert!(!format!("{made:?} {:?}", made.entities()).contains("canary"));
    }

    #[test]
    fn the_wire_form_has_the_names_of_the_bot_api() {
        let made = serde_json::to_value([
            entity(EntityKind::Pre { language: Some(String::from("rust")) }, 0, 2),
            entity(EntityKind::TextLink { url: String::from("https://a.example") }, 3, 4),
            entity(EntityKind::Blockquote, 8, 1),
        ])
        .unwrap();
        let wanted = serde_json::json!([
            {"type": "pre", "offset": 0, "length": 2, "language": "rust"},
            {"type": "text_link", "offset": 3, "length": 4, "url": "https://a.example"},
            {"type": "blockquote", "offset": 8, "length": 1},
        ]);
        assert_eq!(made, wanted);
    }
}
