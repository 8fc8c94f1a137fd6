//! The store fails at each commit of the way from a word to its receipt: before it is durable, and behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thought_authority::materialize::NoCrashPoints;
use thought_authority::project::Scope;
use thought_contract::event::EventType;
use thought_store_sqlite::{Faults, OpenOptions, Verdict};

use crate::world::{Ask, MEMORY, Side, World, shown, submission};

/// Spoils the n-th transaction.
struct Nth {
    at: u64,
    before: Verdict,
    after: Verdict,
    seen: AtomicU64,
}

impl Faults for Nth {
    fn before_commit(&self, transaction: u64) -> Verdict {
        self.seen.fetch_max(transaction, Ordering::AcqRel);
        if transaction == self.at { self.before } else { Verdict::Proceed }
    }

    fn after_commit(&self, transaction: u64) -> Verdict {
        if transaction == self.at { self.after } else { Verdict::Proceed }
    }
}

fn faulty(world: &World, at: u64, before: Verdict, after: Verdict) -> (Side, Arc<Nth>) {
    let faults = Arc::new(Nth { at, before, after, seen: AtomicU64::new(0) });
    let options = OpenOptions { faults: Some(faults.clone()), ..OpenOptions::create() };
    (Side::open_with(world.home(), Arc::new(NoCrashPoints), options), faults)
}

#[tokio::test]
async fn a_store_that_fails_at_any_commit_ends_in_one_receipt_all_the_same() {
    let mut passed = 0;
    for at in 1..=5 {
        for (before, after) in [
            (Verdict::NoSpace, Verdict::Proceed),
            (Verdict::Fail, Verdict::Proceed),
            (Verdict::Proceed, Verdict::Fail),
        ] {
            let world = World::new().await;
            let proposal = world.append(1, "- x").await;
            let (side, faults) = faulty(&world, at, before, after);
            let accept = submission(thought_contract::payload::Disposition::Accept);
            let decided = side.desk().decide(&proposal, &accept).await;
            let projected = side.projector().project(&proposal).await;
            let is_hit = faults.seen.load(Ordering::Acquire) >= at;
            passed += u32::from(is_hit);
            let receipts = world.side.receipts().await.len();
            if world.memory() == MEMORY {
                assert_eq!(receipts, 0, "{at} {before:?} {after:?}");
            }
            if decided.is_ok() && projected.is_ok() && is_hit {
                // What was told to have failed for a passing reason is in the log.
                assert!(receipts == 1 || !world.side.failures().await.is_empty(), "{at} {before:?}");
            }
            // The disk is well again.
            world.side.accept(&proposal).await;
            world.side.projector().reconcile(Scope::All).await.unwrap();
            assert_eq!(
                shown(&world.side.project(&proposal).await),
                "materialized",
                "{at} {before:?} {after:?}"
            );
            assert_eq!(world.memory(), format!("{MEMORY}\n- x\n"));
            assert_eq!(world.side.receipts().await.len(), 1);
            assert_eq!(world.side.events(EventType::ProposalDecision).await.len(), 1);
            assert!(world.side.reader.intents(9).await.unwrap().is_empty());
            let next = world.side.turn(2, &[Ask::Append("- y".to_owned())]).await.only();
            assert_eq!(world.side.carry_out(&next).await, "materialized");
            assert_eq!(world.names(), ["identity.md", "memory.md"], "{at} {before:?} {after:?}");
        }
    }
    assert!(passed >= 12, "decision, intent, version and receipt are each a commit: {passed}");
}

#[tokio::test]
async fn a_store_that_fails_at_a_judgment_ends_in_one_all_the_same() {
    for at in 1..=2 {
        for (before, after) in [(Verdict::NoSpace, Verdict::Proceed), (Verdict::Proceed, Verdict::Fail)] {
            let world = World::new().await;
            let first = world.side.turn(1, &[]).await;
            let proposal = world.side.turn(2, &[Ask::Correct(first.output, "four".to_owned())]).await.only();
            let (side, _faults) = faulty(&world, at, before, after);
            let accept = submission(thought_contract::payload::Disposition::Accept);
            let _may_fail = side.desk().decide(&proposal, &accept).await;
            let _may_fail = side.projector().project(&proposal).await;
            world.side.accept(&proposal).await;
            assert_eq!(shown(&world.side.project(&proposal).await), "projected");
            assert_eq!(world.side.events(EventType::JudgmentRecorded).await.len(), 1);
        }
    }
}
