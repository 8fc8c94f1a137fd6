//! The root and what is read beneath it.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use thought_authority::root::{ContextRoot, ReadError, RootError, look, open_beneath, read_beneath};

use crate::home::Home;

fn open(home: &Home, root: &str) -> Result<(), RootError> {
    ContextRoot::open(home.path(), Path::new(root)).map(drop)
}

#[test]
fn a_root_is_a_folder_reached_through_no_link() {
    let home = Home::new();
    let at = |path: &str| home.path().join(path);
    fs::create_dir_all(at("a/b/c")).unwrap();
    symlink(at("context"), at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink(at("a"), at("parent")).unwrap();
    symlink("context", at("relative")).unwrap();
    fs::write(at("file"), "").unwrap();
    for (root, expected) in [
        ("context", Ok(())),
        ("a/b/c", Ok(())),
        ("./a/b", Ok(())),
        ("link", Err(RootError::Symlink)),
        ("relative", Err(RootError::Symlink)),
        ("dangling", Err(RootError::Symlink)),
        ("parent/b", Err(RootError::Symlink)),
        ("file", Err(RootError::NotDirectory)),
        ("file/below", Err(RootError::NotDirectory)),
        ("absent", Err(RootError::NotDirectory)),
        ("", Err(RootError::NotDirectory)),
        ("..", Err(RootError::Outside)),
        ("a/../..", Err(RootError::Outside)),
        ("/tmp", Err(RootError::Outside)),
    ] {
        assert_eq!(open(&home, root), expected, "{root}");
    }
    assert!(!at("nowhere").exists());
    assert!(matches!(ContextRoot::open(&at("absent"), Path::new("context")), Err(RootError::Home(_))));
}

#[test]
fn a_home_reached_through_a_link_is_the_home() {
    let home = Home::new();
    let other = tempfile::tempdir().unwrap();
    symlink(home.path(), other.path().join("home")).unwrap();
    ContextRoot::open(&other.path().join("home"), Path::new("context")).unwrap();
}

#[test]
fn a_root_swapped_for_a_link_is_refused_from_then_on() {
    let home = Home::with_memory();
    let root = home.root();
    let folder = root.directory().unwrap();
    assert!(root.is_at(&folder).unwrap());
    fs::rename(home.path().join("context"), home.path().join("moved")).unwrap();
    assert_eq!(root.directory().map(drop), Err(RootError::NotDirectory));
    symlink(home.path().join("outside"), home.path().join("context")).unwrap();
    assert_eq!(root.directory().map(drop), Err(RootError::Symlink));
    fs::remove_file(home.path().join("context")).unwrap();
    fs::create_dir(home.path().join("context")).unwrap();
    assert!(!root.is_at(&folder).unwrap());
}

#[test]
fn only_a_regular_file_beneath_the_root_is_read() {
    let home = Home::with_memory();
    let root = home.root().directory().unwrap();
    home.link("link.md");
    symlink("memory.md", home.at("inside.md")).unwrap();
    symlink("nowhere.md", home.at("dangling.md")).unwrap();
    symlink(home.path().join("outside"), home.at("folder")).unwrap();
    fs::create_dir(home.at("folder.md")).unwrap();
    mknodat(CWD, home.at("pipe.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _socket = UnixListener::bind(home.at("socket.md")).unwrap();
    home.write("large.md", vec![b'x'; 65]);
    home.write("full.md", vec![b'x'; 64]);
    home.write("empty.md", "");
    for (path, expected) in [
        ("link.md", ReadError::Symlink),
        ("inside.md", ReadError::Symlink),
        ("dangling.md", ReadError::Symlink),
        ("folder/memory.md", ReadError::Symlink),
        ("folder.md", ReadError::NotRegular),
        ("pipe.md", ReadError::NotRegular),
        ("socket.md", ReadError::NotRegular),
        ("memory.md/below", ReadError::NotRegular),
        ("large.md", ReadError::TooLarge { bytes_max: 64 }),
        ("absent.md", ReadError::Absent),
        ("../outside/memory.md", ReadError::Outside),
        ("/etc/hostname", ReadError::Outside),
    ] {
        assert_eq!(read_beneath(&root, path, 64).map(drop), Err(expected), "{path}");
    }
    assert_eq!(read_beneath(&root, "full.md", 64).unwrap().0.len(), 64);
    assert!(read_beneath(&root, "empty.md", 64).unwrap().0.is_empty());
    assert_eq!(fs::read_to_string(home.path().join("outside/memory.md")).unwrap(), "OUTSIDE");
    assert!(!home.at("nowhere.md").exists());
}

#[test]
fn a_look_follows_nothing_and_sees_every_change() {
    let home = Home::with_memory();
    let root = home.root().directory().unwrap();
    home.link("link.md");
    symlink(home.path().join("outside"), home.at("folder")).unwrap();
    assert_eq!(look(&root, "link.md").unwrap().kind(), FileType::Symlink);
    assert!(look(&root, "folder/memory.md").is_err());
    fs::create_dir(home.at("real")).unwrap();
    home.link("real/link.md");
    assert_eq!(look(&root, "real/link.md").unwrap().kind(), FileType::Symlink);

    let before = look(&root, "memory.md").unwrap();
    assert_eq!(look(&root, "memory.md").unwrap(), before);
    home.write("other.md", super::home::MEMORY);
    fs::rename(home.at("other.md"), home.at("memory.md")).unwrap();
    let after = look(&root, "memory.md").unwrap();
    assert_ne!(after, before);
    assert!(!after.is_same_file(&before));
    assert_eq!(after.size_bytes(), before.size_bytes());
}

#[test]
fn a_change_is_settled_only_well_before_the_reference() {
    let home = Home::with_memory();
    let root = home.root().directory().unwrap();
    let early = look(&root, "memory.md").unwrap();
    assert!(!early.is_settled_before(&early));
    std::thread::sleep(std::time::Duration::from_millis(60));
    home.write("later.md", "");
    let late = look(&root, "later.md").unwrap();
    assert!(early.is_settled_before(&late));
    assert!(!late.is_settled_before(&early));
}

#[test]
fn descriptors_are_closed_in_whatever_is_started() {
    let home = Home::with_memory();
    let folder = home.root().directory().unwrap();
    let file = open_beneath(&folder, "memory.md", OFlags::RDONLY).unwrap();
    for descriptor in [&folder, &file] {
        let flags = rustix::io::fcntl_getfd(descriptor).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
