//! Text in rows as wide as the terminal, page by page, with the place in it. Every character can be reached.
//!
//! Content stands behind a gutter, so that no line of it can pass for a line of the program, and holds no character that
//! a terminal would act on. Pure: it asks no terminal anything.

use crate::print::Tint;

/// Stands in front of every row of content.
const GUTTER: &str = "| ";
/// Columns of a tab, written as blanks.
const TAB_COLUMNS: usize = 4;
/// Narrowest and lowest window that is laid out for; a smaller one wraps by itself.
const COLUMNS_MIN: usize = 20;
const ROWS_MIN: usize = 4;
/// Rows of the page that the place and the keys take.
const ROWS_KEPT: usize = 3;

/// A row on the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the line does that it is of.
    pub tint: Tint,
    /// What stands there.
    pub text: String,
}

/// Size of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

impl Window {
    /// What is laid out for where the terminal does not say.
    pub const UNKNOWN: Self = Self { rows: 24, columns: 80 };
}

/// Rows being laid out.
#[derive(Debug)]
pub struct Rows {
    window: Window,
    rows: Vec<Row>,
}

impl Rows {
    /// No rows yet.
    pub const fn of(window: Window) -> Self {
        Self { window, rows: Vec::new() }
    }

    /// A line of the program's own.
    pub fn heading(&mut self, text: &str) {
        self.rows.push(Row { tint: Tint::Plain, text: text.to_owned() });
    }

    /// A line of content, in as many rows as it takes. What hides in it was written out before.
    pub fn content(&mut self, tint: Tint, line: &str) {
        let room = self.window.columns.max(COLUMNS_MIN) - GUTTER.len();
        let mut row = String::new();
        let mut used = 0;
        for character in line.chars() {
            let (piece, columns) = match character {
                '\t' => (None, TAB_COLUMNS),
                other => (Some(other), columns(other)),
            };
            if used + columns > room {
                self.push_content(tint, &row);
                row.clear();
                used = 0;
            }
            match piece {
                Some(character) => row.push(character),
                None => row.extend(std::iter::repeat_n(' ', TAB_COLUMNS)),
            }
            used += columns;
        }
        self.push_content(tint, &row);
    }

    fn push_content(&mut self, tint: Tint, text: &str) {
        self.rows.push(Row { tint, text: format!("{GUTTER}{text}") });
    }

    /// The pages of these rows.
    pub fn pages(self) -> Pages {
        let page = self.window.rows.max(ROWS_MIN + ROWS_KEPT) - ROWS_KEPT;
        let mut pages = Pages { rows: self.rows, page, top: 0, seen: Seen::NotAll };
        pages.look();
        pages
    }
}

/// Columns that a character takes at most. What may be wide counts as wide: a row must never be longer than the window.
const fn columns(character: char) -> usize {
    // The first wide characters there are begin here.
    if (character as u32) < 0x1100 { 1 } else { 2 }
}

/// Whether the end was on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was.
    All,
    /// Something stands behind what was shown.
    NotAll,
}

/// A way through the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// One page on.
    On,
    /// One page back.
    Back,
    /// To the first page.
    Begin,
    /// To the last page.
    End,
}

/// Rows in pages, with the one that is shown.
#[derive(Debug, Clone)]
pub struct Pages {
    rows: Vec<Row>,
    page: usize,
    top: usize,
    seen: Seen,
}

impl Pages {
    /// The rows of the page that is shown.
    pub fn shown(&self) -> &[Row] {
        &self.rows[self.top..self.bottom()]
    }

    /// The place: `lines 1–21 of 812`.
    pub fn place(&self) -> String {
        format!("lines {}–{} of {}", self.top + 1, self.bottom(), self.rows.len())
    }

    /// Whether the end was shown, now or before.
    pub const fn seen(&self) -> Seen {
        self.seen
    }

    /// Turns the pages; whether that shows another page.
    pub fn turn(&mut self, turn: Turn) -> bool {
        let last = self.rows.len().saturating_sub(self.page);
        let top = match turn {
            Turn::On => (self.top + self.page).min(last),
            Turn::Back => self.top.saturating_sub(self.page),
            Turn::Begin => 0,
            Turn::End => last,
        };
        let turned = top != self.top;
        self.top = top;
        self.look();
        turned
    }

    fn bottom(&self) -> usize {
        (self.top + self.page).min(self.rows.len())
    }

    fn look(&mut self) {
        if self.bottom() == self.rows.len() {
            self.seen = Seen::All;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(window: Window, lines: &[&str]) -> Pages {
        let mut rows = Rows::of(window);
        for line in lines {
            rows.content(Tint::Plain, line);
        }
        rows.pages()
    }

    fn texts(pages: &Pages) -> Vec<&str> {
        pages.shown().iter().map(|row| row.text.as_str()).collect()
    }

    #[test]
    fn report_19_every_character_of_the_longest_line_is_reached_by_going_on() {
        let line = format!("{}hostile", "x".repeat(32_761));
        let mut pages = pages(Window { rows: 24, columns: 80 }, &[&line]);
        assert_eq!((pages.seen(), pages.place()), (Seen::NotAll, "lines 1–21 of 421".to_owned()));
        let mut all = String::new();
        let mut behind = 0;
        loop {
            for row in &texts(&pages)[behind..] {
                assert!(row.chars().count() <= 80);
                all.push_str(row.strip_prefix(GUTTER).unwrap());
            }
            let before = pages.top;
            if !pages.turn(Turn::On) {
                break;
            }
            // The last page overlaps the one before it.
            behind = 21 - (pages.top - before);
        }
        assert_eq!((all, pages.seen()), (line, Seen::All));
    }

    #[test]
    fn a_short_text_is_seen_at_once_and_a_long_one_when_its_end_was_there() {
        let window = Window { rows: 7, columns: 40 };
        assert_eq!(pages(window, &["a", "b", "c", "d"]).seen(), Seen::All);
        assert_eq!(pages(window, &[]).seen(), Seen::All);
        let mut long = pages(window, &["a", "b", "c", "d", "e", "f"]);
        assert_eq!((texts(&long), long.seen()), (vec!["| a", "| b", "| c", "| d"], Seen::NotAll));
        assert!(!long.turn(Turn::Back) && long.seen() == Seen::NotAll);
        assert!(long.turn(Turn::On));
        assert_eq!((long.place(), long.seen()), ("lines 3–6 of 6".to_owned(), Seen::All));
        assert!(!long.turn(Turn::On) && !long.turn(Turn::End));
        assert!(long.turn(Turn::Begin));
        assert_eq!((long.place(), long.seen()), ("lines 1–4 of 6".to_owned(), Seen::All));
        assert!(long.turn(Turn::End));
    }

    #[test]
    fn wide_characters_and_tabs_never_make_a_row_longer_than_the_window() {
        let pages = pages(Window { rows: 24, columns: 20 }, &["漢字漢字漢字漢字漢字", "a\tb\tc\td\te", ""]);
        assert_eq!(texts(&pages), ["| 漢字漢字漢字漢字漢", "| 字", "| a    b    c    d", "|     e", "| "]);
    }

    #[test]
    fn a_window_too_small_to_be_one_is_laid_out_for_all_the_same() {
        let mut pages = pages(Window { rows: 0, columns: 0 }, &["x"; 9]);
        assert_eq!(pages.shown().len(), 4);
        assert!(pages.turn(Turn::End));
        assert_eq!(pages.seen(), Seen::All);
    }
}
