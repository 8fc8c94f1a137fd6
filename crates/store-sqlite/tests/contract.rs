//! The port's contract suite, on this engine.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use thought_store::suite::{self, Group};
use thought_store::{BoxFuture, Engine};
use thought_store_sqlite::{OpenOptions, SqliteStore};

fn fresh(folder: &TempDir) -> impl Fn() -> BoxFuture<'static, Arc<dyn Engine>> + use<> {
    let folder = folder.path().to_owned();
    let count = std::cell::Cell::new(0);
    move || {
        count.set(count.get() + 1);
        let path: PathBuf = folder.join(format!("{}.db", count.get()));
        Box::pin(async move { SqliteStore::open(&path, OpenOptions::create()).unwrap() as Arc<dyn Engine> })
    }
}

macro_rules! groups {
    ($($name:ident = $group:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let folder = tempfile::tempdir().unwrap();
            suite::run(Group::$group, fresh(&folder)).await;
        }
    )*
        #[test]
        fn no_group_is_left_out() {
            assert_eq!([$(Group::$group),*], Group::ALL);
        }
    };
}

groups! {
    events = Events,
    runs = Runs,
    progress = Progress,
    documents = Documents,
    channels = Channels,
    deliveries = Deliveries,
    history = History,
    proposals = Proposals,
    review = Review,
    lists = Lists,
    handles = Handles,
}
