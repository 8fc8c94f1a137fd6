//! Progress: everything settled without a gap.

use std::sync::Arc;

use thought_contract::event::{SourceName, StoredEvent};

use super::world::{
    AGENT, consumer, declaration, done, fail, install, message, new_run, refused, scanned, stored, telegram,
};
use crate::command::Op;
use crate::engine::{Engine, Precondition};
use crate::row::{ChangeoverRow, ChangeoverStage};

/// Appends and admits `count` messages, one commit each.
async fn admitted(engine: &Arc<dyn Engine>, count: i64) -> Vec<StoredEvent> {
    install(engine).await;
    let mut triggers = Vec::new();
    for number in 1..=count {
        let trigger = stored(engine, message(number)).await;
        done(engine, vec![Op::AdmitRun(new_run(&trigger, 0)), scanned(trigger.envelope.sequence)]).await;
        triggers.push(trigger);
    }
    triggers
}

async fn end(engine: &Arc<dyn Engine>, trigger: &StoredEvent, retry: u32) {
    done(engine, fail(trigger, &new_run(trigger, retry).id)).await;
}

pub(super) async fn endings_out_of_order_move_progress_without_a_gap(engine: Arc<dyn Engine>) {
    let triggers = admitted(&engine, 4).await;
    assert_eq!(consumer(&engine).await, (4, 0));
    end(&engine, &triggers[1], 0).await;
    assert_eq!(consumer(&engine).await, (4, 0));
    end(&engine, &triggers[0], 0).await;
    assert_eq!(consumer(&engine).await, (4, 2));
    end(&engine, &triggers[3], 0).await;
    assert_eq!(consumer(&engine).await, (4, 2));
    end(&engine, &triggers[2], 0).await;
    assert_eq!(consumer(&engine).await, (4, 4));
    let open: Vec<_> = engine.open_runs(AGENT.to_owned()).await.unwrap();
    assert!(open.is_empty());
}

pub(super) async fn scanning_moves_progress_when_nothing_is_open(engine: Arc<dyn Engine>) {
    let triggers = admitted(&engine, 1).await;
    done(&engine, vec![scanned(9)]).await;
    assert_eq!(consumer(&engine).await, (9, 0));
    end(&engine, &triggers[0], 0).await;
    assert_eq!(consumer(&engine).await, (9, 9));
    done(&engine, vec![scanned(12)]).await;
    assert_eq!(consumer(&engine).await, (12, 12));
}

pub(super) async fn scanned_never_goes_down(engine: Arc<dyn Engine>) {
    install(&engine).await;
    done(&engine, vec![scanned(5)]).await;
    done(&engine, vec![scanned(3)]).await;
    assert_eq!(consumer(&engine).await, (5, 5));
}

pub(super) async fn a_retry_on_an_old_sequence_changes_no_progress(engine: Arc<dyn Engine>) {
    let triggers = admitted(&engine, 3).await;
    end(&engine, &triggers[0], 0).await;
    end(&engine, &triggers[1], 0).await;
    assert_eq!(consumer(&engine).await, (3, 2));
    done(&engine, vec![Op::AdmitRun(new_run(&triggers[0], 1))]).await;
    assert_eq!(consumer(&engine).await, (3, 2));
    end(&engine, &triggers[2], 0).await;
    assert_eq!(consumer(&engine).await, (3, 3));
    let open = engine.open_runs(AGENT.to_owned()).await.unwrap();
    assert_eq!(open.iter().map(|run| (run.sequence, run.retry)).collect::<Vec<_>>(), [(1, 1)]);
    // A retry's terminal event has its own identity, because the run has.
    end(&engine, &triggers[0], 1).await;
    assert_eq!(consumer(&engine).await, (3, 3));
    done(&engine, vec![Op::AdmitRun(new_run(&triggers[1], 1)), scanned(4)]).await;
    assert_eq!(consumer(&engine).await, (4, 4));
}

pub(super) async fn sources_and_consumers_do_not_mix(engine: Arc<dyn Engine>) {
    let mut wide = declaration(1, None);
    wide.sources.push((SourceName::new("telegram:other"), 3));
    done(&engine, vec![Op::InstallDeclaration(wide)]).await;
    let trigger = stored(&engine, message(1)).await;
    done(&engine, vec![Op::AdmitRun(new_run(&trigger, 0)), scanned(1)]).await;
    let other = Op::SetScanned {
        declaration: AGENT.to_owned(),
        source: SourceName::new("telegram:other"),
        sequence: 8,
    };
    done(&engine, vec![other]).await;
    let rows: Vec<_> = engine
        .consumers()
        .await
        .unwrap()
        .into_iter()
        .map(|row| (row.source.to_string(), row.scanned, row.progress))
        .collect();
    assert_eq!(rows, [("telegram:other".to_owned(), 8, 8), (telegram().to_string(), 1, 0)]);
}

pub(super) async fn only_an_installed_consumer_scans(engine: Arc<dyn Engine>) {
    refused(&engine, vec![scanned(1)], Precondition::ConsumerInstalled).await;
    assert!(engine.consumers().await.unwrap().is_empty());
}

pub(super) async fn a_change_is_asked_answered_and_over(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let row = |token: &str, stage, heads| ChangeoverRow {
        declaration: AGENT.to_owned(),
        version: 2,
        token: token.to_owned(),
        stage,
        heads,
        acknowledged: Vec::new(),
    };
    let ack = |token: &str, role: &str| Op::AckChangeover {
        declaration: AGENT.to_owned(),
        token: token.to_owned(),
        role: role.to_owned(),
    };
    let clear = |token: &str| Op::ClearChangeover { declaration: AGENT.to_owned(), token: token.to_owned() };
    let asked = row("one", ChangeoverStage::Freeze, Vec::new());
    done(&engine, vec![Op::PutChangeover(asked.clone())]).await;
    assert_eq!(engine.changeovers().await.unwrap(), std::slice::from_ref(&asked));
    done(&engine, vec![ack("one", "ingress")]).await;
    done(&engine, vec![ack("one", "ingress")]).await;
    // The next stage keeps what was answered.
    let drain = row("one", ChangeoverStage::Drain, vec![(telegram(), 7)]);
    done(&engine, vec![Op::PutChangeover(drain.clone())]).await;
    let known = engine.changeovers().await.unwrap();
    assert_eq!(known, [ChangeoverRow { acknowledged: vec!["ingress".to_owned()], ..drain }]);
    // Another change begins anew, and what belongs to the one before it is too late.
    let other = row("two", ChangeoverStage::Freeze, Vec::new());
    done(&engine, vec![Op::PutChangeover(other.clone())]).await;
    refused(&engine, vec![ack("one", "consume")], Precondition::Changeover).await;
    done(&engine, vec![clear("one")]).await;
    assert_eq!(engine.changeovers().await.unwrap(), [other]);
    done(&engine, vec![clear("two")]).await;
    assert!(engine.changeovers().await.unwrap().is_empty());
    refused(&engine, vec![ack("two", "ingress")], Precondition::Changeover).await;
}

pub(super) async fn a_version_that_takes_over_begins_before_what_is_open(engine: Arc<dyn Engine>) {
    let triggers = admitted(&engine, 3).await;
    end(&engine, &triggers[0], 0).await;
    assert_eq!(consumer(&engine).await, (3, 1));
    let mut next = declaration(2, Some(1));
    next.sources = vec![(telegram(), 3)];
    done(&engine, vec![Op::InstallDeclaration(next)]).await;
    assert_eq!(consumer(&engine).await, (3, 1), "two runs are open behind it");
    end(&engine, &triggers[1], 0).await;
    end(&engine, &triggers[2], 0).await;
    let mut last = declaration(3, Some(2));
    last.sources = vec![(telegram(), 3)];
    done(&engine, vec![Op::InstallDeclaration(last)]).await;
    assert_eq!(consumer(&engine).await, (3, 3));
}
