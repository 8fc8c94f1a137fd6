//! Messages that reached the log by other means, with a tuple that does not fit: the consumer ends them typed, and no
//! model hears of them.

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thought_testkit::home::Home;

use crate::STREAM;
use crate::letter::{WAIT, ask, installed, letter, send};

/// A stored event, in the hands of somebody who can write the file. Its chain is broken by every change, and nothing that
/// is tested here may rest on the chain.
struct Row {
    store: Connection,
    id: String,
}

impl Row {
    fn of(home: &Home, event: &Value) -> Self {
        let store = Connection::open(home.below("thought.db")).unwrap();
        Self { store, id: event.as_str().unwrap().to_owned() }
    }

    /// Sets a column, and gives what stood there.
    fn set(&self, column: &str, value: Option<&str>) -> Option<String> {
        let sql = format!("SELECT {column} FROM events WHERE id = ?1");
        let before = self.store.query_row(&sql, [&self.id], |row| row.get(0)).unwrap();
        let sql = format!("UPDATE events SET {column} = ?1 WHERE id = ?2");
        assert_eq!(self.store.execute(&sql, rusqlite::params![value, self.id]).unwrap(), 1);
        before
    }

    fn payload(&self) -> Value {
        let sql = "SELECT payload FROM events WHERE id = ?1";
        let bytes: Vec<u8> = self.store.query_row(sql, [&self.id], |row| row.get(0)).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn set_payload(&self, payload: &Value) {
        let bytes = serde_json_canonicalizer::to_vec(payload).unwrap();
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let sql = "UPDATE events SET payload = ?1, payload_sha256 = ?2 WHERE id = ?3";
        assert_eq!(self.store.execute(sql, rusqlite::params![bytes, hash, self.id]).unwrap(), 1);
    }

    fn set_member(&self, member: &str, value: &Value) {
        let mut payload = self.payload();
        payload[member] = value.clone();
        self.set_payload(&payload);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_a_tuple_that_does_not_fit_is_blocked_and_asks_nothing() {
    let world = installed().await;
    let home = &world.home;
    let forged = ["actor", "recipient", "sender", "thread", "message", "correlation", "root"];
    let sent = forged.map(|name| {
        let sent = send(home, letter("t-1", name, "canary-forged"), &[]).exit(0).object();
        Row::of(home, &sent["event"])
    });
    let [actor, recipient, sender, thread, message, correlation, root] = &sent;
    actor.set("actor", Some("agent:mallory"));
    recipient.set_member("recipientAgentId", &json!("stream-telegram-conversation"));
    sender.set_member("senderAgentId", &json!("mallory"));
    thread.set_member("threadId", &json!("t-9"));
    message.set_member("messageId", &json!("m-9"));
    correlation.set("correlation_id", Some("t-9"));
    root.set("root_id", Some("evt_00000000000000000000000000000000"));
    let serve = world.serve();
    // A whole one behind them is answered, and knows nothing of them.
    let answer = ask(home, letter("t-1", "whole", "Hello"));
    assert_eq!(answer["response"], "Hello.");
    let runs = home.lines(&["run-list", "--agent", STREAM]);
    assert_eq!(runs.len(), forged.len() + 1, "{runs:?}");
    for run in &runs[..forged.len()] {
        let reason = run["reason"].as_str().unwrap();
        assert_eq!(run["state"], "blocked", "{run}");
        // What is not even the root of its own lineage is no message.
        assert!(["route-refused", "policy"].contains(&reason), "{run}");
        assert_eq!((&run["attempts"], run.get("snapshot")), (&json!(0), None), "{run}");
    }
    let refused = runs.iter().filter(|run| run["reason"] == "route-refused").count();
    assert_eq!(refused, forged.len() - 1);
    assert_eq!(home.events("run.blocked@1").len(), forged.len());
    assert_eq!(world.model.request_count(), 1);
    let request = String::from_utf8(world.model.requests()[0].body.clone()).unwrap();
    assert!(!request.contains("canary-forged"));
    let waited = send(home, letter("t-1", "actor", "canary-forged"), &["--wait-seconds", WAIT]);
    assert_eq!(waited.exit(9).object()["status"], "blocked");
    serve.stop();
    assert!(world.bot.sent().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_of_which_one_part_does_not_fit_is_not_shown() {
    let world = installed().await;
    let home = &world.home;
    let serve = world.serve();
    let asked = letter("t-1", "m-1", "Hello?");
    ask(home, asked);
    serve.stop();
    let show = || send(home, asked, &["--show-response", "--acknowledge-sensitive-private"]);
    let output = Row::of(home, &home.events("derived.agent.message@1")[0]["id"]);
    let none = "evt_00000000000000000000000000000000";
    let columns = [
        ("actor", Some("agent:co")),
        ("root_id", Some(none)),
        ("parent_id", Some(none)),
        ("parent_id", None),
        ("correlation_id", Some("t-2")),
        ("type", Some("stream.thought.derived.message.observation@1")),
    ];
    for (column, value) in columns {
        let before = output.set(column, value);
        let refused = show();
        assert!(matches!(refused.code, Some(1 | 3)), "{column}: {refused:?}");
        assert!(!refused.stdout.contains("Hello."), "{column}: {}", refused.stdout);
        output.set(column, before.as_deref());
    }
    let whole = output.payload();
    let members = [
        ("senderAgentId", json!("co")),
        ("recipientAgentId", json!("mallory")),
        ("threadId", json!("t-2")),
        ("inReplyTo", json!("m-2")),
        ("inputSequence", json!(2)),
        ("run", json!("run_00000000000000000000000000000000")),
        ("contextSnapshot", json!("snap_00000000000000000000000000000000")),
        ("agent", json!({"id": "co", "version": 1, "fingerprint": whole["agent"]["fingerprint"]})),
        ("summary", json!("")),
        ("summary", json!("x".repeat(12_001))),
    ];
    for (member, value) in members {
        output.set_member(member, &value);
        let refused = show().exit(3);
        assert_eq!(refused.error()["code"], "response-invalid", "{member}");
        assert_eq!(refused.stdout, "", "{member}");
        output.set_payload(&whole);
    }
    // The completed event must name it.
    let completed = Row::of(home, &home.events("run.completed@1")[0]["id"]);
    let before = completed.payload();
    completed.set_member("output", &json!(none));
    assert_eq!(show().exit(3).error()["code"], "response-invalid");
    completed.set_payload(&before);
    assert_eq!(show().exit(0).object()["response"], "Hello.");
}
