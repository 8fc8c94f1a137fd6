//! The root lock: who is free, who conflicts, what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use thought_authority::lock::{
    self, LOCK_FILE, LockError, LockState, OwnEvidence, RootGuard, acquire, acquire_within,
};

use crate::home::{Home, own, token};

fn take(home: &Home) -> Result<RootGuard, LockError> {
    acquire(&home.root(), &own(), Duration::ZERO)
}

fn evidence(home: &Home) -> String {
    fs::read_to_string(home.at(LOCK_FILE)).unwrap()
}

fn leave(home: &Home, evidence: &OwnEvidence) {
    home.write(LOCK_FILE, serde_json::to_vec(evidence).unwrap());
}

/// Another process that lives until it is dropped.
struct Other(Child);

impl Other {
    #[expect(clippy::disallowed_methods, reason = "the lock's owner in these tests is another process")]
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap())
    }

    fn evidence(&self) -> OwnEvidence {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let start =
            stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap();
        OwnEvidence { pid: self.0.id(), process_start: start, token: token(2), ..own() }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn it_carries_the_evidence_while_it_is_held_and_nothing_afterwards() {
    let home = Home::new();
    let guard = take(&home).unwrap();
    let text = evidence(&home);
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut names: Vec<_> = found.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["bootId", "pid", "pidNamespace", "processStart", "token"]);
    assert_eq!(found["pid"], std::process::id());
    assert_eq!(found["token"], token(1));
    assert!(found["processStart"].is_u64());
    assert_eq!(found["bootId"], fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim());
    assert_eq!(fs::metadata(home.at(LOCK_FILE)).unwrap().permissions().mode() & 0o7777, 0o600);
    guard.check(&home.root()).unwrap();
    drop(guard);
    assert_eq!(evidence(&home), "");
    assert!(home.at(LOCK_FILE).exists());
}

#[test]
fn a_held_lock_is_a_conflict_until_it_is_let_go() {
    let home = Home::new();
    let guard = take(&home).unwrap();
    assert!(matches!(take(&home), Err(LockError::Held)));
    assert!(matches!(acquire(&home.root(), &own(), Duration::from_millis(50)), Err(LockError::Held)));
    assert!(matches!(lock::clear(&home.root()), Err(LockError::Held)));
    assert_eq!(lock::state(&home.root(), &own()).unwrap(), LockState::Held);
    guard.check(&home.root()).unwrap();
    drop(guard);
    drop(take(&home).unwrap());
}

#[test]
fn a_copy_of_the_descriptor_in_a_child_does_not_keep_it() {
    let home = Home::new();
    let guard = take(&home).unwrap();
    // What a child between its fork and its exec has: the same open file under another number.
    let held = fs::read_dir("/proc/self/fd").unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let is_lock = fs::read_link(&path).is_ok_and(|to| to == home.at(LOCK_FILE));
        is_lock.then(|| path.file_name().unwrap().to_str().unwrap().parse::<i32>().unwrap())
    });
    let number = held.expect("the lock file is open");
    let pidfd = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap(),
        rustix::process::PidfdFlags::empty(),
    )
    .unwrap();
    let copy =
        rustix::process::pidfd_getfd(&pidfd, number, rustix::process::PidfdGetfdFlags::empty()).unwrap();
    drop(guard);
    drop(take(&home).expect("the lock is free though a copy of the descriptor is open"));
    drop(copy);
}

#[tokio::test]
async fn a_waiter_gets_it_when_it_is_let_go_and_waits_no_longer_than_told() {
    let home = Home::new();
    let root = home.root();
    let guard = take(&home).unwrap();
    assert!(matches!(acquire_within(&root, &own(), Duration::from_millis(40)).await, Err(LockError::Held)));
    let waiting = tokio::spawn(async move { acquire_within(&root, &own(), Duration::from_secs(60)).await });
    tokio::task::yield_now().await;
    drop(guard);
    drop(waiting.await.unwrap().unwrap());
    assert_eq!(evidence(&home), "");
}

#[tokio::test]
async fn a_waiter_that_is_dropped_leaves_it_free() {
    let home = Home::new();
    let root = home.root();
    let guard = take(&home).unwrap();
    let waiting = tokio::spawn(async move { acquire_within(&root, &own(), Duration::from_secs(60)).await });
    tokio::time::sleep(Duration::from_millis(30)).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    drop(guard);
    drop(acquire(&home.root(), &own(), Duration::from_secs(5)).unwrap());
}

#[test]
fn evidence_of_owners_that_are_gone_is_reclaimed() {
    let dead = {
        let other = Other::start();
        other.evidence()
    };
    let other = Other::start();
    let live = other.evidence();
    let first = OwnEvidence { pid: 1, process_start: 0, token: token(3), ..own() };
    for (name, left) in [
        ("dead", dead),
        ("reused pid", OwnEvidence { process_start: live.process_start - 1, ..live.clone() }),
        ("pid 1 with an older start", first),
        (
            "another boot",
            OwnEvidence { boot_id: "00000000-0000-4000-8000-000000000000".into(), ..live.clone() },
        ),
        ("another pid namespace", OwnEvidence { pid_namespace: "pid:[1]".into(), ..live.clone() }),
        ("its own, that a release could not empty", own()),
    ] {
        let home = Home::new();
        leave(&home, &left);
        assert_eq!(lock::state(&home.root(), &own()).unwrap(), LockState::Free, "{name}");
        let guard = take(&home).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(evidence(&home).contains(&token(1)), "{name}");
        drop(guard);
        assert_eq!(evidence(&home), "", "{name}");
    }
}

#[test]
fn an_owner_of_another_pid_namespace_with_the_file_lock_held_is_a_conflict() {
    let home = Home::new();
    leave(&home, &OwnEvidence { pid_namespace: "pid:[1]".into(), ..own() });
    let file = fs::File::open(home.at(LOCK_FILE)).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let before = evidence(&home);
    assert!(matches!(take(&home), Err(LockError::Held)));
    assert_eq!(lock::state(&home.root(), &own()).unwrap(), LockState::Held);
    assert_eq!(evidence(&home), before);
    drop(file);
    drop(take(&home).unwrap());
}

#[test]
fn a_zombie_is_gone() {
    let home = Home::new();
    let mut other = Other::start();
    let left = other.evidence();
    leave(&home, &left);
    other.0.kill().unwrap();
    // Dead and not yet waited for.
    let is_zombie = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", left.pid)).unwrap();
        stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z')
    };
    while !is_zombie() {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(take(&home).unwrap());
}

#[test]
fn live_evidence_is_a_conflict_and_is_kept_until_a_person_clears_it() {
    let home = Home::new();
    let other = Other::start();
    leave(&home, &other.evidence());
    let before = evidence(&home);
    assert!(matches!(take(&home), Err(LockError::Held)));
    assert_eq!(lock::state(&home.root(), &own()).unwrap(), LockState::Held);
    assert_eq!(evidence(&home), before);
    lock::clear(&home.root()).unwrap();
    assert_eq!(evidence(&home), "");
    drop(take(&home).unwrap());
}

#[test]
fn malformed_evidence_is_refused_and_kept_until_a_person_clears_it() {
    let good = serde_json::to_value(own()).unwrap();
    let with = |field: &str, value: serde_json::Value| {
        let mut bad = good.clone();
        bad[field] = value;
        bad.to_string()
    };
    let without = |field: &str| {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        bad.to_string()
    };
    let text = good.to_string();
    for bad in [
        " ".to_owned(),
        "{}".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "\0".repeat(180),
        text[..text.len() - 1].to_owned(),
        format!("{text}{text}"),
        text.replacen('{', "{\"pid\":1,", 1),
        with("pid", "1".into()),
        with("pid", 1.5.into()),
        with("pid", (-1).into()),
        with("pid", 0.into()),
        with("pid", 4_194_305.into()),
        with("processStart", "9".into()),
        with("processStart", serde_json::Value::Null),
        with("token", "abc".into()),
        with("token", "g".repeat(32).into()),
        with("token", "0".repeat(33).into()),
        with("bootId", "".into()),
        with("pidNamespace", "".into()),
        with("more", 1.into()),
        without("bootId"),
        without("pid"),
        without("processStart"),
        without("pidNamespace"),
        without("token"),
        " ".repeat(4_096),
    ] {
        let home = Home::new();
        home.write(LOCK_FILE, &bad);
        assert!(matches!(take(&home), Err(LockError::Invalid { .. })), "{bad}");
        assert!(matches!(lock::state(&home.root(), &own()), Ok(LockState::Invalid { .. })), "{bad}");
        assert_eq!(evidence(&home), bad);
        lock::clear(&home.root()).unwrap();
        drop(take(&home).unwrap());
    }
}

#[test]
fn a_lock_file_that_is_none_is_refused_and_left_alone() {
    let refused = |home: &Home, why: &str| {
        for outcome in [take(home).map(drop), lock::clear(&home.root())] {
            match outcome {
                Err(LockError::Invalid { why: found }) => assert!(found.contains(why), "{found}"),
                other => panic!("{why}: {other:?}"),
            }
        }
    };
    let home = Home::new();
    home.link(LOCK_FILE);
    refused(&home, "a link");
    assert_eq!(fs::read_to_string(home.path().join("outside/memory.md")).unwrap(), "OUTSIDE");

    let home = Home::new();
    symlink(home.path().join("outside/made"), home.at(LOCK_FILE)).unwrap();
    refused(&home, "a link");
    assert!(!home.path().join("outside/made").exists());

    let home = Home::new();
    fs::create_dir(home.at(LOCK_FILE)).unwrap();
    refused(&home, "no regular file");

    let home = Home::new();
    mknodat(CWD, home.at(LOCK_FILE), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refused(&home, "no regular file");

    let home = Home::with_memory();
    fs::hard_link(home.at("memory.md"), home.at(LOCK_FILE)).unwrap();
    refused(&home, "a second name");
    assert_eq!(fs::read_to_string(home.at("memory.md")).unwrap(), crate::home::MEMORY);
}

#[test]
fn a_lock_file_open_to_others_is_closed_to_them() {
    let home = Home::new();
    home.write(LOCK_FILE, "");
    fs::set_permissions(home.at(LOCK_FILE), fs::Permissions::from_mode(0o666)).unwrap();
    let _guard = take(&home).unwrap();
    assert_eq!(fs::metadata(home.at(LOCK_FILE)).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn looking_at_the_state_and_clearing_make_no_file() {
    let home = Home::new();
    assert_eq!(lock::state(&home.root(), &own()).unwrap(), LockState::Free);
    lock::clear(&home.root()).unwrap();
    assert!(!home.at(LOCK_FILE).exists());
}

#[test]
fn a_guard_sees_that_its_file_or_root_was_replaced() {
    let home = Home::new();
    let root = home.root();
    let guard = take(&home).unwrap();
    home.write("new", "");
    fs::rename(home.at("new"), home.at(LOCK_FILE)).unwrap();
    assert!(matches!(guard.check(&root), Err(LockError::Invalid { .. })));

    let home = Home::new();
    let root = home.root();
    let guard = take(&home).unwrap();
    fs::write(home.at(LOCK_FILE), "{}").unwrap();
    assert!(matches!(guard.check(&root), Err(LockError::Invalid { .. })));
    fs::remove_file(home.at(LOCK_FILE)).unwrap();
    assert!(matches!(guard.check(&root), Err(LockError::Invalid { .. })));

    let home = Home::new();
    let root = home.root();
    let guard = take(&home).unwrap();
    fs::rename(home.path().join("context"), home.path().join("moved")).unwrap();
    assert!(matches!(guard.check(&root), Err(LockError::Root(_))));
    fs::create_dir(home.path().join("context")).unwrap();
    assert!(matches!(guard.check(&root), Err(LockError::RootMoved)));
    drop(guard);
    assert_eq!(fs::read_to_string(home.path().join("moved").join(LOCK_FILE)).unwrap(), "");
}

#[test]
fn of_many_that_want_it_one_has_it() {
    let home = Home::new();
    let inside = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (home, inside) = (&home, &inside);
            scope.spawn(move || {
                let root = home.root();
                let own = OwnEvidence { token: token(n), ..own() };
                for _ in 0..10 {
                    let guard = acquire(&root, &own, Duration::from_secs(60)).unwrap();
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    guard.check(&root).unwrap();
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(evidence(&home), "");
}
