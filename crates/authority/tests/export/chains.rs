//! Each part of the provenance taken away or changed by itself, with raw SQL: no example, and a reason that names the part.

use thought_contract::payload::JudgmentRecorded;
use thought_protocol::EventId;
use thought_protocol::Sha256Hex;

use crate::house::House;
use crate::world::Turn;

struct Scene {
    house: House,
    turn: Turn,
    judgment: EventId,
    said: JudgmentRecorded,
}

async fn scene() -> Scene {
    let house = House::new().await;
    house.world.side.turn(1, &[]).await;
    let turn = house.world.side.turn(2, &[]).await;
    let judgment = house.correct(10, 2, "better").await;
    let event = house.world.side.reader.event(judgment.clone()).await.unwrap().unwrap();
    Scene { house, turn, judgment, said: event.payload().unwrap() }
}

impl Scene {
    fn sql(&self, sql: &str, parameters: &[&dyn rusqlite::ToSql]) {
        let changed = self.house.world.sql().execute(sql, parameters).unwrap();
        assert!(changed > 0, "{sql}");
    }

    fn remove(&self, id: &EventId) {
        let connection = self.house.world.sql();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        assert_eq!(connection.execute("DELETE FROM events WHERE id = ?1", [id.as_str()]).unwrap(), 1);
    }

    /// Rewrites an event's payload and seals it anew, as somebody with the file would.
    async fn repayload(&self, id: &EventId, change: impl Fn(&mut serde_json::Value)) {
        let mut event = self.house.world.side.reader.event(id.clone()).await.unwrap().unwrap();
        let mut payload: serde_json::Value = serde_json::from_slice(event.payload.expose()).unwrap();
        change(&mut payload);
        let bytes = thought_protocol::canonical::to_vec(&payload).unwrap();
        event.envelope.payload_sha256 = Sha256Hex::of(&bytes);
        let chain = event.envelope.chain_sha256().unwrap();
        self.sql(
            "UPDATE events SET payload = ?2, payload_sha256 = ?3, chain_sha256 = ?4 WHERE id = ?1",
            &[&id.as_str(), &bytes, &event.envelope.payload_sha256.as_str(), &chain.as_str()],
        );
    }

    async fn is_excluded(&self, code: &str) {
        let (included, excluded) = self.house.excluded("a.jsonl").await;
        assert_eq!((included, excluded), (0, vec![(code.to_owned(), 1)]));
    }
}

#[tokio::test]
async fn each_missing_part_is_named() {
    type Take = fn(&Scene);
    let parts: [(&str, Take); 7] = [
        ("trigger-missing", |scene| scene.remove(&scene.turn.trigger.envelope.id)),
        ("output-missing", |scene| scene.remove(&scene.turn.output)),
        ("delivery-receipt-missing", |scene| scene.remove(&scene.said.target.delivery_receipt)),
        ("feedback-missing", |scene| scene.remove(&scene.said.feedback)),
        ("run-missing", |scene| {
            let connection = scene.house.world.sql();
            connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
            connection.execute("DELETE FROM runs WHERE id = ?1", [scene.turn.run.as_str()]).unwrap();
        }),
        ("context-snapshot-missing", |scene| {
            scene.sql("UPDATE runs SET snapshot_id = NULL WHERE id = ?1", &[&scene.turn.run.as_str()]);
        }),
        ("snapshot-missing", |scene| {
            let connection = scene.house.world.sql();
            connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
            let sql = "DELETE FROM snapshots WHERE run = ?1";
            assert_eq!(connection.execute(sql, [scene.turn.run.as_str()]).unwrap(), 1);
        }),
    ];
    for (code, take) in parts {
        let scene = scene().await;
        take(&scene);
        scene.is_excluded(code).await;
    }
}

#[tokio::test]
async fn a_judgment_that_says_more_than_its_feedback_is_no_example() {
    type Change = fn(&mut serde_json::Value);
    let changes: [(&str, Change); 6] = [
        ("judgment-replacement", |said| said["replacement"]["summary"] = "forged".into()),
        ("judgment-schema", |said| said["schemaVersion"] = 1.into()),
        ("judgment-schema", |said| said["criterionVersion"] = 2.into()),
        ("judgment-criterion", |said| said["criterion"] = "because".into()),
        ("judgment-lineage", |said| said["actor"] = "human:sam".into()),
        ("not-quality-eligible", |said| said["qualityEligible"] = false.into()),
    ];
    for (code, change) in changes {
        let scene = scene().await;
        scene.repayload(&scene.judgment, change).await;
        scene.is_excluded(code).await;
    }
}

#[tokio::test]
async fn evidence_that_is_not_what_it_was_is_no_example() {
    let words = |scene: &Scene| scene.turn.trigger.envelope.id.clone();
    let scene_ = scene().await;
    scene_.repayload(&words(&scene_), |said| said["text"] = "other words".into()).await;
    scene_.is_excluded("packet-event-changed").await;
    let scene_ = scene().await;
    scene_.repayload(&scene_.turn.output, |said| said["model"] = "another".into()).await;
    scene_.is_excluded("output-model").await;
    let scene_ = scene().await;
    scene_.repayload(&scene_.turn.output, |said| said["agent"]["version"] = 2.into()).await;
    scene_.is_excluded("output-declaration").await;
    let scene_ = scene().await;
    let receipt = scene_.said.target.delivery_receipt.clone();
    scene_.repayload(&receipt, |told| told["chatId"] = 9.into()).await;
    scene_.is_excluded("correction-target-id").await;
    let scene_ = scene().await;
    scene_.repayload(&receipt, |told| told["chunks"][0]["messageId"] = 9.into()).await;
    scene_.is_excluded("feedback-other-reply").await;
    let scene_ = scene().await;
    scene_.sql("UPDATE snapshots SET sha256 = ?1 WHERE sha256 <> ?1", &[&Sha256Hex::of(b"x").as_str()]);
    scene_.is_excluded("snapshot-hash").await;
    let scene_ = scene().await;
    scene_.sql("UPDATE versions SET content = ?1", &[&b"changed".to_vec()]);
    scene_.is_excluded("packet-version-changed").await;
    let scene_ = scene().await;
    scene_.sql("UPDATE declarations SET prompt_content = ?1", &[&b"changed".to_vec()]);
    scene_.is_excluded("declaration-fingerprint").await;
    let scene_ = scene().await;
    scene_.sql("UPDATE attempts SET state = 'abandoned'", &[]);
    scene_.is_excluded("attempt-not-answered").await;
}

#[tokio::test]
async fn a_second_completed_run_on_the_message_makes_the_receipt_ambiguous() {
    let scene = scene().await;
    // Another run's row is moved onto the same message.
    scene.sql(
        "UPDATE runs SET trigger_id = ?1, sequence = ?2 WHERE id <> ?3",
        &[
            &scene.turn.trigger.envelope.id.as_str(),
            &scene.turn.trigger.envelope.sequence,
            &scene.turn.run.as_str(),
        ],
    );
    scene.is_excluded("correction-target-not-the-one-run").await;
}

#[tokio::test]
async fn the_chain_behind_an_accepted_self_correction_is_replayed_too() {
    type Break = fn(&House, &Turn, &EventId);
    let breaks: [(&str, Break); 3] = [
        ("proposal-missing", |house, _turn, proposal| {
            let connection = house.world.sql();
            connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
            connection.execute("DELETE FROM events WHERE id = ?1", [proposal.as_str()]).unwrap();
        }),
        ("run-not-completed", |house, turn, _proposal| {
            let sql = "UPDATE runs SET state = 'failed' WHERE id = ?1";
            house.world.sql().execute(sql, [turn.run.as_str()]).unwrap();
        }),
        ("completion-does-not-name-the-proposal", |house, turn, _proposal| {
            let connection = house.world.sql();
            let like = "SELECT id, payload FROM events WHERE type LIKE '%run.completed@1' AND parent_id = ?1";
            let (id, bytes): (String, Vec<u8>) = connection
                .query_row(like, [turn.output.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .unwrap();
            let mut told: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            told["proposals"] = serde_json::json!([]);
            let bytes = thought_protocol::canonical::to_vec(&told).unwrap();
            let sha256 = Sha256Hex::of(&bytes);
            let sql = "UPDATE events SET payload = ?2, payload_sha256 = ?3 WHERE id = ?1";
            connection.execute(sql, rusqlite::params![id, bytes, sha256.as_str()]).unwrap();
        }),
    ];
    for (code, break_it) in breaks {
        let house = House::new().await;
        let first = house.world.side.turn(1, &[]).await;
        let (turn, proposal) = house.corrects_itself(2, &first, "better").await;
        house.let_through(&proposal).await;
        break_it(&house, &turn, &proposal);
        if code.starts_with("completion") {
            let reader = &house.world.side.reader;
            let children = reader.children(turn.output.clone(), 8).await.unwrap();
            let completed =
                children.iter().find(|event| event.envelope.event_type.as_str().contains("completed"));
            let completed = completed.unwrap();
            let chain = completed.envelope.chain_sha256().unwrap();
            let sql = "UPDATE events SET chain_sha256 = ?2 WHERE id = ?1";
            let parameters = [completed.envelope.id.as_str(), chain.as_str()];
            house.world.sql().execute(sql, parameters).unwrap();
        }
        let (included, excluded) = house.excluded("a.jsonl").await;
        assert_eq!((included, excluded), (0, vec![(code.to_owned(), 1)]));
    }
}
