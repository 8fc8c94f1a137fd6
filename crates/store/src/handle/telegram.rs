//! The ingress of a Telegram source: raw updates are spooled, then become events.

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};
use thought_protocol::Sensitive;

use super::{Writer, own};
use crate::command::Op;
use crate::engine::StoreError;
use crate::row::Appended;

/// A raw update as it arrived.
#[derive(Debug, Clone)]
pub struct RawUpdate {
    /// Its id.
    pub update: i64,
    /// Its bytes.
    pub body: Sensitive<Vec<u8>>,
}

/// A chat that wrote and is not admitted.
#[derive(Debug, Clone)]
pub struct RefusedChat {
    /// The chat.
    pub chat: i64,
    /// Its kind, as Telegram names it.
    pub kind: String,
}

/// Spools updates and turns them into events of one source.
#[derive(Clone, Debug)]
pub struct TelegramIngress {
    writer: Writer,
    source: SourceName,
    notices: SourceName,
}

impl TelegramIngress {
    pub(super) fn cut(writer: Writer, source: SourceName) -> Self {
        Self { writer, source, notices: SourceName::new("notices:telegram") }
    }

    /// The source this handle owns.
    pub fn source(&self) -> &SourceName {
        &self.source
    }

    /// Keeps admitted updates and counts refused chats, in one commit. Known updates are left as they are. Nothing to do
    /// is no commit.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed: then nothing may be acknowledged to Telegram.
    pub async fn spool(&self, updates: Vec<RawUpdate>, refused: Vec<RefusedChat>) -> Result<(), StoreError> {
        let channel = &self.source;
        let kept = updates.into_iter().map(|raw| Op::SpoolPut {
            channel: channel.clone(),
            update: raw.update,
            body: raw.body,
        });
        let counted = refused.into_iter().map(|chat| Op::CountRefusedChat {
            channel: channel.clone(),
            chat: chat.chat,
            kind: chat.kind,
        });
        let ops: Vec<Op> = kept.chain(counted).collect();
        if ops.is_empty() {
            return Ok(());
        }
        self.writer.commit(ops).await.map(drop)
    }

    /// Turns spooled updates (several where an album came in parts) into one event, and forgets them, in one commit. The
    /// event may be a message, a command, or the request of a notice.
    ///
    /// # Errors
    /// [`StoreError::Role`] for any other draft; any failure of the commit.
    pub async fn admit(&self, updates: &[i64], draft: Draft) -> Result<Appended, StoreError> {
        let ops = self.admission(updates, [draft])?;
        self.writer.commit_one(ops).await
    }

    /// As [`Self::admit`], with the request of a notice beside the event: of an album, part was read and part was not.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub async fn admit_in_part(
        &self,
        updates: &[i64],
        draft: Draft,
        notice: Draft,
    ) -> Result<Appended, StoreError> {
        let ops = self.admission(updates, [draft, notice])?;
        self.writer.commit_one(ops).await
    }

    fn admission<const N: usize>(&self, updates: &[i64], drafts: [Draft; N]) -> Result<Vec<Op>, StoreError> {
        let mut ops = Vec::with_capacity(N + updates.len());
        for draft in drafts {
            if draft.event_type() == EventType::NoticeRequested {
                own(&draft, &self.notices, &[EventType::NoticeRequested])?;
            } else {
                own(&draft, &self.source, &[EventType::TelegramMessage, EventType::TelegramCommand])?;
            }
            ops.push(Op::Append(Box::new(draft)));
        }
        ops.extend(self.deletions(updates));
        Ok(ops)
    }

    /// Forgets spooled updates that make no event.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn forget(&self, updates: &[i64]) -> Result<(), StoreError> {
        self.writer.commit(self.deletions(updates).collect()).await.map(drop)
    }

    /// Counts a failed try of a spooled update.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn failed(&self, update: i64) -> Result<(), StoreError> {
        let op = Op::SpoolFailed { channel: self.source.clone(), update, park: false };
        self.writer.commit(vec![op]).await.map(drop)
    }

    /// Sets a spooled update aside for good.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn park(&self, update: i64) -> Result<(), StoreError> {
        let op = Op::SpoolFailed { channel: self.source.clone(), update, park: true };
        self.writer.commit(vec![op]).await.map(drop)
    }

    fn deletions<'a>(&'a self, updates: &'a [i64]) -> impl Iterator<Item = Op> + 'a {
        updates.iter().map(|update| Op::SpoolDelete { channel: self.source.clone(), update: *update })
    }
}
