//! Filters, pages, prefixes, counts.

use std::sync::Arc;

use thought_contract::event::{EventType, SourceName};
use thought_contract::run::RunState;
use thought_protocol::Sha256Hex;

use super::world::{
    AGENT, answered, append, done, incident, install, mail, message, new_run, started, stored, telegram,
};
use crate::command::Op;
use crate::engine::Engine;
use crate::row::{EventFilter, RunFilter};

async fn positions(engine: &Arc<dyn Engine>, filter: EventFilter) -> Vec<u64> {
    engine.events(filter).await.unwrap().iter().map(|event| event.envelope.position).collect()
}

/// Positions 1 to 9: message, incident, mail, three times.
async fn mixed(engine: &Arc<dyn Engine>) {
    for number in 1..=3_i64 {
        let ops = vec![
            append(message(number)),
            append(incident("a", number.unsigned_abs())),
            append(mail("co", &format!("m-{number}"), "t")),
        ];
        done(engine, ops).await;
    }
}

fn page(after_position: u64, limit: u32) -> EventFilter {
    EventFilter { after_position, limit, ..EventFilter::default() }
}

pub(super) async fn events_are_filtered_and_paged(engine: Arc<dyn Engine>) {
    mixed(&engine).await;
    assert_eq!(positions(&engine, page(0, 4)).await, [1, 2, 3, 4]);
    assert_eq!(positions(&engine, page(7, 100)).await, [8, 9]);
    assert!(positions(&engine, page(0, 0)).await.is_empty());
    assert!(positions(&engine, page(u64::MAX, 5)).await.is_empty());
    let source = |after, limit| EventFilter { source: Some(telegram()), ..page(after, limit) };
    assert_eq!(positions(&engine, source(0, 9)).await, [1, 4, 7]);
    for after in [1, 2, 3] {
        assert_eq!(positions(&engine, source(after, 9)).await, [4, 7]);
    }
    assert_eq!(positions(&engine, source(4, 9)).await, [7]);
    assert_eq!(positions(&engine, source(1, 1)).await, [4]);
    assert!(positions(&engine, source(7, 9)).await.is_empty());
    let typed = EventFilter { types: vec![EventType::AgentMessage], ..source(0, 9) };
    assert!(positions(&engine, typed).await.is_empty());
    let typed = EventFilter { types: vec![EventType::TelegramMessage, EventType::Incident], ..source(1, 9) };
    assert_eq!(positions(&engine, typed).await, [4, 7]);
    let absent = EventFilter { source: Some(SourceName::new("telegram:none")), ..page(3, 9) };
    assert!(positions(&engine, absent).await.is_empty());
    let tail = engine.source_events(telegram(), 1, 1).await.unwrap();
    assert_eq!((tail.len(), tail[0].envelope.sequence), (1, 2));
}

pub(super) async fn types_are_merged_in_order(engine: Arc<dyn Engine>) {
    use EventType::{AgentMessage, Incident, RunFailed, TelegramMessage};
    mixed(&engine).await;
    let of = |types: &[EventType], after, limit| EventFilter { types: types.to_vec(), ..page(after, limit) };
    assert_eq!(positions(&engine, of(&[Incident], 0, 9)).await, [2, 5, 8]);
    assert_eq!(positions(&engine, of(&[AgentMessage, TelegramMessage], 0, 3)).await, [1, 3, 4]);
    assert_eq!(positions(&engine, of(&[AgentMessage, TelegramMessage], 4, 9)).await, [6, 7, 9]);
    assert_eq!(positions(&engine, of(&[Incident, Incident, RunFailed], 2, 9)).await, [5, 8]);
    assert!(positions(&engine, of(&[RunFailed], 0, 9)).await.is_empty());
}

pub(super) async fn events_of_a_root_and_children(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, _, output) = answered(&engine, 1).await;
    answered(&engine, 2).await;
    let root = Some(trigger.envelope.id.clone());
    let all = EventFilter { root: root.clone(), ..page(0, 9) };
    assert_eq!(positions(&engine, all).await, [1, 2, 3, 4]);
    let outputs = EventFilter {
        root: root.clone(),
        types: vec![EventType::MessageObservation],
        source: Some(SourceName::agent(AGENT)),
        ..page(0, 9)
    };
    assert_eq!(positions(&engine, outputs).await, [2]);
    let elsewhere = EventFilter { root, source: Some(SourceName::new("x:y")), ..page(0, 9) };
    assert!(positions(&engine, elsewhere).await.is_empty());
    let children = engine.children(output.clone(), 9).await.unwrap();
    assert_eq!(children.iter().map(|event| event.envelope.position).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(engine.children(output, 1).await.unwrap().len(), 1);
    assert_eq!(engine.children(trigger.envelope.id, 9).await.unwrap().len(), 1);
}

pub(super) async fn runs_are_filtered_and_paged(engine: Arc<dyn Engine>) {
    install(&engine).await;
    answered(&engine, 1).await;
    let (trigger, second) = started(&engine, 2).await;
    answered(&engine, 3).await;
    let waiting = stored(&engine, message(4)).await;
    done(&engine, vec![Op::AdmitRun(new_run(&waiting, 0))]).await;
    let ordinals = |filter: RunFilter| {
        let engine = engine.clone();
        async move { engine.runs(filter).await.unwrap().iter().map(|run| run.ordinal).collect::<Vec<_>>() }
    };
    let all = RunFilter { limit: 9, ..RunFilter::default() };
    assert_eq!(ordinals(all.clone()).await, [1, 2, 3, 4]);
    assert_eq!(ordinals(RunFilter { after_ordinal: 1, limit: 2, ..all.clone() }).await, [2, 3]);
    let states = vec![RunState::Admitted, RunState::Running];
    assert_eq!(ordinals(RunFilter { states: states.clone(), ..all.clone() }).await, [2, 4]);
    let some = RunFilter { states: vec![RunState::Completed], after_ordinal: 1, ..all.clone() };
    assert_eq!(ordinals(some).await, [3]);
    let other = Some("another-agent".to_owned());
    assert!(ordinals(RunFilter { declaration: other, states, ..all.clone() }).await.is_empty());
    let mine = RunFilter { declaration: Some(AGENT.to_owned()), ..all.clone() };
    assert_eq!(ordinals(mine).await, [1, 2, 3, 4]);
    let triggered = RunFilter { trigger: Some(trigger.envelope.id), ..all };
    assert_eq!(ordinals(triggered.clone()).await, [2]);
    assert!(ordinals(RunFilter { states: vec![RunState::Held], ..triggered }).await.is_empty());
    let open: Vec<_> =
        engine.open_runs(AGENT.to_owned()).await.unwrap().into_iter().map(|run| run.sequence).collect();
    assert_eq!(open, [2, 4]);
    assert!(engine.run(second).await.unwrap().is_some());
}

pub(super) async fn ids_are_found_by_prefix(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (trigger, run, _) = answered(&engine, 1).await;
    let find = |prefix: String, limit| {
        let engine = engine.clone();
        async move { engine.ids_with_prefix(prefix, limit).await.unwrap() }
    };
    let id = trigger.envelope.id.to_string();
    assert_eq!(find(id.clone(), 9).await, std::slice::from_ref(&id));
    assert_eq!(find(id[..12].to_owned(), 9).await, [id]);
    assert_eq!(find("evt_".to_owned(), 9).await.len(), 4);
    assert_eq!(find("evt_".to_owned(), 2).await.len(), 2);
    assert_eq!(find("run_".to_owned(), 9).await, [run.to_string()]);
    for prefix in ["att_", "snap_"] {
        assert_eq!(find(prefix.to_owned(), 9).await.len(), 1, "{prefix}");
    }
    for nothing in ["evt_zzzzzzzzz", "evt%", "_", "x"] {
        assert!(find(nothing.to_owned(), 9).await.is_empty(), "{nothing}");
    }
}

pub(super) async fn counts_are_exact(engine: Arc<dyn Engine>) {
    install(&engine).await;
    mixed(&engine).await;
    answered(&engine, 50).await;
    started(&engine, 51).await;
    assert_eq!(engine.event_count().await.unwrap(), 14);
    let count = |event_type, at_most| engine.event_count_of(event_type, at_most);
    assert_eq!(count(EventType::TelegramMessage, 100).await.unwrap(), 5);
    assert_eq!(count(EventType::TelegramMessage, 2).await.unwrap(), 2);
    assert_eq!(count(EventType::RunFailed, u64::MAX).await.unwrap(), 0);
    let mut counts = engine.run_counts().await.unwrap();
    counts.sort_unstable();
    assert_eq!(counts, [(RunState::Running, 1), (RunState::Completed, 1)]);
    let heads: Vec<_> =
        engine.sources().await.unwrap().into_iter().map(|row| (row.source.to_string(), row.head)).collect();
    let expected = [
        (format!("agent:{AGENT}"), 3),
        ("agent-message:co".to_owned(), 3),
        ("system:incidents".to_owned(), 3),
        ("telegram:stream".to_owned(), 5),
    ];
    let mut sorted = expected.to_vec();
    sorted.sort();
    assert_eq!(heads, sorted);
}

pub(super) async fn nothing_is_there_at_first(engine: Arc<dyn Engine>) {
    assert_eq!(engine.event_count().await.unwrap(), 0);
    assert!(engine.sources().await.unwrap().is_empty());
    let source = engine.source(telegram()).await.unwrap();
    assert_eq!((source.head, source.head_sha256), (0, Sha256Hex::zero()));
    assert!(engine.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap().is_empty());
    assert!(engine.run_counts().await.unwrap().is_empty());
    assert!(engine.declarations().await.unwrap().is_empty());
    assert!(engine.usage(9).await.unwrap().is_empty());
    assert!(engine.ids_with_prefix(String::new(), 9).await.unwrap().is_empty());
}
