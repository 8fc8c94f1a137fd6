//! Every rule of the list is needed: without it, something that a worker does no longer works.
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read, Write};

use common::{PATIENCE, launcher};
use thought_sandbox::allowed::ALLOWED;
use thought_sandbox::{ExitKind, Launcher, SealedWorker, Tier};

/// What a worker does in its life, each piece with its outcome.
#[derive(Debug, PartialEq, Eq)]
struct Life {
    echoes: bool,
    hashes: bool,
    end: ExitKind,
    panic: ExitKind,
    last_words: bool,
}

fn live(launcher: &Launcher) -> Option<Life> {
    let mut worker = launcher.launch().ok()?;
    let echoes = [10, 200_000, 3_000_000].into_iter().all(|length| echoes(&mut worker, length));
    order(&mut worker, "hash");
    let hashes = common::answer(&mut worker) == Some(0);
    let end = worker.wait(PATIENCE);

    let mut worker = launcher.launch().ok()?;
    order(&mut worker, "panic 1");
    let panic = worker.wait(PATIENCE);

    let mut worker = launcher.launch().ok()?;
    order(&mut worker, "exhaust 2147483648");
    assert_eq!(common::answer(&mut worker), None);
    let last_words = worker.stderr().bytes > 0;
    Some(Life { echoes, hashes, end, panic, last_words })
}

/// Sends a command to a worker that may be dead already, which is what is looked for.
fn order(worker: &mut SealedWorker, command: &str) {
    let _dead_or_sent = worker.channel().write_all(format!("{command}\n").as_bytes());
}

fn echoes(worker: &mut SealedWorker, length: usize) -> bool {
    let Ok(mut writer) = worker.channel().try_clone() else { return false };
    let sending = std::thread::spawn(move || {
        writer
            .write_all(format!("echo {length}\n").as_bytes())
            .and_then(|()| writer.write_all(&vec![7; length]))
    });
    let mut received = vec![0; length];
    let came = worker.channel().read_exact(&mut received).is_ok();
    let sent = sending.join().is_ok_and(|sent| sent.is_ok());
    came && sent && received.iter().all(|byte| *byte == 7)
}

#[test]
fn no_rule_is_without_a_use() {
    let whole = live(&launcher(Tier::Full, "__probe")).expect("with every rule a worker lives");
    let expected = Life {
        echoes: true,
        hashes: true,
        end: ExitKind::Clean,
        panic: ExitKind::Code(101),
        last_words: true,
    };
    assert_eq!(whole, expected);
    let mut unused = Vec::new();
    for (index, rule) in ALLOWED.iter().enumerate() {
        let argument: &'static str = format!("__without-rule={index}").leak();
        if live(&launcher(Tier::Full, argument)).as_ref() == Some(&whole) {
            unused.push((index, rule.name));
        }
    }
    assert_eq!(unused, [], "rules that no run uses");
}
