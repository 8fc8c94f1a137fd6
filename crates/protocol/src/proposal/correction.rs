//! `submit_correction`: other words for something that the assistant said and that was delivered.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::members::Members;
use super::{ArgumentError, ArgumentFault};
use crate::capability::PacketCapability;
use crate::id::EventId;
use crate::limits::{REASON_CHARACTERS_MAX, REPLACEMENT_CHARACTERS_MAX};

/// Which output is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetOutput {
    /// The literal `latest`. It is resolved by the parent and stands in no event.
    Latest,
    /// An exact output event.
    Output(EventId),
}

/// The literal that stands for the most recent target.
pub const LATEST: &str = "latest";

impl TargetOutput {
    /// The written form.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Latest => LATEST,
            Self::Output(id) => id.as_str(),
        }
    }
}

impl Serialize for TargetOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The arguments of `submit_correction`, under the tool's own member names.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct CorrectionArguments {
    /// Which output is meant.
    pub target_output: TargetOutput,
    /// What it should have said, 1–4,096 characters.
    pub replacement: String,
    /// Why, 1–1,000 characters.
    pub reason: String,
    /// At most 16 admitted ids, unique.
    pub evidence_event_ids: Vec<EventId>,
}

impl CorrectionArguments {
    /// The members, all required.
    pub const MEMBERS: [&'static str; 4] = ["target_output", "replacement", "reason", "evidence_event_ids"];

    /// Reads the arguments strictly against the capability. `latest` stays `latest` here, and is refused when there is
    /// nothing that it could mean.
    ///
    /// # Errors
    /// The first member that breaks the contract.
    pub fn from_value(value: &Value, capability: &PacketCapability) -> Result<Self, ArgumentError> {
        let members = Members::of(value, ".", &Self::MEMBERS)?;
        Ok(Self {
            target_output: read_target(members.string("target_output")?, capability)?,
            replacement: members.text("replacement", REPLACEMENT_CHARACTERS_MAX)?,
            reason: members.text("reason", REASON_CHARACTERS_MAX)?,
            evidence_event_ids: members.evidence("evidence_event_ids", capability)?,
        })
    }
}

fn read_target(text: &str, capability: &PacketCapability) -> Result<TargetOutput, ArgumentError> {
    let target = if text == LATEST {
        Some(TargetOutput::Latest)
    } else {
        capability.correction_targets.iter().find(|id| id.as_str() == text).cloned().map(TargetOutput::Output)
    };
    target
        .filter(|target| resolve_target(target, capability).is_some())
        .ok_or(ArgumentError { member: "target_output", fault: ArgumentFault::TargetNotAdmitted })
}

impl fmt::Debug for CorrectionArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorrectionArguments")
            .field("target_output", &self.target_output)
            .field("replacement_bytes", &self.replacement.len())
            .field("reason_bytes", &self.reason.len())
            .field("evidence", &self.evidence_event_ids.len())
            .finish()
    }
}

/// The output that a call means: `latest` is the most recent target, an exact id must be a target. Admitted evidence
/// is no target.
pub fn resolve_target(target: &TargetOutput, capability: &PacketCapability) -> Option<EventId> {
    match target {
        TargetOutput::Latest => capability.latest_target().cloned(),
        TargetOutput::Output(id) => capability.admits_target(id).then(|| id.clone()),
    }
}
