//! Installing declaration versions.

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};

use thought_contract::run::{BlockedReason, RunState};
use thought_protocol::RunId;

use super::{Writer, own};
use crate::command::{NewDeclaration, NewRun, Op};
use crate::engine::StoreError;
use crate::row::{Appended, ChangeoverRow};

/// A run that the version before leaves open.
#[derive(Debug, Clone)]
pub struct Superseded {
    /// The run.
    pub run: RunId,
    /// The event that ends it.
    pub terminal: Draft,
    /// The new version's run on the same trigger.
    pub anew: NewRun,
}

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
    /// As [`Activator::take_over`].
    pub async fn install(&self, event: Draft, declaration: NewDeclaration) -> Result<Appended, StoreError> {
        self.take_over(event, declaration, Vec::new(), None).await
    }

    /// Makes a version the active one and says so in the log; the runs that the version before leaves open end as
    /// superseded, each with a run of the new version on its trigger; and the change is over. All in one commit.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when another version is active than the one expected, or a run moved meanwhile;
    /// [`StoreError::Role`] for another draft; any failure of the commit.
    pub async fn take_over(
        &self,
        event: Draft,
        declaration: NewDeclaration,
        superseded: Vec<Superseded>,
        token: Option<String>,
    ) -> Result<Appended, StoreError> {
        own(&event, &SourceName::new("system:activations"), &[EventType::DeclarationActivated])?;
        let id = declaration.id.clone();
        let mut ops = vec![Op::Append(Box::new(event))];
        for old in superseded {
            own(&old.terminal, &SourceName::agent(&id), &[EventType::RunBlocked])?;
            let terminal = old.terminal.id().clone();
            ops.push(Op::Append(Box::new(old.terminal)));
            ops.push(Op::EndRun {
                run: old.run,
                state: RunState::Blocked,
                reason: Some(BlockedReason::Superseded.as_str().to_owned()),
                output: None,
                terminal,
            });
            ops.push(Op::AdmitRun(old.anew));
        }
        ops.push(Op::InstallDeclaration(declaration));
        ops.extend(token.map(|token| Op::ClearChangeover { declaration: id, token }));
        let committed = self.writer.commit(ops).await?;
        committed.appended.into_iter().next().ok_or(StoreError::Engine {
            operation: "append an event",
            what: "the engine named no event".to_owned(),
        })
    }

    /// Asks the roles for something.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn ask(&self, changeover: ChangeoverRow) -> Result<(), StoreError> {
        self.writer.commit(vec![Op::PutChangeover(changeover)]).await.map(drop)
    }

    /// Says that a role did what a change asks of it.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when that change is over; any failure of the commit.
    pub async fn acknowledge(&self, declaration: &str, token: &str, role: &str) -> Result<(), StoreError> {
        let op = Op::AckChangeover {
            declaration: declaration.to_owned(),
            token: token.to_owned(),
            role: role.to_owned(),
        };
        self.writer.commit(vec![op]).await.map(drop)
    }

    /// Gives a change up: the version before goes on.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn withdraw(&self, declaration: &str, token: &str) -> Result<(), StoreError> {
        let op = Op::ClearChangeover { declaration: declaration.to_owned(), token: token.to_owned() };
        self.writer.commit(vec![op]).await.map(drop)
    }
}
