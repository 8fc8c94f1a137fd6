//! Proposing again, and going back.

use thought_authority::chain::{Authorship, ChainError, Link, Verified};
use thought_authority::operator::ProposeError;
use thought_contract::payload::{Disposition, Purpose};
use thought_store::row::{Novelty, ProposalState};

use crate::world::{Ask, MEMORY, World, shown};

#[tokio::test]
async fn of_five_suggestions_on_one_base_one_is_taken_and_each_other_is_proposed_again() {
    let world = World::new().await;
    let mut proposals = Vec::new();
    for n in 1..=5 {
        proposals.push(world.append(n, &format!("- fact {n}")).await);
    }
    assert_eq!(world.side.carry_out(&proposals[0]).await, "materialized");
    let mut expected = format!("{MEMORY}\n- fact 1\n");
    for (n, stale) in proposals.iter().enumerate().skip(1) {
        assert_eq!(world.side.carry_out(stale).await, "materialization-failed stale-base");
        let again = world.side.operator_desk().repropose(stale, None).await.unwrap();
        assert_eq!((again.novelty, again.purpose), (Novelty::New, Purpose::Repropose));
        // Asked twice, it is the same proposal.
        let twice = world.side.operator_desk().repropose(stale, None).await.unwrap();
        assert_eq!((twice.proposal.clone(), twice.novelty), (again.proposal.clone(), Novelty::Existing));
        let row = world.side.reader.proposal(again.proposal.clone()).await.unwrap().unwrap();
        assert_eq!((row.state, row.run), (ProposalState::Undecided, None));
        assert_eq!(world.side.carry_out(&again.proposal).await, "materialized");
        expected.push_str(&format!("\n- fact {}\n", n + 1));
        assert_eq!(world.memory(), expected);
    }
}

#[tokio::test]
async fn a_change_is_reverted_on_whatever_stands_now_and_the_revert_too() {
    let world = World::new().await;
    let first = world.append(1, "- x").await;
    let desk = world.side.operator_desk();
    let early = desk.revert(&first, None).await.unwrap_err();
    assert!(
        matches!(
            early,
            ProposeError::Chain(ChainError::Refused { link: Link::Origin, reason: "not-materialized" })
        ),
        "{early:?}"
    );
    assert!(matches!(desk.repropose(&first, None).await, Err(ProposeError::Current)));
    assert_eq!(world.side.carry_out(&first).await, "materialized");
    let with_x = world.memory();
    world.write_memory(format!("{with_x}\n- a person's own line\n"));
    let revert = desk.revert(&first, None).await.unwrap().proposal;
    let Verified::Memory(chain) = world.side.validate(&revert).await.unwrap() else {
        panic!("a memory change")
    };
    let back_to = Authorship::Operator { origin: first.clone(), purpose: Purpose::Revert };
    assert_eq!(chain.subject().authorship, back_to);
    assert_eq!(world.side.carry_out(&revert).await, "materialized");
    assert_eq!(world.memory(), MEMORY);
    // And back again: the version before the revert held the person's line.
    let forth = desk.revert(&revert, None).await.unwrap().proposal;
    assert_eq!(world.side.carry_out(&forth).await, "materialized");
    assert_eq!(world.memory(), format!("{with_x}\n- a person's own line\n"));
}

#[tokio::test]
async fn only_memory_changes_are_proposed_again_and_only_by_known_people() {
    let world = World::new().await;
    let first = world.side.turn(1, &[]).await;
    let correction = Ask::Correct(first.output.clone(), "x".to_owned());
    let second = world.side.turn(2, &[correction, Ask::Append("- x".to_owned()), Ask::Focus]).await;
    let desk = world.side.operator_desk();
    assert!(matches!(desk.repropose(&second.proposals[2], None).await, Err(ProposeError::Kind)));
    assert!(matches!(desk.revert(&second.proposals[0], None).await, Err(ProposeError::Kind)));
    world.write_memory(format!("{MEMORY}more\n"));
    let unknown = desk.repropose(&second.proposals[1], Some("mallory")).await;
    assert!(matches!(unknown, Err(ProposeError::Actor(_))));
    std::fs::remove_file(world.context("memory.md")).unwrap();
    assert!(matches!(desk.repropose(&second.proposals[1], None).await, Err(ProposeError::NoBase)));
}

#[tokio::test]
async fn an_acceptance_never_lands_on_a_newer_proposal() {
    let world = World::new().await;
    let old = world.append(1, "- old").await;
    let new = world.append(2, "- new").await;
    world.side.accept(&old).await;
    assert_eq!(shown(&world.side.project(&old).await), "materialized");
    let row = world.side.reader.proposal(new.clone()).await.unwrap().unwrap();
    assert_eq!(row.state, ProposalState::Undecided);
    assert!(world.side.projector().project(&new).await.is_err());
    assert_eq!(world.memory(), format!("{MEMORY}\n- old\n"));
}

#[tokio::test]
async fn a_lineage_is_as_long_as_can_be_verified_and_no_longer() {
    let world = World::new().await;
    let desk = world.side.operator_desk();
    let mut newest = world.append(1, "- x").await;
    for edit in 1..64 {
        world.write_memory(format!("{MEMORY}edit {edit}\n"));
        newest = desk.repropose(&newest, None).await.unwrap().proposal;
    }
    world.side.validate(&newest).await.unwrap();
    world.write_memory(format!("{MEMORY}one more\n"));
    assert!(matches!(desk.repropose(&newest, None).await, Err(ProposeError::TooDeep)));
    // What is there can be decided like any other.
    world.side.decide(&newest, Disposition::Reject).await.unwrap();
}
