//! Proposals: what the model may ask for, and nothing that it can do.
//!
//! Owns the three tools, their typed arguments, validators, schemas and fixed sentences. A value of these types is a
//! request with bounds; it grants nothing, names no path and decides no target that the snapshot did not admit.

use std::fmt;

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::canonical::{self, CanonicalError};
use crate::capability::PacketCapability;
use crate::id::EventId;
use crate::reason::FailReason;

pub mod correction;
pub mod focus;
mod members;
pub mod memory;
pub mod schema;

pub use correction::{CorrectionArguments, TargetOutput, resolve_target};
pub use focus::FocusDeclaration;
pub use memory::{MemoryChangeArguments, MemoryOperation};
pub use schema::{description, input_schema, manifest, request_schema};

/// The result that stands for every call of an earlier turn.
pub const NORMALIZED_RESULT: &str =
    "Captured as a durable proposal. It is inert: approval and application are pending.";

/// The tools, by the names that the model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// `request_memory_change`.
    RequestMemoryChange,
    /// `submit_correction`.
    SubmitCorrection,
    /// `propose_focus`.
    ProposeFocus,
}

impl ToolName {
    /// Every tool, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::RequestMemoryChange, Self::SubmitCorrection, Self::ProposeFocus];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequestMemoryChange => "request_memory_change",
            Self::SubmitCorrection => "submit_correction",
            Self::ProposeFocus => "propose_focus",
        }
    }

    /// The tool of this exact name.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    /// The kind of proposal that a call of it asks for.
    pub const fn kind(self) -> ProposalKind {
        match self {
            Self::RequestMemoryChange => ProposalKind::MemoryChange,
            Self::SubmitCorrection => ProposalKind::SelfCorrection,
            Self::ProposeFocus => ProposalKind::FocusDeclaration,
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The kinds of proposal, as declarations and events name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalKind {
    /// `memory-change`.
    MemoryChange,
    /// `self-correction`.
    SelfCorrection,
    /// `focus-declaration`.
    FocusDeclaration,
}

impl ProposalKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::MemoryChange, Self::SelfCorrection, Self::FocusDeclaration];

    /// The name in declarations and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MemoryChange => "memory-change",
            Self::SelfCorrection => "self-correction",
            Self::FocusDeclaration => "focus-declaration",
        }
    }

    /// The tool that asks for it.
    pub const fn tool(self) -> ToolName {
        match self {
            Self::MemoryChange => ToolName::RequestMemoryChange,
            Self::SelfCorrection => ToolName::SubmitCorrection,
            Self::FocusDeclaration => ToolName::ProposeFocus,
        }
    }
}

impl fmt::Display for ProposalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One validated call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProposalCall {
    /// A memory change.
    MemoryChange(MemoryChangeArguments),
    /// A correction of an earlier output.
    SelfCorrection(CorrectionArguments),
    /// A focus declaration.
    FocusDeclaration(FocusDeclaration),
}

impl ProposalCall {
    /// The kind of proposal.
    pub const fn kind(&self) -> ProposalKind {
        match self {
            Self::MemoryChange(_) => ProposalKind::MemoryChange,
            Self::SelfCorrection(_) => ProposalKind::SelfCorrection,
            Self::FocusDeclaration(_) => ProposalKind::FocusDeclaration,
        }
    }

    /// Reads the arguments of a call strictly: exact members, exact bounds, and nothing that the capability does not
    /// admit.
    ///
    /// # Errors
    /// The first member that breaks the contract.
    pub fn from_arguments(
        tool: ToolName,
        arguments: &Value,
        capability: &PacketCapability,
    ) -> Result<Self, ArgumentError> {
        match tool {
            ToolName::RequestMemoryChange => {
                MemoryChangeArguments::from_value(arguments, capability).map(Self::MemoryChange)
            }
            ToolName::SubmitCorrection => {
                CorrectionArguments::from_value(arguments, capability).map(Self::SelfCorrection)
            }
            ToolName::ProposeFocus => FocusDeclaration::from_value(arguments).map(Self::FocusDeclaration),
        }
    }

    /// The call with `latest` replaced by the output that it means; every other call as it is. `None` when the target
    /// is not admitted. What is stored and shown in history is always the resolved call.
    pub fn resolved(self, capability: &PacketCapability) -> Option<Self> {
        match self {
            Self::SelfCorrection(arguments) => {
                let target = resolve_target(&arguments.target_output, capability)?;
                let target_output = TargetOutput::Output(target);
                Some(Self::SelfCorrection(CorrectionArguments { target_output, ..arguments }))
            }
            Self::MemoryChange(_) | Self::FocusDeclaration(_) => Some(self),
        }
    }

    /// The arguments as canonical JSON text, as [`crate::packet::HistoryCall`] carries them. A correction must have its
    /// target resolved first: `latest` never stands in history.
    ///
    /// # Errors
    /// Never in practice: arguments hold strings and small integers alone.
    pub fn canonical_arguments(&self) -> Result<String, CanonicalError> {
        let value = match self {
            Self::MemoryChange(arguments) => serde_json::to_value(arguments),
            Self::SelfCorrection(arguments) => serde_json::to_value(arguments),
            Self::FocusDeclaration(declaration) => serde_json::to_value(declaration),
        };
        canonical::to_string(&value.map_err(CanonicalError::Serialize)?)
    }
}

/// The fixed sentence of a turn that made proposals and said nothing. It claims a durable proposal and no more, and
/// holds no id. `None` without a kind.
pub fn acknowledgment(kinds: &[ProposalKind]) -> Option<&'static str> {
    let has = |kind| kinds.contains(&kind);
    match (
        has(ProposalKind::MemoryChange),
        has(ProposalKind::SelfCorrection),
        has(ProposalKind::FocusDeclaration),
    ) {
        (true, false, false) => Some("I saved that as a memory suggestion."),
        (false, true, false) => Some("I saved that as a proposed correction."),
        (true, true, false) => Some("I saved those as memory and correction suggestions."),
        (false, false, true) => Some("I saved that as a focus proposal."),
        (true, false, true) => Some("I saved those as a memory suggestion and a focus proposal."),
        (false, true, true) => Some("I saved those as a proposed correction and a focus proposal."),
        (true, true, true) => {
            Some("I saved those as memory and correction suggestions and a focus proposal.")
        }
        (false, false, false) => None,
    }
}

/// What is wrong with a member of a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentFault {
    /// Missing.
    Missing,
    /// A member that the tool does not have.
    Unknown,
    /// Of another JSON type, or not one of the allowed values.
    Shape,
    /// A text or list shorter than its bound allows.
    Empty,
    /// A text or list over its bound.
    TooLong,
    /// Holds U+0000, or breaks its pattern.
    Characters,
    /// A number out of its range.
    Range,
    /// The same entry twice.
    Duplicate,
    /// Evidence that the snapshot did not admit.
    EvidenceNotAdmitted,
    /// A target that the snapshot did not admit.
    TargetNotAdmitted,
}

/// The first member of a call's arguments that breaks the contract. It holds no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read a call's arguments: {member} is out of contract ({fault:?})")]
pub struct ArgumentError {
    /// The member, as a fixed path; `.` for the object itself.
    pub member: &'static str,
    /// What is wrong with it.
    pub fault: ArgumentFault,
}

impl ArgumentError {
    /// The reason under which a run fails.
    pub const fn fail_reason(self) -> FailReason {
        match self.fault {
            ArgumentFault::EvidenceNotAdmitted => FailReason::EvidenceNotAdmitted,
            ArgumentFault::TargetNotAdmitted => FailReason::TargetNotAdmitted,
            ArgumentFault::Missing
            | ArgumentFault::Unknown
            | ArgumentFault::Shape
            | ArgumentFault::Empty
            | ArgumentFault::TooLong
            | ArgumentFault::Characters
            | ArgumentFault::Range
            | ArgumentFault::Duplicate => FailReason::ArgumentsInvalid,
        }
    }
}

/// The id under which history shows the call of a proposal: `call_` and 24 characters of the stable key of the
/// proposal event. Every provider takes it.
pub fn synthetic_call_id(proposal_event: &EventId) -> String {
    let key = crate::id::stable_key("call", &[proposal_event.into()]);
    key.chars().take(24).fold(String::from("call_"), |mut id, character| {
        id.push(character);
        id
    })
}
