//! Failures that end a command before it begins, or a store that is no good: each with words where they are read.

use std::fs;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use thought_testkit::run::argument;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::lived::{chat, file};
use crate::places;
use crate::watch::{Watched, append};
use crate::words::{GARBAGE, KEY, MEMORY, MESSAGE, SECRET};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_not_quoted() {
    let mut watched = Watched::new().await;
    let home = watched.home();
    let agent = home.below("agents/stream-telegram-conversation.yaml");
    let (whole, configuration) = (fs::read_to_string(&agent).unwrap(), home.configuration());
    let path = argument(&agent).to_owned();
    for (from, to) in [
        ("version: 1", format!("version: \"{GARBAGE}\"")),
        ("runner: pi", format!("runner: {GARBAGE}")),
        ("prompt: ", format!("prompt: [{GARBAGE}] # ")),
        ("maxEvents: 64", format!("maxEvents: {GARBAGE}")),
    ] {
        assert!(whole.contains(from), "{from}");
        fs::write(&agent, whole.replacen(from, &to, 1)).unwrap();
        watched.read(&[3], &["declaration-check", &path]);
    }
    fs::write(&agent, format!("{whole}\n\t{GARBAGE}: [{GARBAGE}\n")).unwrap();
    watched.read(&[3], &["declaration-check", &path]);
    fs::write(&agent, &whole).unwrap();
    for (table, key) in [
        ("log", "level"),
        ("telegram", "ingress"),
        ("telegram", "allowed_chats"),
        ("telegram", "api_url"),
        ("telegram", "token_env"),
    ] {
        for value in [KEY, SECRET, GARBAGE] {
            watched.home().set(table, key, Some(&format!("\"{value}\"")));
            watched.read(&[3], &["status"]);
            watched.home().set_configuration(&configuration);
        }
    }
    watched.home().set_configuration(&format!("{configuration}\n{GARBAGE} = [\"{GARBAGE}\n"));
    watched.read(&[3], &["status"]);
    watched.home().set_configuration(&configuration);
    assert_eq!(watched.leaks(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_stores_that_are_no_good_are_not_quoted() {
    let mut watched = Watched::new().await;
    chat(&mut watched);
    let home = watched.home();
    append(&home.below("context/memory.md"), MEMORY);
    for (name, text) in [
        ("bad-head.md", format!("---\nid: [{GARBAGE}\n---\n{GARBAGE}\n")),
        ("two-heads.md", format!("---\nid: a\nid: {GARBAGE}\n---\n{GARBAGE}\n")),
        ("no-text.md", format!("{GARBAGE}\0{GARBAGE}")),
    ] {
        fs::write(home.below("context").join(name), text).unwrap();
    }
    watched.read(&[0], &["scan"]);
    let database = watched.home().below("thought.db");
    let store = rusqlite::Connection::open(&database).unwrap();
    // What was said is another word now, where it is stored, and a row says nonsense.
    store
        .execute(
            "UPDATE events SET payload = CAST(?1 AS BLOB) WHERE type LIKE '%telegram.message%'",
            [MESSAGE],
        )
        .unwrap();
    store.execute("UPDATE snapshots SET bytes = CAST(?1 AS BLOB)", [MESSAGE]).unwrap();
    store.execute("UPDATE versions SET content = CAST(?1 AS BLOB)", [MESSAGE]).unwrap();
    drop(store);
    let run = watched.home().runs()[0]["id"].as_str().unwrap().to_owned();
    let event = watched.home().lines(&["event-list", "--type", "source.telegram.message@1"])[0]["id"].clone();
    watched.read(&[0, 1, 3], &["verify"]);
    watched.read(&[0, 1, 3], &["context-show", &run, "--acknowledge-sensitive-private"]);
    watched.read(&[0, 1, 3], &["lineage", event.as_str().unwrap()]);
    let backup = file(watched.home(), "unused", "");
    fs::remove_file(&backup).unwrap();
    watched.hear(&[0, 1, 3, 8], &["backup", "--output", &backup]);
    for bytes in [GARBAGE.as_bytes().to_vec(), [b"SQLite format 3\0".as_slice(), GARBAGE.as_bytes()].concat()]
    {
        fs::write(&database, bytes).unwrap();
        for name in ["thought.db-wal", "thought.db-shm"] {
            drop(fs::remove_file(watched.home().below(name)));
        }
        watched.read(&[3, 8], &["status"]);
        watched.read(&[3, 8], &["serve"]);
    }
    assert_eq!(watched.leaks(), [""; 0]);
}

/// A file system of its own, unmounted at the end.
struct Small(std::path::PathBuf);

impl Small {
    fn at(path: &Path) -> Self {
        mount("tmpfs", path, "tmpfs", MountFlags::empty(), Some(c"size=3m")).unwrap_or_else(|errno| {
            panic!("this test mounts a small file system and needs root for it: {errno}")
        });
        Self(path.to_owned())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _left_to_the_system = unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_makes_nobody_say_more() {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::at(folder.path());
    let path = folder.path().join("home");
    let inner = tempfile::tempdir_in(folder.path()).unwrap();
    let home = thought_testkit::home::Home::init_at(THOUGHT, inner, path, "anthropic");
    let world = World::around(home, thought_testkit::world::Speaks::Anthropic, Some(KEY)).await;
    let serve = thought_testkit::serve::Serve::start_with(&world.home, &["--log-level", "trace"]);
    world.turn(MESSAGE, 1).await;
    let ballast = small.0.join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    drop(file);
    world.say(MESSAGE);
    let full = || serve.log().contains("space");
    thought_testkit::wait_until("the full disk to be told", full);
    fs::remove_file(&ballast).unwrap();
    world.home.wait_for_deliveries("reply", 2);
    let log = serve.stop();
    let mut found = thought_testkit::canary::in_bytes("the log", log.as_bytes(), &crate::words::all());
    found.extend(places::in_columns(&world.home.below("thought.db")));
    found.extend(places::in_files(&world.home.path));
    assert_eq!(found, [""; 0]);
}
