//! Handles: what a role may append, and nothing else.

use std::sync::Arc;

use thought_contract::draft::Draft;
use thought_contract::event::SourceName;
use thought_contract::run::{RunState, attempt_id};
use thought_protocol::Sensitive;

use super::world::{
    AGENT, Still, answer, declaration, document, failure, incident, install, mail, memory_change, message,
    new_attempt, new_run, snapshot, started, stored, telegram, version,
};
use crate::command::BaseVersion;
use crate::engine::{Engine, StoreError};
use crate::handle::{Admission, Proposed, RawUpdate, Settlement, SettlementError, Start, Store};
use crate::row::{Appended, Novelty};

fn store(engine: &Arc<dyn Engine>) -> Store {
    Store::new(engine.clone(), Arc::new(Still))
}

fn is_role<T: std::fmt::Debug>(outcome: Result<T, StoreError>) {
    assert!(matches!(outcome, Err(StoreError::Role { .. })), "{outcome:?}");
}

pub(super) async fn another_roles_events_are_refused(engine: Arc<dyn Engine>) {
    let store = store(&engine);
    is_role(store.agent_mail("co").send(mail("other", "m", "t")).await);
    is_role(store.agent_mail("co").send(message(1)).await);
    is_role(store.telegram_ingress(telegram()).admit(&[], mail("co", "m", "t")).await);
    is_role(store.telegram_ingress(SourceName::new("telegram:other")).admit(&[], message(1)).await);
    is_role(store.incidents("telegram").record(message(1)).await);
    is_role(store.notices("telegram").request(incident("a", 1)).await);
    is_role(store.activator().install(message(1), declaration(1, None)).await);
    assert_eq!(engine.event_count().await.unwrap(), 0);

    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    let before = engine.event_count().await.unwrap();
    let settled = answer(&trigger, &run, 1, "hi");
    let attempt = attempt_id(&run, 1);
    let settlement = Settlement::new(
        run.clone(),
        attempt,
        (None, None),
        settled.output,
        vec![proposed(settled.proposal)],
        settled.completed,
    )
    .unwrap();
    is_role(store.consumer("another-agent").settle(settlement).await);
    is_role(
        store
            .consumer("another-agent")
            .end(run, None, None, "provider", failure(&trigger, &run_of(&trigger)))
            .await,
    );
    assert_eq!(engine.event_count().await.unwrap(), before);
}

fn proposed(draft: Draft) -> Proposed {
    Proposed { draft, base: None }
}

fn run_of(trigger: &thought_contract::event::StoredEvent) -> thought_protocol::RunId {
    new_run(trigger, 0).id
}

pub(super) async fn a_settlement_is_built_whole(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    let build = |output, proposals, completed| {
        Settlement::new(run.clone(), attempt_id(&run, 1), (None, None), output, proposals, completed)
    };
    let parts = || answer(&trigger, &run, 1, "hi");
    let s = parts();
    assert_eq!(build(s.proposal, vec![], s.completed).unwrap_err(), SettlementError::Output);
    let s = parts();
    assert_eq!(build(s.output, vec![], s.proposal).unwrap_err(), SettlementError::Completed);
    let s = parts();
    let twice = vec![proposed(s.proposal.clone()), proposed(s.proposal)];
    assert_eq!(build(s.output, twice, s.completed).unwrap_err(), SettlementError::Proposals);
    let s = parts();
    assert_eq!(
        build(s.output, vec![proposed(message(9))], s.completed).unwrap_err(),
        SettlementError::Proposals
    );
    // A base belongs to a memory change, and to nothing else.
    let s = parts();
    let base = Some(BaseVersion { document: document("memory.md"), version: version(1) });
    let bound = vec![Proposed { draft: s.proposal, base }];
    assert_eq!(build(s.output, bound, s.completed).unwrap_err(), SettlementError::Proposals);
    let s = parts();
    let unbound = vec![proposed(memory_change(&trigger, &run))];
    assert_eq!(build(s.output, unbound, s.completed).unwrap_err(), SettlementError::Proposals);
    let s = parts();
    let whole = build(s.output, vec![proposed(s.proposal)], s.completed).unwrap();
    assert_eq!(whole.events().len(), 3);
    let committed = store(&engine).consumer(AGENT).settle(whole).await.unwrap();
    assert_eq!(committed.appended.len(), 3);
}

pub(super) async fn ingress_admits_and_forgets(engine: Arc<dyn Engine>) {
    let ingress = store(&engine).telegram_ingress(telegram());
    let commits = engine.counters().commands;
    ingress.spool(vec![], vec![]).await.unwrap();
    assert_eq!(engine.counters().commands, commits);
    let raw = |update| RawUpdate { update, body: Sensitive::new(b"{}".to_vec()) };
    ingress.spool(vec![raw(1), raw(2)], vec![]).await.unwrap();
    let Appended { novelty, .. } = ingress.admit(&[1, 2], message(1)).await.unwrap();
    assert_eq!(novelty, Novelty::New);
    assert!(engine.spool(telegram(), 9).await.unwrap().is_empty());
    assert_eq!(store(&engine).reader().event_count().await.unwrap(), 1);
}

pub(super) async fn a_consumer_lives_its_run(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let consumer = store(&engine).consumer(AGENT);
    let trigger = stored(&engine, message(1)).await;
    let run = new_run(&trigger, 0);
    let id = run.id.clone();
    let commits = engine.counters().commits;
    let start = Start {
        run: id.clone(),
        admission: Some(Admission { run, scanned: 1 }),
        snapshot: Some(snapshot(&id, b"frozen")),
        abandoned: None,
        attempt: new_attempt(&id, 1, 10),
    };
    consumer.start(start).await.unwrap();
    let take_over = Start {
        run: id.clone(),
        admission: None,
        snapshot: None,
        abandoned: Some(attempt_id(&id, 1)),
        attempt: new_attempt(&id, 2, 10),
    };
    consumer.start(take_over).await.unwrap();
    assert_eq!(engine.counters().commits, commits + 2);
    let s = answer(&trigger, &id, 2, "hi");
    let whole = Settlement::new(
        id.clone(),
        attempt_id(&id, 2),
        (Some(1), None),
        s.output,
        vec![proposed(s.proposal)],
        s.completed,
    );
    consumer.settle(whole.unwrap()).await.unwrap();
    let row = engine.run(id).await.unwrap().unwrap();
    assert_eq!((row.state, row.attempts), (RunState::Completed, 2));
}

pub(super) async fn mail_converges_and_conflicts(engine: Arc<dyn Engine>) {
    let mailbox = store(&engine).agent_mail("co");
    let first = mailbox.send(mail("co", "m-1", "text")).await.unwrap();
    let again = mailbox.send(mail("co", "m-1", "text")).await.unwrap();
    assert_eq!((first.sequence, again.novelty), (again.sequence, Novelty::Existing));
    let other = mailbox.send(mail("co", "m-1", "other")).await;
    assert!(matches!(other, Err(StoreError::Conflict { .. })), "{other:?}");
}
