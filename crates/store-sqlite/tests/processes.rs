//! Several processes on one file: appends, kills, and the race to open.
//!
//! A child is this test binary itself, told by its environment what to do.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use thought_contract::draft::{self, Draft};
use thought_contract::event::SourceName;
use thought_contract::payload::AgentMessage;
use thought_contract::time::Timestamp;
use thought_protocol::Sha256Hex;
use thought_store::command::{Commit, Op};
use thought_store::{Engine, Reads, StoreError};
use thought_store_sqlite::{OpenOptions, SqliteStore};

const ROLE: &str = "STORE_TEST_ROLE";
const STORE: &str = "STORE_TEST_FILE";
const NAME: &str = "STORE_TEST_NAME";

fn mail(id: &str) -> Draft {
    let payload = AgentMessage {
        message_id: id.to_owned(),
        thread_id: "thread".to_owned(),
        sender_agent_id: "co".to_owned(),
        recipient_agent_id: "stream-agent-conversation".to_owned(),
        text: "text".to_owned(),
    };
    draft::agent_message(&payload, Timestamp::from_ms(1)).unwrap()
}

async fn append(store: &SqliteStore, id: &str) -> Result<(), StoreError> {
    let ops = vec![Op::Append(Box::new(mail(id)))];
    store.commit(Commit { at: Timestamp::from_ms(2), ops }).await.map(drop)
}

#[expect(clippy::disallowed_methods, reason = "the engine's promises hold between processes")]
fn child(role: &str, path: &Path, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "the_work_of_a_child", "--nocapture"])
        .env(ROLE, role)
        .env(STORE, path)
        .env(NAME, name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Lines that a child told, without those of its test harness.
fn told(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = child.stdout.take().unwrap();
    BufReader::new(output)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("told: ").map(|(_, line)| line.to_owned()))
}

fn tell(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "told: {line}").unwrap();
    out.flush().unwrap();
}

/// Does nothing unless this process was started as a child.
#[tokio::test]
async fn the_work_of_a_child() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let path = PathBuf::from(std::env::var_os(STORE).unwrap());
    let name = std::env::var_os(NAME).unwrap().into_string().unwrap();
    let store = match SqliteStore::open(&path, OpenOptions::create()) {
        Ok(store) => store,
        Err(error) => return tell(&format!("refused: {error}")),
    };
    match role.to_str().unwrap() {
        "open" => tell("opened"),
        "append" => {
            for number in 0..60 {
                append(&store, &format!("{name}-{number}")).await.unwrap();
                append(&store, &format!("shared-{number}")).await.unwrap();
            }
            tell("done");
        }
        "append-for-ever" => {
            for number in 0.. {
                append(&store, &format!("{name}-{number}")).await.unwrap();
                tell(&number.to_string());
            }
        }
        other => panic!("unknown role {other}"),
    }
}

async fn check_chain(store: &SqliteStore) -> BTreeMap<String, u64> {
    let source = SourceName::agent_message("co");
    let events = store.source_events(source.clone(), 0, u32::MAX).await.unwrap();
    let mut previous = Sha256Hex::zero();
    let mut position = 0;
    let mut ids = BTreeMap::new();
    for (sequence, event) in (1..).zip(&events) {
        assert_eq!(event.envelope.sequence, sequence);
        assert_eq!(event.envelope.previous_sha256, previous);
        assert_eq!(event.chain_sha256, event.envelope.chain_sha256().unwrap());
        assert!(event.envelope.position > position);
        position = event.envelope.position;
        previous = event.chain_sha256.clone();
        assert!(ids.insert(event.envelope.external_id.clone().unwrap(), sequence).is_none());
    }
    let head = store.source(source).await.unwrap();
    assert_eq!((head.head, head.head_sha256), (events.len() as u64, previous));
    ids
}

#[tokio::test]
async fn several_processes_append_without_gap_or_double() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    // Nobody made the store before: the race to open is part of it.
    let mut children: Vec<Child> =
        ["a", "b", "c"].iter().map(|name| child("append", &path, name).spawn().unwrap()).collect();
    for child in &mut children {
        assert_eq!(told(child).collect::<Vec<_>>(), ["done"]);
        assert!(child.wait().unwrap().success());
    }
    let store = SqliteStore::open(&path, OpenOptions::default()).unwrap();
    let ids = check_chain(&store).await;
    assert_eq!(ids.len(), 4 * 60);
}

#[tokio::test]
async fn a_kill_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let name = format!("round{round}");
        let mut child = child("append-for-ever", &path, &name).spawn().unwrap();
        let mut lines = told(&mut child);
        for _ in 0..20 + round * 7 {
            let number = lines.next().unwrap();
            acknowledged.push(format!("{name}-{number}"));
        }
        // SIGKILL, in the middle of whatever it does.
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines.map(|number| format!("{name}-{number}")));
        let store = SqliteStore::open(&path, OpenOptions::default()).unwrap();
        let ids = check_chain(&store).await;
        for id in &acknowledged {
            assert!(ids.contains_key(id), "{id} was acknowledged and is gone");
        }
        // At most the one that was on its way when the process died was written and not acknowledged.
        assert!(ids.len() - acknowledged.len() <= round + 1);
    }
}

#[tokio::test]
async fn a_fresh_store_is_made_once_by_whoever_is_first() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thought.db");
        let mut children: Vec<Child> = (0..4).map(|_| child("open", &path, "").spawn().unwrap()).collect();
        for child in &mut children {
            assert_eq!(told(child).collect::<Vec<_>>(), ["opened"]);
            assert!(child.wait().unwrap().success());
        }
        let store = SqliteStore::open(&path, OpenOptions::default()).unwrap();
        assert_eq!(store.event_count().await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_store_that_may_only_be_read_is_refused_and_unharmed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thought.db");
    let store = SqliteStore::open(&path, OpenOptions::create()).unwrap();
    append(&store, "kept").await.unwrap();
    drop(store);
    let before = std::fs::read(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = child("append", &path, "a");
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        // The superuser passes every mode; someone else must ask.
        command.uid(65_534).gid(65_534).env("HOME", "/");
    }
    let mut child = command.spawn().unwrap();
    let lines: Vec<_> = told(&mut child).collect();
    child.wait().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("refused: reach the store: "), "{lines:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
