//! The table of what each command appends, held against stores: every command is run on a home that gives it something to
//! do, and the types of the events that appeared are compared with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use thought_fakes::{Failure, Reply};
use thought_testkit::home::Home;
use thought_testkit::run::{Binary, argument};
use thought_testkit::world::World;

use crate::THOUGHT;

type Types = BTreeSet<String>;

/// Commands of which not every type is provoked here: whole roles, and incidents.
const IN_PART: [&str; 5] =
    ["serve", "consume", "delivery-retry", "delivery-confirm", "telegram-menu-register"];
/// Commands that are not run on the one home: a person at a terminal, and two with homes of their own.
const APART: [&str; 3] = ["review", "demo", "restore"];

fn table(home: &Home) -> BTreeMap<String, Types> {
    let line = |row: &Value| {
        let types = row["appends"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        (row["command"].as_str().unwrap().to_owned(), types.collect())
    };
    home.lines(&["appends"]).iter().map(line).collect()
}

fn types_of(events: &[Value]) -> Types {
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// A home under watch: what appeared, by the command that was at work.
struct Watched {
    world: World,
    seen: BTreeMap<String, Types>,
    position: u64,
}

impl Watched {
    fn home(&self) -> &Home {
        &self.world.home
    }

    /// Books what appeared since the last look to a command.
    fn book(&mut self, command: &str) {
        let after = self.position.to_string();
        let news = self.home().lines(&["event-list", "--after", &after]);
        if let Some(last) = news.last() {
            self.position = last["position"].as_u64().unwrap();
        }
        self.seen.entry(command.to_owned()).or_default().extend(types_of(&news));
    }

    /// Runs a command with one of these exit codes, and books what appeared; its one object, where it printed one.
    #[track_caller]
    fn run(&mut self, codes: &[i32], arguments: &[&str]) -> Value {
        let done = self.home().json(arguments);
        assert!(codes.contains(&done.code.unwrap()), "{arguments:?}: {}", done.stderr);
        self.book(arguments[0]);
        if done.stdout.lines().count() == 1 { done.object() } else { Value::Null }
    }

    fn note(&self) -> PathBuf {
        self.home().below("context/note.md")
    }

    /// A document that is scanned and then taken away, so that whoever looks next sees a removal.
    fn take_a_document_away(&mut self) {
        fs::write(self.note(), "---\nid: note\n---\nA note.\n").unwrap();
        self.run(&[0], &["scan"]);
        fs::remove_file(self.note()).unwrap();
    }

    /// A document that nobody has scanned yet.
    fn put_a_document(&self) {
        fs::write(self.note(), format!("---\nid: note\n---\nA note at {}.\n", self.position)).unwrap();
    }

    fn decide(&mut self, codes: &[i32], proposal: &str, more: &[&str]) -> Value {
        let mut arguments = vec!["proposal-decision", "--proposal", proposal, "--disposition"];
        arguments.extend(if more.is_empty() { &["accept"] } else { more });
        self.run(codes, &arguments)
    }

    /// Decides, and is killed before anything follows.
    fn decide_and_die(&mut self, proposal: &str) {
        self.world.home.env("THOUGHT_TEST_CRASH_POINT", "decision.after");
        let arguments = ["proposal-decision", "--proposal", proposal, "--disposition", "accept"];
        assert_eq!(self.home().json(&arguments).code, None);
        self.world.home.unset("THOUGHT_TEST_CRASH_POINT");
        self.book("proposal-decision");
    }
}

fn call(name: &str, text: &str) -> Reply {
    let mut arguments = json!({"reason": "They asked for it.", "evidence_event_ids": []});
    let (place, more) = if name == "submit_correction" {
        ("replacement", ("target_output", "latest"))
    } else {
        ("proposed_text", ("operation", "append"))
    };
    arguments[place] = json!(text);
    arguments[more.0] = json!(more.1);
    Reply::Calls { text: None, calls: vec![(name.to_owned(), arguments)] }
}

/// Turns that leave four memory changes on one base, two corrections, a failed run, a held run, and two deliveries of which
/// nobody knows.
async fn lived_in() -> Watched {
    let world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    let memory = |text| call("request_memory_change", text);
    world.model.script(vec![
        memory("- one"),
        memory("- two"),
        memory("- three"),
        memory("- four"),
        call("submit_correction", "Five."),
        Reply::Text("It is Monday.".to_owned()),
        call("submit_correction", "It is Tuesday."),
        Reply::status(400),
        Reply::Text("nobody knows".to_owned()),
        Reply::Text("nobody knows either".to_owned()),
    ]);
    let mut watched = Watched { world, seen: BTreeMap::new(), position: 0 };
    let serve = watched.world.serve();
    for number in 1..=7 {
        watched.world.turn("Go on.", number).await;
    }
    // A correction of the person's own, which alone may be released.
    watched.world.say("/correct It is Wednesday.");
    watched.home().wait_for_deliveries("notice:corrected", 1);
    watched.world.say("This one fails.");
    watched.home().wait_for_runs("failed", 1);
    watched.home().wait_for_deliveries("notice:run-failed", 1);
    watched.world.bot.fail_times("sendMessage", 2, Failure::DropAfter);
    watched.world.say("And?");
    watched.world.say("And?");
    thought_testkit::wait_until("two uncertain deliveries", || {
        let status = watched.home().object(&["status"]);
        status["deliveries"]["uncertain"].as_array().is_some_and(|ids| ids.len() == 2)
    });
    let (identity, elsewhere) = identity(watched.home());
    fs::rename(&identity, &elsewhere).unwrap();
    watched.world.say("This one waits.");
    watched.home().wait_for_runs("held", 1);
    serve.stop();
    fs::rename(&elsewhere, &identity).unwrap();
    watched.book("serve");
    watched
}

/// A person's words, each way, and what follows.
fn words(watched: &mut Watched) {
    let rows = watched.home().lines(&["proposal-list"]);
    let of = |kind: &str| -> Vec<String> { rows.iter().filter(|row| row["kind"] == kind).map(id).collect() };
    let (changes, corrections) = (of("memory-change"), of("self-correction"));
    // The document that waits for a scan is seen by whoever comes first.
    watched.run(&[0], &["scan"]);
    watched.take_a_document_away();
    watched.decide(&[0], &changes[0], &[]);
    watched.decide(&[6], &changes[1], &[]);
    let own = watched.home().folder.path().join("own.txt");
    fs::write(&own, "Six.").unwrap();
    let own = argument(&own).to_owned();
    watched.decide(&[0], &corrections[0], &["edit", "--replacement-file", &own]);

    watched.put_a_document();
    let again = watched.run(&[0], &["proposal-repropose", &changes[2]]);
    fs::remove_file(watched.note()).unwrap();
    watched.run(&[0], &["proposal-repropose", &changes[2]]);
    watched.put_a_document();
    watched.run(&[0], &["proposal-revert", &changes[0]]);
    fs::remove_file(watched.note()).unwrap();
    watched.run(&[0], &["proposal-revert", &changes[0]]);

    let again = again["proposal"].as_str().unwrap().to_owned();
    watched.decide_and_die(&again);
    watched.decide_and_die(&changes[3]);
    watched.decide_and_die(&corrections[1]);
    watched.take_a_document_away();
    watched.run(&[6], &["proposal-project"]);

    let judgments = watched.home().lines(&["judgment-list"]);
    assert_eq!(judgments.len(), 3, "{judgments:?}");
    for judgment in &judgments {
        watched.run(&[0, 3], &["judgment-release", &id(judgment), "--acknowledge-external"]);
    }
}

/// The document that a run cannot do without, and a place beside the home.
fn identity(home: &Home) -> (PathBuf, PathBuf) {
    (home.below("context/identity.md"), home.folder.path().join("identity.md"))
}

/// A private message.
fn send(watched: &mut Watched, message: &str) {
    let letter = watched.home().folder.path().join("letter.txt");
    fs::write(&letter, "Anything new?").unwrap();
    fs::set_permissions(&letter, Permissions::from_mode(0o600)).unwrap();
    let letter = argument(&letter).to_owned();
    let route =
        ["--from", "co", "--to", "stream-agent-conversation", "--thread", "t", "--message-id", message];
    let line: Vec<&str> = ["agent-send"].into_iter().chain(route).chain(["--file", &letter]).collect();
    watched.run(&[0], &line);
}

/// The consumer of private messages, at work until this has come.
fn consume(watched: &mut Watched, until: impl FnOnce(&Home)) {
    let home = watched.home();
    let line = ["--home", argument(&home.path), "consume", "--agent", "stream-agent-conversation"];
    let mut consume = home.binary.spawn(&line, Stdio::null(), Stdio::null());
    until(home);
    consume.signal(Signal::TERM);
    consume.wait_for_end("the consumer");
    watched.book("consume");
}

/// Runs and deliveries that a person settles, private messages, and a changed declaration.
fn chores(watched: &mut Watched) {
    let runs = watched.home().runs();
    let of = |state: &str| id(runs.iter().find(|run| run["state"] == state).unwrap());
    watched.run(&[0], &["run-abandon", &of("held")]);
    watched.run(&[0], &["run-retry", &of("failed")]);
    let status = watched.home().object(&["status"]);
    let uncertain: Vec<String> = status["deliveries"]["uncertain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    watched.run(&[0], &["delivery-retry", &uncertain[0]]);
    watched.run(&[0], &["delivery-confirm", &uncertain[1]]);

    watched.run(&[0], &["telegram-menu-register"]);
    // The home polls: a webhook is refused, and there is none to delete.
    watched.run(&[3], &["telegram-webhook-set"]);
    watched.run(&[0], &["telegram-webhook-delete"]);

    watched.world.model.script(vec![Reply::Text("Nothing.".to_owned())]);
    send(watched, "m-1");
    consume(watched, |home| drop(home.wait_for_events("derived.agent.message@1", 1)));
    // A run that waits when its declaration is changed ends there.
    let (identity, elsewhere) = identity(watched.home());
    fs::rename(&identity, &elsewhere).unwrap();
    send(watched, "m-2");
    consume(watched, |home| drop(home.wait_for_runs("held", 1)));
    fs::rename(&elsewhere, &identity).unwrap();

    let declaration = watched.home().below("agents/stream-agent-conversation.yaml");
    let text = fs::read_to_string(&declaration).unwrap();
    fs::write(&declaration, text.replace("\nversion: 1\n", "\nversion: 2\n")).unwrap();
    let declaration = argument(&declaration).to_owned();
    watched.run(&[0], &["declaration-check", &declaration]);
    watched.run(&[0], &["declaration-activate", &declaration]);
}

/// What only reads, prints, or writes files of its own. Answers the backup that was made.
fn onlookers(watched: &mut Watched) -> String {
    watched.take_a_document_away();
    watched.run(&[0], &["scan"]);
    let exports = watched.home().folder.path().canonicalize().unwrap().join("exports");
    fs::create_dir(&exports).unwrap();
    fs::set_permissions(&exports, Permissions::from_mode(0o700)).unwrap();
    let path = |name: &str| argument(&exports.join(name)).to_owned();
    let event = id(&watched.home().events("agent.memory-change.materialized@1")[0]);
    let run = id(watched.home().runs().iter().find(|run| run["state"] == "completed").unwrap());
    let proposal = id(&watched.home().lines(&["proposal-list"])[0]);
    for arguments in [
        &["init"][..],
        &["doctor"],
        &["doctor", "--who"],
        &["doctor", "--clear-lock"],
        &["status"],
        &["event-list"],
        &["event-show", &event],
        &["lineage", &event],
        &["run-list"],
        &["run-show", &run],
        &["context-show", &run],
        &["proposal-list"],
        &["proposal-show", &proposal],
        &["judgment-list"],
        &["declaration-list"],
        &["verify"],
        &[
            "private-training-export",
            "--output",
            &path("private"),
            "--acknowledge-sensitive-private-training",
        ],
        &["training-export", "--output", &path("external")],
        &["backup", "--output", &path("backup")],
        &["completions", "bash"],
        &["man", "--output", &path("man")],
        &["appends"],
    ] {
        let done = watched.home().json(arguments);
        // The provider of a test is not what doctor likes best.
        assert!(done.code == Some(0) || arguments[0] == "doctor", "{arguments:?}: {}", done.stderr);
        watched.book(arguments[0]);
    }
    path("backup")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_appears_is_what_the_table_says() {
    let mut watched = lived_in().await;
    words(&mut watched);
    chores(&mut watched);
    let backup = onlookers(&mut watched);
    let home = watched.home();
    let table = table(home);
    for (command, types) in &table {
        if APART.contains(&command.as_str()) {
            continue;
        }
        let seen = watched.seen.get(command).unwrap_or_else(|| panic!("{command} was not run"));
        let beyond: Vec<_> = seen.difference(types).collect();
        assert!(beyond.is_empty(), "{command} appended {beyond:?}");
        if IN_PART.contains(&command.as_str()) {
            assert!(!seen.is_empty(), "{command} appended nothing");
        } else {
            assert_eq!(seen, types, "{command} did not append all of its line");
        }
    }
    let unknown: Vec<_> = watched.seen.keys().filter(|command| !table.contains_key(*command)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");

    // A walk at a terminal says the words of the other commands, and none of its own.
    let by_script = ["proposal-decision", "proposal-project", "proposal-repropose"].map(|name| &table[name]);
    let by_script: Types = by_script.into_iter().flatten().cloned().collect();
    assert_eq!(table["review"], by_script);

    let restored = home.folder.path().canonicalize().unwrap().join("restored");
    let place = ["--home", argument(&restored), "--json"];
    let with = |more: &[&str]| home.binary.run(&[&place[..], more].concat()).exit(0).lines();
    with(&["restore", "--input", &backup]);
    let (then, now) = (home.lines(&["event-list"]), with(&["event-list"]));
    assert_eq!(then, now, "a restored home holds the events of its backup, and no other");
    assert!(table["restore"].is_empty());
}

#[test]
fn the_demonstration_appends_its_line() {
    let temporary = tempfile::tempdir().unwrap();
    let mut binary = Binary::new(THOUGHT);
    binary.env.insert("TMPDIR".to_owned(), argument(temporary.path()).to_owned());
    let shown = binary.run(&["demo", "--json"]).exit(0).lines();
    let path = shown.last().unwrap()["home"].as_str().unwrap();
    let events = binary.run(&["--home", path, "--json", "event-list"]).exit(0).lines();
    let home = Home { path: path.into(), binary, folder: temporary };
    assert_eq!(types_of(&events), table(&home)["demo"]);
}
