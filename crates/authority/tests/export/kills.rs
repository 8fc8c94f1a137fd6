//! The process is killed at each step, for good: an output implies its manifest, and the next export names and removes
//! what is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use thought_authority::export::{
    EXPORT_POINTS, ExportError, FileError, Manifest, Request, Scope, Watcher, export,
};
use thought_authority::materialize::NoCrashPoints;
use thought_protocol::Sha256Hex;
use thought_store::NoImages;

use crate::house::{House, Unwatched};
use crate::world::Side;

const HOME: &str = "EXPORT_TEST_HOME";
const POINT: &str = "EXPORT_TEST_POINT";
const OUTPUT: &str = "EXPORT_TEST_OUTPUT";

struct KilledAt(String);

impl Watcher for KilledAt {
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
fn child(home: &Path, point: &str, output: &Path) -> bool {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::the_work_of_a_child", "--nocapture"])
        .env(HOME, home)
        .env(POINT, point)
        .env(OUTPUT, output)
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
    let output = PathBuf::from(std::env::var_os(OUTPUT).unwrap());
    let watcher = KilledAt(point.into_string().unwrap());
    let side = Side::open(&PathBuf::from(home), Arc::new(NoCrashPoints));
    let request = Request { scope: Scope::Private, output: &output, tool_version: "0.0.0" };
    export((&side.reader, &NoImages), request, &watcher).await.unwrap();
}

async fn judged() -> House {
    let house = House::new().await;
    house.world.side.turn(1, &[]).await;
    house.correct(10, 1, "better").await;
    house
}

#[tokio::test]
async fn killed_at_any_step_an_output_implies_its_manifest_and_the_rest_is_swept_by_name() {
    for point in EXPORT_POINTS {
        let house = judged().await;
        let output = house.at("a.jsonl");
        assert!(!child(house.world.home(), point, &output), "{point} was not passed");
        let left = house.names();
        let is_whole = output.exists();
        if is_whole {
            let manifest = fs::read(house.at("a.jsonl.manifest.json")).unwrap();
            let manifest: Manifest = serde_json::from_slice(&manifest).unwrap();
            assert_eq!(manifest.output.sha256, Sha256Hex::of(&fs::read(&output).unwrap()), "{point}");
            assert_eq!(left.len(), 2, "{point}: {left:?}");
            continue;
        }
        assert!(!left.is_empty(), "{point}");
        // Another export in that folder sweeps it as well as the same one again.
        for name in ["other.jsonl", "a.jsonl"] {
            let report = house.try_export(Scope::Private, name, &Unwatched).await.unwrap();
            let swept = if name == "other.jsonl" { &left[..] } else { &[] };
            let mut named = report.swept;
            named.sort();
            assert_eq!(named, swept, "{point}");
        }
        let names = ["a.jsonl", "a.jsonl.manifest.json", "other.jsonl", "other.jsonl.manifest.json"];
        assert_eq!(house.names(), names, "{point}");
        assert_eq!(fs::read(&output).unwrap(), fs::read(house.at("other.jsonl")).unwrap());
    }
}

#[tokio::test]
async fn at_the_step_between_the_two_names_the_manifest_is_swept_with_its_output() {
    let house = judged().await;
    assert!(!child(house.world.home(), "export.manifest-placed", &house.at("a.jsonl")));
    assert_eq!(house.names(), [".a.jsonl.thought-export.part", "a.jsonl.manifest.json"]);
    let report = house.try_export(Scope::Private, "a.jsonl", &Unwatched).await.unwrap();
    assert_eq!(report.swept, ["a.jsonl.manifest.json", ".a.jsonl.thought-export.part"]);
}

/// Exports into the same folder while another export is under way.
struct Meanwhile<'a>(&'a House, std::sync::Mutex<Vec<String>>);

impl Watcher for Meanwhile<'_> {
    fn reach(&self, name: &'static str) {
        if name != "export.synced" {
            return;
        }
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let same = self.0.try_export(Scope::Private, "a.jsonl", &Unwatched).await;
                    assert!(matches!(same, Err(ExportError::File(FileError::Busy))), "{same:?}");
                    self.0.try_export(Scope::Private, "b.jsonl", &Unwatched).await.unwrap().swept
                })
            });
            self.1.lock().unwrap().extend(other.join().unwrap());
        });
    }
}

#[tokio::test]
async fn an_export_that_is_under_way_is_no_leftover() {
    let house = judged().await;
    let meanwhile = Meanwhile(&house, std::sync::Mutex::new(Vec::new()));
    house.try_export(Scope::Private, "a.jsonl", &meanwhile).await.unwrap();
    assert!(meanwhile.1.lock().unwrap().is_empty());
    assert_eq!(house.names().len(), 4);
}

#[tokio::test]
async fn a_file_that_only_looks_like_a_leftover_of_somebody_else_is_left_alone() {
    let house = judged().await;
    let name = ".x.thought-export.part";
    std::os::unix::fs::symlink("nowhere", house.at(name)).unwrap();
    fs::create_dir(house.at(".y.thought-export.part")).unwrap();
    // A manifest of another output is none of a leftover's.
    house.try_export(Scope::Private, "z", &Unwatched).await.unwrap();
    fs::rename(house.at("z"), house.at("carried")).unwrap();
    fs::write(house.at(".z.thought-export.part"), "not what the manifest is of").unwrap();
    let report = house.try_export(Scope::Private, "a", &Unwatched).await.unwrap();
    assert_eq!(report.swept, [".z.thought-export.part"]);
    for kept in [name, ".y.thought-export.part", "z.manifest.json"] {
        assert!(house.at(kept).symlink_metadata().is_ok(), "{kept}");
    }
}
