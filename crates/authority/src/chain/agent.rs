//! The chain of a model's proposal: run, attempt, trigger, declaration, frozen context, output, completion, arguments.

use serde_json::{Value, json};
use thought_contract::draft::{self, telegram_correlation};
use thought_contract::event::{Actor, EventType, SourceName, StoredEvent};
use thought_contract::payload::{self as p, OutputContract, Proposer};
use thought_contract::run::{AttemptState, RunState, attempt_id, run_id, snapshot_id};
use thought_contract::snapshot::Snapshot;
use thought_contract::snapshot::build::MEMORY_PATH;
use thought_contract::snapshot::evidence::completed_event_id;
use thought_protocol::limits::CALLS_MAX;
use thought_protocol::proposal::{ArgumentFault, ProposalCall, ProposalKind};
use thought_protocol::{EventId, Sensitive, Sha256Hex, strict_json};
use thought_store::handle::Reader;
use thought_store::row::{DeclarationRow, RunRow};

use super::seal::{payload, same, sealed};
use super::{
    Authorship, ChainError, Link, MemoryChange, Proof, SelfCorrection, Verified, VerifiedChain, evidence,
    hold, load, refused, target,
};
use crate::filesystem::document_id;
use thought_store::Images;

/// What a proposal says of itself.
enum Claim {
    Memory(p::MemoryChangeProposed),
    Correction(p::CorrectionProposed),
}

impl Claim {
    fn proposer(&self) -> &Proposer {
        match self {
            Self::Memory(payload) => &payload.proposer,
            Self::Correction(payload) => &payload.proposer,
        }
    }

    const fn kind(&self) -> ProposalKind {
        match self {
            Self::Memory(_) => ProposalKind::MemoryChange,
            Self::Correction(_) => ProposalKind::SelfCorrection,
        }
    }
}

/// Verifies a model's proposal.
pub(super) async fn verify(reader: &Reader, images: &dyn Images, event: StoredEvent) -> Proof<Verified> {
    sealed(&event, Link::Proposal)?;
    let claim = match event.envelope.event_type {
        EventType::MemoryChangeProposed => Claim::Memory(payload(&event, Link::Proposal)?),
        EventType::CorrectionProposed => Claim::Correction(payload(&event, Link::Proposal)?),
        EventType::FocusProposed => return Err(ChainError::Inert { id: event.envelope.id.clone() }),
        _ => return Err(refused(Link::Proposal, "type")),
    };
    let proposer = claim.proposer();
    let run = run(reader, proposer).await?;
    let trigger = trigger(reader, proposer, &run).await?;
    let at = event.envelope.occurred_at;
    let draft = match &claim {
        Claim::Memory(payload) => draft::memory_change_proposed(&trigger, payload, at),
        Claim::Correction(payload) => draft::correction_proposed(&trigger, payload, at),
    };
    same(&event, draft, Link::Proposal)?;
    let declaration = declaration(reader, proposer, claim.kind()).await?;
    let (snapshot, _sha256) = load::snapshot(reader, &run).await?;
    bound(proposer, &snapshot, claim.kind())?;
    load::packet(reader, images, &snapshot, &declaration).await?;
    let output = output(reader, proposer, &trigger).await?;
    completion(reader, &claim, &run, (&trigger, &output, &event)).await?;
    subject(reader, claim, &snapshot, &trigger, event).await
}

/// The completed run, by its row.
async fn run(reader: &Reader, proposer: &Proposer) -> Proof<RunRow> {
    let link = Link::Run;
    let row = reader.run(proposer.run.clone()).await?.ok_or(refused(link, "missing"))?;
    hold(row.state == RunState::Completed, link, "not-completed")?;
    let derived = run_id(&row.declaration, row.version, &row.trigger, row.retry);
    hold(row.id == proposer.run && derived == proposer.run, link, "id")?;
    let (id, version) = (&proposer.agent.id, proposer.agent.version);
    hold(row.declaration == *id && row.version == version, link, "declaration")?;
    hold(row.trigger == proposer.trigger, link, "trigger")?;
    hold(row.output.as_ref() == Some(&proposer.output), link, "output")?;
    hold(row.terminal.as_ref() == Some(&completed_event_id(&proposer.run)), link, "terminal")?;
    hold(snapshot_id(&row.id) == proposer.context_snapshot, link, "snapshot")?;
    Ok(row)
}

/// The message that was answered: a person's, and the root of its own lineage.
async fn trigger(reader: &Reader, proposer: &Proposer, run: &RunRow) -> Proof<StoredEvent> {
    let link = Link::Trigger;
    let event = evidence(reader, &proposer.trigger, link).await?;
    message(&event, link)?;
    let envelope = &event.envelope;
    hold(envelope.source == run.source && envelope.sequence == run.sequence, link, "place")?;
    Ok(event)
}

/// An event that is a person's message in a chat, whole.
pub(super) fn message(event: &StoredEvent, link: Link) -> Proof<p::TelegramMessage> {
    let envelope = &event.envelope;
    let said: p::TelegramMessage = payload(event, link)?;
    hold(envelope.root_id == envelope.id && envelope.parent_id.is_none(), link, "root")?;
    hold(envelope.source.as_str().starts_with("telegram:"), link, "source")?;
    hold(envelope.actor == Actor::new(format!("human:telegram:{}", said.user_id)), link, "actor")?;
    let correlation = telegram_correlation(said.chat_id, said.thread_id);
    hold(envelope.correlation_id.as_deref() == Some(&correlation), link, "correlation")?;
    let external = format!("{}:{}", said.chat_id, said.message_id);
    hold(envelope.external_id.as_deref() == Some(&external), link, "external-id")?;
    Ok(said)
}

/// The declaration's bytes as they were activated, and the event that says so.
async fn declaration(reader: &Reader, proposer: &Proposer, kind: ProposalKind) -> Proof<DeclarationRow> {
    let link = Link::Declaration;
    let (row, written) = installed(reader, (&proposer.agent.id, proposer.agent.version)).await?;
    hold(row.fingerprint == proposer.fingerprint, link, "fingerprint")?;
    let provider = written.get("provider").and_then(Value::as_str);
    hold(provider.is_none_or(|provider| provider == proposer.provider), link, "provider")?;
    let may = written.pointer("/policy/proposals").and_then(Value::as_array);
    let may = may.is_some_and(|kinds| kinds.iter().any(|written| *written == json!(kind)));
    hold(may, link, "policy")?;
    Ok(row)
}

/// An installed version with what was written in it: the bytes of its fingerprint, of the activation that says so.
pub(crate) async fn installed(reader: &Reader, (id, version): (&str, u32)) -> Proof<(DeclarationRow, Value)> {
    let link = Link::Declaration;
    let active = reader.declaration(id.to_owned()).await?.filter(|row| row.version == version);
    let row = match active {
        Some(row) => row,
        None => {
            let all = reader.declarations().await?;
            let named = all.into_iter().find(|row| row.id == id && row.version == version);
            named.ok_or(refused(link, "missing"))?
        }
    };
    let found = thought_contract::declaration::fingerprint(
        row.declaration.expose(),
        row.prompt.expose(),
        row.manifest.expose(),
    );
    hold(found == row.fingerprint, link, "fingerprint")?;
    // As written, without this build's defaults.
    let written = match strict_json::parse(row.declaration.expose()) {
        Ok(written) => written,
        Err(_content_dark) => return Err(refused(link, "bytes")),
    };
    let named = written.get("id").and_then(Value::as_str) == Some(id)
        && written.get("version").and_then(Value::as_u64) == Some(u64::from(version));
    hold(named, link, "id")?;
    activation(reader, &row).await?;
    Ok((row, written))
}

async fn activation(reader: &Reader, row: &DeclarationRow) -> Proof<()> {
    let link = Link::Activation;
    let parts = [json!(row.id), json!(row.version)];
    let id = EventId::of(EventType::DeclarationActivated.key_kind(), &parts);
    let event = evidence(reader, &id, link).await?;
    let told: p::DeclarationActivated = payload(&event, link)?;
    same(&event, draft::declaration_activated(&told, event.envelope.occurred_at), link)?;
    hold(told.fingerprint == row.fingerprint, link, "fingerprint")
}

/// The proposal and the frozen context name one another.
fn bound(proposer: &Proposer, snapshot: &Snapshot, kind: ProposalKind) -> Proof<()> {
    let link = Link::Snapshot;
    hold(snapshot.declaration.fingerprint == proposer.fingerprint, link, "fingerprint")?;
    hold(snapshot.model == proposer.model, link, "model")?;
    hold(snapshot.declaration.proposals.contains(&kind), link, "policy")
}

/// The exact output of that run on that trigger.
async fn output(reader: &Reader, proposer: &Proposer, trigger: &StoredEvent) -> Proof<StoredEvent> {
    let link = Link::Output;
    let event = evidence(reader, &proposer.output, link).await?;
    let said: p::MessageObservation = payload(&event, link)?;
    same(&event, draft::observation(trigger, &said, event.envelope.occurred_at), link)?;
    hold(said.run == proposer.run, link, "run")?;
    let agent = said.agent.id == proposer.agent.id && said.agent.version == proposer.agent.version;
    hold(agent && said.agent.fingerprint == proposer.fingerprint, link, "declaration")?;
    hold(said.provider == proposer.provider && said.model == proposer.model, link, "model")?;
    hold(said.context_snapshot == proposer.context_snapshot, link, "snapshot")?;
    hold(said.contract == OutputContract::ConversationText, link, "contract")?;
    Ok(event)
}

/// The completed run's receipt: it names the proposal, and was written with it.
async fn completion(
    reader: &Reader,
    claim: &Claim,
    run: &RunRow,
    (trigger, output, proposal): (&StoredEvent, &StoredEvent, &StoredEvent),
) -> Proof<()> {
    let link = Link::Completion;
    let proposer = claim.proposer();
    let event = evidence(reader, &completed_event_id(&proposer.run), link).await?;
    let told: p::RunCompleted = payload(&event, link)?;
    let draft = draft::run_completed(&proposer.agent.id, trigger, &told, event.envelope.occurred_at);
    same(&event, draft, link)?;
    hold(told.run == proposer.run && told.output == proposer.output, link, "output")?;
    hold(told.context_snapshot == proposer.context_snapshot, link, "snapshot")?;
    let mut kinds: Vec<ProposalKind> = told.proposals.iter().map(|named| named.kind).collect();
    kinds.sort_unstable_by_key(|kind| kind.as_str());
    kinds.dedup();
    hold(told.proposals.len() <= CALLS_MAX && kinds.len() == told.proposals.len(), link, "proposals")?;
    let named = told
        .proposals
        .iter()
        .position(|named| named.kind == claim.kind() && named.event == proposal.envelope.id)
        .ok_or(refused(link, "does-not-name-the-proposal"))?;
    // One transaction on one source: its events follow one another without a gap.
    let behind =
        |steps: usize| u64::try_from(steps).ok().and_then(|s| output.envelope.sequence.checked_add(s));
    hold(behind(named + 1) == Some(proposal.envelope.sequence), link, "order")?;
    hold(behind(told.proposals.len() + 1) == Some(event.envelope.sequence), link, "order")?;
    let attempts = reader.attempts(run.id.clone()).await?;
    let answered = attempts.iter().any(|attempt| {
        attempt.id == told.attempt
            && attempt.state == AttemptState::Answered
            && attempt.id == attempt_id(&run.id, attempt.ordinal)
    });
    hold(answered, Link::Attempt, "not-answered")
}

/// What is proposed: within its bounds, citing admitted evidence, aiming at what the frozen context admits.
async fn subject(
    reader: &Reader,
    claim: Claim,
    snapshot: &Snapshot,
    trigger: &StoredEvent,
    proposal: StoredEvent,
) -> Proof<Verified> {
    match claim {
        Claim::Memory(payload) => {
            arguments(snapshot, ProposalKind::MemoryChange, &memory_arguments(&payload))?;
            let text = payload.proposed_text;
            let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
            hold(length == payload.text_length, Link::Arguments, "text-length")?;
            hold(Sha256Hex::of(text.as_bytes()) == payload.text_sha256, Link::Arguments, "text-hash")?;
            memory_target(snapshot, &payload.target)?;
            let subject = MemoryChange {
                operation: payload.operation,
                text: Sensitive::new(text),
                text_sha256: payload.text_sha256,
                target: payload.target,
                authorship: Authorship::Agent { run: payload.proposer.run },
            };
            Ok(Verified::Memory(VerifiedChain { proposal, subject }))
        }
        Claim::Correction(payload) => {
            arguments(snapshot, ProposalKind::SelfCorrection, &correction_arguments(&payload))?;
            let admitted = snapshot.correction_target_of(&payload.target.output);
            hold(admitted.as_ref() == Some(&payload.target), Link::CorrectionTarget, "not-admitted")?;
            let here = message(trigger, Link::Trigger)?;
            let aim = target::Aim {
                source: &trigger.envelope.source,
                chat_id: here.chat_id,
                thread_id: here.thread_id,
                sender: Some(&trigger.envelope.actor),
                agents: Some(&snapshot.provenance.agents),
            };
            target::verify(reader, &payload.target, &aim).await?;
            let replacement = Sensitive::new(payload.replacement.summary);
            let subject = SelfCorrection { replacement, target: payload.target };
            Ok(Verified::Correction(VerifiedChain { proposal, subject }))
        }
    }
}

fn memory_target(snapshot: &Snapshot, target: &p::MemoryTarget) -> Proof<()> {
    let link = Link::MemoryTarget;
    hold(snapshot.memory_target().as_ref() == Some(target), link, "not-admitted")?;
    hold(target.source == SourceName::context() && target.path == MEMORY_PATH, link, "document")?;
    hold(target.document_id == document_id(MEMORY_PATH), link, "document")
}

fn memory_arguments(payload: &p::MemoryChangeProposed) -> Value {
    json!({
        "operation": payload.operation, "proposed_text": payload.proposed_text,
        "reason": payload.reason, "evidence_event_ids": payload.evidence,
    })
}

fn correction_arguments(payload: &p::CorrectionProposed) -> Value {
    json!({
        "target_output": payload.target.output, "replacement": payload.replacement.summary,
        "reason": payload.reason, "evidence_event_ids": payload.evidence,
    })
}

/// The arguments as the contract's one reader takes them, under the capability of the frozen context.
fn arguments(snapshot: &Snapshot, kind: ProposalKind, arguments: &Value) -> Proof<()> {
    let capability = snapshot.packet_capability();
    match ProposalCall::from_arguments(kind.tool(), arguments, &capability) {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.fault {
            ArgumentFault::EvidenceNotAdmitted => refused(Link::Arguments, "evidence-not-admitted"),
            ArgumentFault::TargetNotAdmitted => refused(Link::Arguments, "target-not-admitted"),
            _ => refused(Link::Arguments, "out-of-bounds"),
        }),
    }
}
