//! How long a sealed worker takes, beside a bare start of the same binary and, where it is installed, bubblewrap around
//! it: medians of interleaved rounds.
//!
//! `cargo run --release -p thought-sandbox --example launch_rate [ROUNDS]`
//!
//! Bubblewrap makes the same namespaces and a root with the program and its libraries; it has no Landlock, no limits and
//! no list of system calls, so it is a yardstick of the start alone.
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

    /// A start without the jail, until its first byte; ended by the channel.
    struct Started {
        taken: Duration,
        child: std::process::Child,
        channel: UnixStream,
    }

    impl Started {
        fn end(mut self) -> Result<Duration, AnyError> {
            drop(self.channel);
            self.child.wait()?;
            Ok(self.taken)
        }
    }

    fn start(program: &str, arguments: &[&str]) -> Result<Started, AnyError> {
        let start = Instant::now();
        let (mut channel, theirs) = UnixStream::pair()?;
        #[expect(clippy::disallowed_methods, reason = "the yardsticks are starts without the jail")]
        let mut command = Command::new(program);
        command.args(arguments).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
        let child = command.spawn()?;
        drop(command);
        channel.read_exact(&mut [0])?;
        Ok(Started { taken: start.elapsed(), child, channel })
    }

    fn bare() -> Result<Started, AnyError> {
        start("/proc/self/exe", &[BARE])
    }

    const BWRAP: &str = "/usr/bin/bwrap";
    const PROGRAM: &str = "/worker";

    fn bubblewrap(executable: &str) -> Result<Started, AnyError> {
        let mut arguments =
            vec!["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"];
        for folder in ["/usr", "/lib", "/lib64"] {
            arguments.extend(["--ro-bind-try", folder, folder]);
        }
        arguments.extend(["--ro-bind", executable, PROGRAM, "--chdir", "/", PROGRAM, BARE]);
        start(BWRAP, &arguments)
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
        let rounds = rounds.max(1);
        let full = Launcher::of_self(Tier::Full, WorkerLimits::default(), WORKER)?;
        let lesser = full.with_tier(Tier::LandlockSeccomp);
        let pool = WarmPool::new(full.clone())?;
        let executable = std::env::current_exe()?;
        let executable = executable.to_str().ok_or("a path of text")?;
        let has_bubblewrap = std::path::Path::new(BWRAP).exists();
        let mut times: [Vec<Duration>; 5] = Default::default();
        let began = Instant::now();
        for _ in 0..rounds {
            let [plain, sealed, without_namespaces, ready, wrapped] = &mut times;
            ready.push(warm(&pool)?);
            pool.warm_up()?;
            plain.push(bare()?.end()?);
            sealed.push(launch(&full)?);
            without_namespaces.push(launch(&lesser)?);
            if has_bubblewrap {
                wrapped.push(bubblewrap(executable)?.end()?);
            }
        }
        println!("{rounds} rounds in {:.1} s; medians", began.elapsed().as_secs_f64());
        let names =
            ["bare re-exec", "sealed, full", "sealed, landlock+seccomp", "warm checkout", "bubblewrap"];
        let yardstick = times.first_mut().map(|times| median(times)).unwrap_or_default();
        for (name, times) in names.into_iter().zip(&mut times) {
            if times.is_empty() {
                println!("{name:<26} not installed ({BWRAP}), so not measured");
                continue;
            }
            let (middle, rate) =
                (median(times), times.len() as f64 / times.iter().sum::<Duration>().as_secs_f64());
            let (of_bare, ms) = (ms(middle) / ms(yardstick), ms(middle));
            println!(
                "{name:<26} {ms:>8.3} ms {of_bare:>6.2} x bare {rate:>8.0} a second, one after the other"
            );
        }
        memory(&full, has_bubblewrap.then_some(executable))
    }

    /// Resident memory of what waits for its first byte, of all its processes, KiB.
    fn memory(launcher: &Launcher, wrapped: Option<&str>) -> Result<(), AnyError> {
        let worker = launcher.launch()?;
        println!("resident, sealed worker: {} KiB", resident_kib(worker.pid())?);
        drop(worker);
        let plain = bare()?;
        println!("resident, bare re-exec:  {} KiB", resident_kib(plain.child.id())?);
        plain.end()?;
        if let Some(executable) = wrapped {
            let wrapped = bubblewrap(executable)?;
            let all = family(wrapped.child.id())?;
            let sum = all.iter().map(|pid| resident_kib(*pid)).sum::<Result<u64, _>>()?;
            println!("resident, bubblewrap:    {sum} KiB in {} processes", all.len());
            wrapped.end()?;
        }
        Ok(())
    }

    /// A process and all that descend from it.
    fn family(root: u32) -> Result<Vec<u32>, AnyError> {
        let mut all = vec![root];
        let mut next = 0;
        while let Some(pid) = all.get(next).copied() {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            next += 1;
        }
        Ok(all)
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
