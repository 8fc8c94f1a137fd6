//! Many processes at once: equal words converge, of others one wins, and of two changes on one base one is written.

use serde_json::{Value, json};
use thought_testkit::home::Home;
use thought_testkit::run::Done;
use thought_testkit::world::{Speaks, World};

use crate::template::LINE;
use crate::world::{
    CHANGE, CORRECTION, appended, decide, decisions, failures, file, five, judgments, memory_of, receipts,
    three, word,
};

const PROCESSES: usize = 32;

/// Runs commands at once, each in a process of its own.
pub(crate) fn at_once(home: &Home, commands: &[Vec<String>]) -> Vec<Done> {
    std::thread::scope(|scope| {
        let started: Vec<_> = commands
            .iter()
            .map(|command| {
                scope.spawn(move || home.json(&command.iter().map(String::as_str).collect::<Vec<_>>()))
            })
            .collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

pub(crate) fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// The objects of those that exited with 0; all others must have exited with 4.
fn winners(done: &[Done]) -> Vec<Value> {
    let lost = done.iter().filter(|done| done.code == Some(4));
    let lost =
        lost.map(|done| assert_eq!(done.error()["code"], "decided-otherwise", "{}", done.stderr)).count();
    let won: Vec<Value> = done.iter().filter(|done| done.code == Some(0)).map(Done::object).collect();
    let codes: Vec<_> = done.iter().map(|done| done.code).collect();
    assert_eq!(
        won.len() + lost,
        done.len(),
        "{codes:?} {:?}",
        done.iter().map(|d| &d.stderr).collect::<Vec<_>>()
    );
    won
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_processes_with_one_word_converge_on_one_event() {
    let (home, change) = three(CHANGE).await;
    let base = memory_of(&home);
    let commands: Vec<_> = (0..PROCESSES)
        .map(|n| owned(&word(&change, "accept", &["--submission-id", &format!("submission-{n}")])))
        .collect();
    let won = winners(&at_once(&home, &commands));
    assert_eq!(won.len(), PROCESSES);
    assert!(won.iter().all(|told| *told == won[0]), "{won:?}");
    assert_eq!(won[0]["status"], "materialized");
    assert_eq!((decisions(&home).len(), receipts(&home).len()), (1, 1));
    assert_eq!(decisions(&home)[0]["payload"]["submissionId"], won[0]["submissionId"]);
    assert_eq!(memory_of(&home), appended(&base, LINE));
    assert!(failures(&home).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_bound_to_what_was_shown_converges_all_the_same() {
    for _ in 0..4 {
        let (home, change) = three(CHANGE).await;
        let base = memory_of(&home);
        let shown = crate::template::row(&home, CHANGE, 0);
        let (version, text) = (shown["target"]["versionId"].as_str(), shown["textSha256"].as_str());
        let more = ["--expect-base", version.unwrap(), "--expect-sha256", text.unwrap()];
        // The base moves by the very word that the others are about to say.
        let commands = vec![owned(&word(&change, "accept", &more)); 12];
        let won = winners(&at_once(&home, &commands));
        assert_eq!((won.len(), decisions(&home).len(), receipts(&home).len()), (12, 1, 1), "{won:?}");
        assert_eq!(memory_of(&home), appended(&base, LINE));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_processes_with_other_words_one_wins_and_the_others_conflict() {
    let (home, change) = three(CHANGE).await;
    let base = memory_of(&home);
    let commands: Vec<_> = (0..PROCESSES)
        .map(|n| match n {
            0 => owned(&word(&change, "accept", &[])),
            1 => owned(&word(&change, "reject", &[])),
            n => {
                let own = file(&home, &format!("own-{n}"), format!("- Own {n}."));
                owned(&word(&change, "edit", &["--replacement-file", &own]))
            }
        })
        .collect();
    let won = winners(&at_once(&home, &commands));
    assert_eq!(won.len(), 1, "{won:?}");
    assert_eq!(decisions(&home).len(), 1);
    let said = decisions(&home).remove(0);
    let text = match said["payload"]["disposition"].as_str().unwrap() {
        "reject" => None,
        "accept" => Some(LINE.to_owned()),
        _ => Some(said["payload"]["replacement"]["text"].as_str().unwrap().to_owned()),
    };
    let expected = text.map_or(base.clone(), |text| appended(&base, &text));
    assert_eq!(memory_of(&home), expected, "what was decided, and nothing else");
    assert_eq!(won[0]["decision"], said["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_judged_once_however_many_say_so() {
    let (home, correction) = three(CORRECTION).await;
    let commands: Vec<_> = (0..8).map(|_| owned(&word(&correction, "accept", &[]))).collect();
    let won = winners(&at_once(&home, &commands));
    assert!(won.len() == 8 && won.iter().all(|told| told["status"] == "projected"), "{won:?}");
    assert_eq!((decisions(&home).len(), judgments(&home).len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn report_18_a_double_accept_converges_and_accept_against_reject_conflicts() {
    for round in 0..4 {
        let (home, change) = three(CHANGE).await;
        let base = memory_of(&home);
        let accept = || owned(&word(&change, "accept", &[]));
        let won = winners(&at_once(&home, &[accept(), accept()]));
        assert!(won.len() == 2 && won[0] == won[1], "{round}: {won:?}");
        assert_eq!(memory_of(&home), appended(&base, LINE), "one line, not two");

        let (home, change) = three(CHANGE).await;
        let words = [owned(&word(&change, "accept", &[])), owned(&word(&change, "reject", &[]))];
        let won = winners(&at_once(&home, &words));
        assert_eq!(won.len(), 1, "{round}: only one is told that it won: {won:?}");
        let is_written = memory_of(&home) != base;
        assert_eq!(is_written, won[0]["disposition"] == "accept", "{round}");
        assert_eq!((decisions(&home).len(), receipts(&home).len()), (1, usize::from(is_written)));
    }
}

/// One success, the other stale; never two, and never one line twice.
#[track_caller]
fn one_of_two(home: &Home, base: &str, done: &[Done]) {
    let mut ends: Vec<(i32, Value)> = done
        .iter()
        .map(|done| {
            let told = done.object();
            (done.code.unwrap(), json!([told["status"], told["reason"]]))
        })
        .collect();
    ends.sort_by_key(|(code, _)| *code);
    let stale = json!(["materialization-failed", "stale-base"]);
    assert_eq!(ends, [(0, json!(["materialized", null])), (6, stale)]);
    assert_eq!((receipts(home).len(), failures(home)), (1, vec!["stale-base".to_owned()]));
    let memory = memory_of(home);
    let either = [appended(base, "- fact 1"), appended(base, "- fact 2")];
    assert!(either.contains(&memory), "{memory}");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_2_of_two_accepted_appends_on_one_base_one_is_written() {
    for _ in 0..3 {
        let (mut home, ids) = five().await;
        let base = memory_of(&home);
        home.env("THOUGHT_TEST_CRASH_POINT", "decision.after");
        for id in &ids[..2] {
            assert_eq!(decide(&home, id, "accept", &[]).code, None);
        }
        home.unset("THOUGHT_TEST_CRASH_POINT");
        assert_eq!((decisions(&home).len(), memory_of(&home)), (2, base.clone()));
        let project = |id: &str| owned(&["proposal-project", "--proposal", id]);
        let done = at_once(&home, &[project(&ids[0]), project(&ids[1])]);
        one_of_two(&home, &base, &done);
        // And where each is decided and carried out at once.
        let (home, ids) = five().await;
        let accept = |id: &str| owned(&word(id, "accept", &[]));
        let done = at_once(&home, &[accept(&ids[0]), accept(&ids[1])]);
        one_of_two(&home, &base, &done);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projectors_at_once_leave_one_receipt_a_decision() {
    let (mut home, ids) = five().await;
    let base = memory_of(&home);
    home.env("THOUGHT_TEST_CRASH_POINT", "decision.after");
    for id in &ids {
        assert_eq!(decide(&home, id, "accept", &[]).code, None);
    }
    home.unset("THOUGHT_TEST_CRASH_POINT");
    let done = at_once(&home, &vec![owned(&["proposal-project"]); 6]);
    assert!(done.iter().all(|done| matches!(done.code, Some(0 | 6))), "{done:?}");
    assert_eq!((receipts(&home).len(), failures(&home)), (1, vec!["stale-base".to_owned(); 4]));
    assert_eq!(memory_of(&home), appended(&base, "- fact 1"), "the oldest goes first");
    assert!(home.json(&["proposal-project"]).exit(0).stdout.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_serve_that_projects_too_each_word_has_one_outcome() {
    let (home, ids) = five().await;
    let base = memory_of(&home);
    let world = World::around(home, Speaks::Anthropic, None).await;
    let serve = world.serve();
    let home = &world.home;
    // All five at once: whoever is first writes, and every process tells what became of its own.
    let commands: Vec<_> = ids.iter().map(|id| owned(&word(id, "accept", &[]))).collect();
    let done = at_once(home, &commands);
    let written: Vec<_> = done.iter().filter(|done| done.code == Some(0)).collect();
    let stale = done.iter().filter(|done| done.code == Some(6));
    let stale = stale.filter(|done| done.object()["reason"] == "stale-base").count();
    assert_eq!((written.len(), stale), (1, 4), "{done:?}");
    assert_eq!(written[0].object()["status"], "materialized");
    let n = ids.iter().position(|id| written[0].object()["proposal"] == **id).unwrap() + 1;
    let mut expected = appended(&base, &format!("- fact {n}"));
    assert_eq!(memory_of(home), expected);
    // And one after the other, on whatever stands then.
    for (place, id) in ids.iter().enumerate().filter(|(place, _)| *place + 1 != n) {
        let again = home.object(&["proposal-repropose", id]);
        let told = decide(home, again["proposal"].as_str().unwrap(), "accept", &[]).exit(0).object();
        assert_eq!(told["status"], "materialized");
        expected = appended(&expected, &format!("- fact {}", place + 1));
        assert_eq!(memory_of(home), expected);
    }
    serve.stop();
    home.json(&["verify"]).exit(0);
    assert_eq!(
        (receipts(home).len(), failures(home), decisions(home).len()),
        (5, vec!["stale-base".to_owned(); 4], 9)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_propose_the_same_again_make_one_proposal() {
    let (home, ids) = five().await;
    decide(&home, &ids[0], "accept", &[]).exit(0);
    for arguments in [["proposal-repropose", &ids[1]], ["proposal-revert", &ids[0]]] {
        let done = at_once(&home, &vec![owned(&arguments); 8]);
        let told: Vec<Value> = done.into_iter().map(|done| done.exit(0).object()).collect();
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    }
    assert_eq!(home.events("operator.memory-change.proposed@1").len(), 2);
}
