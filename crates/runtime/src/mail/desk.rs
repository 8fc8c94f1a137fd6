//! What one sending agent may ask for: to send, to wait, and to read the response, in its own threads and nowhere else.
//!
//! The same desk serves the owner's command line and an agent's socket. It must never take a message in another
//! sender's name, look at an event that is not of its sender, or hand out a text that was not asked for.

use std::sync::Arc;

use thought_contract::time::Clock;
use thought_protocol::{EventId, RunId, Sensitive};
use thought_store::handle::{AgentMail, Reader};

use super::{Error, Outgoing, SendStatus, Sent, response, send, wait};
use crate::port::Sleeper;

/// Whether the text of the response is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// It is, once a completed run settled one.
    Asked,
    /// It is not.
    Dark,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Errand {
    /// The message: sent now, or met where it stands.
    pub message: Outgoing,
    /// How long to wait for the end of its run, seconds; `None` does not wait.
    pub wait_seconds: Option<u64>,
    /// Whether the response is wanted. Without a wait it is looked for once.
    pub response: Response,
}

/// What came of it. Everything but the response is ids and a status.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The sender's id of the message.
    pub message: String,
    /// Its event.
    pub event: EventId,
    /// Where it stands.
    pub status: SendStatus,
    /// The newest run on it, where that was looked for.
    pub run: Option<RunId>,
    /// The response, where it was asked for and there is one.
    pub response: Option<Sensitive<String>>,
}

/// The desk of one sender.
#[derive(Clone)]
pub struct Desk {
    sender: String,
    mail: AgentMail,
    reader: Reader,
    clock: Arc<dyn Clock>,
    sleeper: Arc<dyn Sleeper>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("sender", &self.sender).finish_non_exhaustive()
    }
}

impl Desk {
    /// The desk of the sender that `mail` was cut for.
    pub fn new(
        sender: &str,
        mail: AgentMail,
        reader: Reader,
        clock: Arc<dyn Clock>,
        sleeper: Arc<dyn Sleeper>,
    ) -> Self {
        Self { sender: sender.to_owned(), mail, reader, clock, sleeper }
    }

    /// Whose desk it is.
    pub fn sender(&self) -> &str {
        &self.sender
    }

    /// Sends the message, then waits and reads as far as it was asked for. Given up at any moment, the message stands or
    /// does not, and the same errand may be made again.
    ///
    /// # Errors
    /// [`Error::Sender`] for another sender's message, before anything is looked at; [`Error::Store`] with a conflict
    /// for another text under the same identity; [`Error::Response`] where the settled answer does not fit.
    pub async fn serve(&self, errand: &Errand) -> Result<Receipt, Error> {
        if errand.message.sender() != self.sender {
            let sender = errand.message.sender().to_owned();
            return Err(Error::Sender { sender, desk: self.sender.clone() });
        }
        let sent = send(&self.mail, &*self.clock, &errand.message).await?;
        let Sent { event, status, run } = match (errand.wait_seconds, errand.response) {
            (None, Response::Dark) => sent,
            (seconds, _) => wait(&self.reader, &*self.sleeper, &sent.event, seconds.unwrap_or(0)).await?,
        };
        let response = match (errand.response, status) {
            (Response::Asked, SendStatus::Completed) => Some(response(&self.reader, &event).await?),
            _ => None,
        };
        Ok(Receipt { message: errand.message.message_id().to_owned(), event, status, run, response })
    }
}
