//! Judgments: what an output should have been, on a person's word. At most one stands on each output.
//!
//! A judgment is appended under the condition that the one it takes the place of still stands. Whoever finds its judgment
//! recorded, superseded or not, is done.

use thought_contract::draft::{self, Draft, DraftError};
use thought_contract::event::{EventType, PayloadError, StoredEvent};
use thought_contract::payload::{ConversationText, CorrectionTarget, JudgmentKind, JudgmentRecorded};
use thought_contract::time::Clock;
use thought_protocol::EventId;
use thought_store::handle::{Judgments, Reader};
use thought_store::row::EventFilter;
use thought_store::{Precondition, StoreError};

use crate::chain::{Decided, SelfCorrection, judgment_id};
use crate::limits::JUDGMENT_TRIES_MAX;

/// A judgment that was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The store.
    #[error("record a judgment: reach the store")]
    Store(#[from] StoreError),
    /// It has no canonical form.
    #[error("record a judgment")]
    Draft(#[from] DraftError),
    /// A recorded one does not decode.
    #[error("read a judgment")]
    Payload(#[from] PayloadError),
}

/// The schema of every judgment.
pub(crate) const SCHEMA_VERSION: u32 = 2;
/// The version of every criterion.
pub(crate) const CRITERION_VERSION: u32 = 1;

/// On what a judgment rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// A model's correction of itself that a person let through.
    AgentSelfCorrection,
    /// A person's own correction.
    OperatorCorrection,
}

impl Criterion {
    /// The stable name; its version is 1.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentSelfCorrection => "agent-self-correction",
            Self::OperatorCorrection => "operator-correction",
        }
    }

    /// The criterion of a stable name.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::AgentSelfCorrection, Self::OperatorCorrection].into_iter().find(|known| known.as_str() == word)
    }
}

/// What is judged.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// On what it rests.
    pub criterion: Criterion,
    /// Whose word it is.
    pub actor: String,
    /// The output.
    pub target: CorrectionTarget,
    /// The full output it should have been.
    pub replacement: ConversationText,
    /// The decision or command.
    pub feedback: EventId,
    /// The proposal that the decision was on.
    pub proposal: Option<EventId>,
}

/// The verdict of a decided correction; none of a rejected one.
pub(crate) fn verdict(decided: &Decided<SelfCorrection>) -> Option<Verdict> {
    let decision = decided.decision();
    Some(Verdict {
        criterion: Criterion::AgentSelfCorrection,
        actor: decision.event().envelope.actor.as_str().to_owned(),
        target: decided.chain().subject().target.clone(),
        replacement: ConversationText { summary: decided.text()?.into_inner() },
        feedback: decision.id().clone(),
        proposal: Some(decided.chain().id().clone()),
    })
}

/// The judgment of a verdict in the place of the one that stands.
pub(crate) fn judgment(
    verdict: &Verdict,
    supersedes: Option<EventId>,
    clock: &dyn Clock,
) -> Result<Draft, DraftError> {
    let payload = JudgmentRecorded {
        schema_version: SCHEMA_VERSION,
        kind: JudgmentKind::Correct,
        criterion: verdict.criterion.as_str().to_owned(),
        criterion_version: CRITERION_VERSION,
        actor: verdict.actor.clone(),
        target: verdict.target.clone(),
        replacement: verdict.replacement.clone(),
        feedback: verdict.feedback.clone(),
        quality_eligible: true,
        external_export_eligible: false,
        supersedes,
    };
    draft::judgment_recorded(&payload, clock.now())
}

/// Records a judgment once, in the place of the one that stands: quality eligible, and never for the world outside.
///
/// # Errors
/// [`JudgeError`].
pub async fn record_judgment(
    (reader, judgments): (&Reader, &Judgments),
    clock: &dyn Clock,
    verdict: &Verdict,
) -> Result<EventId, JudgeError> {
    let id = judgment_id(&verdict.feedback);
    for _ in 0..JUDGMENT_TRIES_MAX {
        if reader.event(id.clone()).await?.is_some() {
            return Ok(id);
        }
        let output = verdict.target.output.clone();
        let active = reader.active_judgment(output.clone()).await?;
        let judgment = judgment(verdict, active.clone(), clock)?;
        match judgments.record(judgment, output, active, verdict.proposal.clone()).await {
            Ok(appended) => {
                tracing::info!(judgment = %appended.id, output = %verdict.target.output, "judgment recorded");
                return Ok(appended.id);
            }
            // Another judgment came first, maybe this very one by another process.
            Err(StoreError::Precondition(Precondition::ActiveJudgment) | StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::Precondition(Precondition::ActiveJudgment).into())
}

/// A judgment in the list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its event.
    pub event: StoredEvent,
    /// What it says.
    pub judgment: JudgmentRecorded,
    /// Whether it is the one that stands on its output.
    pub standing: Standing,
}

/// Whether a judgment counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Active,
    /// Another takes its place.
    Superseded,
}

/// Judgments behind a position, oldest first, at most `limit`.
///
/// # Errors
/// [`JudgeError`].
pub async fn list(reader: &Reader, after_position: u64, limit: u32) -> Result<Vec<Listed>, JudgeError> {
    let filter = EventFilter {
        types: vec![EventType::JudgmentRecorded],
        after_position,
        limit,
        ..EventFilter::default()
    };
    let mut listed = Vec::new();
    for event in reader.events(filter).await? {
        let judgment: JudgmentRecorded = event.payload()?;
        let active = reader.active_judgment(judgment.target.output.clone()).await?;
        let standing =
            if active.as_ref() == Some(&event.envelope.id) { Standing::Active } else { Standing::Superseded };
        listed.push(Listed { event, judgment, standing });
    }
    Ok(listed)
}
