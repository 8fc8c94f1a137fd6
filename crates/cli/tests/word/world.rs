//! What the tests share: a world with one operator, suggestions that a model makes, and what a request shows.

use serde_json::{Value, json};
use thought_fakes::{ChatSpec, MessageSpec, RecordedRequest, Reply, UserSpec};
use thought_testkit::home::Home;
use thought_testkit::run::{Done, argument};
use thought_testkit::world::{CHAT, World};

use crate::THOUGHT;

pub(crate) const CORRECTED: &str = "Corrected.";
pub(crate) const NOT_MATCHED: &str =
    "I couldn't match that to one of my replies. Reply to the message you want to correct.";
pub(crate) const UPDATED: &str = "Memory updated.";

/// A world whose model answers so, one turn each.
pub(crate) async fn world(replies: Vec<Reply>) -> World {
    let world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    world.model.script(replies);
    world
}

pub(crate) fn says(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

pub(crate) fn remembers(text: &str) -> Reply {
    let arguments = json!({
        "operation": "append", "proposed_text": text, "reason": "They asked for it.", "evidence_event_ids": [],
    });
    Reply::Calls { text: None, calls: vec![("request_memory_change".to_owned(), arguments)] }
}

pub(crate) fn corrects(replacement: &str) -> Reply {
    let arguments = json!({
        "target_output": "latest", "replacement": replacement, "reason": "I was wrong.", "evidence_event_ids": [],
    });
    Reply::Calls { text: None, calls: vec![("submit_correction".to_owned(), arguments)] }
}

/// The person answers one message of a chat.
pub(crate) fn answer(world: &World, chat: i64, message: i64, text: &str) {
    let spec = MessageSpec::text(ChatSpec::private(chat), UserSpec::person(chat), text);
    world.bot.push(&spec.replying_to(message));
}

/// What the bot sent, in order.
pub(crate) fn texts(world: &World) -> Vec<String> {
    world.bot.sent().into_iter().map(|sent| sent.text).collect()
}

/// Role and text of every message of a request; a message that is no text counts for nothing.
pub(crate) fn shown(request: &RecordedRequest) -> Vec<(String, String)> {
    let messages = request.json["messages"].as_array().unwrap();
    let told = messages.iter().map(|message| (text(&message["role"]), text(&message["content"])));
    told.filter(|(_, said)| !said.is_empty()).collect()
}

/// What the model was shown as its own words.
pub(crate) fn own_words(request: &RecordedRequest) -> Vec<String> {
    shown(request).into_iter().filter(|(role, _)| role == "assistant").map(|(_, said)| said).collect()
}

/// The system text of a request.
pub(crate) fn system(request: &RecordedRequest) -> String {
    text(&request.json["system"])
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// The one proposal that a person may decide.
#[track_caller]
pub(crate) fn undecided(home: &Home) -> String {
    let rows = home.lines(&["proposal-list", "--state", "undecided"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0]["id"].as_str().unwrap().to_owned()
}

/// Decides from the command line.
pub(crate) fn decide(home: &Home, proposal: &str, disposition: &str) -> Done {
    home.json(&["proposal-decision", "--proposal", proposal, "--disposition", disposition])
}

/// Decides in a process that dies before anything follows from it.
pub(crate) fn decide_and_die(home: &Home, proposal: &str) {
    let mut binary = home.binary.clone();
    binary.env.insert("THOUGHT_TEST_CRASH_POINT".to_owned(), "decision.after".to_owned());
    let done = binary.run(&[
        "--home",
        argument(&home.path),
        "proposal-decision",
        "--proposal",
        proposal,
        "--disposition",
        "accept",
    ]);
    assert_eq!(done.code, None, "it dies by a signal: {}", done.stderr);
}

/// The private chat that every world admits.
pub(crate) const OWN: i64 = CHAT;
