//! Corrections that match no reply: one fixed sentence, and nothing else.

use thought_fakes::{ChatSpec, UserSpec};
use thought_testkit::world::World;

use crate::world::{CORRECTED, NOT_MATCHED, OWN, answer, own_words, says, texts, world};

/// Waits until so many were refused, and makes sure that nothing was judged.
fn refused(world: &World, count: usize) {
    let told = world.home.wait_for_deliveries("notice:not-matched", count);
    let commands = world.home.events("source.telegram.command@1");
    let (told, command) = (told.last().unwrap(), commands.last().unwrap());
    assert_eq!((&told["parentId"], &told["rootId"]), (&command["id"], &command["id"]));
    assert_eq!(told["payload"]["kind"], "notice:not-matched");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_reply_is_not_corrected() {
    let world = world(vec![says("It is Monday."), says("Noted.")]).await;
    let serve = world.serve();
    world.say("/correct Before anything was said.");
    refused(&world, 1);
    world.turn("What day is it?", 1).await;
    world.say("/correct");
    refused(&world, 2);
    let question = world.home.events("source.telegram.message@1").remove(0);
    answer(&world, OWN, question["payload"]["messageId"].as_i64().unwrap(), "/correct My own words.");
    refused(&world, 3);
    let notice = world.bot.sent().into_iter().find(|sent| sent.text == NOT_MATCHED).unwrap();
    answer(&world, OWN, notice.message_id, "/correct A notice.");
    refused(&world, 4);
    world.say("/help");
    world.home.wait_for_deliveries("notice:help", 1);
    let help = world.bot.sent().last().unwrap().clone();
    assert!(help.text.contains("/correct <text>"), "{}", help.text);
    answer(&world, OWN, help.message_id, "/correct The help.");
    refused(&world, 5);
    world.turn("Thanks.", 2).await;
    serve.stop();
    assert!(world.home.events("judgment.recorded@2").is_empty());
    assert_eq!(texts(&world).iter().filter(|text| *text == NOT_MATCHED).count(), 5);
    assert_eq!(own_words(&world.model.requests()[1]), ["It is Monday."]);
    // A restart says none of it again.
    let serve = world.serve();
    world.turn("Still there?", 3).await;
    serve.stop();
    assert_eq!(texts(&world).iter().filter(|text| *text == NOT_MATCHED).count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_of_another_chat_is_out_of_reach() {
    let world = world(vec![says("There."), says("There again.")]).await;
    world.home.set("telegram", "allowed_chats", Some("[4242, 77]"));
    world.bot.add_chat(ChatSpec::private(77));
    let serve = world.serve();
    let there = |text: &str| world.bot.push_message(ChatSpec::private(77), UserSpec::person(77), text);
    there("There?");
    world.home.wait_for_deliveries("reply", 1);
    let reply = world.bot.sent()[0].clone();
    assert_eq!(reply.chat_id, 77);
    // By its number, and as the newest there is.
    answer(&world, OWN, reply.message_id, "/correct From elsewhere.");
    refused(&world, 1);
    world.say("/correct From elsewhere.");
    refused(&world, 2);
    there("And now?");
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    assert!(world.home.events("judgment.recorded@2").is_empty());
    assert_eq!(own_words(&world.model.requests()[1]), ["There."]);
    let told: Vec<_> = world.bot.sent().into_iter().filter(|sent| sent.text == NOT_MATCHED).collect();
    assert!(told.len() == 2 && told.iter().all(|sent| sent.chat_id == OWN));
    assert!(!texts(&world).contains(&CORRECTED.to_owned()));
}
