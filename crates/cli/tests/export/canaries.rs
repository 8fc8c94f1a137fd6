//! From the chat to the file: one example for what a person corrected, and no trace of anything else.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use thought_testkit::canary;
use thought_testkit::run::argument;

use crate::scene::{Scene, calls, correction, focus, memory, says};

const MEMORY: &str = "canary-memory-that-waits";
const REFUSED_MEMORY: &str = "canary-memory-that-was-refused";
const AGAIN: &str = "canary-memory-that-was-proposed-again";
const FOCUS: &str = "canary-focus-objective";
const WAITING: &str = "canary-correction-that-waits";
const REFUSED: &str = "canary-correction-that-was-refused";
const SUPERSEDED: &str = "canary-correction-that-was-superseded";
const MAIL: &str = "canary-message-of-an-agent";
const MAILED: &str = "canary-answer-to-an-agent";
const UNKNOWN: &str = "canary-command-that-matched-nothing";
const CANARIES: [&str; 10] =
    [MEMORY, REFUSED_MEMORY, AGAIN, FOCUS, WAITING, REFUSED, SUPERSEDED, MAIL, MAILED, UNKNOWN];
/// Fixed sentences of the product itself.
const NOTICES: [&str; 3] =
    ["Corrected.", "I couldn't match that to one of my replies.", "I couldn't answer that one."];

fn proposal(scene: &Scene, canary: &str) -> String {
    let acknowledge = "--acknowledge-sensitive-private";
    let rows = scene.world.home.lines(&["proposal-list"]);
    let of_it = |row: &&Value| {
        let id = row["id"].as_str().unwrap();
        scene.world.home.object(&["proposal-show", id, acknowledge])["text"].to_string().contains(canary)
    };
    rows.iter().find(of_it).unwrap()["id"].as_str().unwrap().to_owned()
}

fn decide(scene: &Scene, proposal: &str, disposition: &str) {
    let arguments = ["proposal-decision", "--proposal", proposal, "--disposition", disposition];
    scene.world.home.object(&arguments);
}

fn send_mail(scene: &Scene) {
    let file = scene.at("letter.txt");
    fs::write(&file, MAIL).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let sent = scene.world.home.object(&[
        "agent-send",
        "--from",
        "co",
        "--to",
        "stream-agent-conversation",
        "--thread",
        "t",
        "--message-id",
        "m",
        "--file",
        argument(&file),
        "--wait-seconds",
        "30",
    ]);
    assert_eq!(sent["status"], "completed", "{sent}");
    fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_answer_is_exported_and_nothing_that_was_only_suggested_mailed_or_notified() {
    let scene = Scene::start().await;
    let world = &scene.world;
    world.model.script(vec![
        says("It is Monday."),
        calls(None, vec![memory(MEMORY), focus(FOCUS)]),
        calls(Some("I noted two things."), vec![memory(REFUSED_MEMORY), correction(REFUSED)]),
        calls(Some("And another."), vec![correction(WAITING)]),
        says("The ferry leaves at nine."),
        says(MAILED),
    ]);
    let serve = world.serve();
    world.say(&format!("/correct {UNKNOWN}"));
    world.home.wait_for_deliveries("notice:not-matched", 1);
    world.turn("What day is it?", 1).await;
    scene.correct(SUPERSEDED, 1);
    let first = scene.correct("It is Tuesday.", 2);
    world.turn("Remember the ferry, and follow the news on it.", 2).await;
    world.turn("And the timetable.", 3).await;
    world.turn("Anything else?", 4).await;
    world.turn("When does the ferry leave?", 5).await;
    scene.correct("It leaves at ten.", 3);
    world.home.wait_for_deliveries("notice:corrected", 3);
    send_mail(&scene);
    decide(&scene, &proposal(&scene, REFUSED_MEMORY), "reject");
    decide(&scene, &proposal(&scene, REFUSED), "reject");
    serve.stop();

    let done = scene.private("in.jsonl").exit(0);
    let report = done.object();
    assert_eq!((&report["included"], &report["excluded"]), (&json!(2), &json!({"superseded": 1})));
    let lines = scene.lines("in.jsonl");
    let chosen: Vec<&Value> = lines.iter().map(|line| &line["chosen"][0]["content"]).collect();
    assert_eq!(chosen, ["It is Tuesday.", "It leaves at ten."]);
    let rejected: Vec<&Value> = lines.iter().map(|line| &line["rejected"][0]["content"]).collect();
    assert_eq!(rejected, ["It is Monday.", "The ferry leaves at nine."]);
    assert_eq!(lines[0]["provenance"]["judgment"], first["id"]);
    // The words as the model was given them: the corrected answer, and each message of the person.
    let prompt = lines[1]["prompt"].as_array().unwrap();
    let system = world.model.requests()[4].json["system"].to_string();
    let shown = prompt[0]["content"].as_str().unwrap();
    assert!(
        system.contains(serde_json::to_string(shown).unwrap().trim_matches('"')),
        "the system text as sent"
    );
    let spoken: Vec<&str> = prompt[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(spoken[..2], ["What day is it?", "It is Tuesday."]);
    assert_eq!(spoken.last(), Some(&"When does the ferry leave?"));
    assert!(spoken.contains(&"I noted two things.") && spoken.contains(&"And another."));

    for name in ["in.jsonl", "in.jsonl.manifest.json"] {
        let found = canary::in_bytes(name, scene.text(name).as_bytes(), &CANARIES);
        assert!(found.is_empty(), "{found:?}");
        assert!(NOTICES.iter().all(|notice| !scene.text(name).contains(notice)), "{name}");
    }
    // What was printed and logged holds none of the words that stand in the file.
    let words = ["It is Tuesday.", "It is Monday.", "When does the ferry leave?"];
    let printed = format!("{}{}", done.stdout, done.stderr);
    assert!(words.iter().all(|word| !printed.contains(word)), "{printed}");
    assert!(!scene.text("in.jsonl.manifest.json").contains("ferry"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_of_an_operator_is_in_no_export() {
    let scene = Scene::start().await;
    let world = &scene.world;
    world.model.script(vec![calls(None, vec![memory(AGAIN)]), says("Yes."), says("No.")]);
    let serve = world.serve();
    world.turn("Remember this.", 1).await;
    let memory = world.home.below("context/memory.md");
    let text = fs::read_to_string(&memory).unwrap();
    fs::write(&memory, format!("{text}\n- An edit meanwhile.\n")).unwrap();
    world.home.object(&["scan"]);
    world.home.object(&["proposal-repropose", &proposal(&scene, AGAIN)]);
    assert_eq!(world.home.events("operator.memory-change.proposed@1").len(), 1);
    world.turn("Is it so?", 2).await;
    scene.correct("It is.", 1);
    serve.stop();
    assert_eq!(scene.private("a.jsonl").exit(0).object()["included"], 1);
    assert!(!scene.text("a.jsonl").contains(AGAIN));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_self_correction_trains_here_and_a_released_correction_may_leave() {
    let scene = Scene::start().await;
    let world = &scene.world;
    world.model.script(vec![
        says("The ferry leaves at nine."),
        says("It is Monday."),
        calls(None, vec![correction("It is Wednesday.")]),
        says("It stays until noon."),
    ]);
    let serve = world.serve();
    world.turn("When does the ferry leave?", 1).await;
    let corrected = scene.correct("It leaves at ten.", 1);
    world.turn("What day is it?", 2).await;
    world.turn("Are you sure?", 3).await;
    let own = world.home.lines(&["proposal-list"]).remove(0)["id"].as_str().unwrap().to_owned();
    decide(&scene, &own, "accept");
    let accepted = world.home.wait_for_events("judgment.recorded@2", 2).remove(1);
    world.turn("How long does it stay?", 4).await;
    let later = scene.correct("It stays until one.", 3);
    serve.stop();

    let report = scene.external("none.jsonl").exit(0).object();
    assert_eq!((&report["included"], &report["bytes"]), (&json!(0), &json!(0)));
    assert_eq!(scene.text("none.jsonl"), "");
    let manifest: Value = serde_json::from_str(&scene.text("none.jsonl.manifest.json")).unwrap();
    assert_eq!(manifest["excluded"], json!({"not-externally-eligible": 3}));

    let id = |event: &Value| event["id"].as_str().unwrap().to_owned();
    let home = &world.home;
    let refused = home.json(&["judgment-release", &id(&accepted), "--acknowledge-external"]).exit(3);
    assert_eq!(refused.error()["code"], "not-own-correction");
    // What the model was shown as its own words there is what it suggested.
    let refused = home.json(&["judgment-release", &id(&later), "--acknowledge-external"]).exit(3);
    assert_eq!(refused.error()["code"], "self-correction-in-context");
    assert!(!refused.told().contains("Wednesday"), "{}", refused.stderr);
    assert_eq!(home.json(&["judgment-release", &id(&corrected)]).exit(3).error()["code"], "not-acknowledged");
    assert_eq!(home.events("judgment.recorded@2").len(), 3);
    let released = home.object(&["judgment-release", &id(&corrected), "--acknowledge-external"]);
    assert_eq!(released["supersedes"], corrected["id"]);
    let again = home.object(&["judgment-release", &id(&corrected), "--acknowledge-external"]);
    assert_eq!((&again, released.as_object().unwrap().len()), (&released, 2));
    let events = home.events("judgment.recorded@2");
    assert_eq!((events.len(), &events[3]["id"]), (4, &released["judgment"]));
    assert_eq!(events[3]["parentId"], corrected["payload"]["feedback"]);

    assert_eq!(scene.external("out.jsonl").exit(0).object()["included"], 1);
    assert_eq!(scene.private("in.jsonl").exit(0).object()["included"], 3);
    let (outside, inside) = (scene.lines("out.jsonl"), scene.lines("in.jsonl"));
    assert_eq!(outside[0]["chosen"][0]["content"], "It leaves at ten.");
    assert_eq!(
        (outside[0]["provenance"]["judgment"].clone(), &inside[2]),
        (released["judgment"].clone(), &outside[0])
    );
    assert_eq!(inside[0]["chosen"][0]["content"], "It is Wednesday.");
    assert!(!scene.text("out.jsonl").contains("Wednesday"));
    assert!(inside[1]["prompt"].to_string().contains("It is Wednesday."), "it is what was shown");
}
