//! A home under watch: every command that is run is heard, and what it says where it may not is kept.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use thought_testkit::canary;
use thought_testkit::home::Home;
use thought_testkit::run::Done;
use thought_testkit::serve::Serve;
use thought_testkit::world::{Speaks, World};

use crate::THOUGHT;
use crate::words::{self, IDENTITY, KEY, MEMORY, PROMPT, SECRET};

/// The variable of the webhook's secret.
pub(crate) const VARIABLE: &str = "THOUGHT_TELEGRAM_WEBHOOK_SECRET";
/// How a command is told that its reader wants to see content.
const ACKNOWLEDGMENT: &str = "--acknowledge-sensitive-private";

/// See the module.
pub(crate) struct Watched {
    pub(crate) world: World,
    leaks: Vec<String>,
    heard: BTreeSet<String>,
    commands: usize,
}

/// The two forms of the log, and of what is printed.
const FORMS: [(&str, &[&str]); 4] =
    [("text", &[]), ("json", &["--json"]), ("text", &["--json"]), ("json", &[])];

impl Watched {
    /// A home with words in each of its files, and both servers beside it.
    pub(crate) async fn new() -> Self {
        let mut world = World::speaking(THOUGHT, Speaks::Anthropic, Some(KEY)).await;
        world.home.env(VARIABLE, SECRET);
        world.home.set("operator", "names", Some("[\"alex\"]"));
        append(&world.home.below("context/identity.md"), IDENTITY);
        append(&world.home.below("context/memory.md"), MEMORY);
        append(&world.home.below("prompts/stream-telegram-conversation.md"), PROMPT);
        Self { world, leaks: Vec::new(), heard: BTreeSet::new(), commands: 0 }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.world.home
    }

    /// What was found so far.
    pub(crate) fn leaks(&self) -> &[String] {
        &self.leaks
    }

    /// The commands that were run.
    pub(crate) fn heard(&self) -> &BTreeSet<String> {
        &self.heard
    }

    /// Keeps what a search found.
    pub(crate) fn keep(&mut self, found: Vec<String>) {
        self.leaks.extend(found);
    }

    /// A command that was run in another way.
    pub(crate) fn note(&mut self, command: &str) {
        self.heard.insert(command.to_owned());
    }

    /// A log that holds no word at all.
    pub(crate) fn hear_log(&mut self, log: &str) {
        assert!(log.lines().count() > 4, "the log says something: {log}");
        self.leaks.extend(canary::in_bytes("the log of serve", log.as_bytes(), &words::all()));
    }

    /// `serve`, at its most talkative.
    pub(crate) fn serve(&mut self, format: &str) -> Serve {
        self.heard.insert("serve".to_owned());
        Serve::start_with(&self.world.home, &["--log-level", "trace", "--log-format", format])
    }

    /// Runs a command once, in one form after the other.
    #[track_caller]
    pub(crate) fn hear(&mut self, codes: &[i32], arguments: &[&str]) -> Done {
        let form = FORMS[self.commands % FORMS.len()];
        self.commands += 1;
        self.run(codes, arguments, form)
    }

    /// Runs a command that changes nothing in every form.
    #[track_caller]
    pub(crate) fn read(&mut self, codes: &[i32], arguments: &[&str]) {
        for form in FORMS {
            self.run(codes, arguments, form);
        }
    }

    #[track_caller]
    fn run(&mut self, codes: &[i32], arguments: &[&str], (log, form): (&str, &[&str])) -> Done {
        let talkative = ["--log-level", "trace", "--log-format", log];
        let done = self.world.home.run(&[&talkative[..], arguments, form].concat());
        let code = done.code.unwrap_or(-1);
        assert!(codes.contains(&code), "{arguments:?} ended with {code}: {}{}", done.stdout, done.stderr);
        let command = arguments[0];
        self.heard.insert(command.to_owned());
        let of = |stream: &str| format!("the {stream} of {command}");
        // With the acknowledgment content is what was asked for; what opens something, or was never stored, is not.
        let on_stdout = if arguments.contains(&ACKNOWLEDGMENT) { words::not_stored() } else { words::all() };
        self.leaks.extend(canary::in_bytes(&of("stdout"), done.stdout.as_bytes(), &on_stdout));
        self.leaks.extend(canary::in_bytes(&of("stderr"), done.stderr.as_bytes(), &words::all()));
        done
    }
}

/// Adds a line to a file.
pub(crate) fn append(path: &Path, line: &str) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, format!("{text}\n{line}\n")).unwrap();
}
