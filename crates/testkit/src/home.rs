//! A temporary home, made by the binary's own `init`, whose configuration a test rewrites key by key.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Binary, Done, argument};
use crate::wait_for;

/// A home below a temporary folder, which goes with it.
#[derive(Debug)]
pub struct Home {
    /// The home itself.
    pub path: PathBuf,
    /// The binary with the environment of every run.
    pub binary: Binary,
    /// The folder around it: a place for logs and other files that are not the home's.
    pub folder: TempDir,
}

impl Home {
    /// Makes a home with `thought init --provider <provider>`, in an empty environment.
    ///
    /// # Panics
    /// When `init` fails.
    #[must_use]
    pub fn init(binary: impl Into<PathBuf>, provider: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("home");
        Self::init_at(binary, folder, path, provider)
    }

    /// As [`Home::init`], at a path of the test's choice; logs go to the folder.
    ///
    /// # Panics
    /// When `init` fails.
    #[must_use]
    pub fn init_at(binary: impl Into<PathBuf>, folder: TempDir, path: PathBuf, provider: &str) -> Self {
        let home = Self { path, binary: Binary::new(binary), folder };
        let _made = home.run(&["init", "--provider", provider, "--json"]).exit(0);
        home
    }

    /// A path below the home.
    #[must_use]
    pub fn below(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// Sets a variable of every later run.
    pub fn env(&mut self, name: &str, value: &str) {
        self.binary.env.insert(name.to_owned(), value.to_owned());
    }

    /// Takes a variable away.
    pub fn unset(&mut self, name: &str) {
        self.binary.env.remove(name);
    }

    /// Runs `thought --home <home> <arguments>`.
    pub fn run(&self, arguments: &[&str]) -> Done {
        let mut all = vec!["--home", argument(&self.path)];
        all.extend(arguments);
        self.binary.run(&all)
    }

    /// Runs with `--json`, requires exit 0, and gives the one object.
    ///
    /// # Panics
    /// When it exits otherwise or prints anything else.
    #[track_caller]
    pub fn object(&self, arguments: &[&str]) -> Value {
        self.json(arguments).exit(0).object()
    }

    /// Runs with `--json`, requires exit 0, and gives the objects, one a line.
    ///
    /// # Panics
    /// When it exits otherwise or prints anything else.
    #[track_caller]
    pub fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        self.json(arguments).exit(0).lines()
    }

    /// Runs with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Done {
        let mut all = arguments.to_vec();
        all.push("--json");
        self.run(&all)
    }

    /// Every event of a type (`source.telegram.message@1`), with its payload, oldest first.
    #[track_caller]
    #[must_use]
    pub fn events(&self, event_type: &str) -> Vec<Value> {
        self.lines(&["event-list", "--type", event_type, "--acknowledge-sensitive-private"])
    }

    /// Every run, oldest first.
    #[track_caller]
    #[must_use]
    pub fn runs(&self) -> Vec<Value> {
        self.lines(&["run-list"])
    }

    /// Waits until this many runs stand in a state, and gives all runs.
    ///
    /// # Panics
    /// When they never do.
    #[track_caller]
    pub fn wait_for_runs(&self, state: &str, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} runs {state}"), || {
            let runs = self.runs();
            let found = runs.iter().filter(|run| run["state"] == state).count();
            (found >= count).then_some(runs)
        })
    }

    /// Waits until this many events of a type stand in the log, and gives them.
    ///
    /// # Panics
    /// When they never do.
    #[track_caller]
    pub fn wait_for_events(&self, event_type: &str, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} events {event_type}"), || {
            let events = self.events(event_type);
            (events.len() >= count).then_some(events)
        })
    }

    /// Waits until this many deliveries of a kind (`reply`, `notice:run-failed`) have a receipt, and gives those.
    ///
    /// # Panics
    /// When they never do.
    #[track_caller]
    pub fn wait_for_deliveries(&self, kind: &str, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} deliveries {kind}"), || {
            let found = self.deliveries(kind);
            (found.len() >= count).then_some(found)
        })
    }

    /// The deliveries of a kind that have a receipt.
    #[track_caller]
    #[must_use]
    pub fn deliveries(&self, kind: &str) -> Vec<Value> {
        let mut events = self.events("delivery.telegram@1");
        events.retain(|event| event["payload"]["kind"] == kind);
        events
    }

    /// The text of `thought.toml`.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn configuration(&self) -> String {
        fs::read_to_string(self.below("thought.toml")).unwrap()
    }

    /// Replaces `thought.toml`.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn set_configuration(&self, text: &str) {
        fs::write(self.below("thought.toml"), text).unwrap();
    }

    /// Sets a key of `thought.toml` (`value` as TOML), adding it where the table has none; `None` takes it away.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn set(&self, table: &str, key: &str, value: Option<&str>) {
        let header = format!("[{table}]");
        let mut lines: Vec<String> = self.configuration().lines().map(str::to_owned).collect();
        let start = lines.iter().position(|line| *line == header);
        let start = start.unwrap_or_else(|| panic!("thought.toml has no table {table}")) + 1;
        let end =
            lines[start..].iter().position(|line| line.starts_with('[')).map_or(lines.len(), |n| start + n);
        let known = (start..end).find(|at| lines[*at].split('=').next().map(str::trim) == Some(key));
        match (known, value) {
            (Some(at), Some(value)) => lines[at] = format!("{key} = {value}"),
            (Some(at), None) => drop(lines.remove(at)),
            (None, Some(value)) => lines.insert(start, format!("{key} = {value}")),
            (None, None) => {}
        }
        self.set_configuration(&format!("{}\n", lines.join("\n")));
    }
}
