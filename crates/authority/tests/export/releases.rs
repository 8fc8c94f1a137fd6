//! A person lets a correction of their own leave the house, and nothing else.

use std::collections::BTreeMap;
use std::fs;

use thought_authority::export::{ReleaseError, Released, Scope, release};
use thought_contract::draft;
use thought_contract::event::EventType;
use thought_contract::payload::JudgmentRecorded;
use thought_protocol::{EventId, Sha256Hex};
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

#[tokio::test]
async fn an_answer_on_a_context_that_shows_a_self_correction_never_leaves() {
    const CANARY: &str = "canary of a self-correction";
    let house = House::new().await;
    let side = &house.world.side;
    side.turn(1, &[]).await;
    let own = house.correct(10, 1, "of the person").await;
    let second = side.turn(2, &[]).await;
    let (_, proposal) = house.corrects_itself(3, &second, CANARY).await;
    // Asked before the word of the person, the context of this one shows the answer as it was made.
    side.turn(4, &[]).await;
    let early = house.correct(11, 4, "before it counted").await;
    house.let_through(&proposal).await;
    side.turn(5, &[]).await;
    let late = house.correct(12, 5, "after it counted").await;
    // Once the person corrected that answer by hand, their words stand in the next context.
    house.correct(13, 2, "of the person, too").await;
    side.turn(6, &[]).await;
    let healed = house.correct(14, 6, "after it was corrected by hand").await;

    let refused = released(&house, &late, "alex").await;
    assert!(matches!(refused, Err(ReleaseError::SelfCorrectionInContext { .. })), "{refused:?}");
    for id in [&own, &early, &healed] {
        released(&house, id, "alex").await.unwrap();
    }
    // One that was released all the same, by a version that did not look.
    let event = side.reader.event(late.clone()).await.unwrap().unwrap();
    let said: JudgmentRecorded = event.payload().unwrap();
    let output = said.target.output.clone();
    let payload = JudgmentRecorded {
        actor: "human:alex".to_owned(),
        external_export_eligible: true,
        supersedes: Some(late.clone()),
        ..said
    };
    let draft = draft::judgment_recorded(&payload, event.envelope.occurred_at).unwrap();
    let forced = draft.id().clone();
    side.store.judgments().record(draft, output, Some(late.clone()), None).await.unwrap();
    let refused = released(&house, &forced, "alex").await;
    assert!(matches!(refused, Err(ReleaseError::SelfCorrectionInContext { .. })), "{refused:?}");

    let outside = house.try_export(Scope::External, "out.jsonl", &Unwatched).await.unwrap();
    assert_eq!(outside.manifest.included, 3);
    assert_eq!(outside.manifest.excluded.get("self-correction-in-context"), Some(&1));
    let text = fs::read_to_string(house.at("out.jsonl")).unwrap();
    assert!(!text.contains(CANARY), "{text}");
    // The private one shows what was shown.
    let inside = house.try_export(Scope::Private, "in.jsonl", &Unwatched).await.unwrap();
    assert_eq!(inside.manifest.excluded.keys().collect::<Vec<_>>(), ["superseded"]);
    assert!(fs::read_to_string(house.at("in.jsonl")).unwrap().contains(CANARY));
}

#[tokio::test]
async fn a_self_correction_in_a_context_that_calls_itself_a_persons_does_not_leave_either() {
    let house = House::new().await;
    let side = &house.world.side;
    let first = side.turn(1, &[]).await;
    let (_, proposal) = house.corrects_itself(2, &first, "canary").await;
    let judgment = house.let_through(&proposal).await;
    side.turn(3, &[]).await;
    let late = house.correct(10, 3, "better").await;
    let mut event = side.reader.event(judgment.clone()).await.unwrap().unwrap();
    let mut said: serde_json::Value = serde_json::from_slice(event.payload.expose()).unwrap();
    said["criterion"] = "operator-correction".into();
    let bytes = thought_protocol::canonical::to_vec(&said).unwrap();
    event.envelope.payload_sha256 = Sha256Hex::of(&bytes);
    let chain = event.envelope.chain_sha256().unwrap();
    let sql = "UPDATE events SET payload = ?2, payload_sha256 = ?3, chain_sha256 = ?4 WHERE id = ?1";
    let sealed = (judgment.as_str(), &bytes, event.envelope.payload_sha256.as_str(), chain.as_str());
    assert_eq!(house.world.sql().execute(sql, sealed).unwrap(), 1);
    match released(&house, &late, "alex").await {
        Err(ReleaseError::Provenance { code }) => assert_eq!(code, "context-snapshot-judgment-unproven"),
        other => panic!("{other:?}"),
    }
}
