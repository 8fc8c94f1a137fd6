//! Who is not admitted: dropped, counted, named by id alone, and nowhere else.

use serde_json::json;
use thought_fakes::{ChatKind, ChatSpec, MessageSpec, UserSpec};
use thought_testkit::world::{CHAT, World};
use thought_testkit::{canary, wait_until};

use crate::THOUGHT;

const WORDS: &str = "canary-words-of-a-stranger";

fn dropped(world: &World) -> u64 {
    world.home.object(&["status"])["updates"]["dropped"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_dropped_and_counted_and_their_words_stand_nowhere() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let stranger = ChatSpec { title: WORDS.to_owned(), ..ChatSpec::private(666) };
    world.bot.push_message(
        stranger,
        UserSpec { first_name: WORDS.to_owned(), ..UserSpec::person(666) },
        WORDS,
    );
    wait_until("the count", || dropped(&world) == 1);
    world.turn("somebody admitted", 1).await;
    let log = serve.stop();
    assert_eq!((world.bot.sent().len(), world.home.runs().len()), (1, 1));
    let status = world.home.object(&["status"]);
    assert_eq!(status["refusedChats"], json!([{"id": 666, "kind": "private"}]));
    let who = world.home.lines(&["doctor", "--who"]);
    assert_eq!((who.len(), &who[0]["id"], &who[0]["kind"]), (1, &json!(666), &json!("private")));
    // Whoever takes the line over loses nobody who is admitted.
    let line = format!("allowed_chats = [{CHAT}, 666]");
    let printed = world.home.run(&["doctor", "--who"]).exit(0);
    assert!(format!("{}{}", printed.stdout, printed.stderr).contains(&line));
    assert!(log.contains(&line), "{log}");
    assert!(canary::in_folder(world.home.folder.path(), &[WORDS]).is_empty());
    assert!(!log.contains(WORDS) && !status.to_string().contains(WORDS));
    assert!(log.contains("666"), "serve names the chat: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_group_only_the_named_people_are_heard() {
    let world = World::start(THOUGHT).await;
    let group = ChatSpec::of(ChatKind::Supergroup, -100_123);
    world.bot.add_chat(group.clone());
    world.home.set("telegram", "allowed_chats", Some("[-100123]"));
    world.home.set("telegram", "allowed_users", Some("[4242]"));
    let serve = world.serve();
    let via_bot = json!({"id": 9, "is_bot": true, "first_name": "B", "username": "some_bot"});
    let channel = json!({"id": -1009, "type": "channel", "title": "T"});
    let refused = [
        MessageSpec::text(group.clone(), UserSpec::person(5), WORDS),
        MessageSpec::text(group.clone(), UserSpec::anonymous_admin(), WORDS)
            .with("sender_chat", json!({"id": -100_123, "type": "supergroup", "title": "The chat"})),
        MessageSpec::text(group.clone(), UserSpec::person(CHAT), WORDS).with("via_bot", via_bot),
        MessageSpec::text(group.clone(), UserSpec::person(CHAT), WORDS).with("sender_chat", channel),
        // The person alone is not enough: their private chat is not admitted here.
        MessageSpec::text(ChatSpec::private(CHAT), UserSpec::person(CHAT), WORDS),
    ];
    for (number, message) in (1..).zip(&refused) {
        world.bot.push(message);
        wait_until(&format!("refusal {number}"), || dropped(&world) == number);
    }
    world.bot.push(&MessageSpec::text(group, UserSpec::person(CHAT), "somebody named"));
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    assert_eq!(world.bot.sent()[0].chat_id, -100_123);
    assert_eq!((world.home.runs().len(), world.model.request_count()), (1, 1));
    assert!(canary::in_folder(world.home.folder.path(), &[WORDS]).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_eight_refused_chats_are_named() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    for id in 1..=10 {
        world.bot.push_message(ChatSpec::private(id), UserSpec::person(id), "let me in");
    }
    wait_until("the count", || dropped(&world) == 10);
    let status = world.home.object(&["status"]);
    let mut named: Vec<i64> =
        status["refusedChats"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
    named.sort_unstable();
    assert_eq!(named, [3, 4, 5, 6, 7, 8, 9, 10]);
    serve.stop();
}
