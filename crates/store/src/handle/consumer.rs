//! The runs of one declaration: admission, attempts, settlement and every other ending.

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};
use thought_contract::run::{AttemptState, HeldReason, RunState};
use thought_protocol::limits::CALLS_MAX;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{AttemptId, EventId, RunId};

use super::{Writer, ids, own};
use crate::command::{AttemptEnd, BaseVersion, NewAttempt, NewProposal, NewRun, NewSnapshot, Op};
use crate::engine::{Committed, StoreError};

/// A run that enters the store, with the sequence that its admission brings `scanned` to.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The run.
    pub run: NewRun,
    /// Everything in its source up to here was looked at.
    pub scanned: u64,
}

/// The commit that lets a packet leave: the run (if it is new), its snapshot (if it has none yet) and the attempt.
#[derive(Debug, Clone)]
pub struct Start {
    /// The run.
    pub run: RunId,
    /// Its admission, where it starts at once.
    pub admission: Option<Admission>,
    /// Its snapshot, before the first attempt.
    pub snapshot: Option<NewSnapshot>,
    /// The attempt before, whose process died.
    pub abandoned: Option<AttemptId>,
    /// The attempt.
    pub attempt: NewAttempt,
}

/// A proposal of a settlement: its event, and what the index of proposals must know without reading it.
#[derive(Debug, Clone)]
pub struct Proposed {
    /// The event.
    pub draft: Draft,
    /// What a memory change is bound to; none for the other kinds.
    pub base: Option<BaseVersion>,
}

impl Proposed {
    fn kind(&self) -> Option<ProposalKind> {
        match self.draft.event_type() {
            EventType::MemoryChangeProposed => Some(ProposalKind::MemoryChange),
            EventType::CorrectionProposed => Some(ProposalKind::SelfCorrection),
            EventType::FocusProposed => Some(ProposalKind::FocusDeclaration),
            _ => None,
        }
    }
}

const OUTPUTS: [EventType; 2] = [EventType::MessageObservation, EventType::DerivedAgentMessage];

/// What keeps a settlement from being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettlementError {
    /// The first event is no output.
    #[error("build a settlement: its output has another event type")]
    Output,
    /// More than three proposals, two of a kind, an event that is none, or a memory change without its base.
    #[error(
        "build a settlement: its proposals are too many, of one kind, without their base, or no proposals"
    )]
    Proposals,
    /// The last event is not the completed run.
    #[error("build a settlement: its last event is not run.completed")]
    Completed,
    /// The events belong to different sources.
    #[error("build a settlement: its events belong to different sources")]
    Source,
}

/// Everything that a successful run leaves, whole: output, proposals, completed event, run row, progress. Built once,
/// consumed by value.
#[derive(Debug)]
pub struct Settlement {
    run: RunId,
    attempt: AttemptEnd,
    output: Draft,
    proposals: Vec<(ProposalKind, Proposed)>,
    completed: Draft,
}

impl Settlement {
    /// Puts a settlement together.
    ///
    /// # Errors
    /// [`SettlementError`] when the parts are not of the types, number, kinds and source that the contract demands.
    pub fn new(
        run: RunId,
        attempt: AttemptId,
        (input_tokens, output_tokens): (Option<u64>, Option<u64>),
        output: Draft,
        proposals: Vec<Proposed>,
        completed: Draft,
    ) -> Result<Self, SettlementError> {
        if !OUTPUTS.contains(&output.event_type()) {
            return Err(SettlementError::Output);
        }
        if completed.event_type() != EventType::RunCompleted {
            return Err(SettlementError::Completed);
        }
        let count = proposals.len();
        let proposals: Vec<(ProposalKind, Proposed)> =
            proposals.into_iter().filter_map(|proposed| Some((proposed.kind()?, proposed))).collect();
        let distinct =
            ProposalKind::ALL.iter().filter(|kind| proposals.iter().any(|(found, _)| found == *kind));
        let are_bound = proposals
            .iter()
            .all(|(kind, proposed)| proposed.base.is_some() == (*kind == ProposalKind::MemoryChange));
        if count > CALLS_MAX || distinct.count() != count || !are_bound {
            return Err(SettlementError::Proposals);
        }
        let drafts = proposals.iter().map(|(_, proposed)| &proposed.draft);
        if drafts.chain([&completed]).any(|draft| draft.source() != output.source()) {
            return Err(SettlementError::Source);
        }
        let attempt =
            AttemptEnd { attempt, state: AttemptState::Answered, reason: None, input_tokens, output_tokens };
        Ok(Self { run, attempt, output, proposals, completed })
    }

    /// The output's event.
    pub fn output(&self) -> &EventId {
        self.output.id()
    }

    /// The events that will be appended, in order.
    pub fn events(&self) -> Vec<EventId> {
        let mut drafts = vec![&self.output];
        drafts.extend(self.proposals.iter().map(|(_, proposed)| &proposed.draft));
        drafts.push(&self.completed);
        ids(&drafts)
    }
}

/// The runs of one declaration.
#[derive(Clone, Debug)]
pub struct ConsumerRuns {
    writer: Writer,
    declaration: String,
    source: SourceName,
}

impl ConsumerRuns {
    pub(super) fn cut(writer: Writer, declaration: &str) -> Self {
        Self { writer, declaration: declaration.to_owned(), source: SourceName::agent(declaration) }
    }

    /// The declaration whose runs these are.
    pub fn declaration(&self) -> &str {
        &self.declaration
    }

    /// Admits a run whose turn has not come yet.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when the run is there already; any failure of the commit.
    pub async fn admit(&self, admission: Admission) -> Result<(), StoreError> {
        self.writer.commit(self.admission_ops(admission)).await.map(drop)
    }

    /// Remembers that a source was looked at up to a sequence, where nothing in between concerned this declaration.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn scanned(&self, source: SourceName, sequence: u64) -> Result<(), StoreError> {
        let op = Op::SetScanned { declaration: self.declaration.clone(), source, sequence };
        self.writer.commit(vec![op]).await.map(drop)
    }

    /// Records an attempt before its packet leaves, with run and snapshot where they are new, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when the run has ended, another attempt is on, or the day's budget is spent; any
    /// failure of the commit. Then no packet may leave.
    pub async fn start(&self, start: Start) -> Result<(), StoreError> {
        let mut ops = start.admission.map(|admission| self.admission_ops(admission)).unwrap_or_default();
        if let Some(snapshot) = start.snapshot {
            ops.push(Op::PutSnapshot { run: start.run.clone(), snapshot });
        }
        if let Some(attempt) = start.abandoned {
            ops.push(Op::EndAttempt(AttemptEnd {
                attempt,
                state: AttemptState::Abandoned,
                reason: None,
                input_tokens: None,
                output_tokens: None,
            }));
        }
        ops.push(Op::StartAttempt { run: start.run, attempt: start.attempt });
        self.writer.commit(ops).await.map(drop)
    }

    /// Records how an attempt ended that did not end its run.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when the attempt is not the started one; any failure of the commit.
    pub async fn end_attempt(&self, end: AttemptEnd) -> Result<(), StoreError> {
        self.writer.commit(vec![Op::EndAttempt(end)]).await.map(drop)
    }

    /// Holds a run, admitting it where it is new.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when the run has attempts or has ended; any failure of the commit.
    pub async fn hold(
        &self,
        run: RunId,
        admission: Option<Admission>,
        reason: HeldReason,
    ) -> Result<(), StoreError> {
        let mut ops = admission.map(|admission| self.admission_ops(admission)).unwrap_or_default();
        ops.push(Op::HoldRun { run, reason });
        self.writer.commit(ops).await.map(drop)
    }

    /// Settles a run: everything it leaves, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when the attempt is not the started one: the answer is discarded;
    /// [`StoreError::Role`] for another declaration's events; any failure of the commit.
    pub async fn settle(&self, settlement: Settlement) -> Result<Committed, StoreError> {
        let Settlement { run, attempt, output, proposals, completed } = settlement;
        own(&output, &self.source, &OUTPUTS)?;
        let end = Op::EndRun {
            run: run.clone(),
            state: RunState::Completed,
            reason: None,
            output: Some(output.id().clone()),
            terminal: completed.id().clone(),
        };
        let mut ops = vec![Op::EndAttempt(attempt), Op::Append(Box::new(output))];
        for (kind, Proposed { draft, base }) in proposals {
            let proposal = draft.id().clone();
            ops.push(Op::Append(Box::new(draft)));
            ops.push(Op::TrackProposal(NewProposal { proposal, kind, run: Some(run.clone()), base }));
        }
        ops.push(Op::Append(Box::new(completed)));
        ops.push(end);
        self.writer.commit(ops).await
    }

    /// Ends a run without an answer: the attempt where one is on, the event, the run row and progress, in one commit.
    /// A run that is new is admitted in the same commit.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when the run has ended or the attempt is not the started one;
    /// [`StoreError::Role`] for another draft; any failure of the commit.
    pub async fn end(
        &self,
        run: RunId,
        admission: Option<Admission>,
        attempt: Option<AttemptEnd>,
        reason: &str,
        event: Draft,
    ) -> Result<Committed, StoreError> {
        let state = match event.event_type() {
            EventType::RunBlocked => RunState::Blocked,
            EventType::RunAbandoned => RunState::Abandoned,
            _ => RunState::Failed,
        };
        let types = [EventType::RunFailed, EventType::RunBlocked, EventType::RunAbandoned];
        own(&event, &self.source, &types)?;
        let mut ops = admission.map(|admission| self.admission_ops(admission)).unwrap_or_default();
        ops.extend(attempt.map(Op::EndAttempt));
        let terminal = event.id().clone();
        ops.push(Op::Append(Box::new(event)));
        ops.push(Op::EndRun { run, state, reason: Some(reason.to_owned()), output: None, terminal });
        self.writer.commit(ops).await
    }

    fn admission_ops(&self, admission: Admission) -> Vec<Op> {
        let scanned = Op::SetScanned {
            declaration: self.declaration.clone(),
            source: admission.run.source.clone(),
            sequence: admission.scanned,
        };
        vec![Op::AdmitRun(admission.run), scanned]
    }
}
