//! Each link of the chain forged by itself, in a store that was written with raw SQL: refused each time, before anything
//! is decided, projected or written.

use thought_authority::chain::{ChainError, DecidedChain, Link, validate_decision};
use thought_authority::decide::DecideError;
use thought_authority::materialize::is_as_decided;
use thought_contract::event::EventType;
use thought_contract::payload::Disposition;
use thought_protocol::{EventId, Sha256Hex};
use thought_store::NoImages;

use crate::world::{Ask, MEMORY, Turn, World};

fn link_of(error: &ChainError) -> (Link, &'static str) {
    match error {
        ChainError::Refused { link, reason } => (*link, *reason),
        other => panic!("{other:?}"),
    }
}

/// Runs SQL on the store's file.
fn forge(world: &World, sql: &str, parameters: &[&dyn rusqlite::ToSql]) {
    let connection = world.sql();
    let changed = connection.execute(sql, parameters).unwrap();
    assert!(changed > 0, "{sql}");
}

/// Rewrites an event's payload in place and seals it anew, as somebody with the file would.
fn repayload(world: &World, id: &EventId, change: impl Fn(&mut serde_json::Value)) {
    let connection = world.sql();
    let bytes: Vec<u8> = connection
        .query_row("SELECT payload FROM events WHERE id = ?1", [id.as_str()], |r| r.get(0))
        .unwrap();
    let mut payload: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    change(&mut payload);
    let bytes = thought_protocol::canonical::to_vec(&payload).unwrap();
    let sha256 = Sha256Hex::of(&bytes);
    connection
        .execute(
            "UPDATE events SET payload = ?2, payload_sha256 = ?3 WHERE id = ?1",
            rusqlite::params![id.as_str(), bytes, sha256.as_str()],
        )
        .unwrap();
}

async fn reseal(world: &World, id: &EventId) {
    let event = world.side.reader.event(id.clone()).await.unwrap().unwrap();
    let chain = event.envelope.chain_sha256().unwrap();
    forge(world, "UPDATE events SET chain_sha256 = ?2 WHERE id = ?1", &[&id.as_str(), &chain.as_str()]);
}

struct Scene {
    world: World,
    first: Turn,
    memory: EventId,
    correction: EventId,
    turn: Turn,
}

async fn scene() -> Scene {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let asks = [Ask::Append("- x".to_owned()), Ask::Correct(first.output.clone(), "four".to_owned())];
    let turn = world.side.turn(2, &asks).await;
    let (memory, correction) = (turn.proposals[0].clone(), turn.proposals[1].clone());
    world.side.validate(&memory).await.unwrap();
    world.side.validate(&correction).await.unwrap();
    Scene { world, first, memory, correction, turn }
}

impl Scene {
    fn completed(&self, turn: &Turn) -> EventId {
        EventId::of(EventType::RunCompleted.key_kind(), &[(&turn.run).into()])
    }

    /// The proposal is refused at this link by everyone who could act on it, and nothing was appended.
    async fn refused(&self, proposal: &EventId, link: Link, what: &str) {
        let side = self.world.another(self.world.side.points.clone());
        let count = side.reader.event_count().await.unwrap();
        let error = side.validate(proposal).await.expect_err(what);
        assert_eq!(link_of(&error).0, link, "{what}: {error:?}");
        let decided = side.decide(proposal, Disposition::Accept).await;
        assert!(matches!(decided, Err(DecideError::Chain(ChainError::Refused { .. }))), "{what}");
        assert!(side.projector().project(proposal).await.is_err(), "{what}");
        assert!(side.operator_desk().repropose(proposal, None).await.is_err(), "{what}");
        assert_eq!(side.reader.event_count().await.unwrap(), count, "{what}");
        assert_eq!(self.world.memory(), MEMORY, "{what}");
    }
}

#[tokio::test]
async fn every_column_of_a_proposals_envelope_is_bound() {
    let changes: [(&str, &str, bool); 9] = [
        ("actor", "human:alex", true),
        ("root_id", "evt_00000000000000000000000000000000", true),
        ("parent_id", "evt_00000000000000000000000000000000", true),
        ("correlation_id", "1:0", true),
        ("external_id", "1:1", true),
        ("payload_sha256", "0000000000000000000000000000000000000000000000000000000000000000", false),
        ("chain_sha256", "0000000000000000000000000000000000000000000000000000000000000000", false),
        ("previous_sha256", "0000000000000000000000000000000000000000000000000000000000000001", false),
        ("type", "stream.thought.agent.correction.proposed@1", true),
    ];
    for (column, value, sealed) in changes {
        let scene = scene().await;
        let sql = format!("UPDATE events SET {column} = ?2 WHERE id = ?1");
        forge(&scene.world, &sql, &[&scene.memory.as_str(), &value]);
        if sealed {
            reseal(&scene.world, &scene.memory).await;
        }
        scene.refused(&scene.memory, Link::Proposal, column).await;
    }
}

#[tokio::test]
async fn every_member_of_a_proposals_payload_is_bound() {
    type Change = fn(&mut serde_json::Value);
    let other = "0".repeat(32);
    let changes: [(&str, Change, Link); 15] = [
        ("text", |p| p["proposedText"] = "- y".into(), Link::Arguments),
        ("length", |p| p["textLength"] = 9.into(), Link::Arguments),
        ("reason", |p| p["reason"] = "".into(), Link::Arguments),
        ("evidence", |p| p["evidence"] = vec![format!("evt_{}", "1".repeat(32))].into(), Link::Arguments),
        (
            "version",
            |p| p["target"]["versionId"] = format!("ver_{}", "0".repeat(32)).into(),
            Link::MemoryTarget,
        ),
        ("hash", |p| p["target"]["sha256"] = "0".repeat(64).into(), Link::MemoryTarget),
        ("path", |p| p["target"]["path"] = "identity.md".into(), Link::MemoryTarget),
        ("source", |p| p["target"]["source"] = "filesystem:other".into(), Link::MemoryTarget),
        ("run", |p| p["proposer"]["run"] = format!("run_{}", "0".repeat(32)).into(), Link::Run),
        ("model", |p| p["proposer"]["model"] = "another".into(), Link::Snapshot),
        ("provider", |p| p["proposer"]["provider"] = "another".into(), Link::Output),
        ("agent", |p| p["proposer"]["agent"]["version"] = 2.into(), Link::Run),
        (
            "fingerprint",
            |p| p["proposer"]["fingerprint"] = format!("sha256:{}", "0".repeat(64)).into(),
            Link::Declaration,
        ),
        ("literal", |p| p["publicationEligible"] = true.into(), Link::Proposal),
        ("unknown", |p| p["more"] = 1.into(), Link::Proposal),
    ];
    assert_eq!(other.len(), 32);
    for (what, change, link) in changes {
        let scene = scene().await;
        repayload(&scene.world, &scene.memory, change);
        reseal(&scene.world, &scene.memory).await;
        scene.refused(&scene.memory, link, what).await;
    }
}

#[tokio::test]
async fn every_row_behind_a_proposal_is_bound() {
    let zero = "0".repeat(32);
    let changes: [(&str, Link); 22] = [
        ("UPDATE runs SET state = 'failed' WHERE id = :run", Link::Run),
        ("UPDATE runs SET version = 2 WHERE id = :run", Link::Run),
        ("UPDATE runs SET retry = 1 WHERE id = :run", Link::Run),
        ("UPDATE runs SET trigger_id = 'evt_ZERO' WHERE id = :run", Link::Run),
        ("UPDATE runs SET output_id = 'evt_ZERO' WHERE id = :run", Link::Run),
        ("UPDATE runs SET terminal_id = NULL WHERE id = :run", Link::Run),
        ("UPDATE runs SET sequence = 9 WHERE id = :run", Link::Trigger),
        ("UPDATE runs SET snapshot_id = NULL WHERE id = :run", Link::Snapshot),
        ("DELETE FROM snapshots WHERE run = :run", Link::Snapshot),
        ("UPDATE snapshots SET sha256 = printf('%064d', 1) WHERE run = :run", Link::Snapshot),
        ("UPDATE snapshots SET packet_sha256 = printf('%064d', 1) WHERE run = :run", Link::Snapshot),
        ("UPDATE snapshots SET bytes = x'00' WHERE run = :run", Link::Snapshot),
        (
            "UPDATE snapshots SET bytes = (SELECT bytes FROM snapshots WHERE run <> :run), sha256 = (SELECT sha256 FROM
                snapshots WHERE run <> :run) WHERE run = :run",
            Link::Snapshot,
        ),
        ("UPDATE attempts SET state = 'permanent' WHERE run = :run", Link::Attempt),
        ("UPDATE attempts SET ordinal = 2 WHERE run = :run", Link::Attempt),
        ("UPDATE declarations SET prompt_content = x'00' WHERE :run <> ''", Link::Declaration),
        ("UPDATE declarations SET manifest_content = x'00' WHERE :run <> ''", Link::Declaration),
        ("UPDATE declarations SET declaration_content = x'7b7d' WHERE :run <> ''", Link::Declaration),
        ("UPDATE declarations SET fingerprint = 'sha256:' || printf('%064d', 1) WHERE :run <> ''", Link::Declaration),
        ("UPDATE declarations SET version = 3 WHERE :run <> ''", Link::Declaration),
        ("UPDATE versions SET content = x'00' WHERE path = 'memory.md' AND :run <> ''", Link::Packet),
        ("UPDATE events SET payload = x'7b7d' WHERE type LIKE '%declaration.activated%' AND :run <> ''", Link::Activation),
    ];
    for (sql, link) in changes {
        let scene = scene().await;
        let sql = sql.replace("ZERO", &zero);
        let connection = scene.world.sql();
        connection.pragma_update(None, "foreign_keys", "OFF").unwrap();
        let changed = connection.execute(&sql, &[(":run", &scene.turn.run.as_str())]).unwrap();
        assert!(changed > 0, "{sql}");
        drop(connection);
        scene.refused(&scene.memory, link, &sql).await;
    }
}

#[tokio::test]
async fn trigger_output_and_completion_are_bound() {
    type Change = fn(&mut serde_json::Value);
    let kinds: [(&str, Change, Link); 8] = [
        ("trigger", |p| p["userId"] = 7.into(), Link::Trigger),
        ("trigger", |p| p["text"] = "other words".into(), Link::Packet),
        ("output", |p| p["model"] = "another".into(), Link::Output),
        ("output", |p| p["agent"]["version"] = 2.into(), Link::Output),
        ("output", |p| p["run"] = format!("run_{}", "0".repeat(32)).into(), Link::Output),
        ("completed", |p| p["proposals"] = serde_json::json!([]), Link::Completion),
        ("completed", |p| p["output"] = format!("evt_{}", "0".repeat(32)).into(), Link::Completion),
        ("completed", |p| p["attempt"] = format!("att_{}", "0".repeat(32)).into(), Link::Attempt),
    ];
    for (which, change, link) in kinds {
        let scene = scene().await;
        let id = match which {
            "trigger" => scene.turn.trigger.envelope.id.clone(),
            "output" => scene.turn.output.clone(),
            _ => scene.completed(&scene.turn),
        };
        repayload(&scene.world, &id, change);
        reseal(&scene.world, &id).await;
        scene.refused(&scene.memory, link, which).await;
    }
    for which in ["trigger", "output", "completed"] {
        let scene = scene().await;
        let (id, link) = match which {
            "trigger" => (scene.turn.trigger.envelope.id.clone(), Link::Trigger),
            "output" => (scene.turn.output.clone(), Link::Output),
            _ => (scene.completed(&scene.turn), Link::Completion),
        };
        forge(&scene.world, "DELETE FROM events WHERE id = ?1", &[&id.as_str()]);
        scene.refused(&scene.memory, link, which).await;
    }
}

#[tokio::test]
async fn a_proposal_that_was_not_settled_with_its_run_is_refused() {
    let scene = scene().await;
    // Moved behind the completed event: it can only have been added later.
    let sql = "UPDATE events SET sequence = sequence + 100 WHERE id = ?1";
    forge(&scene.world, sql, &[&scene.memory.as_str()]);
    reseal(&scene.world, &scene.memory).await;
    scene.refused(&scene.memory, Link::Completion, "order").await;
}

#[tokio::test]
async fn what_a_correction_aims_at_is_bound() {
    type Change = fn(&mut serde_json::Value);
    let members: [(&str, Change, Link); 5] = [
        ("run", |p| p["target"]["run"] = format!("run_{}", "0".repeat(32)).into(), Link::CorrectionTarget),
        (
            "receipt",
            |p| p["target"]["deliveryReceipt"] = format!("evt_{}", "0".repeat(32)).into(),
            Link::CorrectionTarget,
        ),
        ("output", |p| p["target"]["output"] = format!("evt_{}", "0".repeat(32)).into(), Link::Proposal),
        ("root", |p| p["target"]["sourceRoot"] = format!("evt_{}", "0".repeat(32)).into(), Link::Proposal),
        ("words", |p| p["replacement"]["summary"] = "".into(), Link::Arguments),
    ];
    for (what, change, link) in members {
        let scene = scene().await;
        repayload(&scene.world, &scene.correction, change);
        reseal(&scene.world, &scene.correction).await;
        scene.refused(&scene.correction, link, what).await;
    }
    for (sql, link) in [
        ("UPDATE runs SET state = 'failed' WHERE id = ?1", Link::CorrectionTarget),
        (
            "DELETE FROM events WHERE type LIKE '%delivery.telegram%' AND parent_id = (SELECT output_id FROM runs WHERE id = ?1)",
            Link::CorrectionTarget,
        ),
        (
            "UPDATE events SET actor = 'human:alex' WHERE type LIKE '%delivery.telegram%' AND parent_id = (SELECT output_id FROM runs WHERE id = ?1)",
            Link::CorrectionTarget,
        ),
    ] {
        let scene = scene().await;
        forge(&scene.world, sql, &[&scene.first.run.as_str()]);
        scene.refused(&scene.correction, link, sql).await;
    }
}

#[tokio::test]
async fn a_forged_decision_leads_to_no_receipt() {
    type Change = fn(&mut serde_json::Value);
    let members: [(&str, Change); 6] = [
        ("kind", |p| p["proposalKind"] = "self-correction".into()),
        ("replacement", |p| {
            p["replacement"] = serde_json::json!({"text": "z", "length": 1, "sha256": "0".repeat(64)})
        }),
        ("disposition", |p| p["disposition"] = "edit".into()),
        ("operator", |p| p["operator"] = "mallory".into()),
        ("authority", |p| p["authority"] = "model".into()),
        ("proposal", |p| p["proposal"] = format!("evt_{}", "0".repeat(32)).into()),
    ];
    for (what, change) in members {
        let scene = scene().await;
        let decision = scene.world.side.accept(&scene.memory).await.decision;
        repayload(&scene.world, &decision, change);
        reseal(&scene.world, &decision).await;
        let side = scene.world.another(scene.world.side.points.clone());
        let error = side.projector().project(&scene.memory).await.expect_err(what);
        assert!(error.to_string().starts_with("project a decision"), "{what}");
        assert!(side.receipts().await.is_empty() && side.failures().await.is_empty(), "{what}");
        assert_eq!(scene.world.memory(), MEMORY, "{what}");
    }
}

#[tokio::test]
async fn an_operators_proposal_is_bound_to_its_origin_and_base() {
    type Change = fn(&mut serde_json::Value);
    let members: [(&str, Change, Link); 5] = [
        ("text", |p| p["proposedText"] = "- z".into(), Link::Arguments),
        ("operation", |p| p["operation"] = "replace-document".into(), Link::Origin),
        ("base", |p| p["target"]["sha256"] = "0".repeat(64).into(), Link::MemoryTarget),
        ("operator", |p| p["operator"] = "mallory".into(), Link::Proposal),
        ("origin", |p| p["origin"] = format!("evt_{}", "0".repeat(32)).into(), Link::Origin),
    ];
    for (what, change, link) in members {
        let world = World::new().await;
        let stale = world.append(1, "- x").await;
        world.write_memory(format!("{MEMORY}more\n"));
        let again = world.side.operator_desk().repropose(&stale, None).await.unwrap().proposal;
        world.side.validate(&again).await.unwrap();
        repayload(&world, &again, change);
        reseal(&world, &again).await;
        let side = world.another(world.side.points.clone());
        let error = side.validate(&again).await.expect_err(what);
        assert_eq!(link_of(&error).0, link, "{what}: {error:?}");
    }
}

#[tokio::test]
async fn a_chain_costs_the_same_however_long_the_log_is() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let asks = [Ask::Append("- x".to_owned()), Ask::Correct(first.output, "four".to_owned())];
    let turn = world.side.turn(2, &asks).await;
    let cost = async || {
        let mut cost = Vec::new();
        for proposal in &turn.proposals {
            let before = world.side.reader.counters().rows_read;
            world.side.validate(proposal).await.unwrap();
            cost.push(world.side.reader.counters().rows_read - before);
        }
        cost
    };
    let short = cost().await;
    for n in 10..1_010 {
        world.side.message(n).await;
    }
    assert_eq!(cost().await, short);
    assert!(short.iter().all(|rows| *rows < 60), "{short:?}");
}

#[tokio::test]
async fn an_intent_is_a_note_and_makes_no_receipt() {
    let scene = scene().await;
    let side = &scene.world.side;
    let recorded = side.accept(&scene.memory).await;
    // The person's own edit, scanned on the frozen base, and a note that claims it for the change.
    let own = format!("{}an unrelated line\n", scene.world.memory());
    scene.world.write_memory(&own);
    side.scan().await;
    let sha256 = Sha256Hex::of(own.as_bytes());
    let temporary = format!(".thought-{}.tmp", recorded.decision);
    forge(
        &scene.world,
        "INSERT INTO intents (decision, proposal, expected_sha256, temporary, made_ms) VALUES (?1, ?2, ?3, ?4, 1)",
        &[&recorded.decision.as_str(), &scene.memory.as_str(), &sha256.as_str(), &temporary],
    );
    let refused = side.projector().project(&scene.memory).await.unwrap_err();
    assert!(with_its_causes(&refused).contains("intent"), "{refused:?}");
    assert!(side.receipts().await.is_empty());
    assert_eq!(scene.world.memory(), own);
}

#[tokio::test]
async fn a_receipt_that_names_another_version_is_not_as_decided() {
    let scene = scene().await;
    let side = &scene.world.side;
    assert_eq!(side.carry_out(&scene.memory).await, "materialized");
    let is_as_decided =
        async || match validate_decision(&side.reader, &NoImages, &scene.memory).await.unwrap() {
            DecidedChain::Memory(decided) => is_as_decided(&side.reader, &decided).await.unwrap(),
            DecidedChain::Correction(_) => panic!("a memory change"),
        };
    assert!(is_as_decided().await);
    let receipt = side.events(EventType::MemoryMaterialized).await.remove(0).envelope.id;
    scene.world.write_memory(format!("{}another line\n", scene.world.memory()));
    side.scan().await;
    let sql = "SELECT id, sha256 FROM versions ORDER BY rowid DESC LIMIT 1";
    let (version, sha256): (String, String) =
        scene.world.sql().query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    repayload(&scene.world, &receipt, |payload| {
        payload["versionId"] = version.as_str().into();
        payload["sha256"] = sha256.as_str().into();
    });
    reseal(&scene.world, &receipt).await;
    assert!(!is_as_decided().await);
}

/// An error with all that caused it.
fn with_its_causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        said.push_str(&format!(": {error}"));
        source = error.source();
    }
    said
}
