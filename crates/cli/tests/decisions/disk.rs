//! A context that cannot be written, and disks that are full at one page or another: the old bytes and no receipt, or a
//! failure that is recorded once and tried again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};
use serde_json::json;
use thought_testkit::home::Home;

use crate::template::{LINE, Template, home};
use crate::world::{
    CHANGE, Standing, appended, decide, decided, decisions, fails, failures, memory_of, receipts, three,
};

/// Something mounted, unmounted at the end.
struct Mounted(PathBuf);

impl Mounted {
    /// A small file system; where that is not allowed the test fails, since nothing else would show what it is for.
    fn small(at: &Path, size: &std::ffi::CStr) -> Self {
        mount("tmpfs", at, "tmpfs", MountFlags::empty(), Some(size)).unwrap_or_else(|errno| {
            panic!("this test mounts a small file system and needs root for it: {errno}")
        });
        Self(at.to_owned())
    }

    fn read_only(at: &Path) -> Self {
        mount_bind(at, at)
            .unwrap_or_else(|errno| panic!("this test mounts a folder and needs root for it: {errno}"));
        let mounted = Self(at.to_owned());
        mount_remount(at, MountFlags::BIND | MountFlags::RDONLY, c"").unwrap();
        mounted
    }

    /// Fills it to the last byte, but for some pages.
    fn fill(&self, pages_left: usize) {
        let mut ballast = fs::File::create(self.0.join(".ballast")).unwrap();
        let page = [0_u8; 4096];
        let mut pages: u64 = 0;
        while ballast.write_all(&page).is_ok() {
            pages += 1;
        }
        ballast.set_len(pages.saturating_sub(pages_left as u64) * 4096).unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.0.join(".ballast")).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _left_to_the_system = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Puts the context of a home on a small disk of its own.
fn on_a_small_disk(home: &Home) -> Mounted {
    let context = home.below("context");
    let kept: Vec<_> =
        ["identity.md", "memory.md"].map(|name| (name, fs::read(context.join(name)).unwrap())).into();
    let disk = Mounted::small(&context, c"size=256k,mode=0700");
    for (name, bytes) in kept {
        fs::write(context.join(name), bytes).unwrap();
    }
    disk
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_cannot_be_written_is_told_and_written_later() {
    let (home, id) = three(CHANGE).await;
    let base = memory_of(&home);
    let mounted = Mounted::read_only(&home.below("context"));
    let told = fails(&home, &id, "write-failed");
    let before = Standing::of(&home);
    // The same word again tells the same, and tries nothing.
    assert_eq!(fails(&home, &id, "write-failed"), told);
    assert_eq!(Standing::of(&home), before);
    // A projector tries, and fails in this call; it is recorded once.
    for arguments in [vec!["proposal-project"], vec!["proposal-project", "--proposal", &id]] {
        let done = home.json(&arguments).exit(6);
        assert_eq!(
            (done.object()["reason"].clone(), done.object()["submissionId"].clone()),
            (json!("write-failed"), told["submissionId"].clone())
        );
    }
    assert_eq!((failures(&home), receipts(&home).len()), (vec!["write-failed".to_owned()], 0));
    assert_eq!(memory_of(&home), base);
    drop(mounted);
    // Told again until somebody has it tried again.
    assert_eq!(fails(&home, &id, "write-failed"), told);
    assert_eq!(home.object(&["proposal-project"])["status"], "materialized");
    assert_eq!(memory_of(&home), appended(&base, LINE));
    assert_eq!(decided(&home, &id, "accept", "materialized")["decision"], told["decision"]);
    assert_eq!((failures(&home).len(), receipts(&home).len(), decisions(&home).len()), (1, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_the_context_keeps_the_old_bytes_at_every_page() {
    let mut ends = Vec::new();
    for pages_left in 0..4 {
        let (home, id) = three(CHANGE).await;
        let base = memory_of(&home);
        let disk = on_a_small_disk(&home);
        disk.fill(pages_left);
        let done = decide(&home, &id, "accept", &[]);
        ends.push(done.code.unwrap());
        if done.code == Some(6) {
            assert_eq!(done.object()["reason"], "write-failed", "{pages_left}");
            assert_eq!((memory_of(&home), receipts(&home).len()), (base.clone(), 0), "{pages_left}");
            disk.free();
            assert_eq!(home.object(&["proposal-project"])["status"], "materialized");
        }
        assert_eq!(memory_of(&home), appended(&base, LINE), "{pages_left}");
        assert_eq!((receipts(&home).len(), decisions(&home).len()), (1, 1));
        drop(disk);
    }
    assert_eq!(
        (ends[0], ends[1], ends[3]),
        (6, 6, 0),
        "no page for the lock, none for the file, enough: {ends:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_the_whole_home_loses_no_word_that_was_told() {
    let made = home(Template::Three).await;
    let base = memory_of(&made);
    let id = made.lines(&["proposal-list", "--kind", CHANGE])[0]["id"].as_str().unwrap().to_owned();
    let mut decided_while_full = 0;
    for pages_left in [0, 4, 8, 12, 16, 20, 24, 28, 32, 40] {
        let at = made.folder.path().join(format!("disk-{pages_left}"));
        fs::create_dir(&at).unwrap();
        let disk = Mounted::small(&at, c"size=8m,mode=0700");
        crate::template::copy(&made.path, &at.join("home"));
        let home =
            Home { path: at.join("home"), binary: made.binary.clone(), folder: tempfile::tempdir().unwrap() };
        disk.fill(pages_left);
        let done = decide(&home, &id, "accept", &[]);
        disk.free();
        let stands = decisions(&home).len();
        match done.code {
            Some(0) => assert_eq!((stands, receipts(&home).len()), (1, 1)),
            // Whoever was told that the decision stands is right.
            Some(6) => assert_eq!((stands, done.object()["reason"].as_str()), (1, Some("write-failed"))),
            Some(8) => {
                assert!(done.error()["hint"].is_string(), "{}", done.stderr);
                if !done.stdout.is_empty() {
                    assert_eq!((stands, done.object()["status"].as_str()), (1, Some("pending")));
                }
            }
            other => panic!("{pages_left}: {other:?} {}", done.stderr),
        }
        decided_while_full += stands;
        if memory_of(&home) == base {
            assert!(receipts(&home).is_empty());
        }
        // With room again, the word is said and carried out.
        decide(&home, &id, "accept", &[]);
        home.json(&["proposal-project"]).exit(0);
        assert_eq!(memory_of(&home), appended(&base, LINE), "{pages_left}");
        assert_eq!((receipts(&home).len(), decisions(&home).len()), (1, 1), "{pages_left}");
        home.json(&["verify"]).exit(0);
    }
    assert!((1..10).contains(&decided_while_full), "some disks are too full for a word, others are not");
}
