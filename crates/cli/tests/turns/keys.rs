//! Keys: needed by some, in the header alone, and missing without harm.

use thought_fakes::RecordedRequest;
use thought_testkit::canary;
use thought_testkit::serve::Serve;
use thought_testkit::world::{Speaks, TOKEN, World};

use crate::{RUN_HELD, THOUGHT};

const KEY: &str = "sk-testkit-key-that-opens-nothing-0123456789";

fn carried(request: &RecordedRequest) -> bool {
    request.headers.iter().any(|(_, value)| value == KEY || *value == format!("Bearer {KEY}"))
}

async fn with_key(speaks: Speaks) {
    let world = World::speaking(THOUGHT, speaks, Some(KEY)).await;
    let serve = Serve::start_with(&world.home, &["--log-level", "trace"]);
    world.turn("hello", 1).await;
    let log = serve.stop();
    assert!(carried(&world.model.requests()[0]));
    assert!(canary::in_bytes("the log", log.as_bytes(), &[KEY, TOKEN]).is_empty());
    assert_eq!(canary::in_folder(&world.home.path, &[KEY, TOKEN]), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_travels_in_the_header_and_stands_nowhere_else() {
    with_key(Speaks::Anthropic).await;
    with_key(Speaks::OpenAi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_server_gets_no_key() {
    let world = World::speaking(THOUGHT, Speaks::OpenAi, None).await;
    let serve = world.serve();
    world.turn("hello", 1).await;
    serve.stop();
    let request = world.model.requests().remove(0);
    assert!(request.header("authorization").is_none() && request.header("x-api-key").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_holds_the_run_until_it_is_there() {
    let mut world = World::speaking(THOUGHT, Speaks::Anthropic, Some(KEY)).await;
    world.home.unset("THOUGHT_TEST_KEY");
    let serve = world.serve();
    world.say("hold this");
    let run = world.home.wait_for_runs("held", 1).remove(0);
    assert_eq!(run["reason"], "provider-unconfigured");
    assert!(run.get("snapshot").is_none() && run["attempts"] == 0, "{run}");
    world.home.wait_for_deliveries("notice:run-held", 1);
    world.say("and this");
    let status = thought_testkit::wait_for("the second update in the log", || {
        (world.home.events("source.telegram.message@1").len() == 2).then(|| world.home.object(&["status"]))
    });
    let held = status["consumers"].to_string();
    assert!(held.contains(run["id"].as_str().unwrap()) && held.contains("provider-unconfigured"), "{status}");
    serve.stop();
    assert_eq!(
        world.bot.sent().iter().filter(|sent| sent.text == RUN_HELD).count(),
        1,
        "one notice a day and chat"
    );
    assert_eq!(world.model.request_count(), 0);

    world.home.env("THOUGHT_TEST_KEY", KEY);
    let serve = world.serve();
    world.home.wait_for_deliveries("reply", 2);
    serve.stop();
    let runs = world.home.runs();
    assert!(runs.iter().all(|run| run["state"] == "completed" && run["attempts"] == 1), "{runs:?}");
    assert_eq!((runs.len(), world.model.request_count()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_is_read_and_one_that_is_open_to_others_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::speaking(THOUGHT, Speaks::Anthropic, Some(KEY)).await;
    world.home.unset("THOUGHT_TEST_KEY");
    let file = world.home.folder.path().join("key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    world.home.set("provider.main", "key_env", None);
    world.home.set("provider.main", "key_file", Some(&format!("\"{}\"", file.display())));
    let refused = world.home.json(&["serve"]).exit(3);
    assert!(!refused.stderr.contains(KEY) && refused.told().contains("chmod 600"), "{}", refused.stderr);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let serve = world.serve();
    world.turn("hello", 1).await;
    serve.stop();
    assert!(carried(&world.model.requests()[0]));
}
