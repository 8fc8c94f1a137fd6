//! What every test of the jail needs: a launcher of the probe program, and a talk with it.
#![expect(dead_code, reason = "each test program uses its part")]
#![expect(unreachable_pub, reason = "a module of several test programs")]
#![expect(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use thought_sandbox::{ExitKind, Launcher, SealedWorker, Tier, WorkerLimits};

pub const TIERS: [Tier; 2] = [Tier::Full, Tier::LandlockSeccomp];

/// Far beyond what any worker needs here; nothing is measured by it.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn launcher(tier: Tier, argument: &'static str) -> Launcher {
    limited(tier, argument, WorkerLimits::default())
}

pub fn limited(tier: Tier, argument: &'static str, limits: WorkerLimits) -> Launcher {
    Launcher::of_path(Path::new(env!("CARGO_BIN_EXE_jail_probe")), tier, limits, argument)
        .expect("open the probe program")
        .with_seal_timeout(PATIENCE)
}

pub fn launch(tier: Tier, argument: &'static str) -> SealedWorker {
    launcher(tier, argument).launch().unwrap_or_else(|error| panic!("{tier}: {error}"))
}

pub fn order(worker: &mut SealedWorker, command: &str) {
    worker.channel().write_all(format!("{command}\n").as_bytes()).expect("send a command");
}

pub fn answer(worker: &mut SealedWorker) -> Option<i32> {
    worker.channel().set_read_timeout(Some(PATIENCE)).expect("bound the wait");
    let mut bytes = [0; 4];
    match worker.channel().read_exact(&mut bytes) {
        Ok(()) => Some(i32::from_le_bytes(bytes)),
        Err(error) => {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the worker said nothing");
            None
        }
    }
}

pub fn ask(worker: &mut SealedWorker, command: &str) -> i32 {
    order(worker, command);
    answer(worker).unwrap_or_else(|| panic!("{command}: the worker died"))
}

/// Commands a fresh worker to try something, and tells its answer, if any, and its end.
pub fn try_act(tier: Tier, argument: &'static str, command: &str) -> (Option<i32>, ExitKind) {
    let mut worker = launch(tier, argument);
    order(&mut worker, command);
    let answer = answer(&mut worker);
    (answer, worker.wait(PATIENCE))
}

/// The ids of this process's children, zombies included.
pub fn children() -> Vec<u32> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("read /proc").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process may end while one looks.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        if after_name.split(' ').nth(1) == Some(&me) {
            found.push(pid);
        }
    }
    found
}

pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("list descriptors").count()
}

/// Runs this test program as user and group nobody.
pub fn as_nobody(arguments: &[&str]) -> (Option<i32>, String) {
    use std::os::unix::process::CommandExt;
    #[expect(clippy::disallowed_methods, reason = "the test program runs itself as another user")]
    let mut command = std::process::Command::new("/proc/self/exe");
    let output = command.args(arguments).uid(65_534).gid(65_534).output().expect("start as nobody");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Started by root, runs every other test of this program as nobody. `me` is the test that asks, `at_least` how many
/// there are. Started by anybody else, those tests are what is claimed.
pub fn holds_for_nobody(me: &str, at_least: usize) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (code, output) = as_nobody(&["--skip", me, "--test-threads", "2"]);
    assert_eq!(code, Some(0), "as nobody:\n{output}");
    let passed: usize = output
        .lines()
        .find_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok())
        .unwrap_or(0);
    assert!(passed >= at_least, "too few tests ran as nobody:\n{output}");
}
