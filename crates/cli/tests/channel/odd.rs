//! What people meet in a real channel: edits, replies, quotations, topics, moved groups, blocked bots, and scripts that are
//! not counted in bytes.

use serde_json::{Value, json};
use thought_fakes::{ChatKind, ChatSpec, Failure, MessageSpec, Reply, UserSpec};
use thought_testkit::world::{CHAT, World};
use thought_testkit::{WAIT_MAX, canary, wait_until};

use crate::THOUGHT;

const FORUM: i64 = -1_001;

fn in_groups(world: &World) {
    world.home.set("telegram", "allowed_chats", Some("[4242, -1001, -5]"));
    world.home.set("telegram", "allowed_users", Some("[4242]"));
    world.bot.add_chat(ChatSpec::of(ChatKind::Forum, FORUM));
    world.bot.add_chat(ChatSpec::of(ChatKind::Group, -5));
}

fn last_request(world: &World) -> String {
    String::from_utf8(world.model.requests().last().unwrap().body.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_general_topic_an_answer_has_no_thread_and_a_thread_of_replies_is_none() {
    let world = World::start(THOUGHT).await;
    in_groups(&world);
    let forum = ChatSpec::of(ChatKind::Forum, FORUM);
    let person = UserSpec::person(CHAT);
    let serve = world.serve();
    world.bot.push(&MessageSpec::text(forum.clone(), person.clone(), "in general"));
    world.home.wait_for_deliveries("reply", 1);
    world.bot.push(&MessageSpec::text(forum.clone(), person.clone(), "in a topic").in_topic(9));
    world.home.wait_for_deliveries("reply", 2);
    // The head of a thread of replies is named in the same field, and is no topic.
    let mut threaded = MessageSpec::text(forum, person, "again in general");
    threaded.thread = Some(55);
    world.bot.push(&threaded);
    world.home.wait_for_deliveries("reply", 3);
    serve.stop();
    let threads: Vec<_> = world.bot.sent().iter().map(|sent| sent.thread).collect();
    assert_eq!(threads, [None, Some(9), None]);
    let messages = world.home.events("source.telegram.message@1");
    let correlations: Vec<_> = messages.iter().map(|event| event["correlationId"].clone()).collect();
    assert_eq!(correlations, ["-1001:0", "-1001:9", "-1001:0"]);
    let request = last_request(&world);
    assert!(request.contains("in general") && !request.contains("in a topic"), "one conversation a topic");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quotation_of_a_stranger_is_never_stored_and_the_reply_is_known_by_number() {
    let world = World::start(THOUGHT).await;
    in_groups(&world);
    let serve = world.serve();
    let group = json!({"id": -5, "type": "group", "title": "canary-title"});
    let stranger = json!({"id": 99, "is_bot": false, "first_name": "canary-name"});
    let update = json!({"update_id": 5_000, "message": {
        "message_id": 61, "date": 1_796_000_000, "chat": group, "from": {"id": CHAT, "is_bot": false, "first_name": "A"},
        "text": "what do you say to that?",
        "reply_to_message": {"message_id": 60, "date": 1, "chat": group, "from": stranger, "text": "canary-words"},
        "quote": {"text": "canary-quote", "position": 0},
        "external_reply": {"origin": {"type": "user", "date": 1, "sender_user": stranger}},
    }});
    world.bot.push_update(update).unwrap();
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    let payload = world.home.events("source.telegram.message@1")[0]["payload"].clone();
    assert_eq!(
        (&payload["replyToMessageId"], &payload["text"]),
        (&json!(60), &json!("what do you say to that?"))
    );
    assert_eq!(canary::in_folder(&world.home.path, &["canary-"]), [""; 0]);
    assert!(!last_request(&world).contains("canary-"));
    let sent = &world.bot.sent()[0];
    assert_eq!((sent.chat_id, sent.reply_to), (-5, Some(61)), "in a group the answer says whom it answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_starts_no_turn_and_changes_nothing_that_was_said() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let said = world.say("the first words");
    world.home.wait_for_deliveries("reply", 1);
    world.bot.push_edit(CHAT, said.message_id, "canary-edit").unwrap();
    world.bot.push_edit(CHAT, said.message_id, "/correct canary-edit").unwrap();
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    world.turn("and now", 2).await;
    serve.stop();
    assert!(last_request(&world).contains("the first words"));
    assert_eq!((world.model.request_count(), world.home.events("source.telegram.command@1").len()), (2, 0));
    assert_eq!(canary::in_folder(&world.home.path, &["canary-edit"]), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_became_a_supergroup_is_not_heard_until_the_operator_says_so() {
    let world = World::start(THOUGHT).await;
    in_groups(&world);
    let serve = world.serve();
    let (group, supergroup) = (ChatSpec::of(ChatKind::Group, -5), ChatSpec::of(ChatKind::Supergroup, -1_005));
    let person = UserSpec::person(CHAT);
    world.bot.push(&MessageSpec::text(group.clone(), person.clone(), "spoken-in-the-old-group"));
    world.home.wait_for_deliveries("reply", 1);
    world.bot.push(&MessageSpec::bare(group, Some(person.clone())).with("migrate_to_chat_id", json!(-1_005)));
    world.bot.push(&MessageSpec::text(supergroup.clone(), person.clone(), "canary-behind"));
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    wait_until("the incident", || {
        world.home.events("incident@1").iter().any(|event| {
            event["payload"]["kind"] == "chat-migrated" && event["payload"]["subject"] == "-5:-1005"
        })
    });
    wait_until("the refused chat in status", || {
        let refused = world.home.object(&["status"])["refusedChats"].clone();
        refused.as_array().unwrap().iter().any(|chat| chat["id"] == -1_005)
    });
    serve.stop();
    assert_eq!(canary::in_folder(&world.home.path, &["canary-behind"]), [""; 0]);
    world.home.set("telegram", "allowed_chats", Some("[4242, -1005]"));
    let serve = world.serve();
    world.bot.push(&MessageSpec::text(supergroup, person, "admitted now"));
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    let chats: Vec<_> = world.bot.sent().iter().map(|sent| sent.chat_id).collect();
    assert_eq!(chats, [-5, -1_005]);
    assert!(
        !last_request(&world).contains("spoken-in-the-old-group"),
        "another chat is another conversation"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_that_is_blocked_and_let_in_again_goes_on_and_the_lost_answer_is_no_history() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![Reply::Text("lost answer".to_owned()), Reply::Text("back".to_owned())]);
    world.bot.fail("sendMessage", Failure::blocked());
    let serve = world.serve();
    world.say("one");
    let row = thought_testkit::wait_for("the refusal in status", || {
        world.home.object(&["status"])["deliveries"]["waiting"].as_array()?.first().cloned()
    });
    assert_eq!((&row["state"], &row["reason"]), (&json!("undelivered"), &json!("forbidden")));
    world.turn("two", 1).await;
    serve.stop();
    let request = last_request(&world);
    assert!(request.contains("one") && !request.contains("lost answer"));
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn report_29_hundreds_of_links_emoji_and_text_from_right_to_left_arrive_whole_and_in_order() {
    let world = World::start(THOUGHT).await;
    let links: String = (0..300).map(|n| format!("[l{n}](https://x.example/{n}) ")).collect();
    let rtl: String = (0..150).map(|n| format!("**שלום{n}🙂** ")).collect();
    world.model.script(vec![Reply::Text(links), Reply::Text(rtl.clone()), Reply::Text("👨‍👩‍👧‍👦".repeat(800))]);
    let serve = world.serve();
    for number in 1..=3 {
        world.turn("more", number).await;
    }
    serve.stop();
    let sent = world.bot.sent();
    let addresses: Vec<String> = sent
        .iter()
        .flat_map(|sent| &sent.entities)
        .filter_map(|entity| Some(entity["url"].as_str()?.to_owned()))
        .collect();
    let wanted: Vec<String> = (0..300).map(|n| format!("https://x.example/{n}")).collect();
    assert_eq!(addresses, wanted, "no address is lost, and their order is kept");
    for sent in &sent {
        let units: Vec<u16> = sent.text.encode_utf16().collect();
        assert!(units.len() <= 4_096 && sent.entities.len() <= 100 && sent.parse_mode.is_none());
        for entity in &sent.entities {
            let from = usize::try_from(entity["offset"].as_u64().unwrap()).unwrap();
            let to = from + usize::try_from(entity["length"].as_u64().unwrap()).unwrap();
            assert!(String::from_utf16(&units[from..to]).is_ok(), "an entity splits a surrogate pair");
        }
    }
    let texts: String = sent.iter().map(|sent| format!("{} ", sent.text)).collect();
    let bold = sent.iter().flat_map(|sent| &sent.entities).filter(|entity| entity["type"] == "bold").count();
    assert_eq!((texts.matches("שלום").count(), bold, texts.matches("👨‍👩‍👧‍👦").count()), (150, 150, 800));
    let receipts = world.home.deliveries("reply");
    let named: usize =
        receipts.iter().map(|event| event["payload"]["chunks"].as_array().unwrap().len()).sum();
    assert_eq!((receipts.len(), named), (3, sent.len()), "each chunk is named in its one receipt");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_that_is_not_read_gets_the_one_fixed_notice_and_an_album_of_them_one() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let (chat, person) = (ChatSpec::private(CHAT), UserSpec::person(CHAT));
    let kinds = [
        "animation",
        "audio",
        "contact",
        "dice",
        "document",
        "location",
        "poll",
        "video",
        "video_note",
        "voice",
    ];
    for kind in kinds {
        world
            .bot
            .push(&MessageSpec::bare(chat.clone(), Some(person.clone())).with(kind, json!({"file_id": "x"})));
    }
    world.home.wait_for_deliveries("notice:unsupported-kind", kinds.len());
    for _ in 0..3 {
        let video = MessageSpec::bare(chat.clone(), Some(person.clone()))
            .with("video", json!({"file_id": "x"}))
            .with("media_group_id", json!("album-9"));
        world.bot.push(&video);
    }
    world.home.wait_for_deliveries("notice:unsupported-kind", kinds.len() + 1);
    world.turn("only words", 1).await;
    serve.stop();
    let texts: Vec<Value> = world.bot.sent().into_iter().map(|sent| json!(sent.text)).collect();
    assert_eq!(texts.len(), kinds.len() + 2);
    assert!(texts[..=kinds.len()].iter().all(|text| text == "I can't read that kind of message yet."));
    assert_eq!(world.model.request_count(), 1);
    assert!(!last_request(&world).contains("can't read that kind"), "a notice is no history");
}
