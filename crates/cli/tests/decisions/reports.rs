//! What breaks for people who run such systems, each by its number.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;
use thought_testkit::home::Home;

use crate::template::{LINE, REPLACED, Template, home, row};
use crate::world::{
    CHANGE, Standing, appended, decide, decided, decisions, fails, failures, file, id_of, memory_of,
    memory_path, receipts, three, world_with,
};

/// A home with a proposal to replace the document, and its id.
async fn replacing() -> (Home, String) {
    let home = home(Template::Replace).await;
    let id = id_of(&row(&home, CHANGE, 0));
    (home, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn report_1_an_old_replacement_never_lands_on_what_the_owner_wrote_since() {
    for length in [0, 100, 8 * 1024] {
        let (home, id) = replacing().await;
        let mut own = "---\nid: memory\n---\n".to_owned();
        own.extend(std::iter::repeat_n('x', length));
        own.push('\n');
        fs::write(memory_path(&home), &own).unwrap();
        fails(&home, &id, "stale-base");
        assert_eq!(memory_of(&home), own);
        assert_eq!((failures(&home).len(), receipts(&home).len()), (1, 0));
    }
    // Back at the same bytes it is still another base.
    let (home, id) = replacing().await;
    let base = memory_of(&home);
    for text in [format!("{base}more\n"), base.clone()] {
        fs::write(memory_path(&home), text).unwrap();
        home.run(&["scan"]).exit(0);
    }
    fails(&home, &id, "stale-base");
    assert_eq!(memory_of(&home), base);
    // And a document that is gone is not made anew.
    let (home, id) = replacing().await;
    fs::remove_file(memory_path(&home)).unwrap();
    fails(&home, &id, "base-missing");
    assert!(!memory_path(&home).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn report_5_a_result_over_the_limit_fails_the_same_each_time() {
    let (home, id) = three(CHANGE).await;
    let base = memory_of(&home);
    home.set("context", "max_file_bytes", Some(&(base.len() + 3).to_string()));
    let told = fails(&home, &id, "too-large");
    let before = Standing::of(&home);
    for _ in 0..3 {
        // Nothing is tried again: what is final stays so, and is told as it was.
        assert!(home.json(&["proposal-project"]).exit(0).stdout.is_empty());
        let projected = home.json(&["proposal-project", "--proposal", &id]).exit(0).object();
        assert_eq!(projected, told);
        assert_eq!(fails(&home, &id, "too-large"), told);
    }
    assert_eq!(Standing::of(&home), before);
    assert_eq!((decisions(&home).len(), failures(&home)), (1, vec!["too-large".to_owned()]));
    assert_eq!((memory_of(&home), crate::world::state(&home, &id)), (base, json!("failed")));
    let failure = home.events("agent.memory-change.materialization.failed@1").remove(0);
    let payload = failure["payload"].as_object().unwrap();
    assert_eq!(
        payload.keys().collect::<Vec<_>>(),
        ["decision", "proposal", "reason"],
        "a reason and no content"
    );
}

/// Decides with this document in the place of the proposed one: `None` when it is written, or the reason it is not.
async fn written(document: &[u8]) -> (Option<String>, Vec<u8>) {
    let (home, id) = replacing().await;
    let base = fs::read(memory_path(&home)).unwrap();
    let own = file(&home, "own.md", document);
    let done = decide(&home, &id, "edit", &["--replacement-file", &own]);
    let now = fs::read(memory_path(&home)).unwrap();
    match done.code {
        Some(0) => (None, now),
        Some(6) => {
            assert_eq!(now, base, "bytes kept");
            (Some(done.object()["reason"].as_str().unwrap().to_owned()), now)
        }
        other => panic!("{other:?} {}", done.stderr),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn report_9_frontmatter_is_read_by_a_real_parser() {
    for bad in [
        "---\nid: memory\ndescription: \"abc \"def\" ghi\"\n---\n",
        "---\nid: memory\ndescription: a: b: c\n---\n",
        "---\nid: memory\n\ttab: x\n---\n",
        "---\nid: memory\nlist: [a, b\n---\n",
        "---\n- id: memory\n---\n",
        "---\nid\n---\n",
        "---\n---\n",
    ] {
        assert_eq!(written(bad.as_bytes()).await.0.as_deref(), Some("frontmatter-invalid"), "{bad}");
    }
    for good in [
        "---\nid: memory\ndescription: \u{201c}abc\u{201d} def\n---\nx\n",
        "---\nid: memory\ndescription: 'abc \"def\" ghi'\n---\nx\n",
        "---\nid: \"memory\"\n# a comment\nlist:\n  - a\n---\nx\n",
        "---\n{id: memory, n: 1}\n---\nx\n",
    ] {
        assert_eq!(written(good.as_bytes()).await, (None, good.as_bytes().to_vec()), "{good}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn report_10_line_ends_are_one_rule_and_never_rewritten() {
    let text = "- one\n- two";
    let world = world_with(vec![vec![crate::world::memory(text)]]).await;
    let home = &world.home;
    let id = id_of(&row(home, CHANGE, 0));
    let cases = [
        ("---\nid: memory\n---\na\nb\n", "\n- one\n- two\n"),
        ("---\r\nid: memory\r\n---\r\na\r\nb\r\n", "\r\n- one\r\n- two\r\n"),
        ("---\nid: memory\r\n---\na\r\nb\n", "\n- one\n- two\n"),
        ("---\r\nid: memory\n---\na\nb\n", "\r\n- one\r\n- two\r\n"),
        ("---\nid: memory\n---\nno end", "\n\n- one\n- two\n"),
        ("---\r\nid: memory\r\n---", "\r\n\r\n- one\r\n- two\r\n"),
    ];
    for (base, end) in cases {
        fs::write(memory_path(home), base).unwrap();
        // The same words on this base, by a person.
        let again = home.object(&["proposal-repropose", &id])["proposal"].as_str().unwrap().to_owned();
        decided(home, &again, "accept", "materialized");
        assert_eq!(memory_of(home), format!("{base}{end}"), "{base:?}");
    }
    // A whole document is taken as it is given, with one end of its last line.
    for (given, expected) in [
        ("---\r\nid: memory\n---\r\na\rb\r\n", "---\r\nid: memory\n---\r\na\rb\r\n"),
        ("---\nid: memory\n---\nno end", "---\nid: memory\n---\nno end\n"),
    ] {
        assert_eq!(written(given.as_bytes()).await, (None, expected.as_bytes().to_vec()), "{given:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn report_12_only_a_fence_closes_and_an_odd_id_is_never_guessed() {
    let refused = [
        ("---\nid: memory\n--- \n", "frontmatter-"),
        ("---\nid: memory\n----\n", "frontmatter-"),
        ("--- \nid: memory\n---\n", "frontmatter-missing"),
        ("\n---\nid: memory\n---\n", "frontmatter-missing"),
        ("\u{feff}---\nid: memory\n---\n", "frontmatter-"),
        ("---\nid: memory\n", "frontmatter-"),
        ("id: memory\n", "frontmatter-missing"),
        ("---\nid: memory\nid: memory\n---\n", "frontmatter-invalid"),
        ("---\na: &a 1\nid: memory\n---\n", "frontmatter-invalid"),
        ("---\nid: &a memory\nb: *a\n---\n", "frontmatter-invalid"),
        ("---\nid: !!str memory\n---\n", "frontmatter-invalid"),
        ("---\nid: [memory]\n---\n", "frontmatter-"),
        ("---\nid: 0x10\n---\n", "frontmatter-"),
        ("---\nid: yes\n---\n", "frontmatter-"),
        ("---\nid: 12\n---\n", "frontmatter-"),
        ("---\nid: ''\n---\n", "frontmatter-"),
        ("---\nid: Memory\n---\n", "frontmatter-id-changed"),
        ("---\nid: 'memory '\n---\n", "frontmatter-id-changed"),
        ("---\nname: memory\n---\n", "frontmatter-"),
    ];
    for (document, reason) in refused {
        let told = written(document.as_bytes()).await.0;
        assert!(told.as_deref().is_some_and(|told| told.starts_with(reason)), "{document:?}: {told:?}");
    }
    for document in [
        "---\nid: memory\n---\na line with --- in it\n",
        "---\nid: memory\n---\n---\n",
        "---\nid: memory\n---\n---\nid: other\n---\n",
        "---\nid: memory\nquoted: \"--- not a fence\"\n---\nx\n",
    ] {
        assert_eq!(written(document.as_bytes()).await, (None, document.as_bytes().to_vec()), "{document:?}");
    }
    assert_eq!(written(REPLACED.as_bytes()).await.0, None);
}

/// Where a link of a test leads.
struct Outside(PathBuf);

const FOREIGN: &str = "---\nid: memory\n---\nnobody's business\n";

impl Outside {
    fn of(home: &Home) -> Self {
        let path = home.folder.path().join("outside");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("memory.md"), FOREIGN).unwrap();
        fs::write(path.join("identity.md"), FOREIGN).unwrap();
        Self(path)
    }

    #[track_caller]
    fn is_as_it_was(&self) {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["identity.md", "memory.md"]);
        for name in names {
            assert_eq!(fs::read_to_string(self.0.join(name)).unwrap(), FOREIGN);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn report_13_no_link_is_followed_and_nothing_outside_is_touched() {
    type Swap = fn(&Home, &Outside);
    let cases: [(&str, Swap); 7] = [
        ("symlink", |home, outside| {
            fs::remove_file(memory_path(home)).unwrap();
            symlink(outside.0.join("memory.md"), memory_path(home)).unwrap();
        }),
        ("symlink", |home, outside| {
            fs::remove_file(memory_path(home)).unwrap();
            symlink(outside.0.join("absent.md"), memory_path(home)).unwrap();
        }),
        ("root-symlink", |home, outside| {
            fs::rename(home.below("context"), home.below("moved")).unwrap();
            symlink(&outside.0, home.below("context")).unwrap();
        }),
        ("root-symlink", |home, outside| {
            fs::rename(home.below("context"), home.below("moved")).unwrap();
            symlink(outside.0.join("nowhere"), home.below("context")).unwrap();
        }),
        ("root-not-directory", |home, _| {
            fs::rename(home.below("context"), home.below("moved")).unwrap();
            fs::write(home.below("context"), "a file").unwrap();
        }),
        ("root-not-directory", |home, _| {
            fs::rename(home.below("context"), home.below("moved")).unwrap();
        }),
        ("not-regular-file", |home, _| {
            fs::remove_file(memory_path(home)).unwrap();
            fs::create_dir(memory_path(home)).unwrap();
        }),
    ];
    for (number, (reason, swap)) in cases.into_iter().enumerate() {
        let (home, id) = three(CHANGE).await;
        let outside = Outside::of(&home);
        swap(&home, &outside);
        let told = fails(&home, &id, reason);
        outside.is_as_it_was();
        assert_eq!((failures(&home), receipts(&home).len()), (vec![reason.to_owned()], 0), "case {number}");
        // The same each time, and with the old state back too.
        assert_eq!(fails(&home, &id, reason), told);
        outside.is_as_it_was();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn report_13_a_folder_on_the_way_that_becomes_a_link_leads_nowhere() {
    let (home, id) = three(CHANGE).await;
    let outside = Outside::of(&home);
    let base = memory_of(&home);
    fs::create_dir(home.below("deep")).unwrap();
    fs::rename(home.below("context"), home.below("deep/context")).unwrap();
    home.set("context", "root", Some("\"deep/context\""));
    fs::rename(home.below("deep"), home.below("moved")).unwrap();
    let elsewhere = home.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(&outside.0, elsewhere.join("context")).unwrap();
    symlink(&elsewhere, home.below("deep")).unwrap();
    fails(&home, &id, "root-symlink");
    Outside(elsewhere.join("context")).is_as_it_was();
    assert_eq!(fs::read_to_string(home.below("moved/context/memory.md")).unwrap(), base);
    // A root that leads out of the home is no configuration at all.
    for root in ["../outside", "/tmp", "deep/../../outside"] {
        home.set("context", "root", Some(&format!("\"{root}\"")));
        let refused = home.json(&["proposal-project"]).exit(3);
        assert_eq!(refused.error()["code"], "configuration", "{}", refused.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_own_lines_are_never_written_over() {
    // Saved between the decision and its projection, and before the decision.
    for is_before in [true, false] {
        let (mut home, id) = three(CHANGE).await;
        let own = appended(&memory_of(&home), "- Written by hand.");
        if is_before {
            fs::write(memory_path(&home), &own).unwrap();
        }
        home.env("THOUGHT_TEST_CRASH_POINT", "decision.after");
        assert_eq!(decide(&home, &id, "accept", &[]).code, None);
        home.unset("THOUGHT_TEST_CRASH_POINT");
        fs::write(memory_path(&home), &own).unwrap();
        let done = home.json(&["proposal-project"]).exit(6);
        assert_eq!(done.object()["reason"], "stale-base");
        assert_eq!(memory_of(&home), own);
        // Proposed again on what the owner wrote, both stand.
        let again = home.object(&["proposal-repropose", &id])["proposal"].as_str().unwrap().to_owned();
        decided(&home, &again, "accept", "materialized");
        assert_eq!(memory_of(&home), appended(&own, LINE));
    }
}
