//! The first minutes: a home, a check of it, one turn, and everything that can be looked at afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thought_fakes::{KnownModels, ModelConfig, ModelServer};
use thought_testkit::home::Home;
use thought_testkit::run::{Binary, argument};
use thought_testkit::world::{CHAT, TOKEN, TOKEN_VARIABLE, World};

use crate::THOUGHT;
use crate::request::{pairs, said};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Every file below a folder with its bytes.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(tree(&path));
        } else {
            files.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn init_makes_a_home_that_only_its_owner_can_enter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/home");
    let binary = Binary::new(THOUGHT);
    let made = binary
        .run(&["--home", argument(&path), "init", "--provider", "openai", "--model", "some-model"])
        .exit(0);
    assert!(made.stdout.contains(TOKEN_VARIABLE) && made.stdout.contains("ingress"), "{}", made.stdout);
    for below in ["", "agents", "prompts", "context", "blobs", "run"] {
        assert_eq!(mode(&path.join(below)), 0o700, "{below}");
    }
    for file in ["thought.toml", "context/identity.md", "context/memory.md"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
    for agent in ["stream-telegram-conversation", "stream-agent-conversation"] {
        assert!(path.join(format!("agents/{agent}.yaml")).is_file(), "{agent}");
    }
    let text = fs::read_to_string(path.join("thought.toml")).unwrap();
    assert!(text.contains("ingress = \"off\"") && text.contains("model = \"some-model\""), "{text}");
    for (file, id) in [("identity.md", "id: identity"), ("memory.md", "id: memory")] {
        let text = fs::read_to_string(path.join("context").join(file)).unwrap();
        assert!(text.starts_with("---\n") && text.contains(id), "{text}");
    }
    assert!(!path.join("thought.db").exists(), "nothing is installed yet");
}

#[test]
fn init_on_a_home_changes_nothing_and_on_anything_else_is_refused() {
    let home = Home::init(THOUGHT, "ollama");
    home.set("operator", "names", Some("[\"someone else\"]"));
    let before = tree(&home.path);
    assert_eq!(home.object(&["init"])["created"], false);
    assert_eq!(tree(&home.path), before);

    let other = home.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(other.join("letter.txt"), "x").unwrap();
    let refused = home.binary.run(&["--home", argument(&other), "--json", "init"]).exit(3);
    assert_eq!(refused.error()["code"], "not-a-home");
    assert_eq!(tree(&other).len(), 1);
}

#[test]
fn init_with_a_token_polls_and_writes_its_variable_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("home");
    let mut binary = Binary::new(THOUGHT);
    binary.env.insert(TOKEN_VARIABLE.to_owned(), TOKEN.to_owned());
    binary.env.insert("THOUGHT_HOME".to_owned(), argument(&path).to_owned());
    let made = binary.run(&["init", "--json"]).exit(0).object();
    assert_eq!(made["ingress"], "poll");
    assert!(thought_testkit::canary::in_folder(&path, &[TOKEN]).is_empty());
    binary.run(&["status", "--json"]).exit(0).object();
}

fn states(report: &Value) -> BTreeMap<String, Vec<String>> {
    let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for check in report["checks"].as_array().unwrap() {
        assert!(check["hint"].is_string() || check["hint"].is_null(), "{check}");
        let name = check["name"].as_str().unwrap().trim().to_owned();
        states.entry(name).or_default().push(check["state"].as_str().unwrap().to_owned());
    }
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_what_is_wrong_and_exits_by_it() {
    let mut world = World::start(THOUGHT).await;
    let report = world.home.object(&["doctor"]);
    let well = states(&report);
    assert!(well.values().flatten().all(|state| state != "fail"), "{report}");
    assert_eq!(world.model.request_count(), 0, "doctor makes no model request");
    assert!(world.home.run(&["doctor"]).exit(0).stdout.contains("ok"));

    let one_model = KnownModels::Only(vec!["another-model".to_owned()]);
    let other =
        ModelServer::start(ModelConfig { models: one_model, ..ModelConfig::default() }).await.unwrap();
    world.home.set("provider.main", "base_url", Some(&format!("\"{}\"", other.base_url())));
    let report = world.home.object(&["doctor"]);
    assert_eq!(states(&report)["provider main"], ["warn"], "{report}");

    world.home.env(TOKEN_VARIABLE, "123456:another-token-that-opens-nothing-00");
    let refused = world.home.json(&["doctor"]).exit(3);
    assert_eq!(states(&refused.object())["telegram"], ["fail"]);
    assert!(!format!("{}{}", refused.stdout, refused.stderr).contains("another-token"));
    world.home.unset(TOKEN_VARIABLE);
    let refused = world.home.json(&["doctor"]).exit(3).object();
    let checks = refused["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["name"] == "telegram" && check["hint"].is_string()), "{refused}");

    fs::write(world.home.below("thought.db"), vec![b'x'; 8192]).unwrap();
    let broken = world.home.json(&["doctor"]).exit(8).object();
    assert_eq!(states(&broken)["store"], ["fail"]);
}

/// An event by its type's short name.
fn of<'a>(events: &'a [Value], name: &str) -> &'a Value {
    let full = format!("stream.thought.{name}");
    let mut found = events.iter().filter(|event| event["type"] == full.as_str());
    let one = found.next().unwrap();
    assert!(found.next().is_none(), "one {name}");
    one
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sequences without gaps, positions in order, hashes as they must be.
fn check_chains(events: &[Value]) {
    let mut heads: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut position = 0;
    for event in events {
        assert!(event["position"].as_u64().unwrap() > position, "{event}");
        position = event["position"].as_u64().unwrap();
        let source = event["source"].as_str().unwrap().to_owned();
        let (head, before) = heads.get(&source).cloned().unwrap_or((0, "0".repeat(64)));
        assert_eq!(event["sequence"], head + 1, "{event}");
        assert_eq!(event["previousSha256"], before.as_str(), "{event}");
        let payload = serde_json_canonicalizer::to_vec(&event["payload"]).unwrap();
        assert_eq!(event["payloadSha256"], sha256(&payload).as_str(), "{event}");
        let mut envelope = event.clone();
        let members = envelope.as_object_mut().unwrap();
        members.remove("payload");
        members.remove("chainSha256");
        let chain = sha256(&serde_json_canonicalizer::to_vec(&envelope).unwrap());
        assert_eq!(event["chainSha256"], chain.as_str(), "{event}");
        heads.insert(source, (head + 1, chain));
    }
}

/// Source, actor, root, parent, correlation, external id and privacy of every event of one turn.
fn check_authority(events: &[Value], run: &Value) {
    let message = of(events, "source.telegram.message@1");
    let output = of(events, "derived.message.observation@1");
    let agent = "agent:stream-telegram-conversation";
    let person = format!("human:telegram:{CHAT}");
    let conversation = json!(format!("{CHAT}:0"));
    let none = Value::Null;
    let rows = [
        (message, "telegram:stream", person.as_str(), &none, &conversation, "sensitive"),
        (output, agent, agent, &message["id"], &conversation, "sensitive"),
        (of(events, "run.completed@1"), agent, "system:runtime", &output["id"], &run["id"], "private"),
        (
            of(events, "delivery.telegram@1"),
            "delivery:telegram:stream",
            "system:dispatcher",
            &output["id"],
            &conversation,
            "sensitive",
        ),
    ];
    for (event, source, actor, parent, correlation, privacy) in rows {
        assert_eq!(event["source"], source, "{event}");
        assert_eq!(event["actor"], actor, "{event}");
        assert_eq!(event["rootId"], message["id"], "{event}");
        assert_eq!(event.get("parentId").unwrap_or(&none), parent, "{event}");
        assert_eq!(event.get("correlationId").unwrap_or(&none), correlation, "{event}");
        assert_eq!(event["privacy"], privacy, "{event}");
    }
    assert_eq!(message["externalId"], format!("{CHAT}:{}", message["payload"]["messageId"]));
    for event in events.iter().filter(|event| event["type"] == "stream.thought.source.file.version@1") {
        assert_eq!(event["source"], "filesystem:telegram-agent-context");
        assert_eq!((&event["actor"], &event["rootId"]), (&json!("system:filesystem"), &event["id"]));
    }
    for event in events.iter().filter(|event| event["type"] == "stream.thought.declaration.activated@1") {
        assert_eq!(event["source"], "system:activations");
        assert_eq!((&event["actor"], &event["privacy"]), (&json!("system:runtime"), &json!("private")));
    }
}

/// One turn, whole, and stopped again.
async fn turned(words: &str) -> World {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    assert_eq!(serve.ready["ingress"], "poll");
    let reply = world.turn(words, 1).await;
    assert_eq!((reply.text.as_str(), reply.chat_id), ("Hello.", CHAT));
    serve.stop();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn one_message_gives_one_request_one_reply_and_one_receipt() {
    let world = turned("Is anybody there?").await;
    assert_eq!(world.bot.sent().len(), 1);
    assert!(world.bot.pending_updates().is_empty());
    let [request] = &world.model.requests()[..] else { panic!("one request") };
    assert!(request.refusal.is_none(), "{:?}", request.refusal);
    assert_eq!(request.json.get("tools").is_some(), request.json.get("tool_choice").is_some());
    assert!(request.json.get("stream").is_none_or(|stream| *stream == false));
    let said = said(request);
    assert_eq!(pairs(&said), [("user", "Is anybody there?")]);
    for file in ["identity.md", "memory.md"] {
        let text = fs::read_to_string(world.home.below("context").join(file)).unwrap();
        let body = text.rsplit_once("---\n").unwrap().1.trim();
        assert_eq!(said.system.matches(body).count(), 1, "{file} once");
    }

    let events = world.home.lines(&["event-list", "--acknowledge-sensitive-private"]);
    assert_eq!(events.len(), 8, "2 activations, 2 documents, message, output, end, receipt");
    check_chains(&events);
    let [run] = &world.home.runs()[..] else { panic!("one run") };
    check_authority(&events, run);
    let delivery = of(&events, "delivery.telegram@1");
    assert_eq!(delivery["payload"]["chunks"][0]["messageId"], world.bot.sent()[0].message_id);
    assert_eq!(delivery["payload"]["kind"], "reply");
    assert_eq!((&delivery["payload"]["run"], &delivery["payload"]["output"]), (&run["id"], &run["output"]));
    assert_eq!(of(&events, "derived.message.observation@1")["payload"]["summary"], "Hello.");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_shown_and_drawn() {
    let world = turned("words of the person").await;
    let home = &world.home;
    let dark = home.lines(&["event-list"]);
    let names = ["id", "type", "source", "sequence", "position", "rootId", "actor", "privacy", "recordedAt"];
    for event in &dark {
        assert!(names.iter().all(|name| !event[name].is_null()), "{event}");
        assert!(event.get("payload").is_none(), "{event}");
    }
    assert_eq!(home.lines(&["event-list", "--limit", "3"]), dark[..3]);
    assert_eq!(home.lines(&["event-list", "--after", &dark[2]["position"].to_string()]), dark[3..]);
    assert_eq!(home.lines(&["event-list", "--source", "telegram:stream"]).len(), 1);
    home.json(&["event-list", "--type", "no.such@1"]).exit(2);

    let message = of(&dark, "source.telegram.message@1");
    let id = message["id"].as_str().unwrap();
    assert_eq!(home.object(&["event-show", id]), *message);
    assert_eq!(home.object(&["event-show", &id[..12]]), *message);
    home.json(&["event-show", &id[..11]]).exit(2);
    home.json(&["event-show", "evt_00000000"]).exit(5);
    for malformed in ["", "evt", "evt_", "run_00000000", "evt_UPPER000", "evt_0000000%"] {
        assert!(home.json(&["event-show", malformed]).exit(2).error()["hint"].is_string(), "{malformed}");
    }

    let lineage = home.object(&["lineage", id]);
    let [root] = &lineage["tree"].as_array().unwrap()[..] else { panic!("one root") };
    assert_eq!(root["id"], id);
    let output = &root["children"][0];
    assert_eq!(output["type"], "stream.thought.derived.message.observation@1");
    assert_eq!(output["children"].as_array().unwrap().len(), 2, "end and receipt follow from the output");
    for command in
        [vec!["event-list"], vec!["event-show", id], vec!["lineage", id], vec!["status"], vec!["run-list"]]
    {
        let printed = home.run(&command).exit(0).stdout;
        assert!(!printed.is_empty() && !printed.contains("words of the person"), "{command:?}: {printed}");
    }
    let shown = home.run(&["event-show", id, "--acknowledge-sensitive-private"]).exit(0).stdout;
    assert!(shown.contains("words of the person"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shortened_id_that_fits_two_events_is_refused_with_both() {
    let world = turned("hello").await;
    let events = world.home.lines(&["event-list"]);
    let (first, second) = (events[0]["id"].as_str().unwrap(), events[1]["id"].as_str().unwrap());
    let twin = format!("{}{}", &first[..14], &second[14..]);
    // No one can wait for a real collision, so one is written into the stopped store.
    let store = rusqlite::Connection::open(world.home.below("thought.db")).unwrap();
    store.execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF").unwrap();
    store.execute("UPDATE events SET id = ?1 WHERE id = ?2", [twin.as_str(), second]).unwrap();
    drop(store);
    let refused = world.home.json(&["event-show", &first[..13]]);
    let told = refused.told();
    assert!(matches!(refused.code, Some(2 | 3)), "{told}");
    assert!(told.contains(first) && told.contains(&twin), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_contexts_and_standing_are_shown() {
    let world = turned("private words").await;
    let home = &world.home;
    let run = home.runs().remove(0);
    let expected = json!({
        "agent": "stream-telegram-conversation", "version": 1, "state": "completed", "attempts": 1, "proposals": [],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&run[name], value, "{name}");
    }
    assert!(run["snapshot"].is_string() && run["output"].is_string() && run["trigger"].is_string(), "{run}");
    assert!(home.lines(&["run-list", "--state", "held"]).is_empty());
    assert_eq!(home.lines(&["run-list", "--agent", "stream-telegram-conversation"]).len(), 1);
    home.json(&["run-list", "--state", "nonsense"]).exit(2);

    let id = run["id"].as_str().unwrap();
    let shown = home.object(&["run-show", &id[..12]]);
    assert_eq!(shown["attempts"][0]["outcome"], "answered", "{shown}");
    assert!(shown["attempts"][0]["sandbox"].is_string() && shown["attempts"][0]["startedAt"].is_string());
    home.json(&["run-show", "run_00000000"]).exit(5);
    home.json(&["run-abandon", id]).exit(3);
    home.json(&["run-retry", id]).exit(3);

    let context = home.object(&["context-show", id]);
    assert!(context.get("packet").is_none() && !context.to_string().contains("private words"), "{context}");
    let full = home.object(&["context-show", id, "--acknowledge-sensitive-private"]);
    assert_eq!(full["packet"].to_string().matches("private words").count(), 1);

    let status = home.object(&["status"]);
    assert_eq!(status["runs"], json!({"completed": 1}));
    assert_eq!(status["deliveries"]["undelivered"], json!([]));
    assert_eq!(status["deliveries"]["uncertain"], json!([]));
    assert_eq!(status["updates"], json!({"pending": 0, "parked": 0, "dropped": 0}));
    assert_eq!(status["incidents"], 0);
    assert_eq!(status["channel"]["ingress"], "poll");
    assert_eq!(status["usage"][0]["requests"], 1, "{status}");
    assert!(status["usage"][0]["day"].is_string() && status["usage"][0]["inputTokens"].is_u64());
    let consumers = status["consumers"].as_array().unwrap();
    let telegram = consumers.iter().find(|row| row["source"] == "telegram:stream").unwrap();
    assert_eq!(
        (&telegram["progress"], &telegram["lag"], &telegram["held"]),
        (&json!(1), &json!(0), &json!([]))
    );
    for event in home.lines(&["event-list"]) {
        let sources = status["sources"].as_array().unwrap();
        let head = sources.iter().find(|row| row["source"] == event["source"]).unwrap();
        assert!(head["head"].as_u64() >= event["sequence"].as_u64());
        assert!(head["head"] != event["sequence"] || head["headSha256"] == event["chainSha256"], "{status}");
    }

    let declarations = home.lines(&["declaration-list"]);
    assert_eq!(declarations.len(), 2);
    assert!(
        declarations.iter().all(|row| row["version"] == 1 && row["state"] == "active"),
        "{declarations:?}"
    );
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let home = Home::init(THOUGHT, "ollama");
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).exit(0).stdout;
        assert!(script.contains("event-list") && script.contains("acknowledge-sensitive-private"), "{shell}");
        assert!(!script.contains("__worker"), "{shell}");
    }
    home.run(&["completions", "no-shell"]).exit(2);
    let pages = home.folder.path().join("pages");
    let _written = home.run(&["man", "--output", argument(&pages)]).exit(0);
    let help = home.run(&["--help"]).exit(0).stdout;
    for command in ["init", "demo", "doctor", "serve", "status", "scan", "event-list", "run-retry", "man"] {
        assert!(help.contains(command), "{command}");
        assert!(pages.join(format!("thought-{command}.1")).is_file(), "{command}");
    }
    home.json(&["no-such-command"]).exit(2);
    let usage = home.json(&["event-list", "--limit", "0"]).exit(2);
    assert_eq!(usage.error()["code"], "usage");
}
