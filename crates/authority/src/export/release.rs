//! A person lets a correction of their own leave the house: a judgment that says so takes the place of the one that does
//! not. What a model suggested and a person only let through is never released.

use thought_contract::draft::{self, DraftError};
use thought_contract::event::EventType;
use thought_contract::payload::JudgmentRecorded;
use thought_contract::time::Clock;
use thought_protocol::EventId;
use thought_store::handle::{Judgments, Reader};
use thought_store::{Images, Precondition, StoreError};

use super::Scope;
use super::evidence::{Examiner, judgment_of};
use super::exclusion::{Exclusion, Halt};
use crate::judge::Criterion;

/// A judgment that was not released. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// No such event.
    #[error("release a judgment: there is no event {id}")]
    NotFound {
        /// What was asked for.
        id: EventId,
    },
    /// Another kind of event.
    #[error("release a judgment: {id} is none")]
    NotAJudgment {
        /// What was asked for.
        id: EventId,
    },
    /// Not a person's own correction.
    #[error("release a judgment: only a person's own correction can leave the house, and {id} is none")]
    NotOwnCorrection {
        /// What was asked for.
        id: EventId,
    },
    /// Another judgment took its place.
    #[error("release a judgment: another judgment took the place of {id}")]
    Superseded {
        /// What was asked for.
        id: EventId,
    },
    /// Its frozen context shows what a model suggested and a person let through, which stays in the house.
    #[error("release a judgment: the context of {id} shows an answer in the words of a self-correction")]
    SelfCorrectionInContext {
        /// What was asked for.
        id: EventId,
    },
    /// Its chain does not hold, so no export would have it.
    #[error("release a judgment: its provenance does not hold ({code})")]
    Provenance {
        /// The reason an export would count.
        code: String,
    },
    /// The judgment has no canonical form.
    #[error("release a judgment")]
    Draft(#[from] DraftError),
    /// The store.
    #[error("release a judgment: reach the store")]
    Store(#[from] StoreError),
}

impl From<Halt> for ReleaseError {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Excluded(exclusion) => Self::Provenance { code: Exclusion::code(exclusion) },
            Halt::Store(error) => Self::Store(error),
        }
    }
}

/// A released judgment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// The judgment that stands now and may leave the house.
    pub judgment: EventId,
    /// The one whose place it took.
    pub supersedes: EventId,
}

/// Releases a person's own correction for external export. Releasing it again is the first release.
///
/// # Errors
/// [`ReleaseError`].
pub async fn release(
    (reader, judgments): (&Reader, &Judgments),
    images: &dyn Images,
    clock: &dyn Clock,
    (id, operator): (&EventId, &str),
) -> Result<Released, ReleaseError> {
    let event = reader.event(id.clone()).await?.ok_or_else(|| ReleaseError::NotFound { id: id.clone() })?;
    if event.envelope.event_type != EventType::JudgmentRecorded {
        return Err(ReleaseError::NotAJudgment { id: id.clone() });
    }
    let said = judgment_of(&event)?;
    if Criterion::from_word(&said.criterion) != Some(Criterion::OperatorCorrection) {
        return Err(ReleaseError::NotOwnCorrection { id: id.clone() });
    }
    // What the export would leave out is not released: the word would promise what never happens.
    Examiner::new((reader, images), Scope::External).example_of(&event).await.map_err(|halt| match halt {
        Halt::Excluded(Exclusion::SelfCorrectionInContext) => {
            ReleaseError::SelfCorrectionInContext { id: id.clone() }
        }
        other => other.into(),
    })?;
    let superseded = || ReleaseError::Superseded { id: id.clone() };
    let output = said.target.output.clone();
    if said.external_export_eligible {
        let stands = reader.active_judgment(output).await?.as_ref() == Some(id);
        let supersedes = said.supersedes.filter(|_| stands).ok_or_else(superseded)?;
        return Ok(Released { judgment: id.clone(), supersedes });
    }
    let payload = JudgmentRecorded {
        actor: format!("human:{operator}"),
        external_export_eligible: true,
        supersedes: Some(id.clone()),
        ..said
    };
    let draft = draft::judgment_recorded(&payload, clock.now())?;
    let released = Released { judgment: draft.id().clone(), supersedes: id.clone() };
    match judgments.record(draft, output.clone(), Some(id.clone()), None).await {
        Ok(_appended) => {
            tracing::info!(judgment = %released.judgment, supersedes = %id, "judgment released");
            Ok(released)
        }
        // Another took its place: this very release, or a newer correction.
        Err(StoreError::Precondition(Precondition::ActiveJudgment)) => {
            let active = reader.active_judgment(output).await?;
            if active.as_ref() == Some(&released.judgment) { Ok(released) } else { Err(superseded()) }
        }
        Err(error) => Err(error.into()),
    }
}
