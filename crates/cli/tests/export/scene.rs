//! A world in which answers are corrected, and a folder beside the home that an export may lie in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::run::{Done, argument};
use thought_testkit::world::World;

use crate::THOUGHT;

pub(crate) const PRIVATE: &str = "private-training-export";
pub(crate) const ACKNOWLEDGE: &str = "--acknowledge-sensitive-private-training";

pub(crate) fn says(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

pub(crate) fn memory(text: &str) -> (String, Value) {
    let arguments = json!({
        "operation": "append", "proposed_text": text, "reason": "They asked for it.", "evidence_event_ids": [],
    });
    ("request_memory_change".to_owned(), arguments)
}

pub(crate) fn correction(replacement: &str) -> (String, Value) {
    let arguments = json!({
        "target_output": "latest", "replacement": replacement, "reason": "I was wrong.", "evidence_event_ids": [],
    });
    ("submit_correction".to_owned(), arguments)
}

pub(crate) fn focus(objective: &str) -> (String, Value) {
    let declaration = json!({
        "id": "ferry-news", "version": 1, "lineage": {"kind": "new"},
        "scope": {"summary": "News on the ferries.", "includes": [], "excludes": []}, "objective": objective,
        "subscriptions": [{"eventType": "stream.thought.source.telegram.message@1", "source": "telegram:stream"}],
        "budgets": {"maxEventsPerDay": 10, "maxInferenceRequestsPerDay": 1, "maxContextCharacters": 1000},
        "requestedPermissions": ["read-events"], "retirement": {"kind": "manual"},
    });
    ("propose_focus".to_owned(), declaration)
}

pub(crate) fn calls(text: Option<&str>, calls: Vec<(String, Value)>) -> Reply {
    Reply::Calls { text: text.map(str::to_owned), calls }
}

pub(crate) struct Scene {
    pub(crate) world: World,
    folder: PathBuf,
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let world = World::start(THOUGHT).await;
        let folder = world.home.folder.path().canonicalize().unwrap().join("exports");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        Self { world, folder }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Names in the folder of exports.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn private(&self, name: &str) -> Done {
        self.world.home.json(&[PRIVATE, "--output", argument(&self.at(name)), ACKNOWLEDGE])
    }

    pub(crate) fn external(&self, name: &str) -> Done {
        self.world.home.json(&["training-export", "--output", argument(&self.at(name))])
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        self.text(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The person writes `/correct`; `count` is how many judgments there are then.
    pub(crate) fn correct(&self, words: &str, count: usize) -> Value {
        self.world.say(&format!("/correct {words}"));
        self.world.home.wait_for_events("judgment.recorded@2", count).pop().unwrap()
    }
}
