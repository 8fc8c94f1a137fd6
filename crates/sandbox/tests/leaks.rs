//! Nothing stays: no process, no zombie, no descriptor, whatever became of the workers, and none outlives
//! its launcher.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{TIERS, ask, children, descriptors, launch, launcher, order};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thought_sandbox::{ExitKind, LaunchError, Tier, WarmPool};

/// These tests count what belongs to the whole process, so one runs at a time whatever the runner does.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a process ends within the patience of a test.
fn ends(process: &std::os::fd::OwnedFd) -> bool {
    let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&patience)) == Ok(1)
}

#[test]
fn two_hundred_launches_leave_nothing() {
    let _alone = alone();
    // The launching thread and the libraries' own descriptors are there after one.
    drop(launch(Tier::Full, "__probe"));
    let before = (children(), descriptors());
    for round in 0..100 {
        for tier in TIERS {
            let mut worker = launch(tier, "__probe");
            match round % 5 {
                0 => assert_eq!(worker.wait(common::PATIENCE), ExitKind::Clean),
                1 => drop(worker),
                2 => assert_eq!(worker.kill_and_reap(), ExitKind::Killed),
                3 => {
                    order(&mut worker, "fork");
                    assert_eq!(worker.wait(common::PATIENCE), ExitKind::Signal(31));
                }
                _ => drop(worker.into_parts()),
            }
        }
        if round % 10 == 0 {
            for tier in TIERS {
                launcher(tier, "__bad-order").launch().unwrap_err();
                launcher(tier, "__dies").launch().unwrap_err();
                launcher(tier, "__babbles").launch().unwrap_err();
            }
        }
    }
    assert_eq!((children(), descriptors()), before);
}

#[test]
fn launches_side_by_side_leave_nothing() {
    let _alone = alone();
    drop(launch(Tier::Full, "__probe"));
    let before = (children(), descriptors());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for tier in TIERS {
                    for _ in 0..5 {
                        let mut worker = launch(tier, "__probe");
                        assert_eq!(ask(&mut worker, "environment"), 0);
                    }
                }
            });
        }
    });
    assert_eq!((children(), descriptors()), before);
}

#[test]
fn a_worker_outlives_the_thread_that_asked_for_it() {
    let _alone = alone();
    for tier in TIERS {
        let mut worker = std::thread::spawn(move || launch(tier, "__probe")).join().unwrap();
        assert_eq!(ask(&mut worker, "environment"), 0, "{tier}");
    }
}

#[test]
fn a_worker_does_not_outlive_its_launcher() {
    let _alone = alone();
    for child_signal in [libc::SIG_DFL, libc::SIG_IGN] {
        let (mut parent, workers) = a_launcher_with_two_workers(child_signal);
        parent.kill().unwrap();
        parent.wait().unwrap();
        for worker in &workers {
            assert!(ends(worker), "the worker still runs");
        }
    }
}

/// A process that launched one worker per tier and waits to be killed.
fn a_launcher_with_two_workers(
    child_signal: libc::sighandler_t,
) -> (std::process::Child, Vec<std::os::fd::OwnedFd>) {
    #[expect(clippy::disallowed_methods, reason = "the test needs a launcher that it can kill")]
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_jail_probe"));
    command.arg("__launcher").stdout(Stdio::piped());
    let set_signal = move || {
        // SAFETY: the call takes plain values and may be made between fork and exec.
        unsafe { libc::signal(libc::SIGCHLD, child_signal) };
        Ok(())
    };
    // SAFETY: the closure makes one call that is safe to make between fork and exec.
    unsafe { command.pre_exec(set_signal) };
    let mut parent = command.spawn().unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let next = |_| {
        let pid: i32 = lines.next().unwrap().unwrap().parse().unwrap();
        pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap()
    };
    let workers = TIERS.iter().map(next).collect();
    (parent, workers)
}

#[test]
fn the_pool_hands_out_living_workers_and_leaves_nothing() {
    let _alone = alone();
    drop(launch(Tier::Full, "__probe"));
    let before = (children(), descriptors());
    for tier in TIERS {
        let pool = WarmPool::new(launcher(tier, "__probe")).unwrap();
        assert_eq!(pool.warm_up().unwrap().tier, tier);
        let mut ids = Vec::new();
        for _ in 0..10 {
            let mut worker = pool.checkout().unwrap();
            assert_eq!(ask(&mut worker, "environment"), 0, "{tier}");
            ids.push(worker.pid());
        }
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "a worker serves once");
        pool.close();
    }
    assert_eq!((children(), descriptors()), before);
}

#[test]
fn a_dead_warm_worker_is_replaced() {
    let _alone = alone();
    let pool = WarmPool::new(launcher(Tier::Full, "__probe")).unwrap();
    pool.warm_up().unwrap();
    for _ in 0..3 {
        for child in children() {
            let pid = Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
            let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
            rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL).unwrap();
            assert!(ends(&process));
        }
        let mut worker = pool.checkout().unwrap();
        assert_eq!(ask(&mut worker, "environment"), 0);
        assert_eq!(worker.kill_and_reap(), ExitKind::Killed);
        pool.warm_up().unwrap();
    }
}

#[test]
fn a_pool_that_cannot_launch_says_why_each_time() {
    let _alone = alone();
    let pool = WarmPool::new(launcher(Tier::Full, "__bad-order")).unwrap();
    for _ in 0..3 {
        let error = pool.checkout().unwrap_err();
        assert!(matches!(error, LaunchError::Refused { .. }), "{error:?}");
    }
    assert!(pool.warm_up().is_err());
}
