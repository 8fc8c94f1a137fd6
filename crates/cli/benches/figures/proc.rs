//! What the kernel tells about a process and its threads.

use anyhow::{Context, Result};

/// Resident memory of a process, KiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) resident_kib: f64,
    pub(crate) anonymous_kib: f64,
    pub(crate) file_kib: f64,
    pub(crate) threads: f64,
}

/// Resident memory of a process.
pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).context("read a process's status")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse::<f64>().ok()).with_context(|| format!("find {name} in a status"))
    };
    Ok(Memory {
        resident_kib: field("VmRSS:")?,
        anonymous_kib: field("RssAnon:")?,
        file_kib: field("RssFile:")?,
        threads: field("Threads:")?,
    })
}

/// What threads have read and written so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Io {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// What this process's threads of these names have read and written, from cache or disk.
pub(crate) fn io_of_threads(names: &[&str]) -> Result<Io> {
    let mut total = Io::default();
    for task in std::fs::read_dir("/proc/self/task").context("list this process's threads")? {
        let task = task?.path();
        let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        if !names.contains(&name.trim()) {
            continue;
        }
        let table = std::fs::read_to_string(task.join("io")).context("read a thread's counts")?;
        let field = |name: &str| -> Result<u64> {
            let line = table.lines().find_map(|line| line.strip_prefix(name));
            Ok(line.context("find a thread's count")?.trim().parse()?)
        };
        total.read_bytes += field("rchar:")?;
        total.written_bytes += field("wchar:")?;
    }
    Ok(total)
}

/// Milliseconds that the threads of a process have run, and have waited for a processor that was busy with others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scheduled {
    pub(crate) run_ms: f64,
    pub(crate) wait_ms: f64,
}

/// What the kernel's scheduler counted for a process so far.
pub(crate) fn scheduled(pid: u32) -> Result<Scheduled> {
    let mut total = Scheduled::default();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).context("list a process's threads")? {
        // A thread that ended meanwhile counts no more.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let mut words = text.split_whitespace().map(str::parse::<f64>);
        let mut next = || words.next().context("find a thread's times");
        total.run_ms += next()?? / 1e6;
        total.wait_ms += next()?? / 1e6;
    }
    Ok(total)
}

/// Processes that wanted to run, on the mean of the last minute: how busy the machine was.
pub(crate) fn load() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").context("read the load of the machine")?;
    let first = text.split_whitespace().next().context("find the load of the machine")?;
    Ok(first.parse()?)
}
