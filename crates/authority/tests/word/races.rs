//! The materializer beside somebody who swaps and saves, and beside its like.
//!
//! `cargo xtask soak` runs the same rounds, more of them and at a pace of its own seed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use thought_authority::materialize::NoCrashPoints;
use thought_authority::project::Status;
use thought_authority::reason::Reason;

use crate::world::{Ask, MEMORY, Side, World, shown};

/// Does something over and over until it is dropped.
struct Meddler {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Meddler {
    fn start(mut step: impl FnMut() + Send + 'static) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let its = end.clone();
        let thread = std::thread::spawn(move || {
            while !its.load(Ordering::Acquire) {
                step();
            }
        });
        Self { end, thread: Some(thread) }
    }

    /// Exchanges two names, an even number of times in all.
    fn swap(a: PathBuf, b: PathBuf) -> Self {
        let mut pace = Pace::of_this_run();
        Self::start(move || {
            for _ in 0..2 {
                while renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).is_err() {}
                std::thread::yield_now();
            }
            pace.pause(Duration::from_micros(300));
        })
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// Rounds of one kind of meddling, where nobody asked for more.
const ROUNDS: i64 = 100;

/// A number that a soak asks for.
fn asked<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var_os(name)?.into_string().unwrap();
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn round_count() -> i64 {
    asked("THOUGHT_SOAK_ROUNDS").unwrap_or(ROUNDS)
}

/// Pauses around a length, in an order that a seed gives.
struct Pace(u64);

impl Pace {
    fn of_this_run() -> Self {
        Self(asked::<u64>("THOUGHT_SOAK_SEED").unwrap_or(1).max(1))
    }

    fn pause(&mut self, around: Duration) {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        std::thread::sleep(around * u32::try_from(self.0 % 200).unwrap() / 100);
    }
}

/// Materializes again and again while somebody meddles; every outcome is one or the other, and the receipts agree.
#[expect(clippy::print_stdout, reason = "a soak wants its figures")]
async fn rounds(world: &World, first: i64, count: i64) -> usize {
    let before = world.side.receipts().await.len();
    let mut materialized = 0;
    for n in first..first + count {
        world.side.connector.refresh().await.ok();
        let turn = world.side.turn(n, &[Ask::Append(format!("- fact {n}"))]).await;
        world.side.accept(&turn.only()).await;
        let outcome = world.side.project(&turn.only()).await;
        match outcome.status {
            Status::Materialized => materialized += 1,
            Status::MaterializationFailed(_) | Status::Pending(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.side.receipts().await.len() - before, materialized);
    println!("{materialized} of {count} written, each with its receipt; the others were told why not");
    materialized
}

#[tokio::test]
async fn swaps_of_the_file_and_the_root_for_links_let_no_byte_outside() {
    let world = World::new().await;
    symlink(world.home().join("outside/memory.md"), world.context(".spare")).unwrap();
    let file = Meddler::swap(world.context("memory.md"), world.context(".spare"));
    rounds(&world, 1, round_count()).await;
    drop(file);
    world.outside_is_as_it_was();
    symlink(world.home().join("outside"), world.home().join("spare")).unwrap();
    let root = Meddler::swap(world.home().join("context"), world.home().join("spare"));
    rounds(&world, 1 + round_count(), round_count()).await;
    drop(root);
    world.outside_is_as_it_was();
    assert!(world.memory().starts_with(MEMORY));
}

#[tokio::test]
async fn swaps_of_a_folder_on_the_way_to_the_root_let_no_byte_outside() {
    let points = Arc::new(NoCrashPoints);
    let world = World::rooted("deep/context", MEMORY.as_bytes(), points).await;
    fs::create_dir_all(world.home().join("outside-too/context")).unwrap();
    fs::write(world.home().join("outside-too/context/memory.md"), MEMORY).unwrap();
    symlink(world.home().join("outside-too"), world.home().join("spare")).unwrap();
    let parent = Meddler::swap(world.home().join("deep"), world.home().join("spare"));
    rounds(&world, 1, round_count()).await;
    drop(parent);
    let outside = world.home().join("outside-too/context");
    assert_eq!(fs::read_to_string(outside.join("memory.md")).unwrap(), MEMORY);
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}

#[tokio::test]
async fn no_save_of_an_editor_is_lost_beside_two_hundred_materializations() {
    let world = World::new().await;
    let saved = Arc::new(AtomicU64::new(0));
    let (path, spare) = (world.context("memory.md"), world.context("memory.md.swp"));
    let its = saved.clone();
    let mut pace = Pace::of_this_run();
    let editor = Meddler::start(move || {
        let n = its.load(Ordering::Acquire) + 1;
        fs::write(&spare, format!("---\nid: memory\n---\nsave {n}\n")).unwrap();
        fs::rename(&spare, &path).unwrap();
        its.store(n, Ordering::Release);
        // Long enough that some rounds come between two saves, and short enough that others do not.
        pace.pause(Duration::from_millis(40));
    });
    rounds(&world, 1, round_count()).await;
    rounds(&world, 1 + round_count(), round_count()).await;
    drop(editor);
    // The newest save stands, with at most what was appended to it afterwards.
    let last = saved.load(Ordering::Acquire);
    assert!(last > 0);
    let memory = world.memory();
    assert!(memory.starts_with(&format!("---\nid: memory\n---\nsave {last}\n")), "save {last} is lost");
    assert_eq!(world.names().iter().filter(|name| name.ends_with(".tmp")).count(), 0);
}

#[tokio::test]
async fn of_two_appends_on_one_base_at_once_one_is_written() {
    for round in 0..8 {
        let world = World::new().await;
        let one = world.append(1, "- one").await;
        let two = world.append(2, "- two").await;
        world.side.accept(&one).await;
        world.side.accept(&two).await;
        let others: Side = world.another(Arc::new(NoCrashPoints));
        let (a, b) = tokio::join!(world.side.project(&one), others.project(&two));
        let mut both = [shown(&a), shown(&b)];
        both.sort();
        assert_eq!(both, ["materialization-failed stale-base", "materialized"], "{round}");
        assert_eq!(world.side.receipts().await.len(), 1);
        let memory = world.memory();
        assert_ne!(memory.contains("- one"), memory.contains("- two"));
    }
}

#[tokio::test]
async fn of_one_decision_projected_by_many_one_receipt_comes() {
    let world = World::new().await;
    let proposal = world.append(1, "- one").await;
    world.side.accept(&proposal).await;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (projector, proposal) = (world.side.projector(), proposal.clone());
        tasks.push(tokio::spawn(async move { projector.project(&proposal).await }));
    }
    for task in tasks {
        assert_eq!(shown(&task.await.unwrap().unwrap()), "materialized");
    }
    assert_eq!(world.side.receipts().await.len(), 1);
    assert_eq!(world.memory(), format!("{MEMORY}\n- one\n"));
    assert_eq!(Reason::from_code("stale-base"), Some(Reason::StaleBase));
}
