//! How an answer goes out: in chunks that Telegram takes, once, and with what is not known said.

use serde_json::json;
use thought_fakes::{ChatKind, ChatSpec, Failure, MessageSpec, Reply, SentMessage, UserSpec};
use thought_testkit::wait_for;
use thought_testkit::world::{CHAT, World};

use crate::THOUGHT;

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// One turn with this answer; what was sent for it.
async fn answered(world: &World, number: usize, answer: &str) -> Vec<SentMessage> {
    let before = world.bot.sent().len();
    world.model.script(vec![Reply::Text(answer.to_owned())]);
    world.turn("go on", number).await;
    let sent = world.bot.sent().split_off(before);
    let receipt = world.home.deliveries("reply").remove(number - 1);
    let named: Vec<_> = receipt["payload"]["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chunk| chunk["messageId"].clone())
        .collect();
    let ids: Vec<_> = sent.iter().map(|sent| json!(sent.message_id)).collect();
    assert_eq!(named, ids, "every chunk in order in one receipt");
    for sent in &sent {
        assert!(!sent.text.is_empty() && units(&sent.text) <= 4_096 && sent.entities.len() <= 100);
        assert!(sent.parse_mode.is_none());
    }
    sent
}

fn joined(sent: &[SentMessage]) -> String {
    sent.iter().map(|sent| sent.text.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn report_29_long_replies_become_chunks_and_one_receipt() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let emoji = format!("a{}", "\u{1F642}".repeat(4_096));
    for (number, text, chunks) in
        [(1, "a".repeat(4_096), 1), (2, "a".repeat(4_097), 2), (3, emoji, 3), (4, "b".repeat(12_000), 3)]
    {
        let sent = answered(&world, number, &text).await;
        assert_eq!(sent.len(), chunks, "answer {number}");
        assert!(joined(&sent) == text, "answer {number} arrives whole");
    }
    let link = "[here](https://example.org/a) ";
    let links = link.repeat(12_000 / link.len());
    let sent = answered(&world, 5, links.trim()).await;
    // A message holds at most a hundred entities; what stands beyond them is still there as text.
    assert!(sent.iter().all(|sent| !sent.entities.is_empty()));
    assert_eq!(joined(&sent).matches("here").count(), 12_000 / link.len());
    let sent = answered(&world, 6, "*bold without end, `code without end, [a link](without end").await;
    assert_eq!(sent.len(), 1);
    serve.stop();
    assert_eq!(world.model.request_count(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_that_telegram_refuses_fall_back_to_plain_text_once() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    world.bot.fail("sendMessage", Failure::cannot_parse_entities());
    let sent = answered(&world, 1, "Some **bold** words.").await;
    assert_eq!((sent.len(), sent[0].entities.len()), (1, 0));
    assert_eq!(world.bot.call_count("sendMessage"), 2);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_or_broken_bot_api_is_asked_again() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let failures =
        [Failure::TooManyRequests { retry_after_seconds: 1 }, Failure::internal(), Failure::BadGateway];
    for (number, failure) in (1..).zip(failures) {
        world.bot.fail("sendMessage", failure);
        let sent = answered(&world, number, "Here.").await;
        assert_eq!(sent.len(), 1);
        assert_eq!(world.bot.call_count("sendMessage"), 2 * number);
    }
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_blocked_the_bot_gets_nothing_and_status_says_so() {
    let world = World::start(THOUGHT).await;
    world.bot.fail("sendMessage", Failure::blocked());
    let serve = world.serve();
    world.say("hello");
    let undelivered = wait_for("the undelivered reply in status", || {
        let status = world.home.object(&["status"]);
        let ids = status["deliveries"]["undelivered"].as_array().unwrap().clone();
        (!ids.is_empty()).then_some(ids)
    });
    let run = world.home.runs().remove(0);
    assert_eq!(undelivered, std::slice::from_ref(&run["output"]), "named by the output event");
    serve.stop();
    let serve = world.serve();
    world.turn("unblocked", 1).await;
    serve.stop();
    assert_eq!(
        (world.bot.sent().len(), world.bot.call_count("sendMessage")),
        (1, 2),
        "a final refusal is final"
    );
    // What was not delivered is not history; what the person said is.
    let second = String::from_utf8(world.model.requests()[1].body.clone()).unwrap();
    assert!(second.contains("hello") && !second.contains("Hello."), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_moved_is_not_followed() {
    let world = World::start(THOUGHT).await;
    let group = ChatSpec::of(ChatKind::Group, -55);
    world.bot.add_chat(group.clone());
    world.bot.add_chat(ChatSpec::of(ChatKind::Supergroup, -100_055));
    world.home.set("telegram", "allowed_chats", Some("[-55]"));
    world.home.set("telegram", "allowed_users", Some("[4242]"));
    world.bot.fail("sendMessage", Failure::Migrated { to_chat_id: -100_055 });
    let serve = world.serve();
    world.bot.push(&MessageSpec::text(group, UserSpec::person(CHAT), "hello"));
    wait_for("the undelivered reply in status", || {
        let ids = world.home.object(&["status"])["deliveries"]["undelivered"].clone();
        (ids.as_array().unwrap().len() == 1).then_some(())
    });
    serve.stop();
    assert!(world.bot.sent().is_empty());
}

async fn uncertain_after(failure: Failure, arrived: usize) {
    let world = World::start(THOUGHT).await;
    world.bot.fail("sendMessage", failure);
    let serve = world.serve();
    world.say("did you get that?");
    let uncertain = wait_for("the uncertain reply in status", || {
        let ids = world.home.object(&["status"])["deliveries"]["uncertain"].as_array().unwrap().clone();
        (!ids.is_empty()).then_some(ids)
    });
    let run = world.home.runs().remove(0);
    assert_eq!(uncertain, std::slice::from_ref(&run["output"]));
    serve.stop();
    let serve = world.serve();
    world.turn("and now?", 1).await;
    serve.stop();
    assert_eq!(world.bot.call_count("sendMessage"), 2, "never sent twice");
    assert_eq!(world.bot.sent().len(), arrived + 1);
    let status = world.home.object(&["status"]);
    assert_eq!(status["deliveries"]["uncertain"], json!(uncertain), "said until somebody decides");
    // Without evidence of delivery the answer is no history; what the person said is.
    let second = String::from_utf8(world.model.requests()[1].body.clone()).unwrap();
    assert!(second.contains("did you get that?") && !second.contains("Hello."), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_whose_answer_is_lost_is_uncertain_and_never_sent_twice() {
    uncertain_after(Failure::DropAfter, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_breaks_off_is_uncertain_too() {
    uncertain_after(Failure::DropBefore, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_while_sending_is_uncertain_and_never_sent_twice() {
    let world = World::start(THOUGHT).await;
    world.bot.fail("sendMessage", Failure::HangAfter);
    let serve = world.serve();
    world.say("hello?");
    world.sent(1).await;
    serve.kill();
    let serve = world.serve();
    wait_for("the uncertain reply in status", || {
        let ids = world.home.object(&["status"])["deliveries"]["uncertain"].clone();
        (ids.as_array().unwrap().len() == 1).then_some(())
    });
    world.turn("still there?", 1).await;
    serve.stop();
    assert_eq!((world.bot.sent().len(), world.bot.call_count("sendMessage")), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_that_somebody_writes_and_not_after_the_answer() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![Reply::SlowText(std::time::Duration::from_secs(1), "There.".to_owned())]);
    let serve = world.serve();
    world.say("show me");
    world.bot.wait_for_calls("sendChatAction", 1, thought_testkit::WAIT_MAX).await.unwrap();
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    let calls: Vec<String> = world.bot.calls().iter().map(|call| call.method.clone()).collect();
    let last = |name: &str| calls.iter().rposition(|method| method == name).unwrap();
    assert!(last("sendChatAction") < last("sendMessage"), "{calls:?}");
}
