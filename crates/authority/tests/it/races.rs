//! The scan beside somebody who swaps, saves and scans at the same time.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use thought_authority::filesystem::{Refreshed, ScanError};
use thought_contract::event::SourceName;
use thought_contract::payload::FileVersion;
use thought_store::row::Existence;

use crate::home::{Home, MEMORY, Side, line};

/// Does something over and over until it is dropped.
struct Meddler {
    end: std::sync::Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Meddler {
    fn start(mut step: impl FnMut() + Send + 'static) -> Self {
        let end = std::sync::Arc::new(AtomicBool::new(false));
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
        Self::start(move || {
            for _ in 0..2 {
                renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                std::thread::yield_now();
            }
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

/// Scans many times, whatever comes of it, and then looks at what the store was told.
async fn scan_and_check(side: &Side, rounds: u32) {
    let mut scanned = 0;
    for _ in 0..rounds {
        match side.connector.refresh().await {
            Ok(Refreshed::Scanned(report)) => {
                scanned += 1;
                assert!(report.removed.is_empty(), "{report:?}");
            }
            Ok(Refreshed::Unchanged | Refreshed::LockHeld) => {}
            Err(ScanError::Root(_) | ScanError::Lock(_) | ScanError::Walk(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(scanned > 0);
    nothing_from_outside(side).await;
}

async fn nothing_from_outside(side: &Side) {
    for event in side.reader.source_events(SourceName::context(), 0, 100_000).await.unwrap() {
        let Ok(told) = event.payload::<FileVersion>() else { continue };
        let version = side.reader.version(told.version_id).await.unwrap().unwrap();
        assert_ne!(version.content.expose(), b"OUTSIDE", "{}", version.path);
    }
}

fn outside_is_as_it_was(home: &Home) {
    let names: Vec<_> = fs::read_dir(home.path().join("outside"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["memory.md"]);
    assert_eq!(fs::read_to_string(home.path().join("outside/memory.md")).unwrap(), "OUTSIDE");
}

#[tokio::test]
async fn a_document_swapped_for_a_link_never_lets_the_outside_in() {
    let home = Home::with_memory();
    home.link(".spare");
    let side = home.side();
    side.scan().await;
    let meddler = Meddler::swap(home.at("memory.md"), home.at(".spare"));
    scan_and_check(&side, 300).await;
    drop(meddler);
    side.settle().await;
    assert_eq!(side.existence("memory.md").await, Some(Existence::Present));
    assert_eq!(side.told().await, ["memory.md"]);
    outside_is_as_it_was(&home);
}

#[tokio::test]
async fn a_folder_swapped_for_a_link_never_lets_the_outside_in() {
    let home = Home::new();
    fs::create_dir(home.at("notes")).unwrap();
    home.write("notes/memory.md", MEMORY);
    symlink(home.path().join("outside"), home.at(".spare")).unwrap();
    let side = home.side();
    side.scan().await;
    let meddler = Meddler::swap(home.at("notes"), home.at(".spare"));
    scan_and_check(&side, 300).await;
    drop(meddler);
    side.settle().await;
    assert_eq!(side.told().await, ["notes/memory.md"]);
    outside_is_as_it_was(&home);
}

#[tokio::test]
async fn a_root_swapped_for_a_link_never_lets_the_outside_in() {
    let home = Home::with_memory();
    symlink(home.path().join("outside"), home.path().join("spare")).unwrap();
    let side = home.side();
    side.scan().await;
    let meddler = Meddler::swap(home.path().join("context"), home.path().join("spare"));
    let mut met = 0;
    for _ in 0..300 {
        home_survives(side.connector.refresh().await, &mut met);
        // The look finds a settled root as it was; scans must happen all the same.
        let root = side.connector.root().clone();
        let taken = thought_authority::lock::acquire(&root, &super::home::own(), std::time::Duration::ZERO);
        if let Ok(guard) = taken {
            home_survives(side.connector.scan(&guard).await.map(Refreshed::Scanned), &mut met);
        }
    }
    drop(meddler);
    assert!(met > 0);
    side.settle().await;
    assert_eq!(side.told().await, ["memory.md"]);
    nothing_from_outside(&side).await;
    outside_is_as_it_was(&home);
}

fn home_survives(outcome: Result<Refreshed, ScanError>, scanned: &mut u32) {
    match outcome {
        Ok(Refreshed::Scanned(report)) => {
            assert!(report.removed.is_empty(), "{report:?}");
            *scanned += 1;
        }
        Ok(_) | Err(ScanError::Root(_) | ScanError::Lock(_) | ScanError::Walk(_)) => {}
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn a_parent_of_the_root_swapped_for_a_link_never_lets_the_outside_in() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("a/b")).unwrap();
    fs::write(home.path().join("a/b/memory.md"), MEMORY).unwrap();
    fs::create_dir(home.path().join("outside/b")).unwrap();
    fs::write(home.path().join("outside/b/memory.md"), "OUTSIDE").unwrap();
    symlink("outside", home.path().join("spare")).unwrap();
    let side = home.side_at("a/b");
    side.scan().await;
    let meddler = Meddler::swap(home.path().join("a"), home.path().join("spare"));
    let mut met = 0;
    for _ in 0..300 {
        let root = side.connector.root().clone();
        let taken = thought_authority::lock::acquire(&root, &super::home::own(), std::time::Duration::ZERO);
        if let Ok(guard) = taken {
            home_survives(side.connector.scan(&guard).await.map(Refreshed::Scanned), &mut met);
        }
    }
    drop(meddler);
    assert!(met > 0);
    assert_eq!(side.told().await, ["memory.md"]);
    nothing_from_outside(&side).await;
    assert_eq!(fs::read_dir(home.path().join("outside/b")).unwrap().count(), 1);
}

#[tokio::test]
async fn saves_are_read_whole_or_not_at_all() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    let (path, backup, new) = (home.at("memory.md"), home.at("memory.md~"), home.at(".memory.md.new"));
    let mut n = 0_usize;
    let meddler = Meddler::start(move || {
        // As an editor with backups does it: the name is free for a moment.
        n += 1;
        fs::write(&new, vec![b'x'; n % 9 * 100 + 100]).unwrap();
        fs::rename(&path, &backup).unwrap();
        fs::rename(&new, &path).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    });
    for _ in 0..100 {
        assert!(matches!(side.connector.refresh().await, Ok(Refreshed::Scanned(_) | Refreshed::Unchanged)));
    }
    drop(meddler);
    side.settle().await;
    assert_eq!(side.content("memory.md").await, fs::read(home.at("memory.md")).unwrap());
    for event in side.reader.source_events(SourceName::context(), 1, 10_000).await.unwrap() {
        if let Ok(told) = event.payload::<FileVersion>() {
            assert_eq!(told.byte_count % 100, 0, "a save is whole");
        }
    }
}

#[tokio::test]
async fn a_document_whose_name_is_free_for_a_moment_is_not_removed() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    fs::rename(home.at("memory.md"), home.at("memory.md~")).unwrap();
    let root = side.connector.root().clone();
    let guard =
        thought_authority::lock::acquire(&root, &super::home::own(), std::time::Duration::ZERO).unwrap();
    let save = async {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        home.write("memory.md", "saved");
    };
    let (report, ()) = tokio::join!(side.connector.scan(&guard), save);
    assert_eq!(line(&report.unwrap()), "+[] ~[memory.md] -[] =0 !");
    assert_eq!(side.told().await, ["memory.md", "memory.md"]);
}

#[tokio::test]
async fn an_emptied_document_is_believed_only_when_it_stays_empty() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    home.write("memory.md", "");
    let path = home.at("memory.md");
    let root = side.connector.root().clone();
    let guard =
        thought_authority::lock::acquire(&root, &super::home::own(), std::time::Duration::ZERO).unwrap();
    let save = async {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        fs::write(&path, "saved").unwrap();
    };
    let (report, ()) = tokio::join!(side.connector.scan(&guard), save);
    let report = report.unwrap();
    drop(guard);
    assert_eq!(report.changed, ["memory.md"]);
    assert_eq!(side.content("memory.md").await, b"saved");

    home.write("memory.md", "");
    side.scan().await;
    assert_eq!(side.content("memory.md").await, b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_sides_that_scan_at_once_tell_each_version_once() {
    let home = Home::with_memory();
    let sides = [home.side(), home.side(), home.side()];
    for round in 0..20 {
        home.write("memory.md", format!("round {round}"));
        home.write(&format!("{round}.md"), "x");
        let [a, b, c] = &sides;
        let (a, b, c) = tokio::join!(a.connector.refresh(), b.connector.refresh(), c.connector.refresh());
        let mut added = 0;
        for refreshed in [a.unwrap(), b.unwrap(), c.unwrap()] {
            if let Refreshed::Scanned(report) = refreshed {
                added += report.added.len();
            }
        }
        assert!(added >= 1);
    }
    let told = sides[0].told().await;
    assert_eq!(told.len(), 40, "{told:?}");
    assert_eq!(sides[2].content("memory.md").await, b"round 19");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_scans_without_a_common_lock_still_converge() {
    // The lock file of each is another: as on a file system that forgets locks.
    let home = Home::with_memory();
    let (one, two) = (home.side(), home.side());
    for round in 0..20 {
        home.write("memory.md", format!("round {round}"));
        let first = super::home::own();
        let root = one.connector.root().clone();
        let guard =
            thought_authority::lock::acquire(&root, &first, std::time::Duration::from_secs(5)).unwrap();
        let (a, b) = tokio::join!(one.connector.scan(&guard), two.connector.scan(&guard));
        let (a, b) = (a.unwrap(), b.unwrap());
        let moved = a.added.len() + a.changed.len() + b.added.len() + b.changed.len();
        assert_eq!(moved, 1, "{a:?} {b:?}");
    }
    assert_eq!(one.told().await.len(), 20);
}
