//! Answers and workers that lie, through the whole runtime: whatever is not whole is refused with its reason, costs one
//! request, and leaves no proposal; whatever is whole is taken up to the last character of its bounds.

use serde_json::json;
use thought_contract::event::EventType;
use thought_contract::payload::RunCompleted;
use thought_contract::run::{AttemptState, RunState};
use thought_protocol::packet::Api;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Sensitive};
use thought_runtime::port::ModelReply;
use thought_store::command::Presence;
use thought_store::row::{ProposalFilter, ProposalState};

use crate::ports::{Behaviour, Lie, Says, binding, calls, text};
use crate::proposals::{correction, home, memory, with_history};
use crate::support::Home;
use crate::table::{Case, Expect, cases};

const PROPOSED: [EventType; 3] =
    [EventType::MemoryChangeProposed, EventType::CorrectionProposed, EventType::FocusProposed];
const THREE: &str = "proposals:\n    - memory-change\n    - self-correction\n    - focus-declaration";
/// Cases that share a home: its history must keep the turns that they cite.
const CASES_A_HOME: usize = 40;
/// Delivered turns, so that there are as many ids as the table cites.
const TURNS: i64 = 7;

async fn proposal_events(home: &Home) -> usize {
    let mut count = 0;
    for event_type in PROPOSED {
        count += home.events(event_type).await.len();
    }
    count
}

/// The ids of the table, and what stands for each here: 1 the oldest target, 2 the newest, 3 a source message, 9 what
/// was never admitted, and 10 to 27 all the rest that may be cited.
async fn stand_ins(home: &Home) -> Vec<(String, EventId)> {
    home.dispatcher(Presence::AtWork).await;
    let at_work = home.start().await;
    let (mut outputs, mut others) = (Vec::new(), Vec::new());
    for number in 1..=TURNS {
        let message = home.message(number, "Hello").await;
        let output = home.until(&message, RunState::Completed).await.output.unwrap();
        others.push(message);
        others.push(home.deliver(&output, 100 + number).await);
        outputs.push(output);
    }
    at_work.stop().await;
    home.dispatcher(Presence::Away).await;
    let (oldest, newest) = (outputs.remove(0), outputs.pop().unwrap());
    others.extend(outputs);
    let mut ids = vec![(1, oldest), (2, newest), (3, others.remove(0))];
    ids.extend((10..).zip(others));
    ids.into_iter().map(|(number, id): (u32, EventId)| (format!("evt_{number:032}"), id)).collect()
}

/// Runs cases of one API through runs of one home; how many were refused, and how many taken.
async fn tried(api: Api, cases: Vec<Case>) -> (usize, usize) {
    let home = Home::new().await;
    let stand_ins = stand_ins(&home).await;
    let bound = thought_runtime::port::Binding { api, ..binding("model-1") };
    *home.model.binding.lock().unwrap() = Ok(bound);
    let at_work = home.start().await;
    let (mut refused, mut taken, mut proposed) = (0, 0, 0);
    for (message, case) in (1_000..).zip(cases) {
        let mut body = String::from_utf8(case.body).unwrap();
        for (written, id) in &stand_ins {
            body = body.replace(written, id.as_str());
        }
        let before = home.model.request_count();
        home.model.says([Says::Reply(ModelReply::Answered { body: Sensitive::new(body.into_bytes()) })]);
        let trigger = home.message(message, "And now?").await;
        match case.expect {
            Expect::Reason(reason) => {
                let run = home.until(&trigger, RunState::Failed).await;
                assert_eq!(run.reason.as_deref(), Some(reason.as_str()), "{}", case.name);
                assert_eq!((run.attempts, run.output), (1, None), "{}", case.name);
                refused += 1;
            }
            Expect::Valid(valid) => {
                let run = home.until(&trigger, RunState::Completed).await;
                let terminal = home.reader().event(run.terminal.unwrap()).await.unwrap().unwrap();
                let completed: RunCompleted = terminal.payload().unwrap();
                let kinds: Vec<ProposalKind> = completed.proposals.iter().map(|named| named.kind).collect();
                assert_eq!(json!(kinds), valid["kinds"], "{}", case.name);
                proposed += kinds.len();
                taken += 1;
            }
        }
        assert_eq!(home.model.request_count(), before + 1, "{}: one request", case.name);
        assert_eq!(proposal_events(&home).await, proposed, "{}", case.name);
    }
    at_work.stop().await;
    let index = home.reader().proposal_counts().await.unwrap();
    assert_eq!(index.states.iter().map(|(_, count)| *count).sum::<u64>(), proposed as u64);
    (refused, taken)
}

async fn the_table_through_the_runtime(name: &str, api: Api) {
    let prefix = [format!("{name}: "), format!("{name}-")];
    let mut cases: Vec<Case> = cases()
        .into_iter()
        // The packets that no snapshot here can have are tried by the codec alone.
        .filter(|case| case.name.starts_with(&prefix[0]) && !case.name.starts_with(&prefix[1]))
        .collect();
    let (mut refused, mut taken) = (0, 0);
    while !cases.is_empty() {
        let rest = cases.split_off(cases.len().min(CASES_A_HOME));
        let (no, yes) = tried(api, std::mem::replace(&mut cases, rest)).await;
        (refused, taken) = (refused + no, taken + yes);
    }
    assert!(refused >= 200 && taken >= 50, "{refused} refused, {taken} taken");
}

#[tokio::test]
async fn hostile_answers_are_refused_and_honest_ones_at_their_bounds_taken_on_the_anthropic_api() {
    the_table_through_the_runtime("anthropic", Api::AnthropicMessages).await;
}

#[tokio::test]
async fn hostile_answers_are_refused_and_honest_ones_at_their_bounds_taken_on_the_openai_api() {
    the_table_through_the_runtime("openai", Api::OpenaiChat).await;
}

#[tokio::test]
async fn a_lying_worker_is_refused_by_the_parent_whatever_it_says_of_the_calls() {
    for lie in Lie::ALL {
        let home = home().await;
        with_history(&home).await;
        home.dispatcher(Presence::Away).await;
        *home.jail.behaviour.lock().unwrap() = Some(Behaviour::Lies(lie));
        home.model.says([Says::Reply(calls("", &[memory("Tea at five."), correction("latest")]))]);
        let before = home.model.request_count();
        let at_work = home.start().await;
        let trigger = home.message(2, "Remember tea, and you were wrong").await;
        let run = home.until(&trigger, RunState::Failed).await;
        at_work.stop().await;
        let reason = match lie {
            // What is not even of the result's form says nothing that could be compared.
            Lie::AddsAMember | Lie::ApprovesItself => "worker-protocol",
            _ => "worker-mismatch",
        };
        assert_eq!(run.reason.as_deref(), Some(reason), "{lie:?}");
        assert_eq!(home.model.request_count(), before + 1, "{lie:?}: the answer is not asked for again");
        assert_eq!(home.attempts(&run.id).await[0].state, AttemptState::Answered, "{lie:?}");
        assert_eq!(proposal_events(&home).await, 0, "{lie:?}");
        assert_eq!(
            home.events(EventType::MessageObservation).await.len(),
            1,
            "{lie:?}: the first turn's alone"
        );
        assert!(
            home.reader()
                .proposals(ProposalFilter { limit: 9, ..ProposalFilter::default() })
                .await
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn tools_on_offer_are_those_declared_and_available() {
    let all = ["request_memory_change", "submit_correction", "propose_focus"];
    let offered = async |home: &Home, number: i64| {
        let at_work = home.start().await;
        let trigger = home.message(number, "Hello").await;
        home.until(&trigger, RunState::Completed).await;
        at_work.stop().await;
        let request = home.model.request(home.model.request_count() - 1);
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        for tool in &tools {
            assert_eq!(tool["input_schema"]["additionalProperties"], json!(false), "{tool}");
        }
        let choice = request.get("tool_choice").cloned();
        assert_eq!(choice, (!tools.is_empty()).then(|| json!({"type": "auto"})));
        assert_eq!(request.get("tools").is_some(), !tools.is_empty(), "no empty list");
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Nothing was delivered yet, so there is nothing to correct.
    let home = home().await;
    assert_eq!(offered(&home, 1).await, [all[0], all[2]]);
    let with = Home::new().await;
    with_history(&with).await;
    assert_eq!(offered(&with, 2).await, all);
    for (declared, on_offer) in [
        ("proposals:\n    - self-correction", vec![]),
        ("proposals:\n    - memory-change", vec![all[0]]),
        ("proposals:\n    - focus-declaration\n    - memory-change", vec![all[0], all[2]]),
        ("proposals: []", vec![]),
    ] {
        let home = Home::with(|text| text.replace(THREE, declared)).await;
        home.dispatcher(Presence::Away).await;
        assert_eq!(offered(&home, 1).await, on_offer, "{declared}");
    }
}

#[tokio::test]
async fn words_that_claim_a_suggestion_leave_no_call_in_history() {
    let home = home().await;
    home.dispatcher(Presence::AtWork).await;
    let claim = "I saved that as a memory suggestion.";
    home.model.says([Says::Reply(text(claim))]);
    let at_work = home.start().await;
    let first = home.message(1, "Remember tea").await;
    let output = home.until(&first, RunState::Completed).await.output.unwrap();
    home.deliver(&output, 100).await;
    let second = home.message(2, "And?").await;
    home.until(&second, RunState::Completed).await;
    at_work.stop().await;
    assert_eq!(proposal_events(&home).await, 0);
    let messages = home.model.request(1)["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 3, "{messages}");
    assert!(messages.to_string().contains(claim) && !messages.to_string().contains("tool_use"), "{messages}");
}

#[tokio::test]
async fn latest_stands_in_no_event_and_no_receipt_and_no_history() {
    let home = home().await;
    let (target, _) = with_history(&home).await;
    home.model.says([Says::Reply(calls("", &[correction("latest")]))]);
    let at_work = home.start().await;
    let trigger = home.message(2, "You were wrong").await;
    let output = home.until(&trigger, RunState::Completed).await.output.unwrap();
    home.deliver(&output, 101).await;
    let third = home.message(3, "And?").await;
    home.until(&third, RunState::Completed).await;
    at_work.stop().await;
    for event_type in EventType::ALL {
        for event in home.events(*event_type).await {
            let payload = String::from_utf8(event.payload.expose().clone()).unwrap();
            assert!(!payload.contains("latest"), "{event_type}");
        }
    }
    let messages = home.model.request(2)["messages"].to_string();
    assert!(!messages.contains("latest") && messages.contains(target.as_str()), "{messages}");
}

#[tokio::test]
async fn an_answer_that_was_not_delivered_cannot_be_corrected() {
    let home = home().await;
    home.model.says([Says::Reply(text("It is Monday.")), Says::Reply(calls("", &[correction("latest")]))]);
    let at_work = home.start().await;
    let first = home.message(1, "What day is it?").await;
    home.until(&first, RunState::Completed).await;
    let second = home.message(2, "You were wrong").await;
    let run = home.until(&second, RunState::Failed).await;
    at_work.stop().await;
    assert_eq!(run.reason.as_deref(), Some("unknown-tool"), "the tool was not on offer");
    assert_eq!(proposal_events(&home).await, 0);
}

#[tokio::test]
async fn an_admitted_evidence_id_is_no_target() {
    let home = home().await;
    let (_, receipt) = with_history(&home).await;
    home.model.says([Says::Reply(calls("", &[correction(receipt.as_str())]))]);
    let at_work = home.start().await;
    let trigger = home.message(2, "You were wrong").await;
    let run = home.until(&trigger, RunState::Failed).await;
    at_work.stop().await;
    assert_eq!(run.reason.as_deref(), Some("target-not-admitted"));
}

#[tokio::test]
async fn other_proposals_under_an_installed_version_are_refused_and_a_higher_version_takes_them() {
    use crate::support::{TELEGRAM, package};
    use thought_runtime::declarations::{Error, Installed};
    let home = Home::new().await;
    let fewer = |text: String| text.replace("    - focus-declaration\n", "");
    let refused = home.install(&package(TELEGRAM, fewer)).await;
    assert!(matches!(refused, Err(Error::FingerprintChanged { version: 1, .. })), "{refused:?}");
    let second = |text: String| fewer(text).replace("version: 1", "version: 2");
    assert!(matches!(home.install(&package(TELEGRAM, second)).await.unwrap(), Installed::Now { .. }));
    home.dispatcher(Presence::Away).await;
    home.model.says([Says::Reply(calls("", &[crate::proposals::focus()]))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "/focus on mornings").await;
    assert_eq!(home.until(&trigger, RunState::Failed).await.reason.as_deref(), Some("unknown-tool"));
    at_work.stop().await;
}

#[tokio::test]
async fn a_focus_waits_for_nobody_and_the_rest_waits_for_a_person() {
    let home = home().await;
    home.model.says([Says::Reply(calls("", &[memory("Tea at five."), crate::proposals::focus()]))]);
    let at_work = home.start().await;
    let trigger = home.message(1, "Remember tea, and look at mornings").await;
    let run = home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
    let all = ProposalFilter { limit: 9, ..ProposalFilter::default() };
    let rows = home.reader().proposals(all).await.unwrap();
    let found: Vec<_> = rows.iter().map(|row| (row.kind, row.state, row.run.clone())).collect();
    assert_eq!(
        found,
        [
            (ProposalKind::MemoryChange, ProposalState::Undecided, Some(run.id.clone())),
            (ProposalKind::FocusDeclaration, ProposalState::Inert, Some(run.id)),
        ]
    );
    let counts = home.reader().proposal_counts().await.unwrap();
    assert_eq!(counts.of(ProposalState::Undecided), 1);
}

#[tokio::test]
async fn calls_in_strict_json_mode_are_refused_whatever_they_are() {
    let strict =
        |text: String| text.replace(THREE, "proposals: []").replace("conversation-text\n", "strict-json\n");
    let home = Home::with(strict).await;
    home.dispatcher(Presence::Away).await;
    let at_work = home.start().await;
    for (message, (says, reason)) in (1..).zip([
        (calls("", &[memory("Tea at five.")]), "calls-in-strict-json"),
        (calls("{}", &[memory("Tea at five.")]), "calls-in-strict-json"),
        (text("Good morning."), "not-json"),
    ]) {
        home.model.says([Says::Reply(says)]);
        let trigger = home.message(message, "Hello").await;
        assert_eq!(home.until(&trigger, RunState::Failed).await.reason.as_deref(), Some(reason));
    }
    home.model.says([Says::Reply(text("{\"said\": \"good morning\"}"))]);
    let trigger = home.message(9, "Hello").await;
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
    assert_eq!(proposal_events(&home).await, 0);
}

#[tokio::test]
async fn with_tool_history_and_nothing_on_offer_the_tools_stay_and_no_call_is_taken() {
    use crate::support::{TELEGRAM, package};
    let home = home().await;
    home.dispatcher(Presence::AtWork).await;
    home.model.says([Says::Reply(calls("", &[memory("Tea at five.")]))]);
    let at_work = home.start().await;
    let first = home.message(1, "Remember tea").await;
    let output = home.until(&first, RunState::Completed).await.output.unwrap();
    home.deliver(&output, 100).await;
    at_work.stop().await;
    let silent = |text: String| text.replace(THREE, "proposals: []").replace("version: 1", "version: 2");
    home.install(&package(TELEGRAM, silent)).await.unwrap();
    home.model.says([Says::Reply(calls("", &[memory("Tea at six.")]))]);
    let at_work = home.start().await;
    let second = home.message(2, "And cake").await;
    let run = home.until(&second, RunState::Failed).await;
    at_work.stop().await;
    assert_eq!(run.reason.as_deref(), Some("unknown-tool"));
    let request = home.model.request(1);
    assert_eq!(request["tool_choice"], json!({"type": "none"}));
    assert_eq!(request["tools"][0]["name"], "request_memory_change");
    assert!(request["messages"].to_string().contains("tool_use"));
    assert_eq!(proposal_events(&home).await, 1, "the first turn's alone");
}
