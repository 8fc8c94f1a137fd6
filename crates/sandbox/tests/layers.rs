//! Layer by layer: what a worker is before its last layer, and what each layer stops when another is
//! missing. The probe program leaves layers out on purpose; the product can't.
#![cfg(target_os = "linux")]

mod common;

use common::{TIERS, ask, launch, order, try_act};
use thought_sandbox::{ExitKind, Tier};

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const ESRCH: i32 = 3;
const EACCES: i32 = 13;
const EAGAIN: i32 = 11;
const EMFILE: i32 = 24;
const EROFS: i32 = 30;
const ENODATA: i32 = 61;

const AS: usize = 9;
const CPU: usize = 0;
const NOFILE: usize = 7;
const NPROC: usize = 6;
const FSIZE: usize = 1;
const CORE: usize = 4;

#[test]
fn every_state_that_the_filter_hides_is_as_it_must_be() {
    for tier in TIERS {
        let mut worker = launch(tier, "__without=seccomp");
        let mut is = |question: &str| ask(&mut worker, question);
        assert_eq!(is("no-new-privileges"), 1, "{tier}");
        assert_eq!(is("dumpable"), 0, "{tier}");
        assert_eq!(is("death-signal"), 9, "{tier}");
        assert_eq!(is("capabilities"), 0, "{tier}");
        assert_eq!(is(&format!("limit {AS}")), 512 * 1024 * 1024, "{tier}");
        assert_eq!(is(&format!("limit {CPU}")), 30, "{tier}");
        assert_eq!(is(&format!("limit {NOFILE}")), 3, "{tier}");
        assert_eq!(is(&format!("limit {NPROC}")), 0, "{tier}");
        assert_eq!(is(&format!("limit {FSIZE}")), 0, "{tier}");
        assert_eq!(is(&format!("limit {CORE}")), 0, "{tier}");
        assert_eq!(is("environment"), 0, "{tier}");
        for descriptor in 3..64 {
            assert_eq!(is(&format!("has-descriptor {descriptor}")), 0, "{tier}: {descriptor}");
        }
        if rustix::process::geteuid().is_root() {
            assert_eq!(is("user"), 65_534, "{tier}");
            assert_eq!(is("group"), 65_534, "{tier}");
            assert_eq!(is("groups"), 0, "{tier}");
            assert_eq!(is("bounding"), 0, "{tier}");
        }
        if tier == Tier::Full {
            assert_eq!(is("process"), 1, "the first of its namespace");
            assert_eq!(is("bounding"), 0);
        }
    }
}

#[test]
fn an_inherited_descriptor_is_closed() {
    use std::os::fd::AsRawFd;
    // Without the flag that closes it at a start: a leak of somebody else's.
    let secret = std::fs::File::open("/proc/self/status").unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let number = secret.as_raw_fd();
    let question = format!("has-descriptor {number}");
    for tier in TIERS {
        let mut leaky = launch(tier, "__without=seccomp,descriptors,resource-limits");
        assert_eq!(ask(&mut leaky, &question), 1, "{tier}: the test must be able to see it");
        assert_eq!(ask(&mut launch(tier, "__without=seccomp"), &question), 0, "{tier}");
    }
}

/// Acts, with what stops them when filter and limits are missing: in the full tier, and in the lesser one.
/// Zero is "nothing does": then only the filter does.
const WITHOUT_SECCOMP: &[(&str, i32, i32)] = &[
    ("open-passwd", ENOENT, EACCES),
    ("list-root", EACCES, EACCES),
    ("write-tmp", ENOENT, EACCES),
    ("write-shm", ENOENT, EACCES),
    ("write-root", EROFS, EACCES),
    ("signal", ESRCH, EPERM),
    ("trace", ESRCH, EPERM),
    ("read-memory-of", ESRCH, EPERM),
    ("environ-of", ENOENT, EACCES),
    ("memory-file-of", ENOENT, EACCES),
    ("exec", ENOENT, EACCES),
    ("mount", EPERM, EPERM),
    ("fork", 0, 0),
    ("vsock", 0, 0),
    ("memfd", 0, 0),
    ("user-namespace", 0, 0),
    ("map-executable", 0, 0),
    ("shared-memory", 0, 0),
    ("system-name", 0, 0),
];

#[test]
fn without_filter_and_limits_the_other_layers_still_stop_what_they_can() {
    let parent = std::process::id();
    for (act, full, lesser) in WITHOUT_SECCOMP {
        for (tier, expected) in [(Tier::Full, *full), (Tier::LandlockSeccomp, *lesser)] {
            let mut worker = launch(tier, "__without=seccomp,resource-limits");
            assert_eq!(ask(&mut worker, &format!("{act} {parent}")), expected, "{tier}: {act}");
        }
    }
}

#[test]
fn without_the_filter_the_limits_still_stop_new_processes_and_descriptors() {
    for tier in TIERS {
        let mut worker = launch(tier, "__without=seccomp");
        assert_eq!(ask(&mut worker, "fork"), EAGAIN, "{tier}");
        for act in ["tcp", "vsock", "netlink", "memfd", "pipe", "duplicate", "open-passwd"] {
            assert_eq!(ask(&mut worker, act), EMFILE, "{tier}: {act}");
        }
    }
}

#[test]
fn without_landlock_the_namespaces_still_hide_files_and_processes() {
    let parent = std::process::id();
    let mut worker = launch(Tier::Full, "__without=seccomp,landlock,resource-limits");
    for (act, expected) in [
        ("open-passwd", ENOENT),
        ("environ-of", ENOENT),
        ("signal", ESRCH),
        ("write-root", EROFS),
        ("list-root", ENODATA),
    ] {
        assert_eq!(ask(&mut worker, &format!("{act} {parent}")), expected, "{act}");
    }
}

#[test]
fn without_every_other_layer_the_filter_still_kills() {
    let alone = "__without=landlock,resource-limits,capabilities,undumpable,no-new-privileges,identity";
    for act in ["open-passwd", "tcp", "vsock", "fork", "memfd", "io-uring", "user-namespace", "signal"] {
        let end = try_act(Tier::LandlockSeccomp, alone, &format!("{act} {}", std::process::id()));
        assert_eq!(end, (None, ExitKind::Signal(31)), "{act}");
    }
}

#[test]
fn without_limits_memory_is_to_be_had() {
    let mut worker = launch(Tier::Full, "__without=resource-limits");
    assert_eq!(ask(&mut worker, "allocate 2147483648"), 0, "else the limit proves nothing");
}

#[test]
fn a_filter_that_fails_calls_fails_them_all() {
    for tier in TIERS {
        let mut worker = launch(tier, "__fail");
        for act in
            ["open-passwd", "tcp", "udp", "netlink", "vsock", "fork", "exec", "mount", "bpf", "keyring"]
        {
            assert_eq!(ask(&mut worker, act), EPERM, "{tier}: {act}");
        }
        order(&mut worker, "die");
    }
}

#[test]
fn all_of_this_holds_for_an_unprivileged_user_too() {
    common::holds_for_nobody("all_of_this_holds_for_an_unprivileged_user_too", 8);
}
