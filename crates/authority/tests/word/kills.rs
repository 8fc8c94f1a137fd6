//! The process is killed at each step, for good: a child that is this test binary itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use thought_authority::decide::DecideError;
use thought_authority::materialize::{CRASH_POINTS, CrashPoints, NoCrashPoints};

use thought_contract::payload::Disposition;

use crate::world::{MEMORY, Side, World, shown};

const HOME: &str = "WORD_TEST_HOME";
const POINT: &str = "WORD_TEST_POINT";
const PROPOSAL: &str = "WORD_TEST_PROPOSAL";

struct KilledAt(String);

impl CrashPoints for KilledAt {
    fn reach(&self, name: &'static str) {
        if name == self.0 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a process is killed, and a process must be started for that")]
fn child(home: &Path, point: &str, proposal: &str) -> bool {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::the_work_of_a_child", "--nocapture"])
        .env(HOME, home)
        .env(POINT, point)
        .env(PROPOSAL, proposal)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

#[tokio::test]
async fn the_work_of_a_child() {
    let (Some(home), Some(point)) = (std::env::var_os(HOME), std::env::var_os(POINT)) else { return };
    let proposal = std::env::var_os(PROPOSAL).unwrap().into_string().unwrap();
    let points = Arc::new(KilledAt(point.into_string().unwrap()));
    let side = Side::open(&PathBuf::from(home), points);
    side.project(&proposal.parse().unwrap()).await;
}

#[tokio::test]
async fn killed_at_any_step_there_are_old_bytes_and_no_receipt_or_new_bytes_and_one() {
    for point in CRASH_POINTS.into_iter().filter(|point| *point != "back.after") {
        let world = World::new().await;
        let proposal = world.append(1, "- x").await;
        world.side.accept(&proposal).await;
        assert!(!child(world.home(), point, proposal.as_str()), "{point} was not passed");
        let next = world.another(Arc::new(NoCrashPoints));
        let receipts = next.receipts().await.len();
        if world.memory() == MEMORY {
            assert_eq!(receipts, 0, "{point}");
        }
        // A decision that was written is never told to be something else.
        let reject = next.decide(&proposal, Disposition::Reject).await;
        assert!(matches!(reject, Err(DecideError::Conflict)), "{point}");
        // Killed again on the way up, at whatever comes first, and then not.
        child(world.home(), "scan.after", proposal.as_str());
        assert_eq!(shown(&next.project(&proposal).await), "materialized", "{point}");
        assert_eq!(world.memory(), format!("{MEMORY}\n- x\n"), "{point}");
        assert_eq!(next.receipts().await.len(), 1, "{point}");
        assert!(next.failures().await.is_empty(), "{point}");
    }
}

#[tokio::test]
async fn a_save_over_a_change_that_nobody_scanned_yet_follows_the_version_that_stood() {
    for point in ["exchange.after", "scan.before"] {
        for theirs in [format!("{MEMORY}\n- x\n- a person's\n"), format!("{MEMORY}- instead of it\n")] {
            let world = World::new().await;
            let proposal = world.append(1, "- x").await;
            world.side.accept(&proposal).await;
            assert!(!child(world.home(), point, proposal.as_str()), "{point} was not passed");
            assert_eq!(world.memory(), format!("{MEMORY}\n- x\n"));
            world.write_memory(&theirs);
            let next = world.another(Arc::new(NoCrashPoints));
            assert_eq!(shown(&next.project(&proposal).await), "materialized", "{point}");
            assert_eq!(world.memory(), theirs, "{point}");
            let receipts = next.receipts().await;
            let [receipt] = receipts.as_slice() else { panic!("{point}: {} receipts", receipts.len()) };
            let stood = next.reader.version(receipt.version_id.clone()).await.unwrap().unwrap();
            assert_eq!(stood.content.expose(), format!("{MEMORY}\n- x\n").as_bytes());
            let now = next.reader.document(receipt.document_id.clone()).await.unwrap().unwrap();
            let now = next.reader.version(now.version).await.unwrap().unwrap();
            assert_eq!(
                (now.previous, now.content.expose().as_slice()),
                (Some(stood.version), theirs.as_bytes())
            );
            assert!(next.failures().await.is_empty(), "{point}");
            assert_eq!(world.names(), ["identity.md", "memory.md"]);
        }
    }
}
