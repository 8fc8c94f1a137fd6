//! The chain of an operator's proposal: the origin, verified by itself, and the base that it is made on now.

use thought_contract::draft;
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::{self as p, MemoryOperation, MemoryTarget, Purpose};
use thought_contract::snapshot::build::MEMORY_PATH;
use thought_protocol::limits::DOCUMENT_BYTES_MAX_CEILING;
use thought_protocol::{EventId, Sensitive, Sha256Hex};
use thought_store::handle::Reader;
use thought_store::row::VersionRow;

use super::decision::verify as verify_decision;
use super::seal::{decision_id, materialized_id, payload, same, sealed};
use super::{Authorship, Link, MemoryChange, Proof, VerifiedChain, evidence, hold, refused};
use crate::filesystem::document_id;

/// The proposal that an operator's proposal goes back to.
pub(super) fn origin_of(event: &StoredEvent) -> Proof<EventId> {
    let claim: p::OperatorMemoryChangeProposed = payload(event, Link::Proposal)?;
    Ok(claim.origin)
}

/// Verifies an operator's proposal against its verified origin.
pub(super) async fn verify(
    reader: &Reader,
    origin: &VerifiedChain<MemoryChange>,
    event: StoredEvent,
) -> Proof<VerifiedChain<MemoryChange>> {
    sealed(&event, Link::Proposal)?;
    let claim: p::OperatorMemoryChangeProposed = payload(&event, Link::Proposal)?;
    let draft = draft::operator_memory_change_proposed(origin.proposal(), &claim, event.envelope.occurred_at);
    same(&event, draft, Link::Proposal)?;
    let text = &claim.proposed_text;
    let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
    let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    hold((1..=DOCUMENT_BYTES_MAX_CEILING).contains(&bytes), Link::Arguments, "out-of-bounds")?;
    hold(length == claim.text_length, Link::Arguments, "text-length")?;
    hold(Sha256Hex::of(text.as_bytes()) == claim.text_sha256, Link::Arguments, "text-hash")?;
    base(reader, &claim.target).await?;
    match claim.purpose {
        Purpose::Repropose => {
            let subject = origin.subject();
            let as_before = claim.operation == subject.operation && *text == *subject.text.expose();
            hold(as_before, Link::Origin, "not-the-same-change")?;
            hold(claim.target.version_id != subject.target.version_id, Link::Origin, "same-base")?;
        }
        Purpose::Revert => {
            let before = before_the_change(reader, origin).await?;
            let as_before = claim.operation == MemoryOperation::ReplaceDocument
                && before.content.expose() == text.as_bytes();
            hold(as_before, Link::Origin, "not-the-version-before")?;
        }
    }
    let subject = MemoryChange {
        operation: claim.operation,
        text: Sensitive::new(claim.proposed_text),
        text_sha256: claim.text_sha256,
        target: claim.target,
        authorship: Authorship::Operator { origin: claim.origin, purpose: claim.purpose },
    };
    Ok(VerifiedChain { proposal: event, subject })
}

/// The base is a scanned version of the one document, with the event that tells of it.
async fn base(reader: &Reader, target: &MemoryTarget) -> Proof<()> {
    let link = Link::MemoryTarget;
    hold(target.source == SourceName::context() && target.path == MEMORY_PATH, link, "document")?;
    hold(target.document_id == document_id(MEMORY_PATH), link, "document")?;
    let row = reader.version(target.version_id.clone()).await?.ok_or(refused(link, "missing"))?;
    let named = row.document == target.document_id
        && row.path == target.path
        && row.source == target.source
        && row.sha256 == target.sha256
        && row.content_type == target.content_type;
    hold(named, link, "version")?;
    version(reader, &row, link).await
}

/// A stored version is what its event tells, and its bytes are what its hash says.
pub(super) async fn version(reader: &Reader, row: &VersionRow, link: Link) -> Proof<()> {
    hold(Sha256Hex::of(row.content.expose()) == row.sha256, link, "version-hash")?;
    let event = evidence(reader, &row.event, link).await?;
    let told: p::FileVersion = payload(&event, link)?;
    same(&event, draft::file_version(&told, event.envelope.occurred_at), link)?;
    let as_told = told.document_id == row.document
        && told.version_id == row.version
        && told.previous_version_id == row.previous
        && told.path == row.path
        && told.sha256 == row.sha256
        && told.byte_count == u64::try_from(row.content.expose().len()).unwrap_or(u64::MAX)
        && told.content_type == row.content_type;
    hold(as_told, link, "version-event")
}

/// The version before a change that was written, by its receipt.
pub(crate) async fn before_the_change(
    reader: &Reader,
    origin: &VerifiedChain<MemoryChange>,
) -> Proof<VersionRow> {
    let link = Link::Origin;
    let decision = reader.event(decision_id(origin.id())).await?.ok_or(refused(link, "not-materialized"))?;
    sealed(&decision, link)?;
    verify_decision(origin.proposal(), EventType::ProposalDecision, &decision)?;
    let receipt = reader.event(materialized_id(&decision.envelope.id)).await?;
    let receipt = receipt.ok_or(refused(link, "not-materialized"))?;
    sealed(&receipt, link)?;
    let told: p::MemoryMaterialized = payload(&receipt, link)?;
    same(&receipt, draft::memory_materialized(&decision, &told, receipt.envelope.occurred_at), link)?;
    let of_it = told.proposal == *origin.id()
        && told.decision == decision.envelope.id
        && told.base_version_id == origin.subject().target.version_id;
    hold(of_it, link, "receipt")?;
    let row = reader.version(told.base_version_id).await?.ok_or(refused(link, "version-missing"))?;
    version(reader, &row, link).await?;
    Ok(row)
}
