//! Installing declarations: once, and only upwards.

use thought_contract::event::EventType;
use thought_contract::payload::DeclarationActivated;
use thought_contract::run::RunState;
use thought_runtime::consumer;
use thought_runtime::declarations::{Error, Installed, Standing, check, load_active, standing};

use crate::support::{AGENT, Home, TELEGRAM, package, worker_sha256};

fn version_2(text: String) -> String {
    text.replace("version: 1", "version: 2")
}

#[tokio::test]
async fn an_install_is_an_activation_that_the_log_tells_of() {
    let home = Home::bare().await;
    home.message(1, "Before anything").await;
    let telegram = package(TELEGRAM, |text| text);
    assert_eq!(standing(&home.reader(), &telegram).await.unwrap(), Standing::NotInstalled);
    let Installed::Now { event, replaced: None } = home.install(&telegram).await.unwrap() else {
        panic!("it was not installed");
    };
    let stored = home.reader().event(event).await.unwrap().unwrap();
    assert_eq!(stored.envelope.source.as_str(), "system:activations");
    let told: DeclarationActivated = stored.payload().unwrap();
    assert_eq!((told.declaration.as_str(), told.version), (TELEGRAM, 1));
    assert_eq!((&told.fingerprint, &told.worker_sha256), (telegram.fingerprint(), &worker_sha256()));
    assert_eq!((told.sources[0].source.as_str(), told.sources[0].head), ("telegram:stream", 1));
    assert_eq!(home.standing(TELEGRAM).await, (1, 1));
    assert_eq!(home.install(&telegram).await.unwrap(), Installed::Already);
    assert_eq!(home.events(EventType::DeclarationActivated).await.len(), 1);
    assert_eq!(standing(&home.reader(), &telegram).await.unwrap(), Standing::Active);
    let active = load_active(&home.reader(), TELEGRAM).await.unwrap();
    assert_eq!(active.stored.fingerprint, *telegram.fingerprint());
    assert_eq!(&active.declaration, telegram.declaration());
}

#[tokio::test]
async fn replay_now_passes_what_was_before_and_replay_all_does_not() {
    for (replay, answered) in [("replay: now", 1), ("replay: all", 2)] {
        let home = Home::bare().await;
        home.document("identity.md", "identity", "I am the Stream.").await;
        home.message(1, "Before").await;
        home.install(&package(TELEGRAM, |text| text.replace("replay: now", replay))).await.unwrap();
        let at_work = home.start().await;
        let trigger = home.message(2, "After").await;
        home.until(&trigger, RunState::Completed).await;
        assert_eq!(home.runs().await.len(), answered, "{replay}");
        at_work.stop().await;
    }
}

#[tokio::test]
async fn another_content_under_an_installed_version_is_refused() {
    let home = Home::new().await;
    let other = package(TELEGRAM, |text| text.replace("concurrency: 4", "concurrency: 5"));
    assert!(matches!(home.install(&other).await, Err(Error::FingerprintChanged { version: 1, .. })));
    assert_eq!(standing(&home.reader(), &other).await.unwrap(), Standing::Changed { active: 1 });
}

#[tokio::test]
async fn versions_only_rise() {
    let home = Home::new().await;
    let second = package(TELEGRAM, version_2);
    assert_eq!(standing(&home.reader(), &second).await.unwrap(), Standing::Newer { active: 1 });
    assert!(matches!(home.install(&second).await.unwrap(), Installed::Now { replaced: Some(1), .. }));
    let first = package(TELEGRAM, |text| text);
    assert!(matches!(home.install(&first).await, Err(Error::VersionNotHigher { active: 2, .. })));
    assert_eq!(standing(&home.reader(), &first).await.unwrap(), Standing::Older { active: 2 });
}

#[tokio::test]
async fn a_higher_version_goes_on_where_the_one_before_stood() {
    let home = Home::new().await;
    let at_work = home.start().await;
    let first = home.message(1, "Hello").await;
    home.until(&first, RunState::Completed).await;
    *home.jail.unavailable.lock().unwrap() = true;
    let held = home.message(2, "Wait").await;
    home.until(&held, RunState::Held).await;
    at_work.stop().await;
    let unseen = home.message(3, "Nobody is there").await;
    home.install(&package(TELEGRAM, version_2)).await.unwrap();
    *home.jail.unavailable.lock().unwrap() = false;
    let at_work = home.start().await;
    for trigger in [&held, &unseen] {
        let run = home.until(trigger, RunState::Completed).await;
        assert_eq!(run.version, 2);
    }
    let runs = home.runs_on(&held).await;
    assert_eq!(runs.len(), 2);
    assert_eq!(home.ended(&runs[0]).await, (EventType::RunBlocked, "superseded".to_owned()));
    assert_eq!(home.runs_on(&first).await.len(), 1);
    assert_eq!(home.standing(TELEGRAM).await, (3, 3));
    at_work.stop().await;
}

#[tokio::test]
async fn what_is_not_installed_is_not_consumed() {
    let home = Home::new().await;
    let refused = home.consumer(AGENT).await.err().unwrap();
    assert!(matches!(refused, consumer::Error::Declaration(Error::NotInstalled { .. })));
}

#[test]
fn a_bad_file_or_prompt_is_refused_by_name() {
    let error = check("id: x-y\nversoin: 1\n").unwrap_err();
    assert!(matches!(error, Error::Declaration(_)));
    let text = thought_contract::shipped::SHIPPED[0].text;
    for prompt in [Vec::new(), b"  \n".to_vec(), vec![0xff], b"a\0b".to_vec(), vec![b'x'; 65_537]] {
        let refused = check(text).unwrap().with_prompt(prompt).unwrap_err();
        assert!(matches!(refused, Error::Prompt { .. }), "{refused}");
    }
}
