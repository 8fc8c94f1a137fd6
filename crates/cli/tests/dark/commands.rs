//! Every command there is, on a home that has lived: by the list that the program itself prints.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use thought_testkit::home::Home;
use thought_testkit::run::{Binary, argument};

use crate::lived::{chat, doors, file, identity, letter};
use crate::places::{self, COMMAND, Onlooker, WORKER};
use crate::watch::Watched;
use crate::words::{self, GARBAGE, OWN};
use crate::{ALONE, THOUGHT};

/// Commands that are not run on the one home: the demonstration has a home and words of its own.
const APART: [&str; 1] = ["demo"];
const SHOW: &str = "--acknowledge-sensitive-private";

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

fn proposals(home: &Home, kind: &str) -> Vec<String> {
    home.lines(&["proposal-list"]).iter().filter(|row| row["kind"] == kind).map(id).collect()
}

/// A person's words, each way: taken, refused, contradicted, stale, killed on the way, repeated, reverted, released.
fn decisions(watched: &mut Watched) {
    let (changes, corrections) =
        (proposals(watched.home(), "memory-change"), proposals(watched.home(), "self-correction"));
    let own = file(watched.home(), "own.txt", OWN);
    let bad = file(watched.home(), "bad.txt", format!("{GARBAGE}\0"));
    let decide = |watched: &mut Watched, codes: &[i32], id: &str, more: &[&str]| {
        let line = [&["proposal-decision", "--proposal", id, "--disposition"][..], more].concat();
        watched.hear(codes, &line);
    };
    decide(watched, &[3], &changes[0], &["edit", "--replacement-file", &bad]);
    decide(watched, &[3, 4], &changes[0], &["accept", "--expect-sha256", &"0".repeat(64)]);
    decide(watched, &[0], &changes[0], &["edit", "--replacement-file", &own]);
    decide(watched, &[4], &changes[0], &["accept"]);
    decide(watched, &[6], &changes[1], &["accept"]);
    decide(watched, &[0], &corrections[0], &["edit", "--replacement-file", &own]);
    watched.hear(&[0], &["proposal-repropose", &changes[2]]);
    watched.hear(&[0], &["proposal-revert", &changes[0]]);
    watched.world.home.env("THOUGHT_TEST_CRASH_POINT", "decision.after");
    decide(watched, &[-1], &changes[3], &["accept"]);
    watched.world.home.unset("THOUGHT_TEST_CRASH_POINT");
    let lock = watched.home().below("context/.thought.lock");
    fs::write(&lock, GARBAGE).unwrap();
    watched.hear(&[3], &["scan"]);
    watched.hear(&[3], &["proposal-project"]);
    watched.hear(&[0, 2, 3], &["doctor", "--clear-lock"]);
    fs::write(&lock, "").unwrap();
    watched.hear(&[6], &["proposal-project"]);
    // No terminal is there.
    watched.hear(&[2, 3], &["review"]);
    for judgment in watched.home().lines(&["judgment-list"]) {
        watched.hear(&[0, 3], &["judgment-release", &id(&judgment), "--acknowledge-external"]);
    }
}

/// Private mail, and its consumer as a process of its own.
fn mail(watched: &mut Watched) {
    let letter = letter(watched.home());
    let garbage = file(watched.home(), "garbage.txt", format!("{GARBAGE}\0"));
    let send = |watched: &mut Watched, codes: &[i32], message: &str, file: &str| {
        let to = ["agent-send", "--from", "co", "--to", "stream-agent-conversation", "--thread", "t"];
        watched.hear(codes, &[&to[..], &["--message-id", message, "--file", file]].concat());
    };
    send(watched, &[3], "m-0", &garbage);
    send(watched, &[0], "m-1", &letter);
    let talkative = ["--log-level", "trace", "--log-format", "json"];
    let home = watched.home();
    let line = ["--home", argument(&home.path), "consume", "--agent", "stream-agent-conversation"];
    let log = home.folder.path().join("consume.log");
    let out = fs::File::create(&log).unwrap();
    let mut consume = home.binary.spawn(&[&talkative[..], &line].concat(), Stdio::null(), Stdio::from(out));
    home.wait_for_events("derived.agent.message@1", 1);
    consume.signal(Signal::TERM);
    consume.wait_for_end("the consumer");
    let log = fs::read_to_string(log).unwrap();
    watched.hear_log(&log);
    watched.note("consume");
    send(watched, &[4], "m-1", &file(watched.home(), "other.txt", OWN));
}

/// Runs and deliveries that a person settles, the channel's commands, and declarations.
fn chores(watched: &mut Watched) {
    let runs = watched.home().runs();
    let failed = runs.iter().find(|run| run["state"] == "failed").unwrap();
    watched.hear(&[0], &["run-retry", &id(failed)]);
    let runs = watched.home().runs();
    let is_again = |run: &&Value| run["trigger"] == failed["trigger"] && run["state"] != "failed";
    let open = runs.iter().find(is_again).unwrap_or_else(|| panic!("{runs:?}"));
    watched.hear(&[0], &["run-abandon", &id(open)]);
    let status = watched.home().object(&["status"]);
    let uncertain: Vec<String> = status["deliveries"]["uncertain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    watched.hear(&[0], &["delivery-retry", &uncertain[0]]);
    watched.hear(&[0], &["delivery-confirm", &uncertain[1]]);
    watched.hear(&[0], &["telegram-menu-register"]);
    watched.hear(&[3], &["telegram-webhook-set"]);
    let declaration = watched.home().below("agents/stream-agent-conversation.yaml");
    let text = fs::read_to_string(&declaration).unwrap();
    fs::write(&declaration, text.replace("\nversion: 1\n", "\nversion: 2\n")).unwrap();
    let path = argument(&declaration).to_owned();
    watched.read(&[0], &["declaration-check", &path]);
    watched.hear(&[0], &["declaration-activate", &path]);
    fs::write(&declaration, format!("{text}\nunheardOf: \"{GARBAGE}\"\n")).unwrap();
    watched.hear(&[3], &["declaration-check", &path]);
    watched.hear(&[3], &["declaration-activate", &path]);
    fs::write(&declaration, text.replace("\nversion: 1\n", "\nversion: 2\n")).unwrap();
}

/// What only reads, with and without the word that content is wanted.
fn onlookers(watched: &mut Watched) {
    let home = watched.home();
    let event = id(&home.events("source.telegram.message@1")[0]);
    let output = id(&home.events("derived.message.observation@1")[0]);
    let run = id(home.runs().iter().find(|run| run["state"] == "completed").unwrap());
    let proposal = proposals(home, "memory-change").remove(0);
    for arguments in [
        &["status"][..],
        &["doctor"],
        &["doctor", "--who"],
        &["event-list"],
        &["event-list", "--type", "no.such.type@1"],
        &["event-show", &event],
        &["event-show", &output],
        &["event-show", "evt_00000000"],
        &["lineage", &output],
        &["run-list"],
        &["run-show", &run],
        &["context-show", &run],
        &["proposal-list"],
        &["proposal-show", &proposal],
        &["judgment-list"],
        &["declaration-list"],
        &["verify"],
        &["completions", "bash"],
        &["appends"],
        &["init"],
        &["scan"],
    ] {
        // What is not there, or is written wrongly, is refused; doctor thinks little of a test's provider.
        watched.read(&[0, 2, 3, 5], arguments);
    }
    for arguments in [
        &["event-list", SHOW][..],
        &["event-show", &event, SHOW],
        &["event-show", &output, SHOW],
        &["context-show", &run, SHOW],
        &["proposal-show", &proposal, SHOW],
        &["judgment-list", SHOW],
    ] {
        watched.read(&[0], arguments);
    }
}

/// What is written beside the home: exports, manual pages, a backup and the home that is made of it.
fn outside(watched: &mut Watched) {
    let place = watched.home().folder.path().canonicalize().unwrap().join("exports");
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
    let path = |name: &str| argument(&place.join(name)).to_owned();
    let (private, external, backup, man) = (path("private"), path("external"), path("backup"), path("man"));
    for codes in [&[0][..], &[3, 4]] {
        let consent = "--acknowledge-sensitive-private-training";
        watched.hear(codes, &["private-training-export", "--output", &private, consent]);
        watched.hear(codes, &["training-export", "--output", &external]);
        watched.hear(codes, &["backup", "--output", &backup]);
    }
    watched.hear(&[2, 3], &["private-training-export", "--output", &path("other")]);
    watched.hear(&[0], &["man", "--output", &man]);
    let restored = watched.home().folder.path().canonicalize().unwrap().join("restored");
    let restore = |watched: &mut Watched, codes: &[i32], into: &Path, from: &str| {
        let line = ["--home", argument(into), "restore", "--input", from, "--log-level", "trace"];
        let done = watched.home().binary.run(&line);
        assert!(codes.contains(&done.code.unwrap()), "{}", done.stderr);
        let told = format!("{}{}", done.stdout, done.stderr);
        watched.keep(thought_testkit::canary::in_bytes("what restore says", told.as_bytes(), &words::all()));
    };
    restore(watched, &[0], &restored, &backup);
    let torn = file(watched.home(), "torn", &fs::read(&backup).unwrap()[..5_000]);
    restore(watched, &[3, 8], &watched.home().folder.path().join("again"), &torn);
    watched.note("restore");
    let stored = [&restored, &place].map(|folder| places::in_files(folder));
    watched.keep(stored.concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_and_no_failure_shows_a_word_where_it_does_not_belong() {
    let _alone = ALONE.lock().await;
    let onlooker = Onlooker::of(Path::new(THOUGHT));
    let mut watched = Watched::new().await;
    chat(&mut watched);
    doors(&mut watched);
    decisions(&mut watched);
    mail(&mut watched);
    let (identity, elsewhere) = identity(watched.home());
    fs::rename(&identity, &elsewhere).unwrap();
    watched.hear(&[0], &["scan"]);
    fs::rename(&elsewhere, &identity).unwrap();
    chores(&mut watched);
    onlookers(&mut watched);
    outside(&mut watched);

    let home = watched.home();
    let listed = home.lines(&["appends"]);
    let listed = listed.iter().map(|row| row["command"].as_str().unwrap());
    let unheard: Vec<&str> =
        listed.filter(|name| !APART.contains(name) && !watched.heard().contains(*name)).collect();
    assert_eq!(unheard, [""; 0], "every command is run");

    let database = home.below("thought.db");
    let (in_processes, looks) = onlooker.end();
    for kind in [COMMAND, WORKER] {
        assert!(looks.get(kind).is_some_and(|looks| *looks > 10), "{kind} was looked at: {looks:?}");
    }
    let mut leaks = watched.leaks().to_vec();
    leaks.extend([in_processes, places::in_columns(&database), places::in_events(&database)].concat());
    leaks.extend(places::in_files(&home.path));
    leaks.sort();
    leaks.dedup();
    assert_eq!(leaks, [""; 0]);
}

#[test]
fn the_list_of_commands_is_the_programs_own() {
    let binary = Binary::new(THOUGHT);
    let help = binary.run(&["--help"]).exit(0).stdout;
    let listed = binary.run(&["appends", "--json"]).exit(0).lines();
    for row in listed {
        let name = row["command"].as_str().unwrap();
        assert!(name == "appends" || help.contains(&format!("  {name} ")), "{name}");
    }
}
