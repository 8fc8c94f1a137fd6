//! A jail that cannot be had is a refusal that names the layer, and a refusing worker reads nothing.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::launcher;
use thought_sandbox::{EXIT_REFUSED, JailReport, LayerStatus, Recommendation, Stage, Tier, probe, recommend};

fn command(program: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "these tests start by hand what the launcher would start")]
    Command::new(program)
}

/// Starts the probe program by hand on a channel with a command already waiting in it. Gives its exit code,
/// all that it said, and what it left unread.
fn by_hand(order: &str, environment: &[(&str, &str)]) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"environment\n").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut copy = theirs.try_clone().unwrap();
    let status = command(env!("CARGO_BIN_EXE_jail_probe"))
        .args(["__probe", order])
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let mut unread = Vec::new();
    copy.read_to_end(&mut unread).unwrap();
    drop(copy);
    let mut said = Vec::new();
    ours.read_to_end(&mut said).unwrap();
    (status.code(), said, unread)
}

#[test]
fn a_refusing_worker_reads_nothing_and_says_one_record() {
    let full_of_secrets = [("SECRET", "x")];
    let cases = [
        ("", [].as_slice()),
        ("none", &[]),
        ("full,address-space-bytes=0,cpu-seconds=1", &[]),
        ("landlock+seccomp", &full_of_secrets),
    ];
    for (order, environment) in cases {
        let (code, said, unread) = by_hand(order, environment);
        assert_eq!(code, Some(EXIT_REFUSED), "{order}");
        assert_eq!(said.len(), 16, "{order}");
        assert_eq!((said[4], said[5]), (3, 1), "{order}: a refusal of the first stage");
        assert_eq!(unread, b"environment\n", "{order}");
    }
}

#[test]
fn the_report_comes_before_any_answer_even_if_a_command_waits() {
    let (code, said, unread) = by_hand("landlock+seccomp", &[]);
    assert_eq!(code, Some(0));
    assert_eq!(said.len(), 16 + 4);
    assert_eq!(said[4], 2, "sealed");
    assert_eq!(said[16..], [0; 4], "then the answer");
    assert_eq!(unread, b"");
}

#[test]
fn a_worker_started_by_a_person_refuses_and_says_nothing() {
    for input in ["/dev/null", "/proc/self/status"] {
        let output = command(env!("CARGO_BIN_EXE_jail_probe"))
            .args(["__probe", "full"])
            .env_clear()
            .stdin(std::fs::File::open(input).unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(EXIT_REFUSED));
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }
}

/// Runs one test of this program again, in a user namespace in which no further one may be made.
fn where_namespaces_are_denied(test: &str) -> String {
    let mut inner = command("/proc/self/exe");
    inner.args(["--exact", test, "--nocapture"]);
    if rustix::process::geteuid().is_root() {
        // Root can't map itself from inside; what is shown does not depend on who shows it.
        inner.uid(65_534).gid(65_534);
    }
    let enter = || {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        // SAFETY: the flag names a namespace only, the option reads an integer; the process has one thread
        // between fork and exec.
        if unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) | libc::unshare(libc::CLONE_NEWUSER) } != 0
        {
            return Err(std::io::Error::last_os_error());
        }
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        std::fs::write("/proc/sys/user/max_user_namespaces", "0")
    };
    // SAFETY: the closure makes system calls and writes small files; its short strings are all it allocates,
    // and the C library keeps its allocator usable between fork and exec.
    unsafe { inner.pre_exec(enter) };
    let output = inner.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn denied_namespaces_are_named_and_only_the_lesser_tier_is_recommended() {
    let marker = "/proc/sys/user/max_user_namespaces";
    let limit = std::fs::read_to_string(marker).unwrap();
    if limit.trim() != "0" {
        let me = "denied_namespaces_are_named_and_only_the_lesser_tier_is_recommended";
        let text = where_namespaces_are_denied(me);
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    let report = probe(&launcher(Tier::Full, "__probe"));
    assert_refused_at(&report, Stage::Namespaces);
    assert!(report.hint().is_some_and(|hint| hint.contains("landlock+seccomp")));
    let Recommendation::LandlockSeccomp { full } = recommend(&launcher(Tier::Full, "__probe")) else {
        panic!("the lesser tier needs no namespace");
    };
    assert_refused_at(&full, Stage::Namespaces);
    let mut worker = common::launch(Tier::LandlockSeccomp, "__probe");
    assert_eq!(common::ask(&mut worker, "environment"), 0);
}

fn assert_refused_at(report: &JailReport, stage: Stage) {
    for layer in &report.layers {
        match layer.status {
            LayerStatus::Ok => assert!(layer.stage < stage, "{}", layer.stage),
            LayerStatus::Refused { errno } => {
                assert_eq!(layer.stage, stage);
                assert_ne!(errno, 0);
            }
            LayerStatus::NotReached => assert!(layer.stage > stage, "{}", layer.stage),
            LayerStatus::NotInTier => panic!("the full tier has every layer"),
        }
    }
}
