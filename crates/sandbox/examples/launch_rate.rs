//! How long a sealed worker takes, beside a bare start of the same binary: medians of interleaved rounds.
//!
//! `cargo run --release -p thought-sandbox --example launch_rate [ROUNDS]`
#![expect(clippy::print_stdout, reason = "printing figures is what it is for")]

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::io::{Read, Write};
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use thought_sandbox::{Launcher, Tier, WarmPool, WorkerLimits, enter};

    type AnyError = Box<dyn std::error::Error>;

    const WORKER: &str = "__worker";
    const BARE: &str = "__bare";

    pub(crate) fn run() -> Result<(), AnyError> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        match arguments.get(1).and_then(|argument| argument.to_str()) {
            Some(WORKER) => {
                let mut channel = enter(arguments.get(2).map_or("".as_ref(), OsString::as_os_str))?;
                Ok(channel.read_exact(&mut [0])?)
            }
            Some(BARE) => bare_worker(),
            rounds => measure(rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(200)),
        }
    }

    /// Says one byte and waits for the end, as a worker without a jail would.
    fn bare_worker() -> Result<(), AnyError> {
        // SAFETY: the first descriptor is the channel, and nothing else in this process owns it.
        let mut channel = unsafe { std::fs::File::from_raw_fd(0) };
        channel.write_all(&[1])?;
        let mut rest = Vec::new();
        channel.read_to_end(&mut rest)?;
        Ok(())
    }

    fn bare_start() -> Result<Duration, AnyError> {
        let start = Instant::now();
        let (mut channel, theirs) = UnixStream::pair()?;
        #[expect(clippy::disallowed_methods, reason = "the yardstick is a start without a jail")]
        let mut command = Command::new("/proc/self/exe");
        command.arg(BARE).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut child = command.spawn()?;
        drop(command);
        channel.read_exact(&mut [0])?;
        let taken = start.elapsed();
        drop(channel);
        child.wait()?;
        Ok(taken)
    }

    fn launch(launcher: &Launcher) -> Result<Duration, AnyError> {
        let start = Instant::now();
        let worker = launcher.launch()?;
        let taken = start.elapsed();
        worker.kill_and_reap();
        Ok(taken)
    }

    fn warm(pool: &WarmPool) -> Result<Duration, AnyError> {
        pool.warm_up()?;
        // A turn comes some time after the one before.
        std::thread::sleep(Duration::from_millis(5));
        let start = Instant::now();
        let worker = pool.checkout()?;
        let taken = start.elapsed();
        worker.kill_and_reap();
        Ok(taken)
    }

    fn measure(rounds: usize) -> Result<(), AnyError> {
        let full = Launcher::of_self(Tier::Full, WorkerLimits::default(), WORKER)?;
        let lesser = full.with_tier(Tier::LandlockSeccomp);
        let pool = WarmPool::new(full.clone())?;
        let (mut bare, mut sealed, mut without_namespaces, mut ready) = (vec![], vec![], vec![], vec![]);
        let began = Instant::now();
        for _ in 0..rounds.max(1) {
            ready.push(warm(&pool)?);
            pool.warm_up()?;
            bare.push(bare_start()?);
            sealed.push(launch(&full)?);
            without_namespaces.push(launch(&lesser)?);
        }
        let whole = began.elapsed();
        let yardstick = median(&mut bare);
        let worker = pool.checkout()?;
        println!("resident memory of a sealed worker: {} KiB", resident_kib(worker.pid())?);
        drop(worker);
        let per_second = sealed.len() as f64 / sealed.iter().sum::<Duration>().as_secs_f64();
        println!("launches one after the other: {per_second:.0} a second");
        for (name, mut times) in
            [("full", sealed), ("landlock+seccomp", without_namespaces), ("warm checkout", ready)]
        {
            let middle = median(&mut times);
            println!("{name:<18} {:>8.3} ms  {:>6.2} x bare", ms(middle), ms(middle) / ms(yardstick));
        }
        println!(
            "{:<18} {:>8.3} ms  ({rounds} rounds in {:.1} s)",
            "bare re-exec",
            ms(yardstick),
            whole.as_secs_f64()
        );
        Ok(())
    }

    fn resident_kib(pid: u32) -> Result<u64, AnyError> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    fn median(times: &mut [Duration]) -> Duration {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    fn ms(time: Duration) -> f64 {
        time.as_secs_f64() * 1000.0
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::run()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("there is no jail on this platform");
}
