//! Group commit, faults at commit boundaries, full disks, and the length of the write-ahead log.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use thought_contract::draft::{self, Draft};
use thought_contract::payload::{AgentMessage, Incident};
use thought_contract::time::Timestamp;
use thought_protocol::Sensitive;
use thought_store::command::{Commit, Op};
use thought_store::engine::Committed;
use thought_store::row::Novelty;
use thought_store::{Engine, Reads, StoreError};
use thought_store_sqlite::{Creation, Faults, OpenOptions, PageCounting, SqliteStore, Verdict};

fn mail(id: &str, text: &str) -> Draft {
    let payload = AgentMessage {
        message_id: id.to_owned(),
        thread_id: "thread".to_owned(),
        sender_agent_id: "co".to_owned(),
        recipient_agent_id: "stream-agent-conversation".to_owned(),
        text: text.to_owned(),
    };
    draft::agent_message(&payload, Timestamp::from_ms(1)).unwrap()
}

fn incident(count: u64) -> Draft {
    let payload = Incident { kind: "update-parked".to_owned(), subject: "update".to_owned(), count };
    draft::incident("telegram", &payload, Timestamp::from_ms(1)).unwrap()
}

async fn append(store: &SqliteStore, draft: Draft) -> Result<Committed, StoreError> {
    store.commit(Commit { at: Timestamp::from_ms(2), ops: vec![Op::Append(Box::new(draft))] }).await
}

fn open(path: &Path, options: OpenOptions) -> Arc<SqliteStore> {
    SqliteStore::open(path, OpenOptions { creation: Creation::IfMissing, ..options }).unwrap()
}

/// Fails the n-th transaction at one side of its boundary.
struct FailAt {
    transaction: u64,
    before: Verdict,
    after: Verdict,
    asked: AtomicU64,
}

impl Faults for FailAt {
    fn before_commit(&self, transaction: u64) -> Verdict {
        self.asked.fetch_add(1, SeqCst);
        if transaction == self.transaction && self.asked.load(SeqCst) == transaction {
            self.before
        } else {
            Verdict::Proceed
        }
    }
    fn after_commit(&self, transaction: u64) -> Verdict {
        if transaction == self.transaction { self.after } else { Verdict::Proceed }
    }
}

fn fail_second(before: Verdict, after: Verdict) -> OpenOptions {
    let faults = FailAt { transaction: 2, before, after, asked: AtomicU64::new(0) };
    OpenOptions { faults: Some(Arc::new(faults)), ..OpenOptions::default() }
}

#[tokio::test]
async fn a_failure_before_the_boundary_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("thought.db"), fail_second(Verdict::Fail, Verdict::Proceed));
    append(&store, mail("m-1", "a")).await.unwrap();
    let failed = append(&store, mail("m-2", "b")).await;
    assert!(matches!(failed, Err(StoreError::Engine { .. })), "{failed:?}");
    assert_eq!(store.event_count().await.unwrap(), 1);
    assert_eq!(store.counters().commits, 1);
    let again = append(&store, mail("m-2", "b")).await.unwrap().appended.remove(0);
    assert_eq!((again.novelty, again.sequence), (Novelty::New, 2));
}

#[tokio::test]
async fn a_failure_behind_the_boundary_is_found_by_asking_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("thought.db"), fail_second(Verdict::Proceed, Verdict::Fail));
    append(&store, mail("m-1", "a")).await.unwrap();
    assert!(append(&store, mail("m-2", "b")).await.is_err());
    assert_eq!(store.event_count().await.unwrap(), 2);
    let again = append(&store, mail("m-2", "b")).await.unwrap().appended.remove(0);
    assert_eq!((again.novelty, again.sequence), (Novelty::Existing, 2));
}

#[tokio::test]
async fn a_full_disk_at_the_boundary_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("thought.db"), fail_second(Verdict::NoSpace, Verdict::Proceed));
    append(&store, mail("m-1", "a")).await.unwrap();
    assert!(matches!(append(&store, mail("m-2", "b")).await, Err(StoreError::NoSpace)));
    append(&store, mail("m-3", "c")).await.unwrap();
    assert_eq!(store.event_count().await.unwrap(), 2);
}

#[tokio::test]
async fn a_full_store_refuses_whole_commits_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let store = open(&path, OpenOptions { pages_max: Some(240), ..OpenOptions::default() });
    let text = "x".repeat(40_000);
    let mut kept = 0;
    let refused = loop {
        let id = format!("m-{kept}");
        let ops = vec![Op::Append(Box::new(mail(&id, &text))), Op::Append(Box::new(incident(kept)))];
        match store.commit(Commit { at: Timestamp::from_ms(2), ops }).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1_000, "the quota does not hold");
    };
    assert!(matches!(refused, StoreError::NoSpace), "{refused:?}");
    assert!(kept > 5);
    // Nothing half-done: both events of every commit, or neither.
    assert_eq!(store.event_count().await.unwrap(), 2 * kept);
    let sources: Vec<_> = store.sources().await.unwrap().iter().map(|source| source.head).collect();
    assert_eq!(sources, [kept, kept]);
    // The thread is alive, and a smaller commit still finds room.
    assert_eq!(append(&store, mail("m-0", &text)).await.unwrap().appended[0].novelty, Novelty::Existing);
    append(&store, mail("small", "x")).await.unwrap();
    drop(store);
    let store = open(&path, OpenOptions::default());
    append(&store, mail(&format!("m-{kept}"), &text)).await.unwrap();
    assert_eq!(store.event_count().await.unwrap(), 2 * kept + 2);
}

/// Holds the writer at its first boundary until everyone else has queued.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    reached: AtomicUsize,
}

impl Faults for Gate {
    fn before_commit(&self, _transaction: u64) -> Verdict {
        self.reached.fetch_add(1, SeqCst);
        let open = self.open.lock().unwrap();
        let (open, waited) =
            self.opened.wait_timeout_while(open, Duration::from_secs(20), |open| !*open).unwrap();
        assert!(*open && !waited.timed_out(), "nobody opened the gate");
        Verdict::Proceed
    }
}

impl Gate {
    fn release(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_wait_together_share_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let options = OpenOptions { faults: Some(gate.clone()), ..OpenOptions::default() };
    let store = open(&folder.path().join("thought.db"), options);
    let first = tokio::spawn({
        let store = store.clone();
        async move { append(&store, mail("first", "a")).await }
    });
    while gate.reached.load(SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let mut waiting = Vec::new();
    for client in 0..8 {
        let store = store.clone();
        // Half of them ask for something that cannot be: it takes nobody with it.
        let text = if client % 2 == 0 { "same".to_owned() } else { format!("other {client}") };
        waiting.push(tokio::spawn(async move {
            let own = append(&store, mail(&format!("m-{client}"), &text));
            let shared = append(&store, mail("shared", &text));
            tokio::join!(own, shared)
        }));
    }
    // Each client hands its commits over before it waits; the queue holds them all.
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.release();
    first.await.unwrap().unwrap();
    let (mut won, mut lost) = (0, 0);
    for client in waiting {
        let (own, shared) = client.await.unwrap();
        own.unwrap();
        match shared {
            Ok(_) => won += 1,
            Err(StoreError::Conflict { .. }) => lost += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(won + lost, 8);
    assert!(won == 4 || won == 1, "{won} appends of one text won");
    let counters = store.counters();
    assert_eq!(store.event_count().await.unwrap(), 10);
    assert_eq!(counters.commands, 9 + won);
    assert!(counters.commits < counters.commands, "{counters:?}");
}

#[tokio::test]
async fn the_log_does_not_keep_growing_behind_a_reader_that_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let log = folder.path().join("thought.db-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let store = open(&path, OpenOptions::default());
    append(&store, mail("m", "a")).await.unwrap();
    let mut reader = rusqlite::Connection::open(&path).unwrap();
    let held = reader.transaction().unwrap();
    held.query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0)).unwrap();
    let text = "x".repeat(16_000);
    let fill = async |name: &str, count: usize| {
        for number in 0..count {
            append(&store, mail(&format!("{name}-{number}"), &text)).await.unwrap();
        }
    };
    fill("held", 400).await;
    let grown = length();
    assert!(grown > 8_000_000, "{grown}");
    drop(held);
    fill("free", 800).await;
    // The commit that finds the reader gone still adds to it; from then on it is written over.
    assert!(length() < grown + 200_000, "{} {grown}", length());
    assert_eq!(store.event_count().await.unwrap(), 1_201);
}

#[tokio::test]
async fn news_of_another_opener_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let (here, there) = (open(&path, OpenOptions::default()), open(&path, OpenOptions::default()));
    let mut news = here.news();
    news.mark_unchanged();
    append(&there, mail("m", "a")).await.unwrap();
    news.changed().await.unwrap();
    assert_eq!(here.event_count().await.unwrap(), 1);
}

#[tokio::test]
async fn a_changed_row_is_corrupt_and_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let store = open(&path, OpenOptions::default());
    let id = append(&store, mail("m", "private words")).await.unwrap().appended[0].id.clone();
    let raw = rusqlite::Connection::open(&path).unwrap();
    for (column, value) in [
        ("type", "stream.thought.unknown@1"),
        ("payload_sha256", "private words"),
        ("root_id", "evt_short"),
        ("chain_sha256", ""),
    ] {
        raw.execute_batch("SAVEPOINT before").unwrap();
        raw.execute(&format!("UPDATE events SET {column} = ?1"), [value]).unwrap();
        raw.execute_batch("RELEASE before").unwrap();
        let error = store.event(id.clone()).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(id.as_str()) && !shown.contains("private"), "{shown}");
    }
}

#[tokio::test]
async fn counted_pages_grow_with_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let store = open(&path, OpenOptions { page_counting: PageCounting::On, ..OpenOptions::default() });
    for number in 0..40 {
        append(&store, mail(&format!("m-{number}"), &"x".repeat(16_000))).await.unwrap();
    }
    drop(store);
    let store = open(&path, OpenOptions { page_counting: PageCounting::On, ..OpenOptions::default() });
    let source = thought_contract::event::SourceName::agent_message("co");
    store.source_events(source.clone(), 0, 1).await.unwrap();
    let few = store.counters().pages_read;
    store.source_events(source, 1, 39).await.unwrap();
    let many = store.counters().pages_read - few;
    assert!(few >= 4 && many > 4 * few, "{few} {many}");
    let plain = open(&path, OpenOptions::default());
    plain.event_count().await.unwrap();
    assert_eq!(plain.counters().pages_read, 0);
}

#[tokio::test]
async fn an_update_outlives_a_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let channel = thought_contract::event::SourceName::new("telegram:stream");
    let store = open(&path, OpenOptions::default());
    let ops = vec![Op::SpoolPut { channel: channel.clone(), update: 1, body: Sensitive::new(vec![0, 255]) }];
    store.commit(Commit { at: Timestamp::from_ms(2), ops }).await.unwrap();
    drop(store);
    // The last one to close leaves one file: the log is moved into it.
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1);
    let store = open(&path, OpenOptions::default());
    assert_eq!(store.spool(channel, 9).await.unwrap()[0].body.expose(), &[0, 255]);
}
