//! A person lets a correction of their own leave the house, and nothing else.

use std::collections::BTreeMap;

use thought_authority::export::{ReleaseError, Released, Scope, release};
use thought_contract::event::EventType;
use thought_contract::payload::JudgmentRecorded;
use thought_protocol::EventId;
use thought_store::NoImages;

use crate::house::{House, Unwatched};
use crate::world::Still;

async fn released(house: &House, id: &EventId, operator: &str) -> Result<Released, ReleaseError> {
    let side = &house.world.side;
    release((&side.reader, &side.store.judgments()), &NoImages, &Still, (id, operator)).await
}

#[tokio::test]
async fn a_released_correction_is_in_both_exports_with_the_same_words() {
    let house = House::new().await;
    house.world.side.turn(1, &[]).await;
    house.world.side.turn(2, &[]).await;
    let judgment = house.correct(10, 1, "let out").await;
    house.correct(11, 2, "kept in").await;
    let done = released(&house, &judgment, "alex").await.unwrap();
    assert_eq!(done.supersedes, judgment);
    let reader = &house.world.side.reader;
    let said: JudgmentRecorded =
        reader.event(done.judgment.clone()).await.unwrap().unwrap().payload().unwrap();
    assert_eq!((said.external_export_eligible, said.quality_eligible), (true, true));
    assert_eq!((said.supersedes.as_ref(), said.actor.as_str()), (Some(&judgment), "human:alex"));
    // Again, by whatever name and whoever asks: the first release.
    for id in [&judgment, &done.judgment] {
        assert_eq!(released(&house, id, "sam").await.unwrap(), done);
    }
    assert_eq!(house.world.side.events(EventType::JudgmentRecorded).await.len(), 3);
    let outside = house.try_export(Scope::External, "out.jsonl", &Unwatched).await.unwrap();
    let inside = house.try_export(Scope::Private, "in.jsonl", &Unwatched).await.unwrap();
    assert_eq!((outside.manifest.included, inside.manifest.included), (1, 2));
    assert_eq!(
        outside.manifest.excluded,
        BTreeMap::from([("superseded".to_owned(), 1), ("not-externally-eligible".to_owned(), 1)])
    );
    let line = house.lines("out.jsonl").remove(0);
    assert_eq!(line["chosen"][0]["content"], "let out");
    assert!(house.lines("in.jsonl").contains(&line));
}

#[tokio::test]
async fn what_a_model_suggested_is_not_released() {
    let house = House::new().await;
    let first = house.world.side.turn(1, &[]).await;
    let (_, proposal) = house.corrects_itself(2, &first, "better").await;
    let judgment = house.let_through(&proposal).await;
    let refused = released(&house, &judgment, "alex").await;
    assert!(matches!(refused, Err(ReleaseError::NotOwnCorrection { .. })), "{refused:?}");
    for other in [&proposal, &first.output] {
        let refused = released(&house, other, "alex").await;
        assert!(matches!(refused, Err(ReleaseError::NotAJudgment { .. })), "{refused:?}");
    }
    let absent = EventId::of("no", &[]);
    assert!(matches!(released(&house, &absent, "alex").await, Err(ReleaseError::NotFound { .. })));
    assert_eq!(house.world.side.events(EventType::JudgmentRecorded).await.len(), 1);
}

#[tokio::test]
async fn a_superseded_judgment_is_not_released_and_a_newer_correction_takes_a_release_back() {
    let house = House::new().await;
    house.world.side.turn(1, &[]).await;
    let first = house.correct(10, 1, "first").await;
    let second = house.correct(11, 1, "second").await;
    assert!(matches!(released(&house, &first, "alex").await, Err(ReleaseError::Superseded { .. })));
    let out = released(&house, &second, "alex").await.unwrap().judgment;
    house.correct(12, 1, "third").await;
    for id in [&second, &out] {
        assert!(matches!(released(&house, id, "alex").await, Err(ReleaseError::Superseded { .. })));
    }
    let report = house.try_export(Scope::External, "a.jsonl", &Unwatched).await.unwrap();
    assert_eq!(report.manifest.included, 0);
}

#[tokio::test]
async fn a_judgment_that_no_export_would_have_is_not_released() {
    let house = House::new().await;
    let turn = house.world.side.turn(1, &[]).await;
    let judgment = house.correct(10, 1, "better").await;
    let sql = "UPDATE runs SET state = 'failed' WHERE id = ?1";
    house.world.sql().execute(sql, [turn.run.as_str()]).unwrap();
    let refused = released(&house, &judgment, "alex").await;
    assert!(matches!(refused, Err(ReleaseError::Provenance { .. })), "{refused:?}");
}
