//! What the tests share: letters, and the command that sends them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thought_testkit::home::Home;
use thought_testkit::run::{Done, argument};
use thought_testkit::world::World;

use crate::STREAM;

/// Long enough for any run of a test.
pub(crate) const WAIT: &str = "40";

/// A message of Co.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Letter<'a> {
    pub(crate) thread: &'a str,
    pub(crate) id: &'a str,
    pub(crate) text: &'a str,
}

pub(crate) const fn letter<'a>(thread: &'a str, id: &'a str, text: &'a str) -> Letter<'a> {
    Letter { thread, id, text }
}

/// A file of the caller's own with a text.
pub(crate) fn file(folder: &Path, name: &str, text: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The arguments of a letter, with the file written.
pub(crate) fn arguments(folder: &Path, letter: Letter<'_>) -> Vec<String> {
    let name = format!("letter-{}-{}.txt", letter.thread, letter.id);
    let file = file(folder, &name, letter.text.as_bytes());
    let own = ["agent-send", "--from", "co", "--to", STREAM, "--thread", letter.thread];
    let own = own.into_iter().chain(["--message-id", letter.id, "--file", argument(&file)]);
    own.map(str::to_owned).collect()
}

/// Sends a letter as the owner.
pub(crate) fn send(home: &Home, letter: Letter<'_>, more: &[&str]) -> Done {
    let own = arguments(home.folder.path(), letter);
    let all: Vec<&str> = own.iter().map(String::as_str).chain(more.iter().copied()).collect();
    home.json(&all)
}

/// Sends a letter, waits for its answer, and reads it.
#[track_caller]
pub(crate) fn ask(home: &Home, letter: Letter<'_>) -> Value {
    let more = ["--wait-seconds", WAIT, "--show-response", "--acknowledge-sensitive-private"];
    send(home, letter, &more).exit(0).object()
}

/// A world in which `serve` ran once, so that the endpoint is installed, and runs no more.
pub(crate) async fn installed() -> World {
    let world = World::start(crate::THOUGHT).await;
    world.serve().stop();
    world
}

/// Roles and words of a request's messages.
pub(crate) fn said(request: &thought_fakes::RecordedRequest) -> Vec<(String, String)> {
    let messages = request.json["messages"].as_array().unwrap();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect(),
    };
    messages.iter().map(|message| (message["role"].as_str().unwrap().to_owned(), text(message))).collect()
}

pub(crate) fn pairs(said: &[(String, String)]) -> Vec<(&str, &str)> {
    said.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect()
}
