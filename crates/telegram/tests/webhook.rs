//! Posts to the webhook: who is let in, what is bounded, and that nothing is acknowledged that is not durable.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use thought_contract::event::EventType;
use thought_fakes::Failure;
use thought_protocol::Sensitive;
use thought_store::Reads;
use thought_store_sqlite::{Faults, Verdict};
use thought_telegram::ids::UserId;
use thought_telegram::ingress::{
    Allowed, ChannelState, Off, Reception, Webhook, WebhookPorts, WebhookSecret,
};
use thought_telegram::stop::Stop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use world::{PATIENCE, World};

const SECRET: &str = "the-secret_of-the-webhook";
const HEADER: &str = "X-Telegram-Bot-Api-Secret-Token";

struct Listening {
    address: SocketAddr,
    state: watch::Receiver<ChannelState>,
    say: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Listening {
    async fn stop(self) {
        self.say.send_replace(true);
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }
}

fn webhook(world: &World, reception: Reception) -> Webhook {
    let allowed = Allowed { chats: world.chats.clone(), users: [UserId(4242)].into() };
    let ingress = world.store.telegram_ingress(World::source());
    Webhook::new(WebhookPorts { client: world.client(), ingress, allowed }, reception)
}

/// A webhook that knows who the bot is.
async fn listen(world: &World) -> Listening {
    let listening = listen_at_once(world);
    let mut state = listening.state.clone();
    let known = state.wait_for(|state| *state != ChannelState::Starting);
    tokio::time::timeout(PATIENCE, known).await.unwrap().unwrap();
    listening
}

fn listen_at_once(world: &World) -> Listening {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let secret = WebhookSecret::new(Sensitive::new(SECRET.to_owned())).unwrap();
    let public_url = format!("http://{address}/telegram");
    let webhook =
        webhook(world, Reception::On { listener, path: "/telegram".to_owned(), secret, public_url });
    let (say, word) = watch::channel(false);
    let state = webhook.state();
    let task = tokio::spawn(webhook.run(Stop::new(word)));
    Listening { address, state, say, task }
}

/// The status of one request, written as it stands.
async fn raw(address: SocketAddr, request: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A request that is refused before it was read to its end may be cut off while it is written.
    let written = stream.write_all(request).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    assert!(written.is_ok() || read.is_ok() || !answer.is_empty());
    let line = String::from_utf8_lossy(&answer).lines().next()?.to_owned();
    line.split(' ').nth(1)?.parse().ok()
}

fn request(method: &str, path: &str, secrets: &[&str], body: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
    );
    for secret in secrets {
        head.push_str(&format!("{HEADER}: {secret}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body].concat()
}

async fn post(address: SocketAddr, body: &[u8]) -> u16 {
    raw(address, &request("POST", "/telegram", &[SECRET], body)).await.unwrap()
}

fn update(id: i64, chat: i64, text: &str) -> Value {
    json!({"update_id": id, "message": {"message_id": id, "date": 1, "text": text,
        "chat": {"id": chat, "type": "private"}, "from": {"id": chat, "is_bot": false, "first_name": "A"}}})
}

fn bytes(update: &Value) -> Vec<u8> {
    update.to_string().into_bytes()
}

async fn spooled(world: &World) -> Vec<i64> {
    let rows = world.engine.spool(World::source(), 100).await.unwrap();
    rows.into_iter().map(|row| row.update).collect()
}

#[tokio::test]
async fn report_33_without_with_a_wrong_or_with_two_secrets_nothing_is_stored() {
    let world = World::new().await;
    let listening = listen(&world).await;
    let canary = bytes(&update(1, 4242, "canary"));
    let longer = format!("{SECRET}x");
    let wrong: [&[&str]; 8] = [
        &[],
        &[""],
        &["wrong"],
        &[&SECRET[1..]],
        &[&longer],
        &[SECRET, SECRET],
        &[SECRET, "wrong"],
        &["wrong", SECRET],
    ];
    for secrets in wrong {
        // What is posted is not looked at: neither words nor what is no update at all.
        for body in [&canary[..], b"{", b""] {
            let request = request("POST", "/telegram", secrets, body);
            assert_eq!(raw(listening.address, &request).await, Some(401), "{secrets:?}");
        }
    }
    for method in ["GET", "PUT", "DELETE"] {
        assert_eq!(raw(listening.address, &request(method, "/telegram", &[], &canary)).await, Some(401));
        assert_eq!(
            raw(listening.address, &request(method, "/telegram", &[SECRET], &canary)).await,
            Some(405)
        );
    }
    for path in ["/", "/telegram/", "/telegramx", "//telegram"] {
        assert_eq!(
            raw(listening.address, &request("POST", path, &[SECRET], &canary)).await,
            Some(404),
            "{path}"
        );
    }
    assert!(spooled(&world).await.is_empty() && !world.stores("canary") && !world.stores(SECRET));
    listening.stop().await;
}

#[tokio::test]
async fn an_update_is_durable_once_it_is_acknowledged_and_one_that_means_nothing_is_acknowledged_too() {
    let world = World::new().await;
    let listening = listen(&world).await;
    assert_eq!(post(listening.address, &bytes(&update(7, 4242, "hello"))).await, 200);
    assert_eq!(spooled(&world).await, [7]);
    for dropped in [
        json!({"update_id": 8, "message_reaction": {"chat": {"id": 4242}}}),
        json!({"update_id": 9, "a_kind_of_next_year": {"x": [1]}}),
        json!({"update_id": 10}),
        json!({"update_id": 11, "edited_message": update(1, 4242, "x")["message"]}),
        update(12, 999, "canary"),
    ] {
        assert_eq!(post(listening.address, &bytes(&dropped)).await, 200, "{dropped}");
    }
    assert_eq!(post(listening.address, &bytes(&update(7, 4242, "hello"))).await, 200);
    assert_eq!(spooled(&world).await, [7]);
    assert_eq!(world.engine.spool_counts(World::source()).await.unwrap().dropped, 1);
    assert!(!world.stores("canary"));
    // Of somebody who is heard, what cannot be read is kept as such, to be set aside and told of.
    let mut unreadable = update(13, 4242, "x");
    unreadable["message"]["text"] = json!(["canary"]);
    assert_eq!(post(listening.address, &bytes(&unreadable)).await, 200);
    assert_eq!(spooled(&world).await, [7, 13]);
    listening.stop().await;
}

#[tokio::test]
async fn what_is_no_update_or_too_large_is_refused() {
    let world = World::new().await;
    let listening = listen(&world).await;
    for body in [&b"{"[..], b"", b"[]", b"{\"update_id\": \"x\"}", b"{\"message\": {}}"] {
        assert_eq!(post(listening.address, body).await, 400);
    }
    let large = 5 * 1024 * 1024;
    let head = format!(
        "POST /telegram HTTP/1.1\r\nhost: x\r\n{HEADER}: {SECRET}\r\ncontent-length: {large}\r\n\r\n"
    );
    assert_eq!(raw(listening.address, head.as_bytes()).await, Some(413));
    // In chunks its length is not told before.
    let head = format!(
        "POST /telegram HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{HEADER}: {SECRET}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let chunks = [head.into_bytes(), format!("{large:x}\r\n").into_bytes(), vec![b' '; large]].concat();
    assert_eq!(raw(listening.address, &chunks).await, Some(413));
    let long_head = format!("POST /telegram HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(64 * 1024));
    assert_eq!(raw(listening.address, long_head.as_bytes()).await, Some(431));
    assert_eq!(raw(listening.address, b"no http at all\r\n\r\n").await, Some(400));
    assert!(spooled(&world).await.is_empty());
    assert_eq!(post(listening.address, &bytes(&update(7, 4242, "hello"))).await, 200);
    listening.stop().await;
}

/// A store whose commits fail as long as it is told to.
struct Broken(Arc<AtomicBool>);

impl Faults for Broken {
    fn before_commit(&self, _transaction: u64) -> Verdict {
        if self.0.load(Ordering::SeqCst) { Verdict::NoSpace } else { Verdict::Proceed }
    }

    fn after_commit(&self, _transaction: u64) -> Verdict {
        Verdict::Proceed
    }
}

#[tokio::test]
async fn what_cannot_be_kept_stays_with_telegram() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let world = World::with_faults(Some(Arc::new(Broken(is_broken.clone())))).await;
    // As long as it is not known who the bot is, nothing can be decided.
    world.bot.fail_times("getMe", 1_000, Failure::BadGateway);
    let listening = listen_at_once(&world);
    let request = bytes(&update(7, 4242, "hello"));
    assert_eq!(post(listening.address, &request).await, 503);
    assert!(!world.stores("hello"));
    world.bot.clear_failures();
    let mut state = listening.state.clone();
    let told = state.wait_for(|state| state.problem() == Some("webhook-not-set"));
    tokio::time::timeout(PATIENCE, told).await.unwrap().unwrap();
    is_broken.store(true, Ordering::SeqCst);
    assert_eq!(post(listening.address, &request).await, 503);
    assert_eq!(state.borrow_and_update().problem(), Some("store"));
    is_broken.store(false, Ordering::SeqCst);
    assert_eq!(post(listening.address, &request).await, 200);
    assert_eq!(*state.borrow_and_update(), ChannelState::Ok);
    assert_eq!(spooled(&world).await, [7]);
    listening.stop().await;
}

#[tokio::test]
async fn many_idle_connections_keep_nobody_out_for_longer_than_their_time() {
    let world = World::new().await;
    let listening = listen(&world).await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        stream.write_all(b"POST /telegram HTTP/1.1\r\n").await.unwrap();
        idle.push(stream);
    }
    assert_eq!(post(listening.address, &bytes(&update(7, 4242, "hello"))).await, 200);
    assert_eq!(spooled(&world).await, [7]);
    listening.stop().await;
}

#[tokio::test]
async fn without_a_secret_nothing_listens_and_what_was_spooled_is_worked_off() {
    let world = World::new().await;
    for off in [Off::NoSecret, Off::NotConfigured] {
        let webhook = webhook(&world, Reception::Off(off));
        let (say, word) = watch::channel(false);
        let (state, mut policy) = (webhook.state(), webhook.policy());
        let task = tokio::spawn(webhook.run(Stop::new(word)));
        tokio::time::timeout(PATIENCE, policy.wait_for(Option::is_some)).await.unwrap().unwrap();
        world.bot.wait_for_calls("getMe", 1, PATIENCE).await.unwrap();
        assert_eq!(state.borrow().problem(), Some(off.code()));
        say.send_replace(true);
        task.await.unwrap();
    }
    assert!(world.events(&[EventType::TelegramMessage]).await.is_empty());
}
