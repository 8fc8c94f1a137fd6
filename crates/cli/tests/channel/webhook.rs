//! The webhook from outside: set and deleted by commands alone, posts that are let in and posts that are not, and the two
//! ways of receiving that exclude each other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::{Value, json};
use thought_fakes::{ChatSpec, Failure, UserSpec};
use thought_testkit::world::{CHAT, TOKEN, World};
use thought_testkit::{WAIT_MAX, canary, wait_for, wait_until};

use thought_telegram::limits::WEBHOOK_CONNECTIONS_MAX;

use crate::THOUGHT;

const SECRET: &str = "webhook-secret_0123456789";
const VARIABLE: &str = "THOUGHT_TELEGRAM_WEBHOOK_SECRET";

/// A world that receives by webhook, and where.
async fn world() -> (World, SocketAddr) {
    let mut world = World::start(THOUGHT).await;
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.home.set("telegram", "ingress", Some("\"webhook\""));
    let without: Vec<String> =
        world.home.configuration().split("\n[telegram.webhook]").map(str::to_owned).collect();
    assert_eq!(without.len(), 1, "init writes no webhook that is on");
    let table = format!(
        "{}\n[telegram.webhook]\nlisten = \"{address}\"\npath = \"/telegram\"\nsecret_env = \"{VARIABLE}\"\n\
         public_url = \"http://{address}/telegram\"\n",
        without[0]
    );
    world.home.set_configuration(&table);
    world.home.env(VARIABLE, SECRET);
    (world, address)
}

/// The status of a post; none when nobody listens.
fn post(address: SocketAddr, secrets: &[&str], body: &Value) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    let body = body.to_string();
    let secrets: String =
        secrets.iter().map(|secret| format!("X-Telegram-Bot-Api-Secret-Token: {secret}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "POST /telegram HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{secrets}content-length: {length}"
    );
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1)?.parse().ok()
}

fn update(id: i64, text: &str) -> Value {
    json!({"update_id": id, "message": {"message_id": 1_000 + id, "date": 1_796_000_000, "text": text,
        "chat": {"id": CHAT, "type": "private"}, "from": {"id": CHAT, "is_bot": false, "first_name": "A"}}})
}

fn problem(world: &World) -> Value {
    world.home.object(&["status"])["channel"]["problem"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn telegram_posts_and_is_answered_once_each_until_the_webhook_is_deleted() {
    let (world, _) = world().await;
    let serve = world.serve();
    wait_until("status to say that no webhook is set", || problem(&world) == "webhook-not-set");
    assert_eq!(world.bot.webhook_url(), None, "serve sets none");
    let doctor = world.home.json(&["doctor"]).exit(3).object();
    assert!(doctor.to_string().contains("telegram-webhook-set"), "{doctor}");
    for _ in 0..2 {
        assert_eq!(world.home.object(&["telegram-webhook-set"]), json!({"webhook": "set"}));
    }
    let calls = world.bot.calls();
    let set = &calls.iter().find(|call| call.method == "setWebhook").unwrap().params;
    assert_eq!((&set["max_connections"], &set["secret_token"]), (&json!(1), &json!(SECRET)));
    assert_eq!(set["allowed_updates"], json!(["message", "edited_message"]));
    world.turn("through the webhook", 1).await;
    assert_eq!(problem(&world), Value::Null);
    world.bot.push_message(ChatSpec::private(99), UserSpec::person(99), "canary-of-a-stranger");
    world
        .bot
        .push_update_unasked(json!({"update_id": 77, "a_kind_of_next_year": {"text": "canary"}}))
        .unwrap();
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    world.turn("and once more", 2).await;
    world.home.json(&["doctor"]).exit(0);
    let log = serve.stop();
    assert_eq!(world.bot.sent().len(), 2);
    assert_eq!(world.home.object(&["telegram-webhook-delete"]), json!({"webhook": "deleted"}));
    assert_eq!(world.bot.webhook_url(), None);
    let parts = [SECRET, TOKEN, "canary-of-a-stranger"];
    assert_eq!(canary::in_bytes("the log", log.as_bytes(), &parts), [""; 0]);
    assert_eq!(canary::in_folder(&world.home.path, &parts), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn report_33_posts_without_the_one_secret_are_refused_and_leave_nothing() {
    let (world, address) = world().await;
    let serve = world.serve();
    let refused = update(1, "canary-words");
    wait_until("the webhook to listen", || post(address, &[], &refused) == Some(401));
    for secrets in [&["wrong"][..], &[SECRET, SECRET], &[SECRET, "wrong"], &[""]] {
        assert_eq!(post(address, secrets, &refused), Some(401), "{secrets:?}");
    }
    wait_until("who the bot is", || post(address, &[SECRET], &update(2, "good words")) == Some(200));
    for _ in 0..3 {
        assert_eq!(post(address, &[SECRET], &update(2, "good words")), Some(200));
    }
    world.home.wait_for_deliveries("reply", 1);
    let log = serve.stop();
    assert_eq!((world.model.request_count(), world.bot.sent().len()), (1, 1));
    assert_eq!(world.home.events("source.telegram.message@1").len(), 1);
    assert_eq!(canary::in_folder(&world.home.path, &["canary-words"]), [""; 0]);
    assert!(!log.contains("canary-words"));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_make_room_and_hold_up_nobody() {
    let (world, address) = world().await;
    let serve = world.serve();
    wait_until("who the bot is", || post(address, &[SECRET], &update(1, "one")) == Some(200));
    let silent: Vec<TcpStream> = (0..WEBHOOK_CONNECTIONS_MAX + 20)
        .map(|_| TcpStream::connect(address).unwrap())
        .inspect(|stream| stream.set_nonblocking(true).unwrap())
        .collect();
    assert_eq!(post(address, &[SECRET], &update(2, "two")), Some(200));
    // The post waited for none of them to run out of its time: all but those that made room are still there.
    let is_open = |mut stream: &TcpStream| match stream.read(&mut [0]) {
        Ok(0) => false,
        Ok(_) => panic!("an answer to nothing"),
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    };
    wait_until("the oldest to be gone", || silent[..21].iter().all(|stream| !is_open(stream)));
    assert!(silent[21..].iter().all(is_open));
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_kill() {
    let (world, address) = world().await;
    world.model.script(vec![thought_fakes::Reply::Hang]);
    let serve = world.serve();
    wait_until("the first post", || post(address, &[SECRET], &update(1, "one")) == Some(200));
    for id in 2..=20 {
        assert_eq!(post(address, &[SECRET], &update(id, &format!("message {id}"))), Some(200));
    }
    serve.kill();
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 20);
    serve.stop();
    assert_eq!(world.home.events("source.telegram.message@1").len(), 20);
    assert_eq!(world.bot.sent().len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_serve_goes_on_without_the_webhook_and_says_so() {
    let (mut world, address) = world().await;
    world.home.unset(VARIABLE);
    let refused = world.home.json(&["telegram-webhook-set"]).exit(3);
    assert_eq!(refused.error()["code"], "webhook-secret-missing");
    let serve = world.serve();
    wait_until("status to say it", || problem(&world) == "webhook-secret-missing");
    assert_eq!(post(address, &[SECRET], &update(1, "x")), None, "nobody listens");
    world.home.json(&["doctor"]).exit(3);
    let log = serve.stop();
    assert!(log.contains("webhook-secret-missing") && log.contains("without the webhook"), "{log}");
    assert_eq!(world.bot.call_count("setWebhook"), 0);
    world.home.env(VARIABLE, "not a secret that Telegram takes");
    let told = world.home.json(&["telegram-webhook-set"]).exit(3);
    assert!(!told.told().contains("that Telegram takes"), "{}", told.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_and_webhook_exclude_each_other_with_a_clear_word() {
    let (world, _) = world().await;
    world.home.object(&["telegram-webhook-set"]);
    world.home.set("telegram", "ingress", Some("\"poll\""));
    let refused = world.home.json(&["telegram-webhook-set"]).exit(3).error();
    assert!(refused["hint"].as_str().unwrap().contains("ingress"), "{refused}");
    let serve = world.serve();
    let status = wait_for("status to say that a webhook is set", || {
        let status = world.home.object(&["status"]);
        (status["channel"]["problem"] == "webhook-set").then_some(status)
    });
    assert_eq!(status["channel"]["ingress"], "poll");
    let doctor = world.home.json(&["doctor"]).exit(3).object();
    assert!(doctor.to_string().contains("telegram-webhook-delete"), "{doctor}");
    assert!(world.bot.webhook_url().is_some(), "serve deletes none");
    world.home.object(&["telegram-webhook-delete"]);
    world.turn("now it is polled", 1).await;
    let log = serve.stop();
    assert!(log.contains("webhook-set"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_36_a_refused_command_names_no_token_and_no_address() {
    let (world, address) = world().await;
    world.bot.fail_times(
        "setWebhook",
        1,
        Failure::Refused { code: 400, description: format!("bad {TOKEN}") },
    );
    let refused = world.home.json(&["telegram-webhook-set"]).exit(3).told();
    world.bot.fail_times("deleteWebhook", 1, Failure::DropBefore);
    let unreachable = world.home.json(&["telegram-webhook-delete"]).exit(8).told();
    let told = format!("{refused}{unreachable}");
    let parts = [TOKEN, "/bot123456", SECRET, &address.to_string()];
    assert_eq!(canary::in_bytes("what was told", told.as_bytes(), &parts), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_is_a_clear_failure() {
    let (world, address) = world().await;
    let _taken = TcpListener::bind(address).unwrap();
    let done = world.home.json(&["serve"]);
    assert_eq!((done.code, &done.error()["code"]), (Some(8), &json!("cannot-listen")), "{}", done.stderr);
}
