//! What is refused before a byte is written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use thought_testkit::home::Home;
use thought_testkit::run::argument;

use crate::THOUGHT;
use crate::fill::Filler;
use crate::scene::{ACKNOWLEDGE, PRIVATE};

fn folder(path: &Path, mode: u32) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Exit code 3 with this code, by both commands, and nothing in the folder but what was there.
#[track_caller]
fn refused(home: &Home, output: &Path, code: &str) {
    for arguments in [
        vec![PRIVATE, "--output", argument(output), ACKNOWLEDGE],
        vec!["training-export", "--output", argument(output)],
    ] {
        let done = home.json(&arguments).exit(3);
        assert_eq!(done.error()["code"], code, "{}", done.stderr);
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn each_unfit_destination_is_refused_with_its_own_code() {
    let home = Home::init(THOUGHT, "ollama");
    let around = home.path.parent().unwrap().to_owned();
    let mine = around.join("mine");
    folder(&mine, 0o700);
    let output = mine.join("a.jsonl");
    let bare = home.json(&[PRIVATE, "--output", argument(&output)]).exit(3);
    assert_eq!(bare.error()["code"], "not-acknowledged");
    assert!(bare.told().contains(ACKNOWLEDGE));
    assert_eq!(home.json(&[PRIVATE, ACKNOWLEDGE]).exit(2).error()["code"], "usage");

    fs::write(&output, "mine").unwrap();
    refused(&home, &output, "destination-exists");
    assert_eq!(fs::read_to_string(&output).unwrap(), "mine");
    fs::rename(&output, mine.join("a.jsonl.manifest.json")).unwrap();
    refused(&home, &output, "destination-exists");
    fs::remove_file(mine.join("a.jsonl.manifest.json")).unwrap();

    symlink(&mine, around.join("linked")).unwrap();
    refused(&home, &around.join("linked/a.jsonl"), "destination-link");
    folder(&mine.join("deep"), 0o700);
    refused(&home, &around.join("linked/deep/a.jsonl"), "destination-link");
    refused(&home, &around.join("nowhere/a.jsonl"), "destination-absent");
    for mode in [0o750, 0o705, 0o777] {
        folder(&mine, mode);
        refused(&home, &output, "destination-open");
    }
    folder(&mine, 0o700);
    folder(&mine.join("deep/.git"), 0o700);
    refused(&home, &mine.join("deep/a.jsonl"), "destination-in-git");
    folder(&mine.join("deep/deeper"), 0o700);
    refused(&home, &mine.join("deep/deeper/a.jsonl"), "destination-in-git");
    assert_eq!(fs::read_dir(&mine).unwrap().count(), 1);
    for inside in ["export.jsonl", "context/x.jsonl", "agents/x.yaml", "context/../x.jsonl"] {
        refused(&home, &home.below(inside), "inside-home");
    }
    // What does not print is spelled out.
    let long = mine.join(format!("\n\u{1b}[2J{}", "n".repeat(230)));
    refused(&home, &long, "destination-name");
    symlink("nowhere", mine.join(".a.jsonl.thought-export.part")).unwrap();
    refused(&home, &output, "destination-odd");
    fs::remove_file(mine.join(".a.jsonl.thought-export.part")).unwrap();
    // And where nothing is wrong, nothing is refused.
    home.object(&["training-export", "--output", argument(&output)]);
    let strange = mine.join("a\n\u{1b}[2J.jsonl");
    let printed = home.run(&["training-export", "--output", argument(&strange)]).exit(0).stdout;
    assert!(printed.contains("a<U+000A><U+001B>[2J.jsonl") && !printed.contains('\u{1b}'), "{printed:?}");
}

/// A file system of 128 KiB, unmounted at the end.
struct TinyDisk(std::path::PathBuf);

impl TinyDisk {
    fn mounted_at(path: std::path::PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        let size = c"size=128k,mode=0700";
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), Some(size))
            .expect("this test mounts a small file system and needs root for it");
        Self(path)
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _left_to_the_system = unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room_is_refused_beforehand_and_one_that_fills_up_keeps_nothing() {
    let home = Home::init(THOUGHT, "ollama");
    home.object(&["scan"]);
    let mut filler = Filler::open(&home.below("thought.db")).await.unwrap();
    // Fits by the least that it can take, and not by what it does take.
    filler.fill(78).await.unwrap();
    let disk = TinyDisk::mounted_at(home.path.parent().unwrap().join("tiny"));
    let output = disk.0.join("a.jsonl");
    let arguments = [PRIVATE, "--output", argument(&output), ACKNOWLEDGE];
    let done = home.json(&arguments).exit(8);
    assert_eq!(done.error()["code"], "no-space", "{}", done.stderr);
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0);
    filler.fill(200).await.unwrap();
    let done = home.json(&arguments).exit(3);
    assert_eq!(done.error()["code"], "no-space", "{}", done.stderr);
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0);
}
