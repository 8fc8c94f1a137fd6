//! A proposal with all that a reviewer sees of it: its text against what it would change, and whether that still stands.
//!
//! A memory change stands on a version of the document, and is stale when the document has moved on. A correction stands
//! on an answer as it counts now: it is shown against the judgment that is active on the answer, and is stale when a
//! judgment that is not its own was made behind it. Such a correction may still be let through; it takes the place of
//! that judgment.

use serde_json::{Value, json};
use thought_authority::chain::{decision_id, judgment_id};
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::{
    CorrectionProposed, CorrectionTarget, DerivedAgentMessage, Disposition, FocusProposed, JudgmentRecorded,
    MemoryChangeProposed, MemoryOperation, MemoryTarget, MessageObservation, OperatorMemoryChangeProposed,
    ProposalDecision, Purpose,
};
use thought_contract::review::{Review, Standing, Subject};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Sensitive};
use thought_store::handle::Reader;
use thought_store::row::{Base, ProposalRow, ProposalState};

use super::super::resolve::resolve;
use crate::exit::Failure;

/// The word of a repetition that was accepted and written.
const MATERIALIZED: &str = "materialized";
/// Repetitions of one proposal that are looked at, and repetitions of repetitions.
const REPETITIONS_MAX: u32 = 64;

/// What a proposal would change, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    /// The document, in the version that the proposal is bound to.
    Document(MemoryOperation, Sensitive<String>),
    /// An answer as it counts now: by this judgment, or as it was given.
    Answer(Option<EventId>, Sensitive<String>),
    /// Nothing.
    Nothing,
}

/// A proposal with everything that is shown of it.
#[derive(Debug)]
pub struct Shown {
    /// Its row, with what is stale marked so.
    pub row: ProposalRow,
    /// Its event.
    pub event: StoredEvent,
    /// How it looks.
    pub review: Review,
    /// What it is bound to, by ids.
    pub target: Value,
    /// What else it says; content.
    pub details: Value,
    /// What it would change.
    pub against: Against,
    /// What it was proposed again as, where a person did.
    pub again: Option<Again>,
}

/// What a proposal was proposed again as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    /// The repetition.
    pub proposal: EventId,
    /// What became of it, in a word: `materialized`, `rejected`, or the state it is in.
    pub state: &'static str,
}

impl Again {
    /// Whether the document holds, by this repetition, what was proposed.
    pub fn is_written(&self) -> bool {
        self.state == MATERIALIZED
    }
}

/// A proposal by its id or a beginning of it.
///
/// # Errors
/// [`Failure`]: no such proposal (5).
pub async fn find(reader: &Reader, text: &str) -> Result<ProposalRow, Failure> {
    let id: EventId = resolve(reader, text, "evt", "proposal").await?;
    reader.proposal(id.clone()).await?.ok_or_else(|| Failure::not_found("proposal", id.as_str()))
}

/// Everything that is shown of a proposal.
///
/// # Errors
/// [`Failure`]: a store that cannot be read, or does not hold what the proposal is bound to.
pub async fn load(reader: &Reader, row: ProposalRow) -> Result<Shown, Failure> {
    let event = event(reader, &row.proposal, "event").await?;
    let again = match row.kind {
        ProposalKind::MemoryChange => proposed_again(reader, &row.proposal).await?,
        ProposalKind::SelfCorrection | ProposalKind::FocusDeclaration => None,
    };
    let shown = match (row.kind, event.envelope.event_type) {
        (ProposalKind::MemoryChange, EventType::OperatorMemoryChangeProposed) => {
            operator_change(reader, row, event).await
        }
        (ProposalKind::MemoryChange, _) => memory_change(reader, row, event).await,
        (ProposalKind::SelfCorrection, _) => correction(reader, row, event).await,
        (ProposalKind::FocusDeclaration, _) => focus(row, event),
    };
    Ok(Shown { again, ..shown? })
}

/// What a proposal was proposed again as: the written repetition, else the newest, through repetitions of repetitions.
///
/// # Errors
/// [`Failure`]: a store that cannot be read.
pub async fn proposed_again(reader: &Reader, proposal: &EventId) -> Result<Option<Again>, Failure> {
    let (mut found, mut next) = (None, Some(proposal.clone()));
    for _ in 0..REPETITIONS_MAX {
        let Some(origin) = next.take() else { break };
        for child in reader.children(origin, REPETITIONS_MAX).await? {
            if child.envelope.event_type != EventType::OperatorMemoryChangeProposed {
                continue;
            }
            let payload: OperatorMemoryChangeProposed =
                child.payload().map_err(|error| Failure::internal(&error))?;
            if payload.purpose != Purpose::Repropose {
                continue;
            }
            let Some(again) = became(reader, child.envelope.id).await? else { continue };
            if again.is_written() {
                return Ok(Some(again));
            }
            next = Some(again.proposal.clone());
            found = Some(again);
        }
    }
    Ok(found)
}

async fn became(reader: &Reader, proposal: EventId) -> Result<Option<Again>, Failure> {
    let Some(row) = reader.proposal(proposal.clone()).await? else { return Ok(None) };
    let state = match (row.state, reader.event(decision_id(&proposal)).await?) {
        (ProposalState::Projected, Some(decision)) => {
            let decision: ProposalDecision = decision.payload().map_err(|error| Failure::internal(&error))?;
            if decision.disposition == Disposition::Reject { "rejected" } else { MATERIALIZED }
        }
        (state, _) => state.as_str(),
    };
    Ok(Some(Again { proposal, state }))
}

impl Shown {
    /// How the operator's own text would look in the place of the proposed one; none of what cannot be edited.
    pub fn edited(&self, text: &str) -> Option<Review> {
        let standing = standing(&self.row);
        match &self.against {
            Against::Document(operation, base) => {
                Some(Review::of_memory(*operation, (text, ""), base.expose(), standing))
            }
            Against::Answer(_, answer) => Some(Review::of_answer((text, ""), answer.expose(), standing)),
            Against::Nothing => None,
        }
    }
}

fn standing(row: &ProposalRow) -> Standing {
    match row.base {
        Base::Current => Standing::Current,
        Base::Stale => Standing::Stale,
    }
}

async fn event(reader: &Reader, id: &EventId, what: &str) -> Result<StoredEvent, Failure> {
    reader.event(id.clone()).await?.ok_or_else(|| Failure::not_found(what, id.as_str()))
}

async fn memory_change(reader: &Reader, row: ProposalRow, event: StoredEvent) -> Result<Shown, Failure> {
    let payload: MemoryChangeProposed = event.payload().map_err(|error| Failure::internal(&error))?;
    let base = base_text(reader, &payload.target).await?;
    let review = Review::of(Subject::MemoryChange(&payload, &base), standing(&row));
    Ok(Shown {
        review: review.map_err(|error| Failure::internal(&error))?,
        target: json!(payload.target),
        details: json!({
            "operation": payload.operation, "reason": payload.reason, "evidence": payload.evidence,
        }),
        against: Against::Document(payload.operation, base),
        again: None,
        row,
        event,
    })
}

async fn operator_change(reader: &Reader, row: ProposalRow, event: StoredEvent) -> Result<Shown, Failure> {
    let payload: OperatorMemoryChangeProposed = event.payload().map_err(|error| Failure::internal(&error))?;
    let base = base_text(reader, &payload.target).await?;
    let review = Review::of(Subject::OperatorChange(&payload, &base), standing(&row));
    Ok(Shown {
        review: review.map_err(|error| Failure::internal(&error))?,
        target: json!(payload.target),
        details: json!({
            "operation": payload.operation, "origin": payload.origin, "purpose": payload.purpose,
        }),
        against: Against::Document(payload.operation, base),
        again: None,
        row,
        event,
    })
}

async fn correction(reader: &Reader, mut row: ProposalRow, event: StoredEvent) -> Result<Shown, Failure> {
    let payload: CorrectionProposed = event.payload().map_err(|error| Failure::internal(&error))?;
    let effective = effective(reader, &row, &payload.target).await?;
    row.base = effective.base;
    let review = Review::of(Subject::Correction(&payload, &effective.text), standing(&row));
    Ok(Shown {
        review: review.map_err(|error| Failure::internal(&error))?,
        target: json!(payload.target),
        details: json!({"reason": payload.reason, "evidence": payload.evidence}),
        against: Against::Answer(effective.judgment, effective.text),
        again: None,
        row,
        event,
    })
}

fn focus(row: ProposalRow, event: StoredEvent) -> Result<Shown, Failure> {
    let payload: FocusProposed = event.payload().map_err(|error| Failure::internal(&error))?;
    let review = Review::of(Subject::Focus(&payload), standing(&row));
    Ok(Shown {
        review: review.map_err(|error| Failure::internal(&error))?,
        target: json!({"fingerprint": payload.fingerprint}),
        details: json!({"authority": payload.authority, "resolution": payload.resolution}),
        against: Against::Nothing,
        again: None,
        row,
        event,
    })
}

/// The document's text in the version that a change is bound to. One that is no text could not have been a target.
async fn base_text(reader: &Reader, target: &MemoryTarget) -> Result<Sensitive<String>, Failure> {
    let version = reader.version(target.version_id.clone()).await?;
    let version = version.ok_or_else(|| Failure::not_found("version", target.version_id.as_str()))?;
    Ok(Sensitive::new(String::from_utf8_lossy(version.content.expose()).into_owned()))
}

/// What an answer says, as a correction of it is held against it.
struct Effective {
    judgment: Option<EventId>,
    text: Sensitive<String>,
    base: Base,
}

/// The answer as it counted before this correction: by the judgment that its own one took the place of, else by the
/// active one, else as it was given.
async fn effective(
    reader: &Reader,
    row: &ProposalRow,
    target: &CorrectionTarget,
) -> Result<Effective, Failure> {
    let active = match reader.active_judgment(target.output.clone()).await? {
        Some(id) => Some(event(reader, &id, "judgment").await?),
        None => None,
    };
    let own = judgment_id(&decision_id(&row.proposal));
    let is_behind = |found: &StoredEvent| found.envelope.id != own && found.envelope.position > row.position;
    let base = if active.as_ref().is_some_and(is_behind) { Base::Stale } else { Base::Current };
    let before = match reader.event(own).await? {
        Some(own) => match judgment(&own)?.supersedes {
            Some(id) => Some(event(reader, &id, "judgment").await?),
            None => None,
        },
        None => active,
    };
    let text = match &before {
        Some(before) => Sensitive::new(judgment(before)?.replacement.summary),
        None => answer_text(reader, &target.output).await?,
    };
    Ok(Effective { judgment: before.map(|before| before.envelope.id), text, base })
}

fn judgment(event: &StoredEvent) -> Result<JudgmentRecorded, Failure> {
    event.payload().map_err(|error| Failure::internal(&error))
}

/// What an answer says as it was given.
async fn answer_text(reader: &Reader, output: &EventId) -> Result<Sensitive<String>, Failure> {
    let event = event(reader, output, "output").await?;
    let said = match event.envelope.event_type {
        EventType::DerivedAgentMessage => event.payload::<DerivedAgentMessage>().map(|output| output.summary),
        _ => event.payload::<MessageObservation>().map(|output| output.summary),
    };
    said.map(Sensitive::new).map_err(|error| Failure::internal(&error))
}
