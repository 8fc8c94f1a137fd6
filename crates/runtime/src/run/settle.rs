//! What a valid answer leaves: the output, its proposals and the completed event, as drafts of one settlement.
//!
//! Pure. Every authority in a proposal comes from the frozen context, never from the model: a call names words and
//! evidence, the parent binds documents, versions, receipts and roots.

use thought_contract::declaration::{AgentId, Declaration};
use thought_contract::draft::{self, Draft, DraftError};
use thought_contract::event::{EventType, PayloadError, StoredEvent};
use thought_contract::payload as p;
use thought_contract::time::Timestamp;
use thought_protocol::answer::ValidatedAnswer;
use thought_protocol::canonical::CanonicalError;
use thought_protocol::capability::PacketCapability;
use thought_protocol::id::stable_key;
use thought_protocol::proposal::{
    CorrectionArguments, FocusDeclaration, MemoryChangeArguments, MemoryOperation, ProposalCall,
    resolve_target,
};
use thought_protocol::{AttemptId, EventId, Fingerprint, RunId, Sha256Hex, SnapshotId};
use thought_store::command::BaseVersion;
use thought_store::handle::{Proposed, Settlement, SettlementError};

/// What keeps an answer from being settled. Content-dark.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A call aims at what the frozen context does not admit. Both sides refuse that earlier: a defect.
    #[error("settle a run: a call aims at what its context does not admit")]
    NotAdmitted,
    /// The declaration does not let its model propose this.
    #[error("settle a run: the declaration has no such proposal")]
    Policy,
    /// The trigger's payload does not decode.
    #[error("settle a run: read its trigger")]
    Trigger(#[from] PayloadError),
    /// A declaration of a focus has no canonical form.
    #[error("settle a run: write a focus declaration")]
    Focus(#[source] CanonicalError),
    /// A draft failed.
    #[error("settle a run: draft an event")]
    Draft(#[from] DraftError),
    /// The parts do not make a settlement.
    #[error("settle a run: put it together")]
    Parts(#[from] SettlementError),
}

/// What a settlement rests on, besides the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub(crate) declaration: &'a Declaration,
    pub(crate) fingerprint: &'a Fingerprint,
    pub(crate) trigger: &'a StoredEvent,
    pub(crate) run: &'a RunId,
    pub(crate) attempt: &'a AttemptId,
    pub(crate) snapshot: &'a SnapshotId,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) capability: &'a PacketCapability,
    pub(crate) memory_target: Option<&'a p::MemoryTarget>,
    pub(crate) correction_targets: &'a [p::CorrectionTarget],
}

/// Puts a settlement together.
pub(crate) fn settlement(
    evidence: &Evidence<'_>,
    answer: &ValidatedAnswer,
    at: Timestamp,
) -> Result<Settlement, Error> {
    let output = output(evidence, answer, at)?;
    let proposer = proposer(evidence, output.id());
    let mut proposals = Vec::with_capacity(answer.proposals.len());
    let mut references = Vec::with_capacity(answer.proposals.len());
    for call in &answer.proposals {
        if !evidence.declaration.proposals().contains(&call.kind()) {
            return Err(Error::Policy);
        }
        let draft = match call {
            ProposalCall::MemoryChange(arguments) => memory_change(evidence, &proposer, arguments, at)?,
            ProposalCall::SelfCorrection(arguments) => correction(evidence, &proposer, arguments, at)?,
            ProposalCall::FocusDeclaration(declaration) => focus(evidence, &proposer, declaration, at)?,
        };
        references.push(p::ProposalReference { kind: call.kind(), event: draft.id().clone() });
        let base = match call {
            ProposalCall::MemoryChange(_) => evidence.memory_target.map(|target| BaseVersion {
                document: target.document_id.clone(),
                version: target.version_id.clone(),
            }),
            ProposalCall::SelfCorrection(_) | ProposalCall::FocusDeclaration(_) => None,
        };
        proposals.push(Proposed { draft, base });
    }
    let usage = answer.usage;
    let completed = p::RunCompleted {
        run: evidence.run.clone(),
        attempt: evidence.attempt.clone(),
        context_snapshot: evidence.snapshot.clone(),
        output: output.id().clone(),
        proposals: references,
        usage: p::Usage { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens },
        thinking_parts_dropped: answer.thinking_parts_dropped,
    };
    let declaration = evidence.declaration.id().as_str();
    let completed = draft::run_completed(declaration, evidence.trigger, &completed, at)?;
    let tokens = (usage.input_tokens, usage.output_tokens);
    Ok(Settlement::new(evidence.run.clone(), evidence.attempt.clone(), tokens, output, proposals, completed)?)
}

fn agent_version(id: &AgentId, evidence: &Evidence<'_>) -> p::AgentVersion {
    p::AgentVersion {
        id: id.to_string(),
        version: evidence.declaration.version(),
        fingerprint: evidence.fingerprint.clone(),
    }
}

fn output(evidence: &Evidence<'_>, answer: &ValidatedAnswer, at: Timestamp) -> Result<Draft, Error> {
    let agent = agent_version(evidence.declaration.id(), evidence);
    if evidence.declaration.output_type() != EventType::DerivedAgentMessage {
        let payload = p::MessageObservation {
            summary: answer.summary.clone(),
            truncated: answer.truncated,
            contract: p::OutputContract::ConversationText,
            run: evidence.run.clone(),
            agent,
            provider: evidence.provider.to_owned(),
            model: evidence.model.to_owned(),
            context_snapshot: evidence.snapshot.clone(),
        };
        return Ok(draft::observation(evidence.trigger, &payload, at)?);
    }
    let asked: p::AgentMessage = evidence.trigger.payload()?;
    let payload = p::DerivedAgentMessage {
        summary: answer.summary.clone(),
        truncated: answer.truncated,
        contract: p::OutputContract::ConversationText,
        run: evidence.run.clone(),
        agent,
        provider: evidence.provider.to_owned(),
        model: evidence.model.to_owned(),
        context_snapshot: evidence.snapshot.clone(),
        message_id: stable_key("derived-agent-message", &[evidence.run.into()]),
        thread_id: asked.thread_id,
        sender_agent_id: asked.recipient_agent_id,
        recipient_agent_id: asked.sender_agent_id,
        in_reply_to: asked.message_id,
        input_sequence: evidence.trigger.envelope.sequence,
    };
    Ok(draft::derived_agent_message(evidence.trigger, &payload, at)?)
}

fn proposer(evidence: &Evidence<'_>, output: &EventId) -> p::Proposer {
    p::Proposer {
        run: evidence.run.clone(),
        output: output.clone(),
        trigger: evidence.trigger.envelope.id.clone(),
        agent: p::ProposerAgent {
            id: evidence.declaration.id().to_string(),
            version: evidence.declaration.version(),
        },
        fingerprint: evidence.fingerprint.clone(),
        provider: evidence.provider.to_owned(),
        model: evidence.model.to_owned(),
        context_snapshot: evidence.snapshot.clone(),
    }
}

fn memory_change(
    evidence: &Evidence<'_>,
    proposer: &p::Proposer,
    arguments: &MemoryChangeArguments,
    at: Timestamp,
) -> Result<Draft, Error> {
    let target = evidence.memory_target.ok_or(Error::NotAdmitted)?;
    let payload = p::MemoryChangeProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: proposer.clone(),
        target: target.clone(),
        operation: match arguments.operation {
            MemoryOperation::Append => p::MemoryOperation::Append,
            MemoryOperation::ReplaceDocument => p::MemoryOperation::ReplaceDocument,
        },
        proposed_text: arguments.proposed_text.clone(),
        text_length: arguments.proposed_text.chars().count() as u64,
        text_sha256: Sha256Hex::of(arguments.proposed_text.as_bytes()),
        reason: arguments.reason.clone(),
        evidence: arguments.evidence_event_ids.clone(),
        publication_eligible: p::No,
    };
    Ok(draft::memory_change_proposed(evidence.trigger, &payload, at)?)
}

fn correction(
    evidence: &Evidence<'_>,
    proposer: &p::Proposer,
    arguments: &CorrectionArguments,
    at: Timestamp,
) -> Result<Draft, Error> {
    let output = resolve_target(&arguments.target_output, evidence.capability).ok_or(Error::NotAdmitted)?;
    let target = evidence
        .correction_targets
        .iter()
        .find(|target| target.output == output)
        .ok_or(Error::NotAdmitted)?;
    let payload = p::CorrectionProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: proposer.clone(),
        target: target.clone(),
        replacement: p::ConversationText { summary: arguments.replacement.clone() },
        reason: arguments.reason.clone(),
        evidence: arguments.evidence_event_ids.clone(),
        quality_eligible: p::No,
        external_export_eligible: p::No,
        publication_eligible: p::No,
    };
    Ok(draft::correction_proposed(evidence.trigger, &payload, at)?)
}

fn focus(
    evidence: &Evidence<'_>,
    proposer: &p::Proposer,
    declaration: &FocusDeclaration,
    at: Timestamp,
) -> Result<Draft, Error> {
    let value =
        serde_json::to_value(declaration).map_err(|error| Error::Focus(CanonicalError::Serialize(error)))?;
    let payload = p::FocusProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: proposer.clone(),
        declaration: value,
        fingerprint: declaration.fingerprint().map_err(Error::Focus)?,
        authority: p::FocusAuthority {
            activation: p::No,
            data_expansion: p::No,
            external_actions: p::No,
            training: p::No,
            adapter_promotion: p::No,
        },
        resolution: p::FocusResolution {
            events: p::Unchecked::Unchecked,
            sources: p::Unchecked::Unchecked,
            capabilities: p::Unchecked::Unchecked,
            lineage: p::Unchecked::Unchecked,
        },
    };
    Ok(draft::focus_proposed(evidence.trigger, &payload, at)?)
}
