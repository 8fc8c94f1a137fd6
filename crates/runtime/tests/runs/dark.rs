//! Nothing of what is said, remembered or proposed reaches a log line or an error.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use thought_contract::run::{HeldReason, RunState};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::ports::{Behaviour, Says, binding, status, text};
use crate::support::Home;

const CANARY: &str = "canary-quetzal";

/// Keeps every field of every event, at every level.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Captured {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn event(&self, event: &Event<'_>) {
        if !event.metadata().target().starts_with("thought") {
            return;
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

#[tokio::test]
async fn the_log_holds_ids_kinds_lengths_and_timings_alone() {
    let captured = Captured::default();
    let _guard = tracing::subscriber::set_default(captured.clone());
    let home = Home::new().await;
    home.document("memory.md", "memory", CANARY).await;
    home.model.says([
        Says::Reply(text(&format!("{CANARY} answered"))),
        Says::Reply(status(401, None)),
        Says::Reply(text(&format!("{CANARY} {}", "x".repeat(12_001)))),
    ]);
    let at_work = home.start().await;
    for message in 1..=3 {
        let trigger = home.message(message, &format!("{CANARY} asked")).await;
        home.wait_for("an end", async || home.runs_on(&trigger).await.iter().any(|run| !run.state.is_open()))
            .await;
    }
    *home.jail.behaviour.lock().unwrap() = Some(Behaviour::OtherText);
    home.model.says([Says::Reply(text(CANARY))]);
    let lied = home.message(4, CANARY).await;
    home.until(&lied, RunState::Failed).await;
    *home.model.binding.lock().unwrap() = Err(HeldReason::ProviderUnconfigured);
    let held = home.message(5, CANARY).await;
    home.until(&held, RunState::Held).await;
    *home.model.binding.lock().unwrap() = Ok(binding("model-1"));
    *home.jail.behaviour.lock().unwrap() = Some(Behaviour::DiesAtRead);
    home.model.says([Says::Reply(text(CANARY))]);
    home.wait_for("its end", async || {
        home.time.advance_ms(30_000);
        home.runs_on(&held).await[0].state == RunState::Failed
    })
    .await;
    at_work.stop().await;
    let lines = captured.0.lock().unwrap();
    assert!(lines.len() > 10, "{} lines", lines.len());
    for line in lines.iter() {
        assert!(!line.contains("canary") && !line.contains("quetzal"), "{line}");
    }
}
