//! What the seeds of the tests must have come by: a fault that never fires tests nothing.

use thought_contract::event::EventType;

use crate::chaos::Fault;
use crate::driver::Counts;
use crate::{channel, provider, steps};

/// What happens to a home from outside.
const OUTSIDE: [&str; 4] = ["clock-back", "clock-ahead", "killed-at-rest", "saved-by-a-person"];
/// What decisions came to.
const OUTCOMES: [EventType; 2] = [EventType::MemoryMaterialized, EventType::JudgmentRecorded];

/// Whatever was to happen and never did: each kind of fault, and each kind of step that came to a good end.
pub(crate) fn missing(counts: &Counts) -> Vec<String> {
    let named = [&Fault::KINDS[..], &channel::KINDS, &provider::KINDS, &provider::JAIL_KINDS, &OUTSIDE];
    let named = named.into_iter().flatten().map(|name| (*name).to_owned());
    let outcomes = OUTCOMES.iter().map(|event_type| format!("event {}", event_type.as_str()));
    let steps = steps::NAMES.into_iter().map(|name| format!("step {name}"));
    named.chain(steps).chain(outcomes).filter(|what| counts.get(what).copied().unwrap_or(0) == 0).collect()
}

#[test]
fn what_never_happened_is_missing() {
    let mut counts = Counts::new();
    let all = missing(&counts);
    for what in &all {
        counts.insert(what.clone(), 1);
    }
    assert_eq!(missing(&counts), Vec::<String>::new());
    counts.insert("saved-meanwhile".to_owned(), 0);
    counts.remove("step decide");
    assert_eq!(missing(&counts), ["saved-meanwhile", "step decide"]);
}
