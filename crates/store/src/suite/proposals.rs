//! The index of proposals: what enters it, where each stands, and what a look costs.

use std::sync::Arc;

use thought_contract::event::{SourceName, StoredEvent};
use thought_contract::run::attempt_id;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, RunId, Sensitive, Sha256Hex, VersionId};

use super::world::{
    AGENT, Still, answer, answered, append, at, commit, document, done, failure, install, memory_change,
    refused, started, version,
};
use crate::command::{BaseVersion, NewProposal, NewVersion, Op};
use crate::engine::{Engine, Precondition, StoreError};
use crate::handle::{Proposed, Settlement, Store};
use crate::row::{Base, ProposalCounts, ProposalFilter, ProposalRow, ProposalState};

fn memory_version(number: u32, previous: Option<u32>) -> Op {
    let bytes = format!("version {number}").into_bytes();
    Op::PutVersion(NewVersion {
        document: document("memory.md"),
        version: version(number),
        previous: previous.map(version),
        source: SourceName::context(),
        path: "memory.md".to_owned(),
        sha256: Sha256Hex::of(&bytes),
        content_type: "text/markdown".to_owned(),
        frontmatter_id: None,
        event: EventId::of("file", &[number.into()]),
        content: Sensitive::new(bytes),
    })
}

fn bound(number: u32) -> BaseVersion {
    BaseVersion { document: document("memory.md"), version: version(number) }
}

/// Settles a turn with a memory change on the first version and a focus; the memory change's id and the run.
async fn proposed(engine: &Arc<dyn Engine>, message_id: i64) -> (EventId, EventId, RunId) {
    let (trigger, run) = started(engine, message_id).await;
    let (memory, focus) = settle(engine, &trigger, &run).await.unwrap();
    (memory, focus, run)
}

async fn settle(
    engine: &Arc<dyn Engine>,
    trigger: &StoredEvent,
    run: &RunId,
) -> Result<(EventId, EventId), StoreError> {
    let parts = answer(trigger, run, 1, "hi");
    let memory = memory_change(trigger, run);
    let ids = (memory.id().clone(), parts.proposal.id().clone());
    let proposals = vec![
        Proposed { draft: memory, base: Some(bound(1)) },
        Proposed { draft: parts.proposal, base: None },
    ];
    let settlement = Settlement::new(
        run.clone(),
        attempt_id(run, 1),
        (None, None),
        parts.output,
        proposals,
        parts.completed,
    );
    Store::new(engine.clone(), Arc::new(Still)).consumer(AGENT).settle(settlement.unwrap()).await.map(|_| ids)
}

fn page(after_position: u64, limit: u32) -> ProposalFilter {
    ProposalFilter { after_position, limit, ..ProposalFilter::default() }
}

async fn list(engine: &Arc<dyn Engine>, filter: ProposalFilter) -> Vec<EventId> {
    engine.proposals(filter).await.unwrap().into_iter().map(|row| row.proposal).collect()
}

pub(super) async fn a_settled_proposal_waits(engine: Arc<dyn Engine>) {
    install(&engine).await;
    done(&engine, vec![memory_version(1, None)]).await;
    assert_eq!(engine.proposal_counts().await.unwrap(), ProposalCounts::default());
    let (memory, _, run) = proposed(&engine, 1).await;
    let event = engine.event(memory.clone()).await.unwrap().unwrap();
    let row = engine.proposal(memory.clone()).await.unwrap().unwrap();
    let expected = ProposalRow {
        proposal: memory,
        position: event.envelope.position,
        kind: ProposalKind::MemoryChange,
        run: Some(run),
        document: Some(document("memory.md")),
        base_version: Some(version(1)),
        base: Base::Current,
        state: ProposalState::Undecided,
        proposed_at: event.envelope.recorded_at,
    };
    assert_eq!(row, expected);
    let unknown = EventId::of("nobody", &[1.into()]);
    assert!(engine.proposal(unknown).await.unwrap().is_none());
}

pub(super) async fn a_focus_is_inert_and_waits_for_nobody(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    let parts = answer(&trigger, &run, 1, "hi");
    let focus = parts.proposal.id().clone();
    let proposals = vec![Proposed { draft: parts.proposal, base: None }];
    let attempt = attempt_id(&run, 1);
    let settlement =
        Settlement::new(run, attempt, (None, None), parts.output, proposals, parts.completed).unwrap();
    Store::new(engine.clone(), Arc::new(Still)).consumer(AGENT).settle(settlement).await.unwrap();
    let row = engine.proposal(focus).await.unwrap().unwrap();
    assert_eq!((row.state, row.base, row.document), (ProposalState::Inert, Base::Current, None));
    let counts = engine.proposal_counts().await.unwrap();
    assert_eq!((counts.of(ProposalState::Undecided), counts.of(ProposalState::Inert)), (0, 1));
    assert_eq!(counts.oldest_undecided_at, None);
}

pub(super) async fn proposals_are_filtered_and_paged(engine: Arc<dyn Engine>) {
    use ProposalKind::{FocusDeclaration, MemoryChange, SelfCorrection};
    use ProposalState::{Decided, Inert, Undecided};
    install(&engine).await;
    let mut ids = Vec::new();
    for number in 1..=3 {
        let (memory, focus, _) = proposed(&engine, number).await;
        ids.extend([memory, focus]);
    }
    assert_eq!(list(&engine, page(0, 9)).await, ids);
    assert_eq!(list(&engine, page(0, 2)).await, ids[..2]);
    let third = engine.proposal(ids[2].clone()).await.unwrap().unwrap().position;
    assert_eq!(list(&engine, page(third, 9)).await, ids[3..]);
    assert!(list(&engine, page(0, 0)).await.is_empty());
    assert!(list(&engine, page(u64::MAX, 9)).await.is_empty());
    let states = |states: &[ProposalState], filter| ProposalFilter { states: states.to_vec(), ..filter };
    let kinds = |kinds: &[ProposalKind], filter| ProposalFilter { kinds: kinds.to_vec(), ..filter };
    let memories = [ids[0].clone(), ids[2].clone(), ids[4].clone()];
    assert_eq!(list(&engine, states(&[Undecided], page(0, 9))).await, memories);
    assert_eq!(list(&engine, states(&[Undecided], page(0, 2))).await, memories[..2]);
    assert_eq!(list(&engine, states(&[Undecided, Inert], page(third, 2))).await, ids[3..5]);
    assert_eq!(list(&engine, kinds(&[MemoryChange], page(third, 9))).await, ids[4..5]);
    assert!(list(&engine, kinds(&[SelfCorrection], page(0, 9))).await.is_empty());
    let both = states(&[Undecided], kinds(&[FocusDeclaration, MemoryChange], page(0, 9)));
    assert_eq!(list(&engine, both).await, memories);
    assert!(list(&engine, states(&[Decided], page(0, 9))).await.is_empty());
    assert!(list(&engine, states(&[Inert], kinds(&[MemoryChange], page(0, 9)))).await.is_empty());
}

pub(super) async fn a_moved_document_makes_a_base_stale(engine: Arc<dyn Engine>) {
    install(&engine).await;
    done(&engine, vec![memory_version(1, None)]).await;
    let (memory, focus, _) = proposed(&engine, 1).await;
    let base = |id: EventId| {
        let engine = engine.clone();
        async move { engine.proposal(id).await.unwrap().unwrap().base }
    };
    assert_eq!(base(memory.clone()).await, Base::Current);
    let removal: VersionId = version(1);
    done(&engine, vec![Op::RemoveDocument { document: document("memory.md"), previous: removal }]).await;
    assert_eq!(base(memory.clone()).await, Base::Stale, "a document that is gone is no base");
    done(&engine, vec![memory_version(2, Some(1))]).await;
    assert_eq!(base(memory).await, Base::Stale);
    assert_eq!(base(focus).await, Base::Current);
}

pub(super) async fn a_proposal_moves_only_from_where_it_stands(engine: Arc<dyn Engine>) {
    use ProposalState::{Decided, Failed, Inert, Projected, Undecided};
    install(&engine).await;
    let (first, focus, _) = proposed(&engine, 1).await;
    let (second, ..) = proposed(&engine, 2).await;
    let step = |proposal: &EventId, from, to| vec![Op::MoveProposal { proposal: proposal.clone(), from, to }];
    refused(&engine, step(&first, Decided, Projected), Precondition::ProposalState).await;
    refused(&engine, step(&focus, Undecided, Decided), Precondition::ProposalState).await;
    let unknown = EventId::of("nobody", &[1.into()]);
    refused(&engine, step(&unknown, Undecided, Decided), Precondition::ProposalState).await;
    done(&engine, step(&first, Undecided, Decided)).await;
    refused(&engine, step(&first, Undecided, Decided), Precondition::ProposalState).await;
    done(&engine, step(&first, Decided, Projected)).await;
    assert_eq!(engine.proposal(first).await.unwrap().unwrap().state, Projected);
    let counts = engine.proposal_counts().await.unwrap();
    let found = [Undecided, Decided, Projected, Failed, Inert].map(|state| counts.of(state));
    assert_eq!(found, [1, 0, 1, 0, 2]);
    let waiting = engine.proposal(second).await.unwrap().unwrap();
    assert_eq!(counts.oldest_undecided_at, Some(waiting.proposed_at));
}

pub(super) async fn a_proposal_enters_the_index_once_and_with_its_event(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    let draft = memory_change(&trigger, &run);
    let proposal = draft.id().clone();
    let track = Op::TrackProposal(NewProposal {
        proposal: proposal.clone(),
        kind: ProposalKind::MemoryChange,
        run: Some(run),
        base: Some(bound(1)),
    });
    assert!(matches!(commit(&engine, vec![track.clone()]).await, Err(StoreError::Engine { .. })));
    done(&engine, vec![append(draft.clone()), track.clone()]).await;
    let step = |from, to| Op::MoveProposal { proposal: proposal.clone(), from, to };
    done(&engine, vec![step(ProposalState::Undecided, ProposalState::Decided)]).await;
    // The same append again is the first one, and so is its place in the index.
    done(&engine, vec![append(draft), track]).await;
    let row = engine.proposal(proposal.clone()).await.unwrap().unwrap();
    assert_eq!((row.state, row.proposed_at), (ProposalState::Decided, at(7)));
    assert_eq!(list(&engine, page(0, 9)).await, [proposal]);
    assert_eq!(engine.proposal_counts().await.unwrap().states, [(ProposalState::Decided, 1)]);
}

pub(super) async fn a_settlement_that_fails_tracks_nothing(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    // The run's one terminal event is taken by another ending.
    done(&engine, vec![append(failure(&trigger, &run))]).await;
    let lost = settle(&engine, &trigger, &run).await;
    assert!(matches!(lost, Err(StoreError::Conflict { .. })), "{lost:?}");
    assert!(list(&engine, page(0, 9)).await.is_empty());
    assert_eq!(engine.proposal_counts().await.unwrap(), ProposalCounts::default());
}

pub(super) async fn the_index_costs_what_it_answers(engine: Arc<dyn Engine>) {
    install(&engine).await;
    proposed(&engine, 1).await;
    proposed(&engine, 2).await;
    let cost = || {
        let engine = engine.clone();
        async move {
            let before = engine.counters().rows_read;
            let waiting = ProposalFilter { states: vec![ProposalState::Undecided], ..page(0, 2) };
            assert_eq!(list(&engine, waiting).await.len(), 2);
            assert_eq!(list(&engine, page(0, 2)).await.len(), 2);
            assert_eq!(engine.proposal_counts().await.unwrap().states.len(), 2);
            engine.counters().rows_read - before
        }
    };
    let early = cost().await;
    for number in 10..30 {
        proposed(&engine, number).await;
        answered(&engine, 100 + number).await;
    }
    assert_eq!(cost().await, early);
}
