//! The proof of an assistant's side: each step of it is one function, and what it lacks is one reason.

use thought_protocol::{EventId, SnapshotId};

use super::content::{effective_words, proposal_calls, proposal_kind};
use super::evidence::{Reply, RunEvidence};
use super::{AdmittedReply, Conversation, Place, ReplyOmission};
use crate::declaration::ContextKind;
use crate::draft::output_id;
use crate::event::{Actor, EventType, PayloadError, SourceName, StoredEvent};
use crate::payload::{
    AgentMessage, AgentVersion, CorrectionProposed, CorrectionTarget, DeliveryKind, DeliveryTelegram,
    DerivedAgentMessage, FocusProposed, MemoryChangeProposed, MessageObservation, OutputContract, Proposer,
    RunCompleted,
};
use crate::run::{RunState, snapshot_id};

type Proof<T> = Result<T, ReplyOmission>;

/// What every output says of where it comes from.
struct Origin {
    run: thought_protocol::RunId,
    agent: AgentVersion,
    contract: OutputContract,
    context_snapshot: SnapshotId,
    summary: String,
}

impl Conversation<'_> {
    pub(super) fn admit_reply<'e>(
        &self,
        message: &StoredEvent,
        runs: &'e [RunEvidence],
    ) -> Proof<AdmittedReply<'e>> {
        let run = self.the_completed_run(runs)?;
        let output = run.output.as_ref().ok_or(ReplyOmission::OutputMissing)?;
        let snapshot = snapshot_id(&run.run);
        let origin = self.origin(message, run, output, &snapshot).ok_or(ReplyOmission::OutputInvalid)?;
        let completed = run.completed.as_ref().ok_or(ReplyOmission::CompletionInvalid)?;
        let completion =
            completion(message, run, output, completed).ok_or(ReplyOmission::CompletionInvalid)?;
        let proposals = proposals(message, run, output, &completion).ok_or(ReplyOmission::ProposalInvalid)?;
        let receipt = self.receipt(message, run, output)?;
        let calls = match proposal_calls(proposals.iter().copied()) {
            Ok(calls) => calls,
            Err(_content_dark) => return Err(ReplyOmission::ProposalInvalid),
        };
        let target = self.correction_target(message, output, &origin, receipt);
        let text = match effective_words(output, &run.run, origin.summary, run.judgment.as_ref()) {
            Ok(text) => text,
            Err(_content_dark) => return Err(ReplyOmission::JudgmentInvalid),
        };
        Ok(AdmittedReply {
            run: &run.run,
            output,
            completed,
            proposals,
            receipt,
            judgment: run.judgment.as_ref(),
            text,
            calls,
            target,
        })
    }

    /// Exactly one completed run of an agent on the list.
    fn the_completed_run<'e>(&self, runs: &'e [RunEvidence]) -> Proof<&'e RunEvidence> {
        let admitted = |run: &&RunEvidence| self.agents.iter().any(|agent| agent.as_str() == run.agent);
        let completed = || runs.iter().filter(|run| run.state == RunState::Completed);
        let mut candidates = completed().filter(admitted);
        match (candidates.next(), candidates.next()) {
            (Some(run), None) => Ok(run),
            (Some(_), Some(_)) => Err(ReplyOmission::SeveralCompletedRuns),
            (None, _) if completed().next().is_some() => Err(ReplyOmission::AgentNotAdmitted),
            (None, _) => Err(ReplyOmission::NoCompletedRun),
        }
    }

    /// The canonical output of this run on this message: the derived id, the agent's own source and voice, and a payload
    /// that says the same.
    fn origin(
        &self,
        message: &StoredEvent,
        run: &RunEvidence,
        output: &StoredEvent,
        snapshot: &SnapshotId,
    ) -> Option<Origin> {
        let envelope = &output.envelope;
        let output_type = self.kind.output_type();
        let lineage = envelope.event_type == output_type
            && envelope.id == output_id(output_type, &run.run)
            && is_of_agent(output, &run.agent)
            && envelope.root_id == message.envelope.root_id
            && envelope.parent_id.as_ref() == Some(&message.envelope.id)
            && envelope.correlation_id == message.envelope.correlation_id;
        if !lineage {
            return None;
        }
        let origin = match self.kind {
            ContextKind::TelegramConversation => telegram_origin(output),
            ContextKind::AgentConversation => agent_origin(message, output),
        }?;
        let same = origin.run == run.run
            && origin.agent.id == run.agent
            && origin.agent.version == run.version
            && origin.context_snapshot == *snapshot
            && !origin.summary.is_empty();
        same.then_some(origin)
    }

    /// The receipt of the delivery to the same chat, thread and root; an agent's thread needs none.
    fn receipt<'e>(
        &self,
        message: &StoredEvent,
        run: &'e RunEvidence,
        output: &StoredEvent,
    ) -> Proof<Option<&'e StoredEvent>> {
        let Place::Chat { chat_id, thread_id } = &self.place else {
            return Ok(None);
        };
        let receipt = match (run.reply, run.receipt.as_ref()) {
            (Reply::Delivered, Some(receipt)) => receipt,
            (Reply::Pending, _) => return Err(ReplyOmission::DeliveryPending),
            (Reply::Delivered, None) | (Reply::NotDelivered, _) => return Err(ReplyOmission::NotDelivered),
        };
        let envelope = &receipt.envelope;
        let lineage = envelope.source == SourceName::delivery(&message.envelope.source)
            && envelope.actor == Actor::new("system:dispatcher")
            && envelope.root_id == message.envelope.root_id
            && envelope.parent_id.as_ref() == Some(&output.envelope.id);
        let payload: DeliveryTelegram = match receipt.payload() {
            Ok(payload) if lineage => payload,
            Ok(_) => return Err(ReplyOmission::DeliveryInvalid),
            Err(_content_dark) => return Err(ReplyOmission::DeliveryInvalid),
        };
        let same = payload.kind == DeliveryKind::Reply
            && payload.chat_id == *chat_id
            && payload.thread_id == *thread_id
            && payload.run.as_ref() == Some(&run.run)
            && payload.output.as_ref() == Some(&output.envelope.id)
            && !payload.chunks.is_empty();
        if same { Ok(Some(receipt)) } else { Err(ReplyOmission::DeliveryInvalid) }
    }

    /// What a correction would be bound to. Beyond the proof above, the words that it answered must come from the same
    /// sender as the current message: nobody corrects what was said to another.
    fn correction_target(
        &self,
        message: &StoredEvent,
        output: &StoredEvent,
        origin: &Origin,
        receipt: Option<&StoredEvent>,
    ) -> Option<CorrectionTarget> {
        let receipt = receipt?;
        (message.envelope.actor == self.trigger.envelope.actor).then(|| CorrectionTarget {
            run: origin.run.clone(),
            output: output.envelope.id.clone(),
            delivery_receipt: receipt.envelope.id.clone(),
            source_root: receipt.envelope.root_id.clone(),
            contract: origin.contract,
        })
    }
}

fn telegram_origin(output: &StoredEvent) -> Option<Origin> {
    match output.payload::<MessageObservation>() {
        Ok(payload) => Some(Origin {
            run: payload.run,
            agent: payload.agent,
            contract: payload.contract,
            context_snapshot: payload.context_snapshot,
            summary: payload.summary,
        }),
        Err(_content_dark) => None,
    }
}

fn agent_origin(message: &StoredEvent, output: &StoredEvent) -> Option<Origin> {
    let (Ok(asked), Ok(answer)) =
        (message.payload::<AgentMessage>(), output.payload::<DerivedAgentMessage>())
    else {
        return None;
    };
    let reversed = answer.sender_agent_id == asked.recipient_agent_id
        && answer.recipient_agent_id == asked.sender_agent_id
        && answer.agent.id == asked.recipient_agent_id
        && answer.thread_id == asked.thread_id
        && answer.in_reply_to == asked.message_id
        && answer.input_sequence == message.envelope.sequence;
    reversed.then_some(Origin {
        run: answer.run,
        agent: answer.agent,
        contract: answer.contract,
        context_snapshot: answer.context_snapshot,
        summary: answer.summary,
    })
}

fn is_of_agent(event: &StoredEvent, agent: &str) -> bool {
    event.envelope.source == SourceName::agent(agent)
        && event.envelope.actor == Actor::new(format!("agent:{agent}"))
}

/// The completed event of a run, which names the output.
fn completion(
    message: &StoredEvent,
    run: &RunEvidence,
    output: &StoredEvent,
    completed: &StoredEvent,
) -> Option<RunCompleted> {
    let envelope = &completed.envelope;
    let lineage = envelope.id == completed_id(&run.run)
        && envelope.source == SourceName::agent(&run.agent)
        && envelope.actor == Actor::new("system:runtime")
        && envelope.root_id == message.envelope.root_id
        && envelope.parent_id.as_ref() == Some(&output.envelope.id);
    match completed.payload::<RunCompleted>() {
        Ok(payload) if lineage && payload.run == run.run && payload.output == output.envelope.id => {
            Some(payload)
        }
        Ok(_) => None,
        Err(_content_dark) => None,
    }
}

/// The id of a run's completed event; the run alone decides it.
pub(crate) fn completed_id(run: &thought_protocol::RunId) -> EventId {
    EventId::of(EventType::RunCompleted.key_kind(), &[run.into()])
}

/// The proposals that the completed event names, each there, in order, and the run's own.
fn proposals<'e>(
    message: &StoredEvent,
    run: &'e RunEvidence,
    output: &StoredEvent,
    completion: &RunCompleted,
) -> Option<Vec<&'e StoredEvent>> {
    if completion.proposals.len() != run.proposals.len() {
        return None;
    }
    let mut events = Vec::with_capacity(run.proposals.len());
    for (reference, event) in completion.proposals.iter().zip(&run.proposals) {
        let envelope = &event.envelope;
        let named = envelope.id == reference.event
            && proposal_kind(envelope.event_type) == Some(reference.kind)
            && is_of_agent(event, &run.agent);
        let Some(Ok(bound)) = bound_proposal(event) else {
            return None;
        };
        let own = bound.proposer.run == run.run
            && bound.proposer.output == output.envelope.id
            && bound.proposer.trigger == message.envelope.id
            && bound.proposer.agent.id == run.agent
            && bound.proposer.agent.version == run.version
            && bound.proposer.context_snapshot == completion.context_snapshot;
        let (root, parent) = match &bound.target {
            Some(target) => (&target.source_root, &target.output),
            None => (&message.envelope.root_id, &output.envelope.id),
        };
        if !(named && own && envelope.root_id == *root && envelope.parent_id.as_ref() == Some(parent)) {
            return None;
        }
        events.push(event);
    }
    Some(events)
}

struct BoundProposal {
    proposer: Proposer,
    /// Of a correction alone.
    target: Option<CorrectionTarget>,
}

/// `None` for an event that is no proposal.
fn bound_proposal(event: &StoredEvent) -> Option<Result<BoundProposal, PayloadError>> {
    let unbound = |proposer| BoundProposal { proposer, target: None };
    match event.envelope.event_type {
        EventType::MemoryChangeProposed => {
            Some(event.payload().map(|payload: MemoryChangeProposed| unbound(payload.proposer)))
        }
        EventType::CorrectionProposed => Some(event.payload().map(|payload: CorrectionProposed| {
            BoundProposal { proposer: payload.proposer, target: Some(payload.target) }
        })),
        EventType::FocusProposed => {
            Some(event.payload().map(|payload: FocusProposed| unbound(payload.proposer)))
        }
        _ => None,
    }
}
