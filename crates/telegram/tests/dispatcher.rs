//! From an event in the log to a message at Telegram and its receipt.

mod world;

use std::time::Duration;

use serde_json::json;
use thought_contract::draft::{self, Ending, NoticeSubject};
use thought_contract::event::EventType;
use thought_contract::payload::{DeliveryKind, DeliveryTelegram, NoticeName, NoticeRequested};
use thought_fakes::{ChatKind, ChatSpec, Failure, MessageSpec, UserSpec};
use thought_store::Reads;
use thought_store::row::{ChunkState, DeliveryState, ReplyState};
use thought_telegram::ids::ChatId;
use thought_telegram::notices::Switches;
use world::{Log, PATIENCE, TOKEN, World, payload};

#[tokio::test]
async fn a_reply_costs_two_commits_and_its_receipt_names_what_was_sent() {
    let world = World::new().await;
    let running = world.dispatch();
    // By then it has said that it is at work, which is a commit too.
    let earlier = world.turn(5, 1, "earlier").await;
    world.wait_for_delivery(&earlier, DeliveryState::Delivered).await;
    let trigger = world.said(4242, None, 1).await;
    let before = world.engine.counters();
    let output = world.answered(&trigger, "An **answer**.", false).await;
    let row = world.wait_for_delivery(&output.envelope.id, DeliveryState::Delivered).await;
    // Once a commit is answered, all before it are counted.
    world.said(4242, None, 2).await;
    let after = world.engine.counters();
    assert_eq!(
        (after.commits - before.commits, after.commands - before.commands),
        (4, 4),
        "with the output's own and the one behind it"
    );
    running.stop().await;

    let sent = world.bot.sent().split_off(1);
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].chat_id, sent[0].text.as_str(), sent[0].reply_to), (4242, "An answer.", None));
    assert_eq!(sent[0].entities, [json!({"type": "bold", "offset": 3, "length": 6})]);
    assert_eq!(sent[0].parse_mode, None);
    let receipts = world.events(&[EventType::DeliveryTelegram]).await.split_off(1);
    let envelope = &receipts[0].envelope;
    assert_eq!(row.receipt.as_ref(), Some(&envelope.id));
    assert_eq!(envelope.source.as_str(), "delivery:telegram:stream");
    assert_eq!(envelope.parent_id.as_ref(), Some(&output.envelope.id));
    assert_eq!(envelope.root_id, trigger.envelope.id);
    assert_eq!(envelope.correlation_id.as_deref(), Some("4242:0"));
    let receipt = payload(&receipts[0]);
    assert_eq!(receipt["kind"], "reply");
    assert_eq!(receipt["chunks"], json!([{"messageId": sent[0].message_id, "utf16Length": 10}]));
    assert_eq!(receipt["output"], json!(output.envelope.id));
    assert!(receipt["run"].is_string());
    let reply = world.engine.reply_state(output.envelope.id).await.unwrap();
    assert_eq!(reply, ReplyState::Receipt(envelope.id.clone()));
}

#[tokio::test]
async fn report_29_every_chunk_is_valid_and_ordered_and_one_receipt_names_them_all() {
    let links: String = (0..350).map(|n| format!("[link {n}](https://example.org/{n}) ")).collect();
    let table: [(String, usize); 5] = [
        ("a".repeat(4_096), 1),
        ("a".repeat(4_097), 2),
        (format!("a{}", "\u{1f642}".repeat(4_096)), 3),
        (links, 0),
        ("**bold _and `code ~~(".repeat(300), 0),
    ];
    let world = World::new().await;
    let running = world.dispatch();
    for (message, (text, chunks)) in (1..).zip(table) {
        let already = world.bot.sent().len();
        let output = world.turn(4242, message, &text).await;
        let row = world.wait_for_delivery(&output, DeliveryState::Delivered).await;
        let sent = &world.bot.sent()[already..];
        assert_eq!(sent.len(), row.chunks.len());
        assert!(chunks == 0 || sent.len() == chunks, "{} chunks", sent.len());
        let receipt = world.events(&[EventType::DeliveryTelegram]).await.pop().unwrap();
        let receipt = receipt.payload::<DeliveryTelegram>().unwrap();
        let told: Vec<_> = receipt.chunks.iter().map(|c| (c.message_id.unwrap(), c.utf16_length)).collect();
        let seen: Vec<_> =
            sent.iter().map(|s| (s.message_id, s.text.encode_utf16().count() as u64)).collect();
        assert_eq!(told, seen);
        assert!(sent.iter().all(|s| s.entities.len() <= 100));
    }
    running.stop().await;
}

#[tokio::test]
async fn report_29_refused_entities_fall_back_once_to_plain_text() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::cannot_parse_entities());
    let output = world.turn(4242, 1, "**bold**").await;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    let sent = world.bot.sent();
    assert_eq!((sent.len(), sent[0].text.as_str(), sent[0].entities.len()), (1, "bold", 0));

    world.bot.fail_times("sendMessage", 2, Failure::cannot_parse_entities());
    let output = world.turn(4242, 2, "**bold**").await;
    let row = world.wait_for_delivery(&output, DeliveryState::Refused).await;
    assert_eq!(row.reason.as_deref(), Some("bad-entities"));
    assert_eq!((world.bot.sent().len(), world.bot.call_count("sendMessage")), (1, 4));
    running.stop().await;
}

#[tokio::test]
async fn an_answer_that_was_cut_short_says_so() {
    let world = World::new().await;
    let running = world.dispatch();
    let trigger = world.said(4242, None, 1).await;
    let output = world.answered(&trigger, "It begins", true).await.envelope.id;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    assert!(world.bot.sent()[0].text.ends_with("\n(cut short)"));
    running.stop().await;
}

#[tokio::test]
async fn a_chat_that_has_to_wait_holds_up_no_other_and_is_sent_once() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 2 });
    let waits = world.turn(1, 1, "waits").await;
    world.bot.wait_for_calls("sendMessage", 1, PATIENCE).await.unwrap();
    let behind = world.turn(1, 2, "behind it").await;
    let other = world.turn(2, 1, "other").await;
    world.wait_for_delivery(&other, DeliveryState::Delivered).await;
    let row = world.delivery(&waits, DeliveryKind::Reply).await.unwrap();
    assert_eq!((row.state, row.reason.as_deref()), (DeliveryState::Sending, Some("retry-after")));
    assert_eq!(row.chunks[0].state, ChunkState::Pending);
    assert_eq!(world.delivery(&behind, DeliveryKind::Reply).await, None);
    world.wait_for_delivery(&behind, DeliveryState::Delivered).await;
    let texts: Vec<_> = world.bot.sent().into_iter().map(|sent| sent.text).collect();
    assert_eq!(texts, ["other", "waits", "behind it"]);
    running.stop().await;
}

#[tokio::test]
async fn what_certainly_did_not_arrive_is_sent_again() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::internal());
    world.bot.fail("sendMessage", Failure::BadGateway);
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 0 });
    let output = world.turn(4242, 1, "answer").await;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    assert_eq!((world.bot.sent().len(), world.bot.call_count("sendMessage")), (1, 4));
    running.stop().await;
}

#[tokio::test]
async fn what_may_have_arrived_is_uncertain_and_never_sent_again() {
    for failure in [Failure::DropAfter, Failure::Truncated, Failure::InvalidJson, Failure::DropBefore] {
        let world = World::new().await;
        let running = world.dispatch();
        world.bot.fail("sendMessage", failure);
        let output = world.turn(4242, 1, "answer").await;
        let row = world.wait_for_delivery(&output, DeliveryState::Uncertain).await;
        assert_eq!(row.chunks[0].state, ChunkState::Uncertain);
        assert!(row.receipt.is_none());
        running.stop().await;
        let running = world.dispatch();
        // The chat goes on, and the next reply is the proof that nothing else was sent.
        let next = world.turn(4242, 2, "next").await;
        world.wait_for_delivery(&next, DeliveryState::Delivered).await;
        running.stop().await;
        assert_eq!(world.bot.call_count("sendMessage"), 2);
        assert_eq!(world.engine.reply_state(output).await.unwrap(), ReplyState::NotDelivered);
    }
}

#[tokio::test]
async fn what_will_never_arrive_is_refused_with_its_reason() {
    let world = World::new().await;
    let mut chats = world.chats.clone();
    chats.insert(ChatId(555));
    let world = World { chats, ..world };
    let running = world.dispatch();
    let cases = [
        (4242, Some(Failure::blocked()), "forbidden"),
        (-7, Some(Failure::Migrated { to_chat_id: -1007 }), "migrated"),
        (555, None, "bad-request"),
        (666, None, "not-admitted"),
    ];
    for (message, (chat, failure, reason)) in (1..).zip(cases) {
        if let Some(failure) = failure {
            world.bot.fail("sendMessage", failure);
        }
        let output = world.turn(chat, message, "answer").await;
        let row = world.wait_for_delivery(&output, DeliveryState::Refused).await;
        assert_eq!(row.reason.as_deref(), Some(reason));
        assert_eq!(row.chunks[0].state, ChunkState::Refused);
    }
    running.stop().await;
    assert!(world.bot.sent().is_empty());
    assert_eq!(world.bot.call_count("sendMessage"), 3, "a chat that is not admitted is not written to");
    assert!(world.events(&[EventType::DeliveryTelegram]).await.is_empty());
    // A restart changes nothing of it.
    let running = world.dispatch();
    let next = world.turn(4242, 9, "next").await;
    world.wait_for_delivery(&next, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test]
async fn killed_while_sending_is_uncertain_after_the_restart_and_later_replies_arrive() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::HangAfter);
    let output = world.turn(4242, 1, "answer").await;
    world.bot.wait_for_sent(1, PATIENCE).await.unwrap();
    running.kill().await;
    let next = world.turn(4242, 2, "next").await;

    let running = world.dispatch();
    let row = world.wait_for_delivery(&output, DeliveryState::Uncertain).await;
    assert_eq!(row.reason.as_deref(), Some("interrupted"));
    world.wait_for_delivery(&next, DeliveryState::Delivered).await;
    running.stop().await;
    let texts: Vec<_> = world.bot.sent().into_iter().map(|sent| sent.text).collect();
    assert_eq!(texts, ["answer", "next"]);
}

#[tokio::test]
async fn killed_between_chunks_leaves_the_rest_to_a_person() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::Delay(Duration::ZERO));
    world.bot.fail("sendMessage", Failure::HangBefore);
    let output = world.turn(4242, 1, &"a".repeat(9_000)).await;
    world.bot.wait_for_calls("sendMessage", 2, PATIENCE).await.unwrap();
    running.kill().await;
    let running = world.dispatch();
    let row = world.wait_for_delivery(&output, DeliveryState::Uncertain).await;
    running.stop().await;
    let states: Vec<_> = row.chunks.iter().map(|chunk| chunk.state).collect();
    assert_eq!(states, [ChunkState::Sent, ChunkState::Uncertain, ChunkState::Pending]);
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test]
async fn stopped_while_it_waits_it_is_sent_once_by_the_next_one() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 3_000 });
    let output = world.turn(4242, 1, "answer").await;
    world.bot.wait_for_calls("sendMessage", 1, PATIENCE).await.unwrap();
    running.stop().await;
    assert!(world.bot.sent().is_empty());
    let running = world.dispatch();
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test]
async fn stopped_between_chunks_the_next_one_goes_on_and_the_receipt_is_whole() {
    let world = World::new().await;
    let running = world.dispatch();
    world.bot.fail("sendMessage", Failure::Delay(Duration::from_millis(300)));
    let output = world.turn(4242, 1, &"a".repeat(9_000)).await;
    world.bot.wait_for_calls("sendMessage", 1, PATIENCE).await.unwrap();
    running.stop().await;
    assert_eq!(world.bot.sent().len(), 1, "what was begun was finished, and nothing more was begun");
    let running = world.dispatch();
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    running.stop().await;
    let sent = world.bot.sent();
    assert_eq!(sent.iter().map(|sent| sent.text.len()).sum::<usize>(), 9_000);
    let receipts = world.wait_for_events(EventType::DeliveryTelegram, 1).await;
    let receipt = receipts[0].payload::<DeliveryTelegram>().unwrap();
    let told: Vec<_> = receipt.chunks.iter().filter_map(|chunk| chunk.message_id).collect();
    assert_eq!(told, sent.iter().map(|sent| sent.message_id).collect::<Vec<_>>());
}

#[tokio::test]
async fn whether_a_dispatcher_is_at_work_is_known() {
    let world = World::new().await;
    let early = world.turn(4242, 1, "early").await;
    let running = world.dispatch();
    world.wait_for_delivery(&early, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(
        world.engine.cursor("dispatcher:telegram:stream".to_owned()).await.unwrap(),
        world.engine.event(early).await.unwrap().unwrap().envelope.position
    );
}

#[tokio::test]
async fn a_cursor_that_lags_sends_nothing_twice() {
    let world = World::new().await;
    let running = world.dispatch();
    // The first chat waits, so that the cursor stays below its event while others are delivered.
    world.bot.fail("sendMessage", Failure::HangBefore);
    let stuck = world.turn(1, 1, "stuck").await;
    world.bot.wait_for_calls("sendMessage", 1, PATIENCE).await.unwrap();
    let behind = world.turn(1, 2, "behind").await;
    let mut others = Vec::new();
    for chat in 2..=6 {
        others.push(world.turn(chat, 1, &format!("to {chat}")).await);
    }
    for output in &others {
        world.wait_for_delivery(output, DeliveryState::Delivered).await;
    }
    let cursor = world.engine.cursor("dispatcher:telegram:stream".to_owned()).await.unwrap();
    let position = world.engine.event(behind.clone()).await.unwrap().unwrap().envelope.position;
    assert!(cursor < position);
    running.kill().await;

    let running = world.dispatch();
    world.wait_for_delivery(&stuck, DeliveryState::Uncertain).await;
    world.wait_for_delivery(&behind, DeliveryState::Delivered).await;
    running.stop().await;
    let mut texts: Vec<_> = world.bot.sent().into_iter().map(|sent| sent.text).collect();
    texts.sort();
    assert_eq!(texts, ["behind", "to 2", "to 3", "to 4", "to 5", "to 6"]);
}

#[tokio::test]
async fn runs_that_end_without_an_answer_are_told_of_once_and_superseded_ones_not() {
    let world = World::new().await;
    let running = world.dispatch();
    let mut told = Vec::new();
    for (message, ending, reason) in [
        (1, Ending::Blocked, "superseded"),
        (2, Ending::Failed, "reason-canary"),
        (3, Ending::Blocked, "policy"),
        (4, Ending::Abandoned, "operator"),
    ] {
        let trigger = world.said(4242, None, message).await;
        told.push(world.ended(&trigger, ending, reason).await.envelope.id);
    }
    for cause in &told[1..] {
        world.wait_for_kind(cause, DeliveryKind::RunFailed, DeliveryState::Delivered).await;
    }
    running.stop().await;
    let sent = world.bot.sent();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|sent| sent.text == "I couldn't answer that one. Nothing was changed."));
    assert_eq!(world.delivery(&told[0], DeliveryKind::RunFailed).await, None);
    let receipts = world.events(&[EventType::DeliveryTelegram]).await;
    assert_eq!(payload(&receipts[0])["kind"], "notice:run-failed");
    assert_eq!(payload(&receipts[0]).get("output"), None);
    assert_eq!(receipts[0].envelope.parent_id.as_ref(), Some(&told[1]));
}

#[tokio::test]
async fn a_failure_is_not_told_of_where_that_is_off() {
    let world = World { switches: Switches { failure_notice: false, notices: true }, ..World::new().await };
    let running = world.dispatch();
    let trigger = world.said(4242, None, 1).await;
    world.ended(&trigger, Ending::Failed, "x").await;
    let next = world.turn(4242, 2, "next").await;
    world.wait_for_delivery(&next, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test]
async fn commands_and_requested_notices_are_answered_with_their_fixed_texts() {
    let world = World::new().await;
    let running = world.dispatch();
    for (message, command) in (1..).zip(["start", "help", "focus", "correct"]) {
        let event = world.commanded(4242, message, command).await;
        if command != "correct" {
            world.wait_for_kind(&event.envelope.id, DeliveryKind::Help, DeliveryState::Delivered).await;
        }
    }
    let request = NoticeRequested { name: NoticeName::UnsupportedKind, chat_id: 4242, thread_id: None };
    let about = NoticeSubject { subject: "4242:9".to_owned(), day: None, cause: None };
    let draft = draft::notice_requested("telegram", &about, &request, world.clock.now()).unwrap();
    let event = world.append(draft).await;
    world.wait_for_kind(&event.envelope.id, DeliveryKind::UnsupportedKind, DeliveryState::Delivered).await;
    running.stop().await;
    let texts: Vec<_> = world.bot.sent().into_iter().map(|sent| sent.text).collect();
    assert_eq!(texts.len(), 4);
    assert!(texts[1].contains("/focus <description>") && texts[2].contains("suggestion"));
    assert_eq!(texts[3], "I can't read that kind of message yet.");
}

#[tokio::test]
async fn in_a_group_the_answer_replies_and_in_a_topic_it_stays_there() {
    let world = World::new().await;
    let group = ChatSpec::of(ChatKind::Supergroup, -7);
    let asked = world.bot.push(&MessageSpec::text(group, UserSpec::person(4242), "a question"));
    let forum = ChatSpec::of(ChatKind::Forum, -70);
    let topic = world.bot.push(&MessageSpec::text(forum, UserSpec::person(4242), "q").in_topic(77));
    let running = world.dispatch();
    let long = "a".repeat(5_000);
    let output = world.turn(-7, asked.message_id, &long).await;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    // A message that is gone hinders nothing.
    let output = world.turn(-7, 999, "late").await;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    let trigger = world.said(-70, Some(77), topic.message_id).await;
    let output = world.answered(&trigger, "there", false).await.envelope.id;
    world.wait_for_delivery(&output, DeliveryState::Delivered).await;
    running.stop().await;
    let replies: Vec<_> =
        world.bot.sent().iter().map(|sent| (sent.chat_id, sent.thread, sent.reply_to)).collect();
    assert_eq!(
        replies,
        [
            (-7, None, Some(asked.message_id)),
            (-7, None, None),
            (-7, None, None),
            (-70, Some(77), Some(topic.message_id))
        ]
    );
    let receipt = world.events(&[EventType::DeliveryTelegram]).await.pop().unwrap();
    assert_eq!(receipt.envelope.correlation_id.as_deref(), Some("-70:77"));
}

#[tokio::test]
async fn events_of_another_channel_are_not_delivered_here() {
    let world = World::new().await;
    let mail = thought_contract::payload::AgentMessage {
        message_id: "m1".to_owned(),
        thread_id: "4242:0".to_owned(),
        sender_agent_id: "co".to_owned(),
        recipient_agent_id: "stream-agent-conversation".to_owned(),
        text: "x".to_owned(),
    };
    let trigger = world.append(draft::agent_message(&mail, world.clock.now()).unwrap()).await;
    world.ended(&trigger, Ending::Failed, "x").await;
    world.answered(&trigger, "not for a chat", false).await;
    let running = world.dispatch();
    let next = world.turn(4242, 2, "next").await;
    world.wait_for_delivery(&next, DeliveryState::Delivered).await;
    running.stop().await;
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test]
async fn a_backlog_in_many_chats_arrives_once_and_in_order_of_each_chat() {
    let world = World::new().await;
    let mut last = Vec::new();
    for round in 1..=6 {
        last.clear();
        for chat in 1..=20 {
            last.push(world.turn(chat, round, &format!("{round}")).await);
        }
    }
    world.bot.fail_times("sendMessage", 10, Failure::BadGateway);
    let running = world.dispatch();
    for output in &last {
        world.wait_for_delivery(output, DeliveryState::Delivered).await;
    }
    running.stop().await;
    let sent = world.bot.sent();
    assert_eq!(sent.len(), 120);
    for chat in 1..=20 {
        let rounds: Vec<_> =
            sent.iter().filter(|sent| sent.chat_id == chat).map(|sent| sent.text.as_str()).collect();
        assert_eq!(rounds, ["1", "2", "3", "4", "5", "6"]);
    }
    world.wait_for_events(EventType::DeliveryTelegram, 120).await;
}

#[tokio::test]
async fn report_36_neither_token_nor_words_reach_a_log() {
    let world = World::new().await;
    let (log, _guard) = Log::listen();
    let running = world.dispatch();
    let failures = [
        Failure::internal(),
        Failure::cannot_parse_entities(),
        Failure::DropAfter,
        Failure::blocked(),
        Failure::Refused { code: 400, description: format!("Bad Request: /bot{TOKEN}/sendMessage canary") },
    ];
    for failure in failures {
        world.bot.fail("sendMessage", failure);
    }
    for message in 1..=4 {
        world.turn(4242, message, "**canary** words").await;
    }
    world.bot.wait_for_calls("sendMessage", 6, PATIENCE).await.unwrap();
    running.stop().await;
    let nobody = world.dispatch_with(world.dispatcher_with(&world::client("http://127.0.0.1:1")));
    let output = world.turn(4242, 9, "canary").await;
    world.wait_for_delivery(&output, DeliveryState::Sending).await;
    nobody.stop().await;
    let text = log.text();
    assert!(text.contains("a delivery is uncertain") && text.contains("unreachable"), "the log was heard");
    assert!(!text.contains("SECRET") && !text.contains("canary"));
    assert!(!world.stores("SECRET"));
}
