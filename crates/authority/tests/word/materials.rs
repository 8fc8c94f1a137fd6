//! Materializing: every reason, every fault of the file system, and a death at every step.

use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, mkfifoat};
use thought_authority::lock::LOCK_FILE;
use thought_authority::materialize::{CRASH_POINTS, CrashPoints, NoCrashPoints, Tried};
use thought_authority::project::{Scope, Status};
use thought_authority::reason::Reason;
use thought_contract::event::EventType;
use thought_store::row::ProposalState;

use crate::world::{Ask, MEMORY, World, edit, shown};

type Act = Box<dyn FnMut() + Send>;

/// Does something at one point, or dies there.
#[derive(Default)]
struct Points {
    dies_at: Mutex<Option<&'static str>>,
    acts: Mutex<Vec<(&'static str, Act)>>,
    is_full: Mutex<bool>,
    cannot_exchange: bool,
    seen: Mutex<Vec<&'static str>>,
}

impl Points {
    fn act(&self, at: &'static str, act: impl FnMut() + Send + 'static) {
        self.acts.lock().unwrap().push((at, Box::new(act)));
    }
}

impl CrashPoints for Points {
    fn reach(&self, name: &'static str) {
        self.seen.lock().unwrap().push(name);
        let mut due: Vec<_> = self.acts.lock().unwrap().extract_if(.., |(at, _)| *at == name).collect();
        due.iter_mut().for_each(|(_, act)| act());
        let mut dies_at = self.dies_at.lock().unwrap();
        if *dies_at == Some(name) {
            *dies_at = None;
            drop(dies_at);
            panic!("dies at {name}");
        }
    }

    fn write(&self) -> std::io::Result<()> {
        if *self.is_full.lock().unwrap() { Err(Error::from(ErrorKind::StorageFull)) } else { Ok(()) }
    }

    fn cannot_exchange(&self) -> bool {
        self.cannot_exchange
    }
}

async fn with_points(points: Arc<Points>) -> World {
    World::with_points(MEMORY.as_bytes(), points).await
}

const LINE: &str = "- Lives in Lisbon.";

fn appended() -> String {
    format!("{MEMORY}\n{LINE}\n")
}

#[tokio::test]
async fn every_final_reason_is_recorded_once_and_resolves_the_decision() {
    let long = format!("---\nid: memory\n---\n{}", "x".repeat(8 * 1024));
    type Before = fn(&World);
    let cases: [(&str, Ask, Before); 12] = [
        ("stale-base", Ask::Append(LINE.into()), |w| w.write_memory(format!("{MEMORY}more\n"))),
        ("stale-base", Ask::Replace(long), |w| w.write_memory("y".repeat(8 * 1024))),
        ("base-missing", Ask::Append(LINE.into()), |w| fs::remove_file(w.context("memory.md")).unwrap()),
        ("symlink", Ask::Append(LINE.into()), |w| {
            fs::remove_file(w.context("memory.md")).unwrap();
            symlink(w.home().join("outside/memory.md"), w.context("memory.md")).unwrap();
        }),
        ("symlink", Ask::Append(LINE.into()), |w| {
            fs::remove_file(w.context("memory.md")).unwrap();
            symlink(w.home().join("outside/absent.md"), w.context("memory.md")).unwrap();
        }),
        ("not-regular-file", Ask::Append(LINE.into()), |w| {
            fs::remove_file(w.context("memory.md")).unwrap();
            mkfifoat(rustix::fs::CWD, w.context("memory.md"), Mode::RUSR | Mode::WUSR).unwrap();
        }),
        ("not-regular-file", Ask::Append(LINE.into()), |w| {
            fs::remove_file(w.context("memory.md")).unwrap();
            fs::create_dir(w.context("memory.md")).unwrap();
        }),
        ("root-symlink", Ask::Append(LINE.into()), |w| {
            fs::rename(w.home().join("context"), w.home().join("moved")).unwrap();
            symlink(w.home().join("outside"), w.home().join("context")).unwrap();
        }),
        ("root-not-directory", Ask::Append(LINE.into()), |w| {
            fs::rename(w.home().join("context"), w.home().join("moved")).unwrap();
            fs::write(w.home().join("context"), "a file").unwrap();
        }),
        ("frontmatter-missing", Ask::Replace("# no head\n".into()), |_| {}),
        ("frontmatter-invalid", Ask::Replace("---\nid: memory\nid: memory\n---\n".into()), |_| {}),
        ("frontmatter-id-changed", Ask::Replace("---\nid: other\n---\n".into()), |_| {}),
    ];
    for (reason, ask, before) in cases {
        let world = World::new().await;
        let proposal = world.side.turn(1, &[ask]).await.only();
        world.side.accept(&proposal).await;
        before(&world);
        // Reading a pipe would wait for its writer.
        let is_pipe = reason == "not-regular-file";
        let read =
            || if is_pipe { Vec::new() } else { fs::read(world.context("memory.md")).unwrap_or_default() };
        let content = read();
        let outcome = world.side.project(&proposal).await;
        assert_eq!(shown(&outcome), format!("materialization-failed {reason}"));
        for _ in 0..3 {
            let again = world.side.project(&proposal).await;
            assert_eq!((again.status, again.tried), (outcome.status, Tried::Before), "{reason}");
        }
        assert_eq!(world.side.failures().await, [reason]);
        assert!(world.side.receipts().await.is_empty());
        assert!(world.side.projector().reconcile(Scope::All).await.unwrap().is_empty());
        let row = world.side.reader.proposal(proposal).await.unwrap().unwrap();
        assert_eq!(row.state, ProposalState::Failed);
        assert_eq!(read(), content, "{reason}");
        world.outside_is_as_it_was();
    }
}

#[tokio::test]
async fn a_result_over_the_configured_size_fails_the_same_each_time() {
    let mut world = World::new().await;
    world.side.bytes_max = MEMORY.len() as u64 + 10;
    let proposal = world.append(1, LINE).await;
    for _ in 0..3 {
        assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed too-large");
    }
    assert_eq!(world.side.failures().await, ["too-large"]);
    assert_eq!(world.side.events(EventType::ProposalDecision).await.len(), 1);
    assert_eq!(world.memory(), MEMORY);
}

#[tokio::test]
async fn a_document_that_grew_over_a_lowered_bound_can_be_made_smaller() {
    let mut world = World::new().await;
    world.side.bytes_max = 30;
    let longer = world.append(1, LINE).await;
    let shorter = "---\nid: memory\n---\nshort\n";
    let replaced = world.side.turn(2, &[Ask::Replace(shorter.to_owned())]).await.only();
    assert_eq!(world.side.carry_out(&longer).await, "materialization-failed too-large");
    assert_eq!(world.side.carry_out(&replaced).await, "materialized");
    assert_eq!(world.memory(), shorter);
}

#[tokio::test]
async fn a_base_that_is_no_text_or_has_no_head_is_no_target_in_any_turn() {
    let world = World::with(b"---\nid: memory\n---\n\xff\n").await;
    let row = world.side.turn(1, &[]).await;
    assert!(row.proposals.is_empty());
    let world = World::with(b"no head\n").await;
    assert!(world.side.turn(1, &[]).await.proposals.is_empty());
}

#[tokio::test]
async fn going_back_to_the_same_bytes_is_still_another_base() {
    let world = World::new().await;
    let proposal = world.append(1, LINE).await;
    world.write_memory(format!("{MEMORY}more\n"));
    world.side.scan().await;
    world.write_memory(MEMORY);
    world.side.scan().await;
    assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed stale-base");
    assert_eq!(world.memory(), MEMORY);
}

#[tokio::test]
async fn line_ends_of_the_base_are_kept_in_the_file_and_a_change_of_nothing_is_one() {
    for base in ["---\r\nid: memory\r\n---\r\na\r\n", "---\nid: memory\r\n---\na\r\nb\n"] {
        let world = World::with(base.as_bytes()).await;
        let proposal = world.append(1, "one\ntwo").await;
        assert_eq!(world.side.carry_out(&proposal).await, "materialized");
        assert!(world.memory().starts_with(base));
        let end = if base.starts_with("---\r\n") { "\r\none\r\ntwo\r\n" } else { "\none\ntwo\n" };
        assert_eq!(&world.memory()[base.len()..], end);
    }
    let world = World::new().await;
    let proposal = world.side.turn(1, &[Ask::Replace(MEMORY.to_owned())]).await.only();
    assert_eq!(world.side.carry_out(&proposal).await, "materialized");
    let receipt = world.side.receipts().await.remove(0);
    assert_eq!(receipt.version_id, receipt.base_version_id);
}

#[tokio::test]
async fn the_longest_text_reaches_the_file_to_its_last_line() {
    let world = World::new().await;
    let text = format!("{}\nlast line", "a".repeat(32_768 - 10));
    let proposal = world.append(1, &text).await;
    let shown = world.side.validate(&proposal).await.unwrap();
    assert_eq!(shown.text().expose().chars().count(), 32_768);
    assert_eq!(world.side.carry_out(&proposal).await, "materialized");
    assert!(world.memory().ends_with("\nlast line\n"));
}

#[tokio::test]
async fn wherever_it_dies_there_are_old_bytes_and_no_receipt_or_new_bytes_and_one() {
    for point in CRASH_POINTS.into_iter().filter(|point| *point != "back.after") {
        let points = Arc::new(Points::default());
        *points.dies_at.lock().unwrap() = Some(point);
        let world = with_points(points.clone()).await;
        let proposal = world.append(1, LINE).await;
        world.side.accept(&proposal).await;
        let (projector, its) = (world.side.projector(), proposal.clone());
        let died = tokio::spawn(async move { projector.project(&its).await }).await;
        assert!(!matches!(died, Ok(Ok(_))), "{point} was not passed");
        let receipts = world.side.receipts().await.len();
        match world.memory() {
            old if old == MEMORY => assert_eq!(receipts, 0, "{point}"),
            new => assert_eq!(new, appended(), "{point}"),
        }
        assert!(world.side.failures().await.is_empty(), "{point}");
        // Another process takes it up.
        let next = world.another(Arc::new(NoCrashPoints));
        let outcome = next.project(&proposal).await;
        assert_eq!(outcome.status, Status::Materialized, "{point}");
        assert_eq!(next.project(&proposal).await.tried, Tried::Before);
        assert_eq!(world.memory(), appended(), "{point}");
        assert_eq!(next.receipts().await.len(), 1, "{point}");
        assert!(next.failures().await.is_empty(), "{point}");
        assert!(next.reader.intents(9).await.unwrap().is_empty(), "{point}");
        // What was left behind goes with the next change.
        let more = next.turn(2, &[Ask::Append("- more".into())]).await.only();
        assert_eq!(next.carry_out(&more).await, "materialized");
        assert_eq!(world.names(), ["identity.md", "memory.md"], "{point}");
    }
}

#[tokio::test]
async fn a_person_who_saves_in_any_gap_keeps_the_save() {
    for point in ["intent.after", "temporary.after", "exchange.before"] {
        for by_rename in [false, true] {
            let points = Arc::new(Points::default());
            let world = with_points(points.clone()).await;
            let proposal = world.append(1, LINE).await;
            let (path, spare) = (world.context("memory.md"), world.context("memory.md~"));
            points.act(point, move || {
                if by_rename {
                    fs::write(&spare, "---\nid: memory\n---\nsaved\n").unwrap();
                    fs::rename(&spare, &path).unwrap();
                } else {
                    fs::write(&path, "---\nid: memory\n---\nsaved\n").unwrap();
                }
            });
            assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed stale-base", "{point}");
            assert_eq!(world.memory(), "---\nid: memory\n---\nsaved\n", "{point} {by_rename}");
            assert_eq!(world.names(), ["identity.md", "memory.md"]);
        }
    }
}

#[tokio::test]
async fn an_editor_that_held_the_old_file_open_keeps_what_it_wrote_before_the_second_look() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    let mut held = fs::OpenOptions::new().append(true).open(world.context("memory.md")).unwrap();
    points.act("exchange.after", move || std::io::Write::write_all(&mut held, b"late words\n").unwrap());
    assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed stale-base");
    assert_eq!(world.memory(), format!("{MEMORY}late words\n"));
    assert_eq!(world.names(), ["identity.md", "memory.md"]);
}

#[tokio::test]
async fn an_editor_that_removes_the_document_before_it_saves_loses_nothing() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    let path = world.context("memory.md");
    let its = path.clone();
    points.act("exchange.before", move || fs::write(&its, "saved").unwrap());
    points.act("exchange.after", move || fs::remove_file(&path).unwrap());
    assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed stale-base");
    assert_eq!((world.memory().as_str(), world.names().len()), ("saved", 2));
}

#[tokio::test]
async fn saves_before_and_behind_the_exchange_leave_the_newest() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    let path = world.context("memory.md");
    let save = |text: &'static str| {
        let (path, spare) = (path.clone(), path.with_extension("new"));
        move || {
            fs::write(&spare, text).unwrap();
            fs::rename(&spare, &path).unwrap();
        }
    };
    points.act("exchange.before", save("first"));
    points.act("exchange.after", save("second"));
    points.act("back.after", save("third"));
    assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed stale-base");
    assert_eq!(world.memory(), "third");
    assert_eq!(world.names(), ["identity.md", "memory.md"]);
    assert!(world.side.receipts().await.is_empty());
}

#[tokio::test]
async fn a_save_between_exchange_and_scan_stands_and_nothing_is_receipted() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    let path = world.context("memory.md");
    points.act("scan.before", move || fs::write(&path, "---\nid: memory\n---\nsaved\n").unwrap());
    assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed stale-base");
    assert_eq!(world.memory(), "---\nid: memory\n---\nsaved\n");
    assert_eq!(world.names(), ["identity.md", "memory.md"]);
}

#[tokio::test]
async fn a_save_that_came_out_before_a_death_is_put_back() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    world.side.accept(&proposal).await;
    let path = world.context("memory.md");
    points.act("exchange.before", move || fs::write(&path, "saved").unwrap());
    *points.dies_at.lock().unwrap() = Some("exchange.after");
    assert!(world.side.projector().project(&proposal).await.is_err());
    assert_eq!(world.memory(), appended());
    let next = world.another(Arc::new(NoCrashPoints));
    // The next start scans first, as any process does.
    next.scan().await;
    assert_eq!(shown(&next.project(&proposal).await), "materialization-failed stale-base");
    assert_eq!(world.memory(), "saved");
    assert!(next.receipts().await.is_empty());
}

#[tokio::test]
async fn a_root_swapped_behind_the_exchange_takes_the_change_back() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    let home = world.home().to_owned();
    points.act("exchange.after", move || {
        fs::rename(home.join("context"), home.join("moved")).unwrap();
        symlink(home.join("outside"), home.join("context")).unwrap();
    });
    assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed root-symlink");
    world.outside_is_as_it_was();
    assert_eq!(fs::read_to_string(world.home().join("moved/memory.md")).unwrap(), MEMORY);
}

#[tokio::test]
async fn a_full_disk_is_recorded_once_and_tried_again() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    *points.is_full.lock().unwrap() = true;
    for _ in 0..2 {
        assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed write-failed");
    }
    assert_eq!(world.side.failures().await, ["write-failed"]);
    assert_eq!(
        (world.memory().as_str(), world.names()),
        (MEMORY, vec!["identity.md".into(), "memory.md".into()])
    );
    let row = world.side.reader.proposal(proposal.clone()).await.unwrap().unwrap();
    assert_eq!(row.state, ProposalState::Decided);
    *points.is_full.lock().unwrap() = false;
    // Whoever takes up only what is untried leaves it.
    let left = world.side.projector().reconcile(Scope::Untried).await.unwrap();
    assert_eq!(left[0].outcome.as_ref().unwrap().status, Status::MaterializationFailed(Reason::WriteFailed));
    let done = world.side.projector().reconcile(Scope::All).await.unwrap();
    assert_eq!(done[0].outcome.as_ref().unwrap().status, Status::Materialized);
    assert_eq!(world.memory(), appended());
}

#[tokio::test]
async fn a_scan_that_fails_leaves_the_new_bytes_and_the_next_try_receipts_them() {
    let points = Arc::new(Points::default());
    let world = with_points(points.clone()).await;
    let proposal = world.append(1, LINE).await;
    let home = world.home().to_owned();
    points.act("scan.before", move || {
        fs::rename(home.join("context"), home.join("moved")).unwrap();
    });
    assert_eq!(world.side.carry_out(&proposal).await, "materialization-failed scan-failed");
    // The root is away: what is left in it must be looked at before the decision is spent.
    assert_eq!(shown(&world.side.project(&proposal).await), "materialization-failed write-failed");
    fs::rename(world.home().join("moved"), world.home().join("context")).unwrap();
    assert_eq!(shown(&world.side.project(&proposal).await), "materialized");
    assert_eq!(world.memory(), appended());
    assert_eq!(world.side.receipts().await.len(), 1);
    assert_eq!(world.side.failures().await, ["scan-failed", "write-failed"]);
}

#[tokio::test]
async fn where_names_cannot_be_exchanged_the_document_is_renamed_over() {
    let points = Arc::new(Points { cannot_exchange: true, ..Points::default() });
    let world = with_points(points.clone()).await;
    let first = world.append(1, LINE).await;
    assert_eq!(world.side.carry_out(&first).await, "materialized");
    assert_eq!(world.memory(), appended());
    let second = world.append(2, "- more").await;
    let path = world.context("memory.md");
    points.act("exchange.before", move || fs::write(&path, "saved").unwrap());
    assert_eq!(world.side.carry_out(&second).await, "materialization-failed stale-base");
    assert_eq!((world.memory().as_str(), world.names().len()), ("saved", 2));
}

#[tokio::test]
async fn a_lock_that_is_held_or_malformed_spends_no_decision() {
    let mut world = World::new().await;
    world.side.lock_wait = std::time::Duration::from_millis(60);
    let proposal = world.append(1, LINE).await;
    world.side.accept(&proposal).await;
    fs::write(world.context(LOCK_FILE), "{not evidence").unwrap();
    assert_eq!(shown(&world.side.project(&proposal).await), "pending lock-invalid");
    fs::write(world.context(LOCK_FILE), "").unwrap();
    let held = thought_authority::lock::acquire(
        world.side.connector.root(),
        &crate::world::own(),
        std::time::Duration::ZERO,
    )
    .unwrap();
    let projector = world.side.projector();
    let its = proposal.clone();
    let waiting = tokio::spawn(async move { projector.project(&its).await });
    assert_eq!(shown(&waiting.await.unwrap().unwrap()), "pending lock-held");
    drop(held);
    assert!(world.side.failures().await.is_empty());
    assert_eq!(shown(&world.side.project(&proposal).await), "materialized");
}

#[tokio::test]
async fn a_replacement_is_bound_like_what_it_stands_in_for() {
    let world = World::new().await;
    let proposal = world.append(1, LINE).await;
    world.side.desk().decide(&proposal, &edit(&"y".repeat(32_768))).await.unwrap();
    assert_eq!(shown(&world.side.project(&proposal).await), "materialized");
}
