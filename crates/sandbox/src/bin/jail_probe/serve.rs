//! The program's ways to start, and its loop over commands.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::process::ExitCode;
use std::time::Duration;

use thought_sandbox::ablation::{OnViolation, Without, enter_without};
use thought_sandbox::{EXIT_REFUSED, EnterError, Launcher, SealedChannel, Stage, Tier, WorkerLimits, enter};

use crate::acts;

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mode = arguments.get(1).and_then(|mode| mode.to_str()).unwrap_or("");
    let order = arguments.get(2).map_or(OsStr::new(""), OsString::as_os_str);
    let sealed = match mode {
        "__probe" => enter(order),
        "__bad-order" => enter(OsStr::new("everything")),
        "__silent" => return silent(),
        "__dies" => return ExitCode::from(3),
        "__babbles" => return babbles(),
        "__launcher" => return launcher(),
        _ => ablated(mode, order),
    };
    match sealed {
        Ok(channel) => serve(channel),
        Err(_) => ExitCode::from(EXIT_REFUSED.unsigned_abs() as u8),
    }
}

/// `__without=seccomp,landlock` leaves stages out; `__fail` lets forbidden calls fail instead of kill; with
/// `__without-rule=3` one more call is forbidden.
fn ablated(mode: &str, order: &OsStr) -> Result<SealedChannel, EnterError> {
    let nothing = Without { stages: &[], rule: None };
    if mode == "__fail" {
        return enter_without(order, nothing, OnViolation::Fail);
    }
    if let Some(rule) = mode.strip_prefix("__without-rule=") {
        return enter_without(order, Without { rule: rule.parse().ok(), ..nothing }, OnViolation::Kill);
    }
    let names = mode.strip_prefix("__without=").unwrap_or("");
    let stages: Vec<Stage> = names
        .split(',')
        .filter_map(|name| Stage::ALL.iter().copied().find(|stage| stage.name() == name))
        .collect();
    enter_without(order, Without { stages: stages.leak(), ..nothing }, OnViolation::Kill)
}

fn silent() -> ExitCode {
    std::thread::sleep(Duration::from_secs(600));
    ExitCode::SUCCESS
}

fn babbles() -> ExitCode {
    // SAFETY: the first descriptor is the channel, and nothing else in this process owns it.
    let mut channel = unsafe { std::fs::File::from_raw_fd(0) };
    match channel.write_all(&[0x55; 64]) {
        Ok(()) => silent(),
        Err(_) => ExitCode::FAILURE,
    }
}

/// A parent to be killed: launches one worker per tier, prints their ids, and waits.
fn launcher() -> ExitCode {
    let mut workers = Vec::new();
    let mut out = io::stdout();
    for tier in [Tier::Full, Tier::LandlockSeccomp] {
        let launched = Launcher::of_self(tier, WorkerLimits::default(), "__probe")
            .and_then(|launcher| launcher.launch());
        let Ok(worker) = launched else { return ExitCode::FAILURE };
        if writeln!(out, "{}", worker.pid()).and_then(|()| out.flush()).is_err() {
            return ExitCode::FAILURE;
        }
        workers.push(worker);
    }
    silent()
}

fn serve(mut channel: SealedChannel) -> ExitCode {
    loop {
        let Ok(line) = read_line(&mut channel) else { return ExitCode::SUCCESS };
        let mut words = line.split(' ');
        let name = words.next().unwrap_or("");
        let number = words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
        let done = match name {
            "echo" => echo(&mut channel, number),
            "mute" => Ok(()),
            "die" => return ExitCode::from(7),
            "panic" => trip(number),
            _ => answer(&mut channel, acts::run(name, number)),
        };
        if done.is_err() {
            return ExitCode::FAILURE;
        }
    }
}

fn read_line(channel: &mut SealedChannel) -> io::Result<String> {
    let mut line = String::new();
    let mut byte = [0];
    loop {
        channel.read_exact(&mut byte)?;
        if byte == *b"\n" {
            return Ok(line);
        }
        line.push(char::from(byte[0]));
    }
}

fn echo(channel: &mut SealedChannel, length: usize) -> io::Result<()> {
    // Grown as it comes, as a reader of frames does.
    let mut bytes = Vec::new();
    channel.take(length as u64).read_to_end(&mut bytes)?;
    channel.write_all(&bytes)
}

fn answer(channel: &mut SealedChannel, value: i32) -> io::Result<()> {
    channel.write_all(&value.to_le_bytes())
}

#[expect(clippy::panic, reason = "a test wants to see a panic end the process")]
fn trip(number: usize) -> io::Result<()> {
    panic!("tripped by {number}")
}
