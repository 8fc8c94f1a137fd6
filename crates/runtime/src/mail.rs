//! Private messages between agents, from the sender's side: the routes, the check, the send, the wait, and the reading
//! of the one response.
//!
//! The routes are code: there is no configuration that opens another. It must never run anything itself, make a message
//! in another sender's name, or show a text that a completed run of the recipient did not settle.

mod desk;

use thought_contract::declaration::agent_id;
use thought_contract::draft::{self, DraftError};
use thought_contract::event::{Actor, EventType, PayloadError, Privacy, SourceName, StoredEvent};
use thought_contract::payload::{AgentMessage, DerivedAgentMessage, OutputContract, RunCompleted};
use thought_contract::run::RunState;
use thought_contract::time::Clock;
use thought_protocol::limits::{AGENT_MESSAGE_CHARACTERS_MAX, VISIBLE_TEXT_CHARACTERS_MAX};
use thought_protocol::{EventId, RunId, Sensitive};
use thought_store::handle::{AgentMail, Reader};
use thought_store::row::{Novelty, RunFilter, RunRow};
use thought_store::{StoreError, Topics};

use crate::limits::{MAIL_ID_CHARACTERS_MAX, RUNS_PER_TRIGGER_MAX, WAIT_LOOK_MS};
use crate::port::Sleeper;

pub use desk::{Desk, Errand, Receipt, Response};

/// Who may write to whom.
pub const ROUTES: [(&str, &str); 1] = [("co", "stream-agent-conversation")];

/// Whether a route is admitted.
pub fn is_route(sender: &str, recipient: &str) -> bool {
    ROUTES.contains(&(sender, recipient))
}

/// What keeps a private message from being sent or read. Content-dark: the text is named by its length alone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The sender or recipient is no agent id.
    #[error(
        "address a message: the {side} is no agent id (2 to 64 of a-z and 0-9 in words joined by hyphens)"
    )]
    AgentId {
        /// `sender` or `recipient`.
        side: &'static str,
    },
    /// The thread or message id has another form.
    #[error(
        "address a message: the {which} id must be 1 to 128 of A-Z, a-z, 0-9, '.', '_', ':', '-', beginning with a letter or digit"
    )]
    Id {
        /// `thread` or `message`.
        which: &'static str,
    },
    /// No such route.
    #[error("address a message: there is no route from {sender} to {recipient}")]
    Route {
        /// From.
        sender: String,
        /// To.
        recipient: String,
    },
    /// A message in another sender's name.
    #[error("take a message: it is in the name of {sender}, and this is the desk of {desk}")]
    Sender {
        /// In whose name.
        sender: String,
        /// Whose desk.
        desk: String,
    },
    /// The text says nothing.
    #[error("check a message: its text is empty, or blank from end to end")]
    Blank,
    /// The text holds what no text holds.
    #[error("check a message: its text holds U+0000")]
    Nul,
    /// The text is too long.
    #[error(
        "check a message: its text has {characters} characters, and {AGENT_MESSAGE_CHARACTERS_MAX} at most can be sent"
    )]
    Text {
        /// Its length, characters.
        characters: usize,
    },
    /// The text is not UTF-8.
    #[error("check a message: its text of {bytes} bytes is not UTF-8")]
    Utf8 {
        /// Its length, bytes.
        bytes: usize,
    },
    /// The id is of no private message.
    #[error("find the message {event}")]
    NotFound {
        /// Which.
        event: EventId,
    },
    /// A completed run whose output is not the response that the contract demands.
    #[error("read the response to {event}: {what} does not fit")]
    Response {
        /// The message.
        event: EventId,
        /// Which part.
        what: &'static str,
    },
    /// A stored payload does not decode.
    #[error("read a private message")]
    Payload(#[from] PayloadError),
    /// The message cannot be drafted.
    #[error("draft a private message")]
    Draft(#[from] DraftError),
    /// The store; [`StoreError::Conflict`] for another text under the same identity.
    #[error("reach the store for a private message")]
    Store(#[from] StoreError),
}

/// A checked message on an admitted route.
#[derive(Debug, Clone)]
pub struct Outgoing {
    payload: AgentMessage,
}

impl Outgoing {
    /// Checks ids and route alone: what can be refused before a text is looked at.
    ///
    /// # Errors
    /// [`Error`]; a refused route is its own error.
    pub fn check_address(from: &str, to: &str, thread: &str, message: &str) -> Result<(), Error> {
        for (side, id) in [("sender", from), ("recipient", to)] {
            agent_id(id).or(Err(Error::AgentId { side }))?;
        }
        for (which, id) in [("thread", thread), ("message", message)] {
            if !is_mail_id(id) {
                return Err(Error::Id { which });
            }
        }
        if !is_route(from, to) {
            return Err(Error::Route { sender: from.to_owned(), recipient: to.to_owned() });
        }
        Ok(())
    }

    /// Checks ids, route and text.
    ///
    /// # Errors
    /// As [`Outgoing::check_address`], and for a text out of bounds.
    pub fn new(from: &str, to: &str, thread: &str, message: &str, text: &[u8]) -> Result<Self, Error> {
        Self::check_address(from, to, thread, message)?;
        let text = std::str::from_utf8(text).or(Err(Error::Utf8 { bytes: text.len() }))?;
        let characters = text.chars().count();
        if text.trim().is_empty() {
            return Err(Error::Blank);
        }
        if text.contains('\0') {
            return Err(Error::Nul);
        }
        if characters > AGENT_MESSAGE_CHARACTERS_MAX {
            return Err(Error::Text { characters });
        }
        Ok(Self {
            payload: AgentMessage {
                message_id: message.to_owned(),
                thread_id: thread.to_owned(),
                sender_agent_id: from.to_owned(),
                recipient_agent_id: to.to_owned(),
                text: text.to_owned(),
            },
        })
    }

    /// Who writes.
    pub fn sender(&self) -> &str {
        &self.payload.sender_agent_id
    }

    /// The message as it will be stored.
    pub fn payload(&self) -> &AgentMessage {
        &self.payload
    }

    /// The sender's id of the message.
    pub fn message_id(&self) -> &str {
        &self.payload.message_id
    }
}

/// Whether text has the form of a thread or message id.
pub fn is_mail_id(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    text.len() <= MAIL_ID_CHARACTERS_MAX
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(inner)
}

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    /// It was appended now.
    Accepted,
    /// It was there, equal.
    AlreadyAccepted,
    /// No run on it has ended yet.
    Pending,
    /// It was answered.
    Completed,
    /// Its run ended without a valid answer.
    Failed,
    /// Its run may not go on.
    Blocked,
    /// Its run was given up.
    Abandoned,
}

impl SendStatus {
    /// The word of the output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::AlreadyAccepted => "already-accepted",
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Abandoned => "abandoned",
        }
    }

    /// The status of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [
            Self::Accepted,
            Self::AlreadyAccepted,
            Self::Pending,
            Self::Completed,
            Self::Failed,
            Self::Blocked,
            Self::Abandoned,
        ];
        all.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether a wait for it is over.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Blocked | Self::Abandoned)
    }
}

/// A message and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The message's event.
    pub event: EventId,
    /// Where it stands.
    pub status: SendStatus,
    /// The newest run on it.
    pub run: Option<RunId>,
}

/// Appends a message. The same one again, at any later time, is `already-accepted`.
///
/// # Errors
/// [`Error::Store`] with a conflict when another text stands under the same identity.
pub async fn send(mail: &AgentMail, clock: &dyn Clock, message: &Outgoing) -> Result<Sent, Error> {
    let appended = mail.send(draft::agent_message(&message.payload, clock.now())?).await?;
    let status = match appended.novelty {
        Novelty::New => SendStatus::Accepted,
        Novelty::Existing => SendStatus::AlreadyAccepted,
    };
    tracing::info!(event = %appended.id, status = status.as_str(), "private message sent");
    Ok(Sent { event: appended.id, status, run: None })
}

async fn newest_run(reader: &Reader, event: &EventId, recipient: &str) -> Result<Option<RunRow>, Error> {
    let filter = RunFilter {
        declaration: Some(recipient.to_owned()),
        trigger: Some(event.clone()),
        limit: RUNS_PER_TRIGGER_MAX,
        ..RunFilter::default()
    };
    Ok(reader.runs(filter).await?.pop())
}

async fn message(reader: &Reader, event: &EventId) -> Result<(StoredEvent, AgentMessage), Error> {
    match reader.event(event.clone()).await? {
        Some(stored) if stored.envelope.event_type == EventType::AgentMessage => {
            let payload = stored.payload()?;
            Ok((stored, payload))
        }
        _ => Err(Error::NotFound { event: event.clone() }),
    }
}

/// Where a message stands, by the newest run of its recipient on it.
///
/// # Errors
/// [`Error`].
pub async fn status(reader: &Reader, event: &EventId) -> Result<Sent, Error> {
    let (_, payload) = message(reader, event).await?;
    let run = newest_run(reader, event, &payload.recipient_agent_id).await?;
    let status = match run.as_ref().map(|run| run.state) {
        None | Some(RunState::Admitted | RunState::Running | RunState::Held) => SendStatus::Pending,
        Some(RunState::Completed) => SendStatus::Completed,
        Some(RunState::Failed) => SendStatus::Failed,
        Some(RunState::Blocked) => SendStatus::Blocked,
        Some(RunState::Abandoned) => SendStatus::Abandoned,
    };
    Ok(Sent { event: event.clone(), status, run: run.map(|run| run.id) })
}

/// Waits until the run of exactly this message has ended, or the time is up: then the status is still `pending`.
///
/// # Errors
/// [`Error`].
pub async fn wait(
    reader: &Reader,
    sleeper: &dyn Sleeper,
    event: &EventId,
    wait_seconds: u64,
) -> Result<Sent, Error> {
    let mut news = reader.news().about(Topics::RUN_ADMITTED.and(Topics::RUN_MOVED));
    let mut over = sleeper.sleep_ms(wait_seconds.saturating_mul(1_000));
    let mut last_look = false;
    loop {
        // Seen before the look, so that a commit in between wakes the wait.
        news.mark_unchanged();
        let sent = status(reader, event).await?;
        if sent.status.is_final() || last_look {
            return Ok(sent);
        }
        tokio::select! {
            () = &mut over => last_look = true,
            () = sleeper.sleep_ms(WAIT_LOOK_MS) => {}
            _ = news.changed() => {}
        }
    }
}

/// The text of the response to a message: of a completed run, and only if every part of the contract fits.
///
/// # Errors
/// [`Error::Response`] when there is none or a part does not fit; [`Error`].
pub async fn response(reader: &Reader, event: &EventId) -> Result<Sensitive<String>, Error> {
    let unfit = |what| Error::Response { event: event.clone(), what };
    let (trigger, asked) = message(reader, event).await?;
    let run = newest_run(reader, event, &asked.recipient_agent_id)
        .await?
        .filter(|run| run.state == RunState::Completed)
        .ok_or_else(|| unfit("the run"))?;
    let load = async |id: Option<EventId>, what| match id {
        Some(id) => reader.event(id).await?.ok_or_else(|| unfit(what)),
        None => Err(unfit(what)),
    };
    let completed_event = load(run.terminal.clone(), "the completed event").await?;
    let completed: RunCompleted = completed_event.payload()?;
    let output = load(run.output.clone(), "the output").await?;
    let answer: DerivedAgentMessage = output.payload()?;
    let envelope = &output.envelope;
    let fits = [
        (
            "the completed event",
            completed.run == run.id
                && completed.output == envelope.id
                && completed_event.envelope.source == SourceName::agent(&asked.recipient_agent_id)
                && completed_event.envelope.parent_id.as_ref() == Some(&envelope.id),
        ),
        ("its root", envelope.root_id == trigger.envelope.root_id),
        ("its parent", envelope.parent_id.as_ref() == Some(event)),
        ("its source", envelope.source == SourceName::agent(&asked.recipient_agent_id)),
        ("its actor", envelope.actor == Actor::new(format!("agent:{}", asked.recipient_agent_id))),
        ("its privacy", envelope.privacy == Privacy::Sensitive),
        ("its agent", answer.agent.id == asked.recipient_agent_id && answer.agent.version == run.version),
        ("its run", answer.run == run.id && Some(&answer.context_snapshot) == run.snapshot.as_ref()),
        ("its contract", answer.contract == OutputContract::ConversationText),
        ("its sender", answer.sender_agent_id == asked.recipient_agent_id),
        ("its recipient", answer.recipient_agent_id == asked.sender_agent_id),
        ("its thread", answer.thread_id == asked.thread_id),
        ("its correlation", envelope.correlation_id.as_deref() == Some(asked.thread_id.as_str())),
        ("its message", answer.in_reply_to == asked.message_id),
        ("its sequence", answer.input_sequence == trigger.envelope.sequence),
        ("its length", (1..=VISIBLE_TEXT_CHARACTERS_MAX).contains(&answer.summary.chars().count())),
    ];
    match fits.into_iter().find(|(_, fits)| !fits) {
        Some((what, _)) => Err(unfit(what)),
        None => Ok(Sensitive::new(answer.summary)),
    }
}
