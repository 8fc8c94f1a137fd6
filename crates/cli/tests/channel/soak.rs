//! Many messages through the real binary, and a channel and a process at their worst: one event, one ending and one delivery
//! for each, and nothing else. The seed replays a failure; `cargo xtask soak` runs the long version.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use thought_fakes::{ChatSpec, Failure, RecordedRequest, Reply, UserSpec};
use thought_testkit::WAIT_MAX;
use thought_testkit::world::World;

use crate::THOUGHT;

/// Updates of one soak in the tests.
const UPDATES: u64 = 500;
/// Messages of one burst in the tests.
const BURST: u64 = 400;
/// Chats of a burst.
const BURST_CHATS: i64 = 20;
/// What a `serve` may grow by between the first quarter of a burst and its end, KiB.
const GROWTH_KIB_MAX: u64 = 48 * 1024;

/// A number that the long version sets.
fn asked(name: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the long version says so this way; the product reads no such variable"
    )]
    let value = std::env::var(name);
    value.ok().map(|text| text.parse().unwrap())
}

/// A small generator: the same seed, the same run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A world with so many private chats and a model that answers at once, each message in its own words.
async fn world(chats: i64) -> World {
    let world = World::start(THOUGHT).await;
    let admitted: Vec<String> = (1..=chats).map(|chat| chat.to_string()).collect();
    world.home.set("telegram", "allowed_chats", Some(&format!("[{}]", admitted.join(", "))));
    (1..=chats).for_each(|chat| world.bot.add_chat(ChatSpec::private(chat)));
    let file = world.home.below("agents/stream-telegram-conversation.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| match line.split_once("maxRequestsPerDay:") {
        Some((before, _)) => format!("{before}maxRequestsPerDay: 1000000\n"),
        None => format!("{line}\n"),
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    world.model.set_default_reply(|request| Reply::Text(format!("re {}", last_words(request))));
    world
}

/// What the person said last.
fn last_words(request: &RecordedRequest) -> String {
    let last =
        request.json["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    match &last["content"] {
        Value::String(text) => text.clone(),
        // Where an answer is no history, the words before it stand in the same message.
        parts => {
            let last = parts.as_array().and_then(|parts| parts.last()).cloned().unwrap_or_default();
            last["text"].as_str().unwrap_or_default().to_owned()
        }
    }
}

fn push(world: &World, chat: i64, text: &str) -> i64 {
    world.bot.push_message(ChatSpec::private(chat), UserSpec::person(chat), text)
}

/// A number out of the store, beside whoever works on it.
fn count(world: &World, sql: &str) -> u64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let store = rusqlite::Connection::open_with_flags(world.home.below("thought.db"), flags).unwrap();
    store.busy_timeout(WAIT_MAX).unwrap();
    store.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Replies, and notices in their place, that have come to an end.
const ENDED: &str = "SELECT count(*) FROM deliveries WHERE state IN ('delivered', 'uncertain')";

/// Waits as long as it goes on.
fn wait_for_all(world: &World, wanted: u64, seed: u64) {
    let (mut seen, mut since) = (0, Instant::now());
    while seen < wanted {
        let now = count(world, ENDED);
        if now > seen {
            (seen, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < WAIT_MAX, "seed {seed}: {seen} of {wanted} came to an end, and no more");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What was said in each chat, in the order of the log.
fn by_chat(messages: &[Value]) -> BTreeMap<i64, Vec<String>> {
    let mut chats: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for event in messages {
        let payload = &event["payload"];
        let text = payload["text"].as_str().unwrap().to_owned();
        chats.entry(payload["chatId"].as_i64().unwrap()).or_default().push(text);
    }
    chats
}

/// One thing that goes wrong, or nothing.
async fn trouble(world: &World, dice: &mut Dice, updates: &mut Vec<i64>) {
    match dice.below(24) {
        0 | 1 => {
            let again = updates[usize::try_from(dice.below(updates.len() as u64)).unwrap()];
            world.bot.push_again(again).unwrap();
        }
        2 if dice.below(2) == 0 => {
            world.bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 1 })
        }
        3 if dice.below(2) == 0 => world.bot.fail("sendMessage", Failure::BadGateway),
        4 if dice.below(3) == 0 => world.bot.fail("sendMessage", Failure::DropAfter),
        // One at a time: each costs a pause that doubles.
        5 | 6 if dice.below(4) == 0 => {
            let failure = if dice.below(2) == 0 { Failure::DropAfter } else { Failure::internal() };
            world.bot.fail("getUpdates", failure);
            world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
        }
        // Numbers restart after a quiet week, when nothing is left to confirm.
        7 if dice.below(4) == 0 => {
            world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
            updates.clear();
            world.bot.set_next_update_id(i32::try_from(1 + dice.below(1 << 30)).unwrap());
        }
        8 | 9 => tokio::time::sleep(Duration::from_millis(dice.below(40))).await,
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_each_message_is_one_event_one_ending_and_one_delivery() {
    let seed = asked("THOUGHT_SOAK_SEED").unwrap_or(4_242);
    let wanted = asked("THOUGHT_SOAK_UPDATES").unwrap_or(UPDATES);
    let mut dice = Dice(seed);
    let world = world(6).await;
    let mut serve = world.serve();
    let mut said: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    let mut updates = Vec::new();
    for number in 0..wanted {
        let chat = 1 + i64::try_from(dice.below(6)).unwrap();
        let text = format!("n{number}");
        updates.push(push(&world, chat, &text));
        said.entry(chat).or_default().push(text);
        trouble(&world, &mut dice, &mut updates).await;
        if updates.is_empty() || dice.below(70) != 0 {
            if updates.is_empty() {
                updates.push(push(&world, 1, &format!("m{number}")));
                said.entry(1).or_default().push(format!("m{number}"));
            }
            continue;
        }
        if dice.below(3) == 0 {
            serve.stop();
        } else {
            serve.kill();
        }
        serve = world.serve();
    }
    world.bot.clear_failures();
    let wanted = said.values().map(|texts| texts.len() as u64).sum();
    wait_for_all(&world, wanted, seed);
    world.bot.wait_until_confirmed(WAIT_MAX).await.unwrap();
    serve.stop();
    assert_eq!(by_chat(&world.home.events("source.telegram.message@1")), said, "seed {seed}");
    let runs = world.home.runs();
    let triggers: BTreeSet<&str> = runs.iter().map(|run| run["trigger"].as_str().unwrap()).collect();
    assert_eq!((runs.len() as u64, triggers.len() as u64), (wanted, wanted), "seed {seed}");
    let open =
        runs.iter().filter(|run| ["running", "held"].contains(&run["state"].as_str().unwrap())).count();
    assert_eq!(open, 0, "seed {seed}");
    let attempts: u64 = runs.iter().map(|run| run["attempts"].as_u64().unwrap()).sum();
    assert!(world.model.request_count() as u64 <= attempts, "seed {seed}: more requests than attempts");
    assert_eq!(count(&world, "SELECT count(*) FROM deliveries"), wanted, "seed {seed}: one delivery each");
    assert_eq!(count(&world, ENDED), wanted, "seed {seed}");
    let replies: Vec<String> =
        world.bot.sent().into_iter().map(|sent| sent.text).filter(|text| text.starts_with("re ")).collect();
    let once: BTreeSet<&String> = replies.iter().collect();
    assert_eq!(once.len(), replies.len(), "seed {seed}: something was sent twice");
    let parked = world.home.object(&["status"])["updates"].clone();
    assert_eq!((&parked["pending"], &parked["parked"]), (&Value::from(0), &Value::from(0)), "seed {seed}");
    // It rebuilds every context, so it takes as long as there are turns.
    let bound = WAIT_MAX + Duration::from_millis(40 * wanted);
    let home = world.home.path.to_str().unwrap();
    world.home.binary.run_within(bound, &["--home", home, "verify", "--json"]).exit(0);
}

/// What a process holds in memory, KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_in_twenty_chats_loses_nothing_keeps_each_chats_order_and_shows_its_backlog() {
    let messages = asked("THOUGHT_SOAK_BURST").unwrap_or(BURST);
    let world = world(BURST_CHATS).await;
    let mut said: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for number in 0..messages {
        let chat = 1 + i64::try_from(number).unwrap() % BURST_CHATS;
        push(&world, chat, &format!("b{number}"));
        said.entry(chat).or_default().push(format!("b{number}"));
    }
    let serve = world.serve();
    let backlog = thought_testkit::wait_for("a backlog in status", || {
        let status = world.home.object(&["status"]);
        let lag: u64 = status["consumers"].as_array()?.iter().filter_map(|row| row["lag"].as_u64()).sum();
        let pending = status["updates"]["pending"].as_u64()?;
        (lag + pending > 0).then_some(lag + pending)
    });
    assert!(backlog <= messages);
    wait_for_all(&world, messages / 4, 0);
    let early = resident_kib(serve.pid());
    wait_for_all(&world, messages, 0);
    let late = resident_kib(serve.pid());
    serve.stop();
    assert!(late < early + GROWTH_KIB_MAX, "from {early} to {late} KiB");
    assert_eq!(by_chat(&world.home.events("source.telegram.message@1")), said);
    let mut answered: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for sent in world.bot.sent() {
        answered.entry(sent.chat_id).or_default().push(sent.text.trim_start_matches("re ").to_owned());
    }
    assert_eq!(answered, said, "each is answered once, in the order of its chat");
}
