//! Progress: everything settled without a gap.

use std::sync::Arc;

use thought_contract::event::{SourceName, StoredEvent};

use super::world::{
    AGENT, consumer, declaration, done, fail, install, message, new_run, refused, scanned, stored, telegram,
};
use crate::command::Op;
use crate::engine::{Engine, Precondition};

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
