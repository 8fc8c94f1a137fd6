//! What became of a proposal: the decision on it and what followed, by the events that tell of it.
//!
//! The authority room's validator replays the chain first; what it refuses is told by link and reason, and nothing of it
//! is taken for granted.

use serde_json::{Value, json};
use thought_authority::chain::{
    ChainError, DecidedChain, Link, VerifiedDecision, judgment_id, validate_decision,
};
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::{DecisionReplacement, MaterializationFailed};
use thought_contract::review::visible;
use thought_protocol::EventId;
use thought_store::handle::Reader;
use thought_store::{Images, StoreError};

use super::super::decisions::chain_failure;
use crate::exit::Failure;
use crate::print::Content;

/// Events behind a decision that are looked at: one receipt, each reason once, a judgment and its successors.
const OUTCOMES_MAX: u32 = 64;

/// Where a proposal's chain stands.
#[derive(Debug)]
pub enum Evidence {
    /// It holds, and nobody has decided.
    Undecided,
    /// It holds, up to what followed.
    Decided(Box<VerifiedDecision>, Vec<Outcome>),
    /// Nobody decides on it.
    Inert,
    /// It does not hold.
    Refused(&'static str, &'static str),
}

/// An event that followed from a decision.
#[derive(Debug)]
pub struct Outcome {
    event: EventId,
    what: &'static str,
    reason: Option<String>,
}

/// Reads what became of a proposal.
///
/// # Errors
/// [`Failure`]: a store or an image that cannot be read, an event that does not decode.
pub async fn read(reader: &Reader, images: &dyn Images, proposal: &EventId) -> Result<Evidence, Failure> {
    let decided = match validate_decision(reader, images, proposal).await {
        Ok(decided) => decided,
        Err(ChainError::Inert { .. }) => return Ok(Evidence::Inert),
        Err(ChainError::Refused { link: Link::Decision, reason: "missing" }) => {
            return Ok(Evidence::Undecided);
        }
        Err(ChainError::Refused { link, reason }) => return Ok(Evidence::Refused(link.as_str(), reason)),
        // A page is shown all the same: what was proposed can be read without the image it came with.
        Err(ChainError::Images(_)) => {
            return Ok(Evidence::Refused(Link::Packet.as_str(), "image-unreadable"));
        }
        Err(error) => return Err(chain_failure(error)),
    };
    let outcomes = outcomes(reader, &decided).await?;
    Ok(Evidence::Decided(Box::new(decided.decision().clone()), outcomes))
}

async fn outcomes(reader: &Reader, decided: &DecidedChain) -> Result<Vec<Outcome>, Failure> {
    let decision = decided.decision().id();
    let followed = match decided {
        DecidedChain::Memory(_) => reader.children(decision.clone(), OUTCOMES_MAX).await?,
        DecidedChain::Correction(_) => own_judgment(reader, decision).await?,
    };
    let told = |event: &StoredEvent| {
        let (what, reason) = match event.envelope.event_type {
            EventType::MemoryMaterialized => ("materialized", None),
            EventType::JudgmentRecorded => ("judged", None),
            EventType::MaterializationFailed => {
                let failed: MaterializationFailed = match event.payload() {
                    Ok(failed) => failed,
                    Err(error) => return Some(Err(Failure::internal(&error))),
                };
                ("failed", Some(failed.reason))
            }
            _ => return None,
        };
        Some(Ok(Outcome { event: event.envelope.id.clone(), what, reason }))
    };
    followed.iter().filter_map(told).collect()
}

async fn own_judgment(reader: &Reader, decision: &EventId) -> Result<Vec<StoredEvent>, StoreError> {
    Ok(reader.event(judgment_id(decision)).await?.into_iter().collect())
}

impl Evidence {
    /// As members of `proposal-show --json`.
    pub fn add_to(&self, value: &mut Value, content: Content) {
        match self {
            Self::Undecided | Self::Inert => {}
            Self::Refused(link, reason) => value["refused"] = json!({"link": link, "reason": reason}),
            Self::Decided(decision, outcomes) => {
                value["decision"] = decision_json(decision, content);
                value["outcomes"] = outcomes.iter().map(outcome_json).collect();
            }
        }
    }

    /// As lines of the printed page.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Undecided | Self::Inert => Vec::new(),
            Self::Refused(link, reason) => vec![format!("refused   the {link} does not hold ({reason})")],
            Self::Decided(decision, outcomes) => {
                let (said, envelope) = (decision.payload(), &decision.event().envelope);
                let mut lines = vec![format!("decision  {}", decision.id())];
                lines.push(format!(
                    "          {} by {} on {}, {}",
                    said.disposition,
                    visible(envelope.actor.as_str()),
                    said.surface,
                    envelope.recorded_at
                ));
                if let Some(DecisionReplacement { length, sha256, .. }) = &said.replacement {
                    lines.push(format!("          with a text of {length} characters, sha256 {sha256}"));
                }
                lines.extend(outcomes.iter().map(|outcome| {
                    let reason = outcome.reason.as_ref().map_or(String::new(), |text| format!(" ({text})"));
                    format!("outcome   {}{reason}, {}", outcome.what, outcome.event)
                }));
                lines
            }
        }
    }

    /// The operator's own text, of an edit alone.
    pub fn replacement(&self) -> Option<&DecisionReplacement> {
        match self {
            Self::Decided(decision, _) => decision.payload().replacement.as_ref(),
            _ => None,
        }
    }
}

fn decision_json(decision: &VerifiedDecision, content: Content) -> Value {
    let said = decision.payload();
    let mut value = json!({
        "id": decision.id(), "disposition": said.disposition, "operator": said.operator,
        "surface": said.surface, "submissionId": said.submission_id,
        "recordedAt": decision.event().envelope.recorded_at,
    });
    if let Some(own) = &said.replacement {
        value["replacementLength"] = json!(own.length);
        value["replacementSha256"] = json!(own.sha256);
        if content == Content::Shown {
            value["replacement"] = json!(own.text);
        }
    }
    value
}

fn outcome_json(outcome: &Outcome) -> Value {
    let mut value = json!({"id": outcome.event, "outcome": outcome.what});
    if let Some(reason) = &outcome.reason {
        value["reason"] = json!(reason);
    }
    value
}
