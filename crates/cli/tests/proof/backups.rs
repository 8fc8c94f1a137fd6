//! Backups: taken while the home is in use, equal when they come back, and refused when a byte is missing or changed.

use std::path::{Path, PathBuf};

use thought_fakes::Reply;
use thought_testkit::home::Home;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::world::{at, files, lived_in};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn restore(world: &World, input: &Path, folder: &Path, code: i32) -> thought_testkit::run::Done {
    let arguments = ["--home", text(folder), "restore", "--input", text(input), "--json"];
    world.home.binary.run(&arguments).exit(code)
}

fn events(home: &Home) -> Vec<serde_json::Value> {
    home.lines(&["event-list", "--acknowledge-sensitive-private"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_comes_back_equal_in_every_file_and_event() {
    let world = lived_in().await;
    let folder = tempfile::tempdir().unwrap();
    let (backup, back) = (folder.path().join("home.tar"), folder.path().join("back"));
    let said = world.home.object(&["backup", "--output", text(&backup)]);
    assert_eq!(said["sources"], world.home.object(&["status"])["sources"]);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(said["bytes"].as_u64(), Some(std::fs::metadata(&backup).unwrap().len()));

    restore(&world, &backup, &back, 0);
    assert_eq!(std::fs::metadata(&back).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(files(&back), files(&world.home.path));
    let restored = at(&world, &back);
    assert_eq!(events(&restored), events(&world.home));
    assert_eq!(restored.object(&["verify"])["whole"], true);
    for list in [&["proposal-list"][..], &["run-list"], &["judgment-list"], &["declaration-list"]] {
        let strip = |home: &Home| {
            let mut rows = home.lines(list);
            for row in &mut rows {
                row.as_object_mut().unwrap().remove("ageSeconds");
            }
            rows
        };
        assert_eq!(strip(&restored), strip(&world.home), "{list:?}");
    }
    // Nothing of the way is left.
    let left: Vec<PathBuf> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(
        !world
            .home
            .below("run")
            .read_dir()
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with("backup-") })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_home_at_work_is_one_state_that_can_go_on() {
    let world = World::start(THOUGHT).await;
    world.model.script((0..6).map(|number| Reply::Text(format!("Answer {number}."))).collect());
    let serve = world.serve();
    world.turn("One.", 1).await;
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("home.tar");
    world.say("Two.");
    world.home.json(&["backup", "--output", text(&backup)]).exit(0);
    world.turn("Three.", 3).await;
    serve.stop();
    let back = folder.path().join("back");
    restore(&world, &backup, &back, 0);
    let restored = at(&world, &back);
    assert_eq!(restored.object(&["verify"])["whole"], true);
    let (kept, all) = (events(&restored), events(&world.home));
    assert!(kept.len() >= 3 && kept.len() < all.len());
    assert_eq!(kept[..], all[..kept.len()], "a state of the same log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_cut_or_changed_backup_is_refused_and_leaves_nothing() {
    let world = lived_in().await;
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("home.tar");
    world.home.json(&["backup", "--output", text(&backup)]).exit(0);
    let whole = std::fs::read(&backup).unwrap();
    let (bad, back) = (folder.path().join("bad.tar"), folder.path().join("back"));
    let mut tried = 0;
    let mut refuse = |bytes: &[u8]| {
        std::fs::write(&bad, bytes).unwrap();
        let done = restore(&world, &bad, &back, 3);
        assert!(!back.exists(), "{}", done.stderr);
        tried += 1;
    };
    let last = whole.len() - 1;
    // The two empty blocks of the end may be missing without a loss, everything before may not.
    let content = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for part in 0..24 {
        refuse(&whole[..content * part / 24]);
    }
    refuse(&whole[..content]);
    for part in 1..40 {
        let mut changed = whole.clone();
        let mut place = last * part / 40;
        // What pads a block is nobody's.
        while changed[place] == 0 {
            place = (place + 1) % content;
        }
        changed[place] ^= 0x11;
        refuse(&changed);
    }
    refuse(&[&whole[..content / 512 * 512 + 512], &whole[..]].concat());
    refuse(b"not a backup");
    assert_eq!(tried, 24 + 1 + 39 + 2);
    std::fs::remove_file(&bad).unwrap();
    restore(&world, &bad, &back, 5);
    restore(&world, &backup, &back, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_overwritten_and_no_backup_lies_in_its_own_home() {
    let world = World::start(THOUGHT).await;
    world.home.json(&["scan"]).exit(0);
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("home.tar");
    world.home.json(&["backup", "--output", text(&backup)]).exit(0);
    let before = std::fs::read(&backup).unwrap();
    let code = |output: &Path| {
        world.home.json(&["backup", "--output", text(output)]).exit(3).error()["code"].clone()
    };
    assert_eq!(code(&backup), "exists");
    assert_eq!(code(&folder.path().join("absent/home.tar")), "no-folder");
    assert_eq!(code(&world.home.below("context/home.tar")), "inside-home");
    std::os::unix::fs::symlink("nowhere", folder.path().join("link.tar")).unwrap();
    assert_eq!(code(&folder.path().join("link.tar")), "exists");
    assert_eq!(std::fs::read(&backup).unwrap(), before);
    // Into a folder that holds something, nothing is restored.
    let full = folder.path().join("full");
    std::fs::create_dir(&full).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&full, std::fs::Permissions::from_mode(0o700)).unwrap();
    restore(&world, &backup, &full, 0);
    let again = restore(&world, &backup, &full, 3);
    assert_eq!(again.error()["code"], "not-empty");
}
