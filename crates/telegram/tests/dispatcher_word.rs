//! What a chat hears of a person's own word: corrections, what the memory holds now, and what waits for a decision.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thought_contract::draft;
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{run_id, snapshot_id};
use thought_contract::time::{Clock, Timestamp};
use thought_fakes::{ChatKind, ChatSpec, Failure, MessageSpec, UserSpec};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{DocumentId, EventId, Fingerprint, Sha256Hex, VersionId};
use thought_store::Reads;
use thought_store::command::{BaseVersion, NewProposal, Op};
use thought_store::handle::Follows;
use thought_store::row::DeliveryState;
use thought_telegram::dispatcher::{Reminder, ReminderPorts};
use thought_telegram::ids::ChatId;
use thought_telegram::notices::Switches;
use thought_telegram::stop::Stop;
use tokio::sync::watch;
use world::{AGENT, PATIENCE, World, payload};

const NOT_MATCHED: &str =
    "I couldn't match that to one of my replies. Reply to the message you want to correct.";
const OFF: Switches = Switches { failure_notice: true, notices: false };
const DAY_MS: i64 = 86_400_000;

/// A `/correct` that was looked at and refused.
async fn refused(world: &World, chat: i64, message: i64) -> EventId {
    let command = world.commanded(chat, message, "correct").await.envelope;
    world.store.judgments().refuse(command.id.clone(), "no-reply", command.position).await.unwrap();
    command.id
}

fn judgment(command: &StoredEvent, external_export_eligible: bool) -> draft::Draft {
    let target = p::CorrectionTarget {
        run: run_id(AGENT, 1, &command.envelope.id, 0),
        output: EventId::of("output", &[]),
        delivery_receipt: EventId::of("receipt", &[]),
        source_root: command.envelope.root_id.clone(),
        contract: p::OutputContract::ConversationText,
    };
    let payload = p::JudgmentRecorded {
        schema_version: 2,
        kind: p::JudgmentKind::Correct,
        criterion: "operator-correction".to_owned(),
        criterion_version: 1,
        actor: command.envelope.actor.as_str().to_owned(),
        target,
        replacement: p::ConversationText { summary: "better".to_owned() },
        feedback: command.envelope.id.clone(),
        quality_eligible: true,
        external_export_eligible,
        supersedes: None,
    };
    draft::judgment_recorded(&payload, Timestamp::from_ms(1)).unwrap()
}

/// A memory change that came out of a message, in the index of what waits.
async fn proposed(world: &World, trigger: &StoredEvent) -> StoredEvent {
    let run = run_id(AGENT, 1, &trigger.envelope.id, 0);
    let document = DocumentId::of("document", &[]);
    let version = VersionId::of("version", &[]);
    let text = "- Likes tea.";
    let payload = p::MemoryChangeProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: p::Proposer {
            output: draft::output_id(EventType::MessageObservation, &run),
            trigger: trigger.envelope.id.clone(),
            agent: p::ProposerAgent { id: AGENT.to_owned(), version: 1 },
            fingerprint: Fingerprint::of(b"x"),
            provider: "main".to_owned(),
            model: "a-model".to_owned(),
            context_snapshot: snapshot_id(&run),
            run: run.clone(),
        },
        target: p::MemoryTarget {
            source: SourceName::context(),
            document_id: document.clone(),
            path: "memory.md".to_owned(),
            version_id: version.clone(),
            sha256: Sha256Hex::of(b"base"),
            content_type: "text/markdown".to_owned(),
        },
        operation: p::MemoryOperation::Append,
        proposed_text: text.to_owned(),
        text_length: text.len() as u64,
        text_sha256: Sha256Hex::of(text.as_bytes()),
        reason: "asked for".to_owned(),
        evidence: vec![],
        publication_eligible: p::No,
    };
    let draft = draft::memory_change_proposed(trigger, &payload, world.clock.now()).unwrap();
    let event = world.append(draft).await;
    let track = NewProposal {
        proposal: event.envelope.id.clone(),
        kind: ProposalKind::MemoryChange,
        run: Some(run),
        base: Some(BaseVersion { document, version }),
    };
    world.commit(vec![Op::TrackProposal(track)]).await;
    event
}

async fn decided(world: &World, proposal: &StoredEvent) -> StoredEvent {
    let payload = p::ProposalDecision {
        proposal: proposal.envelope.id.clone(),
        proposal_kind: ProposalKind::MemoryChange,
        disposition: p::Disposition::Accept,
        replacement: None,
        submission_id: "one".to_owned(),
        operator: "alex".to_owned(),
        authority: p::HumanAuthority::Human,
        surface: p::Surface::Cli,
        uid: 1_000,
    };
    let draft = draft::proposal_decision(proposal, &payload, world.clock.now()).unwrap();
    let decisions = world.store.decisions();
    let decision =
        decisions.decide(draft, proposal.envelope.id.clone(), Follows::Projection).await.unwrap().id;
    world.engine.event(decision).await.unwrap().unwrap()
}

async fn materialized(world: &World, trigger: &StoredEvent) -> EventId {
    let proposal = proposed(world, trigger).await;
    let decision = decided(world, &proposal).await;
    let payload = p::MemoryMaterialized {
        proposal: proposal.envelope.id,
        decision: decision.envelope.id.clone(),
        document_id: DocumentId::of("document", &[]),
        base_version_id: VersionId::of("version", &[]),
        version_id: VersionId::of("next", &[]),
        sha256: Sha256Hex::of(b"next"),
        byte_count: 4,
        file_event: EventId::of("file", &[]),
    };
    let draft = draft::memory_materialized(&decision, &payload, world.clock.now()).unwrap();
    world.append(draft).await.envelope.id
}

fn texts(world: &World) -> Vec<String> {
    world.bot.sent().into_iter().map(|sent| sent.text).collect()
}

/// What was delivered under the dispatcher's own order: whatever came before it is delivered or never will be.
async fn next_reply(world: &World, chat: i64, message: i64) {
    let next = world.turn(chat, message, "next").await;
    world.wait_for_delivery(&next, DeliveryState::Delivered).await;
}

#[tokio::test]
async fn a_refused_correction_is_told_once_where_it_was_said() {
    let world = World::new().await;
    let running = world.dispatch();
    let first = refused(&world, 4242, 1).await;
    let row = world.wait_for_kind(&first, p::DeliveryKind::NotMatched, DeliveryState::Delivered).await;
    assert_eq!(row.chat, 4242);
    let group = ChatSpec::of(ChatKind::Supergroup, -7);
    let asked = world.bot.push(&MessageSpec::text(group, UserSpec::person(4242), "/correct x"));
    let second = refused(&world, -7, asked.message_id).await;
    world.wait_for_kind(&second, p::DeliveryKind::NotMatched, DeliveryState::Delivered).await;
    running.stop().await;
    // Another process goes on behind them.
    let running = world.dispatch();
    let third = refused(&world, 4242, 3).await;
    world.wait_for_kind(&third, p::DeliveryKind::NotMatched, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(texts(&world), [NOT_MATCHED; 3]);
    let places: Vec<_> = world.bot.sent().iter().map(|sent| (sent.chat_id, sent.reply_to)).collect();
    assert_eq!(places, [(4242, None), (-7, Some(asked.message_id)), (4242, None)]);
    let receipt = world.events(&[EventType::DeliveryTelegram]).await.remove(0);
    assert_eq!(payload(&receipt)["kind"], "notice:not-matched");
    assert_eq!((receipt.envelope.parent_id, receipt.envelope.root_id), (Some(first.clone()), first));
}

#[tokio::test]
async fn a_refusal_that_may_have_arrived_is_not_sent_again_and_one_that_did_not_is() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::HangAfter);
    let first = refused(&world, 4242, 1).await;
    world.bot.wait_for_sent(1, PATIENCE).await.unwrap();
    running.kill().await;
    let running = world.dispatch();
    world.wait_for_kind(&first, p::DeliveryKind::NotMatched, DeliveryState::Uncertain).await;
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 3_000 });
    let second = refused(&world, 4242, 2).await;
    world.bot.wait_for_calls("sendMessage", 2, PATIENCE).await.unwrap();
    running.stop().await;
    let running = world.dispatch();
    world.wait_for_kind(&second, p::DeliveryKind::NotMatched, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(world.bot.sent().len(), 2);
    // A person may say: again.
    let (_say, word) = watch::channel(false);
    let state = world.dispatcher().retry(&first, &Stop::new(word)).await.unwrap();
    assert_eq!((state, world.bot.sent().len()), (DeliveryState::Delivered, 3));
}

#[tokio::test]
async fn a_switch_that_is_turned_on_brings_up_no_old_refusal() {
    let world = World { switches: OFF, ..World::new().await };
    let running = world.dispatch();
    let command = refused(&world, 4242, 1).await;
    next_reply(&world, 4242, 2).await;
    let cursor =
        async || world.engine.cursor("dispatcher-refusals:telegram:stream".to_owned()).await.unwrap();
    world.wait_until("the cursor", async || cursor().await > 0).await;
    running.stop().await;
    let world = World { switches: world::ON, ..world };
    let running = world.dispatch();
    next_reply(&world, 4242, 3).await;
    running.stop().await;
    assert_eq!(texts(&world), ["next", "next"]);
    assert_eq!(world.delivery(&command, p::DeliveryKind::NotMatched).await, None);
}

#[tokio::test]
async fn a_refusal_of_another_channel_is_not_told_here() {
    let world = World::new().await;
    let running = world.dispatch();
    let other = SourceName::new("telegram:other");
    let command = p::TelegramCommand {
        chat_id: 4242,
        thread_id: None,
        message_id: 1,
        user_id: 4242,
        command: "correct".to_owned(),
        argument: None,
        reply_to_message_id: None,
    };
    let draft = draft::telegram_command(&other, 123_456, &command, world.clock.now()).unwrap();
    let event = world.append(draft).await.envelope;
    world.store.judgments().refuse(event.id.clone(), "no-reply", event.position).await.unwrap();
    let ours = refused(&world, 4242, 2).await;
    world.wait_for_kind(&ours, p::DeliveryKind::NotMatched, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test]
async fn a_correction_is_told_once_and_its_release_not_at_all() {
    let world = World::new().await;
    let running = world.dispatch();
    let command = world.commanded(4242, 1, "correct").await;
    let judged = world.append(judgment(&command, false)).await.envelope.id;
    world.wait_for_kind(&judged, p::DeliveryKind::Corrected, DeliveryState::Delivered).await;
    let released = world.append(judgment(&command, true)).await.envelope.id;
    // A judgment on a person's decision is told by nobody.
    let trigger = world.said(4242, None, 2).await;
    let by_decision = world.append(judgment(&trigger, false)).await.envelope.id;
    next_reply(&world, 4242, 3).await;
    running.stop().await;
    assert_eq!(texts(&world), ["Corrected.", "next"]);
    for silent in [released, by_decision] {
        assert_eq!(world.delivery(&silent, p::DeliveryKind::Corrected).await, None);
    }
}

#[tokio::test]
async fn the_memory_is_told_of_in_the_chat_that_it_came_from() {
    let world = World::new().await;
    let running = world.dispatch();
    let forum = ChatSpec::of(ChatKind::Forum, -70);
    let asked = world.bot.push(&MessageSpec::text(forum, UserSpec::person(4242), "q").in_topic(77));
    let trigger = world.said(-70, Some(77), asked.message_id).await;
    let receipt = materialized(&world, &trigger).await;
    world.wait_for_kind(&receipt, p::DeliveryKind::MemoryUpdated, DeliveryState::Delivered).await;
    running.stop().await;
    let sent = world.bot.sent();
    assert_eq!((sent.len(), sent[0].text.as_str()), (1, "Memory updated."));
    assert_eq!((sent[0].chat_id, sent[0].thread, sent[0].reply_to), (-70, Some(77), None));
}

#[tokio::test]
async fn nothing_of_it_is_told_where_notices_are_off() {
    let world = World { switches: OFF, ..World::new().await };
    let running = world.dispatch();
    let trigger = world.said(4242, None, 1).await;
    materialized(&world, &trigger).await;
    let command = world.commanded(4242, 2, "correct").await;
    world.append(judgment(&command, false)).await;
    next_reply(&world, 4242, 3).await;
    running.stop().await;
    assert_eq!(texts(&world), ["next"]);
}

/// A calendar that begins somewhere and goes on.
struct From(Timestamp, Instant);

impl Clock for From {
    fn now(&self) -> Timestamp {
        self.0.plus_ms(i64::try_from(self.1.elapsed().as_millis()).unwrap())
    }
}

struct Reminding {
    say: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Reminding {
    /// At work, with a calendar that begins so long after the world's.
    fn after_ms(world: &World, ms: i64) -> Self {
        let (say, word) = watch::channel(false);
        let ports = ReminderPorts {
            reader: world.store.reader(),
            notices: world.store.notices("telegram"),
            clock: Arc::new(From(world.clock.now().plus_ms(ms), Instant::now())),
        };
        let chats: BTreeSet<ChatId> = world.chats.clone();
        let reminder = Reminder::new(ports, World::source(), chats);
        Self { say, task: tokio::spawn(reminder.run(Stop::new(word))) }
    }

    async fn stop(self) {
        self.say.send_replace(true);
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_waits_is_counted_once_a_day_in_each_chat_that_it_came_from() {
    let world = World::new().await;
    let running = world.dispatch();
    for (chat, message) in [(4242, 1), (4242, 2), (5, 1)] {
        let trigger = world.said(chat, None, message).await;
        proposed(&world, &trigger).await;
    }
    // Of one that was never admitted, or is not any more, nothing is said there.
    let trigger = world.said(555, None, 1).await;
    proposed(&world, &trigger).await;
    for _ in 0..2 {
        let reminding = Reminding::after_ms(&world, DAY_MS);
        world.wait_for_events(EventType::NoticeRequested, 2).await;
        reminding.stop().await;
    }
    let requests = world.events(&[EventType::NoticeRequested]).await;
    for request in &requests {
        let kind = p::DeliveryKind::SuggestionsWaiting;
        world.wait_for_kind(&request.envelope.id, kind, DeliveryState::Delivered).await;
        assert_eq!(request.envelope.source.as_str(), "notices:telegram");
        assert_eq!((&request.envelope.parent_id, &request.envelope.root_id), (&None, &request.envelope.id));
    }
    let reminding = Reminding::after_ms(&world, 2 * DAY_MS);
    let requests = world.wait_for_events(EventType::NoticeRequested, 4).await;
    for request in &requests[2..] {
        let kind = p::DeliveryKind::SuggestionsWaiting;
        world.wait_for_kind(&request.envelope.id, kind, DeliveryState::Delivered).await;
    }
    reminding.stop().await;
    running.stop().await;
    let mut said: Vec<_> = world.bot.sent().into_iter().map(|sent| (sent.chat_id, sent.text)).collect();
    said.sort();
    let count = "Suggestions waiting for review: 4.".to_owned();
    assert_eq!(said, [(5, count.clone()), (5, count.clone()), (4242, count.clone()), (4242, count)]);
}

#[tokio::test]
async fn a_suggestion_of_the_same_day_and_one_that_is_decided_are_not_counted() {
    let world = World::new().await;
    let trigger = world.said(4242, None, 1).await;
    proposed(&world, &trigger).await;
    let reminding = Reminding::after_ms(&world, 0);
    // The next day dawns while it works.
    let now = world.clock.now();
    let soon = Reminding::after_ms(&world, now.next_day().since_ms(now) - 300);
    let request = world.wait_for_events(EventType::NoticeRequested, 1).await.remove(0);
    soon.stop().await;
    reminding.stop().await;
    assert!(request.envelope.occurred_at >= now.next_day());
    assert_eq!(world.events(&[EventType::NoticeRequested]).await.len(), 1);

    // Decided before it could be said: there is nothing to say, or less.
    let world = World::new().await;
    let trigger = world.said(4242, None, 1).await;
    let first = proposed(&world, &trigger).await;
    decided(&world, &first).await;
    let reminding = Reminding::after_ms(&world, DAY_MS);
    let running = world.dispatch();
    next_reply(&world, 4242, 2).await;
    reminding.stop().await;
    running.stop().await;
    assert_eq!(texts(&world), ["next"]);
}

#[tokio::test]
async fn the_count_is_the_one_of_the_request_whenever_it_is_sent() {
    let world = World::new().await;
    let mut proposals = Vec::new();
    for message in 1..=10 {
        let trigger = world.said(4242, None, message).await;
        proposals.push(proposed(&world, &trigger).await);
    }
    let reminding = Reminding::after_ms(&world, DAY_MS);
    let request = world.wait_for_events(EventType::NoticeRequested, 1).await.remove(0).envelope.id;
    reminding.stop().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 3_000 });
    world.bot.wait_for_calls("sendMessage", 1, PATIENCE).await.unwrap();
    running.stop().await;
    // One is decided and one comes before the send is made again: the count stays as it was asked for.
    decided(&world, &proposals[0]).await;
    let trigger = world.said(4242, None, 90).await;
    decided(&world, &proposed(&world, &trigger).await).await;
    let running = world.dispatch();
    let kind = p::DeliveryKind::SuggestionsWaiting;
    let row = world.wait_for_kind(&request, kind, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(texts(&world), ["Suggestions waiting for review: 10."]);
    let receipt = payload(&world.events(&[EventType::DeliveryTelegram]).await[0]);
    assert_eq!(receipt["chunks"][0]["utf16Length"], row.chunks[0].utf16_length);
}

#[tokio::test]
async fn the_reminder_ends_when_it_is_told_to() {
    let world = World::new().await;
    let reminding = Reminding::after_ms(&world, 0);
    tokio::time::timeout(Duration::from_secs(20), reminding.stop()).await.unwrap();
}
