//! The sealed worker, as the launcher sees it: it answers, it can do nothing else, and it ends.
//!
//! Everything here runs as the user who runs the tests; started by root, the last test runs the whole
//! file once more as an unprivileged user.
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read, Write};
use std::time::Duration;

use common::{PATIENCE, TIERS, answer, ask, children, launch, launcher, limited, order, try_act};
use thought_sandbox::{
    ExitKind, LaunchError, LayerStatus, Recommendation, Stage, Tier, WorkerLimits, probe, recommend,
};

const SIGSYS: i32 = 31;

#[test]
fn a_sealed_worker_answers_and_ends_with_its_channel() {
    for tier in TIERS {
        let mut worker = launch(tier, "__probe");
        assert_eq!(worker.evidence().tier, tier);
        assert!(worker.evidence().landlock_abi >= 1);
        assert!(worker.is_alive());
        for length in [0, 1, 1024, 3_000_000] {
            let sent: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            order(&mut worker, &format!("echo {length}"));
            let mut writer = worker.channel().try_clone().unwrap();
            let copy = sent.clone();
            let sending = std::thread::spawn(move || writer.write_all(&copy));
            let mut received = vec![0; length];
            worker.channel().read_exact(&mut received).unwrap();
            sending.join().unwrap().unwrap();
            assert!(sent == received, "{tier}: {length} bytes");
        }
        assert_eq!(worker.stderr().bytes, 0);
        assert_eq!(worker.wait(PATIENCE), ExitKind::Clean, "{tier}");
    }
}

#[test]
fn the_environment_is_empty() {
    for tier in TIERS {
        assert_eq!(ask(&mut launch(tier, "__probe"), "environment"), 0);
    }
}

/// A worker that tries it is killed by the filter, before it can answer.
fn kills(act: &str) {
    let parent = std::process::id();
    for tier in TIERS {
        let (answer, end) = try_act(tier, "__probe", &format!("{act} {parent}"));
        assert_eq!((answer, end), (None, ExitKind::Signal(SIGSYS)), "{tier}: {act}");
    }
}

macro_rules! forbidden {
    ($($name:ident => $act:literal,)*) => {
        mod a_worker_is_killed_that {
            $(#[test] fn $name() { super::kills($act); })*
        }
        const FORBIDDEN: &[&str] = &[$($act),*];
    };
}

forbidden! {
    opens_a_file => "open-passwd",
    lists_the_root => "list-root",
    reads_its_parents_environment => "environ-of",
    opens_its_parents_memory => "memory-file-of",
    makes_a_tcp_socket => "tcp",
    connects_by_tcp => "tcp-connect",
    makes_a_udp_socket => "udp",
    sends_by_udp => "udp-send",
    makes_a_local_socket => "unix",
    connects_to_a_pathname_socket => "unix-pathname",
    connects_to_an_abstract_socket => "unix-abstract",
    makes_a_socket_pair => "socket-pair",
    makes_a_netlink_socket => "netlink",
    makes_a_vsock_socket => "vsock",
    makes_a_packet_socket => "packet",
    sends_a_descriptor => "send-descriptor",
    takes_a_descriptor => "take-descriptor",
    forks => "fork",
    forks_without_end => "fork-bomb",
    makes_a_thread => "clone3",
    executes_a_program => "exec",
    executes_a_descriptor => "exec-of-descriptor",
    traces_its_parent => "trace",
    reads_its_parents_memory => "read-memory-of",
    writes_its_parents_memory => "write-memory-of",
    signals_its_parent => "signal",
    signals_a_thread_of_its_parent => "signal-thread",
    opens_its_parent_as_a_descriptor => "process-descriptor",
    writes_to_tmp => "write-tmp",
    writes_to_shared_memory_files => "write-shm",
    writes_to_the_working_folder => "write-here",
    writes_to_the_root => "write-root",
    makes_a_memory_file => "memfd",
    sets_up_io_uring => "io-uring",
    calls_bpf => "bpf",
    handles_faults_itself => "userfaultfd",
    adds_a_key => "keyring",
    controls_keyrings => "keyring-control",
    makes_shared_memory => "shared-memory",
    makes_semaphores => "semaphores",
    makes_a_message_queue => "messages",
    makes_a_user_namespace => "user-namespace",
    joins_a_namespace => "join-namespace",
    changes_its_root => "change-root",
    mounts => "mount",
    maps_executable_memory => "map-executable",
    makes_memory_executable => "protect-executable",
    makes_a_pipe => "pipe",
    duplicates_a_descriptor => "duplicate",
    asks_for_the_systems_name => "system-name",
    reads_another_descriptor => "read-other",
    controls_its_channel => "control",
    calls_by_the_x32_table => "x32",
}

#[test]
fn every_forbidden_act_is_one_that_the_program_knows() {
    // An unknown act is answered, and kills nobody.
    assert_eq!(try_act(Tier::Full, "__probe", "unknown"), (Some(-1), ExitKind::Clean));
    let distinct: std::collections::BTreeSet<_> = FORBIDDEN.iter().collect();
    assert_eq!(distinct.len(), FORBIDDEN.len());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_by_the_32_bit_table_kills() {
    for tier in TIERS {
        let (answer, end) = try_act(tier, "__probe", "i386");
        assert_eq!(answer, None, "{tier}");
        // A kernel without the 32-bit table has no such gate: the instruction itself faults.
        assert!(matches!(end, ExitKind::Signal(SIGSYS | 11)), "{tier}: {end:?}");
    }
}

#[test]
fn two_gibibytes_are_not_to_be_had() {
    for tier in TIERS {
        let mut worker = launch(tier, "__probe");
        assert_eq!(ask(&mut worker, "allocate 67108864"), 0, "{tier}: what it needs, it gets");
        assert_eq!(ask(&mut worker, "allocate 2147483648"), 12, "{tier}");
    }
}

#[test]
fn an_endless_loop_ends_with_its_processor_time() {
    let limits = WorkerLimits { cpu_seconds: 1, ..WorkerLimits::default() };
    for tier in TIERS {
        let mut worker = limited(tier, "__probe", limits).launch().unwrap();
        order(&mut worker, "spin");
        assert_eq!(worker.wait(PATIENCE), ExitKind::Signal(9), "{tier}");
    }
}

#[test]
fn an_endless_loop_ends_by_the_launchers_hand() {
    for tier in TIERS {
        let mut worker = launch(tier, "__probe");
        order(&mut worker, "spin");
        assert_eq!(worker.kill_and_reap(), ExitKind::Killed, "{tier}");
        let mut worker = launch(tier, "__probe");
        order(&mut worker, "spin");
        assert_eq!(worker.wait(Duration::from_millis(50)), ExitKind::Killed, "{tier}");
    }
}

#[test]
fn a_worker_that_ended_before_is_not_called_killed() {
    for tier in TIERS {
        let mut worker = launch(tier, "__probe");
        order(&mut worker, "die");
        assert_eq!(answer(&mut worker), None);
        assert_eq!(worker.wait(PATIENCE), ExitKind::Code(7), "{tier}");
    }
}

#[test]
fn a_panic_ends_with_its_code_and_without_a_word() {
    for tier in TIERS {
        let mut worker = launch(tier, "__probe");
        order(&mut worker, "panic 1");
        assert_eq!(answer(&mut worker), None);
        assert_eq!(worker.stderr().bytes, 0, "{tier}");
        assert_eq!(worker.wait(PATIENCE), ExitKind::Code(101), "{tier}");
    }
}

#[test]
fn a_flood_on_standard_error_is_told_whatever_its_pieces() {
    for tier in TIERS {
        for length in [1, 512, 3000, 4096, 5000, 100_000] {
            let mut worker = launch(tier, "__probe");
            order(&mut worker, &format!("flood {length}"));
            while !worker.stderr().is_full {
                assert!(worker.is_alive());
                std::thread::yield_now();
            }
            assert_eq!(worker.stderr().bytes, thought_sandbox::limits::STDERR_BYTES);
            assert_eq!(worker.kill_and_reap(), ExitKind::Killed, "{tier}: pieces of {length}");
        }
    }
}

#[test]
fn a_worker_that_never_answers_is_killed_at_the_deadline() {
    for tier in TIERS {
        let mut worker = launch(tier, "__probe");
        order(&mut worker, "mute");
        let (mut channel, process) = worker.into_parts();
        channel.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(channel.read(&mut [0]).is_err());
        assert_eq!(process.wait(Duration::from_millis(1)), ExitKind::Killed, "{tier}");
    }
}

#[test]
fn a_start_without_a_seal_is_a_refusal_and_leaves_nothing() {
    for tier in TIERS {
        let refusal = launcher(tier, "__bad-order").launch().unwrap_err();
        assert_eq!(refusal.stage(), "order");
        assert_eq!(refusal.errno(), Some(22));
        let died = launcher(tier, "__dies").launch().unwrap_err();
        assert_eq!(died, LaunchError::Died { exit: ExitKind::Code(3) });
        let babble = launcher(tier, "__babbles").launch().unwrap_err();
        assert_eq!(babble, LaunchError::Report);
        let silent = launcher(tier, "__silent").with_seal_timeout(Duration::from_millis(100));
        assert_eq!(silent.launch().unwrap_err(), LaunchError::Timeout { timeout_ms: 100 });
    }
    if std::env::args().any(|argument| argument == "--exact") {
        assert_eq!(children(), [0; 0], "alone in its process, this test must leave no child");
    }
}

#[test]
fn what_cannot_be_executed_is_a_refusal() {
    let nowhere = std::path::Path::new("/nonexistent/thought");
    let limits = WorkerLimits::default();
    let error = thought_sandbox::Launcher::of_path(nowhere, Tier::Full, limits, "__probe").unwrap_err();
    assert_eq!(error, LaunchError::Executable { errno: 2 });
    let text = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    let launcher = thought_sandbox::Launcher::of_path(text, Tier::Full, limits, "__probe").unwrap();
    assert_eq!(launcher.launch().unwrap_err().stage(), "spawn");
}

#[test]
fn the_fingerprint_is_that_of_the_executable() {
    let launcher = launcher(Tier::Full, "__probe");
    let first = launcher.sha256_hex().unwrap().to_owned();
    assert_eq!(first.len(), 64);
    assert!(first.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
    assert_eq!(launcher.with_tier(Tier::LandlockSeccomp).sha256_hex(), Ok(first.as_str()));
    let empty = thought_sandbox::Launcher::of_path(
        std::path::Path::new("/dev/null"),
        Tier::Full,
        WorkerLimits::default(),
        "__probe",
    );
    let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(empty.unwrap().sha256_hex(), Ok(of_nothing));
}

#[test]
fn an_executable_held_as_a_path_only_is_launched_and_fingerprinted() {
    use rustix::fs::{Mode, OFlags, open};
    let path = env!("CARGO_BIN_EXE_jail_probe");
    let held = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let by_path = thought_sandbox::Launcher::new(held, Tier::Full, WorkerLimits::default(), "__probe");
    assert_eq!(by_path.sha256_hex(), launcher(Tier::Full, "__probe").sha256_hex());
    assert_eq!(ask(&mut by_path.launch().unwrap(), "environment"), 0);
}

#[test]
fn the_doctor_sees_every_layer_of_the_tier_in_place() {
    for tier in TIERS {
        let report = probe(&launcher(tier, "__probe"));
        assert_eq!(report.hint(), None);
        assert_eq!(report.layers.len(), Stage::ALL.len());
        for layer in &report.layers {
            let expected = if layer.stage.is_in(tier) { LayerStatus::Ok } else { LayerStatus::NotInTier };
            assert_eq!(layer.status, expected, "{tier}: {}", layer.stage);
        }
    }
    assert_eq!(recommend(&launcher(Tier::LandlockSeccomp, "__probe")), Recommendation::Full);
    let Recommendation::Refused { full, lesser } = recommend(&launcher(Tier::Full, "__bad-order")) else {
        panic!("a worker that refuses must not be recommended");
    };
    assert!(full.hint().is_some() && lesser.hint().is_some());
}

#[test]
fn all_of_this_holds_for_an_unprivileged_user_too() {
    common::holds_for_nobody("all_of_this_holds_for_an_unprivileged_user_too", 15 + FORBIDDEN.len());
}
