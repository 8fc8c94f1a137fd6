//! Deliveries: chunk by chunk, each step a compare-and-set; and the one question that history asks.

use std::sync::Arc;

use thought_contract::draft::{self, Draft};
use thought_contract::payload::{DeliveredChunk, DeliveryKind, DeliveryTelegram};
use thought_protocol::EventId;

use super::world::{
    CHAT, answered, append, at, done, install, mail, new_run, put_snapshot, refused, settlement, start,
};
use super::world::{answer, stored, telegram};
use crate::command::{Op, Presence};
use crate::engine::{Engine, Precondition};
use crate::row::{ChunkState, DeliveryState, ReplyState};

const REPLY: DeliveryKind = DeliveryKind::Reply;

pub(super) fn open(cause: &EventId, kind: DeliveryKind, chunk_utf16_lengths: &[u64]) -> Op {
    Op::OpenDelivery {
        cause: cause.clone(),
        kind,
        channel: telegram(),
        chat: CHAT,
        thread: Some(3),
        chunk_utf16_lengths: chunk_utf16_lengths.to_vec(),
    }
}

pub(super) fn chunk(cause: &EventId, ordinal: u32, from: ChunkState, to: ChunkState) -> Op {
    let message = (to == ChunkState::Sent).then_some(500 + i64::from(ordinal));
    Op::MoveChunk { cause: cause.clone(), kind: REPLY, ordinal, from, to, message, confirmed_by: None }
}

pub(super) fn delivery(cause: &EventId, to: DeliveryState, receipt: Option<EventId>) -> Op {
    let reason = (to == DeliveryState::Refused).then(|| "forbidden".to_owned());
    Op::MoveDelivery { cause: cause.clone(), kind: REPLY, to, reason, receipt }
}

pub(super) async fn receipt(engine: &Arc<dyn Engine>, output: &EventId) -> Draft {
    let payload = DeliveryTelegram {
        kind: REPLY,
        chat_id: CHAT,
        thread_id: None,
        chunks: vec![DeliveredChunk { message_id: Some(500), utf16_length: 2, confirmed_by: None }],
        run: None,
        output: Some(output.clone()),
    };
    let cause = engine.event(output.clone()).await.unwrap().unwrap();
    draft::delivery(&telegram(), &cause, &payload, at(5)).unwrap()
}

/// Delivers an output in one chunk; the receipt.
pub(super) async fn delivered(engine: &Arc<dyn Engine>, output: &EventId) -> EventId {
    let receipt = receipt(engine, output).await;
    let id = receipt.id().clone();
    done(engine, vec![open(output, REPLY, &[2])]).await;
    let ops = vec![
        chunk(output, 0, ChunkState::Sending, ChunkState::Sent),
        append(receipt),
        delivery(output, DeliveryState::Delivered, Some(id.clone())),
    ];
    done(engine, ops).await;
    id
}

async fn output(engine: &Arc<dyn Engine>) -> EventId {
    install(engine).await;
    answered(engine, 1).await.2
}

async fn chunks(engine: &Arc<dyn Engine>, cause: &EventId) -> Vec<ChunkState> {
    let row = engine.delivery(cause.clone(), REPLY).await.unwrap().unwrap();
    row.chunks.iter().map(|chunk| chunk.state).collect()
}

pub(super) async fn a_delivery_goes_chunk_by_chunk(engine: Arc<dyn Engine>) {
    use ChunkState::{Pending, Sending, Sent};
    let output = output(&engine).await;
    assert_eq!(engine.delivery(output.clone(), REPLY).await.unwrap(), None);
    done(&engine, vec![open(&output, REPLY, &[4096, 17])]).await;
    assert_eq!(chunks(&engine, &output).await, [Sending, Pending]);
    done(&engine, vec![chunk(&output, 0, Sending, Sent), chunk(&output, 1, Pending, Sending)]).await;
    assert_eq!(chunks(&engine, &output).await, [Sent, Sending]);
    let receipt = receipt(&engine, &output).await;
    let id = receipt.id().clone();
    let last = vec![
        chunk(&output, 1, Sending, Sent),
        append(receipt),
        delivery(&output, DeliveryState::Delivered, Some(id.clone())),
    ];
    done(&engine, last).await;
    let row = engine.delivery(output.clone(), REPLY).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.receipt, row.chat, row.thread),
        (DeliveryState::Delivered, Some(id), CHAT, Some(3))
    );
    let told: Vec<_> =
        row.chunks.iter().map(|chunk| (chunk.ordinal, chunk.utf16_length, chunk.message)).collect();
    assert_eq!(told, [(0, 4096, Some(500)), (1, 17, Some(501))]);
    assert!(engine.unfinished_deliveries(telegram(), vec![], 10).await.unwrap().is_empty());
    // Done is done.
    refused(&engine, vec![delivery(&output, DeliveryState::Sending, None)], Precondition::DeliveryState)
        .await;
    refused(&engine, vec![chunk(&output, 1, Sent, Sending)], Precondition::DeliveryState).await;
}

pub(super) async fn a_delivery_is_opened_once(engine: Arc<dyn Engine>) {
    let output = output(&engine).await;
    done(&engine, vec![open(&output, REPLY, &[2])]).await;
    let cursor = Op::SetCursor { name: "c".to_owned(), position: 4 };
    refused(&engine, vec![cursor, open(&output, REPLY, &[2])], Precondition::DeliveryAbsent).await;
    assert_eq!(engine.cursor("c".to_owned()).await.unwrap(), 0);
}

pub(super) async fn a_chunk_moves_only_from_where_it_stands(engine: Arc<dyn Engine>) {
    use ChunkState::{Pending, Sending, Sent, Uncertain};
    let output = output(&engine).await;
    refused(&engine, vec![chunk(&output, 0, Sending, Sent)], Precondition::DeliveryState).await;
    done(&engine, vec![open(&output, REPLY, &[2])]).await;
    for op in [
        chunk(&output, 0, Pending, Sending),
        chunk(&output, 0, Uncertain, Sent),
        chunk(&output, 1, Sending, Sent),
    ] {
        refused(&engine, vec![op], Precondition::DeliveryState).await;
    }
    assert_eq!(chunks(&engine, &output).await, [Sending]);
}

pub(super) async fn an_uncertain_chunk_is_confirmed_or_sent_again(engine: Arc<dyn Engine>) {
    use ChunkState::{Sending, Sent, Uncertain};
    let output = output(&engine).await;
    done(&engine, vec![open(&output, REPLY, &[2])]).await;
    let uncertain =
        vec![chunk(&output, 0, Sending, Uncertain), delivery(&output, DeliveryState::Uncertain, None)];
    done(&engine, uncertain.clone()).await;
    let waiting = engine.unfinished_deliveries(telegram(), vec![], 10).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].state), (1, DeliveryState::Uncertain));
    done(
        &engine,
        vec![chunk(&output, 0, Uncertain, Sending), delivery(&output, DeliveryState::Sending, None)],
    )
    .await;
    done(&engine, uncertain).await;
    let confirm = Op::MoveChunk {
        cause: output.clone(),
        kind: REPLY,
        ordinal: 0,
        from: Uncertain,
        to: Sent,
        message: None,
        confirmed_by: Some("alex".to_owned()),
    };
    done(&engine, vec![confirm]).await;
    let row = engine.delivery(output, REPLY).await.unwrap().unwrap();
    assert_eq!((row.chunks[0].message, row.chunks[0].confirmed_by.as_deref()), (None, Some("alex")));
}

pub(super) async fn a_chunk_that_was_not_sent_waits_and_is_sent_again(engine: Arc<dyn Engine>) {
    use ChunkState::{Pending, Sending};
    let output = output(&engine).await;
    done(&engine, vec![open(&output, REPLY, &[2])]).await;
    let reason = Some("retry-after".to_owned());
    let waits = Op::MoveDelivery {
        cause: output.clone(),
        kind: REPLY,
        to: DeliveryState::Sending,
        reason: reason.clone(),
        receipt: None,
    };
    done(&engine, vec![chunk(&output, 0, Sending, Pending), waits]).await;
    let row = engine.delivery(output.clone(), REPLY).await.unwrap().unwrap();
    assert_eq!((row.state, row.reason, row.chunks[0].state), (DeliveryState::Sending, reason, Pending));
    assert_eq!(engine.reply_state(output.clone()).await.unwrap(), ReplyState::Sending);
    let again = vec![chunk(&output, 0, Pending, Sending), delivery(&output, DeliveryState::Sending, None)];
    done(&engine, again).await;
    let row = engine.delivery(output, REPLY).await.unwrap().unwrap();
    assert_eq!((row.reason, row.chunks[0].state), (None, Sending));
}

pub(super) async fn a_refused_delivery_stays_unfinished(engine: Arc<dyn Engine>) {
    let output = output(&engine).await;
    done(&engine, vec![open(&output, REPLY, &[2])]).await;
    let ops = vec![
        chunk(&output, 0, ChunkState::Sending, ChunkState::Refused),
        delivery(&output, DeliveryState::Refused, None),
    ];
    done(&engine, ops).await;
    let rows = engine.unfinished_deliveries(telegram(), vec![], 10).await.unwrap();
    assert_eq!((rows.len(), rows[0].reason.as_deref()), (1, Some("forbidden")));
    assert!(engine.unfinished_deliveries(telegram(), vec![], 0).await.unwrap().is_empty());
    // What is asked for is found behind what is not.
    let waits = answered(&engine, 2).await.2;
    done(&engine, vec![open(&waits, REPLY, &[2])]).await;
    for (states, found) in [
        (vec![DeliveryState::Sending], vec![&waits]),
        (vec![DeliveryState::Refused], vec![&output]),
        (vec![DeliveryState::Uncertain, DeliveryState::Delivered], vec![]),
        (vec![DeliveryState::Refused, DeliveryState::Sending], vec![&output, &waits]),
    ] {
        let rows = engine.unfinished_deliveries(telegram(), states, 10).await.unwrap();
        assert!(rows.iter().map(|row| &row.cause).eq(found), "{rows:?}");
    }
    assert_eq!(engine.reply_state(output).await.unwrap(), ReplyState::NotDelivered);
}

pub(super) async fn what_became_of_an_output(engine: Arc<dyn Engine>) {
    let first = output(&engine).await;
    let state = |output: &EventId| engine.reply_state(output.clone());
    let role = |presence| vec![Op::SetRole { role: "dispatcher:telegram:stream".to_owned(), presence }];
    assert_eq!(state(&first).await.unwrap(), ReplyState::NotDelivered);
    done(&engine, role(Presence::AtWork)).await;
    assert_eq!(state(&first).await.unwrap(), ReplyState::Sending);
    done(&engine, role(Presence::Away)).await;
    assert_eq!(state(&first).await.unwrap(), ReplyState::NotDelivered);
    let receipt = delivered(&engine, &first).await;
    assert_eq!(state(&first).await.unwrap(), ReplyState::Receipt(receipt));

    let second = answered(&engine, 2).await.2;
    done(&engine, vec![open(&second, REPLY, &[2])]).await;
    assert_eq!(state(&second).await.unwrap(), ReplyState::Sending);
    let uncertain = vec![
        chunk(&second, 0, ChunkState::Sending, ChunkState::Uncertain),
        delivery(&second, DeliveryState::Uncertain, None),
    ];
    done(&engine, uncertain).await;
    assert_eq!(state(&second).await.unwrap(), ReplyState::NotDelivered);

    // An answer to an agent goes nowhere by itself, whatever dispatchers are at work.
    done(&engine, role(Presence::AtWork)).await;
    let trigger = stored(&engine, mail("co", "m-1", "text")).await;
    let run = new_run(&trigger, 0);
    let settled = answer(&trigger, &run.id, 1, "hi");
    let reply = settled.output.id().clone();
    done(&engine, vec![Op::AdmitRun(run.clone()), put_snapshot(&run.id), start(&run.id, 1)]).await;
    done(&engine, settlement(&run.id, 1, settled)).await;
    assert_eq!(state(&reply).await.unwrap(), ReplyState::NotDelivered);
    assert_eq!(state(&trigger.envelope.id).await.unwrap(), ReplyState::NotDelivered);
}

pub(super) async fn notices_and_replies_of_one_cause_are_apart(engine: Arc<dyn Engine>) {
    let output = output(&engine).await;
    done(&engine, vec![open(&output, DeliveryKind::RunFailed, &[9])]).await;
    assert_eq!(engine.delivery(output.clone(), REPLY).await.unwrap(), None);
    done(&engine, vec![open(&output, REPLY, &[2])]).await;
    assert_eq!(engine.unfinished_deliveries(telegram(), vec![], 10).await.unwrap().len(), 2);
    let kinds: Vec<_> = engine
        .unfinished_deliveries(telegram(), vec![], 1)
        .await
        .unwrap()
        .iter()
        .map(|row| row.kind)
        .collect();
    assert_eq!(kinds, [DeliveryKind::RunFailed]);
}
