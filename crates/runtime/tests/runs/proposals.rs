//! What a model proposed, settled with the answer and bound by the parent.

use serde_json::{Value, json};
use thought_contract::event::EventType;
use thought_contract::payload::{
    CorrectionProposed, FocusProposed, MemoryChangeProposed, MessageObservation, RunCompleted,
};
use thought_contract::run::RunState;
use thought_protocol::Sha256Hex;
use thought_protocol::proposal::ProposalKind;
use thought_store::command::Presence;

use crate::ports::{Says, calls};
use crate::support::{Home, TELEGRAM};

pub(crate) async fn home() -> Home {
    let home = Home::new().await;
    home.dispatcher(Presence::Away).await;
    home
}

pub(crate) fn memory(words: &str) -> (&'static str, Value) {
    let arguments = json!({
        "operation": "append", "proposed_text": words, "reason": "It was asked for.", "evidence_event_ids": [],
    });
    ("request_memory_change", arguments)
}

pub(crate) fn correction(target: &str) -> (&'static str, Value) {
    let arguments = json!({
        "target_output": target, "replacement": "It is Tuesday.", "reason": "It was wrong.", "evidence_event_ids": [],
    });
    ("submit_correction", arguments)
}

pub(crate) fn focus() -> (&'static str, Value) {
    let declaration = json!({
        "id": "morning-light", "version": 1, "lineage": {"kind": "new"},
        "scope": {"summary": "Mornings.", "includes": [], "excludes": []},
        "objective": "Notice mornings.",
        "subscriptions": [{"eventType": "stream.thought.source.telegram.message@1", "source": "telegram:stream"}],
        "budgets": {"maxEventsPerDay": 10, "maxInferenceRequestsPerDay": 1, "maxContextCharacters": 1000},
        "requestedPermissions": [], "retirement": {"kind": "manual"},
    });
    ("propose_focus", declaration)
}

/// A delivered first turn, so that there is something to correct.
pub(crate) async fn with_history(home: &Home) -> (thought_protocol::EventId, thought_protocol::EventId) {
    home.dispatcher(Presence::AtWork).await;
    let at_work = home.start().await;
    let first = home.message(1, "What day is it?").await;
    let output = home.until(&first, RunState::Completed).await.output.unwrap();
    let receipt = home.deliver(&output, 100).await;
    at_work.stop().await;
    (output, receipt)
}

#[tokio::test]
async fn three_calls_settle_with_the_output_in_one_commit_and_in_order() {
    let home = home().await;
    let (target, receipt) = with_history(&home).await;
    home.model.says([Says::Reply(calls("", &[memory("Tea at five."), correction("latest"), focus()]))]);
    let at_work = home.start().await;
    let trigger = home.message(2, "Remember tea, and you were wrong").await;
    let before = home.reader().counters().commands;
    let run = home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
    // Admission with start, and the settlement; the message was counted before.
    assert!(home.reader().counters().commands - before <= 3);

    let output = home.reader().event(run.output.clone().unwrap()).await.unwrap().unwrap();
    let said: MessageObservation = output.payload().unwrap();
    assert_eq!(said.summary, "I saved those as memory and correction suggestions and a focus proposal.");
    let completed = home.reader().event(run.terminal.clone().unwrap()).await.unwrap().unwrap();
    let named: RunCompleted = completed.payload().unwrap();
    let kinds: Vec<ProposalKind> = named.proposals.iter().map(|proposal| proposal.kind).collect();
    assert_eq!(kinds, ProposalKind::ALL);
    let source = output.envelope.source.clone();
    let events = home.reader().source_events(source, output.envelope.sequence - 1, 10).await.unwrap();
    let types: Vec<EventType> = events.iter().map(|event| event.envelope.event_type).collect();
    assert_eq!(
        types,
        [
            EventType::MessageObservation,
            EventType::MemoryChangeProposed,
            EventType::CorrectionProposed,
            EventType::FocusProposed,
            EventType::RunCompleted
        ]
    );
    for (event, reference) in events[1..4].iter().zip(&named.proposals) {
        assert_eq!(event.envelope.id, reference.event);
        assert_eq!(event.envelope.actor.as_str(), format!("agent:{TELEGRAM}"));
    }

    let memory: MemoryChangeProposed = events[1].payload().unwrap();
    assert_eq!(
        (events[1].envelope.root_id.clone(), events[1].envelope.parent_id.clone()),
        (trigger.clone(), Some(output.envelope.id.clone()))
    );
    assert_eq!((memory.target.path.as_str(), memory.text_length), ("memory.md", 12));
    assert_eq!(memory.text_sha256, Sha256Hex::of(b"Tea at five."));
    assert_eq!(memory.proposer.run, run.id);

    let correction: CorrectionProposed = events[2].payload().unwrap();
    assert_eq!(
        (correction.target.output.clone(), correction.target.delivery_receipt.clone()),
        (target.clone(), receipt)
    );
    assert_eq!(correction.replacement.summary, "It is Tuesday.");
    assert_eq!(events[2].envelope.root_id, correction.target.source_root);
    assert_eq!(events[2].envelope.parent_id, Some(target));
    assert!(!events[2].payload.expose().windows(6).any(|bytes| bytes == b"latest"));

    let focus: FocusProposed = events[3].payload().unwrap();
    assert_eq!(focus.declaration["id"], json!("morning-light"));
    assert!(focus.fingerprint.as_str().starts_with("sha256:"));
    assert_eq!(events[3].envelope.parent_id, Some(output.envelope.id));
}

#[tokio::test]
async fn words_beside_a_call_stay_the_models_own() {
    let home = home().await;
    home.model.says([Says::Reply(calls("Noted.", &[memory("Tea at five.")]))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Remember tea").await;
    assert_eq!(home.answer(&trigger).await, "Noted.");
    assert_eq!(home.events(EventType::MemoryChangeProposed).await.len(), 1);
    at_work.stop().await;
}

#[tokio::test]
async fn a_call_that_is_not_whole_proposes_nothing() {
    let table = [
        (vec![("run_shell", json!({}))], "unknown-tool"),
        (vec![memory("a"), memory("b")], "duplicate-kind"),
        (vec![correction("latest")], "unknown-tool"),
        (vec![("request_memory_change", json!({"operation": "append"}))], "arguments-invalid"),
        (vec![memory("a"), ("propose_focus", json!({}))], "arguments-invalid"),
    ];
    for (made, reason) in table {
        let home = home().await;
        home.model.says([Says::Reply(calls("Hm.", &made))]);
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        let run = home.until(&trigger, RunState::Failed).await;
        assert_eq!(run.reason.as_deref(), Some(reason));
        for event_type in
            [EventType::MemoryChangeProposed, EventType::FocusProposed, EventType::MessageObservation]
        {
            assert!(home.events(event_type).await.is_empty(), "{reason}");
        }
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
    }
}

#[tokio::test]
async fn without_declared_proposals_no_tool_is_offered_and_a_call_fails() {
    let three = "proposals:\n    - memory-change\n    - self-correction\n    - focus-declaration";
    let home = Home::with(|text| text.replace(three, "proposals: []")).await;
    home.model.says([Says::Reply(calls("Hm.", &[memory("a")]))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    let run = home.until(&trigger, RunState::Failed).await;
    assert_eq!(run.reason.as_deref(), Some("unknown-tool"));
    let request = home.model.request(0);
    assert!(request.get("tools").is_none() && request.get("tool_choice").is_none());
    at_work.stop().await;
}

#[tokio::test]
async fn a_settlement_that_dies_before_its_commit_leaves_no_proposal() {
    let home = home().await;
    home.model.says([Says::Reply(calls("Noted.", &[memory("Tea at five.")]))]);
    *home.crash.at.lock().unwrap() = Some(("settle.before", 1));
    let at_work = home.start().await;
    let trigger = home.message(1, "Remember tea").await;
    at_work.crashed().await;
    assert!(home.events(EventType::MemoryChangeProposed).await.is_empty());
    let at_work = home.start().await;
    home.until(&trigger, RunState::Completed).await;
    assert!(home.events(EventType::MemoryChangeProposed).await.is_empty());
    at_work.stop().await;
    home.check_whole(&[trigger]).await;
}
