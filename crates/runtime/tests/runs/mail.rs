//! Private agent messages: from the sender's check to the reading of the response.

use thought_contract::draft;
use thought_contract::event::EventType;
use thought_contract::payload::{AgentMessage, DerivedAgentMessage};
use thought_contract::run::{HeldReason, RunState};
use thought_protocol::EventId;
use thought_runtime::mail::{
    Desk, Errand, Error, Outgoing, Response, SendStatus, Sent, response, send, status, wait,
};
use thought_runtime::port::TokioSleeper;
use thought_store::StoreError;

use crate::ports::{Says, status as http};
use crate::support::{AGENT, Home, package};

async fn home() -> Home {
    let home = Home::bare().await;
    home.document("identity.md", "identity", "I am the Stream.").await;
    home.install(&package(AGENT, |text| text)).await.unwrap();
    home
}

fn outgoing(thread: &str, message: &str, text: &str) -> Outgoing {
    Outgoing::new("co", AGENT, thread, message, text.as_bytes()).unwrap()
}

async fn say(home: &Home, thread: &str, message: &str, text: &str) -> Sent {
    let mail = home.store.agent_mail("co");
    send(&mail, &*home.time, &outgoing(thread, message, text)).await.unwrap()
}

/// A message that reached the log by other means than the producer.
async fn forge(home: &Home, change: impl Fn(&mut AgentMessage)) -> EventId {
    let mut payload = AgentMessage {
        message_id: "m-1".to_owned(),
        thread_id: "t-1".to_owned(),
        sender_agent_id: "co".to_owned(),
        recipient_agent_id: AGENT.to_owned(),
        text: "Hello".to_owned(),
    };
    change(&mut payload);
    let draft = draft::agent_message(&payload, home.now()).unwrap();
    home.store.agent_mail(&payload.sender_agent_id).send(draft).await.unwrap().id
}

#[tokio::test]
async fn a_message_is_answered_by_a_typed_response_that_its_sender_reads() {
    let home = home().await;
    let at_work = home.consumer(AGENT).await.unwrap();
    let sent = say(&home, "t-1", "m-1", "What do you make of this?").await;
    assert_eq!((sent.status, sent.run), (SendStatus::Accepted, None));
    let done = wait(&home.reader(), &TokioSleeper, &sent.event, 20).await.unwrap();
    assert_eq!(done.status, SendStatus::Completed);
    assert_eq!(response(&home.reader(), &sent.event).await.unwrap().expose(), "Answer 1.");

    let outputs = home.events(EventType::DerivedAgentMessage).await;
    assert_eq!(outputs.len(), 1);
    let answer: DerivedAgentMessage = outputs[0].payload().unwrap();
    assert_eq!((answer.sender_agent_id.as_str(), answer.recipient_agent_id.as_str()), (AGENT, "co"));
    assert_eq!((answer.thread_id.as_str(), answer.in_reply_to.as_str()), ("t-1", "m-1"));
    assert_eq!(answer.input_sequence, 1);
    assert_eq!(outputs[0].envelope.root_id, sent.event);
    assert_eq!(outputs[0].envelope.external_id.as_deref(), Some(answer.message_id.as_str()));
    // The answer is no source event: there is one message and one run, whatever was said.
    assert_eq!(home.events(EventType::AgentMessage).await.len(), 1);
    assert_eq!(home.runs().await.len(), 1);
    at_work.stop().await;
}

#[tokio::test]
async fn threads_are_apart_and_each_carries_its_own_history() {
    let home = home().await;
    let at_work = home.consumer(AGENT).await.unwrap();
    for (thread, message, text) in [("a", "1", "Apples"), ("b", "1", "Pears"), ("a", "2", "More")] {
        let sent = say(&home, thread, message, text).await;
        home.until(&sent.event, RunState::Completed).await;
    }
    let third = home.model.request(2)["messages"].to_string();
    assert!(third.contains("Apples") && third.contains("Answer 1.") && !third.contains("Pears"), "{third}");
    at_work.stop().await;
}

#[tokio::test]
async fn the_same_message_again_is_already_accepted_and_another_text_is_a_conflict() {
    let home = home().await;
    let first = say(&home, "t-1", "m-1", "Hello").await;
    home.time.advance_ms(60_000);
    let second = say(&home, "t-1", "m-1", "Hello").await;
    assert_eq!((second.status, &second.event), (SendStatus::AlreadyAccepted, &first.event));
    let mail = home.store.agent_mail("co");
    let other = send(&mail, &*home.time, &outgoing("t-1", "m-1", "Goodbye")).await;
    assert!(matches!(other, Err(Error::Store(StoreError::Conflict { .. }))));
    assert_eq!(home.events(EventType::AgentMessage).await.len(), 1);
}

#[tokio::test]
async fn what_deviates_is_refused_before_anything_is_appended() {
    let home = home().await;
    let make =
        |from, to, thread, message, text: &[u8]| Outgoing::new(from, to, thread, message, text).unwrap_err();
    assert!(matches!(make("Co", AGENT, "t", "m", b"x"), Error::AgentId { side: "sender" }));
    assert!(matches!(make("co", "The Stream", "t", "m", b"x"), Error::AgentId { side: "recipient" }));
    assert!(matches!(make("cameron", AGENT, "t", "m", b"x"), Error::Route { .. }));
    assert!(matches!(make("co", "stream-telegram-conversation", "t", "m", b"x"), Error::Route { .. }));
    assert!(matches!(make("co", AGENT, "", "m", b"x"), Error::Id { which: "thread" }));
    assert!(matches!(make("co", AGENT, "-t", "m", b"x"), Error::Id { which: "thread" }));
    assert!(matches!(make("co", AGENT, "t", "a b", b"x"), Error::Id { which: "message" }));
    let long = "m".repeat(129);
    assert!(matches!(make("co", AGENT, "t", &long, b"x"), Error::Id { which: "message" }));
    assert!(matches!(make("co", AGENT, "t", "m", b""), Error::Blank));
    assert!(matches!(make("co", AGENT, "t", "m", b"a\0"), Error::Nul));
    assert!(matches!(
        make("co", AGENT, "t", "m", "ä".repeat(16_385).as_bytes()),
        Error::Text { characters: 16_385 }
    ));
    assert!(matches!(make("co", AGENT, "t", "m", &[0xff]), Error::Utf8 { bytes: 1 }));
    assert!(Outgoing::new("co", AGENT, "t", "m", "ä".repeat(16_384).as_bytes()).is_ok());
    assert!(home.events(EventType::AgentMessage).await.is_empty());
}

#[tokio::test]
async fn a_message_that_came_by_another_route_ends_blocked_and_asks_nothing() {
    let home = home().await;
    let at_work = home.consumer(AGENT).await.unwrap();
    let foreign = forge(&home, |payload| payload.recipient_agent_id = "someone-else".to_owned()).await;
    let run = home.until(&foreign, RunState::Blocked).await;
    assert_eq!(home.ended(&run).await, (EventType::RunBlocked, "route-refused".to_owned()));
    // A whole one right behind it is answered.
    let sent = say(&home, "t-2", "m-2", "Hello").await;
    home.until(&sent.event, RunState::Completed).await;
    assert_eq!(home.model.request_count(), 1);
    assert!(matches!(response(&home.reader(), &foreign).await, Err(Error::Response { .. })));
    at_work.stop().await;
}

#[tokio::test]
async fn another_senders_messages_are_not_followed() {
    let home = home().await;
    let at_work = home.consumer(AGENT).await.unwrap();
    forge(&home, |payload| payload.sender_agent_id = "mallory".to_owned()).await;
    let sent = say(&home, "t-1", "m-1", "Hello").await;
    home.until(&sent.event, RunState::Completed).await;
    assert_eq!(home.runs().await.len(), 1);
    at_work.stop().await;
}

#[tokio::test]
async fn a_run_without_an_answer_leaves_no_response() {
    let home = home().await;
    home.model.says([Says::Reply(http(401, None))]);
    let at_work = home.consumer(AGENT).await.unwrap();
    let sent = say(&home, "t-1", "m-1", "Hello").await;
    let done = wait(&home.reader(), &TokioSleeper, &sent.event, 20).await.unwrap();
    assert_eq!(done.status, SendStatus::Failed);
    assert!(matches!(
        response(&home.reader(), &sent.event).await,
        Err(Error::Response { what: "the run", .. })
    ));
    assert!(home.events(EventType::DerivedAgentMessage).await.is_empty());
    at_work.stop().await;
}

#[tokio::test]
async fn a_wait_runs_out_and_says_pending() {
    let home = home().await;
    *home.model.binding.lock().unwrap() = Err(HeldReason::ProviderUnconfigured);
    let at_work = home.consumer(AGENT).await.unwrap();
    let sent = say(&home, "t-1", "m-1", "Hello").await;
    home.until(&sent.event, RunState::Held).await;
    let done = wait(&home.reader(), &*home.time, &sent.event, 3).await.unwrap();
    assert_eq!(done.status, SendStatus::Pending);
    assert!(done.run.is_some());
    let absent = EventId::of("none", &[]);
    assert!(matches!(status(&home.reader(), &absent).await, Err(Error::NotFound { .. })));
    // A held run of an agent's thread asks for no notice in a chat.
    assert!(home.events(EventType::NoticeRequested).await.is_empty());
    at_work.stop().await;
}

fn desk(home: &Home, sender: &str) -> Desk {
    let mail = home.store.agent_mail(sender);
    Desk::new(sender, mail, home.reader(), home.time.clone(), std::sync::Arc::new(TokioSleeper))
}

#[tokio::test]
async fn a_desk_takes_its_own_senders_errands_alone_and_hands_out_what_was_asked_for() {
    let home = home().await;
    let message = outgoing("t-1", "m-1", "Hello");
    let errand = |wait_seconds, response| Errand { message: message.clone(), wait_seconds, response };
    let refused = desk(&home, "mallory").serve(&errand(None, Response::Dark)).await;
    assert!(matches!(refused, Err(Error::Sender { .. })));
    assert!(home.events(EventType::AgentMessage).await.is_empty());

    let desk = desk(&home, "co");
    let sent = desk.serve(&errand(None, Response::Dark)).await.unwrap();
    assert_eq!((sent.status, sent.run, sent.message.as_str()), (SendStatus::Accepted, None, "m-1"));
    // Nobody is at work: looked for once, it is pending.
    let looked = desk.serve(&errand(None, Response::Asked)).await.unwrap();
    assert_eq!((looked.status, looked.response.is_none()), (SendStatus::Pending, true));
    let at_work = home.consumer(AGENT).await.unwrap();
    let dark = desk.serve(&errand(Some(20), Response::Dark)).await.unwrap();
    assert_eq!((dark.status, dark.response.is_none()), (SendStatus::Completed, true));
    let read = desk.serve(&errand(Some(20), Response::Asked)).await.unwrap();
    assert_eq!(read.response.as_ref().unwrap().expose(), "Answer 1.");
    assert!(!format!("{read:?} {desk:?}").contains("Answer"), "{read:?}");
    assert!(!format!("{:?}", errand(None, Response::Dark)).contains("Hello"));
    at_work.stop().await;
}

#[test]
fn every_status_reads_back_from_its_word() {
    for word in ["accepted", "already-accepted", "pending", "completed", "failed", "blocked", "abandoned"] {
        assert_eq!(SendStatus::from_word(word).map(SendStatus::as_str), Some(word));
    }
    assert_eq!(SendStatus::from_word("Completed"), None);
}
