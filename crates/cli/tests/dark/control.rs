//! The searches themselves, each on a place where a word was put on purpose: a search that finds nothing anywhere would
//! prove nothing.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use thought_testkit::run::{Binary, argument};
use thought_testkit::wait_until;
use thought_testkit::world::World;

use crate::places::{self, Onlooker};
use crate::watch::Watched;
use crate::words::{GARBAGE, KEY, MESSAGE};
use crate::{ALONE, THOUGHT};

#[tokio::test(flavor = "multi_thread")]
async fn a_word_in_a_column_a_payload_a_file_or_a_name_is_found() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.turn(MESSAGE, 1).await;
    serve.stop();
    let home = &world.home;
    let database = home.below("thought.db");
    let found = [places::in_columns(&database), places::in_events(&database), places::in_files(&home.path)];
    assert_eq!(found.concat(), [""; 0], "a message in its own place is no finding");
    let store = rusqlite::Connection::open(&database).unwrap();
    store.execute("UPDATE runs SET reason = ?1", [MESSAGE]).unwrap();
    assert_eq!(places::in_columns(&database), [format!("{MESSAGE} stands in the column runs.reason")]);
    store
        .execute("UPDATE events SET payload = CAST(?1 AS BLOB) WHERE type LIKE '%run.completed%'", [MESSAGE])
        .unwrap();
    let [found] = &places::in_events(&database)[..] else { panic!("one") };
    assert!(found.contains("run.completed"), "{found}");
    // What is never stored is found in a message too.
    store
        .execute("UPDATE events SET payload = CAST(?1 AS BLOB) WHERE type LIKE '%telegram.message%'", [KEY])
        .unwrap();
    assert_eq!(places::in_events(&database).len(), 2);
    fs::write(home.below("note.txt"), GARBAGE).unwrap();
    fs::write(home.below(format!("run/{MESSAGE}")), "").unwrap();
    let found = places::in_files(&home.path);
    assert!(found.iter().any(|place| place.contains("note.txt")), "{found:?}");
    assert!(found.contains(&format!("{MESSAGE} stands in the name of a file")), "{found:?}");
}

#[test]
fn a_word_in_arguments_or_environment_is_found() {
    let shell = Path::new("/bin/sh");
    let onlooker = Onlooker::of(shell);
    // A shell that stops itself.
    let mut binary = Binary::new(shell);
    binary.env.extend([("A", GARBAGE), ("B", KEY)].map(|(name, value)| (name.to_owned(), value.to_owned())));
    let line = ["-c", "kill -STOP $$", MESSAGE];
    let mut waits = binary.spawn(&line, Stdio::null(), Stdio::null());
    wait_until("a look", || onlooker.looks() > 0);
    waits.0.kill().unwrap();
    waits.wait_for_end("the shell");
    let (found, _) = onlooker.end();
    let wanted = [(GARBAGE, "the environment"), (MESSAGE, "the arguments")];
    assert_eq!(found, wanted.map(|(word, place)| format!("{word} stands in {place} of a command")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_printed_where_it_may_not_be_is_found() {
    let _alone = ALONE.lock().await;
    let mut watched = Watched::new().await;
    // A path is printed as it was given.
    let named = watched.home().folder.path().join(MESSAGE);
    watched.hear(&[5], &["declaration-check", argument(&named)]);
    let found = watched.leaks();
    assert!(found.iter().any(|place| place.contains("stderr of declaration-check")), "{found:?}");
}
