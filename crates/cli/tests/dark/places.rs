//! The places that hold no content, and the search of each. A search answers what it found, with the place's name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use thought_contract::event::{EventType, Privacy};
use thought_testkit::canary;

use crate::words;

/// Whether a column may hold content, by the rule of the schema: by its name.
fn may_hold_content(name: &str) -> bool {
    matches!(name, "payload" | "content" | "bytes" | "body") || name.ends_with("_content")
}

/// The values of every column that may hold no content, by the column.
fn plain_columns(database: &Path) -> BTreeMap<String, String> {
    let store = rusqlite::Connection::open(database).unwrap();
    let list = |sql: &str| -> Vec<String> {
        let mut statement = store.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut columns = BTreeMap::new();
    for table in list("SELECT name FROM sqlite_schema WHERE type = 'table'") {
        for name in list(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            if !may_hold_content(&name) {
                let values = list(&format!("SELECT quote(\"{name}\") FROM \"{table}\""));
                columns.insert(format!("the column {table}.{name}"), values.join(" "));
            }
        }
    }
    columns
}

/// Words in columns that hold no content.
pub(crate) fn in_columns(database: &Path) -> Vec<String> {
    let columns = plain_columns(database);
    assert!(columns["the column events.id"].contains("'evt_"), "the columns were read");
    let words = words::all();
    columns.iter().flat_map(|(place, values)| canary::in_bytes(place, values.as_bytes(), &words)).collect()
}

/// Words in payloads of events that hold none, and in no envelope: the registry says which they are.
pub(crate) fn in_events(database: &Path) -> Vec<String> {
    let store = rusqlite::Connection::open(database).unwrap();
    let mut statement = store.prepare("SELECT type, payload FROM events").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)));
    let words = words::all();
    let mut found = Vec::new();
    for (name, payload) in rows.unwrap().map(Result::unwrap) {
        let event_type: EventType = name.parse().unwrap();
        let searched =
            if event_type.privacy() == Privacy::Private { words.clone() } else { words::not_stored() };
        found.extend(canary::in_bytes(&format!("the payload of a {name}"), &payload, &searched));
    }
    found
}

/// Words that are never stored in any file, and any word in the name of one.
pub(crate) fn in_files(folder: &Path) -> Vec<String> {
    let mut found = canary::in_folder(folder, &words::not_stored());
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.extend(canary::in_bytes("the name of a file", name.as_bytes(), &words::CONTENT));
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// What a look at one process gives.
struct Shown {
    arguments: Vec<u8>,
    environment: Vec<u8>,
}

/// Looks at every process of one program below this one as long as it lives, from the side.
pub(crate) struct Onlooker {
    over: Arc<AtomicBool>,
    found: Arc<Mutex<Vec<String>>>,
    seen: Arc<Mutex<BTreeMap<String, usize>>>,
    thread: Option<JoinHandle<()>>,
}

impl Onlooker {
    /// Begins to look at whatever runs this program below this process.
    pub(crate) fn of(program: &Path) -> Self {
        let program: PathBuf = program.canonicalize().unwrap();
        let mut onlooker =
            Self { over: Arc::default(), found: Arc::default(), seen: Arc::default(), thread: None };
        let (over, found, seen) = (onlooker.over.clone(), onlooker.found.clone(), onlooker.seen.clone());
        let thread = std::thread::spawn(move || {
            while !over.load(SeqCst) {
                for (kind, shown) in processes(&program) {
                    found.lock().unwrap().extend(in_process(kind, &shown));
                    *seen.lock().unwrap().entry(kind.to_owned()).or_default() += 1;
                }
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        onlooker.thread = Some(thread);
        onlooker
    }

    /// How often a process was looked at.
    pub(crate) fn looks(&self) -> usize {
        self.seen.lock().unwrap().values().sum()
    }

    /// Ends it: what was found, and how often each kind of process was seen.
    pub(crate) fn end(mut self) -> (Vec<String>, BTreeMap<String, usize>) {
        self.over.store(true, SeqCst);
        self.thread.take().unwrap().join().unwrap();
        let mut found = std::mem::take(&mut *self.found.lock().unwrap());
        found.sort();
        found.dedup();
        (found, std::mem::take(&mut *self.seen.lock().unwrap()))
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
    }
}

/// Keys are handed over in the environment of the command itself, as the README says; a worker is given nothing.
fn in_process(kind: &str, shown: &Shown) -> Vec<String> {
    let words = words::all();
    let handed_over = [&words::CONTENT[..], &words::NEVER].concat();
    let in_environment = if kind == WORKER { &words } else { &handed_over };
    let mut found = canary::in_bytes(&format!("the arguments of a {kind}"), &shown.arguments, &words);
    found.extend(canary::in_bytes(
        &format!("the environment of a {kind}"),
        &shown.environment,
        in_environment,
    ));
    found
}

/// A process in the jail.
pub(crate) const WORKER: &str = "worker";
/// Any other process of the program.
pub(crate) const COMMAND: &str = "command";

/// Whether a process hangs below this one.
fn is_ours(mut pid: u32) -> bool {
    while pid > 1 {
        if pid == std::process::id() {
            return true;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        pid = parent.and_then(|parent| parent.trim().parse().ok()).unwrap_or(0);
    }
    false
}

/// Every process of the program below this one, with what it shows; one that ends meanwhile shows nothing.
fn processes(program: &Path) -> Vec<(&'static str, Shown)> {
    let mut shown = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let place = entry.path();
        if fs::read_link(place.join("exe")).ok().as_deref() != Some(program) {
            continue;
        }
        let pid = entry.file_name().to_string_lossy().parse().unwrap_or(0);
        if !is_ours(pid) {
            continue;
        }
        let read = |name: &str| fs::read(place.join(name)).ok();
        let (Some(arguments), Some(environment)) = (read("cmdline"), read("environ")) else { continue };
        let is_worker = arguments.split(|byte| *byte == 0).nth(1) == Some(b"__worker");
        shown.push((if is_worker { WORKER } else { COMMAND }, Shown { arguments, environment }));
    }
    shown
}
