//! A message in, a settled answer out.

use serde_json::json;
use thought_contract::event::EventType;
use thought_contract::payload::{MessageObservation, RunCompleted};
use thought_contract::run::{AttemptState, RunState, run_id, snapshot_id};
use thought_store::command::Presence;

use crate::support::{Home, TELEGRAM};

#[tokio::test]
async fn a_message_is_answered_in_two_commits() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let before = home.reader().counters();
    let trigger = home.message(1, "Good morning").await;
    assert_eq!(home.answer(&trigger).await, "Answer 1.");

    let run = home.runs_on(&trigger).await.remove(0);
    assert_eq!(run.id, run_id(TELEGRAM, 1, &trigger, 0));
    assert_eq!(run.snapshot, Some(snapshot_id(&run.id)));
    let attempts = home.attempts(&run.id).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].state, attempts[0].sandbox.as_str()), (AttemptState::Answered, "full"));
    assert_eq!((attempts[0].input_tokens, attempts[0].output_tokens), (Some(10), Some(3)));
    assert_eq!(home.standing(TELEGRAM).await, (1, 1));
    assert_eq!(home.model.request_count(), 1);
    at_work.stop().await;
    // The message itself is one; the runtime's are admission with start, and settlement.
    assert_eq!(home.reader().counters().commands - before.commands, 3);
}

#[tokio::test]
async fn a_settlement_leaves_output_and_completion_in_order_and_by_lineage() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let trigger = home.message(1, "Good morning").await;
    let run = home.until(&trigger, RunState::Completed).await;
    let output = home.reader().event(run.output.clone().unwrap()).await.unwrap().unwrap();
    let completed = home.reader().event(run.terminal.clone().unwrap()).await.unwrap().unwrap();
    assert_eq!(output.envelope.parent_id.as_ref(), Some(&trigger));
    assert_eq!(output.envelope.root_id, trigger);
    assert_eq!(output.envelope.actor.as_str(), "agent:stream-telegram-conversation");
    assert_eq!(completed.envelope.parent_id.as_ref(), Some(&output.envelope.id));
    assert_eq!(completed.envelope.actor.as_str(), "system:runtime");
    assert_eq!(completed.envelope.sequence, output.envelope.sequence + 1);
    let said: MessageObservation = output.payload().unwrap();
    assert_eq!((said.model.as_str(), said.provider.as_str(), said.truncated), ("model-1", "main", false));
    let receipt: RunCompleted = completed.payload().unwrap();
    assert_eq!(receipt.output, output.envelope.id);
    assert_eq!(receipt.proposals.len(), 0);
    assert_eq!(receipt.usage.input_tokens, Some(10));
    at_work.stop().await;
}

#[tokio::test]
async fn the_second_turn_carries_the_first_once_it_is_delivered() {
    let home = Home::new().await;
    home.dispatcher(Presence::AtWork).await;
    let at_work = home.start().await;
    let first = home.message(1, "Good morning").await;
    let run = home.until(&first, RunState::Completed).await;
    let second = home.message(2, "And now?").await;
    // The first answer is on its way: the second run waits for it, and asks nothing meanwhile.
    home.wait_for("the wait for the delivery", async || home.time.sleeps.lock().unwrap().contains(&30_000))
        .await;
    assert_eq!(home.model.request_count(), 1);
    home.deliver(&run.output.unwrap(), 100).await;
    home.answer(&second).await;
    let messages = home.model.request(1)["messages"].clone();
    let said: Vec<_> = messages.as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(said, [json!("user"), json!("assistant"), json!("user")]);
    assert!(messages.to_string().contains("Answer 1."));
    at_work.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_not_delivered_in_time_is_left_out() {
    let home = Home::new().await;
    home.dispatcher(Presence::AtWork).await;
    let at_work = home.start().await;
    let first = home.message(1, "Good morning").await;
    home.until(&first, RunState::Completed).await;
    let second = home.message(2, "And now?").await;
    home.wait_for("the wait for the delivery", async || home.time.sleeps.lock().unwrap().contains(&30_000))
        .await;
    home.time.advance_ms(30_000);
    home.answer(&second).await;
    let messages = home.model.request(1)["messages"].to_string();
    assert!(messages.contains("Good morning") && !messages.contains("Answer 1."), "{messages}");
    at_work.stop().await;
}

#[tokio::test]
async fn without_a_dispatcher_nothing_is_waited_for() {
    let home = Home::new().await;
    home.dispatcher(Presence::Away).await;
    let at_work = home.start().await;
    for message in 1..4 {
        let trigger = home.message(message, "Hello").await;
        home.until(&trigger, RunState::Completed).await;
    }
    assert_eq!(home.events(EventType::RunCompleted).await.len(), 3);
    assert_eq!(home.time.sleeps.lock().unwrap().iter().filter(|ms| **ms == 30_000).count(), 0);
    at_work.stop().await;
}

#[tokio::test]
async fn what_concerns_nobody_is_passed_and_remembered_at_a_stop() {
    let home = Home::new().await;
    let at_work = home.start().await;
    for message in [1, 2] {
        let payload = thought_contract::payload::TelegramCommand {
            chat_id: 4242,
            thread_id: None,
            message_id: message,
            user_id: 4242,
            command: "help".to_owned(),
            argument: None,
            reply_to_message_id: None,
        };
        let source = thought_contract::event::SourceName::new("telegram:stream");
        let draft = thought_contract::draft::telegram_command(&source, 1, &payload, home.now()).unwrap();
        home.store.telegram_ingress(source).admit(&[message], draft).await.unwrap();
    }
    let trigger = home.message(3, "Hello").await;
    home.answer(&trigger).await;
    assert_eq!(home.runs().await.len(), 1);
    assert_eq!(home.standing(TELEGRAM).await, (3, 3));
    at_work.stop().await;
}
