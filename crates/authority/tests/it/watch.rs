//! The watch tells of what a person does, and ends when it is dropped.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use thought_authority::lock::acquire;
use thought_authority::watch::{RootWatch, WatchError};
use tokio::sync::watch::Receiver;

use crate::home::{Home, own};

/// Waits until the watch tells of something.
async fn told(moved: &mut Receiver<u64>) {
    tokio::time::timeout(Duration::from_secs(30), moved.changed()).await.expect("the watch tells").unwrap();
}

/// Lets everything come in that is under way.
async fn quiet(moved: &mut Receiver<u64>) {
    while tokio::time::timeout(Duration::from_millis(150), moved.changed()).await.is_ok() {}
}

#[tokio::test]
async fn it_tells_of_saves_removals_and_what_happens_in_folders() {
    let home = Home::with_memory();
    let watch = RootWatch::start(&home.root()).unwrap();
    let mut moved = watch.moved();
    let steps: [(&str, &dyn Fn()); 7] = [
        ("written in place", &|| home.write("memory.md", "1")),
        ("saved by rename", &|| {
            home.write(".memory.md.swp", "2");
            fs::rename(home.at(".memory.md.swp"), home.at("memory.md")).unwrap();
        }),
        ("removed", &|| fs::remove_file(home.at("memory.md")).unwrap()),
        ("a folder", &|| fs::create_dir_all(home.at("notes/deep")).unwrap()),
        ("a file in a new folder", &|| home.write("notes/a.md", "x")),
        ("a file in a folder made with it", &|| home.write("notes/deep/a.md", "x")),
        ("a link", &|| home.link("memory.md")),
    ];
    for (name, step) in steps {
        step();
        tokio::time::timeout(Duration::from_secs(30), moved.changed())
            .await
            .unwrap_or_else(|_| panic!("{name}"))
            .unwrap();
        quiet(&mut moved).await;
    }
}

#[tokio::test]
async fn it_says_nothing_of_the_lock() {
    let home = Home::with_memory();
    drop(acquire(&home.root(), &own(), Duration::ZERO).unwrap());
    let watch = RootWatch::start(&home.root()).unwrap();
    let mut moved = watch.moved();
    for _ in 0..10 {
        drop(acquire(&home.root(), &own(), Duration::ZERO).unwrap());
    }
    quiet(&mut moved).await;
    assert_eq!(*moved.borrow(), 0);
    home.write("memory.md", "1");
    told(&mut moved).await;
}

#[tokio::test]
async fn it_finds_a_root_that_was_replaced() {
    let home = Home::with_memory();
    let watch = RootWatch::start(&home.root()).unwrap();
    let mut moved = watch.moved();
    fs::rename(home.path().join("context"), home.path().join("old")).unwrap();
    told(&mut moved).await;
    symlink("outside", home.path().join("context")).unwrap();
    fs::remove_file(home.path().join("context")).unwrap();
    fs::create_dir(home.path().join("context")).unwrap();
    told(&mut moved).await;
    quiet(&mut moved).await;
    home.write("memory.md", "new");
    told(&mut moved).await;
    quiet(&mut moved).await;
    let before = *moved.borrow();
    fs::write(home.path().join("old/memory.md"), "not looked at any more").unwrap();
    quiet(&mut moved).await;
    assert_eq!(*moved.borrow(), before);
}

#[tokio::test]
async fn a_burst_is_told_in_few_words() {
    let home = Home::with_memory();
    let watch = RootWatch::start(&home.root()).unwrap();
    let mut moved = watch.moved();
    for n in 0..500 {
        home.write("memory.md", n.to_string());
    }
    told(&mut moved).await;
    quiet(&mut moved).await;
    assert!(*moved.borrow() < 100, "{}", *moved.borrow());
}

#[test]
fn it_ends_when_it_is_dropped_and_its_receivers_see_that() {
    let home = Home::with_memory();
    let watch = RootWatch::start(&home.root()).unwrap();
    let moved = watch.moved();
    assert!(moved.has_changed().is_ok());
    drop(watch);
    assert!(moved.has_changed().is_err());
}

#[test]
fn a_root_that_is_not_there_is_not_watched() {
    let home = Home::new();
    let root = home.root();
    fs::remove_dir(home.path().join("context")).unwrap();
    assert!(matches!(RootWatch::start(&root), Err(WatchError::Root(_))));
    symlink("outside", home.path().join("context")).unwrap();
    assert!(matches!(RootWatch::start(&root), Err(WatchError::Root(_))));
}
