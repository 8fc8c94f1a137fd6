//! Intents of writes, the one active judgment of an output, and what the handles of a person's word may do.

use std::sync::Arc;

use thought_contract::draft::{self, Draft};
use thought_contract::payload as p;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Sha256Hex};

use super::world::{
    CHAT, Still, answered, append, at, commit, document, done, install, memory_change, message, refused,
    stored, telegram, version,
};
use crate::command::{BaseVersion, NewIntent, NewProposal, Op};
use crate::engine::{Engine, Precondition, StoreError};
use crate::handle::{CORRECTIONS_CURSOR, ChunkRef, Follows, Remains, Resolution, Store};
use crate::row::{CorrectionOutcome, Novelty, ProposalState};

fn store_of(engine: &Arc<dyn Engine>) -> Store {
    Store::new(engine.clone(), Arc::new(Still))
}

fn intent(decision: &EventId, bytes: &[u8]) -> NewIntent {
    NewIntent {
        decision: decision.clone(),
        proposal: EventId::of("proposal", &[]),
        expected_sha256: Sha256Hex::of(bytes),
        temporary: ".temporary".to_owned(),
    }
}

pub(super) async fn an_intent_is_kept_until_it_is_forgotten(engine: Arc<dyn Engine>) {
    let decision = EventId::of("decision", &[]);
    assert_eq!(engine.intent(decision.clone()).await.unwrap(), None);
    done(&engine, vec![Op::PutIntent(intent(&decision, b"one"))]).await;
    done(&engine, vec![Op::PutIntent(intent(&decision, b"two"))]).await;
    let row = engine.intent(decision.clone()).await.unwrap().unwrap();
    assert_eq!((row.expected_sha256, row.temporary.as_str()), (Sha256Hex::of(b"two"), ".temporary"));
    assert_eq!(engine.intents(10).await.unwrap().len(), 1);
    done(&engine, vec![Op::ClearIntent { decision: decision.clone() }]).await;
    done(&engine, vec![Op::ClearIntent { decision: decision.clone() }]).await;
    assert_eq!(engine.intent(decision).await.unwrap(), None);
    assert!(engine.intents(10).await.unwrap().is_empty());
}

fn judgment(output: &EventId, feedback: &EventId, supersedes: Option<EventId>) -> Draft {
    let payload = p::JudgmentRecorded {
        schema_version: 2,
        kind: p::JudgmentKind::Correct,
        criterion: "agent-self-correction".to_owned(),
        criterion_version: 1,
        actor: "human:alex".to_owned(),
        target: p::CorrectionTarget {
            run: thought_protocol::RunId::of("run", &[]),
            output: output.clone(),
            delivery_receipt: feedback.clone(),
            source_root: feedback.clone(),
            contract: p::OutputContract::ConversationText,
        },
        replacement: p::ConversationText { summary: "better".to_owned() },
        feedback: feedback.clone(),
        quality_eligible: true,
        external_export_eligible: false,
        supersedes,
    };
    draft::judgment_recorded(&payload, at(5)).unwrap()
}

pub(super) async fn one_judgment_stands_on_an_output(engine: Arc<dyn Engine>) {
    let output = EventId::of("output", &[]);
    let (one, two) = (EventId::of("one", &[]), EventId::of("two", &[]));
    let judgments = store_of(&engine).judgments();
    assert_eq!(engine.active_judgment(output.clone()).await.unwrap(), None);
    let first = judgments.record(judgment(&output, &one, None), output.clone(), None, None).await.unwrap();
    assert_eq!(engine.active_judgment(output.clone()).await.unwrap(), Some(first.id.clone()));
    // Whoever did not see the first may not append a second.
    let late = judgments.record(judgment(&output, &two, None), output.clone(), None, None).await;
    assert!(matches!(late, Err(StoreError::Precondition(Precondition::ActiveJudgment))));
    let active = Some(first.id.clone());
    let draft = judgment(&output, &two, active.clone());
    let second = judgments.record(draft, output.clone(), active, None).await.unwrap();
    assert_eq!(engine.active_judgment(output.clone()).await.unwrap(), Some(second.id));
    let other = EventId::of("other", &[]);
    refused(
        &engine,
        vec![Op::ExpectJudgment { output: other, active: Some(first.id) }],
        Precondition::ActiveJudgment,
    )
    .await;
}

pub(super) async fn a_persons_correction_is_settled_once(engine: Arc<dyn Engine>) {
    let judgments = store_of(&engine).judgments();
    let (one, two) = (EventId::of("one", &[]), EventId::of("two", &[]));
    let output = EventId::of("output", &[]);
    assert_eq!(engine.correction(one.clone()).await.unwrap(), None);
    judgments.refuse(one.clone(), "no-reply", 5).await.unwrap();
    judgments.refuse(one.clone(), "another", 4).await.unwrap();
    let refused = engine.correction(one.clone()).await.unwrap().unwrap();
    assert_eq!(refused.outcome, CorrectionOutcome::Refused("no-reply".to_owned()));
    assert_eq!(engine.cursor(CORRECTIONS_CURSOR.to_owned()).await.unwrap(), 5);
    let draft = judgment(&output, &two, None);
    let judged = judgments.correct(draft, output, None, (two.clone(), 9)).await.unwrap();
    let row = engine.correction(two).await.unwrap().unwrap();
    assert_eq!(row.outcome, CorrectionOutcome::Judged(judged.id));
    assert_eq!(engine.cursor(CORRECTIONS_CURSOR.to_owned()).await.unwrap(), 9);
    let all = engine.refused_corrections(0, 9).await.unwrap();
    assert_eq!(all.iter().map(|row| row.command.clone()).collect::<Vec<_>>(), [one]);
    assert!(engine.refused_corrections(all[0].ordinal, 9).await.unwrap().is_empty());
    judgments.looked_at(12).await.unwrap();
    assert_eq!(engine.cursor(CORRECTIONS_CURSOR.to_owned()).await.unwrap(), 12);
}

pub(super) async fn a_reply_is_found_by_its_message_and_by_its_chat(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let dispatcher = store_of(&engine).dispatcher(telegram());
    let mut receipts = Vec::new();
    for (message_id, thread) in [(1, None), (2, None), (3, Some(7))] {
        let (_, _, output) = answered(&engine, message_id).await;
        let cause = engine.event(output.clone()).await.unwrap().unwrap();
        let kind = p::DeliveryKind::Reply;
        dispatcher.open(output.clone(), kind, (CHAT, thread), vec![1], 1).await.unwrap();
        let payload = p::DeliveryTelegram {
            kind,
            chat_id: CHAT,
            thread_id: thread,
            chunks: vec![p::DeliveredChunk { message_id: Some(100), utf16_length: 1, confirmed_by: None }],
            run: None,
            output: Some(output.clone()),
        };
        let receipt = draft::delivery(&telegram(), &cause, &payload, at(3)).unwrap();
        let chunk = ChunkRef { cause: output, kind, ordinal: 0 };
        receipts.push(dispatcher.delivered(chunk, 100 + message_id, receipt).await.unwrap());
    }
    let by_message =
        async |chat, message| engine.reply_with_message(telegram(), chat, message).await.unwrap();
    assert_eq!(by_message(CHAT, 102).await, Some(receipts[1].id.clone()));
    assert_eq!((by_message(CHAT, 1).await, by_message(9, 102).await), (None, None));
    let newest = async |thread, below| engine.newest_reply(telegram(), CHAT, thread, below).await.unwrap();
    assert_eq!(newest(None, u64::MAX >> 1).await, Some(receipts[1].id.clone()));
    assert_eq!(newest(None, receipts[1].position).await, Some(receipts[0].id.clone()));
    assert_eq!(newest(Some(7), u64::MAX >> 1).await, Some(receipts[2].id.clone()));
    assert_eq!(newest(Some(8), u64::MAX >> 1).await, None);
}

/// A tracked memory change, and a decision on it.
async fn proposed(engine: &Arc<dyn Engine>) -> (EventId, impl Fn(p::Disposition, &str) -> Draft) {
    install(engine).await;
    let (trigger, run, _) = answered(engine, 1).await;
    let proposal = stored(engine, memory_change(&trigger, &run)).await;
    let id = proposal.envelope.id.clone();
    let track = NewProposal {
        proposal: id.clone(),
        kind: ProposalKind::MemoryChange,
        run: Some(run),
        base: Some(BaseVersion { document: document("memory.md"), version: version(1) }),
    };
    done(engine, vec![Op::TrackProposal(track)]).await;
    let decide = move |disposition, submission: &str| {
        let payload = p::ProposalDecision {
            proposal: proposal.envelope.id.clone(),
            proposal_kind: ProposalKind::MemoryChange,
            disposition,
            replacement: None,
            submission_id: submission.to_owned(),
            operator: "alex".to_owned(),
            authority: p::HumanAuthority::Human,
            surface: p::Surface::Cli,
            uid: 1_000,
        };
        draft::proposal_decision(&proposal, &payload, at(6)).unwrap()
    };
    (id, decide)
}

async fn state(engine: &Arc<dyn Engine>, proposal: &EventId) -> ProposalState {
    engine.proposal(proposal.clone()).await.unwrap().unwrap().state
}

pub(super) async fn a_decision_is_made_once(engine: Arc<dyn Engine>) {
    let (proposal, decide) = proposed(&engine).await;
    let decisions = store_of(&engine).decisions();
    let accept = decide(p::Disposition::Accept, "first");
    let first = decisions.decide(accept, proposal.clone(), Follows::Projection).await.unwrap();
    assert_eq!(state(&engine, &proposal).await, ProposalState::Decided);
    let again = decide(p::Disposition::Accept, "second");
    let again = decisions.decide(again, proposal.clone(), Follows::Projection).await.unwrap();
    assert_eq!((again.id, again.novelty), (first.id, Novelty::Existing));
    let reject =
        decisions.decide(decide(p::Disposition::Reject, "x"), proposal.clone(), Follows::Nothing).await;
    assert!(matches!(reject, Err(StoreError::Conflict { .. })));
    assert_eq!(state(&engine, &proposal).await, ProposalState::Decided);
    let foreign = decisions.decide(message(9), proposal, Follows::Nothing).await;
    assert!(matches!(foreign, Err(StoreError::Role { .. })));
}

pub(super) async fn a_rejection_leaves_nothing_to_do(engine: Arc<dyn Engine>) {
    let (proposal, decide) = proposed(&engine).await;
    let reject = decide(p::Disposition::Reject, "x");
    store_of(&engine).decisions().decide(reject, proposal.clone(), Follows::Nothing).await.unwrap();
    assert_eq!(state(&engine, &proposal).await, ProposalState::Projected);
}

pub(super) async fn a_receipt_forgets_its_intent_and_moves_its_proposal(engine: Arc<dyn Engine>) {
    let (proposal, decide) = proposed(&engine).await;
    let store = store_of(&engine);
    let accept = decide(p::Disposition::Accept, "first");
    let decision = store.decisions().decide(accept, proposal.clone(), Follows::Projection).await.unwrap().id;
    let event = engine.event(decision.clone()).await.unwrap().unwrap();
    let about = Resolution { proposal: proposal.clone(), decision: decision.clone() };
    let failed = |reason: &str| {
        let payload = p::MaterializationFailed {
            proposal: proposal.clone(),
            decision: decision.clone(),
            reason: reason.to_owned(),
        };
        draft::materialization_failed(&event, &payload, at(7)).unwrap()
    };
    let handle = store.materializer();
    handle.intend(intent(&decision, b"new")).await.unwrap();
    let kept = handle.failed_for_now(failed("scan-failed"), about.clone(), Remains::Intent).await.unwrap();
    assert_eq!(kept.novelty, Novelty::New);
    assert!(engine.intent(decision.clone()).await.unwrap().is_some());
    handle.failed_for_now(failed("scan-failed"), about.clone(), Remains::Nothing).await.unwrap();
    assert!(engine.intent(decision.clone()).await.unwrap().is_none());
    assert_eq!(state(&engine, &proposal).await, ProposalState::Decided);
    handle.intend(intent(&decision, b"new")).await.unwrap();
    handle.failed(failed("stale-base"), about.clone()).await.unwrap();
    assert!(engine.intent(decision.clone()).await.unwrap().is_none());
    assert_eq!(state(&engine, &proposal).await, ProposalState::Failed);
    // A repetition finds everything as it is.
    assert_eq!(handle.failed(failed("stale-base"), about.clone()).await.unwrap().novelty, Novelty::Existing);
    assert!(matches!(handle.materialized(failed("x"), about).await, Err(StoreError::Role { .. })));
    assert!(commit(&engine, vec![append(message(4))]).await.is_ok());
}
