//! A full disk: every command says so, and nothing is lost once there is room again.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use thought_testkit::home::Home;
use thought_testkit::run::{Binary, argument};
use thought_testkit::wait_for;
use thought_testkit::world::{Speaks, World};

use crate::THOUGHT;

/// A small file system of its own, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; where that is not allowed the test fails, since nothing else would show what a full disk does.
    fn mounted_in(folder: &Path) -> Self {
        let path = folder.canonicalize().unwrap().join("disk");
        fs::create_dir(&path).unwrap();
        let size = c"size=4m,mode=0700";
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), Some(size)).unwrap_or_else(|errno| {
            panic!("this test mounts a small file system and needs root for it: {errno}")
        });
        Self(path)
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.0.join("ballast")).unwrap();
        let mut size = 64 * 1024;
        while size > 0 {
            if file.write_all(&vec![0; size]).is_err() {
                size /= 2;
            }
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _left_to_the_system = unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_said_and_loses_nothing() {
    let outer = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mounted_in(outer.path());
    let logs = tempfile::tempdir().unwrap();
    let home = Home::init_at(THOUGHT, logs, disk.0.join("home"), "anthropic");
    let world = World::around(home, Speaks::Anthropic, None).await;
    let serve = world.serve();
    world.turn("while there is room", 1).await;
    disk.fill();
    for number in 1..=3 {
        world.say(&format!("{number} {}", "while there is none ".repeat(100)));
    }
    // Long enough for the log to want another page, whatever room it had kept.
    let told = wait_for("a word about the disk, or the end of serve", || {
        let log = serve.log();
        (log.contains("space") || log.contains("no-space")).then_some(log)
    });
    assert!(!told.contains("while there is none"), "{told}");
    serve.kill();

    let refused = world.home.json(&["serve"]);
    assert!(matches!(refused.code, Some(8)), "{:?} {}", refused.code, refused.stderr);
    assert!(refused.error()["hint"].is_string(), "{}", refused.stderr);
    disk.free();
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 4);
    serve.stop();
    let messages = world.home.events("source.telegram.message@1");
    assert_eq!(messages.len(), 4);
    assert_eq!((world.home.wait_for_runs("completed", 4).len(), world.bot.sent().len()), (4, 4));
}

#[test]
fn init_on_a_full_disk_says_so() {
    let outer = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mounted_in(outer.path());
    disk.fill();
    let path = disk.0.join("home");
    let refused = Binary::new(THOUGHT).run(&["--home", argument(&path), "--json", "init"]).exit(8);
    assert_eq!(refused.error()["code"], "cannot-write");
}
