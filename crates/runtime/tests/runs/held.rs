//! Runs that wait for a cause to go away, and go on when it is gone.

use std::sync::atomic::Ordering;

use thought_contract::draft;
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload::{DeclarationActivated, NoticeRequested};
use thought_contract::run::{HeldReason, RunState};
use thought_protocol::Sensitive;
use thought_store::command::NewDeclaration;

use crate::ports::{NOON_MS, binding};
use crate::support::{CHAT, Home, TELEGRAM, package, worker_sha256};

const HALF_DAY_MS: i64 = 43_200_000;

#[tokio::test]
async fn without_a_provider_a_run_is_held_and_goes_on_once_there_is_one() {
    let home = Home::new().await;
    *home.model.binding.lock().unwrap() = Err(HeldReason::ProviderUnconfigured);
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    let run = home.until(&trigger, RunState::Held).await;
    assert_eq!(run.reason.as_deref(), Some("provider-unconfigured"));
    assert!(run.snapshot.is_none() && run.attempts == 0);
    assert_eq!(home.standing(TELEGRAM).await, (1, 0));
    *home.model.binding.lock().unwrap() = Ok(binding("model-1"));
    home.completes_in_time(&trigger).await;
    assert_eq!(home.standing(TELEGRAM).await, (1, 1));
    at_work.stop().await;
    home.check_whole(&[trigger]).await;
}

#[tokio::test]
async fn without_a_jail_nothing_is_recorded_and_nothing_asked() {
    let home = Home::new().await;
    *home.jail.unavailable.lock().unwrap() = true;
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    let run = home.until(&trigger, RunState::Held).await;
    assert_eq!(run.reason.as_deref(), Some("sandbox-unavailable"));
    assert_eq!((home.attempts(&run.id).await.len(), home.model.request_count()), (0, 0));
    *home.jail.unavailable.lock().unwrap() = false;
    home.completes_in_time(&trigger).await;
    at_work.stop().await;
}

#[tokio::test]
async fn a_missing_identity_holds_and_its_coming_releases() {
    let home = Home::bare().await;
    home.install(&package(TELEGRAM, |text| text)).await.unwrap();
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    let run = home.until(&trigger, RunState::Held).await;
    assert_eq!(run.reason.as_deref(), Some("document-missing"));
    // The scan's commit is news: no time has to pass.
    home.document("identity.md", "identity", "I am the Stream.").await;
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
}

#[tokio::test]
async fn without_a_context_root_a_run_is_held_and_told_and_goes_on_once_it_is_back() {
    for code in ["root-not-directory", "root-symlink", "root-unreadable"] {
        let home = Home::new().await;
        *home.documents.fails.lock().unwrap() = Some(code);
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        let run = home.until(&trigger, RunState::Held).await;
        assert_eq!(run.reason.as_deref(), Some("document-missing"), "{code}");
        assert!(run.snapshot.is_none() && run.attempts == 0, "{code}");
        // Looked at again while it stays away: held as before, and told once.
        let looks = home.documents.refreshes.load(Ordering::SeqCst);
        home.wait_for("more looks", async || {
            home.time.advance_ms(30_000);
            home.documents.refreshes.load(Ordering::SeqCst) > looks + 2
        })
        .await;
        home.until(&trigger, RunState::Held).await;
        assert_eq!(home.events(EventType::NoticeRequested).await.len(), 1, "{code}");
        assert_eq!(home.model.request_count(), 0, "{code}");
        assert!(home.time.backoffs().is_empty(), "{code}: it waits, and is not taken again for ever");
        *home.documents.fails.lock().unwrap() = None;
        home.completes_in_time(&trigger).await;
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
    }
}

#[tokio::test]
async fn news_releases_a_run_whose_context_root_is_back() {
    let home = Home::new().await;
    *home.documents.fails.lock().unwrap() = Some("root-symlink");
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.until(&trigger, RunState::Held).await;
    *home.documents.fails.lock().unwrap() = None;
    home.document("memory.md", "memory", "Coffee, not tea.").await;
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
}

#[tokio::test]
async fn documents_that_cannot_be_seen_for_now_are_looked_at_again_and_hold_nothing() {
    for code in ["lock-invalid", "root-moved", "unwalkable", "store"] {
        let home = Home::new().await;
        *home.documents.fails.lock().unwrap() = Some(code);
        let at_work = home.start().await;
        let trigger = home.message(1, "Hello").await;
        home.wait_for("another try", async || home.documents.refreshes.load(Ordering::SeqCst) > 2).await;
        assert!(home.runs_on(&trigger).await.iter().all(|run| run.state == RunState::Admitted), "{code}");
        assert!(home.events(EventType::NoticeRequested).await.is_empty(), "{code}");
        *home.documents.fails.lock().unwrap() = None;
        home.completes_in_time(&trigger).await;
        at_work.stop().await;
        home.check_whole(&[trigger]).await;
    }
}

#[tokio::test]
async fn a_spent_day_holds_until_the_next_one() {
    let home = Home::with(|text| text.replace("maxRequestsPerDay: 500", "maxRequestsPerDay: 1")).await;
    let at_work = home.start().await;
    let first = home.message(1, "Hello").await;
    home.until(&first, RunState::Completed).await;
    let second = home.message(2, "More?").await;
    let run = home.until(&second, RunState::Held).await;
    assert_eq!(run.reason.as_deref(), Some("daily-budget"));
    for _ in 0..3 {
        home.time.advance_ms(30_000);
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    assert_eq!(home.model.request_count(), 1);
    home.time.advance_ms(HALF_DAY_MS);
    assert!(home.now().ms() > NOON_MS + HALF_DAY_MS);
    home.completes_in_time(&second).await;
    at_work.stop().await;
    home.check_whole(&[first, second]).await;
}

#[tokio::test]
async fn a_held_run_is_told_once_a_chat_and_day() {
    let home = Home::new().await;
    *home.jail.unavailable.lock().unwrap() = true;
    let at_work = home.start().await;
    let first = home.message_in(CHAT, 1, "Hello").await;
    let other = home.message_in(77, 2, "Hello").await;
    home.until(&first, RunState::Held).await;
    home.until(&other, RunState::Held).await;
    for _ in 0..3 {
        home.time.advance_ms(30_000);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    home.wait_for("both notices", async || home.events(EventType::NoticeRequested).await.len() == 2).await;
    let notices = home.events(EventType::NoticeRequested).await;
    let mut chats: Vec<i64> =
        notices.iter().map(|notice| notice.payload::<NoticeRequested>().unwrap().chat_id).collect();
    chats.sort_unstable();
    assert_eq!(chats, [77, CHAT]);
    assert!(notices.iter().all(|notice| notice.envelope.source.as_str() == "notices:runtime"));
    // Another process of the same day finds them asked for.
    at_work.stop().await;
    let at_work = home.start().await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(home.events(EventType::NoticeRequested).await.len(), 2);
    home.time.advance_ms(HALF_DAY_MS);
    home.wait_for("the next day's", async || {
        home.time.advance_ms(30_000);
        home.events(EventType::NoticeRequested).await.len() == 4
    })
    .await;
    at_work.stop().await;
}

#[tokio::test]
async fn behind_a_held_run_its_conversation_waits_and_another_is_held_itself() {
    let home = Home::new().await;
    *home.model.binding.lock().unwrap() = Err(HeldReason::ProviderUnconfigured);
    let at_work = home.start().await;
    let first = home.message_in(CHAT, 1, "One").await;
    let second = home.message_in(CHAT, 2, "Two").await;
    let other = home.message_in(77, 3, "Hello").await;
    home.until(&first, RunState::Held).await;
    home.until(&other, RunState::Held).await;
    home.until(&second, RunState::Admitted).await;
    *home.model.binding.lock().unwrap() = Ok(binding("model-1"));
    for trigger in [&first, &second, &other] {
        home.completes_in_time(trigger).await;
    }
    at_work.stop().await;
    home.check_whole(&[first, second, other]).await;
}

#[tokio::test]
async fn a_held_run_survives_a_restart() {
    let home = Home::new().await;
    *home.jail.unavailable.lock().unwrap() = true;
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    home.until(&trigger, RunState::Held).await;
    at_work.stop().await;
    *home.jail.unavailable.lock().unwrap() = false;
    let at_work = home.start().await;
    home.until(&trigger, RunState::Completed).await;
    at_work.stop().await;
    home.check_whole(&[trigger]).await;
}

#[tokio::test]
async fn another_proposal_manifest_than_the_activated_one_holds_until_a_version_with_this_one() {
    let home = Home::bare().await;
    home.document("identity.md", "identity", "I am the Stream.").await;
    let package = package(TELEGRAM, |text| text);
    let declaration = package.declaration();
    let row = NewDeclaration {
        id: TELEGRAM.to_owned(),
        version: 1,
        expected_active: None,
        fingerprint: package.fingerprint().clone(),
        declaration: Sensitive::new(declaration.canonical_bytes().to_vec()),
        prompt: Sensitive::new(b"Be kind.".to_vec()),
        manifest: Sensitive::new(b"{}".to_vec()),
        sources: vec![(SourceName::new("telegram:stream"), 0)],
    };
    let payload = DeclarationActivated {
        declaration: TELEGRAM.to_owned(),
        version: 1,
        fingerprint: package.fingerprint().clone(),
        sources: vec![],
        worker_sha256: worker_sha256(),
    };
    let event = draft::declaration_activated(&payload, home.now()).unwrap();
    home.store.activator().install(event, row).await.unwrap();
    let at_work = home.start().await;
    let trigger = home.message(1, "Hello").await;
    let run = home.until(&trigger, RunState::Held).await;
    assert_eq!(run.reason.as_deref(), Some("manifest-changed"));
    assert_eq!(home.jail.checkouts.load(Ordering::SeqCst), 0);
    at_work.stop().await;
    home.install(&crate::support::package(TELEGRAM, |text| text.replace("version: 1", "version: 2")))
        .await
        .unwrap();
    let at_work = home.start().await;
    let run = home.until(&trigger, RunState::Completed).await;
    assert_eq!(run.version, 2);
    at_work.stop().await;
}
