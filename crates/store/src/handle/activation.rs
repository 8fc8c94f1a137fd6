//! Installing declaration versions.

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};

use super::{Writer, own};
use crate::command::{NewDeclaration, Op};
use crate::engine::StoreError;
use crate::row::Appended;

/// Installs declaration versions.
#[derive(Clone, Debug)]
pub struct Activator {
    writer: Writer,
}

impl Activator {
    pub(super) fn cut(writer: Writer) -> Self {
        Self { writer }
    }

    /// Makes a version the active one and says so in the log, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when another version is active than the one expected; [`StoreError::Role`] for
    /// another draft; any failure of the commit.
    pub async fn install(&self, event: Draft, declaration: NewDeclaration) -> Result<Appended, StoreError> {
        own(&event, &SourceName::new("system:activations"), &[EventType::DeclarationActivated])?;
        self.writer.commit_one(vec![Op::Append(Box::new(event)), Op::InstallDeclaration(declaration)]).await
    }
}
