//! Runs: admission, snapshots, attempts, budgets, endings.

use std::sync::Arc;

use thought_contract::run::{AttemptState, HeldReason, RunState, attempt_id};

use super::world::{
    AGENT, DAY, answer, answered, append, commit, done, ended, fail, failure, install, message, new_attempt,
    new_run, put_snapshot, refused, settlement, snapshot, start, started, stored,
};
use crate::command::{NewRun, Op};
use crate::engine::{Engine, Precondition, StoreError};
use crate::row::UsageRow;

async fn admitted(engine: &Arc<dyn Engine>, message_id: i64) -> NewRun {
    install(engine).await;
    let trigger = stored(engine, message(message_id)).await;
    let run = new_run(&trigger, 0);
    done(engine, vec![Op::AdmitRun(run.clone())]).await;
    run
}

pub(super) async fn a_run_goes_from_admission_to_its_end(engine: Arc<dyn Engine>) {
    let new = admitted(&engine, 1).await;
    let row = engine.run(new.id.clone()).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.attempts, row.ordinal, row.snapshot, row.ended_at),
        (RunState::Admitted, 0, 1, None, None)
    );
    assert_eq!((&row.declaration, row.version, row.retry), (&new.declaration, 1, 0));
    assert_eq!((&row.trigger, &row.source, row.sequence), (&new.trigger, &new.source, 1));

    done(&engine, vec![put_snapshot(&new.id), start(&new.id, 1)]).await;
    let row = engine.run(new.id.clone()).await.unwrap().unwrap();
    assert_eq!((row.state, row.attempts), (RunState::Running, 1));
    assert!(row.snapshot.is_some());
    let kept = engine.snapshot(new.id.clone()).await.unwrap().unwrap();
    assert_eq!(kept.bytes.expose(), b"frozen");
    assert_eq!(kept.run, new.id);

    let trigger = engine.event(new.trigger.clone()).await.unwrap().unwrap();
    let settled = answer(&trigger, &new.id, 1, "hi");
    let (output, terminal) = (settled.output.id().clone(), settled.completed.id().clone());
    let committed = done(&engine, settlement(&new.id, 1, settled)).await;
    assert_eq!(committed.appended.len(), 3);
    let row = engine.run(new.id.clone()).await.unwrap().unwrap();
    assert_eq!((row.state, row.reason), (RunState::Completed, None));
    assert_eq!((row.output, row.terminal), (Some(output), Some(terminal)));
    assert!(row.ended_at.is_some());
    let attempts = engine.attempts(new.id.clone()).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].state, attempts[0].input_tokens), (AttemptState::Answered, Some(10)));
    assert_eq!((attempts[0].sandbox.as_str(), &attempts[0].run), ("full", &new.id));
    assert!(engine.open_runs(AGENT.to_owned()).await.unwrap().is_empty());
}

pub(super) async fn a_run_is_admitted_once(engine: Arc<dyn Engine>) {
    let new = admitted(&engine, 1).await;
    refused(&engine, vec![Op::AdmitRun(new)], Precondition::RunAbsent).await;
    assert_eq!(engine.run_counts().await.unwrap(), [(RunState::Admitted, 1)]);
}

pub(super) async fn an_attempt_wants_a_snapshot(engine: Arc<dyn Engine>) {
    let new = admitted(&engine, 1).await;
    refused(&engine, vec![start(&new.id, 1)], Precondition::Snapshot).await;
    assert!(engine.attempts(new.id.clone()).await.unwrap().is_empty());
    assert!(engine.usage(1).await.unwrap().is_empty());
    let unknown = thought_contract::run::run_id("nobody", 1, &new.trigger, 0);
    refused(&engine, vec![start(&unknown, 1)], Precondition::RunState).await;
    refused(&engine, vec![put_snapshot(&unknown)], Precondition::RunState).await;
}

pub(super) async fn the_same_snapshot_twice_is_success_and_another_is_refused(engine: Arc<dyn Engine>) {
    let new = admitted(&engine, 1).await;
    done(&engine, vec![put_snapshot(&new.id)]).await;
    done(&engine, vec![put_snapshot(&new.id)]).await;
    let other = Op::PutSnapshot { run: new.id.clone(), snapshot: snapshot(&new.id, b"other bytes") };
    refused(&engine, vec![other], Precondition::Snapshot).await;
    let kept = engine.snapshot(new.id).await.unwrap().unwrap();
    assert_eq!(kept.bytes.expose(), b"frozen");
}

pub(super) async fn attempts_come_in_order_and_one_at_a_time(engine: Arc<dyn Engine>) {
    let new = admitted(&engine, 1).await;
    done(&engine, vec![put_snapshot(&new.id)]).await;
    refused(&engine, vec![start(&new.id, 2)], Precondition::AttemptOrdinal).await;
    done(&engine, vec![start(&new.id, 1)]).await;
    refused(&engine, vec![start(&new.id, 1)], Precondition::AttemptOrdinal).await;
    refused(&engine, vec![start(&new.id, 2)], Precondition::AttemptOrdinal).await;
    done(&engine, vec![ended(attempt_id(&new.id, 1), AttemptState::Transient), start(&new.id, 2)]).await;
    let states: Vec<_> =
        engine.attempts(new.id.clone()).await.unwrap().iter().map(|row| (row.ordinal, row.state)).collect();
    assert_eq!(states, [(1, AttemptState::Transient), (2, AttemptState::Started)]);
    assert_eq!(engine.run(new.id).await.unwrap().unwrap().attempts, 2);
}

pub(super) async fn an_abandoned_attempt_is_taken_over(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    let take_over = vec![ended(attempt_id(&run, 1), AttemptState::Abandoned), start(&run, 2)];
    done(&engine, take_over.clone()).await;
    refused(&engine, take_over, Precondition::AttemptStarted).await;
    // The process that was thought dead comes back with its answer: too late.
    let late = settlement(&run, 1, answer(&trigger, &run, 1, "late"));
    refused(&engine, late, Precondition::AttemptStarted).await;
    done(&engine, settlement(&run, 2, answer(&trigger, &run, 2, "in time"))).await;
    assert_eq!(engine.run(run).await.unwrap().unwrap().state, RunState::Completed);
}

pub(super) async fn a_late_answer_is_discarded(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    let mut given_up = vec![ended(attempt_id(&run, 1), AttemptState::Abandoned)];
    given_up.extend(fail(&trigger, &run));
    done(&engine, given_up).await;
    let events = engine.event_count().await.unwrap();
    let late = settlement(&run, 1, answer(&trigger, &run, 1, "late"));
    refused(&engine, late, Precondition::AttemptStarted).await;
    assert_eq!(engine.event_count().await.unwrap(), events);
    assert_eq!(engine.run(run).await.unwrap().unwrap().state, RunState::Failed);
}

pub(super) async fn a_settlement_is_all_or_nothing(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run) = started(&engine, 1).await;
    let before = engine.event_count().await.unwrap();
    // The last event's identity is taken by another ending.
    let mut ops = settlement(&run, 1, answer(&trigger, &run, 1, "hi"));
    ops.insert(1, append(failure(&trigger, &run)));
    assert!(matches!(commit(&engine, ops).await, Err(StoreError::Conflict { .. })));
    assert_eq!(engine.event_count().await.unwrap(), before);
    let row = engine.run(run.clone()).await.unwrap().unwrap();
    assert_eq!((row.state, row.output, row.terminal), (RunState::Running, None, None));
    assert_eq!(engine.attempts(run.clone()).await.unwrap()[0].state, AttemptState::Started);
    assert_eq!(engine.usage(1).await.unwrap()[0].input_tokens, 0);
    done(&engine, settlement(&run, 1, answer(&trigger, &run, 1, "hi"))).await;
    assert_eq!(engine.event_count().await.unwrap(), before + 3);
}

pub(super) async fn the_daily_budget_counts_requests(engine: Arc<dyn Engine>) {
    let new = admitted(&engine, 1).await;
    let attempt =
        |ordinal| Op::StartAttempt { run: new.id.clone(), attempt: new_attempt(&new.id, ordinal, 1) };
    done(&engine, vec![put_snapshot(&new.id), attempt(1)]).await;
    done(&engine, vec![ended(attempt_id(&new.id, 1), AttemptState::Transient)]).await;
    refused(&engine, vec![attempt(2)], Precondition::DailyBudget).await;
    assert_eq!(engine.requests_on(AGENT.to_owned(), DAY.to_owned()).await.unwrap(), 1);
    assert_eq!(engine.requests_on(AGENT.to_owned(), "2026-12-01".to_owned()).await.unwrap(), 0);
    let mut tomorrow = new_attempt(&new.id, 2, 1);
    tomorrow.day = "2026-12-01".to_owned();
    done(&engine, vec![Op::StartAttempt { run: new.id.clone(), attempt: tomorrow }]).await;
}

pub(super) async fn only_a_waiting_run_is_held(engine: Arc<dyn Engine>) {
    let new = admitted(&engine, 1).await;
    let hold = |reason| vec![Op::HoldRun { run: new.id.clone(), reason }];
    done(&engine, hold(HeldReason::DailyBudget)).await;
    done(&engine, hold(HeldReason::DocumentMissing)).await;
    let row = engine.run(new.id.clone()).await.unwrap().unwrap();
    assert_eq!((row.state, row.reason.as_deref()), (RunState::Held, Some("document-missing")));
    done(&engine, vec![put_snapshot(&new.id), start(&new.id, 1)]).await;
    let row = engine.run(new.id.clone()).await.unwrap().unwrap();
    assert_eq!((row.state, row.reason), (RunState::Running, None));
    refused(&engine, hold(HeldReason::DailyBudget), Precondition::RunState).await;
    done(&engine, vec![ended(attempt_id(&new.id, 1), AttemptState::Transient)]).await;
    refused(&engine, hold(HeldReason::DailyBudget), Precondition::RunState).await;
}

pub(super) async fn a_run_ends_once(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run, _) = answered(&engine, 1).await;
    assert!(matches!(commit(&engine, fail(&trigger, &run)).await, Err(StoreError::Conflict { .. })));
    let end = fail(&trigger, &run).pop().unwrap();
    refused(&engine, vec![end], Precondition::RunState).await;
    refused(&engine, vec![start(&run, 2)], Precondition::RunState).await;
    refused(
        &engine,
        vec![Op::HoldRun { run: run.clone(), reason: HeldReason::DailyBudget }],
        Precondition::RunState,
    )
    .await;
    assert_eq!(engine.run_counts().await.unwrap(), [(RunState::Completed, 1)]);
}

pub(super) async fn tokens_add_up_by_day(engine: Arc<dyn Engine>) {
    install(&engine).await;
    answered(&engine, 1).await;
    answered(&engine, 2).await;
    let expected = UsageRow {
        day: DAY.to_owned(),
        declaration: AGENT.to_owned(),
        requests: 2,
        input_tokens: 20,
        output_tokens: 6,
    };
    assert_eq!(engine.usage(7).await.unwrap(), [expected]);
    assert!(engine.usage(0).await.unwrap().is_empty());
}
