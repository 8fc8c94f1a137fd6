//! The connector of the context root: what a scan found.

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};
use thought_protocol::{DocumentId, VersionId};

use super::{Writer, own};
use crate::command::{NewVersion, Op};
use crate::engine::StoreError;
use crate::row::Appended;

/// Appends scanned versions and moves the documents' pointers.
#[derive(Clone, Debug)]
pub struct Filesystem {
    writer: Writer,
    source: SourceName,
}

impl Filesystem {
    pub(super) fn cut(writer: Writer) -> Self {
        Self { writer, source: SourceName::context() }
    }

    /// Keeps a version, its event and the pointer to it, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when the pointer names another version than `version.previous`;
    /// [`StoreError::Role`] for another draft; any failure of the commit.
    pub async fn version(&self, event: Draft, version: NewVersion) -> Result<Appended, StoreError> {
        own(&event, &self.source, &[EventType::FileVersion])?;
        self.writer.commit_one(vec![Op::Append(Box::new(event)), Op::PutVersion(version)]).await
    }

    /// Records that a document is gone.
    ///
    /// # Errors
    /// As [`Filesystem::version`].
    pub async fn removed(
        &self,
        event: Draft,
        document: DocumentId,
        previous: VersionId,
    ) -> Result<Appended, StoreError> {
        own(&event, &self.source, &[EventType::FileRemoved])?;
        let op = Op::RemoveDocument { document, previous };
        self.writer.commit_one(vec![Op::Append(Box::new(event)), op]).await
    }
}
