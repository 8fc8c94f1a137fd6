//! Listens to every log line of the process, at every level and from every thread.

use std::fmt::{Debug, Write};
use std::sync::{Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

fn keep(line: Line) {
    HEARD.lock().unwrap().push(line.0);
}

impl Subscriber for Listener {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(format!("span {} ", span.metadata().name()));
        span.record(&mut line);
        keep(line);
        Id::from_u64(1)
    }
    fn record(&self, _span: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        keep(line);
    }
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().target()));
        event.record(&mut line);
        keep(line);
    }
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

/// Begins to listen; once in a process.
pub(crate) fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| tracing::subscriber::set_global_default(Listener).unwrap());
}

/// Requires that there were lines, and that none holds one of these words.
pub(crate) fn check_dark(words: &[&str]) {
    let lines = HEARD.lock().unwrap();
    assert!(!lines.is_empty(), "a log that says nothing proves nothing");
    for line in lines.iter() {
        for word in words {
            assert!(!line.contains(word), "{word} stands in the log: {line}");
        }
    }
}

/// Whether a line holds both of these.
pub(crate) fn has(one: &str, other: &str) -> bool {
    HEARD.lock().unwrap().iter().any(|line| line.contains(one) && line.contains(other))
}
