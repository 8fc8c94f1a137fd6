//! What a person's word leaves: decisions, judgments, operators' proposals, and the receipts of what was written.

use thought_contract::draft::Draft;
use thought_contract::event::{CONTEXT_SOURCE, EventType, SourceName};
use thought_protocol::EventId;
use thought_protocol::proposal::ProposalKind;

use super::{Writer, own};
use crate::command::{BaseVersion, NewIntent, NewProposal, Op};
use crate::engine::{Precondition, StoreError};
use crate::row::{Appended, CorrectionOutcome, ProposalState};

/// Names a decided proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The proposal.
    pub proposal: EventId,
    /// The decision on it.
    pub decision: EventId,
}

/// What is left to do when a decision stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// Its projection.
    Projection,
    /// Nothing: it is a refusal.
    Nothing,
}

/// What a failed write leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Nothing.
    Nothing,
    /// Files that the next try must look at first: the intent stays.
    Intent,
}

impl Writer {
    /// The commit of one append with the move of a proposal in the index; where the proposal moved already, without it.
    async fn commit_moving(
        &self,
        ops: Vec<Op>,
        proposal: EventId,
        (from, to): (ProposalState, ProposalState),
    ) -> Result<Appended, StoreError> {
        let mut whole = ops.clone();
        whole.push(Op::MoveProposal { proposal, from, to });
        match self.commit_one(whole).await {
            Err(StoreError::Precondition(Precondition::ProposalState)) => self.commit_one(ops).await,
            outcome => outcome,
        }
    }
}

/// Appends decisions.
#[derive(Clone, Debug)]
pub struct Decisions {
    writer: Writer,
}

impl Decisions {
    pub(super) fn cut(writer: Writer) -> Self {
        Self { writer }
    }

    /// Appends the decision on a proposal and moves the proposal, in one commit. The same word again is the first one.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when another word stands; [`StoreError::Role`] for another draft; any failure of the
    /// commit.
    pub async fn decide(
        &self,
        decision: Draft,
        proposal: EventId,
        follows: Follows,
    ) -> Result<Appended, StoreError> {
        own(&decision, &SourceName::new("review:decisions"), &[EventType::ProposalDecision])?;
        let to = match follows {
            Follows::Projection => ProposalState::Decided,
            Follows::Nothing => ProposalState::Projected,
        };
        let ops = vec![Op::Append(Box::new(decision))];
        self.writer.commit_moving(ops, proposal, (ProposalState::Undecided, to)).await
    }
}

/// Records judgments.
#[derive(Clone, Debug)]
pub struct Judgments {
    writer: Writer,
}

impl Judgments {
    pub(super) fn cut(writer: Writer) -> Self {
        Self { writer }
    }

    /// Appends a judgment on an output under the condition that `active` is the one that stands on it now (none: that
    /// there is none), and moves the proposal it rests on, where there is one.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when another judgment stands, this very one included; [`StoreError::Role`] for another
    /// draft; any failure of the commit.
    pub async fn record(
        &self,
        judgment: Draft,
        output: EventId,
        active: Option<EventId>,
        proposal: Option<EventId>,
    ) -> Result<Appended, StoreError> {
        own(&judgment, &SourceName::new("review:judgments"), &[EventType::JudgmentRecorded])?;
        let ops = vec![Op::ExpectJudgment { output, active }, Op::Append(Box::new(judgment))];
        match proposal {
            Some(proposal) => {
                let step = (ProposalState::Decided, ProposalState::Projected);
                self.writer.commit_moving(ops, proposal, step).await
            }
            None => self.writer.commit_one(ops).await,
        }
    }
}

/// Name of the cursor behind which commands were looked at for corrections.
pub const CORRECTIONS_CURSOR: &str = "projector:corrections";

impl Judgments {
    /// Records the judgment that a person's own correction makes, what became of the command, and that everything up to it
    /// was looked at, in one commit.
    ///
    /// # Errors
    /// As [`Judgments::record`].
    pub async fn correct(
        &self,
        judgment: Draft,
        output: EventId,
        active: Option<EventId>,
        (command, position): (EventId, u64),
    ) -> Result<Appended, StoreError> {
        own(&judgment, &SourceName::new("review:judgments"), &[EventType::JudgmentRecorded])?;
        let outcome = CorrectionOutcome::Judged(judgment.id().clone());
        let ops = vec![
            Op::ExpectJudgment { output, active },
            Op::Append(Box::new(judgment)),
            Op::SettleCorrection { command, outcome },
            Op::SetCursor { name: CORRECTIONS_CURSOR.to_owned(), position },
        ];
        self.writer.commit_one(ops).await
    }

    /// Records that a person's own correction matched nothing, and that everything up to it was looked at.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn refuse(&self, command: EventId, reason: &str, position: u64) -> Result<(), StoreError> {
        let outcome = CorrectionOutcome::Refused(reason.to_owned());
        let ops = vec![
            Op::SettleCorrection { command, outcome },
            Op::SetCursor { name: CORRECTIONS_CURSOR.to_owned(), position },
        ];
        self.writer.commit(ops).await.map(drop)
    }

    /// Records that everything up to a position was looked at.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn looked_at(&self, position: u64) -> Result<(), StoreError> {
        let op = Op::SetCursor { name: CORRECTIONS_CURSOR.to_owned(), position };
        self.writer.commit(vec![op]).await.map(drop)
    }
}

/// Appends proposals of operators.
#[derive(Clone, Debug)]
pub struct OperatorProposals {
    writer: Writer,
}

impl OperatorProposals {
    pub(super) fn cut(writer: Writer) -> Self {
        Self { writer }
    }

    /// Appends a proposal and puts it among those that wait, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when another proposal has its identity; [`StoreError::Role`] for another draft; any failure
    /// of the commit.
    pub async fn propose(&self, proposal: Draft, base: BaseVersion) -> Result<Appended, StoreError> {
        let types = [EventType::OperatorMemoryChangeProposed];
        own(&proposal, &SourceName::new("operator:proposals"), &types)?;
        let track = NewProposal {
            proposal: proposal.id().clone(),
            kind: ProposalKind::MemoryChange,
            run: None,
            base: Some(base),
        };
        self.writer.commit_one(vec![Op::Append(Box::new(proposal)), Op::TrackProposal(track)]).await
    }
}

/// Appends the receipts of memory changes, and keeps the intents that precede them.
#[derive(Clone, Debug)]
pub struct Materializer {
    writer: Writer,
    source: SourceName,
}

impl Materializer {
    pub(super) fn cut(writer: Writer) -> Self {
        Self { writer, source: SourceName::new(format!("materializer:{CONTEXT_SOURCE}")) }
    }

    /// Keeps what is about to be written. A newer intent of the same decision takes the place of an older one.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn intend(&self, intent: NewIntent) -> Result<(), StoreError> {
        self.writer.commit(vec![Op::PutIntent(intent)]).await.map(drop)
    }

    /// Records that a change was written, forgets its intent and moves the proposal, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Role`] for another draft; any failure of the commit.
    pub async fn materialized(&self, receipt: Draft, about: Resolution) -> Result<Appended, StoreError> {
        own(&receipt, &self.source, &[EventType::MemoryMaterialized])?;
        self.resolve(receipt, about, ProposalState::Projected).await
    }

    /// Records a failure that resolves the decision, forgets its intent and moves the proposal, in one commit.
    ///
    /// # Errors
    /// As [`Materializer::materialized`].
    pub async fn failed(&self, receipt: Draft, about: Resolution) -> Result<Appended, StoreError> {
        own(&receipt, &self.source, &[EventType::MaterializationFailed])?;
        self.resolve(receipt, about, ProposalState::Failed).await
    }

    /// Records a failure after which the decision is tried again; the same one again is the first.
    ///
    /// # Errors
    /// As [`Materializer::materialized`].
    pub async fn failed_for_now(
        &self,
        receipt: Draft,
        about: Resolution,
        remains: Remains,
    ) -> Result<Appended, StoreError> {
        own(&receipt, &self.source, &[EventType::MaterializationFailed])?;
        let mut ops = vec![Op::Append(Box::new(receipt))];
        if remains == Remains::Nothing {
            ops.push(Op::ClearIntent { decision: about.decision });
        }
        self.writer.commit_one(ops).await
    }

    async fn resolve(
        &self,
        receipt: Draft,
        about: Resolution,
        to: ProposalState,
    ) -> Result<Appended, StoreError> {
        let Resolution { proposal, decision } = about;
        let ops = vec![Op::Append(Box::new(receipt)), Op::ClearIntent { decision }];
        self.writer.commit_moving(ops, proposal, (ProposalState::Decided, to)).await
    }
}
