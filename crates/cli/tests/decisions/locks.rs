//! The lock of the context root: a live owner is waited for and then told, what is malformed is left to a person, and an
//! owner that is gone stands in nobody's way.

use std::fs;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use thought_testkit::home::Home;
use thought_testkit::run::Done;

use crate::template::LINE;
use crate::world::{CHANGE, appended, decide, decided, decisions, failures, memory_of, receipts, three};

fn lock(home: &Home) -> PathBuf {
    home.below("context/.thought.lock")
}

/// Takes the file lock as a process would that writes.
fn hold(home: &Home) -> fs::File {
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(lock(home)).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    file
}

/// What this process would write into the lock.
fn evidence() -> Value {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    json!({
        "bootId": boot.trim(), "pid": std::process::id(), "processStart": start.parse::<u64>().unwrap(),
        "pidNamespace": namespace.to_str().unwrap(), "token": "0123456789abcdef0123456789abcdef",
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut evidence = evidence();
    evidence[member] = value;
    evidence
}

/// Decided, and waiting for this reason.
#[track_caller]
fn waits(done: &Done, reason: &str, code: &str) {
    let told = done.object();
    assert_eq!((&told["status"], &told["reason"]), (&json!("pending"), &json!(reason)));
    assert_eq!(done.error()["code"], code);
    assert!(done.told().contains("proposal-project"), "{}", done.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_a_live_process_holds_spends_no_decision() {
    // By the file lock, and by evidence of a process that lives: each is waited for as long as it takes.
    let (by_lock, first) = three(CHANGE).await;
    let (by_evidence, second) = three(CHANGE).await;
    let base = memory_of(&by_lock);
    let held = hold(&by_lock);
    fs::write(lock(&by_evidence), evidence().to_string()).unwrap();
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| decide(&by_lock, &first, "accept", &[]));
        let two = scope.spawn(|| decide(&by_evidence, &second, "accept", &[]));
        (one.join().unwrap().exit(4), two.join().unwrap().exit(4))
    });
    waits(&one, "lock-held", "lock-held");
    waits(&two, "lock-held", "lock-held");
    let project = ["proposal-project"];
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| by_lock.json(&project));
        let two = scope.spawn(|| by_evidence.json(&project));
        (one.join().unwrap().exit(4), two.join().unwrap().exit(4))
    });
    waits(&one, "lock-held", "lock-held");
    waits(&two, "lock-held", "lock-held");
    drop(held);
    fs::write(lock(&by_evidence), "").unwrap();
    for (home, id) in [(&by_lock, &first), (&by_evidence, &second)] {
        assert!(failures(home).is_empty() && receipts(home).is_empty(), "a held lock is no event");
        assert_eq!(decisions(home).len(), 1);
        let told = home.object(&project);
        assert_eq!((&told["status"], &told["proposal"]), (&json!("materialized"), &json!(id)));
        assert_eq!(memory_of(home), appended(&base, LINE));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_lock_is_left_to_a_person() {
    let (home, id) = three(CHANGE).await;
    let base = memory_of(&home);
    let cases = [
        "{".to_owned(),
        "null".to_owned(),
        "held by me".to_owned(),
        with("token", json!("short")).to_string(),
        with("pid", json!(0)).to_string(),
        with("pid", json!("1")).to_string(),
        with("processStart", json!(-1)).to_string(),
        with("more", json!(1)).to_string(),
        "x".repeat(2_000),
    ];
    for malformed in cases {
        fs::write(lock(&home), &malformed).unwrap();
        waits(&decide(&home, &id, "accept", &[]).exit(3), "lock-invalid", "lock-invalid");
        waits(&home.json(&["proposal-project"]).exit(3), "lock-invalid", "lock-invalid");
        assert_eq!(fs::read_to_string(lock(&home)).unwrap(), malformed, "evidence is not overwritten");
    }
    fs::remove_file(lock(&home)).unwrap();
    std::os::unix::fs::symlink(home.folder.path().join("elsewhere"), lock(&home)).unwrap();
    waits(&decide(&home, &id, "accept", &[]).exit(3), "lock-invalid", "lock-invalid");
    assert!(!home.folder.path().join("elsewhere").exists());
    fs::remove_file(lock(&home)).unwrap();
    assert!(failures(&home).is_empty() && receipts(&home).is_empty());
    assert_eq!((decisions(&home).len(), memory_of(&home)), (1, base.clone()));
    decided(&home, &id, "accept", "materialized");
    assert_eq!(memory_of(&home), appended(&base, LINE));
}

#[tokio::test(flavor = "multi_thread")]
async fn report_15_an_owner_that_is_gone_is_reclaimed() {
    let gone = {
        let (home, _id) = three(CHANGE).await;
        let mut child =
            home.binary.spawn(&["--version"], std::process::Stdio::null(), std::process::Stdio::null());
        child.wait_for_end("a process that ends");
        child.0.id()
    };
    let start_of_first: u64 = {
        let stat = fs::read_to_string("/proc/1/stat").unwrap();
        stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
    };
    let mut reused = with("pid", json!(1));
    // Process 1 lives, but it is not the one that took the lock.
    reused["processStart"] = json!(start_of_first + 1);
    for evidence in [
        with("pid", json!(gone)),
        reused,
        with("bootId", json!("00000000-0000-0000-0000-000000000000")),
        with("pidNamespace", json!("pid:[1]")),
    ] {
        let (home, id) = three(CHANGE).await;
        let base = memory_of(&home);
        fs::write(lock(&home), evidence.to_string()).unwrap();
        decided(&home, &id, "accept", "materialized");
        assert_eq!(memory_of(&home), appended(&base, LINE), "{evidence}");
        assert_eq!(fs::read(lock(&home)).unwrap(), b"", "released");
        // And whatever it says: who has the file lock has the lock.
        let (home, id) = three(CHANGE).await;
        fs::write(lock(&home), evidence.to_string()).unwrap();
        if evidence["pidNamespace"] == "pid:[1]" {
            let _held = hold(&home);
            waits(&decide(&home, &id, "accept", &[]).exit(4), "lock-held", "lock-held");
        }
    }
}
