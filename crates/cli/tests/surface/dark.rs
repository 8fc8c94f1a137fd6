//! Content stays where it belongs: words of every kind are planted, everything is made to happen, and then everything
//! that may not hold them is searched.

use std::fs;
use std::path::Path;
use std::time::Duration;

use thought_fakes::Reply;
use thought_testkit::serve::Serve;
use thought_testkit::world::{Speaks, TOKEN, World};
use thought_testkit::{canary, wait_until};

use crate::THOUGHT;

const KEY: &str = "sk-canary-key-0123456789abcdefghijklmn";
const MESSAGE: &str = "canary-message-of-the-person";
const ANSWER: &str = "canary-answer-of-the-model";
const PROMPT: &str = "canary-prompt-of-the-declaration";
const IDENTITY: &str = "canary-identity-document";
const MEMORY: &str = "canary-memory-document";
const THINKING: &str = "canary-thinking-of-the-model";
const REFUSED: &str = "canary-error-of-the-provider";
const ARGUMENT: &str = "canary-argument-of-a-call";
const ALL: [&str; 10] = [KEY, TOKEN, MESSAGE, ANSWER, PROMPT, IDENTITY, MEMORY, THINKING, REFUSED, ARGUMENT];

fn append(path: &Path, line: &str) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, format!("{text}\n{line}\n")).unwrap();
}

/// Replies that bring every planted word through every kind of ending.
fn endings() -> Vec<Reply> {
    let message = || REFUSED.to_owned();
    let status = |status, code: Option<&str>| Reply::Status {
        status,
        vendor_error_type: None,
        code: code.map(str::to_owned),
        message: message(),
        retry_after: None,
    };
    vec![
        Reply::Text(ANSWER.to_owned()),
        Reply::Thinking { thinking: THINKING.to_owned(), text: ANSWER.to_owned() },
        status(400, None),
        Reply::call("request_memory_change", serde_json::json!({"proposed_text": ARGUMENT})),
        Reply::Refusal { text: ANSWER.to_owned() },
        Reply::RawBody { status: 200, headers: vec![], body: format!("<html>{ANSWER}</html>").into_bytes() },
        Reply::Truncated,
        Reply::SlowText(Duration::from_secs(1), ANSWER.to_owned()),
    ]
}

/// Every value of a column that may hold no content, as text.
fn plain_columns(database: &Path) -> String {
    let store = rusqlite::Connection::open(database).unwrap();
    let column = |name: &str| -> bool {
        !(matches!(name, "payload" | "content" | "bytes" | "body") || name.ends_with("_content"))
    };
    let names = |sql: &str| -> Vec<String> {
        let mut statement = store.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut text = String::new();
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table'") {
        for name in names(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            if column(&name) {
                let values = names(&format!("SELECT quote(\"{name}\") FROM \"{table}\""));
                text.push_str(&format!("{table}.{name}: {}\n", values.join(" ")));
            }
        }
    }
    assert!(text.contains("events.id: 'evt_"), "the columns were read");
    text
}

async fn planted(format: &str) {
    let world = World::speaking(THOUGHT, Speaks::Anthropic, Some(KEY)).await;
    append(&world.home.below("context/identity.md"), IDENTITY);
    append(&world.home.below("context/memory.md"), MEMORY);
    append(&world.home.below("prompts/stream-telegram-conversation.md"), PROMPT);
    let endings = endings();
    let count = endings.len();
    world.model.script(endings);
    world.model.set_default_reply(|_| Reply::Text(ANSWER.to_owned()));
    let serve = Serve::start_with(&world.home, &["--log-level", "trace", "--log-format", format]);
    for number in 1..=count {
        world.say(&format!("{MESSAGE} {number}"));
        let mut workers = Vec::new();
        wait_until("the end of the run", || {
            for pid in serve.descendants() {
                workers.extend(canary::in_process(pid, &ALL));
            }
            world.home.runs().get(number - 1).is_some_and(|run| run["state"] != "running")
        });
        assert!(workers.is_empty(), "{workers:?}");
    }
    let arguments = fs::read(format!("/proc/{}/cmdline", serve.pid())).unwrap();
    assert!(canary::in_bytes("arguments of serve", &arguments, &ALL).is_empty());
    let request = String::from_utf8(world.model.requests()[0].body.clone()).unwrap();
    for word in [MESSAGE, PROMPT, IDENTITY, MEMORY] {
        assert_eq!(request.matches(word).count(), 1, "{word} reaches the model");
    }
    let log = serve.stop();
    assert!(log.lines().count() > 10, "the log says something: {log}");
    if format == "json" {
        for line in log.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "not JSON: {line}");
        }
    }
    assert_eq!(canary::in_bytes("the log", log.as_bytes(), &ALL), [""; 0], "{log}");
    assert_dark(&world);
}

/// What is printed without the acknowledgment, and what lies on the disk.
fn assert_dark(world: &World) {
    let home = &world.home;
    let run = home.runs()[0]["id"].as_str().unwrap().to_owned();
    let event = home.lines(&["event-list"])[5]["id"].as_str().unwrap().to_owned();
    let commands = [
        vec!["status"],
        vec!["event-list"],
        vec!["event-show", &event],
        vec!["lineage", &event],
        vec!["run-list"],
        vec!["run-show", &run],
        vec!["context-show", &run],
        vec!["declaration-list"],
        vec!["doctor"],
        vec!["scan"],
    ];
    for command in commands {
        for done in [home.run(&command), home.json(&command)] {
            let told = format!("{}{}", done.stdout, done.stderr);
            assert_eq!(canary::in_bytes(&command.join(" "), told.as_bytes(), &ALL), [""; 0]);
        }
    }
    let columns = plain_columns(&home.below("thought.db"));
    assert_eq!(canary::in_bytes("a plain column", columns.as_bytes(), &ALL), [""; 0]);
    assert_eq!(canary::in_folder(&home.path, &[KEY, TOKEN, THINKING, REFUSED, ARGUMENT]), [""; 0]);
    for file in fs::read_dir(home.folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(canary::in_bytes("a file name", name.as_bytes(), &ALL).is_empty());
    }
    for event in home.lines(&["event-list", "--acknowledge-sensitive-private"]) {
        let name = event["type"].as_str().unwrap().to_owned();
        let holds_none = ["run.", "delivery.", "notice.", "incident", "declaration.", "source.file."];
        if holds_none.iter().any(|start| name.starts_with(&format!("stream.thought.{start}"))) {
            assert_eq!(canary::in_bytes(&name, event.to_string().as_bytes(), &ALL), [""; 0]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_words_reach_no_text_log_and_nothing_else() {
    planted("text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_words_reach_no_json_log_and_nothing_else() {
    planted("json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_files_are_not_quoted() {
    let world = World::start(THOUGHT).await;
    let agent = world.home.below("agents/stream-telegram-conversation.yaml");
    append(&agent, &format!("{PROMPT}: \"{MEMORY}\""));
    let refused = world.home.json(&["declaration-check", agent.to_str().unwrap()]).exit(3);
    assert!(!refused.stderr.contains(MEMORY), "a value is never repeated: {}", refused.stderr);
    world.home.set("log", "level", Some(&format!("\"{KEY}\"")));
    let refused = world.home.json(&["status"]).exit(3);
    assert!(!refused.stderr.contains(KEY), "{}", refused.stderr);
}
