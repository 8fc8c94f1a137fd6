//! `/correct`: the reply that is meant, the judgment, and what the next turn is shown.

use serde_json::{Value, json};
use thought_fakes::{ChatKind, ChatSpec, MessageSpec, UserSpec};
use thought_testkit::WAIT_MAX;
use thought_testkit::world::{Speaks, World};

use crate::THOUGHT;
use crate::world::{CORRECTED, OWN, answer, own_words, says, shown, texts, world};

fn judgments(world: &World) -> Vec<Value> {
    world.home.events("judgment.recorded@2")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_told_and_the_next_turn_is_shown_it_instead() {
    let world = world(vec![says("It is Monday."), says("Noted."), says("Yes.")]).await;
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    world.say("/correct It is Tuesday.");
    world.home.wait_for_deliveries("notice:corrected", 1);
    world.turn("Thanks.", 2).await;
    // A second one on the same answer takes the place of the first.
    let first_reply = world.bot.sent()[0].message_id;
    answer(&world, OWN, first_reply, "/correct It is Wednesday.");
    world.home.wait_for_deliveries("notice:corrected", 2);
    world.turn("Really?", 3).await;
    serve.stop();

    assert_eq!(texts(&world), ["It is Monday.", CORRECTED, "Noted.", CORRECTED, "Yes."]);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 3, "a correction asks no model");
    assert_eq!(own_words(&requests[1]), ["It is Tuesday."]);
    assert_eq!(own_words(&requests[2]), ["It is Wednesday.", "Noted."]);
    let user: Vec<_> = shown(&requests[2]).into_iter().filter(|(role, _)| role == "user").collect();
    let user: Vec<_> = user.iter().map(|(_, said)| said.as_str()).collect();
    assert_eq!(user, ["What day is it?", "Thanks.", "Really?"], "a command is no turn");
    for request in &requests[1..] {
        let body = String::from_utf8(request.body.clone()).unwrap();
        assert!(!body.contains("It is Monday.") && !body.contains(CORRECTED) && !body.contains("/correct"));
    }

    // The evidence: who said what of which answer.
    let judged = judgments(&world);
    let commands = world.home.events("source.telegram.command@1");
    let outputs = world.home.events("derived.message.observation@1");
    let message = world.home.events("source.telegram.message@1").remove(0);
    let receipt = world.home.deliveries("reply").remove(0);
    let run = world.home.runs().remove(0);
    assert_eq!(judged.len(), 2);
    assert_eq!(
        judged[0]["payload"],
        json!({
            "schemaVersion": 2, "kind": "correct", "criterion": "operator-correction", "criterionVersion": 1,
            "actor": "human:telegram:4242",
            "target": {
                "run": run["id"], "output": outputs[0]["id"], "deliveryReceipt": receipt["id"],
                "sourceRoot": message["id"], "contract": "conversation-text@1",
            },
            "replacement": {"summary": "It is Tuesday."}, "feedback": commands[0]["id"],
            "qualityEligible": true, "externalExportEligible": false,
        })
    );
    assert_eq!(judged[0]["parentId"], commands[0]["id"]);
    assert_eq!(judged[1]["payload"]["supersedes"], judged[0]["id"]);
    assert_eq!(outputs[0]["payload"]["summary"], "It is Monday.", "nothing is rewritten");
    let told = world.home.deliveries("notice:corrected");
    assert_eq!(told[0]["parentId"], judged[0]["id"]);
    let whole = world.home.json(&["verify"]);
    assert_eq!(whole.code, Some(0), "{}", whole.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_api_is_shown_it_too() {
    let world = World::speaking(THOUGHT, Speaks::OpenAi, None).await;
    world.model.script(vec![says("It is Monday."), says("Noted.")]);
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    world.say("/correct It is Tuesday.");
    world.home.wait_for_deliveries("notice:corrected", 1);
    world.turn("Thanks.", 2).await;
    serve.stop();
    assert_eq!(own_words(&world.model.requests()[1]), ["It is Tuesday."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_right_behind_a_correction_is_answered_after_it() {
    const ROUNDS: usize = 6;
    let world = world((0..=ROUNDS).map(|round| says(&format!("Answer {round}."))).collect()).await;
    let serve = world.serve();
    world.turn("Go on.", 1).await;
    for round in 1..=ROUNDS {
        // Both arrive in one batch or in two; the second never overtakes the first.
        world.say(&format!("/correct Correction {round}."));
        world.say(&format!("Question {round}?"));
        world.home.wait_for_deliveries("reply", round + 1);
    }
    serve.stop();
    // Left for a serve that is not there yet: the same.
    world.say("/correct The last correction.");
    world.say("The last question?");
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", ROUNDS + 2);
    world.home.wait_for_deliveries("notice:corrected", ROUNDS + 1);
    serve.stop();

    let requests = world.model.requests();
    for (round, request) in requests[..=ROUNDS].iter().enumerate() {
        let words: Vec<_> = (1..=round).map(|n| format!("Correction {n}.")).collect();
        assert_eq!(own_words(request), words, "round {round}");
    }
    assert_eq!(own_words(&requests[ROUNDS + 1]).last().unwrap(), "The last correction.");
    // In the log: each judgment stands before the answer to the message behind its command.
    let judged = judgments(&world);
    let outputs = world.home.events("derived.message.observation@1");
    assert_eq!((judged.len(), outputs.len()), (ROUNDS + 1, ROUNDS + 2));
    for (judgment, output) in judged.iter().zip(&outputs[1..]) {
        assert!(judgment["position"].as_u64() < output["position"].as_u64());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_is_a_process_of_its_own_waits_for_corrections_too() {
    let world = world(vec![says("It is Monday."), says("Noted."), says("Yes.")]).await;
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    serve.stop();
    // A serve leaves the consumer to this process, and brings in what it consumes.
    let mut alone = world.home.binary.spawn(
        &[
            "--home",
            thought_testkit::run::argument(&world.home.path),
            "--json",
            "consume",
            "--agent",
            "stream-telegram-conversation",
        ],
        std::process::Stdio::piped(),
        std::process::Stdio::null(),
    );
    let mut line = String::new();
    let mut told = std::io::BufReader::new(alone.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut told, &mut line).unwrap();
    assert!(line.contains("\"ready\":true"), "{line}");
    world.say("/correct It is Tuesday.");
    world.say("Thanks.");
    let serve = world.serve();
    assert_eq!(serve.ready["leftToTheirHolders"], json!(["consume-stream-telegram-conversation"]));
    world.home.wait_for_deliveries("reply", 2);
    world.home.wait_for_deliveries("notice:corrected", 1);
    serve.stop();
    alone.signal(rustix::process::Signal::TERM);
    assert!(alone.wait_for_end("the end of consume").success());
    assert_eq!(own_words(&world.model.requests()[1]), ["It is Tuesday."]);
    assert_eq!(judgments(&world).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_chunk_of_a_reply_names_it() {
    let long = format!("{}\n\n{}", "a".repeat(3_900), "b".repeat(3_900));
    let world = world(vec![says(&long), says("Short."), says("So.")]).await;
    let serve = world.serve();
    world.turn("Tell me much.", 1).await;
    world.turn("Tell me little.", 2).await;
    let sent = world.bot.sent();
    assert_eq!(sent.len(), 3, "two chunks and one");
    answer(&world, OWN, sent[1].message_id, "/correct\nMuch, and right.\n\nIn two parts.");
    world.home.wait_for_deliveries("notice:corrected", 1);
    world.turn("Well?", 3).await;
    serve.stop();
    let output = world.home.events("derived.message.observation@1").remove(0);
    let judgment = judgments(&world).remove(0);
    assert_eq!(judgment["payload"]["target"]["output"], output["id"]);
    assert_eq!(own_words(&world.model.requests()[2]), ["Much, and right.\n\nIn two parts.", "Short."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_reply_is_the_one_of_the_same_chat() {
    let world = world(vec![says("Here."), says("There."), says("Here again.")]).await;
    world.home.set("telegram", "allowed_chats", Some("[4242, 77]"));
    world.bot.add_chat(ChatSpec::private(77));
    let serve = world.serve();
    world.turn("Here?", 1).await;
    world.bot.push_message(ChatSpec::private(77), UserSpec::person(77), "There?");
    world.home.wait_for_deliveries("reply", 2);
    world.say("/correct Right here.");
    world.home.wait_for_deliveries("notice:corrected", 1);
    world.turn("And now?", 3).await;
    serve.stop();
    let told = world.bot.sent().into_iter().find(|sent| sent.text == CORRECTED).unwrap();
    assert_eq!(told.chat_id, OWN);
    assert_eq!(own_words(&world.model.requests()[2]), ["Right here."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_group_only_the_admitted_may_correct() {
    let world = world(vec![says("It is Monday."), says("Noted.")]).await;
    let group = ChatSpec::of(ChatKind::Supergroup, -7);
    world.bot.add_chat(group.clone());
    world.home.set("telegram", "allowed_chats", Some("[4242, -7]"));
    world.home.set("telegram", "allowed_users", Some("[4242]"));
    let serve = world.serve();
    let push = |user: i64, text: &str| {
        world.bot.push(&MessageSpec::text(group.clone(), UserSpec::person(user), text))
    };
    push(OWN, "What day is it?");
    world.home.wait_for_deliveries("reply", 1);
    let reply = world.bot.sent()[0].message_id;
    let stranger = MessageSpec::text(group.clone(), UserSpec::person(99), "/correct It is a stranger's day.");
    world.bot.push(&stranger.replying_to(reply));
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    let asked = push(OWN, "/correct It is Tuesday.");
    world.home.wait_for_deliveries("notice:corrected", 1);
    push(OWN, "Thanks.");
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    assert_eq!(judgments(&world).len(), 1);
    assert_eq!(world.home.events("source.telegram.command@1").len(), 1, "a stranger's words are not kept");
    let told = &world.bot.sent()[1];
    assert_eq!((told.text.as_str(), told.chat_id, told.reply_to), (CORRECTED, -7, Some(asked.message_id)));
    assert_eq!(own_words(&world.model.requests()[1]), ["It is Tuesday."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_notices_are_off_it_counts_all_the_same_and_nothing_is_said() {
    let world = world(vec![says("It is Monday."), says("Noted.")]).await;
    world.home.set("telegram", "notices", Some("false"));
    let serve = world.serve();
    world.say("/correct too early");
    world.turn("What day is it?", 1).await;
    world.say("/correct It is Tuesday.");
    world.turn("Thanks.", 2).await;
    serve.stop();
    assert_eq!(texts(&world), ["It is Monday.", "Noted."]);
    assert_eq!(own_words(&world.model.requests()[1]), ["It is Tuesday."]);
    // Turned on again, it brings up nothing old.
    world.home.set("telegram", "notices", Some("true"));
    world.model.script(vec![says("Good.")]);
    let serve = world.serve();
    world.turn("And now?", 3).await;
    serve.stop();
    assert!(!texts(&world).iter().any(|text| text.contains("couldn't match")), "{:?}", texts(&world));
}
