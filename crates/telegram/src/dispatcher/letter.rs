//! What an event brings to a chat: nothing, or a letter.
//!
//! Follows an event back to the message that it answers: the log, and nothing else, says where a letter goes. Reads, and
//! only reads.

use thought_contract::event::{EventType, PayloadError, SourceName, StoredEvent};
use thought_contract::payload::{
    DeliveryKind, JudgmentRecorded, MessageObservation, NoticeName, NoticeRequested, RunEnded,
    TelegramCommand, TelegramMessage,
};
use thought_protocol::{EventId, RunId};
use thought_store::StoreError;
use thought_store::handle::Reader;

use super::reminder::waiting_at;

use crate::chunks::{self, Completeness};
use crate::entities::Formatted;
use crate::ids::{ChatId, MessageId, ThreadId};
use crate::notices::{HelpTopic, Notice, Switches};

/// Every switch on.
const ALL_ON: Switches = Switches { failure_notice: true, notices: true };

/// The types that may bring something to a chat.
pub(super) const FOLLOWED: [EventType; 8] = [
    EventType::MessageObservation,
    EventType::RunFailed,
    EventType::RunBlocked,
    EventType::RunAbandoned,
    EventType::NoticeRequested,
    EventType::TelegramCommand,
    EventType::JudgmentRecorded,
    EventType::MemoryMaterialized,
];

/// The reason of a blocked run that the next version of its declaration took over: nobody is told.
const SUPERSEDED: &str = "superseded";

/// Where something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) chat: ChatId,
    pub(super) thread: Option<ThreadId>,
    /// The message that is answered, where one is.
    pub(super) answers: Option<MessageId>,
}

impl Destination {
    /// The message to reply to: in a group people have to see whom an answer is for, in a private chat they know.
    pub(super) fn reply_to(&self) -> Option<MessageId> {
        self.answers.filter(|_| self.chat.0 < 0)
    }
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// The text of an output.
    Reply,
    /// One of the fixed texts.
    Notice(Notice),
}

/// What an event brings to a chat. Holds no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) cause: EventId,
    pub(super) kind: DeliveryKind,
    pub(super) to: Destination,
    pub(super) body: Body,
}

/// The messages of a letter, and what its receipt says of their origin.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) chunks: Vec<Formatted>,
    pub(super) run: Option<RunId>,
    pub(super) output: Option<EventId>,
}

/// A letter that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum LetterError {
    /// The store cannot be read.
    #[error("read what a delivery rests on")]
    Store(#[from] StoreError),
    /// An event is not what its type demands.
    #[error("read what a delivery rests on")]
    Payload(#[from] PayloadError),
}

/// The letter that says of a correction that it matched nothing, where the command came through this channel.
pub(super) fn refusal_letter(
    channel: &SourceName,
    switches: Switches,
    command: &StoredEvent,
) -> Result<Option<Letter>, PayloadError> {
    let notice = Notice::NotMatched;
    if command.envelope.event_type != EventType::TelegramCommand || !notice.is_on(switches) {
        return Ok(None);
    }
    let letter = |to| Letter {
        cause: command.envelope.id.clone(),
        kind: DeliveryKind::NotMatched,
        to,
        body: Body::Notice(notice),
    };
    // A command that cannot be read may be refused too, and then nobody knows where to say it.
    Ok(said_by_person(channel, command)?.map(letter))
}

/// The letters that an event may have brought to a chat, whatever is configured by now: what was begun is finished.
pub(super) async fn letters_of(
    reader: &Reader,
    channel: &SourceName,
    event: &StoredEvent,
) -> Result<Vec<Letter>, LetterError> {
    let said = letter_of(reader, channel, ALL_ON, event).await?;
    let refused = refusal_letter(channel, ALL_ON, event)?;
    Ok(said.into_iter().chain(refused).collect())
}

const fn kind_of(notice: Notice) -> DeliveryKind {
    match notice {
        Notice::RunFailed => DeliveryKind::RunFailed,
        Notice::RunHeld => DeliveryKind::RunHeld,
        Notice::UnsupportedKind => DeliveryKind::UnsupportedKind,
        Notice::MemoryUpdated => DeliveryKind::MemoryUpdated,
        Notice::Corrected => DeliveryKind::Corrected,
        Notice::NotMatched => DeliveryKind::NotMatched,
        Notice::SuggestionsWaiting { .. } => DeliveryKind::SuggestionsWaiting,
        Notice::Help(_) => DeliveryKind::Help,
    }
}

/// The letter that an event brings to a chat of this channel, if it brings one.
pub(super) async fn letter_of(
    reader: &Reader,
    channel: &SourceName,
    switches: Switches,
    event: &StoredEvent,
) -> Result<Option<Letter>, LetterError> {
    let (body, to) = match event.envelope.event_type {
        EventType::MessageObservation => (Body::Reply, parent(reader, channel, event).await?),
        EventType::RunFailed | EventType::RunBlocked | EventType::RunAbandoned => {
            if event.payload::<RunEnded>()?.reason == SUPERSEDED {
                return Ok(None);
            }
            (Body::Notice(Notice::RunFailed), parent(reader, channel, event).await?)
        }
        EventType::NoticeRequested => {
            let request = event.payload::<NoticeRequested>()?;
            let Some(notice) = requested(reader, request.name, event).await? else { return Ok(None) };
            let (chat, thread) = (ChatId(request.chat_id), request.thread_id.map(ThreadId));
            (Body::Notice(notice), Some(Destination { chat, thread, answers: None }))
        }
        EventType::TelegramCommand => {
            let Some(topic) = help_topic(&event.payload::<TelegramCommand>()?.command) else {
                return Ok(None);
            };
            (Body::Notice(Notice::Help(topic)), said_by_person(channel, event)?)
        }
        EventType::JudgmentRecorded => {
            // One that is released for export says again what a chat has heard already.
            if event.payload::<JudgmentRecorded>()?.external_export_eligible {
                return Ok(None);
            }
            let command = parent_event(reader, event).await?;
            let command = command.filter(|event| event.envelope.event_type == EventType::TelegramCommand);
            (Body::Notice(Notice::Corrected), destination(channel, command)?)
        }
        EventType::MemoryMaterialized => {
            let root = reader.event(event.envelope.root_id.clone()).await?;
            // The message that led to the suggestion may be long past: nothing is quoted.
            let to = destination(channel, root)?.map(|to| Destination { answers: None, ..to });
            (Body::Notice(Notice::MemoryUpdated), to)
        }
        _ => return Ok(None),
    };
    let kind = match body {
        Body::Reply => DeliveryKind::Reply,
        Body::Notice(notice) if notice.is_on(switches) => kind_of(notice),
        Body::Notice(_) => return Ok(None),
    };
    Ok(to.map(|to| Letter { cause: event.envelope.id.clone(), kind, to, body }))
}

/// What a request asks to be said; nothing, where nothing waits any more.
async fn requested(
    reader: &Reader,
    name: NoticeName,
    request: &StoredEvent,
) -> Result<Option<Notice>, LetterError> {
    Ok(match name {
        NoticeName::RunHeld => Some(Notice::RunHeld),
        NoticeName::UnsupportedKind => Some(Notice::UnsupportedKind),
        NoticeName::Help => Some(Notice::Help(HelpTopic::Commands)),
        NoticeName::SuggestionsWaiting => match waiting_at(reader, request.envelope.position).await? {
            0 => None,
            count => Some(Notice::SuggestionsWaiting { count }),
        },
    })
}

fn help_topic(command: &str) -> Option<HelpTopic> {
    match command {
        "start" => Some(HelpTopic::Start),
        "help" => Some(HelpTopic::Commands),
        "focus" => Some(HelpTopic::Focus),
        _ => None,
    }
}

async fn parent_event(reader: &Reader, event: &StoredEvent) -> Result<Option<StoredEvent>, StoreError> {
    match &event.envelope.parent_id {
        Some(parent) => reader.event(parent.clone()).await,
        None => Ok(None),
    }
}

async fn parent(
    reader: &Reader,
    channel: &SourceName,
    event: &StoredEvent,
) -> Result<Option<Destination>, LetterError> {
    Ok(destination(channel, parent_event(reader, event).await?)?)
}

fn destination(channel: &SourceName, said: Option<StoredEvent>) -> Result<Option<Destination>, PayloadError> {
    said.map_or(Ok(None), |said| said_by_person(channel, &said))
}

/// Where a person of this channel said something; none for any other event.
pub(super) fn said_by_person(
    channel: &SourceName,
    said: &StoredEvent,
) -> Result<Option<Destination>, PayloadError> {
    if said.envelope.source != *channel {
        return Ok(None);
    }
    let (chat, thread, message) = match said.envelope.event_type {
        EventType::TelegramMessage => {
            let message = said.payload::<TelegramMessage>()?;
            (message.chat_id, message.thread_id, message.message_id)
        }
        EventType::TelegramCommand => {
            let command = said.payload::<TelegramCommand>()?;
            (command.chat_id, command.thread_id, command.message_id)
        }
        _ => return Ok(None),
    };
    let (thread, answers) = (thread.map(ThreadId), Some(MessageId(message)));
    Ok(Some(Destination { chat: ChatId(chat), thread, answers }))
}

/// The messages of a letter. The same event gives the same messages, as long as the rendering is the same.
pub(super) fn render(letter: &Letter, event: &StoredEvent) -> Result<Rendered, PayloadError> {
    match letter.body {
        Body::Notice(notice) => {
            let chunks = chunks::split(&Formatted::plain(notice.text()));
            Ok(Rendered { chunks, run: None, output: None })
        }
        Body::Reply => {
            let output = event.payload::<MessageObservation>()?;
            let completeness = if output.truncated { Completeness::CutShort } else { Completeness::Whole };
            let chunks = chunks::reply(&output.summary, completeness);
            Ok(Rendered { chunks, run: Some(output.run), output: Some(event.envelope.id.clone()) })
        }
    }
}
