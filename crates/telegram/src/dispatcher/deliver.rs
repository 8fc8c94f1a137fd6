//! One delivery, step by step: recorded, sent, recorded.
//!
//! Every send stands in the store before it is made. A step that cannot be recorded is tried again; nothing is sent that
//! is not recorded as being sent.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use thought_contract::draft::{self, Draft, DraftError};
use thought_contract::event::StoredEvent;
use thought_contract::payload::{DeliveredChunk, DeliveryKind, DeliveryTelegram};
use thought_contract::time::Clock;
use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::handle::{ChunkRef, Dispatcher as Ledger, Incidents, Reader};
use thought_store::row::{ChunkRow, ChunkState, DeliveryRow};
use tokio::sync::watch;

use super::board::{Begin, Job, Progress};
use super::letter::{Letter, LetterError, Rendered, render};
use super::send::{Message, Sender, Sent};
use crate::client::BotClient;
use crate::ids::{ChatId, ThreadId};
use crate::ingress::ChannelState;
use crate::notices::Switches;
use crate::stop::{Backoff, Next, Stop};

/// Reason of a delivery that was left because the process ended in good order: the next dispatcher goes on with it.
const STOPPED: &str = "stopped";
/// Reason of a delivery whose process died between the record of a send and the record of its outcome.
pub(super) const INTERRUPTED: &str = "interrupted";
/// Reason of a delivery to a chat that is not admitted any more.
const NOT_ADMITTED: &str = "not-admitted";
/// Reason of a delivery of which nothing would be visible.
const NOTHING_VISIBLE: &str = "nothing-visible";

/// What every delivery works with.
pub(super) struct Desk {
    pub(super) reader: Reader,
    pub(super) ledger: Ledger,
    pub(super) incidents: Incidents,
    pub(super) client: Arc<BotClient>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) allowed_chats: BTreeSet<ChatId>,
    pub(super) switches: Switches,
    pub(super) backoff_ms: (u64, u64),
    pub(super) state: watch::Sender<ChannelState>,
}

/// How work on a delivery came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The receipt is recorded.
    Delivered,
    /// A person decides what follows.
    Uncertain,
    /// It will not arrive.
    Refused,
    /// It was there before.
    Known,
    /// The word to stop came; the next dispatcher goes on.
    Left,
}

/// Why work on a delivery could not go on. What is recorded stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// The store.
    #[error("record a delivery")]
    Store(#[from] StoreError),
    /// What the delivery rests on cannot be read.
    #[error("write the messages of a delivery")]
    Letter(#[from] LetterError),
    /// The receipt has no canonical form.
    #[error("write the receipt of a delivery")]
    Receipt(#[from] DraftError),
    /// The delivery stands elsewhere than it did: somebody else went on with it.
    #[error("go on with a delivery: it stands elsewhere by now")]
    Elsewhere,
    /// The messages are not cut as they were when the delivery began.
    #[error("go on with a delivery: its text is cut in another way by now")]
    CutOtherwise,
    /// The event is gone.
    #[error("go on with a delivery: what it rests on is not in the store")]
    Missing,
}

/// A letter on its way.
struct Parcel<'a> {
    letter: &'a Letter,
    event: &'a StoredEvent,
    rendered: Rendered,
    done: Vec<DeliveredChunk>,
}

impl Parcel<'_> {
    fn chunk(&self, ordinal: usize) -> ChunkRef {
        chunk_ref(&self.letter.cause, self.letter.kind, ordinal)
    }

    fn lengths(&self) -> Vec<u64> {
        self.rendered.chunks.iter().map(|chunk| chunk.utf16_length() as u64).collect()
    }
}

pub(super) fn chunk_ref(cause: &EventId, kind: DeliveryKind, ordinal: usize) -> ChunkRef {
    // A delivery has a handful of chunks.
    ChunkRef { cause: cause.clone(), kind, ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX) }
}

fn delivered_chunk(row: &ChunkRow) -> DeliveredChunk {
    DeliveredChunk {
        message_id: row.message,
        utf16_length: row.utf16_length,
        confirmed_by: row.confirmed_by.clone(),
    }
}

impl Desk {
    /// Does all that a delivery needs.
    pub(super) async fn deliver(
        &self,
        job: Job,
        progress: &Progress,
        stop: &Stop,
    ) -> Result<End, DeliverError> {
        if stop.is_said() {
            return Ok(End::Left);
        }
        let event = match job.event {
            Some(event) => event,
            None => self.event(&job.letter.cause).await?,
        };
        let rendered = render(&job.letter, &event).map_err(LetterError::from)?;
        let mut parcel = Parcel { letter: &job.letter, event: &event, rendered, done: Vec::new() };
        let first = match job.begin {
            begin @ (Begin::Event { .. } | Begin::Refusal { .. }) => {
                if !self.open(&parcel, begin, progress, stop).await? {
                    return Ok(End::Known);
                }
                0
            }
            Begin::Chunk { ordinal, from } => {
                let row = self.row(&job.letter).await?;
                let first = usize::try_from(ordinal).unwrap_or(usize::MAX);
                resume(&mut parcel, &row, first)?;
                let chunk = parcel.chunk(first);
                self.record(stop, || self.ledger.sending(chunk.clone(), from)).await?;
                first
            }
        };
        self.chunks(parcel, first, stop).await
    }

    /// Goes on behind a chunk that a person confirmed.
    pub(super) async fn confirmed(
        &self,
        letter: &Letter,
        ordinal: usize,
        operator: &str,
        stop: &Stop,
    ) -> Result<End, DeliverError> {
        let event = self.event(&letter.cause).await?;
        let row = self.row(letter).await?;
        let rendered = render(letter, &event).map_err(LetterError::from)?;
        let mut parcel = Parcel { letter, event: &event, rendered, done: Vec::new() };
        resume(&mut parcel, &row, ordinal)?;
        let utf16_length = row.chunks.get(ordinal).ok_or(DeliverError::Elsewhere)?.utf16_length;
        parcel.done.push(DeliveredChunk {
            message_id: None,
            utf16_length,
            confirmed_by: Some(operator.to_owned()),
        });
        let is_last = ordinal + 1 == row.chunks.len();
        let receipt = if is_last { Some(self.receipt(&parcel)?) } else { None };
        let chunk = parcel.chunk(ordinal);
        self.record(stop, || self.ledger.confirmed(chunk.clone(), operator, receipt.clone())).await?;
        if is_last { Ok(End::Delivered) } else { self.chunks(parcel, ordinal + 1, stop).await }
    }

    pub(super) async fn event(&self, id: &EventId) -> Result<StoredEvent, DeliverError> {
        self.reader.event(id.clone()).await?.ok_or(DeliverError::Missing)
    }

    pub(super) async fn row(&self, letter: &Letter) -> Result<DeliveryRow, DeliverError> {
        self.reader.delivery(letter.cause.clone(), letter.kind).await?.ok_or(DeliverError::Missing)
    }

    /// Records that the first chunk is being sent. False if the delivery is there already.
    async fn open(
        &self,
        parcel: &Parcel<'_>,
        begin: Begin,
        progress: &Progress,
        stop: &Stop,
    ) -> Result<bool, DeliverError> {
        let (Begin::Event { position } | Begin::Refusal { ordinal: position }) = begin else {
            return Ok(true);
        };
        let Letter { cause, kind, to, .. } = parcel.letter;
        let place = (to.chat.0, to.thread.map(|ThreadId(id)| id));
        let mut lengths = parcel.lengths();
        if lengths.is_empty() {
            lengths.push(0);
        }
        let open = async || {
            let cursor = progress.cursor_without(position);
            match begin {
                Begin::Refusal { .. } => {
                    self.ledger.open_refusal(cause.clone(), place, lengths.clone(), cursor).await
                }
                _ => self.ledger.open(cause.clone(), *kind, place, lengths.clone(), cursor).await,
            }
        };
        let opened = match self.record(stop, open).await {
            Ok(()) => true,
            Err(DeliverError::Elsewhere) => false,
            Err(error) => return Err(error),
        };
        progress.done(position);
        Ok(opened)
    }

    /// Sends the chunks from this one on; it is recorded as being sent.
    async fn chunks(&self, mut parcel: Parcel<'_>, first: usize, stop: &Stop) -> Result<End, DeliverError> {
        if let Some(reason) = self.reason_not_to_send(&parcel) {
            let chunk = parcel.chunk(first);
            self.record(stop, || self.ledger.refused(chunk.clone(), reason)).await?;
            tracing::warn!(cause = %parcel.letter.cause, reason, "a delivery is refused");
            return Ok(End::Refused);
        }
        let last = parcel.rendered.chunks.len() - 1;
        for ordinal in first..=last {
            let chunk = parcel.chunk(ordinal);
            match self.send(&parcel, ordinal, stop).await? {
                Sent::As(message) => {
                    parcel.done.push(DeliveredChunk {
                        message_id: Some(message.0),
                        utf16_length: parcel.rendered.chunks[ordinal].utf16_length() as u64,
                        confirmed_by: None,
                    });
                    if ordinal == last {
                        let receipt = self.receipt(&parcel)?;
                        let done = || self.ledger.delivered(chunk.clone(), message.0, receipt.clone());
                        self.record(stop, done).await?;
                        break;
                    }
                    self.record(stop, || self.ledger.sent_and_next(chunk.clone(), message.0)).await?;
                    if stop.is_said() {
                        return self.leave(parcel.chunk(ordinal + 1), stop).await;
                    }
                }
                // A long pause is recorded and over by now: this is the word to stop.
                Sent::Later { .. } => return Ok(End::Left),
                Sent::Not => return self.leave(chunk, stop).await,
                Sent::Uncertain { code } => {
                    self.record(stop, || self.ledger.uncertain(chunk.clone(), code)).await?;
                    tracing::warn!(cause = %chunk.cause, chunk = ordinal, code, "a delivery is uncertain");
                    return Ok(End::Uncertain);
                }
                Sent::Refused { code } => {
                    self.record(stop, || self.ledger.refused(chunk.clone(), code)).await?;
                    tracing::warn!(cause = %chunk.cause, chunk = ordinal, code, "a delivery is refused");
                    return Ok(End::Refused);
                }
            }
        }
        tracing::info!(cause = %parcel.letter.cause, kind = %parcel.letter.kind, chunks = last + 1, "delivered");
        Ok(End::Delivered)
    }

    fn reason_not_to_send(&self, parcel: &Parcel<'_>) -> Option<&'static str> {
        if !self.allowed_chats.contains(&parcel.letter.to.chat) {
            Some(NOT_ADMITTED)
        } else if parcel.rendered.chunks.is_empty() {
            Some(NOTHING_VISIBLE)
        } else {
            None
        }
    }

    /// Sends a chunk that is recorded as being sent. Through a pause that Telegram asked for it is recorded as not sent,
    /// so that a process that dies meanwhile leaves it to the next one and not to a person. [`Sent::Later`] comes out
    /// only when the word to stop ended such a pause.
    async fn send(&self, parcel: &Parcel<'_>, ordinal: usize, stop: &Stop) -> Result<Sent, DeliverError> {
        let to = parcel.letter.to;
        let mut sender = Sender::new(&self.client, &self.state, self.backoff_ms);
        let message = Message {
            chat: to.chat,
            thread: to.thread,
            text: &parcel.rendered.chunks[ordinal],
            reply_to: to.reply_to().filter(|_| ordinal == 0),
        };
        loop {
            let sent = sender.send(message, stop).await;
            let Sent::Later { pause, code } = sent else { return Ok(sent) };
            let chunk = parcel.chunk(ordinal);
            self.record(stop, || self.ledger.not_sent(chunk.clone(), code)).await?;
            if stop.pause(pause).await == Next::Stop {
                return Ok(sent);
            }
            self.record(stop, || self.ledger.sending(chunk.clone(), ChunkState::Pending)).await?;
        }
    }

    /// Leaves a chunk that was certainly not sent to the next dispatcher.
    async fn leave(&self, chunk: ChunkRef, stop: &Stop) -> Result<End, DeliverError> {
        self.record(stop, || self.ledger.not_sent(chunk.clone(), STOPPED)).await?;
        Ok(End::Left)
    }

    fn receipt(&self, parcel: &Parcel<'_>) -> Result<Draft, DraftError> {
        let Letter { kind, to, .. } = parcel.letter;
        let payload = DeliveryTelegram {
            kind: *kind,
            chat_id: to.chat.0,
            thread_id: to.thread.map(|ThreadId(id)| id),
            chunks: parcel.done.clone(),
            run: parcel.rendered.run.clone(),
            output: parcel.rendered.output.clone(),
        };
        draft::delivery(self.ledger.channel(), parcel.event, &payload, self.clock.now())
    }

    /// Makes a commit, and makes it again as long as the store does not work. A precondition that fails after such a try
    /// means that the try had been recorded after all: nobody else moves this delivery.
    pub(super) async fn record<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        stop: &Stop,
        commit: impl Fn() -> F,
    ) -> Result<(), DeliverError> {
        let mut backoff = Backoff::new(self.backoff_ms.0, self.backoff_ms.1);
        let mut tries_failed = 0_u32;
        loop {
            match commit().await {
                Ok(_) => return Ok(()),
                Err(StoreError::Precondition(_)) if tries_failed > 0 => return Ok(()),
                Err(StoreError::Precondition(_)) => return Err(DeliverError::Elsewhere),
                Err(error @ (StoreError::Conflict { .. } | StoreError::Role { .. })) => {
                    return Err(error.into());
                }
                Err(error) => {
                    tracing::error!(error = %error, "a step of a delivery waits for the store");
                    tries_failed += 1;
                    if stop.pause(backoff.next_pause()).await == Next::Stop {
                        return Err(error.into());
                    }
                }
            }
        }
    }
}

/// Takes over what was done before a chunk.
fn resume(parcel: &mut Parcel<'_>, row: &DeliveryRow, first: usize) -> Result<(), DeliverError> {
    if !parcel.lengths().into_iter().eq(row.chunks.iter().map(|chunk| chunk.utf16_length)) {
        return Err(DeliverError::CutOtherwise);
    }
    parcel.done = row.chunks.iter().take(first).map(delivered_chunk).collect();
    Ok(())
}
