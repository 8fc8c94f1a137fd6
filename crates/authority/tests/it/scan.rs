//! Files into versions: what is admitted, refused, kept and told.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use thought_authority::filesystem::{Refreshed, ScanError, document_id, version_id};
use thought_authority::limits::{DEPTH_MAX, DOCUMENTS_MAX};
use thought_authority::lock::LockError;
use thought_authority::root::RootError;
use thought_protocol::Sha256Hex;
use thought_store::row::Existence;

use crate::home::{BYTES_MAX, Home, MEMORY, line};

#[tokio::test]
async fn a_file_becomes_a_version_with_its_event() {
    let home = Home::with_memory();
    let side = home.side();
    assert_eq!(line(&side.scan().await), "+[memory.md] ~[] -[] =0 !");
    let row = side.row("memory.md").await.unwrap();
    let version = side.version("memory.md").await;
    let sha256 = Sha256Hex::of(MEMORY.as_bytes());
    assert_eq!(row.document, document_id("memory.md"));
    assert_eq!(version.version, version_id(&row.document, None, &sha256));
    assert_eq!((version.previous, version.sha256, version.byte_count), (None, sha256, MEMORY.len() as u64));
    assert_eq!(
        (version.content_type.as_str(), version.frontmatter_id.as_deref()),
        ("text/markdown", Some("memory"))
    );
    assert_eq!(version.content.expose(), MEMORY.as_bytes());
    let event = side.reader.event(version.event).await.unwrap().unwrap();
    assert_eq!(event.envelope.actor.to_string(), "system:filesystem");
    assert_eq!(line(&side.scan().await), "+[] ~[] -[] =1 !");
    assert_eq!(side.told().await, ["memory.md"]);
}

#[tokio::test]
async fn going_back_to_old_bytes_is_a_third_version() {
    let home = Home::with_memory();
    let side = home.side();
    let mut versions = Vec::new();
    for text in ["A", "B", "A"] {
        home.write("memory.md", text);
        side.scan().await;
        versions.push(side.version("memory.md").await);
    }
    assert_eq!(versions[0].sha256, versions[2].sha256);
    assert_ne!(versions[0].version, versions[2].version);
    assert_eq!(versions[2].previous.as_ref(), Some(&versions[1].version));
    assert_eq!(versions[1].previous.as_ref(), Some(&versions[0].version));
    assert_eq!(side.told().await.len(), 3);
}

#[tokio::test]
async fn a_document_that_goes_and_comes_back_goes_on_from_its_last_version() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    let first = side.version("memory.md").await.version;
    for round in 1..=3 {
        fs::remove_file(home.at("memory.md")).unwrap();
        assert_eq!(line(&side.scan().await), "+[] ~[] -[memory.md] =0 !");
        assert_eq!(side.existence("memory.md").await, Some(Existence::Removed));
        assert_eq!(line(&side.scan().await), "+[] ~[] -[] =0 !");
        home.write("memory.md", MEMORY);
        assert_eq!(line(&side.scan().await), "+[memory.md] ~[] -[] =0 !", "round {round}");
    }
    let last = side.version("memory.md").await;
    assert_ne!(last.version, first);
    assert_eq!(
        side.told().await.join(" "),
        "memory.md -memory.md memory.md -memory.md memory.md -memory.md memory.md"
    );
}

/// Puts something else in the place of `memory.md`.
type Spoil<'a> = &'a dyn Fn(&Home);

#[tokio::test]
async fn a_document_that_becomes_something_else_keeps_its_last_version() {
    let large = vec![b'x'; usize::try_from(BYTES_MAX).unwrap() + 1];
    let spoil: [(&str, Spoil<'_>); 6] = [
        ("symlink", &|home| home.link("memory.md")),
        ("symlink", &|home| symlink("nowhere", home.at("memory.md")).unwrap()),
        ("symlink", &|home| symlink("other.md", home.at("memory.md")).unwrap()),
        ("not-regular-file", &|home| fs::create_dir(home.at("memory.md")).unwrap()),
        ("not-regular-file", &|home| {
            mknodat(CWD, home.at("memory.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }),
        ("too-large", &|home| home.write("memory.md", &large)),
    ];
    for (reason, spoil) in spoil {
        let home = Home::with_memory();
        home.write("other.md", "other");
        let side = home.side();
        side.scan().await;
        fs::remove_file(home.at("memory.md")).unwrap();
        spoil(&home);
        assert_eq!(line(&side.scan().await), format!("+[] ~[] -[] =1 !memory.md={reason}"));
        assert_eq!(side.existence("memory.md").await, Some(Existence::Present), "{reason}");
        assert_eq!(side.content("memory.md").await, MEMORY.as_bytes(), "{reason}");
        side.settle().await;

        fs::remove_file(home.at("memory.md")).or_else(|_| fs::remove_dir(home.at("memory.md"))).unwrap();
        home.write("memory.md", "mended");
        let refreshed = side.connector.refresh().await.unwrap();
        assert!(
            matches!(&refreshed, Refreshed::Scanned(report) if line(report) == "+[] ~[memory.md] -[] =1 !")
        );
        assert_eq!(side.told().await, ["memory.md", "other.md", "memory.md"]);
    }
}

#[tokio::test]
async fn what_was_never_admitted_is_refused_and_not_known() {
    let home = Home::new();
    home.link("link.md");
    symlink("nowhere", home.at("dangling.md")).unwrap();
    fs::create_dir(home.at("folder.md")).unwrap();
    home.write("large.md", vec![b'x'; 1_025]);
    home.write("full.md", vec![b'x'; 1_024]);
    mknodat(CWD, home.at("pipe.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let side = home.side();
    let mut report = side.scan().await;
    report.refused.sort();
    assert_eq!(
        line(&report),
        "+[full.md] ~[] -[] =0 !dangling.md=symlink,folder.md=not-regular-file,large.md=too-large,\
         link.md=symlink,pipe.md=not-regular-file"
    );
    assert_eq!(side.told().await, ["full.md"]);
    assert!(side.row("link.md").await.is_none());
}

#[tokio::test]
async fn bytes_are_kept_as_they_are_whatever_they_are() {
    let cases: [(&str, &[u8], &str, Option<&str>); 12] = [
        ("lf.md", b"---\nid: x\n---\na\n", "text/markdown", Some("x")),
        ("crlf.md", b"---\r\nid: x\r\n---\r\na\r\n", "text/markdown", Some("x")),
        ("mixed.md", b"---\nid: x\r\n---\na\r\nb\n", "text/markdown", Some("x")),
        ("empty.md", b"", "text/markdown", None),
        ("bare.md", b"no frontmatter", "text/markdown", None),
        ("quotes.md", b"---\nid: x\ndescription: \"abc \"def\" ghi\"\n---\n", "text/markdown", None),
        (
            "curly.md",
            "---\nid: x\ndescription: \u{201c}a\u{201d}\n---\n".as_bytes(),
            "text/markdown",
            Some("x"),
        ),
        ("twice.md", b"---\nid: x\nid: y\n---\n", "text/markdown", None),
        ("list.md", b"---\nid: [x]\n---\n", "text/markdown", None),
        ("rule.md", b"---\nid: x\n---\na --- b\n---\n---\n", "text/markdown", Some("x")),
        ("latin.md", b"---\nid: x\n---\ncaf\xe9\n", "application/octet-stream", None),
        ("binary.md", b"\xff\xfe\x00", "application/octet-stream", None),
    ];
    let home = Home::new();
    for (path, bytes, ..) in cases {
        home.write(path, bytes);
    }
    let side = home.side();
    assert_eq!(side.scan().await.added.len(), cases.len());
    for (path, bytes, content_type, id) in cases {
        let version = side.version(path).await;
        assert_eq!(version.content.expose(), bytes, "{path}");
        assert_eq!(version.content_type, content_type, "{path}");
        assert_eq!(version.frontmatter_id.as_deref(), id, "{path}");
        assert_eq!(fs::read(home.at(path)).unwrap(), bytes, "{path}");
    }
}

#[tokio::test]
async fn an_identity_that_no_contract_can_hold_is_none() {
    let home = Home::new();
    home.write("long.md", format!("---\nid: {}\n---\n", "x".repeat(513)));
    home.write("most.md", format!("---\nid: {}\n---\n", "x".repeat(512)));
    home.write("nul.md", "---\nid: \"a\\0b\"\n---\n");
    let side = home.side();
    side.scan().await;
    assert_eq!(side.version("long.md").await.frontmatter_id, None);
    assert_eq!(side.version("nul.md").await.frontmatter_id, None);
    assert_eq!(side.version("most.md").await.frontmatter_id.map(|id| id.len()), Some(512));
}

#[tokio::test]
async fn names_are_taken_as_written_or_refused() {
    let home = Home::new();
    // Composed and decomposed, both of one look; no file is the other.
    for name in ["caf\u{e9}.md", "cafe\u{301}.md", "a b.md", "\u{1f642}.md", "UPPER.md", "-rf.md", "%2e.md"] {
        home.write(name, name);
    }
    for name in [".hidden.md", "notes.txt", "notes.MD", "md", "notes.md~", "#notes.md#"] {
        home.write(name, "no document");
    }
    home.write("bell\u{7}.md", "refused");
    home.write("line\n.md", "refused");
    fs::write(home.at("").join(std::ffi::OsStr::from_bytes(b"caf\xe9.md")), "refused").unwrap();
    let side = home.side();
    let mut report = side.scan().await;
    report.refused.sort();
    assert_eq!(report.added.len(), 7);
    assert_ne!(document_id("caf\u{e9}.md"), document_id("cafe\u{301}.md"));
    assert_eq!(side.content("cafe\u{301}.md").await, "cafe\u{301}.md".as_bytes());
    let refused: Vec<_> = report.refused.iter().map(|(path, why)| (path.as_str(), *why)).collect();
    assert_eq!(
        refused,
        [
            ("bell\u{fffd}.md", "name-invalid"),
            ("caf\u{fffd}.md", "name-invalid"),
            ("line\u{fffd}.md", "name-invalid"),
        ]
    );
    assert_eq!(side.told().await.len(), 7);
}

#[tokio::test]
async fn folders_are_looked_into_to_a_depth_and_never_through_links() {
    let home = Home::new();
    let mut folder = String::new();
    for level in 1..=DEPTH_MAX {
        home.write(&format!("{folder}at{level}.md"), "x");
        folder.push_str(&format!("{level}/"));
        fs::create_dir(home.at(&folder)).unwrap();
    }
    home.write(&format!("{folder}deeper.md"), "x");
    fs::create_dir(home.at(".hidden")).unwrap();
    home.write(".hidden/x.md", "x");
    symlink(home.path().join("outside"), home.at("link")).unwrap();
    symlink("1", home.at("again")).unwrap();
    let side = home.side();
    assert_eq!(line(&side.scan().await), "+[1/2/3/at4.md, 1/2/at3.md, 1/at2.md, at1.md] ~[] -[] =0 !");
}

#[tokio::test]
async fn documents_of_a_folder_that_becomes_a_link_are_kept_and_of_one_that_goes_are_removed() {
    let home = Home::new();
    fs::create_dir_all(home.at("notes/deep")).unwrap();
    home.write("notes/memory.md", "mine");
    home.write("notes/deep/a.md", "mine");
    home.write("notes.md", "mine");
    let side = home.side();
    side.scan().await;
    fs::rename(home.at("notes"), home.at(".notes")).unwrap();
    symlink(home.path().join("outside"), home.at("notes")).unwrap();
    assert_eq!(line(&side.scan().await), "+[] ~[] -[] =1 !notes/deep/a.md=symlink,notes/memory.md=symlink");
    assert_eq!(side.content("notes/memory.md").await, b"mine");
    fs::remove_file(home.at("notes")).unwrap();
    assert_eq!(line(&side.scan().await), "+[] ~[] -[notes/deep/a.md, notes/memory.md] =1 !");
    fs::rename(home.at(".notes"), home.at("notes")).unwrap();
    assert_eq!(line(&side.scan().await), "+[notes/deep/a.md, notes/memory.md] ~[] -[] =1 !");
}

#[tokio::test]
async fn too_many_documents_or_names_are_an_error_and_nothing_is_removed() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    for n in 0..DOCUMENTS_MAX {
        home.write(&format!("{n}.md"), "x");
    }
    let error = side.connector.refresh().await.unwrap_err();
    assert!(matches!(error, ScanError::Walk(_)), "{error}");
    assert_eq!(side.told().await, ["memory.md"]);
    fs::remove_file(home.at("0.md")).unwrap();
    assert!(matches!(side.connector.refresh().await.unwrap(), Refreshed::Scanned(_)));
    assert_eq!(side.told().await.len(), DOCUMENTS_MAX);
}

#[tokio::test]
async fn a_root_that_is_gone_or_a_link_removes_nothing() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    fs::rename(home.path().join("context"), home.path().join("moved")).unwrap();
    let error = side.connector.refresh().await.unwrap_err();
    assert!(matches!(error, ScanError::Root(RootError::NotDirectory)), "{error:?}");
    symlink(home.path().join("outside"), home.path().join("context")).unwrap();
    let error = side.connector.refresh().await.unwrap_err();
    assert!(matches!(error, ScanError::Root(RootError::Symlink)), "{error:?}");
    assert!(!home.path().join("outside/.thought.lock").exists());
    assert_eq!(side.told().await, ["memory.md"]);
    fs::remove_file(home.path().join("context")).unwrap();
    fs::rename(home.path().join("moved"), home.path().join("context")).unwrap();
    side.settle().await;
    assert_eq!(side.told().await, ["memory.md"]);
}

#[tokio::test]
async fn a_guard_of_another_folder_scans_nothing() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    let root = side.connector.root().clone();
    let guard =
        thought_authority::lock::acquire(&root, &super::home::own(), std::time::Duration::ZERO).unwrap();
    fs::rename(home.path().join("context"), home.path().join("moved")).unwrap();
    fs::create_dir(home.path().join("context")).unwrap();
    let error = side.connector.scan(&guard).await.unwrap_err();
    assert!(matches!(error, ScanError::Lock(LockError::RootMoved)), "{error:?}");
    assert_eq!(side.existence("memory.md").await, Some(Existence::Present));
}

#[tokio::test]
async fn a_refresh_scans_when_something_moved_and_only_then() {
    let home = Home::with_memory();
    let side = home.side();
    assert!(side.connector.changed());
    side.settle().await;
    assert!(!side.connector.changed());
    assert_eq!(side.connector.refresh().await.unwrap(), Refreshed::Unchanged);
    let steps: [(&str, &dyn Fn()); 6] = [
        ("written", &|| home.write("memory.md", "other")),
        ("saved by rename", &|| {
            home.write("memory.md.new", "saved");
            fs::rename(home.at("memory.md.new"), home.at("memory.md")).unwrap();
        }),
        ("added", &|| home.write("more.md", "x")),
        ("a folder", &|| fs::create_dir(home.at("folder")).unwrap()),
        ("added in it", &|| home.write("folder/more.md", "x")),
        ("removed", &|| fs::remove_file(home.at("more.md")).unwrap()),
    ];
    for (name, step) in steps {
        step();
        assert!(side.connector.changed(), "{name}");
        assert!(matches!(side.connector.refresh().await.unwrap(), Refreshed::Scanned(_)), "{name}");
        side.settle().await;
    }
    let told = side.told().await.join(" ");
    assert_eq!(told, "memory.md memory.md memory.md more.md folder/more.md -more.md");
}

#[tokio::test]
async fn a_change_of_the_same_size_behind_the_same_time_is_not_missed() {
    let home = Home::with_memory();
    let side = home.side();
    for round in 0..40 {
        // As fast as the machine can: many of these fall into one tick of the file system's clock.
        home.write("memory.md", format!("{round:04}"));
        side.connector.refresh().await.unwrap();
        home.write("memory.md", format!("{round:04}").replace('0', "x"));
        side.connector.refresh().await.unwrap();
        assert_eq!(side.content("memory.md").await, fs::read(home.at("memory.md")).unwrap());
    }
}

#[tokio::test]
async fn a_change_with_its_times_set_back_is_seen() {
    let home = Home::with_memory();
    let side = home.side();
    side.settle().await;
    let before = fs::metadata(home.at("memory.md")).unwrap();
    let file = fs::OpenOptions::new().write(true).open(home.at("memory.md")).unwrap();
    std::io::Write::write_all(&mut &file, &MEMORY.replace("nothing", "0123456").into_bytes()).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    drop(file);
    assert!(side.connector.changed());
    side.connector.refresh().await.unwrap();
    assert_eq!(side.told().await.len(), 2);
}

#[tokio::test]
async fn a_lock_that_stays_held_is_told_and_nothing_is_scanned() {
    let home = Home::with_memory();
    let side = home.side();
    // Time stands still but for what waits.
    tokio::time::pause();
    let root = side.connector.root().clone();
    let guard =
        thought_authority::lock::acquire(&root, &super::home::own(), std::time::Duration::ZERO).unwrap();
    let (one, two) = tokio::join!(side.connector.refresh(), side.connector.refresh());
    assert_eq!((one.unwrap(), two.unwrap()), (Refreshed::LockHeld, Refreshed::LockHeld));
    drop(guard);
    tokio::time::resume();
    assert!(matches!(side.connector.refresh().await.unwrap(), Refreshed::Scanned(_)));
}

#[tokio::test]
async fn malformed_lock_evidence_stops_the_scan() {
    let home = Home::with_memory();
    home.write(".thought.lock", "{");
    let side = home.side();
    let error = side.connector.refresh().await.unwrap_err();
    assert!(matches!(error, ScanError::Lock(LockError::Invalid { .. })), "{error:?}");
    assert!(side.told().await.is_empty());
}

#[tokio::test]
async fn nothing_that_is_printed_holds_a_document() {
    let home = Home::with_memory();
    let side = home.side();
    let report = side.scan().await;
    let version = side.version("memory.md").await;
    let printed = format!("{report:?} {:?} {version:?} {:?}", side.connector, side.connector.root());
    assert!(!printed.contains("knows nothing"), "{printed}");
}

#[tokio::test]
async fn documents_larger_than_a_batch_in_all_are_scanned() {
    let home = Home::new();
    for n in 0..200 {
        home.write(&format!("{n:03}.md"), vec![b'x'; 1_000 + n % 24]);
    }
    let side = home.side();
    assert_eq!(side.scan().await.added.len(), 200);
    assert_eq!(side.scan().await.unchanged, 200);
    fs::set_permissions(home.at("000.md"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(side.connector.changed());
    assert_eq!(side.scan().await.unchanged, 200);
}

#[tokio::test]
async fn a_scan_tells_the_lock_and_the_root_apart() {
    let home = Home::with_memory();
    let side = home.side();
    side.scan().await;
    fs::remove_file(home.at(".thought.lock")).unwrap();
    symlink("memory.md", home.at(".thought.lock")).unwrap();
    home.write("memory.md", "other");
    let error = side.connector.refresh().await.unwrap_err();
    assert!(matches!(error, ScanError::Lock(LockError::Invalid { .. })), "{error:?}");
    assert_eq!(fs::read(home.at("memory.md")).unwrap(), b"other");
    assert_eq!(side.content("memory.md").await, MEMORY.as_bytes());
}
