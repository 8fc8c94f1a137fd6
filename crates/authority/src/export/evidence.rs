//! The whole chain behind a judgment, replayed: judgment, feedback, run, trigger, output, receipt, frozen context. What
//! does not hold is an exclusion with a reason; nothing is repaired, guessed or represented as exact.
//!
//! The links that decisions and corrections rest on are the authority chain's own; here stands what an export asks beside
//! them: that the answer, its run and its frozen context say the same, and that the feedback is the word that was judged.

use std::collections::HashMap;

use thought_contract::draft::{self, telegram_correlation};
use thought_contract::event::{Actor, EventType, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{AttemptState, attempt_id, run_id, snapshot_id};
use thought_contract::snapshot::evidence::completed_event_id;
use thought_contract::snapshot::{Snapshot, TurnReference};
use thought_protocol::{EventId, Sensitive, Sha256Hex};
use thought_store::Images;
use thought_store::handle::Reader;
use thought_store::row::{CorrectionOutcome, DeclarationRow, RunRow};

use super::Scope;
use super::example::{Example, Provenance, prompt};
use super::exclusion::{Exclusion, Halt, Part, Sought, demand, lacks};
use crate::chain::{
    Aim, DecidedChain, Link, evidence, frozen_snapshot, installed, is_the_event_of, judgment_id, payload_of,
    rebuilt_packet, validate_decision, verify_target,
};
use crate::correct::CORRECT;
use crate::judge::{CRITERION_VERSION, Criterion, SCHEMA_VERSION, Verdict, verdict};
use crate::limits::DECLARATIONS_KEPT_MAX;

/// A judgment that holds by itself and by the word that it rests on.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) id: EventId,
    pub(super) said: p::JudgmentRecorded,
    pub(super) criterion: Criterion,
}

/// Reads what chains are made of. It keeps the few declarations that they name again and again.
pub(super) struct Examiner<'a> {
    reader: &'a Reader,
    images: &'a dyn Images,
    scope: Scope,
    declarations: HashMap<(String, u32), DeclarationRow>,
}

impl<'a> Examiner<'a> {
    /// Of an export of this scope.
    pub(super) fn new((reader, images): (&'a Reader, &'a dyn Images), scope: Scope) -> Self {
        Self { reader, images, scope, declarations: HashMap::new() }
    }

    /// The example that a judgment's event makes.
    pub(super) async fn example_of(&mut self, event: &StoredEvent) -> Sought<Example> {
        let judged = self.judgment(event).await?;
        self.example(&judged).await
    }

    /// A judgment with the word behind it.
    pub(super) async fn judgment(&self, event: &StoredEvent) -> Sought<Judged> {
        let said = judgment_of(event)?;
        let criterion = Criterion::from_word(&said.criterion)
            .ok_or(Halt::Excluded(lacks(Part::Judgment, "criterion")))?;
        let judged = Judged { id: event.envelope.id.clone(), said, criterion };
        let feedback = self.found(&judged.said.feedback, Part::Feedback).await?;
        match judged.criterion {
            Criterion::AgentSelfCorrection => self.accepted(&judged, &feedback).await?,
            Criterion::OperatorCorrection => self.corrected(&judged, &feedback).await?,
        }
        Ok(judged)
    }

    /// The example that a judgment makes.
    pub(super) async fn example(&mut self, judged: &Judged) -> Sought<Example> {
        let target = &judged.said.target;
        let trigger = self.found(&target.source_root, Part::Trigger).await?;
        let output = self.found(&target.output, Part::Output).await?;
        self.found(&target.delivery_receipt, Part::DeliveryReceipt).await?;
        let run = self.run(target).await?;
        let has_snapshot = run.snapshot.as_ref() == Some(&snapshot_id(&run.id));
        demand(has_snapshot, Part::ContextSnapshot, "missing")?;
        if judged.criterion == Criterion::OperatorCorrection {
            self.aimed(judged, &trigger).await?;
        }
        let (snapshot, context_sha256) = frozen_snapshot(self.reader, &run).await?;
        let said = answer(&output, &run, &snapshot)?;
        self.completion(&run).await?;
        let declaration = self.declaration(&run, &snapshot).await?;
        let packet = rebuilt_packet(self.reader, self.images, &snapshot, &declaration).await?;
        if self.scope == Scope::External {
            self.history_may_leave(&snapshot).await?;
        }
        Ok(Example {
            prompt: prompt(&packet),
            chosen: Sensitive::new(judged.said.replacement.summary.clone()),
            rejected: Sensitive::new(said.summary),
            provenance: provenance(judged, &run, context_sha256),
        })
    }

    async fn found(&self, id: &EventId, part: Part) -> Sought<StoredEvent> {
        match self.reader.event(id.clone()).await? {
            Some(event) if event.envelope.id == *id => Ok(event),
            Some(_) | None => Err(Halt::Excluded(lacks(part, "missing"))),
        }
    }

    /// A model's correction of itself: the decision on its proposal lets exactly this through.
    async fn accepted(&self, judged: &Judged, feedback: &StoredEvent) -> Sought<()> {
        let said = &judged.said;
        demand(!said.external_export_eligible, Part::Judgment, "external")?;
        let is_decision = feedback.envelope.event_type == EventType::ProposalDecision;
        demand(is_decision, Part::Feedback, "type")?;
        let decision: p::ProposalDecision = payload_of(feedback, Link::Decision)?;
        let decided = match validate_decision(self.reader, self.images, &decision.proposal).await? {
            DecidedChain::Correction(decided) => decided,
            DecidedChain::Memory(_) => return Err(Halt::Excluded(lacks(Part::Feedback, "kind"))),
        };
        let word = verdict(&decided).ok_or(Halt::Excluded(lacks(Part::Feedback, "rejected")))?;
        follows(said, &word)
    }

    /// A person's own correction: the command says exactly this, and the one that was released says the same.
    async fn corrected(&self, judged: &Judged, feedback: &StoredEvent) -> Sought<()> {
        let said = &judged.said;
        let command = command(self.reader, &said.feedback).await?;
        let word = Verdict {
            criterion: Criterion::OperatorCorrection,
            actor: feedback.envelope.actor.as_str().to_owned(),
            target: said.target.clone(),
            replacement: p::ConversationText { summary: command.trimmed() },
            feedback: said.feedback.clone(),
            proposal: None,
        };
        let first = judgment_id(&said.feedback);
        let settled = self.reader.correction(said.feedback.clone()).await?;
        let by_it = settled.is_some_and(|row| row.outcome == CorrectionOutcome::Judged(first.clone()));
        demand(by_it, Part::Feedback, "not-settled")?;
        if !said.external_export_eligible {
            demand(judged.id == first, Part::Judgment, "id")?;
            return follows(said, &word);
        }
        let is_persons = said.actor.starts_with("human:");
        demand(is_persons && said.supersedes.as_ref() == Some(&first), Part::Judgment, "not-released")?;
        let before = judgment_of(&self.found(&first, Part::Judgment).await?)?;
        demand(!before.external_export_eligible, Part::Judgment, "not-released")?;
        follows(&before, &word)?;
        follows(said, &Verdict { actor: said.actor.clone(), ..word })
    }

    /// The command aims at this answer from the answer's own chat, and came behind its receipt.
    async fn aimed(&self, judged: &Judged, trigger: &StoredEvent) -> Sought<()> {
        let target = &judged.said.target;
        let command = command(self.reader, &judged.said.feedback).await?;
        let (said, envelope) = (&command.said, &command.event.envelope);
        let aim = Aim {
            source: &envelope.source,
            chat_id: said.chat_id,
            thread_id: said.thread_id,
            sender: None,
            agents: None,
        };
        verify_target(self.reader, target, &aim).await?;
        demand(trigger.envelope.position < envelope.position, Part::Feedback, "order")?;
        let receipt = self.found(&target.delivery_receipt, Part::DeliveryReceipt).await?;
        demand(receipt.envelope.position < envelope.position, Part::Feedback, "order")?;
        let told: p::DeliveryTelegram = payload_of(&receipt, Link::CorrectionTarget)?;
        let meant = said.reply_to_message_id;
        let means_it = meant.is_none() || told.chunks.iter().any(|chunk| chunk.message_id == meant);
        demand(means_it, Part::Feedback, "other-reply")
    }

    /// No answer that the frozen context shows is in the words of a self-correction. Which judgments replaced words there
    /// the context says, and the packet that it rebuilt to has those words; whose they are, each judgment's own chain says.
    async fn history_may_leave(&self, snapshot: &Snapshot) -> Sought<()> {
        let unproven = || Halt::Excluded(lacks(Part::ContextSnapshot, "judgment-unproven"));
        for turn in &snapshot.turns {
            let TurnReference::Assistant { event, judgment: Some(id), .. } = turn else { continue };
            let replaced = self.reader.event(id.clone()).await?.ok_or_else(unproven)?;
            let judged = match self.judgment(&replaced).await {
                Ok(judged) if judged.id == *id && judged.said.target.output == *event => judged,
                Ok(_) | Err(Halt::Excluded(_)) => return Err(unproven()),
                Err(store) => return Err(store),
            };
            if judged.criterion != Criterion::OperatorCorrection {
                return Err(Halt::Excluded(Exclusion::SelfCorrectionInContext));
            }
        }
        Ok(())
    }

    async fn run(&self, target: &p::CorrectionTarget) -> Sought<RunRow> {
        let part = Part::Run;
        let found = self.reader.run(target.run.clone()).await?;
        let run = found.ok_or(Halt::Excluded(lacks(part, "missing")))?;
        let derived = run_id(&run.declaration, run.version, &run.trigger, run.retry);
        demand(run.id == target.run && derived == target.run, part, "id")?;
        let completed = run.terminal.as_ref() == Some(&completed_event_id(&run.id));
        demand(completed && run.output.as_ref() == Some(&target.output), part, "not-completed")?;
        demand(run.trigger == target.source_root, part, "trigger")?;
        Ok(run)
    }

    /// The run's completion names the frozen context and the attempt that answered.
    async fn completion(&self, run: &RunRow) -> Sought<()> {
        let event = evidence(self.reader, &completed_event_id(&run.id), Link::Completion).await?;
        let told: p::RunCompleted = payload_of(&event, Link::Completion)?;
        let same_context = told.context_snapshot == snapshot_id(&run.id);
        demand(same_context, Part::Chain(Link::Completion), "snapshot")?;
        let attempts = self.reader.attempts(run.id.clone()).await?;
        let answered = attempts.iter().any(|attempt| {
            attempt.id == told.attempt
                && attempt.state == AttemptState::Answered
                && attempt.id == attempt_id(&run.id, attempt.ordinal)
        });
        demand(answered, Part::Chain(Link::Attempt), "not-answered")
    }

    async fn declaration(&mut self, run: &RunRow, snapshot: &Snapshot) -> Sought<DeclarationRow> {
        let key = (run.declaration.clone(), run.version);
        let row = match self.declarations.get(&key) {
            Some(row) => row.clone(),
            None => {
                let (row, _written) = installed(self.reader, (&run.declaration, run.version)).await?;
                if self.declarations.len() == DECLARATIONS_KEPT_MAX {
                    self.declarations.clear();
                }
                self.declarations.insert(key, row.clone());
                row
            }
        };
        let same = row.fingerprint == snapshot.declaration.fingerprint;
        demand(same, Part::Chain(Link::Declaration), "fingerprint")?;
        Ok(row)
    }
}

/// A person's command, whole.
struct Command {
    event: StoredEvent,
    said: p::TelegramCommand,
}

impl Command {
    fn trimmed(&self) -> String {
        self.said.argument.as_deref().map(str::trim).unwrap_or_default().to_owned()
    }
}

async fn command(reader: &Reader, id: &EventId) -> Sought<Command> {
    let (part, link) = (Part::Feedback, Link::Decision);
    let event = evidence(reader, id, link).await?;
    demand(event.envelope.event_type == EventType::TelegramCommand, part, "type")?;
    let said: p::TelegramCommand = payload_of(&event, link)?;
    let envelope = &event.envelope;
    demand(envelope.root_id == envelope.id && envelope.parent_id.is_none(), part, "root")?;
    demand(envelope.source.as_str().starts_with("telegram:"), part, "source")?;
    demand(envelope.actor == Actor::new(format!("human:telegram:{}", said.user_id)), part, "actor")?;
    let correlation = telegram_correlation(said.chat_id, said.thread_id);
    demand(envelope.correlation_id.as_deref() == Some(&correlation), part, "correlation")?;
    demand(said.command == CORRECT, part, "command")?;
    Ok(Command { event, said })
}

/// A judgment's event: sealed, the one of its feedback, and of the schema that is exported.
pub(super) fn judgment_of(event: &StoredEvent) -> Sought<p::JudgmentRecorded> {
    let part = Part::Judgment;
    demand(crate::chain::is_sealed(event), part, "hash")?;
    let Ok(said) = event.payload::<p::JudgmentRecorded>() else {
        return Err(Halt::Excluded(lacks(part, "payload")));
    };
    let current = said.schema_version == SCHEMA_VERSION && said.criterion_version == CRITERION_VERSION;
    demand(current && said.kind == p::JudgmentKind::Correct, part, "schema")?;
    let drafted = draft::judgment_recorded(&said, event.envelope.occurred_at);
    if is_the_event_of(event, drafted, Link::Decision).is_err() {
        return Err(Halt::Excluded(lacks(part, "lineage")));
    }
    Ok(said)
}

/// The judgment says what the word that it rests on lets through, and nothing else.
fn follows(said: &p::JudgmentRecorded, word: &Verdict) -> Sought<()> {
    let part = Part::Judgment;
    demand(said.criterion == word.criterion.as_str(), part, "criterion")?;
    demand(said.feedback == word.feedback, part, "feedback")?;
    demand(said.actor == word.actor, part, "actor")?;
    demand(said.target == word.target, part, "target")?;
    demand(said.replacement == word.replacement, part, "replacement")
}

/// The answer, which says the same of itself as its run and its frozen context.
fn answer(output: &StoredEvent, run: &RunRow, snapshot: &Snapshot) -> Sought<p::MessageObservation> {
    let part = Part::Output;
    let said: p::MessageObservation = payload_of(output, Link::Output)?;
    demand(said.run == run.id, part, "run")?;
    demand(said.context_snapshot == snapshot_id(&run.id), part, "snapshot")?;
    demand(said.agent.id == run.declaration && said.agent.version == run.version, part, "declaration")?;
    demand(said.agent.fingerprint == snapshot.declaration.fingerprint, part, "fingerprint")?;
    demand(said.model == snapshot.model, part, "model")?;
    demand(!said.summary.is_empty(), part, "empty")?;
    Ok(said)
}

fn provenance(judged: &Judged, run: &RunRow, context_sha256: Sha256Hex) -> Provenance {
    let target = &judged.said.target;
    Provenance {
        judgment: Some(judged.id.clone()),
        run: Some(run.id.clone()),
        output: Some(target.output.clone()),
        trigger: Some(run.trigger.clone()),
        feedback: Some(judged.said.feedback.clone()),
        delivery_receipt: Some(target.delivery_receipt.clone()),
        context_snapshot: Some(snapshot_id(&run.id)),
        context_sha256: Some(context_sha256),
    }
}
