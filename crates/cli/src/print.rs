//! The one place that writes to stdout and stderr. Data goes to stdout, everything else to stderr; a closed pipe ends
//! the command quietly.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use thought_contract::review::visible;

use crate::args::{Color, Global};
use crate::exit::Failure;

/// A text as one line in which everything shows: line ends, tabs and controls of a file's name are written out.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', "<U+000A>").replace('\t', "<U+0009>")
}

/// A path as it is printed for a person.
pub fn path(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// Whether content is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// With consent.
    Shown,
    /// Without it.
    Dark,
}

/// What is known of a person's consent to printing content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The acknowledgment stands on the command line.
    Given,
    /// It does not; a person at a terminal may still say yes.
    ToBeAsked,
}

/// What a line of a diff does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// It stays, or is no line of a diff.
    Plain,
    /// It names a side.
    Head,
    /// It says where.
    Place,
    /// It comes.
    Added,
    /// It goes.
    Removed,
}

/// Longest answer to the question that is read, bytes.
const ANSWER_BYTES_MAX: u64 = 64;

/// How this command prints.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    json: bool,
    color: bool,
}

impl Printer {
    /// The printer that the global options ask for.
    pub fn new(global: &Global) -> Self {
        let color = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stdout().is_terminal(),
        };
        Self { json: global.json, color: color && !global.json }
    }

    /// Whether data is printed as JSON.
    pub const fn is_json(self) -> bool {
        self.json
    }

    /// One line of data.
    ///
    /// # Errors
    /// [`Failure`] when stdout cannot be written; a closed pipe is no failure but ends the process.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        write_line(&mut io::stdout().lock(), text)
    }

    /// One object of data.
    ///
    /// # Errors
    /// As [`Printer::line`].
    pub fn object(self, value: &Value) -> Result<(), Failure> {
        self.line(&value.to_string())
    }

    /// An object with `--json`, lines otherwise.
    ///
    /// # Errors
    /// As [`Printer::line`].
    pub fn either(self, value: &Value, lines: impl FnOnce() -> Vec<String>) -> Result<(), Failure> {
        if self.json { self.object(value) } else { lines().iter().try_for_each(|line| self.line(line)) }
    }

    /// Whether content may be printed: with the acknowledgment, or when a person at this terminal says yes now. Data that
    /// goes to a program, a file or a pipe is never asked about: then only the acknowledgment counts.
    pub fn content(self, consent: Consent, what: &str) -> Content {
        if consent == Consent::Given {
            return Content::Shown;
        }
        let is_watched =
            io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        if self.json || !is_watched {
            return Content::Dark;
        }
        let question = write!(io::stderr().lock(), "{what} is private. Print it on this terminal? [y/N] ");
        let mut answer = String::new();
        let read = question.and_then(|()| io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer));
        // A question that cannot be asked or heard is not answered with yes.
        if read.is_ok() && is_yes(&answer) { Content::Shown } else { Content::Dark }
    }

    /// A plain yes to a question, typed at a terminal or handed in on stdin; anything else is none. With `--json` nobody is
    /// asked, and only what is handed in counts.
    pub fn agrees(self, question: &str) -> bool {
        if self.json && io::stdin().is_terminal() {
            return false;
        }
        if !self.json {
            // A question that nobody sees is answered by whoever handed in the answer.
            drop(write!(io::stderr().lock(), "{question} [y/N] "));
        }
        let mut answer = String::new();
        let read = io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer);
        read.is_ok() && is_yes(&answer)
    }

    /// A remark on stderr, for people.
    pub fn remark(self, text: &str) {
        if !self.json {
            // A remark that cannot be shown changes nothing.
            drop(writeln!(io::stderr().lock(), "{}", one_line(text)));
        }
    }

    /// Whether a line of stderr may be drawn again and again: in a terminal, for a person.
    pub fn is_drawn_on(self) -> bool {
        !self.json && io::stderr().is_terminal()
    }

    /// Draws the last line of stderr anew; an empty one leaves it as it was, for what follows.
    pub fn draw(self, text: &str) {
        let line = if text.is_empty() { "\n".to_owned() } else { format!("\r{text}\u{1b}[K") };
        // As with a remark, nothing depends on it.
        drop(write!(io::stderr().lock(), "{line}"));
    }

    /// A failure on stderr.
    pub fn failure(self, failure: &Failure) {
        let mut stderr = io::stderr().lock();
        let outcome = if self.json {
            let mut error = json!({"code": failure.code, "message": failure.message});
            if let Some(hint) = &failure.hint {
                error["hint"] = json!(hint);
            }
            writeln!(stderr, "{}", json!({"error": error}))
        } else {
            let hint =
                failure.hint.as_ref().map_or(String::new(), |hint| format!("\nhint: {}", visible(hint)));
            writeln!(stderr, "error: {}{hint}", one_line(&failure.message))
        };
        // Nothing is left to tell it to when stderr is gone; the exit code still does.
        drop(outcome);
    }

    /// Dim text, where colour is on.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Bold text, where colour is on.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// A part of a diff in its colour, where colour is on.
    pub fn tint(self, tint: Tint, text: &str) -> String {
        match tint {
            Tint::Plain => text.to_owned(),
            Tint::Head => self.paint("1", text),
            Tint::Place => self.paint("36", text),
            Tint::Added => self.paint("32", text),
            Tint::Removed => self.paint("31", text),
        }
    }

    /// `ok`, `warn` or `fail` in its colour.
    pub fn state(self, word: &str) -> String {
        let code = match word {
            "ok" | "completed" | "current" => "32",
            "warn" | "held" | "running" => "33",
            _ => "31",
        };
        let padded = format!("{word:<5}");
        self.paint(code, &padded)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Rows in columns as wide as their widest cell; the last is left ragged.
    ///
    /// # Errors
    /// As [`Printer::line`].
    pub fn table(self, head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([head[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.line(&self.dim(&line(head.to_vec())))?;
        rows.iter().try_for_each(|row| self.line(&line(row.iter().map(String::as_str).collect())))
    }
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}

fn write_line(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::internal(&error)),
    }
}

/// A path as a shell takes it for one word.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_consent() {
        for yes in ["y\n", "Y\n", "yes\n", " YES \n"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "no\n", "yep\n", "yes please\n", "ja\n", "true\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, told) in [
            ("/tmp/thought-demo-1", "/tmp/thought-demo-1"),
            ("/tmp/a b/c", "'/tmp/a b/c'"),
            ("/tmp/it's", r"'/tmp/it'\''s'"),
            ("/tmp/$(x)", "'/tmp/$(x)'"),
        ] {
            assert_eq!(quoted(Path::new(path)), told);
        }
    }

    #[test]
    fn a_program_is_never_asked() {
        let printer = Printer { json: true, color: false };
        assert_eq!(printer.content(Consent::ToBeAsked, "the text"), Content::Dark);
        assert_eq!(printer.content(Consent::Given, "the text"), Content::Shown);
    }
}
