//! Messages that reached the log by other means, with a tuple that does not fit: the consumer ends them typed, and no
//! model hears of them.

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thought_testkit::home::Home;

use crate::STREAM;
use crate::letter::{WAIT, ask, installed, letter, send};

/// Rewrites the stored message of an id, as a hand in the file would; its chain is broken by that, and the consumer must
/// not rest on the chain.
fn rewrite(home: &Home, id: &str, column: &str, value: &str) {
    let store = Connection::open(home.below("thought.db")).unwrap();
    let sql = format!(
        "UPDATE events SET {column} = ?1 WHERE external_id = ?2 AND type LIKE '%source.agent.message@1'"
    );
    assert_eq!(store.execute(&sql, [value, id]).unwrap(), 1, "{id}");
}

fn rewrite_payload(home: &Home, id: &str, member: &str, value: &str) {
    let store = Connection::open(home.below("thought.db")).unwrap();
    let sql = "SELECT payload FROM events WHERE external_id = ?1 AND type LIKE '%source.agent.message@1'";
    let bytes: Vec<u8> = store.query_row(sql, [id], |row| row.get(0)).unwrap();
    let mut payload: Value = serde_json::from_slice(&bytes).unwrap();
    payload[member] = json!(value);
    let bytes = serde_json_canonicalizer::to_vec(&payload).unwrap();
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let sql = "UPDATE events SET payload = ?1, payload_sha256 = ?2
               WHERE external_id = ?3 AND type LIKE '%source.agent.message@1'";
    assert_eq!(store.execute(sql, rusqlite::params![bytes, hash, id]).unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_a_tuple_that_does_not_fit_is_blocked_and_asks_nothing() {
    let world = installed().await;
    let home = &world.home;
    let forged = ["actor", "recipient", "sender", "thread", "message", "correlation", "root"];
    for name in forged {
        send(home, letter("t-1", name, "canary-forged"), &[]).exit(0);
    }
    rewrite(home, "actor", "actor", "agent:mallory");
    rewrite_payload(home, "recipient", "recipientAgentId", "stream-telegram-conversation");
    rewrite_payload(home, "sender", "senderAgentId", "mallory");
    rewrite_payload(home, "thread", "threadId", "t-9");
    rewrite_payload(home, "message", "messageId", "m-9");
    rewrite(home, "correlation", "correlation_id", "t-9");
    rewrite(home, "root", "root_id", "evt_00000000000000000000000000000000");
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
