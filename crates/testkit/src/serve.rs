//! A guard around `thought serve`: started and ready, ended as a service manager or a power cut would, and never left
//! behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::Signal;
use serde_json::Value;

use crate::WAIT_MAX;
use crate::home::Home;
use crate::run::{Running, argument};

/// A running `thought serve --json`.
#[derive(Debug)]
pub struct Serve {
    /// What it said when it was ready.
    pub ready: Value,
    child: Running,
    rest: Receiver<String>,
    log: PathBuf,
}

impl Serve {
    /// Starts it and waits for its one line.
    ///
    /// # Panics
    /// When it ends first or says something else; with what it logged.
    #[track_caller]
    #[must_use]
    pub fn start(home: &Home) -> Self {
        Self::start_with(home, &[])
    }

    /// As [`Serve::start`], with further options.
    ///
    /// # Panics
    /// As [`Serve::start`].
    #[track_caller]
    #[must_use]
    pub fn start_with(home: &Home, options: &[&str]) -> Self {
        let (mut child, log) = spawn(home, options);
        let stdout = child.0.stdout.take().unwrap();
        let (tell_line, line) = channel();
        let (tell_rest, rest) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut first = String::new();
            let read = reader.read_line(&mut first);
            // A guard that is gone has no use for either.
            drop(tell_line.send(read.map(|_| first)));
            let mut behind = String::new();
            drop(reader.read_to_string(&mut behind));
            drop(tell_rest.send(behind));
        });
        let first = line.recv_timeout(WAIT_MAX).unwrap().unwrap();
        let ready: Value = serde_json::from_str(&first).unwrap_or_else(|_| {
            let status = child.wait_for_end("the end of serve");
            panic!("serve said {first:?} and ended with {status}; {}", fs::read_to_string(&log).unwrap())
        });
        assert_eq!(ready["ready"], true, "{first}");
        Self { ready, child, rest, log }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// What it wrote to stderr so far.
    ///
    /// # Panics
    /// When the file cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Whether it has not ended.
    ///
    /// # Panics
    /// When the system cannot say.
    pub fn is_running(&mut self) -> bool {
        self.child.0.try_wait().unwrap().is_none()
    }

    /// Ends it with SIGTERM, requires exit 0, and gives everything it wrote to stderr.
    ///
    /// # Panics
    /// When it does not end, ends otherwise, or wrote more than its one line to stdout.
    #[track_caller]
    pub fn stop(mut self) -> String {
        self.child.signal(Signal::TERM);
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "serve after SIGTERM; {}", self.log());
        assert_eq!(self.rest.recv_timeout(WAIT_MAX).unwrap(), "", "serve prints one line to stdout");
        self.log()
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.child.signal(Signal::KILL);
        self.wait();
    }

    /// Waits until it ended by itself.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait_for_end("the end of serve")
    }

    /// Process ids of everything below it: the launcher's children and theirs.
    #[must_use]
    pub fn descendants(&self) -> Vec<u32> {
        let mut found = vec![self.child.0.id()];
        let parents = parents();
        while let Some((child, _)) =
            parents.iter().find(|(child, parent)| found.contains(parent) && !found.contains(child))
        {
            found.push(*child);
        }
        found.split_off(1)
    }
}

/// Starts `serve` without waiting for anything: for a test that expects it to die on its way.
///
/// # Panics
/// When it cannot be started.
#[must_use]
pub fn spawn(home: &Home, options: &[&str]) -> (Running, PathBuf) {
    let (log, path) =
        tempfile::Builder::new().prefix("serve-").tempfile_in(home.folder.path()).unwrap().keep().unwrap();
    let mut arguments = vec!["--home", argument(&home.path), "--json"];
    arguments.extend(options);
    arguments.push("serve");
    (home.binary.spawn(&arguments, Stdio::piped(), Stdio::from(log)), path)
}

/// Every process with its parent; one that ends meanwhile is left out.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; the state and the parent follow the last of them.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    })
    .collect()
}
