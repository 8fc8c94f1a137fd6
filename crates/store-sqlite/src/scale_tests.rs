//! The path of a turn costs the same whatever stands in the store: rows, and the steps of SQLite's own machine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rusqlite::Connection;
use thought_contract::draft;
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload as p;
use thought_contract::run::{RunState, attempt_id, run_id, snapshot_id};
use thought_contract::time::Timestamp;
use thought_protocol::{Fingerprint, Sensitive, Sha256Hex};
use thought_store::command::{AttemptEnd, Commit, NewAttempt, NewDeclaration, NewRun, NewSnapshot, Op};
use thought_store::row::{ChunkState, Counters, DeliveryState, EventFilter, HistoryQuery};
use thought_store::{Engine, Reads};

use crate::{OpenOptions, SqliteStore};

const AGENT: &str = "stream-telegram-conversation";

fn at() -> Timestamp {
    Timestamp::from_ms(1_796_072_531_000)
}

fn telegram() -> SourceName {
    SourceName::new("telegram:stream")
}

async fn commit(store: &SqliteStore, ops: Vec<Op>) {
    store.commit(Commit { at: at(), ops }).await.unwrap();
}

fn message(number: i64) -> draft::Draft {
    let payload = p::TelegramMessage {
        chat_id: 1,
        thread_id: None,
        message_id: number,
        user_id: 1,
        text: Some("hello".to_owned()),
        images: vec![],
        reply_to_message_id: None,
        media_group_id: None,
    };
    draft::telegram_message(&telegram(), 1, &payload, at()).unwrap()
}

/// A whole turn: spool, event, run, answer, delivery, and the reads around them.
async fn turn(store: &SqliteStore, number: i64) {
    let body = Sensitive::new(b"{}".to_vec());
    commit(store, vec![Op::SpoolPut { channel: telegram(), update: number, body }]).await;
    store.spool(telegram(), 10).await.unwrap();
    let draft = message(number);
    let id = draft.id().clone();
    let forget = Op::SpoolDelete { channel: telegram(), update: number };
    commit(store, vec![Op::Append(Box::new(draft)), forget]).await;
    let trigger = store.event(id.clone()).await.unwrap().unwrap();
    let sequence = trigger.envelope.sequence;
    assert_eq!(store.source_events(telegram(), sequence - 1, 10).await.unwrap().len(), 1);
    let (conversation, ordinal) = store.turn_ordinal(id.clone()).await.unwrap().unwrap();
    let query = HistoryQuery {
        source: telegram(),
        conversation: conversation.clone(),
        before_ordinal: ordinal,
        limit: 4,
        agents: vec![AGENT.to_owned()],
    };
    assert_eq!(store.history(query).await.unwrap().len(), 4);
    store.turn_ids(telegram(), conversation.clone(), 1, ordinal - 4, 8).await.unwrap();
    let run = run_id(AGENT, 1, &id, 0);
    let new = NewRun {
        id: run.clone(),
        declaration: AGENT.to_owned(),
        version: 1,
        trigger: id.clone(),
        source: telegram(),
        sequence,
        conversation,
        retry: 0,
    };
    let snapshot = NewSnapshot {
        id: snapshot_id(&run),
        sha256: Sha256Hex::of(b"frozen"),
        packet_sha256: Sha256Hex::of(b"packet"),
        bytes: Sensitive::new(b"frozen".to_vec()),
    };
    let attempt = NewAttempt {
        id: attempt_id(&run, 1),
        ordinal: 1,
        sandbox: "full".to_owned(),
        day: "2026-11-30".to_owned(),
        requests_per_day_max: u64::from(u32::MAX),
    };
    let start = vec![
        Op::AdmitRun(new),
        Op::SetScanned { declaration: AGENT.to_owned(), source: telegram(), sequence },
        Op::PutSnapshot { run: run.clone(), snapshot },
        Op::StartAttempt { run: run.clone(), attempt },
    ];
    commit(store, start).await;
    settle_and_deliver(store, &trigger, &run).await;
    assert!(store.open_runs(AGENT.to_owned()).await.unwrap().is_empty());
    store.run_counts().await.unwrap();
    store.consumers().await.unwrap();
    store.event_count().await.unwrap();
    store.unfinished_deliveries(telegram(), vec![], 10).await.unwrap();
}

async fn settle_and_deliver(
    store: &SqliteStore,
    trigger: &thought_contract::event::StoredEvent,
    run: &thought_protocol::RunId,
) {
    let payload = p::MessageObservation {
        summary: "hi".to_owned(),
        truncated: false,
        contract: p::OutputContract::ConversationText,
        run: run.clone(),
        agent: p::AgentVersion { id: AGENT.to_owned(), version: 1, fingerprint: Fingerprint::of(b"d") },
        provider: "main".to_owned(),
        model: "a-model".to_owned(),
        context_snapshot: snapshot_id(run),
    };
    let output = draft::observation(trigger, &payload, at()).unwrap();
    let output_id = output.id().clone();
    let payload = p::RunCompleted {
        run: run.clone(),
        attempt: attempt_id(run, 1),
        context_snapshot: snapshot_id(run),
        output: output_id.clone(),
        proposals: vec![],
        usage: p::Usage { input_tokens: None, output_tokens: None },
        thinking_parts_dropped: 0,
    };
    let completed = draft::run_completed(AGENT, trigger, &payload, at()).unwrap();
    let attempt = AttemptEnd {
        attempt: attempt_id(run, 1),
        state: thought_contract::run::AttemptState::Answered,
        reason: None,
        input_tokens: Some(1),
        output_tokens: Some(1),
    };
    let end = Op::EndRun {
        run: run.clone(),
        state: RunState::Completed,
        reason: None,
        output: Some(output_id.clone()),
        terminal: completed.id().clone(),
    };
    let append = |draft| Op::Append(Box::new(draft));
    commit(store, vec![Op::EndAttempt(attempt), append(output), append(completed), end]).await;
    deliver(store, run, output_id).await;
}

async fn deliver(store: &SqliteStore, run: &thought_protocol::RunId, output_id: thought_protocol::EventId) {
    let name = "dispatcher:telegram:stream".to_owned();
    let after_position = store.cursor(name.clone()).await.unwrap();
    let types = vec![EventType::MessageObservation, EventType::RunFailed, EventType::NoticeRequested];
    let filter = EventFilter { types, after_position, limit: 16, ..EventFilter::default() };
    let found = store.events(filter).await.unwrap();
    assert_eq!(found.len(), 1);
    let open = Op::OpenDelivery {
        cause: output_id.clone(),
        kind: p::DeliveryKind::Reply,
        channel: telegram(),
        chat: 1,
        thread: None,
        chunk_utf16_lengths: vec![2],
    };
    let position = found[0].envelope.position;
    commit(store, vec![open, Op::SetCursor { name, position }]).await;
    store.reply_state(output_id.clone()).await.unwrap();
    let payload = p::DeliveryTelegram {
        kind: p::DeliveryKind::Reply,
        chat_id: 1,
        thread_id: None,
        chunks: vec![],
        run: Some(run.clone()),
        output: Some(output_id.clone()),
    };
    let receipt = draft::delivery(&telegram(), &found[0], &payload, at()).unwrap();
    let (cause, kind) = (output_id, p::DeliveryKind::Reply);
    let receipt_id = receipt.id().clone();
    let ops = vec![
        Op::MoveChunk {
            cause: cause.clone(),
            kind,
            ordinal: 0,
            from: ChunkState::Sending,
            to: ChunkState::Sent,
            message: Some(1),
            confirmed_by: None,
        },
        Op::Append(Box::new(receipt)),
        Op::MoveDelivery {
            cause,
            kind,
            to: DeliveryState::Delivered,
            reason: None,
            receipt: Some(receipt_id),
        },
    ];
    commit(store, ops).await;
}

/// Multiplies what is in the store: events, runs, attempts, snapshots and deliveries of other conversations and of the
/// same source and declaration.
fn fill(path: &Path, copies: u32) {
    let raw = Connection::open(path).unwrap();
    raw.execute_batch("PRAGMA synchronous = OFF; BEGIN").unwrap();
    let last: u32 = raw.query_row("SELECT max(position) FROM events", [], |row| row.get(0)).unwrap();
    let head: u32 = raw
        .query_row("SELECT head FROM sources WHERE name = 'telegram:stream'", [], |row| row.get(0))
        .unwrap();
    for table in ["events", "runs", "attempts", "snapshots", "deliveries"] {
        let statement = match table {
            "events" => {
                "INSERT INTO events SELECT ?2 + ?1, 'evt_' || hex(?1 * 2654435761 % 4294967296), type, source, ?3 + ?1, actor, 'evt_' || hex(?1 * 2654435761 % 4294967296),
                    'evt_p' || hex(?1 * 2654435761 % 4294967296), correlation_id, external_id, occurred_ms, recorded_ms, payload_sha256,
                    previous_sha256, chain_sha256, equality_sha256, 'other:' || (?1 % 50), ?1, payload,
                    ?2 + ?1, ?2 + ?1 - 1
                 FROM events WHERE position = 2"
            }
            "runs" => {
                "INSERT INTO runs SELECT 1000 + ?1, 'run_' || hex(?1 * 2654435761 % 4294967296), declaration, version, 'evt_' || hex(?1 * 2654435761 % 4294967296), source,
                    ?3 + ?1, 'other', retry, state, reason, attempts, 'snap_' || hex(?1 * 2654435761 % 4294967296), 'evt_o' || hex(?1 * 2654435761 % 4294967296),
                    ?2 + ?1, 'evt_e' || hex(?1 * 2654435761 % 4294967296), ?2 + ?1, admitted_ms, ended_ms, reply_position
                 FROM runs WHERE ordinal = 1 AND ?2 > 0"
            }
            "attempts" => {
                "INSERT INTO attempts SELECT 1000 + ?1, 1, 'att_' || hex(?1 * 2654435761 % 4294967296), 'run_' || hex(?1 * 2654435761 % 4294967296), state, reason, sandbox, day,
                    started_ms, ended_ms, input_tokens, output_tokens
                 FROM attempts WHERE rowid = 1 AND ?2 + ?3 > 0"
            }
            "snapshots" => {
                "INSERT INTO snapshots SELECT 1000 + ?1, 'snap_' || hex(?1 * 2654435761 % 4294967296), 'run_' || hex(?1 * 2654435761 % 4294967296), sha256, packet_sha256, bytes
                 FROM snapshots WHERE run_ordinal = 1 AND ?2 + ?3 > 0"
            }
            _ => {
                "INSERT INTO deliveries SELECT NULL, 'evt_o' || hex(?1 * 2654435761 % 4294967296), ?2 + ?1, kind, channel, chat, thread, state,
                    reason, receipt, receipt_position, opened_ms
                 FROM deliveries WHERE ordinal = 1 AND ?2 + ?3 > 0"
            }
        };
        let mut statement = raw.prepare(statement).unwrap();
        for copy in 1..=copies {
            assert_eq!(statement.execute([copy, last, head]).unwrap(), 1, "{table}");
        }
    }
    raw.execute("UPDATE sources SET head = head + ?1 WHERE name = 'telegram:stream'", [copies]).unwrap();
    raw.execute("UPDATE run_counts SET runs = runs + ?1 WHERE state = 'completed'", [copies]).unwrap();
    raw.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

async fn cost(store: &SqliteStore, number: i64) -> (Counters, u64) {
    let (before, steps_before) = (store.counters(), store.totals().steps.load(Relaxed));
    turn(store, number).await;
    let (after, steps_after) = (store.counters(), store.totals().steps.load(Relaxed));
    let counters = Counters {
        commits: after.commits - before.commits,
        commands: after.commands - before.commands,
        rows_read: after.rows_read - before.rows_read,
        rows_written: after.rows_written - before.rows_written,
        pages_read: 0,
    };
    (counters, steps_after - steps_before)
}

#[tokio::test]
async fn a_turn_costs_the_same_in_a_store_a_hundred_times_as_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let open = || -> Arc<SqliteStore> { SqliteStore::open(&path, OpenOptions::create()).unwrap() };
    let store = open();
    let declaration = NewDeclaration {
        id: AGENT.to_owned(),
        version: 1,
        expected_active: None,
        fingerprint: Fingerprint::of(b"d"),
        declaration: Sensitive::new(vec![1]),
        prompt: Sensitive::new(vec![2]),
        manifest: Sensitive::new(vec![3]),
        sources: vec![(telegram(), 0)],
    };
    commit(&store, vec![Op::InstallDeclaration(declaration)]).await;
    for number in 1..=4 {
        let draft = message(number);
        commit(&store, vec![Op::Append(Box::new(draft))]).await;
    }
    for number in 5..=20 {
        turn(&store, number).await;
    }
    let small = cost(&store, 21).await;
    drop(store);
    fill(&path, 20_000);
    let store = open();
    turn(&store, 22).await;
    let large = cost(&store, 23).await;
    assert_eq!(small.0, large.0);
    assert_eq!(small.0.commits, 6);
    let (low, high) = (small.1 - small.1 / 20, small.1 + small.1 / 20);
    assert!(
        (low..=high).contains(&large.1),
        "{} steps in a small store, {} in a large one",
        small.1,
        large.1
    );
}
