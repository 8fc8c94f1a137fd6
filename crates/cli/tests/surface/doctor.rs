//! What `doctor` says of the context root, and how a malformed lock is cleared: by a person's yes, and never under a live
//! owner.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use thought_testkit::home::Home;
use thought_testkit::run::{Done, argument};

use crate::THOUGHT;

fn lock(home: &Home) -> PathBuf {
    home.below("context/.thought.lock")
}

/// What this process would write into the lock.
fn evidence() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    json!({
        "bootId": boot.trim(), "pid": std::process::id(), "processStart": start.parse::<u64>().unwrap(),
        "pidNamespace": namespace.to_str().unwrap(), "token": "0123456789abcdef0123456789abcdef",
    })
    .to_string()
}

/// `doctor --clear-lock`, with this on stdin.
fn clear(home: &Home, answer: &str) -> Done {
    home.binary.run_answering(&["--home", argument(&home.path), "doctor", "--clear-lock", "--json"], answer)
}

/// The checks of a name. What else the report holds is not asked: there is no provider in a test.
fn checks(home: &Home, name: &str) -> Vec<Value> {
    let report = home.json(&["doctor"]).object();
    let all = report["checks"].as_array().unwrap().iter();
    all.filter(|check| check["name"] == name).cloned().collect()
}

#[track_caller]
fn check(home: &Home, name: &str) -> Value {
    let found = checks(home, name);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found[0].clone()
}

#[test]
fn a_malformed_lock_is_cleared_by_an_explicit_yes_alone() {
    let home = Home::init(THOUGHT, "ollama");
    fs::write(lock(&home), "held by me").unwrap();
    let told = check(&home, "lock");
    assert_eq!(told["state"], "fail", "{told}");
    assert!(told["hint"].as_str().unwrap().contains("--clear-lock"), "{told}");
    for no in ["", "\n", "n\n", "no\n", "yes please\n", "ja\n", "accept\n"] {
        let refused = clear(&home, no).exit(3);
        assert_eq!(refused.error()["code"], "not-confirmed", "{no:?}");
        assert!(refused.told().contains("--yes"), "{}", refused.told());
        assert_eq!(fs::read_to_string(lock(&home)).unwrap(), "held by me", "{no:?}");
    }
    assert_eq!(clear(&home, "yes\n").exit(0).object(), json!({"lock": "cleared"}));
    assert_eq!(fs::read(lock(&home)).unwrap(), b"", "emptied, and never unlinked");
    assert_eq!(check(&home, "lock")["state"], "ok");

    fs::write(lock(&home), "{").unwrap();
    assert_eq!(home.object(&["doctor", "--clear-lock", "--yes"]), json!({"lock": "cleared"}));
    assert_eq!(home.object(&["doctor", "--clear-lock"]), json!({"lock": "free"}), "nobody is asked");
    home.json(&["doctor", "--yes"]).exit(2);
    home.json(&["doctor", "--who", "--clear-lock"]).exit(2);
}

#[test]
fn a_lock_of_a_live_owner_is_never_cleared() {
    let home = Home::init(THOUGHT, "ollama");
    fs::write(lock(&home), evidence()).unwrap();
    assert_eq!(clear(&home, "yes\n").exit(4).error()["code"], "lock-held");
    assert_eq!(home.json(&["doctor", "--clear-lock", "--yes"]).exit(4).error()["code"], "lock-held");
    assert_eq!(fs::read_to_string(lock(&home)).unwrap(), evidence());
    assert_eq!(check(&home, "lock")["state"], "ok", "held is as it should be");

    // Malformed, and held all the same: whoever has the file lock is at work.
    fs::write(lock(&home), "held by me").unwrap();
    let held = fs::OpenOptions::new().write(true).open(lock(&home)).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(clear(&home, "yes\n").exit(4).error()["code"], "lock-held");
    assert_eq!(fs::read_to_string(lock(&home)).unwrap(), "held by me");
    drop(held);
    clear(&home, "yes\n").exit(0);
}

#[test]
fn a_file_that_is_not_the_locks_own_is_left_alone() {
    let home = Home::init(THOUGHT, "ollama");
    let elsewhere = home.folder.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    symlink(&elsewhere, lock(&home)).unwrap();
    assert_eq!(clear(&home, "yes\n").exit(3).error()["code"], "lock-invalid");
    fs::remove_file(lock(&home)).unwrap();
    fs::hard_link(&elsewhere, lock(&home)).unwrap();
    assert_eq!(clear(&home, "yes\n").exit(3).error()["code"], "lock-invalid");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
}

#[test]
fn the_file_system_the_modes_and_what_was_cut_are_looked_at() {
    let home = Home::init(THOUGHT, "ollama");
    assert_eq!(check(&home, "exchange")["state"], "ok", "a test's folder exchanges names");
    let mut left: Vec<_> =
        fs::read_dir(home.below("context")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".thought.lock", "identity.md", "memory.md"], "no probe is left behind");
    assert_eq!(checks(&home, "modes"), Vec::<Value>::new());
    fs::set_permissions(home.below("context/memory.md"), Permissions::from_mode(0o644)).unwrap();
    let told = check(&home, "modes");
    assert_eq!(told["state"], "warn");
    assert!(told["hint"].as_str().unwrap().starts_with("chmod 600 "), "{told}");

    // What waits is only told of where there is a store to ask.
    home.json(&["status"]).exit(0);
    assert_eq!(check(&home, "decisions")["state"], "ok");
    fs::write(home.below("context/.thought-evt_0000.tmp"), "cut").unwrap();
    let told = checks(&home, "decisions");
    assert_eq!((told.len(), &told[1]["state"]), (2, &json!("warn")), "{told:?}");
}
