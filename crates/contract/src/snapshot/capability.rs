//! The capability of a snapshot, read back from its indices.

use thought_protocol::EventId;
use thought_protocol::capability::PacketCapability;
use thought_protocol::proposal::{ProposalKind, ToolName};

use super::{Snapshot, TurnReference};
use crate::payload::{CorrectionTarget, MemoryTarget, OutputContract};

impl Snapshot {
    /// The exact document version that a memory change of this run is bound to.
    pub fn memory_target(&self) -> Option<MemoryTarget> {
        let document = self.document(self.capability.memory_target?)?;
        Some(MemoryTarget {
            source: document.source.clone(),
            document_id: document.document_id.clone(),
            path: document.path.clone(),
            version_id: document.version_id.clone(),
            sha256: document.sha256.clone(),
            content_type: document.content_type.clone(),
        })
    }

    /// What corrections of this run may be bound to, oldest first: `latest` is the last.
    pub fn correction_targets(&self) -> Vec<CorrectionTarget> {
        self.capability.correction_targets.iter().filter_map(|index| self.correction_target(*index)).collect()
    }

    /// What a correction of this output is bound to, if it may be corrected.
    pub fn correction_target_of(&self, output: &EventId) -> Option<CorrectionTarget> {
        self.capability
            .correction_targets
            .iter()
            .filter(|index| self.turn(**index).is_some_and(|turn| turn.event() == output))
            .find_map(|index| self.correction_target(*index))
    }

    fn correction_target(&self, index: u32) -> Option<CorrectionTarget> {
        // The message before an answer is the root of its lineage.
        let source_root = self.turn(index.checked_sub(1)?)?.event().clone();
        match self.turn(index)? {
            TurnReference::Assistant { event, run, delivery_receipt: Some(receipt), .. } => {
                Some(CorrectionTarget {
                    run: run.clone(),
                    output: event.clone(),
                    delivery_receipt: receipt.clone(),
                    source_root,
                    contract: OutputContract::ConversationText,
                })
            }
            TurnReference::Assistant { delivery_receipt: None, .. } | TurnReference::User { .. } => None,
        }
    }

    /// Every id that a proposal of this run may cite, in the order of the transcript.
    pub fn evidence_ids(&self) -> Vec<EventId> {
        let mut ids = Vec::new();
        for turn in self.capability.evidence.iter().filter_map(|index| self.turn(*index)) {
            ids.push(turn.event().clone());
            if let TurnReference::Assistant { delivery_receipt: Some(receipt), .. } = turn {
                ids.push(receipt.clone());
            }
        }
        ids
    }

    /// The capability as the packet carries it.
    pub fn packet_capability(&self) -> PacketCapability {
        PacketCapability {
            memory_target: self.capability.memory_target.is_some(),
            correction_targets: self.correction_targets().into_iter().map(|target| target.output).collect(),
            evidence: self.evidence_ids(),
        }
    }

    /// The tools on offer: declared, and with something to aim at.
    pub fn offered_tools(&self) -> Vec<ToolName> {
        let available = |kind| match kind {
            ProposalKind::MemoryChange => self.capability.memory_target.is_some(),
            ProposalKind::SelfCorrection => !self.capability.correction_targets.is_empty(),
            ProposalKind::FocusDeclaration => true,
        };
        ToolName::ALL
            .into_iter()
            .filter(|tool| self.declaration.proposals.contains(&tool.kind()) && available(tool.kind()))
            .collect()
    }
}
