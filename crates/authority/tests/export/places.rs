//! Where an export may lie, and what it leaves alone.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, FileType, Gid, Mode, Uid, chown, mknodat};
use thought_authority::export::{DestinationError, ExportError, FileError, Request, Scope, Watcher, export};
use thought_store::NoImages;

use crate::house::{House, Unwatched};

async fn refusal(house: &House, output: &Path) -> DestinationError {
    let request = Request { scope: Scope::Private, output, tool_version: "0.0.0" };
    let outcome = export((&house.world.side.reader, &NoImages), request, &Unwatched).await;
    match outcome {
        Err(ExportError::Destination(error)) => error,
        other => panic!("{}: {other:?}", output.display()),
    }
}

fn folder(house: &House, name: &str, mode: u32) {
    fs::create_dir_all(house.at(name)).unwrap();
    fs::set_permissions(house.at(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn each_unfit_folder_is_refused_by_name() {
    use DestinationError as E;
    let house = House::new().await;
    folder(&house, "mine", 0o700);
    for mode in [0o710, 0o701, 0o740, 0o704, 0o750, 0o755, 0o777] {
        fs::set_permissions(house.at("mine"), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(refusal(&house, &house.at("mine/a.jsonl")).await, E::Open, "{mode:o}");
    }
    fs::set_permissions(house.at("mine"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("mine", house.at("linked")).unwrap();
    assert_eq!(refusal(&house, &house.at("linked/a.jsonl")).await, E::Link);
    folder(&house, "mine/deep", 0o700);
    assert_eq!(refusal(&house, &house.at("linked/deep/a.jsonl")).await, E::Link);
    assert_eq!(refusal(&house, &house.at("nowhere/a.jsonl")).await, E::Absent);
    fs::write(house.at("file"), "").unwrap();
    assert_eq!(refusal(&house, &house.at("file/a.jsonl")).await, E::NotFolder);
    assert_eq!(refusal(&house, Path::new("/")).await, E::NoName);
    assert_eq!(refusal(&house, &house.at("mine/..")).await, E::NoName);
    assert_eq!(refusal(&house, &house.at("mine/.a.thought-export.part")).await, E::NameKept);
    // Long enough for its own name, and not for the unfinished manifest's.
    let long = house.at("mine").join("n".repeat(230));
    assert_eq!(refusal(&house, &long).await, E::NameLong);
    assert!(fs::read_dir(house.at("mine")).unwrap().all(|entry| entry.unwrap().file_name() == "deep"));
}

#[tokio::test]
async fn a_git_work_tree_is_found_wherever_it_begins() {
    let house = House::new().await;
    folder(&house, "tree/a/b", 0o700);
    folder(&house, "tree/.git", 0o700);
    for output in ["tree/x.jsonl", "tree/a/b/x.jsonl", "tree/.git/x.jsonl"] {
        folder(&house, Path::new(output).parent().unwrap().to_str().unwrap(), 0o700);
        assert_eq!(refusal(&house, &house.at(output)).await, DestinationError::GitWorkTree, "{output}");
    }
    // A linked work tree has a file there, and a link counts too.
    folder(&house, "linked", 0o700);
    fs::write(house.at("linked/.git"), "gitdir: elsewhere\n").unwrap();
    assert_eq!(refusal(&house, &house.at("linked/x.jsonl")).await, DestinationError::GitWorkTree);
    folder(&house, "dangling", 0o700);
    symlink("nowhere", house.at("dangling/.git")).unwrap();
    assert_eq!(refusal(&house, &house.at("dangling/x.jsonl")).await, DestinationError::GitWorkTree);
    // Beside a work tree is not in it.
    folder(&house, "beside", 0o700);
    house.try_export(Scope::Private, "beside/x.jsonl", &Unwatched).await.unwrap();
}

#[tokio::test]
async fn a_folder_of_another_account_is_refused() {
    let house = House::new().await;
    folder(&house, "theirs", 0o700);
    // Only root can give a folder away; another account is refused at the first folder that is not its own.
    let theirs = if rustix::process::geteuid().is_root() {
        chown(house.at("theirs"), Some(Uid::from_raw(12_345)), Some(Gid::from_raw(12_345))).unwrap();
        house.at("theirs/a.jsonl")
    } else {
        Path::new("/root-of-nobody.jsonl").to_owned()
    };
    assert_eq!(refusal(&house, &theirs).await, DestinationError::NotOwned);
}

#[tokio::test]
async fn nothing_is_overwritten_whatever_it_is() {
    use DestinationError as E;
    let house = House::new().await;
    fs::write(house.at("a.jsonl"), "mine").unwrap();
    assert_eq!(refusal(&house, &house.at("a.jsonl")).await, E::OutputExists);
    assert_eq!(fs::read_to_string(house.at("a.jsonl")).unwrap(), "mine");
    symlink("nowhere", house.at("b.jsonl")).unwrap();
    assert_eq!(refusal(&house, &house.at("b.jsonl")).await, E::OutputExists);
    folder(&house, "c.jsonl", 0o700);
    assert_eq!(refusal(&house, &house.at("c.jsonl")).await, E::OutputExists);
    // A manifest whose output was carried elsewhere is no leftover.
    house.try_export(Scope::Private, "d.jsonl", &Unwatched).await.unwrap();
    fs::rename(house.at("d.jsonl"), house.at("carried.jsonl")).unwrap();
    assert_eq!(refusal(&house, &house.at("d.jsonl")).await, E::ManifestExists);
    assert!(house.at("d.jsonl.manifest.json").exists());
}

/// Takes a name just before the export does.
struct Thief<'a> {
    house: &'a House,
    at: &'static str,
    name: &'static str,
}

impl Watcher for Thief<'_> {
    fn reach(&self, name: &'static str) {
        if name == self.at {
            fs::write(self.house.at(self.name), "theirs").unwrap();
        }
    }
}

#[tokio::test]
async fn a_name_that_is_taken_meanwhile_stays_as_it_is_and_nothing_else_is_left() {
    let house = House::new().await;
    for (at, name) in [("export.manifest-written", "a.manifest.json"), ("export.manifest-placed", "a")] {
        let thief = Thief { house: &house, at, name };
        let outcome = house.try_export(Scope::Private, "a", &thief).await;
        assert!(matches!(outcome, Err(ExportError::File(FileError::Taken))), "{outcome:?}");
        assert_eq!(house.names(), [name]);
        assert_eq!(fs::read_to_string(house.at(name)).unwrap(), "theirs");
        fs::remove_file(house.at(name)).unwrap();
    }
}

/// A disk that is full from the n-th write on.
struct FullDisk(AtomicU32);

impl Watcher for FullDisk {
    fn write(&self) -> io::Result<()> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }
}

#[tokio::test]
async fn a_disk_that_fills_up_leaves_nothing_and_is_said() {
    let house = House::new().await;
    house.world.side.turn(1, &[]).await;
    house.correct(10, 1, "better").await;
    // The output, then the manifest.
    for writes in 0..2 {
        let outcome = house.try_export(Scope::Private, "a.jsonl", &FullDisk(AtomicU32::new(writes))).await;
        assert!(matches!(outcome, Err(ExportError::File(FileError::NoSpace))), "{writes}: {outcome:?}");
        assert!(house.names().is_empty(), "{:?}", house.names());
    }
    house.try_export(Scope::Private, "a.jsonl", &FullDisk(AtomicU32::new(2))).await.unwrap();
}

#[tokio::test]
async fn what_no_export_made_and_stands_where_the_unfinished_file_goes_is_named() {
    for name in [".a.jsonl.thought-export.part", ".a.jsonl.manifest.json.thought-export.part"] {
        let house = House::new().await;
        let odd: [fn(&Path); 3] = [
            |at| symlink("nowhere", at).unwrap(),
            |at| fs::create_dir(at).unwrap(),
            |at| mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        ];
        for make in odd {
            make(&house.at(name));
            let error = house.try_export(Scope::Private, "a.jsonl", &Unwatched).await.unwrap_err();
            let ExportError::File(FileError::Odd { name: told }) = &error else { panic!("{error:?}") };
            assert_eq!(told, name);
            // It is left as it is, and stands in nobody else's way.
            assert_eq!(house.names(), [name]);
            house.try_export(Scope::Private, "b.jsonl", &Unwatched).await.unwrap();
            assert_eq!(house.names().len(), 3);
            for name in ["b.jsonl", "b.jsonl.manifest.json"] {
                fs::remove_file(house.at(name)).unwrap();
            }
            let is_folder = house.at(name).symlink_metadata().unwrap().is_dir();
            if is_folder { fs::remove_dir(house.at(name)) } else { fs::remove_file(house.at(name)) }.unwrap();
        }
    }
}
