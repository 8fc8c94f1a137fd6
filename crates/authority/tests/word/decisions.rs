//! Deciding: one word per proposal, and what it leads to.

use thought_authority::chain::{ChainError, Verified};
use thought_authority::decide::{DecideError, Submission};
use thought_authority::judge::Standing;
use thought_authority::materialize::Tried;
use thought_authority::project::{Scope, Status};
use thought_contract::event::EventType;
use thought_contract::payload::{self as p, Disposition};
use thought_protocol::{Sensitive, Sha256Hex, VersionId};
use thought_store::row::{Novelty, ProposalState};

use crate::world::{Ask, MEMORY, World, edit, shown, submission};

#[tokio::test]
async fn an_accepted_memory_change_becomes_a_version_with_one_receipt() {
    let world = World::new().await;
    let proposal = world.append(1, "- Lives in Lisbon.").await;
    let before = world.side.reader.counters();
    let recorded = world.side.accept(&proposal).await;
    assert_eq!((recorded.novelty, recorded.submission_id.as_str()), (Novelty::New, "a-submission"));
    let outcome = world.side.project(&proposal).await;
    let commits = world.side.reader.counters().commits - before.commits;
    assert!(commits <= 4, "{commits} commits");
    assert_eq!((outcome.status, outcome.tried), (Status::Materialized, Tried::Now));
    assert_eq!(world.memory(), format!("{MEMORY}\n- Lives in Lisbon.\n"));
    assert_eq!(world.names(), ["identity.md", "memory.md"]);
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(world.context("memory.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let receipts = world.side.receipts().await;
    assert_eq!(receipts.len(), 1);
    let version = world.side.reader.version(receipts[0].version_id.clone()).await.unwrap().unwrap();
    assert_eq!(version.content.expose(), world.memory().as_bytes());
    assert_eq!(
        (version.event, version.previous),
        (receipts[0].file_event.clone(), Some(receipts[0].base_version_id.clone()))
    );
    let row = world.side.reader.proposal(proposal.clone()).await.unwrap().unwrap();
    assert_eq!(row.state, ProposalState::Projected);
    // Again: nothing changes.
    let again = world.side.project(&proposal).await;
    assert_eq!(
        (again.status, again.tried, again.evidence),
        (Status::Materialized, Tried::Before, outcome.evidence)
    );
    assert_eq!(world.side.receipts().await.len(), 1);
    assert!(world.side.projector().reconcile(Scope::All).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_edit_takes_the_persons_exact_text_and_a_rejection_takes_nothing() {
    let world = World::new().await;
    let first = world.append(1, "- Lives in Lisbon.").await;
    let second = world.append(2, "- Lives in Porto.").await;
    world.side.desk().decide(&first, &edit("- Lives in  Lisboa.\n")).await.unwrap();
    assert_eq!(shown(&world.side.project(&first).await), "materialized");
    assert_eq!(world.memory(), format!("{MEMORY}\n- Lives in  Lisboa.\n"));
    world.side.decide(&second, Disposition::Reject).await.unwrap();
    assert_eq!(shown(&world.side.project(&second).await), "rejected");
    assert_eq!(world.side.receipts().await.len(), 1);
    assert!(world.side.failures().await.is_empty());
    let row = world.side.reader.proposal(second).await.unwrap().unwrap();
    assert_eq!(row.state, ProposalState::Projected);
}

#[tokio::test]
async fn a_correction_becomes_a_judgment_and_the_next_turn_says_it() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let proposal = world.side.turn(2, &[Ask::Correct(first.output.clone(), "four".to_owned())]).await.only();
    assert!(matches!(world.side.validate(&proposal).await.unwrap(), Verified::Correction(_)));
    let decision = world.side.accept(&proposal).await.decision;
    assert!(world.side.events(EventType::JudgmentRecorded).await.is_empty());
    let outcome = world.side.project(&proposal).await;
    assert_eq!(shown(&outcome), "projected");
    assert_eq!(world.side.project(&proposal).await.tried, Tried::Before);
    let judgments = world.side.events(EventType::JudgmentRecorded).await;
    assert_eq!(judgments.len(), 1);
    let judged: p::JudgmentRecorded = judgments[0].payload().unwrap();
    assert_eq!((judged.criterion.as_str(), judged.criterion_version), ("agent-self-correction", 1));
    assert_eq!((judged.quality_eligible, judged.external_export_eligible), (true, false));
    assert_eq!((judged.actor.as_str(), judged.feedback), ("human:alex", decision));
    assert_eq!((judged.target.output, judged.replacement.summary.as_str()), (first.output.clone(), "four"));
    // A newer one names the one it takes the place of.
    let newer = world.side.turn(3, &[Ask::Correct(first.output.clone(), "4".to_owned())]).await.only();
    world.side.accept(&newer).await;
    world.side.project(&newer).await;
    let judgments = world.side.events(EventType::JudgmentRecorded).await;
    let judged: p::JudgmentRecorded = judgments[1].payload().unwrap();
    assert_eq!(judged.supersedes, Some(judgments[0].envelope.id.clone()));
    let listed = thought_authority::judge::list(&world.side.reader, 0, 9).await.unwrap();
    let standing: Vec<_> = listed.iter().map(|listed| listed.standing).collect();
    assert_eq!(standing, [Standing::Superseded, Standing::Active]);
    // The superseded projector is still done.
    assert_eq!(world.side.project(&proposal).await.evidence, Some(judgments[0].envelope.id.clone()));
    assert_eq!(world.side.events(EventType::JudgmentRecorded).await.len(), 2);
    // A third turn freezes the corrected words, and its own proposals hold.
    let third = world.side.turn(4, &[Ask::Append("- x".to_owned())]).await.only();
    world.side.validate(&third).await.unwrap();
}

#[tokio::test]
async fn a_rejected_correction_makes_no_judgment() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let proposal = world.side.turn(2, &[Ask::Correct(first.output, "four".to_owned())]).await.only();
    world.side.decide(&proposal, Disposition::Reject).await.unwrap();
    assert_eq!(shown(&world.side.project(&proposal).await), "rejected");
    assert!(world.side.events(EventType::JudgmentRecorded).await.is_empty());
}

#[tokio::test]
async fn what_may_not_be_decided_is_refused_before_anything_is_appended() {
    let world = World::new().await;
    let turn = world.side.turn(1, &[Ask::Append("- x".to_owned()), Ask::Focus]).await;
    let (memory, focus) = (&turn.proposals[0], &turn.proposals[1]);
    let count = world.side.reader.event_count().await.unwrap();
    let desk = world.side.desk();
    let refused =
        async |proposal, submission: Submission| desk.decide(proposal, &submission).await.unwrap_err();
    let accept = || submission(Disposition::Accept);

    let focus = refused(focus, accept()).await;
    assert!(matches!(focus, DecideError::Chain(ChainError::Inert { .. })), "{focus:?}");
    let output = refused(&turn.output, accept()).await;
    assert!(matches!(output, DecideError::Chain(ChainError::Refused { .. })), "{output:?}");
    let text = Some(Sensitive::new(b"x".to_vec()));
    for disposition in [Disposition::Accept, Disposition::Reject] {
        let with_text = Submission { replacement: text.clone(), ..submission(disposition) };
        assert!(matches!(refused(memory, with_text).await, DecideError::ReplacementUnexpected));
    }
    assert!(matches!(refused(memory, submission(Disposition::Edit)).await, DecideError::ReplacementMissing));
    let long = "x".repeat(32_769);
    for bad in [&b""[..], b"\xff", b"a\0b", long.as_bytes()] {
        let edit =
            Submission { replacement: Some(Sensitive::new(bad.to_vec())), ..submission(Disposition::Edit) };
        assert!(matches!(refused(memory, edit).await, DecideError::ReplacementInvalid));
    }
    let actor = |name: Option<&str>| Submission { actor: name.map(str::to_owned), ..accept() };
    assert!(matches!(refused(memory, actor(Some("mallory"))).await, DecideError::UnknownActor));
    assert!(matches!(refused(memory, actor(None)).await, DecideError::ActorNeeded));
    let named = |name: &str| Submission { submission_id: name.to_owned(), ..accept() };
    assert!(matches!(refused(memory, named("")).await, DecideError::SubmissionId));
    assert!(matches!(refused(memory, named("a\nb")).await, DecideError::SubmissionId));
    let hash = Submission { expect_sha256: Some(Sha256Hex::of(b"another")), ..accept() };
    assert!(matches!(refused(memory, hash).await, DecideError::TextChanged));
    let base = Submission { expect_base: Some(VersionId::of("version", &[])), ..accept() };
    assert!(matches!(refused(memory, base).await, DecideError::BaseMoved));
    assert_eq!(world.side.reader.event_count().await.unwrap(), count);
}

#[tokio::test]
async fn a_moved_base_is_refused_where_it_was_expected_and_a_rejection_of_it_is_not() {
    let world = World::new().await;
    let first = world.append(1, "- x").await;
    let second = world.append(2, "- y").await;
    let base = world.side.validate(&first).await.unwrap().base().unwrap().version_id.clone();
    let exact = |disposition| Submission {
        expect_base: Some(base.clone()),
        expect_sha256: Some(Sha256Hex::of(b"- x")),
        ..submission(disposition)
    };
    let desk = world.side.desk();
    desk.decide(&first, &exact(Disposition::Accept)).await.unwrap();
    assert_eq!(shown(&world.side.project(&first).await), "materialized");
    // The same word again converges, though the base has moved by it.
    let again = desk.decide(&first, &exact(Disposition::Accept)).await.unwrap();
    assert_eq!(again.novelty, Novelty::Existing);
    let stale = Submission { expect_sha256: None, ..exact(Disposition::Accept) };
    assert!(matches!(desk.decide(&second, &stale).await, Err(DecideError::BaseMoved)));
    // An edit on disk that nobody scanned moves it too.
    let reject = Submission { expect_sha256: None, ..exact(Disposition::Reject) };
    desk.decide(&second, &reject).await.unwrap();
}

#[tokio::test]
async fn thirty_two_equal_words_converge_and_of_others_one_wins() {
    let world = World::new().await;
    let equal = world.append(1, "- x").await;
    let other = world.append(2, "- y").await;
    let mut tasks = Vec::new();
    for n in 0..32 {
        let (desk, equal) = (world.side.desk(), equal.clone());
        tasks.push(tokio::spawn(async move {
            let own = Submission { submission_id: format!("s-{n}"), ..submission(Disposition::Accept) };
            desk.decide(&equal, &own).await
        }));
    }
    let mut told = Vec::new();
    for task in tasks {
        told.push(task.await.unwrap().unwrap());
    }
    assert_eq!(told.iter().filter(|recorded| recorded.novelty == Novelty::New).count(), 1);
    assert!(told.iter().all(|recorded| recorded.submission_id == told[0].submission_id));
    assert_eq!(world.side.events(EventType::ProposalDecision).await.len(), 1);

    let mut tasks = Vec::new();
    for n in 0..32 {
        let (desk, other) = (world.side.desk(), other.clone());
        tasks.push(tokio::spawn(async move {
            let own = match n {
                0 => submission(Disposition::Accept),
                1 => submission(Disposition::Reject),
                n => edit(&format!("- {n}")),
            };
            desk.decide(&other, &own).await
        }));
    }
    let (mut won, mut lost) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => won += 1,
            Err(DecideError::Conflict) => lost += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!((won, lost), (1, 31));
    assert_eq!(world.side.events(EventType::ProposalDecision).await.len(), 2);
}

#[tokio::test]
async fn a_decision_survives_between_append_and_projection() {
    let world = World::new().await;
    let proposal = world.append(1, "- x").await;
    world.side.accept(&proposal).await;
    let again = world.another(world.side.points.clone());
    let standing = again.projector().standing(&proposal).await.unwrap();
    assert_eq!(standing.status, Status::Pending(None));
    let done = again.projector().reconcile(Scope::Untried).await.unwrap();
    assert_eq!(done.len(), 1);
    assert_eq!(shown(done[0].outcome.as_ref().unwrap()), "materialized");
    assert!(again.projector().reconcile(Scope::All).await.unwrap().is_empty());
    assert_eq!(again.receipts().await.len(), 1);
}

#[tokio::test]
async fn who_follows_takes_up_what_is_left_and_what_comes() {
    let world = World::new().await;
    let left = world.append(1, "- left").await;
    world.side.accept(&left).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let another = world.another(world.side.points.clone());
    let following = tokio::spawn(async move {
        let projector = another.projector();
        let handles = (another.reader.clone(), another.store.judgments());
        let corrections =
            thought_authority::correct::Corrections::new(handles, std::sync::Arc::new(crate::world::Still));
        let stopped = async {
            stopped.await.ok();
        };
        thought_authority::follow::follow(&another.reader, &projector, &corrections, stopped).await;
    });
    let mut news = world.side.reader.news();
    let mut until = async |count: usize| {
        while world.side.receipts().await.len() < count {
            news.changed().await.unwrap();
        }
    };
    until(1).await;
    let comes = world.append(2, "- comes").await;
    world.side.accept(&comes).await;
    until(2).await;
    stop.send(()).unwrap();
    following.await.unwrap();
    assert_eq!(world.memory(), format!("{MEMORY}\n- left\n\n- comes\n"));
    assert!(world.side.projector().left().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_root_of_this_machine_exchanges_names_or_says_that_it_cannot() {
    let world = World::new().await;
    let root = world.side.connector.root();
    let guard =
        thought_authority::lock::acquire(root, &crate::world::own(), std::time::Duration::ZERO).unwrap();
    thought_authority::materialize::can_exchange(&guard).unwrap();
    assert_eq!(world.names(), ["identity.md", "memory.md"]);
}
