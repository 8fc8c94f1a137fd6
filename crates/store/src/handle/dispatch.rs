//! The dispatcher of a Telegram source: deliveries, receipts, its cursor.

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload::DeliveryKind;
use thought_protocol::EventId;

use super::{Writer, own};
use crate::command::{Op, Presence};
use crate::engine::StoreError;
use crate::row::{Appended, ChunkState, DeliveryState};

/// Names one chunk of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRef {
    /// The output, or the event that a notice tells of.
    pub cause: EventId,
    /// What is delivered.
    pub kind: DeliveryKind,
    /// From 0.
    pub ordinal: u32,
}

/// Records sends before they are made, and receipts once they are known.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    writer: Writer,
    telegram: SourceName,
    source: SourceName,
}

impl Dispatcher {
    pub(super) fn cut(writer: Writer, telegram: SourceName) -> Self {
        let source = SourceName::delivery(&telegram);
        Self { writer, telegram, source }
    }

    /// The Telegram source whose outputs are delivered.
    pub fn channel(&self) -> &SourceName {
        &self.telegram
    }

    /// Name of this dispatcher's cursor and role.
    pub fn name(&self) -> String {
        format!("dispatcher:{}", self.telegram)
    }

    /// Name of its cursor over the corrections that matched nothing.
    pub fn refusals_name(&self) -> String {
        format!("dispatcher-refusals:{}", self.telegram)
    }

    /// Says whether this dispatcher is at work.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn set_presence(&self, presence: Presence) -> Result<(), StoreError> {
        self.writer.commit(vec![Op::SetRole { role: self.name(), presence }]).await.map(drop)
    }

    /// Records that a delivery begins and that its first chunk is being sent, and moves the cursor, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when that delivery is there already; any failure of the commit.
    pub async fn open(
        &self,
        cause: EventId,
        kind: DeliveryKind,
        (chat, thread): (i64, Option<i64>),
        chunk_utf16_lengths: Vec<u64>,
        cursor: u64,
    ) -> Result<(), StoreError> {
        let open = self.open_op(cause, kind, (chat, thread), chunk_utf16_lengths);
        self.writer.commit(vec![open, self.cursor_op(cursor)]).await.map(drop)
    }

    /// As [`Dispatcher::open`], for what is said of a correction that matched nothing; its cursor is moved.
    ///
    /// # Errors
    /// As [`Dispatcher::open`].
    pub async fn open_refusal(
        &self,
        command: EventId,
        place: (i64, Option<i64>),
        chunk_utf16_lengths: Vec<u64>,
        cursor: u64,
    ) -> Result<(), StoreError> {
        let open = self.open_op(command, DeliveryKind::NotMatched, place, chunk_utf16_lengths);
        self.writer.commit(vec![open, self.refusals_op(cursor)]).await.map(drop)
    }

    /// Moves the cursor over the corrections that matched nothing alone.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn advance_refusals(&self, cursor: u64) -> Result<(), StoreError> {
        self.writer.commit(vec![self.refusals_op(cursor)]).await.map(drop)
    }

    /// Moves the cursor alone.
    ///
    /// # Errors
    /// Any failure of the commit.
    pub async fn advance(&self, cursor: u64) -> Result<(), StoreError> {
        self.writer.commit(vec![self.cursor_op(cursor)]).await.map(drop)
    }

    /// Records that a chunk is being sent; `from` is where it stood (pending, or uncertain when a person said: again).
    ///
    /// # Errors
    /// [`StoreError::Precondition`] when it stands elsewhere; any failure of the commit.
    pub async fn sending(&self, chunk: ChunkRef, from: ChunkState) -> Result<(), StoreError> {
        let delivery = Self::delivery_op(&chunk, DeliveryState::Sending, None, None);
        let ops = vec![Self::chunk_op(chunk, from, ChunkState::Sending, None), delivery];
        self.writer.commit(ops).await.map(drop)
    }

    /// Records that a chunk was sent and that the next one is being sent, in one commit.
    ///
    /// # Errors
    /// As [`Dispatcher::sending`].
    pub async fn sent_and_next(&self, chunk: ChunkRef, message: i64) -> Result<(), StoreError> {
        let next = ChunkRef { ordinal: chunk.ordinal + 1, ..chunk.clone() };
        let ops = vec![
            Self::chunk_op(chunk, ChunkState::Sending, ChunkState::Sent, Some(message)),
            Self::chunk_op(next, ChunkState::Pending, ChunkState::Sending, None),
        ];
        self.writer.commit(ops).await.map(drop)
    }

    /// Records that the last chunk was sent, the receipt, and that the delivery is done, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Role`] for another draft; [`StoreError::Precondition`] when the chunk stands elsewhere; any failure
    /// of the commit.
    pub async fn delivered(
        &self,
        chunk: ChunkRef,
        message: i64,
        receipt: Draft,
    ) -> Result<Appended, StoreError> {
        own(&receipt, &self.source, &[EventType::DeliveryTelegram])?;
        let done = Self::delivery_op(&chunk, DeliveryState::Delivered, None, Some(receipt.id().clone()));
        let ops = vec![
            Self::chunk_op(chunk, ChunkState::Sending, ChunkState::Sent, Some(message)),
            Op::Append(Box::new(receipt)),
            done,
        ];
        self.writer.commit_one(ops).await
    }

    /// Records that a chunk was certainly not sent after all, and why it waits: it is due again, and so is the delivery.
    ///
    /// # Errors
    /// As [`Dispatcher::sending`].
    pub async fn not_sent(&self, chunk: ChunkRef, reason: &str) -> Result<(), StoreError> {
        let delivery = Self::delivery_op(&chunk, DeliveryState::Sending, Some(reason), None);
        let ops = vec![Self::chunk_op(chunk, ChunkState::Sending, ChunkState::Pending, None), delivery];
        self.writer.commit(ops).await.map(drop)
    }

    /// Records that a chunk may or may not have arrived.
    ///
    /// # Errors
    /// As [`Dispatcher::sending`].
    pub async fn uncertain(&self, chunk: ChunkRef, reason: &str) -> Result<(), StoreError> {
        let delivery = Self::delivery_op(&chunk, DeliveryState::Uncertain, Some(reason), None);
        let ops = vec![Self::chunk_op(chunk, ChunkState::Sending, ChunkState::Uncertain, None), delivery];
        self.writer.commit(ops).await.map(drop)
    }

    /// Records that Telegram will not take a chunk.
    ///
    /// # Errors
    /// As [`Dispatcher::sending`].
    pub async fn refused(&self, chunk: ChunkRef, reason: &str) -> Result<(), StoreError> {
        let delivery = Self::delivery_op(&chunk, DeliveryState::Refused, Some(reason), None);
        let ops = vec![Self::chunk_op(chunk, ChunkState::Sending, ChunkState::Refused, None), delivery];
        self.writer.commit(ops).await.map(drop)
    }

    /// Records that a person saw an uncertain chunk. `then` says what follows: the next chunk is being sent, or this was
    /// the last one and the receipt is due.
    ///
    /// # Errors
    /// As [`Dispatcher::delivered`].
    pub async fn confirmed(
        &self,
        chunk: ChunkRef,
        operator: &str,
        then: Option<Draft>,
    ) -> Result<(), StoreError> {
        let confirm = Op::MoveChunk {
            cause: chunk.cause.clone(),
            kind: chunk.kind,
            ordinal: chunk.ordinal,
            from: ChunkState::Uncertain,
            to: ChunkState::Sent,
            message: None,
            confirmed_by: Some(operator.to_owned()),
        };
        let mut ops = vec![confirm];
        if let Some(receipt) = then {
            own(&receipt, &self.source, &[EventType::DeliveryTelegram])?;
            ops.push(Self::delivery_op(&chunk, DeliveryState::Delivered, None, Some(receipt.id().clone())));
            ops.insert(1, Op::Append(Box::new(receipt)));
        } else {
            let next = ChunkRef { ordinal: chunk.ordinal + 1, ..chunk.clone() };
            ops.push(Self::chunk_op(next, ChunkState::Pending, ChunkState::Sending, None));
            ops.push(Self::delivery_op(&chunk, DeliveryState::Sending, None, None));
        }
        self.writer.commit(ops).await.map(drop)
    }

    fn open_op(
        &self,
        cause: EventId,
        kind: DeliveryKind,
        (chat, thread): (i64, Option<i64>),
        chunk_utf16_lengths: Vec<u64>,
    ) -> Op {
        Op::OpenDelivery { cause, kind, channel: self.telegram.clone(), chat, thread, chunk_utf16_lengths }
    }

    fn refusals_op(&self, ordinal: u64) -> Op {
        Op::SetCursor { name: self.refusals_name(), position: ordinal }
    }

    fn cursor_op(&self, position: u64) -> Op {
        Op::SetCursor { name: self.name(), position }
    }

    fn chunk_op(chunk: ChunkRef, from: ChunkState, to: ChunkState, message: Option<i64>) -> Op {
        let ChunkRef { cause, kind, ordinal } = chunk;
        Op::MoveChunk { cause, kind, ordinal, from, to, message, confirmed_by: None }
    }

    fn delivery_op(
        chunk: &ChunkRef,
        to: DeliveryState,
        reason: Option<&str>,
        receipt: Option<EventId>,
    ) -> Op {
        Op::MoveDelivery {
            cause: chunk.cause.clone(),
            kind: chunk.kind,
            to,
            reason: reason.map(str::to_owned),
            receipt,
        }
    }
}
