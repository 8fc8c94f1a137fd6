//! `/correct`: by the message that is replied to, by the newest reply, or refused.

use std::sync::Arc;

use thought_authority::correct::{Corrections, Refusal, Settled, is_settled_before};
use thought_contract::draft;
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload as p;
use thought_protocol::EventId;
use thought_store::handle::CORRECTIONS_CURSOR;
use thought_store::row::CorrectionOutcome;

use crate::world::{Ask, Still, World, at, telegram};

struct Says<'a> {
    chat: i64,
    thread: Option<i64>,
    words: Option<&'a str>,
    to: Option<i64>,
}

const SAYS: Says<'static> = Says { chat: 4242, thread: None, words: Some(" four "), to: None };

async fn command(world: &World, number: i64, word: &str, says: &Says<'_>) -> StoredEvent {
    let payload = p::TelegramCommand {
        chat_id: says.chat,
        thread_id: says.thread,
        message_id: number,
        user_id: 4242,
        command: word.to_owned(),
        argument: says.words.map(str::to_owned),
        reply_to_message_id: says.to,
    };
    let draft = draft::telegram_command(&telegram(), 7, &payload, at(4)).unwrap();
    let appended = world.side.store.telegram_ingress(telegram()).admit(&[], draft).await.unwrap();
    world.side.reader.event(appended.id).await.unwrap().unwrap()
}

fn projector(world: &World) -> Corrections {
    let handles = (world.side.reader.clone(), world.side.store.judgments());
    Corrections::new(handles, Arc::new(Still))
}

async fn judged(world: &World, settled: &Settled) -> p::JudgmentRecorded {
    let Settled::Judged { judgment, .. } = settled else { panic!("{settled:?}") };
    world.side.reader.event(judgment.clone()).await.unwrap().unwrap().payload().unwrap()
}

async fn one(world: &World) -> Settled {
    let mut settled = projector(world).catch_up().await.unwrap();
    assert_eq!(settled.len(), 1, "{settled:?}");
    settled.remove(0)
}

#[tokio::test]
async fn the_message_that_is_replied_to_is_meant_and_else_the_newest_reply() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let second = world.side.turn(2, &[]).await;
    command(&world, 10, "correct", &Says { to: Some(5_001), ..SAYS }).await;
    let judgment = judged(&world, &one(&world).await).await;
    assert_eq!((judgment.target.output.clone(), judgment.target.run), (first.output, first.run));
    assert_eq!(
        (judgment.criterion.as_str(), judgment.actor.as_str()),
        ("operator-correction", "human:telegram:4242")
    );
    assert_eq!((judgment.quality_eligible, judgment.external_export_eligible), (true, false));
    assert_eq!(judgment.replacement.summary, "four");
    command(&world, 11, "correct", &SAYS).await;
    let judgment = judged(&world, &one(&world).await).await;
    assert_eq!((judgment.target.output, judgment.supersedes), (second.output, None));
    assert!(projector(&world).catch_up().await.unwrap().is_empty());
    // The next turn freezes the corrected words.
    let third = world.side.turn(3, &[Ask::Append("- x".to_owned())]).await;
    world.side.validate(&third.only()).await.unwrap();
}

#[tokio::test]
async fn a_reply_that_came_after_the_command_is_not_meant() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    command(&world, 10, "correct", &SAYS).await;
    let second = world.side.turn(2, &[]).await;
    assert_ne!(first.output, second.output);
    assert_eq!(judged(&world, &one(&world).await).await.target.output, first.output);
}

#[tokio::test]
async fn a_second_correction_takes_the_place_of_the_first_and_of_an_accepted_one() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let own = world.side.turn(2, &[Ask::Correct(first.output.clone(), "a".to_owned())]).await.only();
    world.side.accept(&own).await;
    let accepted = world.side.project(&own).await.evidence;
    command(&world, 10, "correct", &Says { to: Some(5_001), ..SAYS }).await;
    command(&world, 11, "correct", &Says { to: Some(5_001), words: Some("4"), ..SAYS }).await;
    let settled = projector(&world).catch_up().await.unwrap();
    let (one, two) = (judged(&world, &settled[0]).await, judged(&world, &settled[1]).await);
    assert_eq!(one.supersedes, accepted);
    let Settled::Judged { judgment, .. } = &settled[0] else { panic!("judged") };
    assert_eq!(two.supersedes.as_ref(), Some(judgment));
    let stands = world.side.reader.active_judgment(first.output).await.unwrap();
    assert_eq!(world.side.events(EventType::JudgmentRecorded).await[2].envelope.id, stands.unwrap());
}

#[tokio::test]
async fn what_matches_nothing_is_refused_once_and_judges_nothing() {
    let world = World::new().await;
    world.side.turn(1, &[]).await;
    let long = "x".repeat(4_097);
    for (n, (says, refusal)) in [
        (Says { words: None, ..SAYS }, Refusal::Words),
        (Says { words: Some("  \n"), ..SAYS }, Refusal::Words),
        (Says { words: Some(&long), ..SAYS }, Refusal::Words),
        (Says { to: Some(1), ..SAYS }, Refusal::NoReply),
        (Says { chat: 9, ..SAYS }, Refusal::NoReply),
        (Says { chat: 9, to: Some(5_001), ..SAYS }, Refusal::NoReply),
        (Says { thread: Some(3), ..SAYS }, Refusal::NoReply),
        (Says { thread: Some(3), to: Some(5_001), ..SAYS }, Refusal::NotMatched),
    ]
    .into_iter()
    .enumerate()
    {
        let event = command(&world, 10 + i64::try_from(n).unwrap(), "correct", &says).await;
        let id = event.envelope.id;
        assert_eq!(one(&world).await, Settled::Refused { command: id.clone(), refusal });
        let row = world.side.reader.correction(id).await.unwrap().unwrap();
        assert_eq!(row.outcome, CorrectionOutcome::Refused(refusal.as_str().to_owned()));
    }
    assert!(world.side.events(EventType::JudgmentRecorded).await.is_empty());
    assert_eq!(world.side.reader.refused_corrections(0, 99).await.unwrap().len(), 8);
}

#[tokio::test]
async fn a_message_waits_for_the_corrections_before_it_and_for_no_others() {
    let world = World::new().await;
    world.side.turn(1, &[]).await;
    let before = world.side.message(2).await;
    command(&world, 10, "help", &SAYS).await;
    command(&world, 11, "correct", &Says { chat: 9, ..SAYS }).await;
    let unaffected = world.side.message(3).await;
    command(&world, 12, "correct", &SAYS).await;
    let waits = world.side.message(4).await;
    let settled = async |message: &StoredEvent| is_settled_before(&world.side.reader, message).await.unwrap();
    assert!(settled(&before).await && settled(&unaffected).await);
    assert!(!settled(&waits).await);
    assert_eq!(projector(&world).catch_up().await.unwrap().len(), 2);
    assert!(settled(&waits).await);
}

#[tokio::test]
async fn many_projectors_settle_each_command_once_and_other_commands_cost_little() {
    let world = World::new().await;
    world.side.turn(1, &[]).await;
    for n in 0..70 {
        command(&world, 100 + n, "help", &SAYS).await;
    }
    for n in 0..5 {
        command(&world, 200 + n, "correct", &SAYS).await;
    }
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let projector = projector(&world);
        tasks.push(tokio::spawn(async move { projector.catch_up().await }));
    }
    let mut settled: Vec<EventId> = Vec::new();
    for task in tasks {
        for one in task.await.unwrap().unwrap() {
            let Settled::Judged { judgment, .. } = one else { panic!("{one:?}") };
            settled.push(judgment);
        }
    }
    settled.sort();
    settled.dedup();
    assert_eq!(settled.len(), 5);
    assert_eq!(world.side.events(EventType::JudgmentRecorded).await.len(), 5);
    assert!(world.side.reader.cursor(CORRECTIONS_CURSOR.to_owned()).await.unwrap() > 70);
}

#[tokio::test]
async fn a_reply_whose_chain_does_not_hold_is_not_corrected() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let sql = "UPDATE runs SET state = 'failed' WHERE id = ?1";
    world.sql().execute(sql, [first.run.as_str()]).unwrap();
    command(&world, 10, "correct", &SAYS).await;
    assert!(matches!(one(&world).await, Settled::Refused { refusal: Refusal::NotMatched, .. }));
}
