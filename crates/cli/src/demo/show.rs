//! How the demonstration tells its steps, and says what is missing.

use std::path::Path;

use serde_json::{Value, json};
use thought_contract::event::StoredEvent;
use thought_protocol::EventId;

use crate::command::resolve::short;
use crate::exit::{Exit, Failure};
use crate::print::{Printer, quoted};

/// What the store does not hold, although it would be told.
pub(super) fn not_there(what: &str) -> Failure {
    Failure::new(Exit::Internal, "demo", format!("the store does not hold {what}"))
}

/// Tells steps: an object a step with `--json`, a line for people.
pub(super) struct Show {
    printer: Printer,
}

impl Show {
    /// Tells on this printer.
    pub(super) const fn on(printer: Printer) -> Self {
        Self { printer }
    }

    /// One step: its word, its members, and its line.
    pub(super) fn step(
        &self,
        word: &str,
        value: &Value,
        line: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let mut object = json!({"step": word});
        if let (Some(object), Some(members)) = (object.as_object_mut(), value.as_object()) {
            object.extend(members.clone());
        }
        let printer = self.printer;
        printer.either(&object, || vec![format!("  {:<9} {}", printer.bold(word), line())])
    }

    /// A step that is an event.
    pub(super) fn event(&self, word: &str, event: &StoredEvent, what: String) -> Result<(), Failure> {
        let e = &event.envelope;
        let value = json!({"event": e.id, "type": e.event_type, "source": e.source, "position": e.position});
        self.step(word, &value, || format!("{}  {what}", short(e.id.as_str())))
    }

    /// Where to go on; `own` is how this binary is called from here.
    pub(super) fn look_around(&self, path: &Path, own: &str, receipt: &EventId) -> Result<(), Failure> {
        let thought = format!("{own} --home {}", quoted(path));
        let lineage = format!("lineage {}", short(receipt.as_str()));
        let commands = ["status", &lineage, "run-list", "event-list"];
        let value = json!({"step": "done", "home": path});
        self.printer.either(&value, || {
            let mut lines = vec![String::new()];
            lines.extend(commands.iter().enumerate().map(|(index, command)| {
                let lead = if index == 0 { "Look around:" } else { "" };
                format!("{lead:<14} {thought} {command}")
            }));
            lines.push(String::new());
            lines.push(format!(
                "Your own: thought init, then thought doctor.  When done here: rm -r {}",
                quoted(path)
            ));
            lines
        })
    }
}
