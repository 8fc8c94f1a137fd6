//! What an example holds, and what is in none.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};
use thought_authority::export::{Manifest, Scope, Watcher};
use thought_contract::payload::Disposition;
use thought_protocol::{Sha256Hex, SnapshotId};

use crate::house::{House, Unwatched};
use crate::world::{Ask, edit};

#[tokio::test]
async fn an_example_is_what_was_shown_what_was_said_and_what_should_have_been() {
    let house = House::new().await;
    let first = house.world.side.turn(1, &[]).await;
    let second = house.world.side.turn(2, &[]).await;
    let judgment = house.correct(10, 2, "what I wanted").await;
    let report = house.try_export(Scope::Private, "a.jsonl", &Unwatched).await.unwrap();
    let lines = house.lines("a.jsonl");
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let prompt = line["prompt"].as_array().unwrap();
    assert_eq!(prompt[0]["role"], "system");
    let system = prompt[0]["content"].as_str().unwrap();
    assert!(system.starts_with("You are the Stream.") && system.contains("- Likes tea."), "{system}");
    assert_eq!(
        prompt[1..],
        [
            json!({"role": "user", "content": "message 1"}),
            json!({"role": "assistant", "content": "answer 1"}),
            json!({"role": "user", "content": "message 2"}),
        ]
    );
    assert_eq!(line["chosen"], json!([{"role": "assistant", "content": "what I wanted"}]));
    assert_eq!(line["rejected"], json!([{"role": "assistant", "content": "answer 2"}]));
    assert_eq!(line["schemaVersion"], 1);
    assert!(line["id"].as_str().unwrap().starts_with("exp_"));
    let reader = &house.world.side.reader;
    let snapshot = reader.snapshot(second.run.clone()).await.unwrap().unwrap();
    let said: thought_contract::payload::JudgmentRecorded =
        reader.event(judgment.clone()).await.unwrap().unwrap().payload().unwrap();
    assert_eq!(
        line["provenance"],
        json!({
            "judgment": judgment, "run": second.run, "output": second.output,
            "trigger": second.trigger.envelope.id, "feedback": said.feedback,
            "deliveryReceipt": said.target.delivery_receipt, "contextSnapshot": snapshot.id,
            "contextSha256": snapshot.sha256,
        })
    );
    assert_eq!(snapshot.id, SnapshotId::of("snapshot", &[(&second.run).into()]));
    assert_ne!(first.run, second.run);

    let bytes = fs::read(house.at("a.jsonl")).unwrap();
    assert_eq!(report.manifest.output.sha256, Sha256Hex::of(&bytes));
    assert_eq!(report.manifest.output.bytes, bytes.len() as u64);
    let beside = fs::read(house.at("a.jsonl.manifest.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Manifest>(&beside).unwrap(), report.manifest);
    assert_eq!((report.manifest.included, report.manifest.excluded), (1, BTreeMap::new()));
    let heads = report.manifest.heads.iter();
    let judged = heads.clone().find(|head| head.source == "review:judgments").unwrap();
    assert_eq!((judged.head, heads.clone().count() > 4), (1, true));
    for name in house.names() {
        assert_eq!(fs::metadata(house.at(&name)).unwrap().mode() & 0o7777, 0o600, "{name}");
    }
    assert_eq!(house.names(), ["a.jsonl", "a.jsonl.manifest.json"]);
}

#[tokio::test]
async fn the_same_store_gives_the_same_bytes() {
    let house = House::new().await;
    for number in 1..=4 {
        house.world.side.turn(number, &[]).await;
        house.correct(10 + number, number, &format!("better {number}")).await;
    }
    let first = house.try_export(Scope::Private, "a.jsonl", &Unwatched).await.unwrap();
    let again = house.try_export(Scope::Private, "b.jsonl", &Unwatched).await.unwrap();
    let read = |name: &str| fs::read(house.at(name)).unwrap();
    assert_eq!(first.manifest, again.manifest);
    assert_eq!(read("a.jsonl"), read("b.jsonl"));
    assert_eq!(read("a.jsonl.manifest.json"), read("b.jsonl.manifest.json"));
    let ids: Vec<Value> = house.lines("a.jsonl").iter().map(|line| line["id"].clone()).collect();
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!((unique.len(), ids.len()), (4, 4));
}

#[tokio::test]
async fn a_self_correction_counts_once_a_person_let_it_through_with_the_words_that_were_let_through() {
    let house = House::new().await;
    let first = house.world.side.turn(1, &[]).await;
    let (_, accepted) = house.corrects_itself(2, &first, "accepted words").await;
    let second = house.world.side.turn(3, &[]).await;
    let (_, edited) = house.corrects_itself(4, &second, "proposed words").await;
    let (_, rejected) = house.corrects_itself(5, &second, "canary rejected words").await;
    let (_, undecided) = house.corrects_itself(6, &second, "canary undecided words").await;
    house.let_through(&accepted).await;
    house.world.side.desk().decide(&edited, &edit("edited words")).await.unwrap();
    house.world.side.project(&edited).await;
    house.world.side.decide(&rejected, Disposition::Reject).await.unwrap();
    house.world.side.project(&rejected).await;
    let chosen = |name: &str| -> Vec<String> {
        let lines = house.lines(name);
        lines.iter().map(|line| line["chosen"][0]["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(house.excluded("a.jsonl").await, (2, vec![]));
    assert_eq!(chosen("a.jsonl"), ["accepted words", "edited words"]);
    let text = fs::read_to_string(house.at("a.jsonl")).unwrap();
    assert!(!text.contains("canary") && !text.contains("proposed words"), "{text}");
    assert!(!text.contains(undecided.as_str()));
    // What a model suggested never leaves the house.
    let report = house.try_export(Scope::External, "b.jsonl", &Unwatched).await.unwrap();
    assert_eq!(report.manifest.excluded, BTreeMap::from([("not-externally-eligible".to_owned(), 2)]));
    assert_eq!((fs::read(house.at("b.jsonl")).unwrap().len(), report.manifest.included), (0, 0));
    assert_eq!(report.manifest.output.sha256, Sha256Hex::of(b""));
}

#[tokio::test]
async fn what_was_suggested_stands_in_no_prompt_but_what_was_said_beside_it_does() {
    let house = House::new().await;
    let canary = || "- canary of a memory change".to_owned();
    house.world.side.turn(1, &[Ask::Append(canary())]).await;
    let second = house.world.side.turn(2, &[Ask::Replace(format!("{}\ncanary", crate::world::MEMORY))]).await;
    house.corrects_itself(3, &second, "canary of a correction").await;
    house.world.side.turn(4, &[Ask::Append(canary()), Ask::Correct(second.output, canary())]).await;
    house.correct(20, 4, "better").await;
    assert_eq!(house.excluded("a.jsonl").await, (1, vec![]));
    let text = fs::read_to_string(house.at("a.jsonl")).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let line = house.lines("a.jsonl").remove(0);
    let said = line["prompt"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
    let said: Vec<&str> = said.map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["answer 1", "answer 2", "answer 3"]);
    for message in line["prompt"].as_array().unwrap() {
        let members: Vec<&String> = message.as_object().unwrap().keys().collect();
        assert_eq!(members, ["content", "role"]);
    }
}

#[tokio::test]
async fn of_several_judgments_on_an_answer_the_one_that_stands_is_exported() {
    let house = House::new().await;
    house.world.side.turn(1, &[]).await;
    house.correct(10, 1, "canary first").await;
    house.correct(11, 1, "canary second").await;
    house.correct(12, 1, "third").await;
    assert_eq!(house.excluded("a.jsonl").await, (1, vec![("superseded".to_owned(), 2)]));
    assert_eq!(house.lines("a.jsonl")[0]["chosen"][0]["content"], "third");
    assert!(!fs::read_to_string(house.at("a.jsonl")).unwrap().contains("canary"));
}

/// A person goes on correcting while the export is under way.
struct Meanwhile<'a>(&'a House);

impl Watcher for Meanwhile<'_> {
    fn reach(&self, name: &'static str) {
        if name == "export.begun" {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async {
                        self.0.correct(21, 1, "canary of a later correction").await;
                        self.0.correct(22, 2, "canary of a later correction").await;
                    });
                });
            });
        }
    }
}

#[tokio::test]
async fn what_comes_while_an_export_is_under_way_changes_nothing_in_it() {
    let house = House::new().await;
    house.world.side.turn(1, &[]).await;
    house.world.side.turn(2, &[]).await;
    house.correct(10, 1, "stood at the beginning").await;
    let quiet = house.try_export(Scope::Private, "a", &Unwatched).await.unwrap();
    let report = house.try_export(Scope::Private, "b", &Meanwhile(&house)).await.unwrap();
    assert_eq!(quiet.manifest, report.manifest);
    assert_eq!(fs::read(house.at("a")).unwrap(), fs::read(house.at("b")).unwrap());
    assert_eq!(house.excluded("c").await, (2, vec![("superseded".to_owned(), 1)]));
}
