//! A person's word on an uncertain delivery: send it again, or take it as seen.

use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::row::{ChunkState, DeliveryRow, DeliveryState};

use super::Dispatcher;
use super::board::{Begin, Job, Progress};
use super::deliver::DeliverError;
use super::letter::{Letter, LetterError, letters_of};
use crate::stop::Stop;

/// Why a person's word came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// There is no such delivery.
    #[error("find the delivery")]
    NotFound,
    /// The delivery is not uncertain.
    #[error("go on with a delivery: it is {}, not uncertain", .state.as_str())]
    NotUncertain {
        /// Where it stands.
        state: DeliveryState,
    },
    /// The store cannot be read.
    #[error("read the delivery")]
    Store(#[from] StoreError),
    /// What it rests on cannot be read.
    #[error("read what the delivery rests on")]
    Letter(#[from] LetterError),
    /// It could not go on.
    #[error("go on with the delivery")]
    Deliver(#[from] DeliverError),
}

impl Dispatcher {
    /// Sends again from the uncertain chunk of a delivery, named by its cause, and goes on to its end. Where it stands
    /// then. One that somebody began to send and abandoned counts as uncertain, where the caller knows it
    /// ([`Dispatcher::asking`]).
    ///
    /// # Errors
    /// [`OperatorError::NotUncertain`] in any other state; else what kept it from going on.
    pub async fn retry(&self, cause: &EventId, stop: &Stop) -> Result<DeliveryState, OperatorError> {
        let (letter, ordinal, from) = self.stuck(cause).await?;
        // Chunks are counted in 32 bits, so their places fit.
        let begin = Begin::Chunk { ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX), from };
        let job = Job { letter: letter.clone(), begin, event: None };
        self.desk.deliver(job, &Progress::default(), stop).await?;
        Ok(self.desk.row(&letter).await?.state)
    }

    /// Records that a person saw the uncertain chunk of a delivery, and sends what follows it. Where it stands then.
    ///
    /// # Errors
    /// As [`Dispatcher::retry`].
    pub async fn confirm(
        &self,
        cause: &EventId,
        operator: &str,
        stop: &Stop,
    ) -> Result<DeliveryState, OperatorError> {
        let (letter, ordinal, from) = self.stuck(cause).await?;
        if from != ChunkState::Uncertain {
            // It was certainly not sent, so nobody saw it.
            return Err(OperatorError::NotUncertain { state: DeliveryState::Sending });
        }
        self.desk.confirmed(&letter, ordinal, operator, stop).await?;
        Ok(self.desk.row(&letter).await?.state)
    }

    /// Where a delivery stands.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] where none was begun; what cannot be read.
    pub async fn stands(&self, cause: &EventId) -> Result<DeliveryState, OperatorError> {
        Ok(self.begun(cause).await?.1.state)
    }

    async fn begun(&self, cause: &EventId) -> Result<(Letter, DeliveryRow), OperatorError> {
        let reader = &self.desk.reader;
        let event = reader.event(cause.clone()).await?.ok_or(OperatorError::NotFound)?;
        let mut begun = None;
        for letter in letters_of(reader, self.desk.ledger.channel(), &event).await? {
            let row = reader.delivery(cause.clone(), letter.kind).await?;
            begun = begun.or(row.map(|row| (letter, row)));
        }
        begun.ok_or(OperatorError::NotFound)
    }

    /// The chunk of a delivery that does not go on by itself, and how it stands: uncertain, or, where whoever began to send
    /// it is gone, certainly not sent.
    async fn stuck(&self, cause: &EventId) -> Result<(Letter, usize, ChunkState), OperatorError> {
        let (letter, row) = self.begun(cause).await?;
        let stands = |state| row.chunks.iter().position(|chunk| chunk.state == state);
        match row.state {
            DeliveryState::Uncertain => {
                if let Some(ordinal) = stands(ChunkState::Uncertain) {
                    return Ok((letter, ordinal, ChunkState::Uncertain));
                }
            }
            DeliveryState::Sending if (self.is_abandoned)() => {
                if let Some(ordinal) = stands(ChunkState::Sending) {
                    self.interrupted(&row, ordinal).await?;
                    return Ok((letter, ordinal, ChunkState::Uncertain));
                }
                if let Some(ordinal) = stands(ChunkState::Pending) {
                    return Ok((letter, ordinal, ChunkState::Pending));
                }
            }
            _ => {}
        }
        Err(OperatorError::NotUncertain { state: row.state })
    }
}
