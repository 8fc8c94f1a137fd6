//! What happens in the home: turns of every ending, strangers, photos, suggestions, private mail, garbage at every door, and
//! servers that say the words back in their errors.

use std::fs::{self, Permissions};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::json;
use thought_fakes::{ChatSpec, Failure, MessageSpec, PhotoSpec, Reply, UserSpec};
use thought_testkit::home::Home;
use thought_testkit::run::argument;
use thought_testkit::wait_until;
use thought_testkit::world::{CHAT, World};

use crate::watch::{VARIABLE, Watched};
use crate::words::{
    ANSWER, CAPTION, COMMAND, FOCUS, GARBAGE, IDENTITY, MAIL, MEMORY, MESSAGE, PERSON, PROMPT, PROPOSED,
    QUOTED, REASON, SECRET, STRANGER, TELEGRAM, THINKING, VENDOR,
};

/// A suggestion.
pub(crate) fn call(name: &str, text: &str) -> Reply {
    let mut arguments = json!({"reason": REASON, "evidence_event_ids": []});
    let (place, more) = if name == "submit_correction" {
        ("replacement", ("target_output", "latest"))
    } else {
        ("proposed_text", ("operation", "append"))
    };
    arguments[place] = json!(text);
    arguments[more.0] = json!(more.1);
    Reply::Calls { text: Some(ANSWER.to_owned()), calls: vec![(name.to_owned(), arguments)] }
}

/// Endings without an answer.
fn failures() -> Vec<Reply> {
    vec![
        Reply::Status {
            status: 400,
            vendor_error_type: Some(VENDOR.to_owned()),
            code: Some(VENDOR.to_owned()),
            message: VENDOR.to_owned(),
            retry_after: None,
        },
        Reply::call("request_memory_change", json!({"proposed_text": GARBAGE, GARBAGE: GARBAGE})),
        Reply::RawBody {
            status: 200,
            headers: vec![("x-note".to_owned(), VENDOR.to_owned())],
            body: format!("<html>{VENDOR}</html>").into_bytes(),
        },
    ]
}

/// The person of the chat, by a name that is nobody's business.
fn person() -> UserSpec {
    UserSpec { first_name: PERSON.to_owned(), username: Some(PERSON.to_owned()), ..UserSpec::person(CHAT) }
}

fn say(world: &World, text: &str) {
    let quote = json!({"text": QUOTED, "position": 0});
    world.bot.push(&MessageSpec::text(ChatSpec::private(CHAT), person(), text).with("quote", quote));
}

/// Waits until so many runs are over or held.
fn settled(home: &Home, count: usize) {
    let is_over =
        |run: &serde_json::Value| !["admitted", "running"].contains(&run["state"].as_str().unwrap());
    wait_until("the runs to end", || {
        let runs = home.runs();
        runs.len() >= count && runs.iter().all(is_over)
    });
}

/// Waits until so many deliveries stand so.
fn stuck(home: &Home, state: &str, count: usize) {
    wait_until("deliveries that are stuck", || {
        let status = home.object(&["status"]);
        status["deliveries"][state].as_array().is_some_and(|ids| ids.len() == count)
    });
}

/// Refusals of Telegram that repeat words.
fn refused(code: u16) -> Failure {
    Failure::Refused { code, description: format!("Bad Request: {TELEGRAM} {ANSWER}") }
}

fn small_png() -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0, 0, 0, 4, 0, 0, 0, 3], b"photo"].concat()
}

/// The chat, by polling.
pub(crate) fn chat(watched: &mut Watched) {
    let memory = |number: usize| call("request_memory_change", &format!("- {PROPOSED} {number}"));
    let mut replies = vec![Reply::Thinking { thinking: THINKING.to_owned(), text: ANSWER.to_owned() }];
    replies.extend((1..=4).map(memory));
    replies.push(call("submit_correction", PROPOSED));
    replies.push(Reply::Text(ANSWER.to_owned()));
    replies.extend(failures());
    let turns = replies.len();
    watched.world.model.script(replies);
    watched.world.model.set_default_reply(|_| Reply::Text(ANSWER.to_owned()));
    let world = &watched.world;
    world.bot.fail("getMe", refused(500));
    world.bot.fail("getUpdates", refused(500));
    let serve = watched.serve("text");
    let world = &watched.world;
    let stranger = ChatSpec { title: PERSON.to_owned(), ..ChatSpec::private(666) };
    world.bot.push_message(
        stranger,
        UserSpec { first_name: PERSON.to_owned(), ..UserSpec::person(666) },
        STRANGER,
    );
    for turn in 1..=turns {
        say(world, &format!("{MESSAGE} {turn}"));
        settled(&world.home, turn);
    }
    let request = String::from_utf8(world.model.requests()[0].body.clone()).unwrap();
    for word in [MESSAGE, PROMPT, IDENTITY, MEMORY] {
        assert_eq!(request.matches(word).count(), 1, "{word} reaches the model");
    }
    say(world, &format!("/correct {COMMAND}"));
    world.home.wait_for_deliveries("notice:corrected", 1);
    say(world, &format!("/focus {FOCUS}"));
    let photo = PhotoSpec::single(small_png());
    world.bot.push(&MessageSpec::photo(ChatSpec::private(CHAT), person(), photo, Some(CAPTION)));
    let film = MessageSpec::bare(ChatSpec::private(CHAT), Some(person()));
    world.bot.push(&film.with("video", json!({"file_name": GARBAGE})).with("caption", json!(GARBAGE)));
    settled(&world.home, turns + 2);
    world.home.wait_for_deliveries("notice:unsupported-kind", 1);
    world.home.wait_for_deliveries("notice:run-failed", 3);
    wait_until("nothing to be on its way", || {
        world.home.object(&["status"])["deliveries"]["waiting"].as_array().is_some_and(Vec::is_empty)
    });
    // The text is refused; then the person blocked the bot.
    world.bot.fail("sendMessage", refused(400));
    say(world, MESSAGE);
    stuck(&world.home, "undelivered", 1);
    world.bot.fail("sendMessage", refused(403));
    say(world, MESSAGE);
    stuck(&world.home, "undelivered", 2);
    for count in 1..=2 {
        world.bot.fail("sendMessage", Failure::DropAfter);
        say(world, MESSAGE);
        stuck(&world.home, "uncertain", count);
    }
    let log = serve.stop();
    watched.hear_log(&log);
}

/// The document that a run cannot do without, and a place beside the home.
pub(crate) fn identity(home: &Home) -> (PathBuf, PathBuf) {
    (home.below("context/identity.md"), home.folder.path().join("identity.md"))
}

/// A file of the owner alone.
pub(crate) fn file(home: &Home, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = home.folder.path().canonicalize().unwrap().join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    argument(&path).to_owned()
}

/// The status line of a post to the webhook.
fn post(address: SocketAddr, secret: &str, body: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address) else { return String::new() };
    let length = body.len();
    let head = format!(
        "POST /telegram HTTP/1.1\r\nhost: {GARBAGE}\r\nconnection: close\r\n\
         X-Telegram-Bot-Api-Secret-Token: {secret}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    drop(std::io::Read::read_to_string(&mut stream, &mut answer));
    answer.lines().next().unwrap_or_default().to_owned()
}

/// The other doors: the webhook, and the socket of another agent, both tried with garbage first.
pub(crate) fn doors(watched: &mut Watched) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = &watched.world.home;
    let socket = home.folder.path().canonicalize().unwrap().join("co.sock");
    let before = home.configuration();
    home.set("telegram", "ingress", Some("\"webhook\""));
    let text = home.configuration();
    home.set_configuration(&format!(
        "{text}\n[telegram.webhook]\nlisten = \"{address}\"\npath = \"/telegram\"\nsecret_env = \"{VARIABLE}\"\n\
         public_url = \"http://{address}/telegram\"\n\n[agents.co]\nuid = 1\nsocket = \"{}\"\n",
        argument(&socket)
    ));
    watched.world.bot.fail("setWebhook", refused(400));
    watched.hear(&[3], &["telegram-webhook-set"]);
    watched.hear(&[0], &["telegram-webhook-set"]);
    let serve = watched.serve("json");
    let said = json!({"update_id": 900, "message": {"message_id": 900, "date": 1, "text": MESSAGE,
        "chat": {"id": CHAT, "type": "private", "first_name": PERSON},
        "from": {"id": CHAT, "is_bot": false, "first_name": PERSON}}});
    let runs = watched.home().runs().len();
    wait_until("a post that is taken", || post(address, SECRET, &said.to_string()).contains(" 200"));
    for (secret, body) in [(GARBAGE, GARBAGE), (SECRET, GARBAGE), (SECRET, "{\"update_id\": \"x\"}")] {
        assert!(!post(address, secret, body).contains(" 200"));
    }
    let odd = json!({"update_id": 901, "message": {"message_id": GARBAGE, "text": GARBAGE,
        "chat": {"id": CHAT, "type": "private"}, "from": {"id": CHAT, "is_bot": false, "first_name": PERSON}}});
    post(address, SECRET, &odd.to_string());
    drop(
        TcpStream::connect(address).unwrap().write_all(format!("{GARBAGE}\r\n{GARBAGE}\r\n\r\n").as_bytes()),
    );
    // The socket's own account is another one: whoever connects here is refused, whatever they say.
    let mut stranger = UnixStream::connect(&socket).unwrap();
    drop(stranger.write_all(GARBAGE.as_bytes()));
    drop(stranger);
    settled(watched.home(), runs + 1);
    let log = serve.stop();
    for line in log.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "not JSON: {line}");
    }
    watched.hear_log(&log);
    watched.hear(&[0], &["telegram-webhook-delete"]);
    watched.home().set_configuration(&before);
}

/// The words of a private message.
pub(crate) fn letter(home: &Home) -> String {
    file(home, "letter.txt", MAIL)
}
