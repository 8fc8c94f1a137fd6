//! Appends: identity, equality, order, chains, atomicity.

use std::collections::BTreeSet;
use std::sync::Arc;

use thought_contract::event::SourceName;
use thought_protocol::Sha256Hex;

use super::world::{
    append, at, commit, done, incident, mail, message, message_in, refused, scanned, stored, telegram,
};
use crate::command::Op;
use crate::engine::{Engine, Precondition, StoreError};
use crate::row::Novelty;

pub(super) async fn an_append_is_read_back_whole(engine: Arc<dyn Engine>) {
    let draft = message_in(-100, 5, "words");
    let event = stored(&engine, draft.clone()).await;
    let envelope = &event.envelope;
    assert_eq!(envelope.id, *draft.id());
    assert_eq!(envelope.event_type, draft.event_type());
    assert_eq!(envelope.source, telegram());
    assert_eq!((envelope.sequence, envelope.position), (1, 1));
    assert_eq!(envelope.actor, *draft.actor());
    assert_eq!(envelope.root_id, *draft.id());
    assert_eq!(envelope.parent_id, None);
    assert_eq!(envelope.privacy, draft.event_type().privacy());
    assert_eq!(envelope.correlation_id.as_deref(), Some("-100:0"));
    assert_eq!(envelope.external_id.as_deref(), Some("-100:5"));
    assert_eq!((envelope.occurred_at, envelope.recorded_at), (at(1), at(7)));
    assert_eq!(envelope.payload_sha256, Sha256Hex::of(draft.payload().expose()));
    assert_eq!(envelope.previous_sha256, Sha256Hex::zero());
    assert_eq!(event.payload, *draft.payload());
    assert_eq!(event.chain_sha256, envelope.chain_sha256().unwrap());
    assert_eq!(engine.event(message(99).id().clone()).await.unwrap(), None);
}

pub(super) async fn an_equal_append_is_the_first(engine: Arc<dyn Engine>) {
    let first = done(&engine, vec![append(mail("co", "m-1", "text"))]).await.appended.remove(0);
    assert_eq!(first.novelty, Novelty::New);
    let again = done(&engine, vec![append(mail("co", "m-1", "text"))]).await.appended.remove(0);
    assert_eq!(again.novelty, Novelty::Existing);
    assert_eq!((&again.id, again.sequence, again.position), (&first.id, first.sequence, first.position));
    let twice = done(&engine, vec![append(mail("co", "m-2", "t")), append(mail("co", "m-2", "t"))]).await;
    let novelties: Vec<_> = twice.appended.iter().map(|appended| appended.novelty).collect();
    assert_eq!(novelties, [Novelty::New, Novelty::Existing]);
    assert_eq!(engine.event_count().await.unwrap(), 2);
}

pub(super) async fn another_event_of_one_id_conflicts(engine: Arc<dyn Engine>) {
    let first = stored(&engine, mail("co", "m-1", "text")).await;
    match commit(&engine, vec![append(mail("co", "m-1", "other text"))]).await {
        Err(StoreError::Conflict { id, event_type }) => {
            assert_eq!((id, event_type), (first.envelope.id.clone(), first.envelope.event_type));
        }
        other => panic!("expected a conflict, found {other:?}"),
    }
    let kept = engine.event(first.envelope.id.clone()).await.unwrap().unwrap();
    assert_eq!(kept, first);
    assert_eq!(engine.source(first.envelope.source.clone()).await.unwrap().head, 1);
}

pub(super) async fn narrow_equality_ignores_the_rest(engine: Arc<dyn Engine>) {
    let first = stored(&engine, message_in(1, 1, "first words")).await;
    let again = done(&engine, vec![append(message_in(1, 1, "edited words"))]).await;
    assert_eq!(again.appended[0].novelty, Novelty::Existing);
    assert_eq!(engine.event(first.envelope.id.clone()).await.unwrap().unwrap(), first);
}

pub(super) async fn sequences_are_gapless_and_chains_recompute(engine: Arc<dyn Engine>) {
    for number in 1..=5 {
        done(&engine, vec![append(message(number)), append(mail("co", &format!("m-{number}"), "t"))]).await;
        done(&engine, vec![append(message(number))]).await;
        let conflict = commit(&engine, vec![append(mail("co", "m-1", "other"))]).await;
        assert!(conflict.is_err());
    }
    for source in [telegram(), SourceName::agent_message("co")] {
        let events = engine.source_events(source.clone(), 0, 100).await.unwrap();
        assert_eq!(events.len(), 5);
        let mut previous = Sha256Hex::zero();
        for (sequence, event) in (1..).zip(&events) {
            assert_eq!(event.envelope.sequence, sequence);
            assert_eq!(event.envelope.previous_sha256, previous);
            assert_eq!(event.chain_sha256, event.envelope.chain_sha256().unwrap());
            previous = event.chain_sha256.clone();
        }
        let head = engine.source(source).await.unwrap();
        assert_eq!((head.head, head.head_sha256), (5, previous));
    }
}

pub(super) async fn positions_rise_over_all_sources(engine: Arc<dyn Engine>) {
    let mut last = 0;
    for number in 1..=4 {
        let ops = vec![append(message(number)), append(incident("a", number.unsigned_abs()))];
        for appended in done(&engine, ops).await.appended {
            assert!(appended.position > last);
            last = appended.position;
        }
    }
}

pub(super) async fn equal_appends_race_to_one_event(engine: Arc<dyn Engine>) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let mut outcomes = Vec::new();
                for number in 0..10 {
                    let ops = vec![append(mail("co", &format!("m-{number}"), "same"))];
                    outcomes.push(done(&engine, ops).await.appended.remove(0));
                }
                outcomes
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    let new = all.iter().filter(|appended| appended.novelty == Novelty::New).count();
    assert_eq!(new, 10);
    let places: BTreeSet<_> = all.iter().map(|appended| (appended.sequence, appended.position)).collect();
    assert_eq!(places.len(), 10);
    assert_eq!(
        places.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(),
        (1..=10).collect::<Vec<_>>()
    );
}

pub(super) async fn different_events_of_one_id_race_to_one_winner(engine: Arc<dyn Engine>) {
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let engine = engine.clone();
            tokio::spawn(async move {
                commit(&engine, vec![append(mail("co", "m", &format!("text {task}")))]).await
            })
        })
        .collect();
    let mut winners = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => winners += 1,
            Err(StoreError::Conflict { .. }) => {}
            Err(other) => panic!("expected a conflict, found {other:?}"),
        }
    }
    assert_eq!((winners, engine.event_count().await.unwrap()), (1, 1));
}

pub(super) async fn a_commit_is_all_or_nothing(engine: Arc<dyn Engine>) {
    stored(&engine, mail("co", "m-1", "text")).await;
    let ops = vec![
        append(message(1)),
        Op::SetCursor { name: "c".to_owned(), position: 9 },
        append(mail("co", "m-1", "other")),
    ];
    assert!(matches!(commit(&engine, ops).await, Err(StoreError::Conflict { .. })));
    refused(&engine, vec![append(message(2)), scanned(1)], Precondition::ConsumerInstalled).await;
    assert_eq!(engine.event_count().await.unwrap(), 1);
    assert_eq!(engine.source(telegram()).await.unwrap().head, 0);
    assert_eq!(engine.cursor("c".to_owned()).await.unwrap(), 0);
    let next = stored(&engine, message(3)).await;
    assert_eq!((next.envelope.sequence, next.envelope.position), (1, 2));
    assert_eq!(engine.turn_ordinal(next.envelope.id).await.unwrap(), Some(("4242:0".to_owned(), 1)));
}

pub(super) async fn an_empty_commit_is_success(engine: Arc<dyn Engine>) {
    assert!(done(&engine, vec![]).await.appended.is_empty());
    assert_eq!(engine.event_count().await.unwrap(), 0);
}

pub(super) async fn news_tells_of_a_commit(engine: Arc<dyn Engine>) {
    let mut news = engine.news();
    news.mark_unchanged();
    done(&engine, vec![append(message(1))]).await;
    news.changed().await.unwrap();
    assert!(engine.counters().commits >= 1);
    assert!(engine.counters().commands >= 1);
}
