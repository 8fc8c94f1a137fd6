//! `request_memory_change`: text that the model would like to see in the memory document.
//!
//! The model never supplies a path, document, version or hash; the parent binds those from the snapshot.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::members::Members;
use super::{ArgumentError, ArgumentFault};
use crate::capability::PacketCapability;
use crate::id::EventId;
use crate::limits::{PROPOSED_TEXT_CHARACTERS_MAX, REASON_CHARACTERS_MAX};

/// How the text would enter the memory document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryOperation {
    /// `append`: the document is kept and the text added.
    Append,
    /// `replace-document`: the text stands in place of the whole document.
    ReplaceDocument,
}

impl MemoryOperation {
    /// The name on the wire and in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::ReplaceDocument => "replace-document",
        }
    }
}

/// The arguments of `request_memory_change`, under the tool's own member names.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct MemoryChangeArguments {
    /// How.
    pub operation: MemoryOperation,
    /// The text, 1–32,768 characters.
    pub proposed_text: String,
    /// Why, 1–1,000 characters.
    pub reason: String,
    /// At most 16 admitted ids, unique.
    pub evidence_event_ids: Vec<EventId>,
}

impl MemoryChangeArguments {
    /// The members, all required.
    pub const MEMBERS: [&'static str; 4] = ["operation", "proposed_text", "reason", "evidence_event_ids"];

    /// Reads the arguments strictly against the capability.
    ///
    /// # Errors
    /// The first member that breaks the contract; without a memory target, the call itself.
    pub fn from_value(value: &Value, capability: &PacketCapability) -> Result<Self, ArgumentError> {
        if !capability.memory_target {
            return Err(ArgumentError { member: ".", fault: ArgumentFault::TargetNotAdmitted });
        }
        let members = Members::of(value, ".", &Self::MEMBERS)?;
        Ok(Self {
            operation: members.choice(
                "operation",
                &[
                    (MemoryOperation::Append.as_str(), MemoryOperation::Append),
                    (MemoryOperation::ReplaceDocument.as_str(), MemoryOperation::ReplaceDocument),
                ],
            )?,
            proposed_text: members.text("proposed_text", PROPOSED_TEXT_CHARACTERS_MAX)?,
            reason: members.text("reason", REASON_CHARACTERS_MAX)?,
            evidence_event_ids: members.evidence("evidence_event_ids", capability)?,
        })
    }
}

impl fmt::Debug for MemoryChangeArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryChangeArguments")
            .field("operation", &self.operation)
            .field("proposed_text_bytes", &self.proposed_text.len())
            .field("reason_bytes", &self.reason.len())
            .field("evidence", &self.evidence_event_ids.len())
            .finish()
    }
}
