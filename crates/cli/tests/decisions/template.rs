//! Homes with real suggestions in them, made once a build by real turns, and copied for each test.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use tempfile::TempDir;
use thought_fakes::Reply;
use thought_testkit::home::Home;
use thought_testkit::run::Binary;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::world::{calls, change, correction, focus, memory, says};

/// What the line says that [`Template::Three`] suggests.
pub(crate) const LINE: &str = "- Lives in Lisbon.";
/// What its answer was, and what it should have been.
pub(crate) const ANSWER: &str = "It is Monday.";
pub(crate) const CORRECTED: &str = "It is Tuesday.";

/// What [`Template::Replace`] suggests.
pub(crate) const REPLACED: &str = "---\nid: memory\n---\n- Only this.\n";

/// Which home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Template {
    /// An answer, and a turn behind it with a memory change, a correction of that answer, and a focus proposal.
    Three,
    /// Five memory changes on one base, a turn each: `- fact 1`, and so on.
    Five,
    /// A proposal to replace the document, whose text a test puts another in the place of.
    Replace,
}

impl Template {
    fn name(self) -> &'static str {
        match self {
            Self::Three => "three",
            Self::Five => "five",
            Self::Replace => "replace",
        }
    }

    fn script(self) -> Vec<Reply> {
        match self {
            Self::Three => {
                vec![says(ANSWER), calls(vec![memory(LINE), correction(CORRECTED), focus()])]
            }
            Self::Five => (1..=5).map(|n| calls(vec![memory(&format!("- fact {n}"))])).collect(),
            Self::Replace => vec![calls(vec![change("replace-document", REPLACED)])],
        }
    }
}

/// A home in which the model has made these suggestions, and nobody said a word yet.
pub(crate) async fn home(template: Template) -> Home {
    let made = made(template).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("home");
    copy(&made, &path);
    Home { path, binary: Binary::new(THOUGHT), folder }
}

/// The template, made by whichever test asks first.
async fn made(template: Template) -> PathBuf {
    let binary = fs::metadata(THOUGHT).unwrap();
    let build = format!("{}-{}-{}", binary.ino(), binary.mtime(), binary.mtime_nsec());
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("decisions");
    fs::create_dir_all(&all).unwrap();
    let lock = fs::File::create(all.join(format!("{}.lock", template.name()))).unwrap();
    let path = all.join(format!("{}-{build}", template.name()));
    let lock = tokio::task::spawn_blocking(move || {
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        lock
    });
    let lock = lock.await.unwrap();
    if !path.exists() {
        sweep(&all, template.name());
        make(template, &path).await;
    }
    drop(lock);
    path
}

/// Templates of earlier builds.
fn sweep(all: &Path, name: &str) {
    for entry in fs::read_dir(all).unwrap().map(Result::unwrap) {
        let is_old = entry.file_name().to_string_lossy().starts_with(&format!("{name}-"));
        if is_old {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

async fn make(template: Template, path: &Path) {
    let folder = TempDir::new_in(path.parent().unwrap()).unwrap();
    let home = Home::init_at(THOUGHT, tempfile::tempdir().unwrap(), folder.path().join("home"), "anthropic");
    let world = World::around(home, thought_testkit::world::Speaks::Anthropic, None).await;
    let script = template.script();
    let count = script.len();
    world.model.script(script);
    let serve = world.serve();
    for number in 1..=count {
        world.turn("Go on.", number).await;
    }
    serve.stop();
    // The names of the operators are the tests' own.
    world.home.set("operator", "names", Some("[\"alex\"]"));
    fs::rename(&world.home.path, path).unwrap();
}

/// Copies a folder with its modes; what is no file or folder (a socket) is left.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A value of the list, by its place.
pub(crate) fn row(home: &Home, kind: &str, place: usize) -> Value {
    home.lines(&["proposal-list", "--kind", kind])[place].clone()
}
