//! Co under an account of its own: the socket, who is admitted there, and to what.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use thought_fakes::Reply;
use thought_testkit::run::{Binary, Done, argument};
use thought_testkit::serve::{Serve, spawn};
use thought_testkit::wait_until;
use thought_testkit::world::World;

use crate::letter::{Letter, WAIT, arguments, letter, send};
use crate::{STREAM, THOUGHT};

/// What a test does to a good errand.
type Change<'a> = &'a dyn Fn(&mut Value);

/// Accounts that nobody else has: users need no entry anywhere to be one.
const CO: u32 = 47_001;
const OTHER: u32 = 47_002;

/// A place outside the home that every account can enter and nobody but the owner can write.
struct Square {
    folder: TempDir,
    /// The binary under test, where every account can start it.
    thought: PathBuf,
}

impl Square {
    fn new() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        assert!(is_root, "this test acts under a second account, which only root can: run it as root");
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let thought = folder.path().join("thought");
        fs::copy(THOUGHT, &thought).unwrap();
        fs::set_permissions(&thought, Permissions::from_mode(0o755)).unwrap();
        Self { folder, thought }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("co.sock")
    }

    /// The same command, as an account, without a home, a group or a variable.
    fn send(&self, uid: u32, letter: Letter<'_>, more: &[&str]) -> Done {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let own = arguments(folder.path(), letter);
        let file = own.last().unwrap();
        chown(file, Some(uid), Some(uid)).unwrap();
        let socket = self.socket();
        let mut all: Vec<&str> = own.iter().map(String::as_str).collect();
        all.extend(["--json", "--socket", argument(&socket)]);
        all.extend(more);
        self.run_as(uid, &all)
    }

    fn run_as(&self, uid: u32, arguments: &[&str]) -> Done {
        let id = uid.to_string();
        let mut all = vec!["--reuid", &id, "--regid", &id, "--clear-groups", "--", argument(&self.thought)];
        all.extend(arguments);
        Binary::new("/usr/bin/setpriv").run(&all)
    }
}

fn configure(world: &World, uid: u32, socket: &Path) {
    let text = world.home.configuration();
    let added = format!("[agents.co]\nuid = {uid}\nsocket = \"{}\"\n", socket.display());
    world.home.set_configuration(&format!("{text}\n{added}"));
}

async fn square() -> (World, Square) {
    let (world, square) = (World::start(THOUGHT).await, Square::new());
    configure(&world, CO, &square.socket());
    (world, square)
}

#[tokio::test(flavor = "multi_thread")]
async fn co_sends_waits_and_reads_under_its_own_account_without_a_home() {
    let (world, square) = square().await;
    let serve = world.serve();
    let found = fs::symlink_metadata(square.socket()).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o666);
    let hello = letter("t-1", "m-1", "Hello?");
    let sent = square.send(CO, hello, &[]).exit(0).object();
    assert_eq!((&sent["status"], &sent["message"]), (&json!("accepted"), &json!("m-1")));
    let more = ["--wait-seconds", WAIT, "--show-response", "--acknowledge-sensitive-private"];
    let read = square.send(CO, hello, &more).exit(0).object();
    assert_eq!((&read["status"], &read["response"]), (&json!("completed"), &json!("Hello.")));
    assert_eq!(read["event"], sent["event"]);
    // Every refusal of the owner's command is one here, with the same exit code and reason.
    let again = square.send(CO, hello, &[]).exit(0).object();
    assert_eq!(again["status"], "already-accepted");
    let conflict = square.send(CO, letter("t-1", "m-1", "canary-other"), &[]).exit(4);
    assert_eq!(conflict.error()["code"], "conflict");
    assert!(!conflict.stderr.contains("canary"));
    let dark = square.send(CO, hello, &["--show-response"]).exit(3);
    assert_eq!(dark.error()["code"], "not-acknowledged");
    world.model.script(vec![Reply::status(400)]);
    let failed = square.send(CO, letter("t-1", "m-2", "Again?"), &["--wait-seconds", WAIT]).exit(9);
    assert_eq!(failed.object()["status"], "failed");
    world.model.set_default_reply(|_| Reply::Hang);
    let pending = square.send(CO, letter("t-1", "m-3", "Still?"), &["--wait-seconds", "1"]).exit(7);
    assert_eq!(pending.error()["code"], "wait-ran-out");
    assert_eq!(world.home.events("source.agent.message@1").len(), 3);
    serve.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_is_refused_before_it_has_said_anything() {
    let (world, square) = square().await;
    let serve = world.serve();
    // Root and the owner are not Co either.
    for uid in [OTHER, 0] {
        let refused = square.send(uid, letter("t-1", "m-1", "Hello"), &[]).exit(3);
        assert_eq!(refused.error()["code"], "wrong-account");
    }
    let owner = send(&world.home, letter("t-1", "m-1", "Hello"), &[]).exit(3);
    assert_eq!(owner.error()["code"], "agent-has-account");
    assert!(owner.told().contains("--socket"), "{}", owner.stderr);
    let log = serve.stop();
    assert!(world.home.events("source.agent.message@1").is_empty());
    assert!(log.matches("another account was refused").count() >= 2, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn co_can_enter_no_home_and_say_nothing_else_at_its_socket() {
    let (world, square) = square().await;
    let serve = world.serve();
    for command in [&["event-list"][..], &["status"], &["run-list"], &["proposal-list"]] {
        let mut all = vec!["--home", argument(&world.home.path), "--json"];
        all.extend(command);
        let refused = square.run_as(CO, &all);
        assert!(matches!(refused.code, Some(3 | 5)), "{command:?}: {}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
    serve.stop();
    // The wire itself, as an admitted account: here the account of this test.
    let text = world.home.configuration().replace(&format!("uid = {CO}"), "uid = 0");
    world.home.set_configuration(&text);
    let serve = world.serve();
    let errand = |change: Change<'_>| {
        let mut asked = json!({
            "from": "co", "to": STREAM, "thread": "t-1", "messageId": "m-1", "text": "canary-text",
            "showResponse": false,
        });
        change(&mut asked);
        asked
    };
    let talk = |asked: &Value| talk(&square.socket(), asked.to_string().as_bytes());
    let refusals: [(Change<'_>, &str); 5] = [
        (&|asked| asked["from"] = json!("mallory"), "route-refused"),
        (&|asked| asked["to"] = json!("stream-telegram-conversation"), "route-refused"),
        (&|asked| asked["text"] = json!(""), "text"),
        (&|asked| asked["thread"] = json!("a b"), "mail-id"),
        (&|asked| asked["waitSeconds"] = json!(86_401), "wait"),
    ];
    for (change, code) in refusals {
        let answer = talk(&errand(change)).unwrap();
        assert_eq!(
            (&answer["error"]["exit"], &answer["error"]["code"]),
            (&json!(3), &json!(code)),
            "{answer}"
        );
    }
    // Any other word ends the connection without an answer.
    let others = [
        json!({"eventList": {}}),
        json!({"error": {}}),
        json!([]),
        json!("canary"),
        errand(&|asked| asked["command"] = json!("event-list")),
        errand(&|asked| drop(asked.as_object_mut().unwrap().remove("text"))),
    ];
    for other in &others {
        assert_eq!(talk(other), None, "{other}");
    }
    assert_eq!(talk_raw(&square.socket(), &u32::MAX.to_be_bytes()), None);
    assert!(world.home.events("source.agent.message@1").is_empty());
    assert_eq!(talk(&errand(&|_| {})).unwrap()["receipt"]["status"], "accepted");
    let log = serve.stop();
    assert!(!log.contains("canary"), "{log}");
}

/// One conversation at a socket: the greeting is read, a frame said, the answer read.
fn talk(socket: &Path, body: &[u8]) -> Option<Value> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    talk_raw(socket, &[&length[..], body].concat())
}

fn talk_raw(socket: &Path, bytes: &[u8]) -> Option<Value> {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let greeting = read_frame(&mut stream).unwrap();
    assert_eq!(greeting, json!({"welcome": {"protocol": 1, "agent": "co"}}));
    stream.write_all(bytes).unwrap();
    read_frame(&mut stream)
}

/// A frame, or nothing when the other end closed.
fn read_frame(stream: &mut UnixStream) -> Option<Value> {
    let mut length = [0; 4];
    if let Err(error) = stream.read_exact(&mut length) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "no answer came");
        return None;
    }
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).unwrap();
    Some(serde_json::from_slice(&body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded_and_a_wait_ends_with_its_connection_or_with_serve() {
    let (world, square) = square().await;
    let text = world.home.configuration().replace(&format!("uid = {CO}"), "uid = 0");
    world.home.set_configuration(&text);
    // Without its key a provider is not asked: the run waits, and so does whoever waits for it.
    world.home.set("provider.main", "key_env", Some("\"ABSENT\""));
    let serve = world.serve();
    let connect = || {
        let mut stream = UnixStream::connect(square.socket()).unwrap();
        let greeting = read_frame(&mut stream).unwrap();
        (stream, greeting)
    };
    let mut open: Vec<UnixStream> = (0..64).map(|_| connect().0).collect();
    let (_, greeting) = connect();
    assert_eq!((&greeting["error"]["exit"], &greeting["error"]["code"]), (&json!(8), &json!("socket-busy")));
    // One goes; its place is free again.
    drop(open.pop());
    wait_until("a free place", || connect().1["welcome"].is_object());
    drop(open);

    wait_until("a free place", || connect().1["welcome"].is_object());
    let (mut waiting, _) = connect();
    let asked = json!({
        "from": "co", "to": STREAM, "thread": "t-1", "messageId": "m-1", "text": "Hello", "waitSeconds": 600,
        "showResponse": false,
    })
    .to_string();
    waiting.write_all(&u32::try_from(asked.len()).unwrap().to_be_bytes()).unwrap();
    waiting.write_all(asked.as_bytes()).unwrap();
    world.home.wait_for_runs("held", 1);
    let reader = std::thread::spawn(move || read_frame(&mut waiting).unwrap());
    serve.stop();
    let told = reader.join().unwrap();
    assert_eq!((&told["error"]["exit"], &told["error"]["code"]), (&json!(8), &json!("stopping")));
    assert!(!square.socket().exists(), "the socket goes with serve");
    let gone = square.send(CO, letter("t-1", "m-1", "Hello"), &[]).exit(8);
    assert_eq!(gone.error()["code"], "no-socket");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_messages_at_once_come_through_the_socket_once_each() {
    let (world, square) = square().await;
    // Nobody answers: what is tested is what is accepted.
    world.home.set("provider.main", "key_env", Some("\"ABSENT\""));
    let serve = world.serve();
    std::thread::scope(|scope| {
        for number in 0..20 {
            let square = &square;
            scope.spawn(move || {
                let id = format!("m-{number}");
                let sent = square.send(CO, letter("t-1", &id, "Hello"), &[]).exit(0).object();
                assert_eq!(sent["status"], "accepted");
            });
        }
    });
    let events = world.home.events("source.agent.message@1");
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=20).collect::<Vec<u64>>());
    serve.stop();
}

fn refuses(world: &World, exit: i32, code: &str) {
    let (mut child, log) = spawn(&world.home, &[]);
    let status = child.wait_for_end("the end of serve");
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(status.code(), Some(exit), "{log}");
    assert!(log.contains(code), "{code}: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_has_a_place_of_its_own_and_what_is_left_behind_is_taken_up() {
    let world = World::start(THOUGHT).await;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().canonicalize().unwrap();
    let socket = folder.join("co.sock");
    let uid = rustix::process::geteuid().as_raw();
    let before = world.home.configuration();
    let set = |path: &Path| {
        world.home.set_configuration(&before);
        configure(&world, uid, path);
    };
    set(&world.home.below("run/co.sock"));
    refuses(&world, 3, "socket-place");
    set(&folder.join("absent/co.sock"));
    refuses(&world, 3, "install -d");
    set(&folder.join(format!("{}.sock", "x".repeat(120))));
    refuses(&world, 3, "socket-place");
    for mode in [0o777, 0o775, 0o1777] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        set(&socket);
        refuses(&world, 3, "which others can write");
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    fs::write(&socket, "a letter").unwrap();
    refuses(&world, 3, "is no socket");
    assert_eq!(fs::read_to_string(&socket).unwrap(), "a letter");
    fs::remove_file(&socket).unwrap();
    symlink(folder.join("elsewhere"), &socket).unwrap();
    refuses(&world, 3, "is no socket");
    fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    refuses(&world, 4, "socket-held");
    drop(listener);
    // Now nobody listens: what a killed process leaves.
    let serve = world.serve();
    serve.kill();
    assert!(socket.exists());
    let serve = Serve::start(&world.home);
    assert!(UnixStream::connect(&socket).is_ok());
    let doctor = world.home.object(&["doctor"]);
    let accounts: Vec<&Value> =
        doctor["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "accounts").collect();
    assert_eq!(accounts.len(), 1, "{doctor}");
    assert_eq!(accounts[0]["state"], "warn", "Co shares the owner's account");
    assert!(accounts[0]["hint"].as_str().unwrap().contains("agents.co"));
    serve.stop();
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let doctor = world.home.json(&["doctor"]).exit(3).object();
    let bad = doctor["checks"]
        .as_array()
        .unwrap()
        .iter()
        .any(|check| check["name"] == "socket" && check["state"] == "fail");
    assert!(bad, "{doctor}");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    // An account of its own is nothing to warn of.
    world.home.set_configuration(&before);
    configure(&world, uid + 47_001, &socket);
    let doctor = world.home.object(&["doctor"]);
    assert!(
        doctor["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["state"] != "warn" || check["name"] != "accounts")
    );
}
