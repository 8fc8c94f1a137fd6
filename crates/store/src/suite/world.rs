//! The small world that the cases share: drafts, runs, settlements.

use std::sync::Arc;

use thought_contract::draft::{self, Draft, Ending};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{AttemptState, RunState, attempt_id, run_id, snapshot_id};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::{AttemptId, DocumentId, EventId, Fingerprint, RunId, Sensitive, Sha256Hex, VersionId};

use crate::command::{AttemptEnd, Commit, NewAttempt, NewDeclaration, NewRun, NewSnapshot, Op};
use crate::engine::{Committed, Engine, Precondition, StoreError};

pub(super) const AGENT: &str = "stream-telegram-conversation";
pub(super) const DAY: &str = "2026-11-30";
pub(super) const CHAT: i64 = 4242;

/// A clock that stands still.
pub(super) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        at(0)
    }
}

pub(super) fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(1_796_072_531_000 + ms)
}

pub(super) fn telegram() -> SourceName {
    SourceName::new("telegram:stream")
}

pub(super) fn fingerprint() -> Fingerprint {
    Fingerprint::of(b"declaration")
}

pub(super) async fn commit(engine: &Arc<dyn Engine>, ops: Vec<Op>) -> Result<Committed, StoreError> {
    engine.commit(Commit { at: at(7), ops }).await
}

pub(super) async fn done(engine: &Arc<dyn Engine>, ops: Vec<Op>) -> Committed {
    commit(engine, ops).await.unwrap()
}

/// Expects that a commit is refused for one reason.
pub(super) async fn refused(engine: &Arc<dyn Engine>, ops: Vec<Op>, expected: Precondition) {
    match commit(engine, ops).await {
        Err(StoreError::Precondition(found)) => assert_eq!(found, expected),
        other => panic!("expected the precondition {expected:?}, found {other:?}"),
    }
}

pub(super) fn append(draft: Draft) -> Op {
    Op::Append(Box::new(draft))
}

pub(super) fn message_in(chat: i64, message: i64, text: &str) -> Draft {
    let payload = p::TelegramMessage {
        chat_id: chat,
        thread_id: None,
        message_id: message,
        user_id: 7,
        text: Some(text.to_owned()),
        images: vec![],
        reply_to_message_id: None,
        media_group_id: None,
    };
    draft::telegram_message(&telegram(), 1, &payload, at(1)).unwrap()
}

pub(super) fn message(message: i64) -> Draft {
    message_in(CHAT, message, "hello")
}

pub(super) fn mail(sender: &str, id: &str, text: &str) -> Draft {
    let payload = p::AgentMessage {
        message_id: id.to_owned(),
        thread_id: "thread".to_owned(),
        sender_agent_id: sender.to_owned(),
        recipient_agent_id: "stream-agent-conversation".to_owned(),
        text: text.to_owned(),
    };
    draft::agent_message(&payload, at(1)).unwrap()
}

pub(super) fn incident(subject: &str, count: u64) -> Draft {
    let payload = p::Incident { kind: "update-parked".to_owned(), subject: subject.to_owned(), count };
    draft::incident("telegram", &payload, at(1)).unwrap()
}

pub(super) fn declaration(version: u32, expected_active: Option<u32>) -> NewDeclaration {
    NewDeclaration {
        id: AGENT.to_owned(),
        version,
        expected_active,
        fingerprint: fingerprint(),
        declaration: Sensitive::new(b"id: a".to_vec()),
        prompt: Sensitive::new(format!("prompt {version}").into_bytes()),
        manifest: Sensitive::new(b"{}".to_vec()),
        sources: vec![(telegram(), 0)],
    }
}

pub(super) async fn install(engine: &Arc<dyn Engine>) {
    done(engine, vec![Op::InstallDeclaration(declaration(1, None))]).await;
}

pub(super) async fn stored(engine: &Arc<dyn Engine>, draft: Draft) -> StoredEvent {
    let id = draft.id().clone();
    done(engine, vec![append(draft)]).await;
    engine.event(id).await.unwrap().unwrap()
}

pub(super) fn new_run(trigger: &StoredEvent, retry: u32) -> NewRun {
    NewRun {
        id: run_id(AGENT, 1, &trigger.envelope.id, retry),
        declaration: AGENT.to_owned(),
        version: 1,
        trigger: trigger.envelope.id.clone(),
        source: trigger.envelope.source.clone(),
        sequence: trigger.envelope.sequence,
        conversation: trigger.envelope.correlation_id.clone().unwrap_or_default(),
        retry,
    }
}

pub(super) fn scanned(sequence: u64) -> Op {
    Op::SetScanned { declaration: AGENT.to_owned(), source: telegram(), sequence }
}

pub(super) fn snapshot(run: &RunId, bytes: &[u8]) -> NewSnapshot {
    NewSnapshot {
        id: snapshot_id(run),
        sha256: Sha256Hex::of(bytes),
        packet_sha256: Sha256Hex::of(b"packet"),
        bytes: Sensitive::new(bytes.to_vec()),
    }
}

pub(super) fn new_attempt(run: &RunId, ordinal: u32, requests_per_day_max: u64) -> NewAttempt {
    NewAttempt {
        id: attempt_id(run, ordinal),
        ordinal,
        sandbox: "full".to_owned(),
        day: DAY.to_owned(),
        requests_per_day_max,
    }
}

pub(super) fn start(run: &RunId, ordinal: u32) -> Op {
    Op::StartAttempt { run: run.clone(), attempt: new_attempt(run, ordinal, 1_000) }
}

pub(super) fn ended(attempt: AttemptId, state: AttemptState) -> Op {
    Op::EndAttempt(AttemptEnd {
        attempt,
        state,
        reason: None,
        input_tokens: Some(10),
        output_tokens: Some(3),
    })
}

pub(super) fn put_snapshot(run: &RunId) -> Op {
    Op::PutSnapshot { run: run.clone(), snapshot: snapshot(run, b"frozen") }
}

/// Appends a message, admits its run and starts its first attempt.
pub(super) async fn started(engine: &Arc<dyn Engine>, message_id: i64) -> (StoredEvent, RunId) {
    let trigger = stored(engine, message(message_id)).await;
    let run = new_run(&trigger, 0);
    let id = run.id.clone();
    let sequence = trigger.envelope.sequence;
    done(engine, vec![Op::AdmitRun(run), scanned(sequence), put_snapshot(&id), start(&id, 1)]).await;
    (trigger, id)
}

/// Everything that a settlement appends.
pub(super) struct Settled {
    pub(super) output: Draft,
    pub(super) proposal: Draft,
    pub(super) completed: Draft,
}

/// The drafts of an answer with one proposal.
pub(super) fn answer(trigger: &StoredEvent, run: &RunId, attempt: u32, text: &str) -> Settled {
    let output_payload = p::MessageObservation {
        summary: text.to_owned(),
        truncated: false,
        contract: p::OutputContract::ConversationText,
        run: run.clone(),
        agent: p::AgentVersion { id: AGENT.to_owned(), version: 1, fingerprint: fingerprint() },
        provider: "main".to_owned(),
        model: "a-model".to_owned(),
        context_snapshot: snapshot_id(run),
    };
    let output = draft::observation(trigger, &output_payload, at(2)).unwrap();
    let proposer = proposer(trigger, run, output.id());
    let proposal = draft::focus_proposed(
        trigger,
        &p::FocusProposed {
            proposal_state: p::AgentProposed::AgentProposed,
            proposer,
            declaration: serde_json::json!({"id": "a-focus"}),
            fingerprint: fingerprint(),
            authority: p::FocusAuthority {
                activation: p::No,
                data_expansion: p::No,
                external_actions: p::No,
                training: p::No,
                adapter_promotion: p::No,
            },
            resolution: p::FocusResolution {
                events: p::Unchecked::Unchecked,
                sources: p::Unchecked::Unchecked,
                capabilities: p::Unchecked::Unchecked,
                lineage: p::Unchecked::Unchecked,
            },
        },
        at(2),
    )
    .unwrap();
    let completed_payload = p::RunCompleted {
        run: run.clone(),
        attempt: attempt_id(run, attempt),
        context_snapshot: snapshot_id(run),
        output: output.id().clone(),
        proposals: vec![p::ProposalReference {
            kind: thought_protocol::proposal::ProposalKind::FocusDeclaration,
            event: proposal.id().clone(),
        }],
        usage: p::Usage { input_tokens: Some(10), output_tokens: Some(3) },
        thinking_parts_dropped: 0,
    };
    let completed = draft::run_completed(AGENT, trigger, &completed_payload, at(2)).unwrap();
    Settled { output, proposal, completed }
}

fn proposer(trigger: &StoredEvent, run: &RunId, output: &EventId) -> p::Proposer {
    p::Proposer {
        run: run.clone(),
        output: output.clone(),
        trigger: trigger.envelope.id.clone(),
        agent: p::ProposerAgent { id: AGENT.to_owned(), version: 1 },
        fingerprint: fingerprint(),
        provider: "main".to_owned(),
        model: "a-model".to_owned(),
        context_snapshot: snapshot_id(run),
    }
}

pub(super) fn document(path: &str) -> DocumentId {
    DocumentId::of("document", &["context".into(), path.into()])
}

pub(super) fn version(number: u32) -> VersionId {
    VersionId::of("version", &[number.into()])
}

/// A memory change on the first version of `memory.md`.
pub(super) fn memory_change(trigger: &StoredEvent, run: &RunId) -> Draft {
    let output = draft::output_id(EventType::MessageObservation, run);
    let text = "- Likes tea.";
    let payload = p::MemoryChangeProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: proposer(trigger, run, &output),
        target: p::MemoryTarget {
            source: SourceName::context(),
            document_id: document("memory.md"),
            path: "memory.md".to_owned(),
            version_id: version(1),
            sha256: Sha256Hex::of(b"base"),
            content_type: "text/markdown".to_owned(),
        },
        operation: p::MemoryOperation::Append,
        proposed_text: text.to_owned(),
        text_length: text.len() as u64,
        text_sha256: Sha256Hex::of(text.as_bytes()),
        reason: "asked for".to_owned(),
        evidence: vec![],
        publication_eligible: p::No,
    };
    draft::memory_change_proposed(trigger, &payload, at(2)).unwrap()
}

/// The operations of a settlement.
pub(super) fn settlement(run: &RunId, attempt: u32, settled: Settled) -> Vec<Op> {
    let (output, terminal) = (settled.output.id().clone(), settled.completed.id().clone());
    vec![
        ended(attempt_id(run, attempt), AttemptState::Answered),
        append(settled.output),
        append(settled.proposal),
        append(settled.completed),
        Op::EndRun {
            run: run.clone(),
            state: RunState::Completed,
            reason: None,
            output: Some(output),
            terminal,
        },
    ]
}

/// A turn that was answered; its trigger, run and output.
pub(super) async fn answered(engine: &Arc<dyn Engine>, message_id: i64) -> (StoredEvent, RunId, EventId) {
    let (trigger, run) = started(engine, message_id).await;
    let settled = answer(&trigger, &run, 1, "hi");
    let output = settled.output.id().clone();
    done(engine, settlement(&run, 1, settled)).await;
    (trigger, run, output)
}

/// The terminal event of a run without an answer.
pub(super) fn failure(trigger: &StoredEvent, run: &RunId) -> Draft {
    let payload = p::RunEnded { run: run.clone(), attempts: 1, reason: "provider".to_owned() };
    draft::run_ended(Ending::Failed, AGENT, trigger, &payload, at(3)).unwrap()
}

/// The operations that end a run without an answer and without touching its attempts.
pub(super) fn fail(trigger: &StoredEvent, run: &RunId) -> Vec<Op> {
    let event = failure(trigger, run);
    let terminal = event.id().clone();
    let state = RunState::Failed;
    let reason = Some("provider".to_owned());
    vec![append(event), Op::EndRun { run: run.clone(), state, reason, output: None, terminal }]
}

/// `(scanned, progress)` of the one consumer.
pub(super) async fn consumer(engine: &Arc<dyn Engine>) -> (u64, u64) {
    let consumers = engine.consumers().await.unwrap();
    let consumer = consumers.iter().find(|row| row.source == telegram()).unwrap();
    (consumer.scanned, consumer.progress)
}
