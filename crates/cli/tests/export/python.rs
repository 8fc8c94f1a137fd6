//! The example script on a real export, with the real library's own prompt step.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use thought_testkit::canary;

use crate::scene::{Scene, says};

/// Whether this machine's Python has what the script imports.
#[expect(clippy::disallowed_methods, reason = "the script is run as a person would run it")]
fn python() -> Option<Command> {
    let name = std::env::var_os("THOUGHT_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&name).args(["-c", "import datasets, trl.data_utils"]).output();
    has.is_ok_and(|done| done.status.success()).then(|| Command::new(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_loads_and_passes_the_prompt_step_of_the_library_it_is_for() {
    let scene = Scene::start().await;
    scene.world.model.script(vec![says("It is Monday."), says("The ferry leaves at nine.")]);
    let serve = scene.world.serve();
    scene.world.turn("What day is it?", 1).await;
    scene.correct("It is Tuesday.", 1);
    scene.world.turn("When does the ferry leave?", 2).await;
    scene.correct("It leaves at ten.", 2);
    serve.stop();
    scene.private("a.jsonl").exit(0);
    let Some(mut python) = python() else {
        tell(
            "NOT CHECKED: this machine's Python has no datasets and trl, so examples/load_preferences.py did not run",
        );
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/load_preferences.py");
    let place = tempfile::tempdir().unwrap();
    python.arg(script).arg(scene.at("a.jsonl")).env("HOME", place.path()).env("TMPDIR", place.path());
    let done = python.output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{told}");
    assert!(
        told.contains("2 examples, columns chosen, id, prompt, provenance, rejected, schemaVersion"),
        "{told}"
    );
    let row: Value = serde_json::from_slice(&done.stdout).unwrap();
    let prompt = row["prompt"].as_array().unwrap();
    assert_eq!(prompt.last().unwrap(), &json!({"role": "user", "content": "What day is it?"}));
    assert_eq!(row["chosen"], json!([{"role": "assistant", "content": "It is Tuesday."}]));
    assert_eq!(row["rejected"], json!([{"role": "assistant", "content": "It is Monday."}]));
    // The library keeps no copy of what it read.
    let kept = canary::in_folder(place.path(), &["It is Tuesday.", "When does the ferry leave?"]);
    assert!(kept.is_empty(), "{kept:?}");
}

#[expect(clippy::print_stderr, reason = "what was not checked is said aloud")]
fn tell(text: &str) {
    eprintln!("{text}");
}
