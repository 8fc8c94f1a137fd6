//! From Markdown events to text with entities.
//!
//! Blank lines between blocks are owed and paid before the next visible text, and an entity starts at its first visible
//! text, so that nothing starts or ends with white space that nobody wrote.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Tag, TagEnd};

use super::is_linkable;
use super::table::Table;
use crate::entities::{Entity, EntityKind, Formatted, is_blank, utf16_length};
use crate::limits::{LANGUAGE_CHARACTERS_MAX, LIST_INDENT_DEPTH_MAX};

/// A span or block that has begun.
struct Open {
    /// The entity it becomes, if any.
    kind: Option<EntityKind>,
    /// UTF-16 offset of its first visible text.
    start: Option<usize>,
    /// What it is, beyond the entity.
    role: Role,
}

enum Role {
    Plain,
    /// A marker that stays literal, put again at the end.
    Literal(&'static str),
    /// A link or an image: its address, its title, and where its text began.
    Link {
        address: String,
        title: String,
        text_from: usize,
    },
}

pub(super) struct Writer<'a> {
    source: &'a str,
    text: String,
    utf16: usize,
    entities: Vec<Entity>,
    open: Vec<Open>,
    newlines_owed: usize,
    /// One per list that is open: the next number, or `None` for bullets.
    lists: Vec<Option<u64>>,
    after_bullet: bool,
    /// The lines of a code or HTML block, held until it ends.
    block: Option<String>,
    table: Option<Table>,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(source: &'a str) -> Self {
        Self {
            source,
            text: String::new(),
            utf16: 0,
            entities: Vec::new(),
            open: Vec::new(),
            newlines_owed: 0,
            lists: Vec::new(),
            after_bullet: false,
            block: None,
            table: None,
        }
    }

    pub(super) fn finish(mut self) -> Formatted {
        self.text.truncate(self.text.trim_end().len());
        Formatted::new(self.text, self.entities)
    }

    pub(super) fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => match &mut self.block {
                Some(block) => block.push_str(&text),
                None => self.push(&text),
            },
            Event::Code(text) => {
                self.begin(Some(EntityKind::Code), Role::Plain);
                self.push(&text);
                self.close();
            }
            Event::SoftBreak | Event::HardBreak if self.table.is_some() => self.push(" "),
            Event::SoftBreak | Event::HardBreak => self.owe(1),
            Event::Rule => {
                self.owe(2);
                self.push("———");
                self.owe(2);
            }
            // Not enabled; should one come, its words stay.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push(&text)
            }
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => self.owe(2),
            Tag::Heading { .. } => {
                self.owe(2);
                self.begin(Some(EntityKind::Bold), Role::Plain);
            }
            Tag::BlockQuote(_) => {
                self.owe(2);
                self.begin(Some(EntityKind::Blockquote), Role::Plain);
            }
            Tag::CodeBlock(kind) => self.start_code(&kind),
            Tag::HtmlBlock => {
                self.owe(2);
                self.block = Some(String::new());
            }
            Tag::List(first) => {
                self.owe(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(first);
            }
            Tag::Item => self.start_item(&range),
            Tag::Table(_) => {
                self.owe(2);
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            Tag::Emphasis => self.start_emphasis(EntityKind::Italic, &range),
            Tag::Strong => self.start_emphasis(EntityKind::Bold, &range),
            Tag::Strikethrough => {
                // One tilde says "about" far more often than it strikes out.
                if self.source[range.start..].starts_with("~~") {
                    self.begin(Some(EntityKind::Strikethrough), Role::Plain);
                } else {
                    self.begin_literal("~");
                }
            }
            Tag::Link { link_type, dest_url, title, .. } | Tag::Image { link_type, dest_url, title, .. } => {
                self.start_link(link_type, dest_url.into_string(), title.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.owe(2),
            TagEnd::Heading(_) | TagEnd::BlockQuote(_) => {
                self.close();
                self.owe(2);
            }
            TagEnd::CodeBlock => {
                self.push_block();
                self.show_empty_code();
                self.close();
                self.owe(2);
            }
            TagEnd::HtmlBlock => {
                self.push_block();
                self.owe(2);
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.owe(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item => self.after_bullet = false,
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    table.end_cell();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.begin(Some(EntityKind::Pre { language: None }), Role::Plain);
                    self.push(&table.render());
                    self.close();
                    self.owe(2);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image => {
                self.close()
            }
            _ => {}
        }
    }

    /// Visible text is separated from what stands before it by at least this many line ends.
    fn owe(&mut self, newlines: usize) {
        if !self.after_bullet && self.table.is_none() {
            self.newlines_owed = self.newlines_owed.max(newlines);
        }
    }

    fn push(&mut self, text: &str) {
        if let Some(table) = &mut self.table {
            table.push(text);
            return;
        }
        if text.is_empty() {
            return;
        }
        self.pay(self.lists.len());
        self.after_bullet = false;
        for open in &mut self.open {
            open.start.get_or_insert(self.utf16);
        }
        self.append(text);
    }

    /// Writes the line ends owed, and the indentation of a line that goes on within a list.
    fn pay(&mut self, depth: usize) {
        let owed = std::mem::take(&mut self.newlines_owed);
        if owed == 0 || self.text.is_empty() {
            return;
        }
        self.append(&"\n".repeat(owed));
        self.append(&"  ".repeat(depth.min(LIST_INDENT_DEPTH_MAX)));
    }

    fn append(&mut self, text: &str) {
        self.text.push_str(text);
        self.utf16 += utf16_length(text);
    }

    fn begin(&mut self, kind: Option<EntityKind>, role: Role) {
        self.open.push(Open { kind, start: None, role });
    }

    fn begin_literal(&mut self, marker: &'static str) {
        self.push(marker);
        self.begin(None, Role::Literal(marker));
    }

    /// Ends the innermost span or block.
    fn close(&mut self) {
        let after = self.link_remainder();
        let Some(open) = self.open.pop() else { return };
        if let (Some(kind), Some(start)) = (open.kind, open.start) {
            self.entities.push(Entity { kind, offset: start, length: self.utf16 - start });
        }
        match open.role {
            Role::Literal(marker) => self.push(marker),
            Role::Link { .. } | Role::Plain => self.push(&after),
        }
    }

    /// What a link about to end must show behind it: its address where it does not become a link, and its title. A link
    /// without words gets its address as its words.
    fn link_remainder(&mut self) -> String {
        let Some(Open { role: Role::Link { address, title, text_from }, kind, .. }) = self.open.last() else {
            return String::new();
        };
        let (address, title, shown) = (address.clone(), title.clone(), self.shown_since(*text_from));
        let hidden = kind.is_none() || self.table.is_some();
        let mut after = String::new();
        if is_blank(&shown) {
            self.push(&address);
        } else if hidden && !address.is_empty() && shown != address {
            after = format!(" ({address})");
        }
        if !title.is_empty() {
            after = format!("{after} ({title})");
        }
        after
    }

    fn shown_since(&self, from: usize) -> String {
        let text = self.table.as_ref().map_or(self.text.as_str(), Table::cell);
        text.get(from..).unwrap_or("").trim().to_owned()
    }

    fn start_code(&mut self, kind: &CodeBlockKind<'_>) {
        self.owe(2);
        let mut block = String::new();
        let mut language = None;
        if let CodeBlockKind::Fenced(info) = kind {
            let (first, rest) = info.trim().split_once(char::is_whitespace).unwrap_or((info.trim(), ""));
            if is_language(first) {
                language = Some(first.to_owned());
                block.push_str(rest.trim());
            } else {
                block.push_str(info.trim());
            }
        }
        if !block.is_empty() {
            block.push('\n');
        }
        self.block = Some(block);
        self.begin(Some(EntityKind::Pre { language }), Role::Plain);
    }

    fn push_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.push(block.trim_start_matches('\n').trim_end());
        }
    }

    /// A code block without code has its label as its text: an opening fence at the end of an answer has swallowed it.
    fn show_empty_code(&mut self) {
        if let Some(Open { kind: Some(EntityKind::Pre { language }), start: None, .. }) = self.open.last_mut()
            && let Some(label) = language.take()
        {
            self.push(&label);
        }
    }

    fn start_item(&mut self, range: &Range<usize>) {
        self.owe(1);
        // The number as it was written: a list that counts 1, 5, 9 means it.
        let written: String = self.source[range.start..].chars().take_while(char::is_ascii_digit).collect();
        let bullet = match self.lists.last_mut() {
            Some(Some(next)) => {
                let number = if written.is_empty() { next.to_string() } else { written };
                *next = next.saturating_add(1);
                format!("{number}. ")
            }
            _ => String::from("• "),
        };
        self.pay(self.lists.len().saturating_sub(1));
        for open in &mut self.open {
            open.start.get_or_insert(self.utf16);
        }
        self.append(&bullet);
        self.after_bullet = true;
    }

    /// Emphasis between letters or digits (`2*3*4`) is arithmetic, not emphasis: its markers stay.
    fn start_emphasis(&mut self, kind: EntityKind, range: &Range<usize>) {
        let before = self.source[..range.start].chars().next_back();
        let after = self.source[range.end..].chars().next();
        let within_word = [before, after].iter().all(|c| c.is_some_and(|c| c.is_ascii_alphanumeric()));
        match (within_word, &kind) {
            (true, EntityKind::Bold) => self.begin_literal("**"),
            (true, _) => self.begin_literal("*"),
            (false, _) => self.begin(Some(kind), Role::Plain),
        }
    }

    fn start_link(&mut self, link_type: LinkType, address: String, title: String) {
        // A bare address links itself.
        if matches!(link_type, LinkType::Autolink | LinkType::Email) {
            self.begin(None, Role::Plain);
            return;
        }
        let within = self.open.iter().any(|open| matches!(open.kind, Some(EntityKind::TextLink { .. })));
        let kind = (is_linkable(&address) && !within).then(|| EntityKind::TextLink { url: address.clone() });
        let text_from = self.table.as_ref().map_or(self.text.len(), |table| table.cell().len());
        self.begin(kind, Role::Link { address, title, text_from });
    }
}

fn is_language(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= LANGUAGE_CHARACTERS_MAX
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-#._".contains(&byte))
}
