//! A person proposes: the same change again on the current base, or back to the version before a change.
//!
//! Nothing is rebased and nothing is decided here: an operator's proposal waits for a word like any other.

use std::sync::Arc;

use thought_contract::draft::{self, DraftError};
use thought_contract::payload::{
    MemoryOperation, MemoryTarget, No, OperatorMemoryChangeProposed, OperatorProposed, Purpose,
};
use thought_contract::time::Clock;
use thought_protocol::limits::{DOCUMENT_BYTES_MAX_CEILING, EVENT_PAYLOAD_BYTES_MAX};
use thought_protocol::{EventId, Sensitive, Sha256Hex};
use thought_store::StoreError;
use thought_store::command::BaseVersion;
use thought_store::handle::{OperatorProposals, Reader};
use thought_store::row::{Existence, Novelty};

use crate::chain::{self, ChainError, MemoryChange, Verified, VerifiedChain, before_the_change};
use crate::decide::{DecideError, Operators};
use crate::filesystem::{FilesystemConnector, ScanError};
use crate::limits::LINEAGE_DEPTH_MAX;
use thought_store::Images;

/// A proposal that was not made. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// The origin's chain does not hold; a change that was never written cannot be reverted.
    #[error("propose again")]
    Chain(#[from] ChainError),
    /// The origin is no memory change.
    #[error("propose again: only a memory change can be")]
    Kind,
    /// The person.
    #[error("propose again")]
    Actor(#[source] DecideError),
    /// The document is not there.
    #[error("propose again: the document is not there")]
    NoBase,
    /// The origin is on the current base: it can be accepted as it is.
    #[error("propose again: the proposal stands on the current base")]
    Current,
    /// The origin was itself proposed again as often as can be verified.
    #[error("propose again: it goes back through {LINEAGE_DEPTH_MAX} proposals, and no more can be verified")]
    TooDeep,
    /// The version before is empty, too large, or no text.
    #[error("propose again: the version before is not within its bounds")]
    Text,
    /// Written down, it is more than an event may hold.
    #[error("propose again: the text is longer than an event may be")]
    TooLarge,
    /// The documents could not be looked at.
    #[error("propose again: look at the documents")]
    Scan(#[from] ScanError),
    /// It has no canonical form.
    #[error("propose again")]
    Draft(#[from] DraftError),
    /// Another proposal of that identity stands.
    #[error("propose again: another operator made that proposal")]
    Conflict,
    /// The store.
    #[error("propose again: reach the store")]
    Store(#[source] StoreError),
}

impl From<StoreError> for ProposeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Conflict,
            other => Self::Store(other),
        }
    }
}

/// An operator's proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    /// Its event.
    pub proposal: EventId,
    /// What it goes back to.
    pub origin: EventId,
    /// Why.
    pub purpose: Purpose,
    /// Whether this call made it.
    pub novelty: Novelty,
}

/// Where operators propose.
#[derive(Clone)]
pub struct OperatorDesk {
    reader: Reader,
    store: OperatorProposals,
    images: Arc<dyn Images>,
    connector: FilesystemConnector,
    operators: Operators,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for OperatorDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorDesk").field("operators", &self.operators).finish_non_exhaustive()
    }
}

impl OperatorDesk {
    /// A desk of these people.
    pub fn new(
        (reader, store): (Reader, OperatorProposals),
        images: Arc<dyn Images>,
        connector: FilesystemConnector,
        operators: Operators,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { reader, store, images, connector, operators, clock }
    }

    /// Proposes the same change on the current base.
    ///
    /// # Errors
    /// [`ProposeError`]; [`ProposeError::Current`] when nothing moved.
    pub async fn repropose(&self, origin: &EventId, actor: Option<&str>) -> Result<Proposed, ProposeError> {
        let origin = self.origin(origin).await?;
        let target = self.current(&origin).await?;
        let subject = origin.subject();
        if target.version_id == subject.target.version_id {
            return Err(ProposeError::Current);
        }
        let change = (subject.operation, subject.text.clone());
        self.propose(&origin, Purpose::Repropose, change, target, actor).await
    }

    /// Proposes to put the version before a materialized change in the place of the document.
    ///
    /// # Errors
    /// [`ProposeError`].
    pub async fn revert(&self, origin: &EventId, actor: Option<&str>) -> Result<Proposed, ProposeError> {
        let origin = self.origin(origin).await?;
        let before = before_the_change(&self.reader, &origin).await?;
        let is_bounded = (1..=DOCUMENT_BYTES_MAX_CEILING).contains(&before.byte_count);
        let text = match String::from_utf8(before.content.into_inner()) {
            Ok(text) if is_bounded => text,
            Ok(_) => return Err(ProposeError::Text),
            Err(_content_dark) => return Err(ProposeError::Text),
        };
        let target = self.current(&origin).await?;
        let change = (MemoryOperation::ReplaceDocument, Sensitive::new(text));
        self.propose(&origin, Purpose::Revert, change, target, actor).await
    }

    async fn origin(&self, origin: &EventId) -> Result<VerifiedChain<MemoryChange>, ProposeError> {
        match chain::validate(&self.reader, &*self.images, origin).await {
            Ok(Verified::Memory(chain)) => Ok(chain),
            Ok(Verified::Correction(_)) | Err(ChainError::Inert { .. }) => Err(ProposeError::Kind),
            Err(error) => Err(error.into()),
        }
    }

    /// The document as it stands, after a look at the files.
    async fn current(&self, origin: &VerifiedChain<MemoryChange>) -> Result<MemoryTarget, ProposeError> {
        self.connector.refresh().await?;
        let document = origin.subject().target.document_id.clone();
        let row = self.reader.document(document).await?;
        let row = row.filter(|row| row.existence == Existence::Present).ok_or(ProposeError::NoBase)?;
        let version = self.reader.version(row.version).await?.ok_or(ProposeError::NoBase)?;
        Ok(MemoryTarget {
            source: version.source,
            document_id: version.document,
            path: version.path,
            version_id: version.version,
            sha256: version.sha256,
            content_type: version.content_type,
        })
    }

    async fn propose(
        &self,
        origin: &VerifiedChain<MemoryChange>,
        purpose: Purpose,
        (operation, text): (MemoryOperation, Sensitive<String>),
        target: MemoryTarget,
        actor: Option<&str>,
    ) -> Result<Proposed, ProposeError> {
        let operator = self.operators.choose(actor).map_err(ProposeError::Actor)?;
        if !chain::has_room_behind(&self.reader, origin.id()).await? {
            return Err(ProposeError::TooDeep);
        }
        let base = BaseVersion { document: target.document_id.clone(), version: target.version_id.clone() };
        let text = text.into_inner();
        let payload = OperatorMemoryChangeProposed {
            proposal_state: OperatorProposed::OperatorProposed,
            origin: origin.id().clone(),
            purpose,
            operation,
            text_length: u64::try_from(text.chars().count()).unwrap_or(u64::MAX),
            text_sha256: Sha256Hex::of(text.as_bytes()),
            proposed_text: text,
            target,
            operator: operator.to_owned(),
            publication_eligible: No,
        };
        let now = self.clock.now();
        let draft = draft::operator_memory_change_proposed(origin.proposal(), &payload, now)?;
        if draft.payload().expose().len() > EVENT_PAYLOAD_BYTES_MAX {
            return Err(ProposeError::TooLarge);
        }
        let appended = self.store.propose(draft, base).await?;
        tracing::info!(proposal = %appended.id, origin = %origin.id(), "operator's proposal recorded");
        Ok(Proposed {
            proposal: appended.id,
            origin: origin.id().clone(),
            purpose,
            novelty: appended.novelty,
        })
    }
}
