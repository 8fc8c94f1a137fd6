//! The printed figures: a line each, or one JSON document.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

/// How figures are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Lines,
    Json,
}

/// One figure.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    baseline: Option<(String, f64)>,
    target: Option<f64>,
    note: String,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, baseline: None, target: None, note: String::new() }
    }

    /// What it is compared with, in the same unit, measured in the same run.
    pub(crate) fn beside(mut self, name: impl Into<String>, value: f64) -> Self {
        self.baseline = Some((name.into(), value));
        self
    }

    /// At most this.
    pub(crate) fn at_most(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.baseline.as_ref().map(|(_, baseline)| self.value / baseline)
    }

    fn line(&self) -> String {
        let mut line = format!("  {:<46} {:>12} {:<6}", self.name, number(self.value), self.unit);
        if let (Some((name, value)), Some(ratio)) = (&self.baseline, self.ratio()) {
            line.push_str(&format!("  {} x {name} ({} {})", number(ratio), number(*value), self.unit));
        }
        if let Some(target) = self.target {
            let word = if self.value <= target { "held" } else { "MISSED" };
            line.push_str(&format!("  [at most {}: {word}]", number(target)));
        }
        if !self.note.is_empty() {
            line.push_str(&format!("  ({})", self.note));
        }
        line
    }

    fn object(&self, group: &str) -> Value {
        json!({
            "group": group, "name": self.name, "value": self.value, "unit": self.unit,
            "baseline": self.baseline.as_ref().map(|(name, value)| json!({"name": name, "value": value})),
            "ratio": self.ratio(), "atMost": self.target,
            "held": self.target.map(|target| self.value <= target), "note": self.note,
        })
    }
}

/// Everything that was measured.
pub(crate) struct Table {
    form: Form,
    group: String,
    objects: Vec<Value>,
}

impl Table {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, group: String::new(), objects: Vec::new() }
    }

    /// Begins a group of figures.
    pub(crate) fn group(&mut self, name: impl Into<String>) {
        self.group = name.into();
        if self.form == Form::Lines {
            print(&format!("\n{}", self.group));
        }
    }

    /// Adds a figure; in a table it is printed at once.
    pub(crate) fn row(&mut self, row: Row) {
        if self.form == Form::Lines {
            print(&row.line());
        }
        self.objects.push(row.object(&self.group));
    }

    /// Ends the table.
    pub(crate) fn finish(self) -> Result<()> {
        if self.form == Form::Json {
            print(&serde_json::to_string_pretty(&json!({"figures": self.objects}))?);
        }
        Ok(())
    }
}

/// Four significant digits at the most, without an exponent.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 || v == v.trunc() => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn print(line: &str) {
    println!("{line}");
}

/// Says what did not work.
#[expect(clippy::print_stderr, reason = "a bench says why it failed")]
pub(crate) fn complain(error: &anyhow::Error) -> ExitCode {
    eprintln!("figures: {error:#}");
    ExitCode::FAILURE
}

/// Says what is being done, where that takes a while.
#[expect(clippy::print_stderr, reason = "a bench says what it is waiting for")]
pub(crate) fn remark(text: &str) {
    eprintln!("figures: {text}");
}
