//! The part of a snapshot's capability that the jail must know: what a call of this turn may aim at and cite.
//!
//! It holds ids alone. Paths, documents, versions and hashes of targets stay with the parent; a worker that lies about
//! them has nothing to lie with.

use serde::{Deserialize, Serialize};

use crate::id::EventId;

/// What the calls of one turn may aim at and cite, as the packet carries it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PacketCapability {
    /// Whether the snapshot holds the exact current memory document, so that a memory change has a target.
    pub memory_target: bool,
    /// Output events that may be corrected, oldest first: `latest` is the last of them.
    pub correction_targets: Vec<EventId>,
    /// Every event id that a call may cite as evidence. Being here makes no event a target.
    pub evidence: Vec<EventId>,
}

impl PacketCapability {
    /// Whether this output may be corrected.
    pub fn admits_target(&self, output: &EventId) -> bool {
        self.correction_targets.contains(output)
    }

    /// Whether a call may cite this event.
    pub fn admits_evidence(&self, event: &EventId) -> bool {
        self.evidence.contains(event)
    }

    /// The most recent output that may be corrected: what `latest` stands for.
    pub fn latest_target(&self) -> Option<&EventId> {
        self.correction_targets.last()
    }
}
