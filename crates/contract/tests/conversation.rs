//! What is history and what is not: each rule of exclusion by its name.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

#[expect(dead_code, unreachable_pub, reason = "each test binary uses its part")]
mod conversation_world;

use conversation_world::*;
use thought_contract::conversation::{
    AdmittedReply, AdmittedTurn, Conversation, ReadTurn, Reply, ReplyOmission, RunEvidence, TriggerRefusal,
    TurnExclusion, effective_output, message_words,
};
use thought_contract::declaration::Declaration;
use thought_contract::event::{Actor, EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::RunState;
use thought_protocol::proposal::{ProposalCall, ProposalKind, ToolName};
use thought_protocol::{EventId, Sha256Hex};

fn read(world: &World, trigger: &StoredEvent, check: impl FnOnce(Vec<ReadTurn<'_>>)) {
    let conversation = Conversation::open(&world.declaration, trigger).unwrap();
    check(conversation.read(&world.turns));
}

fn admitted<'a>(read: &'a ReadTurn<'a>) -> &'a AdmittedTurn<'a> {
    match read {
        ReadTurn::Admitted(turn) => turn,
        ReadTurn::Excluded(turn) => panic!("excluded: {}", turn.reason),
    }
}

/// Reads a world with one turn and says what became of its answer.
fn reply_of(world: &mut World, check: impl FnOnce(Result<&AdmittedReply<'_>, ReplyOmission>)) {
    let trigger = world.message("and now");
    read(world, &trigger, |turns| {
        let turn = admitted(&turns[0]);
        check(turn.reply.as_ref().map_err(|reason| *reason));
    });
}

/// Changes the one run of a one-turn world and expects this omission; the words must stay.
fn omitted(change: impl FnOnce(&mut World, &mut RunEvidence), expected: ReplyOmission) {
    omitted_in(World::telegram(), change, expected);
}

fn omitted_in(mut world: World, change: impl FnOnce(&mut World, &mut RunEvidence), expected: ReplyOmission) {
    world.exchange("hello", "good day");
    let mut run = world.turns[0].runs.remove(0);
    change(&mut world, &mut run);
    world.turns[0].runs.push(run);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap_err(), expected));
}

fn change_output(run: &mut RunEvidence, change: impl FnOnce(&mut p::MessageObservation)) {
    let output = run.output.clone().unwrap();
    let mut payload: p::MessageObservation = output.payload().unwrap();
    change(&mut payload);
    run.output = Some(rewritten(&output, &payload));
}

fn change_receipt(run: &mut RunEvidence, change: impl FnOnce(&mut p::DeliveryTelegram)) {
    let receipt = run.receipt.clone().unwrap();
    let mut payload: p::DeliveryTelegram = receipt.payload().unwrap();
    change(&mut payload);
    run.receipt = Some(rewritten(&receipt, &payload));
}

#[test]
fn a_delivered_answer_is_history_and_a_correction_target() {
    let mut world = World::telegram();
    world.exchange("hello", "good day");
    let run = world.turns[0].runs[0].clone();
    let root = world.turns[0].message.envelope.id.clone();
    reply_of(&mut world, |reply| {
        let reply = reply.unwrap();
        assert_eq!(reply.text, "good day");
        assert!(reply.calls.is_empty());
        let target = reply.target.clone().unwrap();
        assert_eq!(target.run, run.run);
        assert_eq!(target.output, run.output.unwrap().envelope.id);
        assert_eq!(target.delivery_receipt, run.receipt.unwrap().envelope.id);
        assert_eq!(target.source_root, root);
        assert_eq!(target.contract, p::OutputContract::ConversationText);
    });
}

#[test]
fn the_words_stay_when_the_run_failed() {
    let mut world = World::telegram();
    let turn = world.say("hello");
    world.fail(turn);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap_err(), ReplyOmission::NoCompletedRun));
}

#[test]
fn the_words_stay_when_there_was_no_run() {
    let mut world = World::telegram();
    world.say("hello");
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap_err(), ReplyOmission::NoCompletedRun));
}

#[test]
fn a_failed_run_beside_the_completed_one_does_not_stand_in_its_way() {
    let mut world = World::telegram();
    let turn = world.say("hello");
    world.fail(turn);
    world.answer(turn, "after a retry");
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap().text, "after a retry"));
}

#[test]
fn two_completed_runs_prove_neither() {
    let mut world = World::telegram();
    world.exchange("hello", "one");
    let agent = world.agent();
    let second = world.completed_run(0, &agent, 2, "two", &[]);
    world.turns[0].runs.push(second);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap_err(), ReplyOmission::SeveralCompletedRuns));
}

#[test]
fn an_agent_that_is_not_on_the_list_has_no_history() {
    let mut world = World::telegram();
    world.say("hello");
    let foreign = world.completed_run(0, "another-agent", 1, "words of another", &[]);
    world.turns[0].runs.push(foreign);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap_err(), ReplyOmission::AgentNotAdmitted));
}

#[test]
fn every_version_of_an_agent_on_the_list_counts() {
    let mut world = World::telegram();
    world.say("hello");
    let agent = world.agent();
    let newer = world.completed_run(0, &agent, 7, "by a later version", &[]);
    world.turns[0].runs.push(newer);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap().text, "by a later version"));
}

#[test]
fn an_output_that_is_missing() {
    omitted(|_, run| run.output = None, ReplyOmission::OutputMissing);
}

#[test]
fn an_output_of_another_run() {
    let foreign = |run: &mut RunEvidence| {
        let other = thought_contract::run::run_id("other-agent", 1, &EventId::of("t", &[]), 0);
        change_output(run, |payload| payload.run = other);
    };
    omitted(|_, run| foreign(run), ReplyOmission::OutputInvalid);
}

#[test]
fn an_output_that_is_not_the_canonical_one() {
    let change = |run: &mut RunEvidence| run.output.as_mut().unwrap().envelope.id = EventId::of("x", &[]);
    omitted(|_, run| change(run), ReplyOmission::OutputInvalid);
}

#[test]
fn an_output_under_another_root() {
    let change =
        |run: &mut RunEvidence| run.output.as_mut().unwrap().envelope.root_id = EventId::of("x", &[]);
    omitted(|_, run| change(run), ReplyOmission::OutputInvalid);
}

#[test]
fn an_output_of_another_contract_version_or_snapshot() {
    omitted(|_, run| change_output(run, |o| o.agent.version = 9), ReplyOmission::OutputInvalid);
    let other = thought_contract::run::snapshot_id(&thought_contract::run::run_id(
        "x-y",
        1,
        &EventId::of("t", &[]),
        0,
    ));
    omitted(|_, run| change_output(run, |o| o.context_snapshot = other), ReplyOmission::OutputInvalid);
    let forge = |run: &mut RunEvidence| {
        let output = run.output.clone().unwrap();
        let mut payload: serde_json::Value = serde_json::from_slice(output.payload.expose()).unwrap();
        payload["contract"] = "another-contract@1".into();
        run.output = Some(rewritten(&output, &payload));
    };
    omitted(|_, run| forge(run), ReplyOmission::OutputInvalid);
}

#[test]
fn an_output_in_another_voice() {
    let change = |run: &mut RunEvidence| {
        run.output.as_mut().unwrap().envelope.actor = Actor::new("agent:another-agent");
    };
    omitted(|_, run| change(run), ReplyOmission::OutputInvalid);
}

#[test]
fn an_output_without_a_word() {
    omitted(|_, run| change_output(run, |o| o.summary.clear()), ReplyOmission::OutputInvalid);
}

#[test]
fn a_completion_that_is_missing_or_names_another_output() {
    omitted(|_, run| run.completed = None, ReplyOmission::CompletionInvalid);
    let change = |run: &mut RunEvidence| {
        let completed = run.completed.clone().unwrap();
        let mut payload: p::RunCompleted = completed.payload().unwrap();
        payload.output = EventId::of("x", &[]);
        run.completed = Some(rewritten(&completed, &payload));
    };
    omitted(|_, run| change(run), ReplyOmission::CompletionInvalid);
}

#[test]
fn an_answer_that_was_not_delivered() {
    omitted(|_, run| run.reply = Reply::NotDelivered, ReplyOmission::NotDelivered);
    omitted(|_, run| run.receipt = None, ReplyOmission::NotDelivered);
}

#[test]
fn an_answer_that_is_still_on_its_way() {
    omitted(|_, run| run.reply = Reply::Pending, ReplyOmission::DeliveryPending);
}

#[test]
fn a_receipt_of_another_chat_or_thread() {
    omitted(|_, run| change_receipt(run, |r| r.chat_id = 1), ReplyOmission::DeliveryInvalid);
    omitted(|_, run| change_receipt(run, |r| r.thread_id = Some(1)), ReplyOmission::DeliveryInvalid);
}

#[test]
fn a_receipt_of_another_source_or_root() {
    let source = |run: &mut RunEvidence| {
        run.receipt.as_mut().unwrap().envelope.source = SourceName::new("delivery:telegram:other");
    };
    omitted(|_, run| source(run), ReplyOmission::DeliveryInvalid);
    let root = |run: &mut RunEvidence| run.receipt.as_mut().unwrap().envelope.root_id = EventId::of("x", &[]);
    omitted(|_, run| root(run), ReplyOmission::DeliveryInvalid);
}

#[test]
fn a_receipt_of_another_output_or_of_a_notice() {
    let other = EventId::of("x", &[]);
    omitted(|_, run| change_receipt(run, |r| r.output = Some(other)), ReplyOmission::DeliveryInvalid);
    omitted(
        |_, run| change_receipt(run, |r| r.kind = p::DeliveryKind::RunFailed),
        ReplyOmission::DeliveryInvalid,
    );
    omitted(|_, run| change_receipt(run, |r| r.chunks.clear()), ReplyOmission::DeliveryInvalid);
}

#[test]
fn a_judgment_of_another_output() {
    let change = |world: &mut World, run: &mut RunEvidence| {
        let judgment = world.judgment(run, "other words");
        let mut payload: p::JudgmentRecorded = judgment.payload().unwrap();
        payload.target.output = EventId::of("x", &[]);
        run.judgment = Some(rewritten(&judgment, &payload));
    };
    omitted(change, ReplyOmission::JudgmentInvalid);
}

#[test]
fn a_corrected_answer_says_what_the_judgment_says() {
    let mut world = World::telegram();
    world.exchange("hello", "wrong words");
    world.judge(0, "right words");
    let run = world.turns[0].runs[0].clone();
    let effective = effective_output(run.output.as_ref().unwrap(), run.judgment.as_ref()).unwrap();
    assert_eq!(effective.summary, "right words");
    reply_of(&mut world, |reply| {
        let reply = reply.unwrap();
        assert_eq!(reply.text, "right words");
        assert!(reply.judgment.is_some() && reply.target.is_some());
    });
}

#[test]
fn an_answer_cut_by_length_is_history_without_the_line_of_its_delivery() {
    let mut world = World::telegram();
    world.exchange("hello", "a long sto");
    let mut run = world.turns[0].runs.remove(0);
    change_output(&mut run, |output| output.truncated = true);
    world.turns[0].runs.push(run);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap().text, "a long sto"));
}

#[test]
fn a_proposal_turn_shows_calls_under_synthetic_ids_with_the_resolved_target() {
    let mut world = World::telegram();
    world.exchange("hello", "good day");
    let corrected = world.turns[0].runs[0].output.clone().unwrap().envelope.id;
    let turn = world.say("remember, correct and follow");
    world.propose(turn, "I saved those.", &ProposalKind::ALL);
    let proposals = world.turns[turn].runs[0].proposals.clone();
    let trigger = world.message("and now");
    read(&world, &trigger, |turns| {
        let reply = admitted(&turns[1]).reply.as_ref().unwrap();
        let names: Vec<ToolName> = reply.calls.iter().map(|call| call.name).collect();
        assert_eq!(names, ToolName::ALL);
        for (call, event) in reply.calls.iter().zip(&proposals) {
            assert_eq!(call.id, thought_protocol::proposal::synthetic_call_id(&event.envelope.id));
            assert_eq!(call.id.len(), 29);
            assert!(!call.arguments.contains("latest"));
        }
        assert!(reply.calls[1].arguments.contains(corrected.as_str()));
        // What history shows is what the validators of a call would take.
        let capability = thought_protocol::capability::PacketCapability {
            memory_target: true,
            correction_targets: vec![corrected.clone()],
            evidence: vec![world.turns[turn].message.envelope.id.clone()],
        };
        for call in &reply.calls {
            let arguments = serde_json::from_str(&call.arguments).unwrap();
            let read = ProposalCall::from_arguments(call.name, &arguments, &capability).unwrap();
            assert_eq!(read.canonical_arguments().unwrap(), call.arguments);
        }
    });
}

#[test]
fn words_that_claim_a_proposal_make_no_call() {
    let mut world = World::telegram();
    world.exchange("remember it", "I saved that as a memory suggestion.");
    reply_of(&mut world, |reply| assert!(reply.unwrap().calls.is_empty()));
}

#[test]
fn a_proposal_that_the_completion_does_not_name_takes_the_answer_out() {
    let propose = |world: &mut World, run: &mut RunEvidence| {
        let agent = world.agent();
        *run = world.completed_run(0, &agent, 1, "saved", &[ProposalKind::MemoryChange]);
    };
    omitted(
        |world, run| {
            propose(world, run);
            run.proposals.clear();
        },
        ReplyOmission::ProposalInvalid,
    );
    omitted(
        |world, run| {
            propose(world, run);
            run.proposals[0].envelope.id = EventId::of("x", &[]);
        },
        ReplyOmission::ProposalInvalid,
    );
    omitted(
        |world, run| {
            propose(world, run);
            let mut payload: p::MemoryChangeProposed = run.proposals[0].payload().unwrap();
            payload.proposer.output = EventId::of("x", &[]);
            run.proposals[0] = rewritten(&run.proposals[0], &payload);
        },
        ReplyOmission::ProposalInvalid,
    );
    omitted(
        |world, run| {
            propose(world, run);
            run.proposals[0].envelope.parent_id = None;
        },
        ReplyOmission::ProposalInvalid,
    );
}

#[test]
fn what_was_said_to_another_sender_is_history_and_no_target() {
    let mut world = World::telegram();
    let mut payload = world.telegram_message(1, "from somebody else");
    payload.user_id = 99;
    let message = world.append_telegram(&payload);
    world.push(message);
    world.answer(0, "to somebody else");
    reply_of(&mut world, |reply| {
        let reply = reply.unwrap();
        assert_eq!(reply.text, "to somebody else");
        assert!(reply.target.is_none());
    });
}

fn excluded(mut world: World, message: StoredEvent, expected: TurnExclusion) {
    world.push(message);
    let trigger = world.message("and now");
    read(&world, &trigger, |turns| match &turns[0] {
        ReadTurn::Excluded(turn) => assert_eq!((turn.reason, turn.ordinal), (expected, 1)),
        ReadTurn::Admitted(_) => panic!("admitted"),
    });
}

#[test]
fn another_chat_and_another_thread_are_other_conversations() {
    for change in [(1, None), (CHAT, Some(5))] {
        let mut world = World::telegram();
        let mut payload = world.telegram_message(1, "elsewhere");
        (payload.chat_id, payload.thread_id) = change;
        let message = world.append_telegram(&payload);
        excluded(world, message, TurnExclusion::OtherConversation);
    }
}

#[test]
fn a_later_message_and_the_trigger_itself_are_no_history() {
    let mut world = World::telegram();
    let trigger = world.message("now");
    world.push(trigger.clone());
    let later = world.message("later");
    world.push(later);
    read(&world, &trigger, |turns| {
        for turn in &turns {
            assert!(matches!(turn, ReadTurn::Excluded(turn) if turn.reason == TurnExclusion::Later));
        }
        assert_eq!(turns.len(), 2);
    });
}

#[test]
fn a_message_without_words_or_of_a_broken_route_is_no_history() {
    let mut world = World::telegram();
    let message = world.message("");
    excluded(world, message, TurnExclusion::Empty);
    let mut world = World::telegram();
    let mut message = world.message("words");
    message.envelope.actor = Actor::new("human:telegram:1");
    excluded(world, message, TurnExclusion::Malformed);
    let mut world = World::telegram();
    let mut message = world.message("words");
    message.envelope.root_id = EventId::of("x", &[]);
    excluded(world, message, TurnExclusion::Malformed);
}

#[test]
fn images_of_earlier_messages_stand_as_a_word_before_the_words() {
    let mut world = World::telegram();
    let mut payload = world.telegram_message(1, "look\nhere");
    let image = p::Image {
        blob_sha256: Sha256Hex::of(b"i"),
        media_type: "image/png".to_owned(),
        byte_count: 1,
        width: 1,
        height: 1,
    };
    payload.images = vec![image.clone(), image];
    let message = world.append_telegram(&payload);
    let words = message_words(&message).unwrap();
    assert_eq!(words.as_history(), "[image]\n[image]\nlook\nhere");
    payload.text = None;
    let message = world.append_telegram(&payload);
    let alone = message_words(&message).unwrap();
    assert_eq!(alone.as_history(), "[image]\n[image]");
    for words in [words, alone] {
        assert_eq!(words.history_characters(), words.as_history().chars().count());
    }
}

// The six rules of a thread between agents.

#[test]
fn rule_1_only_the_same_source_sender_recipient_and_thread() {
    let other_thread = |payload: &mut p::AgentMessage| payload.thread_id = "t2".to_owned();
    let other_recipient =
        |payload: &mut p::AgentMessage| payload.recipient_agent_id = "other-agent".to_owned();
    let other_sender = |payload: &mut p::AgentMessage| payload.sender_agent_id = "bo".to_owned();
    let changes: [&dyn Fn(&mut p::AgentMessage); 3] = [&other_thread, &other_recipient, &other_sender];
    for change in changes {
        let mut world = World::agents();
        let mut payload = world.agent_message(1, "elsewhere");
        change(&mut payload);
        let message = world.append_mail(&payload);
        excluded(world, message, TurnExclusion::OtherConversation);
    }
}

#[test]
fn rule_2_an_answer_needs_a_completed_run_of_this_declaration_and_no_delivery() {
    let mut world = World::agents();
    world.exchange("hello", "good day");
    reply_of(&mut world, |reply| {
        let reply = reply.unwrap();
        assert_eq!(reply.text, "good day");
        assert!(reply.receipt.is_none() && reply.target.is_none());
    });
    let mut world = World::agents();
    world.say("hello");
    world.fail(0);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap_err(), ReplyOmission::NoCompletedRun));
    let mut world = World::agents();
    world.say("hello");
    let foreign = world.completed_run(0, "other-agent", 1, "by another", &[]);
    world.turns[0].runs.push(foreign);
    reply_of(&mut world, |reply| assert_eq!(reply.unwrap_err(), ReplyOmission::AgentNotAdmitted));
}

#[test]
fn rule_2_an_answer_reverses_sender_and_recipient_exactly() {
    let changes: [&dyn Fn(&mut p::DerivedAgentMessage); 6] = [
        &|answer| answer.sender_agent_id = "co".to_owned(),
        &|answer| answer.recipient_agent_id = "bo".to_owned(),
        &|answer| answer.thread_id = "t2".to_owned(),
        &|answer| answer.in_reply_to = "m0".to_owned(),
        &|answer| answer.input_sequence = 99,
        &|answer| answer.agent.id = "other-agent".to_owned(),
    ];
    for change in changes {
        let rewrite = |run: &mut RunEvidence| {
            let output = run.output.clone().unwrap();
            let mut payload: p::DerivedAgentMessage = output.payload().unwrap();
            change(&mut payload);
            run.output = Some(rewritten(&output, &payload));
        };
        omitted_in(World::agents(), |_, run| rewrite(run), ReplyOmission::OutputInvalid);
    }
}

#[test]
fn rule_4_malformed_routes_and_later_events_are_excluded() {
    let changes: [&dyn Fn(&mut StoredEvent); 4] = [
        &|event| event.envelope.actor = Actor::new("agent:Co"),
        &|event| event.envelope.correlation_id = Some("t2".to_owned()),
        &|event| event.envelope.external_id = None,
        &|event| event.envelope.parent_id = Some(EventId::of("x", &[])),
    ];
    for change in changes {
        let mut world = World::agents();
        let mut message = world.message("hello");
        change(&mut message);
        excluded(world, message, TurnExclusion::Malformed);
    }
    let mut world = World::agents();
    let mut message = world.message("hello");
    message.envelope.sequence = 1_000;
    excluded(world, message, TurnExclusion::Later);
}

#[test]
fn a_trigger_is_refused_by_name() {
    let mut world = World::agents();
    let refusal =
        |declaration: &Declaration, event: &StoredEvent| Conversation::open(declaration, event).unwrap_err();
    let good = world.message("hello");
    assert!(Conversation::open(&world.declaration, &good).is_ok());

    let mut wrong = good.clone();
    wrong.envelope.actor = Actor::new("agent:bo");
    assert_eq!(refusal(&world.declaration, &wrong), TriggerRefusal::Route);

    let mut payload = world.agent_message(5, "to another");
    payload.recipient_agent_id = "other-agent".to_owned();
    let elsewhere = world.append_mail(&payload);
    assert_eq!(refusal(&world.declaration, &elsewhere), TriggerRefusal::Route);

    let mut foreign = good.clone();
    foreign.envelope.source = SourceName::new("agent-message:bo");
    assert_eq!(refusal(&world.declaration, &foreign), TriggerRefusal::NotSubscribed);
    let mut other_type = good.clone();
    other_type.envelope.event_type = EventType::TelegramMessage;
    assert_eq!(refusal(&world.declaration, &other_type), TriggerRefusal::NotSubscribed);

    let broken = rewritten(&good, &serde_json::json!({"text": 1}));
    assert_eq!(refusal(&world.declaration, &broken), TriggerRefusal::Malformed);
    let mut telegram = World::telegram();
    let empty = telegram.message("");
    assert_eq!(refusal(&telegram.declaration, &empty), TriggerRefusal::Empty);
}

#[test]
fn nothing_that_is_printed_holds_words() {
    let mut world = World::telegram();
    let turn = world.say(CANARY);
    world.propose(turn, CANARY, &[ProposalKind::MemoryChange]);
    let trigger = world.message(CANARY);
    read(&world, &trigger, |turns| assert!(!format!("{turns:?}").contains(CANARY)));
    let words = message_words(&trigger).unwrap();
    assert_eq!(format!("{words:?}"), "Words(12 bytes, 0 images)");
    let output = world.turns[0].runs[0].output.clone().unwrap();
    let broken = rewritten(&output, &CANARY);
    let error = effective_output(&broken, None).unwrap_err();
    assert!(!format!("{error:?} {error}").contains(CANARY));
    assert_eq!(world.turns[0].runs[0].state, RunState::Completed);
}
