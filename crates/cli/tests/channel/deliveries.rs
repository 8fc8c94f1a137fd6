//! A delivery of which nobody can tell whether it arrived, and one that Telegram put off.

use std::process::Stdio;

use serde_json::{Value, json};
use thought_fakes::{Failure, Reply};
use thought_testkit::world::World;
use thought_testkit::{wait_for, wait_until};

use crate::THOUGHT;

/// A reply of three chunks whose second one is uncertain, and its id. `serve` is gone.
async fn uncertain(world: &World) -> String {
    world.model.script(vec![Reply::Text("word ".repeat(2_000))]);
    world.bot.fail("sendMessage", Failure::Delay(std::time::Duration::ZERO));
    world.bot.fail("sendMessage", Failure::DropAfter);
    let serve = world.serve();
    world.say("tell me at length");
    let id = wait_for("an uncertain delivery", || {
        let status = world.home.object(&["status"]);
        Some(status["deliveries"]["uncertain"][0].as_str()?.to_owned())
    });
    serve.stop();
    id
}

fn waiting(world: &World) -> Vec<Value> {
    world.home.object(&["status"])["deliveries"]["waiting"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn status_tells_what_is_uncertain_since_when_and_why() {
    let world = World::start(THOUGHT).await;
    let id = uncertain(&world).await;
    let rows = waiting(&world);
    let [row] = &rows[..] else { panic!("one: {rows:?}") };
    assert_eq!((&row["delivery"], &row["state"]), (&json!(id), &json!("uncertain")));
    assert_eq!(
        (&row["reason"], &row["chunksSent"], &row["chunks"]),
        (&json!("uncertain"), &json!(1), &json!(3))
    );
    assert!(row["since"].is_string());
    let page = world.home.run(&["status"]).exit(0).stdout;
    assert!(
        page.contains("delivery-retry") && page.contains(&id[..16]) && !page.contains("word word"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_goes_on_from_the_uncertain_chunk_and_then_there_is_nothing_left_to_say() {
    let world = World::start(THOUGHT).await;
    let id = uncertain(&world).await;
    let done = world.home.object(&["delivery-retry", &id[..14]]);
    assert_eq!(done, json!({"delivery": id, "status": "delivered"}));
    let sent = world.bot.sent();
    assert_eq!(sent.len(), 4, "the second chunk once more, because a person said so");
    let receipts = world.home.deliveries("reply");
    let chunks = receipts[0]["payload"]["chunks"].as_array().unwrap();
    let told: Vec<_> = chunks.iter().map(|chunk| chunk["messageId"].as_i64().unwrap()).collect();
    assert_eq!(told, [sent[0].message_id, sent[2].message_id, sent[3].message_id]);
    assert!(waiting(&world).is_empty());
    for command in ["delivery-retry", "delivery-confirm"] {
        assert_eq!(world.home.json(&[command, &id]).exit(3).error()["code"], "not-uncertain");
        world.home.json(&[command, "evt_00000000"]).exit(5);
        world.home.json(&[command, "run_00000000"]).exit(2);
    }
    let message = world.home.events("source.telegram.message@1")[0]["id"].as_str().unwrap().to_owned();
    world.home.json(&["delivery-retry", &message]).exit(5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_names_the_person_and_goes_on_behind_the_chunk_while_serve_is_at_work() {
    let world = World::start(THOUGHT).await;
    let id = uncertain(&world).await;
    world.home.set("operator", "names", Some("[\"alex\", \"sam\"]"));
    let serve = world.serve();
    world.home.json(&["delivery-confirm", &id]).exit(3);
    world.home.json(&["delivery-confirm", &id, "--actor", "eve"]).exit(3);
    let done = world.home.object(&["delivery-confirm", &id, "--actor", "sam"]);
    assert_eq!(done["status"], "delivered");
    assert_eq!(world.bot.sent().len(), 3, "the chunk that was seen is not sent again");
    let chunks = world.home.deliveries("reply")[0]["payload"]["chunks"].clone();
    assert_eq!((&chunks[1]["confirmedBy"], &chunks[1]["messageId"]), (&json!("sam"), &Value::Null));
    // What was seen is history.
    world.turn("and then?", 2).await;
    let request = String::from_utf8(world.model.requests()[1].body.clone()).unwrap();
    assert!(request.contains("word word"), "a confirmed answer is history");
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_comes_to_nothing_says_so() {
    let world = World::start(THOUGHT).await;
    let id = uncertain(&world).await;
    world.bot.fail("sendMessage", Failure::DropAfter);
    assert_eq!(world.home.json(&["delivery-retry", &id]).exit(8).error()["code"], "uncertain");
    world.bot.fail("sendMessage", Failure::blocked());
    assert_eq!(world.home.json(&["delivery-retry", &id]).exit(3).error()["code"], "undelivered");
    let rows = waiting(&world);
    assert_eq!((&rows[0]["state"], &rows[0]["reason"]), (&json!("undelivered"), &json!("forbidden")));
    assert_eq!(world.home.object(&["status"])["deliveries"]["undelivered"], json!([id]));
}

/// A command on a delivery, killed once the bot was called this often.
async fn killed(world: &World, command: &str, id: &str, calls: usize) {
    let home = world.home.path.to_str().unwrap().to_owned();
    let mut process = world.home.binary.spawn(&["--home", &home, command, id], Stdio::null(), Stdio::null());
    wait_until("the send", || world.bot.call_count("sendMessage") == calls);
    wait_until("its record", || waiting(world).iter().any(|row| row["state"] == "sending"));
    process.0.kill().unwrap();
    process.wait_for_end("the killed command");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_whose_process_dies_is_said_again_while_serve_is_at_work() {
    for (command, wanted) in [("delivery-retry", 5), ("delivery-confirm", 4)] {
        let world = World::start(THOUGHT).await;
        let id = uncertain(&world).await;
        let serve = world.serve();
        world.bot.fail("sendMessage", Failure::HangAfter);
        killed(&world, "delivery-retry", &id, 3).await;
        let rows = waiting(&world);
        assert_eq!((&rows[0]["state"], &rows[0]["reason"]), (&json!("sending"), &json!("interrupted")));
        let page = world.home.run(&["status"]).exit(0).stdout;
        assert!(page.contains("was left by a command that died: thought delivery-retry"), "{page}");
        assert_eq!(world.home.object(&[command, &id])["status"], "delivered");
        assert_eq!(world.bot.call_count("sendMessage"), wanted, "{command}");
        assert!(waiting(&world).is_empty());
        assert_eq!(world.home.json(&[command, &id]).exit(3).error()["code"], "not-uncertain");
        let left = std::fs::read_dir(world.home.below("run")).unwrap();
        assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().contains("evt_")));
        serve.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_whose_process_dies_in_a_pause_of_telegrams_is_a_message_that_was_not_sent() {
    let world = World::start(THOUGHT).await;
    let id = uncertain(&world).await;
    let serve = world.serve();
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 60 });
    let home = world.home.path.to_str().unwrap().to_owned();
    let retry = ["--home", &home, "delivery-retry", &id];
    let mut process = world.home.binary.spawn(&retry, Stdio::null(), Stdio::null());
    wait_until("the pause", || waiting(&world).iter().any(|row| row["reason"] == "retry-after"));
    let held = world.home.json(&["delivery-retry", &id]).exit(4).error();
    assert_eq!(held["code"], "claimed");
    process.0.kill().unwrap();
    process.wait_for_end("the killed command");
    // Nobody can have seen what was not sent.
    assert_eq!(world.home.json(&["delivery-confirm", &id]).exit(3).error()["code"], "not-uncertain");
    assert_eq!(world.home.object(&["delivery-retry", &id])["status"], "delivered");
    serve.stop();
    assert_eq!(
        world.bot.sent().len(),
        4,
        "the second chunk of the first time, and the three of a whole answer"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_serve_itself_is_sending_takes_no_word() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![Reply::Text("an answer".to_owned())]);
    world.bot.fail("sendMessage", Failure::Delay(std::time::Duration::from_secs(3)));
    let serve = world.serve();
    world.say("one");
    let id = wait_for("the send", || {
        Some(waiting(&world).first()?["delivery"].as_str()?.to_owned())
            .filter(|_| world.bot.call_count("sendMessage") == 1)
    });
    for command in ["delivery-retry", "delivery-confirm"] {
        assert_eq!(world.home.json(&[command, &id]).exit(3).error()["code"], "not-uncertain");
    }
    assert_ne!(waiting(&world)[0]["reason"], "interrupted");
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    assert_eq!(world.bot.sent().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_serve_that_begins_took_over_is_its_own_though_the_command_that_had_it_dies_later() {
    let world = World::start(THOUGHT).await;
    let id = uncertain(&world).await;
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 60 });
    let home = world.home.path.to_str().unwrap().to_owned();
    let retry = ["--home", &home, "delivery-retry", &id];
    let mut process = world.home.binary.spawn(&retry, Stdio::null(), Stdio::null());
    wait_until("the pause", || waiting(&world).iter().any(|row| row["reason"] == "retry-after"));
    world.bot.fail("sendMessage", Failure::HangAfter);
    let serve = world.serve();
    wait_until("the send of serve", || world.bot.call_count("sendMessage") == 4);
    process.0.kill().unwrap();
    process.wait_for_end("the killed command");
    let rows = waiting(&world);
    assert_eq!((&rows[0]["state"], rows[0]["reason"] == "interrupted"), (&json!("sending"), false));
    for command in ["delivery-retry", "delivery-confirm"] {
        assert_eq!(world.home.json(&[command, &id]).exit(3).error()["code"], "not-uncertain");
    }
    assert_eq!(world.bot.call_count("sendMessage"), 4, "nothing goes out twice");
    serve.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_telegram_puts_off_is_no_uncertain_one_and_the_next_turn_waits_for_it() {
    let world = World::start(THOUGHT).await;
    world
        .model
        .script(vec![Reply::Text("the first answer".to_owned()), Reply::Text("the second".to_owned())]);
    world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 3 });
    let serve = world.serve();
    world.say("one");
    world.requests(1).await;
    let row = wait_for("the pause in status", || {
        waiting(&world).into_iter().find(|row| row["reason"] == "retry-after")
    });
    assert_eq!(row["state"], "sending");
    assert_eq!(world.home.object(&["status"])["deliveries"]["uncertain"], json!([]));
    world.say("two");
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    let request = String::from_utf8(world.model.requests()[1].body.clone()).unwrap();
    assert!(request.contains("the first answer"), "the turn went on without the answer before it");
    assert_eq!(world.bot.sent().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_dies_at_any_moment_can_be_said_again_and_sends_no_more_than_was_asked() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let home = world.home.path.to_str().unwrap().to_owned();
    for round in 0..12_u64 {
        world.bot.fail("sendMessage", Failure::DropAfter);
        world.say(&format!("message {round}"));
        let id = wait_for("an uncertain delivery", || {
            let status = world.home.object(&["status"]);
            Some(status["deliveries"]["uncertain"][0].as_str()?.to_owned())
        });
        let before = world.bot.call_count("sendMessage");
        let retry = ["--home", &home, "delivery-retry", &id];
        world.bot.fail("sendMessage", Failure::Delay(std::time::Duration::from_millis(20)));
        let mut process = world.home.binary.spawn(&retry, Stdio::null(), Stdio::null());
        // Somewhere on its way: before it claims, while it sends, or when all is over.
        std::thread::sleep(std::time::Duration::from_millis(7 * round));
        process.0.kill().unwrap();
        process.wait_for_end("the killed command");
        let again = world.home.json(&["delivery-retry", &id]);
        assert!(matches!(again.code, Some(0 | 3)), "{}", again.stderr);
        world.home.wait_for_deliveries("reply", usize::try_from(round).unwrap() + 1);
        assert!(waiting(&world).is_empty());
        let sends = world.bot.call_count("sendMessage") - before;
        assert!((1..=2).contains(&sends), "two words were said, and {sends} messages sent");
    }
    serve.stop();
}
