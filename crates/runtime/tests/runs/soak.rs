//! Seeded disorder: outcomes, deaths and bad commits at random. Whatever happens, each message has one run with one end.

use thought_contract::run::RunState;
use thought_runtime::port::{CRASH_POINTS, ModelReply};
use thought_store::command::Presence;
use thought_store_sqlite::Verdict;

use crate::ports::{Says, Side, status, stopped, text};
use crate::support::{AtWork, Home, TELEGRAM};

/// A small generator (SplitMix64): the seed replays a failure.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(bound).unwrap()).unwrap()
    }
}

fn reply(dice: &mut Dice) -> ModelReply {
    match dice.below(12) {
        0 => status(503, None),
        1 => status(429, Some(2)),
        2 => status(401, None),
        3 => ModelReply::RefusedBeforeRequest { code: "connect" },
        4 => ModelReply::Unknown { code: "broken-connection" },
        5 => stopped("No.", "refusal"),
        6 => stopped("Cut", "max_tokens"),
        _ => text("Here."),
    }
}

/// The consumer, or the one after it. What a dead one had handed to the store is settled first, as it is when a whole
/// process dies: here the writer outlives the consumer.
async fn alive(home: &Home, at_work: AtWork) -> AtWork {
    if !at_work.task.is_finished() {
        return at_work;
    }
    at_work.crashed().await;
    while home.store.set_role("nobody", Presence::Away).await.is_err() {}
    home.start().await
}

async fn disorder(seed: u64) {
    const MESSAGES: i64 = 40;
    let mut dice = Dice(seed);
    let home = Home::new().await;
    home.model.says((0..200).map(|_| Says::Reply(reply(&mut dice))).collect::<Vec<_>>());
    let mut triggers = Vec::new();
    let mut at_work = home.start().await;
    for message in 1..=MESSAGES {
        let chat = i64::try_from(dice.below(5)).unwrap() + 1;
        triggers.push(home.message_in(chat, message, "Hello").await);
        let times = u32::try_from(dice.below(3) + 1).unwrap();
        match dice.below(6) {
            0 => *home.crash.at.lock().unwrap() = Some((CRASH_POINTS[dice.below(12)], times)),
            1 => *home.faults.at.lock().unwrap() = Some((times, Side::After, Verdict::Fail)),
            2 => tokio::time::sleep(std::time::Duration::from_millis(15)).await,
            _ => {}
        }
        at_work = alive(&home, at_work).await;
    }
    *home.crash.at.lock().unwrap() = None;
    // Bounded, and generous: a busy disk makes some hundred commits slow, not wrong.
    for _look in 0..60_000 {
        // A crash that was armed before may only now be reached.
        at_work = alive(&home, at_work).await;
        let runs = home.runs().await;
        if runs.len() == triggers.len() && runs.iter().all(|run| !run.state.is_open()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let open: Vec<_> = home.runs().await.into_iter().filter(|run| run.state.is_open()).collect();
    let sleeps = home.time.sleeps.lock().unwrap().iter().rev().take(8).copied().collect::<Vec<_>>();
    assert!(open.is_empty(), "seed {seed}: {} open, the newest sleeps were {sleeps:?} ms", open.len());
    at_work.stop().await;
    home.check_whole(&triggers).await;
    let end = u64::try_from(MESSAGES).unwrap();
    assert_eq!(home.standing(TELEGRAM).await, (end, end), "seed {seed}");
    let ended = home.runs().await;
    assert!(ended.iter().any(|run| run.state == RunState::Completed), "seed {seed}");
    // Within a chat, runs ended in the order of their messages.
    let mut last: std::collections::HashMap<String, (u64, u64)> = std::collections::HashMap::new();
    for run in &ended {
        let terminal = home.reader().event(run.terminal.clone().unwrap()).await.unwrap().unwrap();
        let here = (run.sequence, terminal.envelope.position);
        if let Some(before) = last.insert(run.conversation.clone(), here) {
            assert_eq!(before.0 < here.0, before.1 < here.1, "seed {seed}");
        }
    }
}

#[tokio::test]
async fn disorder_loses_and_doubles_nothing() {
    for seed in [1, 2, 3, 4] {
        disorder(seed).await;
    }
}
