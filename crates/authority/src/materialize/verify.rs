//! After the write: only what the scan recorded is receipted.

use std::sync::Arc;

use thought_contract::payload as p;
use thought_protocol::Sha256Hex;
use thought_store::row::{Existence, VersionRow};

use super::exchange::{Failed, Leftover};
use super::{MemoryMaterializer, Step, Written};
use crate::chain::{ChainError, Decided, MemoryChange, verify_version};
use crate::filesystem::version_id;
use crate::lock::RootGuard;
use crate::reason::Reason;

/// Where the document's pointer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pointer {
    /// At the new version: it was written under this very lock.
    NamesIt,
    /// At it or behind it: it was written under an earlier lock, and a person may have saved since.
    MayHaveMovedOn,
}

impl MemoryMaterializer {
    /// The receipt of a written change, if the scan recorded exactly it.
    pub(super) async fn verify(
        &self,
        guard: &Arc<RootGuard>,
        decided: &Decided<MemoryChange>,
        written: &Written,
    ) -> Step<p::MemoryMaterialized> {
        let Written { base, sha256, pointer } = written;
        let unchanged = base.sha256 == *sha256;
        let expected = if unchanged {
            base.version.clone()
        } else {
            version_id(&base.document, Some(&base.version), sha256)
        };
        let Some(row) = self.parts.reader.version(expected.clone()).await? else {
            return self.unrecorded(guard, decided, sha256.clone()).await;
        };
        let now = self.parts.reader.document(base.document.clone()).await?;
        let names_it = now.is_some_and(|now| now.existence == Existence::Present && now.version == expected);
        let placed = *pointer == Pointer::MayHaveMovedOn || names_it;
        let follows = unchanged || row.previous.as_ref() == Some(&base.version);
        if !(placed && follows && is_of_base(&row, base, sha256)) {
            return Ok(Err(mismatch()));
        }
        match verify_version(&self.parts.reader, &row).await {
            Ok(()) => {}
            Err(ChainError::Store(error)) => return Err(error.into()),
            Err(_not_what_was_written) => return Ok(Err(mismatch())),
        }
        Ok(Ok(p::MemoryMaterialized {
            proposal: decided.chain().id().clone(),
            decision: decided.decision().id().clone(),
            document_id: base.document.clone(),
            base_version_id: base.version.clone(),
            version_id: row.version,
            sha256: row.sha256,
            byte_count: row.byte_count,
            file_event: row.event,
        }))
    }

    /// The scan did not record the change: somebody saved over it first, or the scan is at fault.
    async fn unrecorded(
        &self,
        guard: &Arc<RootGuard>,
        decided: &Decided<MemoryChange>,
        sha256: Sha256Hex,
    ) -> Step<p::MemoryMaterialized> {
        let (stands, leftover) = self
            .at_site(guard, decided, move |site| {
                let stands = site.document().is(&sha256);
                (stands, if stands { Leftover::Kept } else { site.remove_temporary() })
            })
            .await?;
        let reason = if stands { Reason::ReceiptMismatch } else { Reason::StaleBase };
        Ok(Err(Failed { reason, leftover }))
    }
}

fn is_of_base(row: &VersionRow, base: &VersionRow, sha256: &Sha256Hex) -> bool {
    row.document == base.document
        && row.source == base.source
        && row.path == base.path
        && row.content_type == base.content_type
        && row.frontmatter_id == base.frontmatter_id
        && row.sha256 == *sha256
        && u64::try_from(row.content.expose().len()) == Ok(row.byte_count)
}

const fn mismatch() -> Failed {
    Failed { reason: Reason::ReceiptMismatch, leftover: Leftover::Kept }
}
