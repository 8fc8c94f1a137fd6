//! One run of the binary: started with nothing but what the test gives it, and ended within a bound.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{WAIT_MAX, wait_for, wait_within};

/// The binary under test with its environment.
#[derive(Debug, Clone)]
pub struct Binary {
    /// Where it is.
    pub path: PathBuf,
    /// Every variable that it gets; nothing else.
    pub env: BTreeMap<String, String>,
}

/// A process of the binary, ended with its guard: what a failed test leaves running would only disturb the next.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Waits until it ended by itself.
    ///
    /// # Panics
    /// When it does not; with what was waited for.
    #[track_caller]
    pub fn wait_for_end(&mut self, what: &str) -> ExitStatus {
        wait_for(what, || self.0.try_wait().unwrap())
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it has ended and been waited for.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// What a run left.
#[derive(Debug, Clone)]
pub struct Done {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Everything on stdout.
    pub stdout: String,
    /// Everything on stderr.
    pub stderr: String,
}

impl Binary {
    /// A binary with an empty environment.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), env: BTreeMap::new() }
    }

    /// Starts it without an input.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(&self, arguments: &[&str], stdout: Stdio, stderr: Stdio) -> Running {
        self.spawn_with(arguments, Stdio::null(), stdout, stderr)
    }

    fn spawn_with(&self, arguments: &[&str], stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Running {
        #[expect(clippy::disallowed_methods, reason = "the binary under test is started here, from outside")]
        let mut command = Command::new(&self.path);
        command.args(arguments).env_clear().envs(&self.env);
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        Running(command.spawn().unwrap())
    }

    /// Runs it to its end without an input.
    ///
    /// # Panics
    /// When it does not end within the bound.
    pub fn run(&self, arguments: &[&str]) -> Done {
        self.run_with(arguments, Stdio::null(), WAIT_MAX)
    }

    /// As [`Binary::run`], with a bound of its own.
    ///
    /// # Panics
    /// As [`Binary::run`].
    pub fn run_within(&self, bound: Duration, arguments: &[&str]) -> Done {
        self.run_with(arguments, Stdio::null(), bound)
    }

    /// Runs it to its end with this on its stdin.
    ///
    /// # Panics
    /// As [`Binary::run`].
    pub fn run_answering(&self, arguments: &[&str], answer: &str) -> Done {
        use std::io::{Seek, SeekFrom, Write};
        let mut stdin = tempfile::tempfile().unwrap();
        stdin.write_all(answer.as_bytes()).unwrap();
        stdin.seek(SeekFrom::Start(0)).unwrap();
        self.run_with(arguments, Stdio::from(stdin), WAIT_MAX)
    }

    fn run_with(&self, arguments: &[&str], stdin: Stdio, bound: Duration) -> Done {
        let out = tempfile::tempfile().unwrap();
        let err = tempfile::tempfile().unwrap();
        let mut child = self.spawn_with(
            arguments,
            stdin,
            Stdio::from(out.try_clone().unwrap()),
            Stdio::from(err.try_clone().unwrap()),
        );
        let what = format!("the end of thought {}", arguments.join(" "));
        let status = wait_within(bound, &what, || child.0.try_wait().unwrap());
        Done { code: status.code(), stdout: text(out), stderr: text(err) }
    }
}

fn text(mut file: std::fs::File) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

impl Done {
    /// Requires an exit code.
    ///
    /// # Panics
    /// When it was another; with everything that was printed.
    #[track_caller]
    pub fn exit(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The one object on stdout.
    ///
    /// # Panics
    /// When it is not one line of JSON.
    #[track_caller]
    pub fn object(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        parse(&self.stdout)
    }

    /// The objects on stdout, one a line.
    ///
    /// # Panics
    /// When a line is not JSON.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(parse).collect()
    }

    /// The `error` object, which must be the last line on stderr.
    ///
    /// # Panics
    /// When there is none, or it has not the members that every error has.
    #[track_caller]
    #[must_use]
    pub fn error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_else(|| panic!("no error; stdout: {}", self.stdout));
        let error = parse(line)["error"].clone();
        assert!(error["code"].is_string() && error["message"].is_string(), "{line}");
        let allowed = ["code", "hint", "message"];
        assert!(error.as_object().unwrap().keys().all(|key| allowed.contains(&key.as_str())), "{line}");
        error
    }

    /// Message and hint of the error, joined: what a person reads.
    ///
    /// # Panics
    /// As [`Done::error`].
    #[track_caller]
    #[must_use]
    pub fn told(&self) -> String {
        let error = self.error();
        format!("{} {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap_or(""))
    }
}

#[track_caller]
fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"))
}

/// A path as an argument.
///
/// # Panics
/// When it is not UTF-8.
#[must_use]
pub fn argument(path: &Path) -> &str {
    path.to_str().unwrap()
}
