//! The projector: what follows from a decision, once. A rejection leaves nothing, a correction a judgment, a memory change
//! a new version or a reason.
//!
//! Projecting again changes nothing, whoever does it: each outcome is looked up before it is made, and made under a
//! condition. It holds no decision of its own.

use std::sync::Arc;

use thought_contract::payload::Disposition;
use thought_contract::time::Clock;
use thought_protocol::EventId;
use thought_protocol::proposal::ProposalKind;
use thought_store::StoreError;
use thought_store::handle::{Judgments, Reader};
use thought_store::row::{ProposalFilter, ProposalState};

use crate::chain::{ChainError, Decided, DecidedChain, SelfCorrection, judgment_id, validate_decision};
use crate::judge::{JudgeError, record_judgment, verdict};
use crate::limits::RECONCILE_PAGE;
use crate::materialize::{Materialization, MaterializeError, MemoryMaterializer, Tried, Waits, recorded};
use crate::reason::Reason;
use thought_store::Images;

/// A projection that came to no outcome. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The chain does not hold, or there is no decision.
    #[error("project a decision")]
    Chain(#[from] ChainError),
    /// The judgment.
    #[error("project a decision")]
    Judge(#[from] JudgeError),
    /// The materializer.
    #[error("project a decision")]
    Materialize(#[from] MaterializeError),
    /// The store.
    #[error("project a decision: reach the store")]
    Store(#[from] StoreError),
}

/// Where a decided proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing followed yet.
    Pending(Option<Waits>),
    /// It was refused.
    Rejected,
    /// A judgment counts.
    Projected,
    /// The memory holds it.
    Materialized,
    /// The memory does not hold it.
    MaterializationFailed(Reason),
}

impl Status {
    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending(_) => "pending",
            Self::Rejected => "rejected",
            Self::Projected => "projected",
            Self::Materialized => "materialized",
            Self::MaterializationFailed(_) => "materialization-failed",
        }
    }

    /// The reason code, where there is one.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Pending(Some(waits)) => Some(waits.as_str()),
            Self::MaterializationFailed(reason) => Some(reason.as_str()),
            Self::Pending(None) | Self::Rejected | Self::Projected | Self::Materialized => None,
        }
    }
}

/// What a projection came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The proposal.
    pub proposal: EventId,
    /// Its kind.
    pub kind: ProposalKind,
    /// The decision.
    pub decision: EventId,
    /// The word.
    pub disposition: Disposition,
    /// Submission id of the first submission of it.
    pub submission_id: String,
    /// Where it stands.
    pub status: Status,
    /// Whether this call brought it there.
    pub tried: Tried,
    /// The judgment or receipt, where there is one.
    pub evidence: Option<EventId>,
}

/// Which decided proposals a reconciliation takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them: also those that failed for a passing reason.
    All,
    /// Those that nothing is recorded of.
    Untried,
}

/// One proposal of a reconciliation.
#[derive(Debug)]
pub struct Reconciled {
    /// The proposal.
    pub proposal: EventId,
    /// What became of it; one that fails keeps no other from its turn.
    pub outcome: Result<Outcome, ProjectError>,
}

/// Projects decisions.
#[derive(Clone)]
pub struct Projector {
    reader: Reader,
    judgments: Judgments,
    materializer: MemoryMaterializer,
    images: Arc<dyn Images>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Projector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Projector").field("materializer", &self.materializer).finish_non_exhaustive()
    }
}

impl Projector {
    /// A projector of these parts.
    pub fn new(
        (reader, judgments): (Reader, Judgments),
        materializer: MemoryMaterializer,
        images: Arc<dyn Images>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { reader, judgments, materializer, images, clock }
    }

    /// Projects the decision on a proposal; one that is projected stays as it is.
    ///
    /// # Errors
    /// [`ProjectError`]. A forged chain leaves no receipt.
    pub async fn project(&self, proposal: &EventId) -> Result<Outcome, ProjectError> {
        let decided = validate_decision(&self.reader, &*self.images, proposal).await?;
        let (status, tried, evidence) = match &decided {
            _ if is_rejected(&decided) => (Status::Rejected, Tried::Before, None),
            DecidedChain::Memory(memory) => {
                let (outcome, tried) = self.materializer.materialize(memory).await?;
                let (status, evidence) = of_materialization(outcome);
                (status, tried, evidence)
            }
            DecidedChain::Correction(correction) => self.judge(correction).await?,
        };
        Ok(outcome(&decided, status, tried, evidence))
    }

    /// Where the decision on a proposal stands, by what is recorded; nothing is tried.
    ///
    /// # Errors
    /// [`ProjectError`].
    pub async fn standing(&self, proposal: &EventId) -> Result<Outcome, ProjectError> {
        let decided = validate_decision(&self.reader, &*self.images, proposal).await?;
        let (status, evidence) = match &decided {
            _ if is_rejected(&decided) => (Status::Rejected, None),
            DecidedChain::Memory(memory) => match recorded(&self.reader, memory).await? {
                Some(found) => of_materialization(found),
                None => (Status::Pending(None), None),
            },
            DecidedChain::Correction(correction) => {
                let id = judgment_id(correction.decision().id());
                match self.reader.event(id.clone()).await? {
                    Some(_) => (Status::Projected, Some(id)),
                    None => (Status::Pending(None), None),
                }
            }
        };
        Ok(outcome(&decided, status, Tried::Before, evidence))
    }

    /// Projects every decision that is left, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the list cannot be read; what a single one comes to stands in its own line.
    pub async fn reconcile(&self, scope: Scope) -> Result<Vec<Reconciled>, StoreError> {
        let mut all = Vec::new();
        for proposal in self.left().await? {
            let outcome = match scope {
                Scope::All => self.project(&proposal).await,
                Scope::Untried => match self.standing(&proposal).await {
                    Ok(outcome) if outcome.status == Status::Pending(None) => self.project(&proposal).await,
                    standing => standing,
                },
            };
            if let Err(error) = &outcome {
                tracing::warn!(proposal = %proposal, %error, "decision not projected");
            }
            all.push(Reconciled { proposal, outcome });
        }
        Ok(all)
    }

    /// Decided proposals that something must still follow from, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn left(&self) -> Result<Vec<EventId>, StoreError> {
        let mut left = Vec::new();
        let mut after_position = 0;
        loop {
            let filter = ProposalFilter {
                states: vec![ProposalState::Decided],
                kinds: Vec::new(),
                after_position,
                limit: RECONCILE_PAGE,
            };
            let page = self.reader.proposals(filter).await?;
            let Some(last) = page.last() else { return Ok(left) };
            after_position = last.position;
            left.extend(page.into_iter().map(|row| row.proposal));
        }
    }

    async fn judge(
        &self,
        decided: &Decided<SelfCorrection>,
    ) -> Result<(Status, Tried, Option<EventId>), ProjectError> {
        let id = judgment_id(decided.decision().id());
        if self.reader.event(id.clone()).await?.is_some() {
            return Ok((Status::Projected, Tried::Before, Some(id)));
        }
        let Some(verdict) = verdict(decided) else { return Ok((Status::Rejected, Tried::Before, None)) };
        let judgment = record_judgment((&self.reader, &self.judgments), &*self.clock, &verdict).await?;
        Ok((Status::Projected, Tried::Now, Some(judgment)))
    }
}

fn is_rejected(decided: &DecidedChain) -> bool {
    decided.decision().payload().disposition == Disposition::Reject
}

fn of_materialization(outcome: Materialization) -> (Status, Option<EventId>) {
    match outcome {
        Materialization::Materialized { receipt } => (Status::Materialized, Some(receipt)),
        Materialization::Failed { reason } => (Status::MaterializationFailed(reason), None),
        Materialization::Pending(waits) => (Status::Pending(Some(waits)), None),
    }
}

fn outcome(decided: &DecidedChain, status: Status, tried: Tried, evidence: Option<EventId>) -> Outcome {
    let said = decided.decision().payload();
    Outcome {
        proposal: said.proposal.clone(),
        kind: said.proposal_kind,
        decision: decided.decision().id().clone(),
        disposition: said.disposition,
        submission_id: said.submission_id.clone(),
        status,
        tried,
        evidence,
    }
}
