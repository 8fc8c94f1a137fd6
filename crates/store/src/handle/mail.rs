//! The producer of one agent's private messages.

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};

use super::{Writer, own};
use crate::command::Op;
use crate::engine::StoreError;
use crate::row::Appended;

/// Appends private messages of one sender.
#[derive(Clone, Debug)]
pub struct AgentMail {
    writer: Writer,
    source: SourceName,
}

impl AgentMail {
    pub(super) fn cut(writer: Writer, sender: &str) -> Self {
        Self { writer, source: SourceName::agent_message(sender) }
    }

    /// Appends a message; the same one again is the first.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] for another text under the same identity; [`StoreError::Role`] for another sender's
    /// draft; any failure of the commit.
    pub async fn send(&self, draft: Draft) -> Result<Appended, StoreError> {
        own(&draft, &self.source, &[EventType::AgentMessage])?;
        self.writer.commit_one(vec![Op::Append(Box::new(draft))]).await
    }
}
