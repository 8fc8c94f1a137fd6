//! What one unit of spooled updates becomes. Pure.

use thought_contract::draft::{self, Draft, DraftError, NoticeSubject};
use thought_contract::event::SourceName;
use thought_contract::payload::{Image, NoticeName, NoticeRequested, TelegramCommand, TelegramMessage};
use thought_contract::time::Timestamp;
use thought_protocol::Sensitive;
use thought_protocol::limits::IMAGES_MAX;
use thought_store::handle::RefusedChat;

use super::lane::{Item, Unit, Unreadable};
use super::photos::{Fetched, Photos};
use crate::admit::{Admission, NewCommand, NewMessage, Origin};
use crate::ids::{ChatId, MessageId, ThreadId};
use crate::notices::Switches;

/// The role that requests this room's notices.
pub(super) const NOTICE_ROLE: &str = "telegram";

/// What is done with a unit.
#[derive(Debug)]
pub(super) enum Step {
    /// An event takes its place, and with it the request of a notice where an album was read in part.
    Event(Box<Draft>, Option<Box<Draft>>),
    /// It is counted as one of a chat that is not heard (any more), and forgotten.
    Refuse(RefusedChat),
    /// A person has to allow a chat anew.
    Migrated {
        /// The group.
        from: ChatId,
        /// The supergroup that it became.
        to: ChatId,
    },
    /// It makes no event.
    Forget,
}

/// Why a unit cannot become an event.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    /// It is no update.
    #[error("read a spooled update")]
    Unreadable,
    /// It has no canonical form.
    #[error("make an event of a spooled update")]
    Draft(#[from] DraftError),
}

impl From<Unreadable> for StepError {
    fn from(Unreadable: Unreadable) -> Self {
        Self::Unreadable
    }
}

/// What of the parts of a message can be read.
enum Content {
    /// Words, photos or both.
    Read {
        /// The text, or the captions.
        text: Option<String>,
        /// The photos, in order.
        images: Vec<Image>,
    },
    /// Photos, and none of them could be had. Their captions would be answered without knowing what they are about.
    NoPhoto,
}

/// What became of the photo of an update.
pub(super) trait Kept {
    /// The image, where it could be had.
    fn image(&self, update: i64) -> Option<Image>;
}

impl Kept for Photos {
    fn image(&self, update: i64) -> Option<Image> {
        match self.of(update) {
            Some(Fetched::Kept(image)) => Some(image.clone()),
            Some(Fetched::Unusable { .. }) | None => None,
        }
    }
}

pub(super) fn step(
    unit: &Unit,
    kept: &impl Kept,
    source: &SourceName,
    switches: Switches,
    now: Timestamp,
) -> Result<Step, StepError> {
    let admissions = unit.items.iter().map(meaning).collect::<Result<Vec<_>, _>>()?;
    let updates = unit.items.iter().map(|item| item.update);
    let messages: Vec<(i64, &NewMessage)> = updates
        .zip(&admissions)
        .filter_map(|(update, admission)| match admission {
            Admission::Message(message) => Some((update, message)),
            _ => None,
        })
        .collect();
    if let Some((_, first)) = messages.first() {
        let album = first.media_group_id.as_deref();
        let Content::Read { text, images } = content(&messages, captions(&admissions), kept) else {
            return Ok(alone(unsupported(first.origin, album, switches, now)?));
        };
        let notice = match messages.len() < admissions.len() {
            true => unsupported(first.origin, album, switches, now)?,
            false => None,
        };
        return Ok(Step::Event(Box::new(message(first, text, images, source, now)?), notice.map(Box::new)));
    }
    Ok(match admissions.first() {
        Some(Admission::Command(new)) => alone(Some(command(new, source, now)?)),
        Some(Admission::Unsupported { origin, media_group_id, .. }) => {
            alone(unsupported(*origin, media_group_id.as_deref(), switches, now)?)
        }
        Some(Admission::Refused { chat_id, chat_kind, .. }) => {
            Step::Refuse(RefusedChat { chat: chat_id.0, kind: chat_kind.as_str().to_owned() })
        }
        Some(Admission::Migrated { chat_id, to }) => Step::Migrated { from: *chat_id, to: *to },
        Some(Admission::Edited | Admission::Ignored | Admission::Message(_)) | None => Step::Forget,
    })
}

fn meaning(item: &Item) -> Result<&Admission, StepError> {
    match &item.meaning {
        Ok(admission) => Ok(admission),
        Err(unreadable) => Err((*unreadable).into()),
    }
}

fn alone(draft: Option<Draft>) -> Step {
    draft.map_or(Step::Forget, |draft| Step::Event(Box::new(draft), None))
}

/// The words of all parts, in order. Of an album they are about the whole, whichever part they stand under.
fn captions<'a>(admissions: &[&'a Admission]) -> Vec<&'a str> {
    let words = |admission: &&'a Admission| match admission {
        Admission::Message(message) => message.text.as_ref(),
        Admission::Unsupported { caption, .. } => caption.as_ref(),
        _ => None,
    };
    admissions.iter().filter_map(words).map(|text| text.expose().as_str()).collect()
}

fn content(messages: &[(i64, &NewMessage)], texts: Vec<&str>, kept: &impl Kept) -> Content {
    let mut with_photo = messages.iter().filter(|(_, message)| !message.photos.is_empty()).peekable();
    let has_photos = with_photo.peek().is_some();
    let images: Vec<Image> =
        with_photo.filter_map(|(update, _)| kept.image(*update)).take(IMAGES_MAX).collect();
    if has_photos && images.is_empty() {
        return Content::NoPhoto;
    }
    Content::Read { text: (!texts.is_empty()).then(|| texts.join("\n\n")), images }
}

/// Whether the event of an album holds what a part brings: then the part came twice, and else it came too late for it.
/// What is not read is told of once an album, whenever it came.
pub(super) fn holds(known: &TelegramMessage, part: &Unit, kept: &impl Kept) -> bool {
    part.items.iter().all(|item| {
        let Ok(Admission::Message(message)) = &item.meaning else { return false };
        let is_shown = |image: Image| known.images.iter().any(|one| one.blob_sha256 == image.blob_sha256);
        let is_said = |words: &Sensitive<String>| {
            known.text.as_ref().is_some_and(|text| text.contains(words.expose().as_str()))
        };
        let image = (!message.photos.is_empty()).then(|| kept.image(item.update));
        image.is_none_or(|image| image.is_some_and(is_shown)) && message.text.as_ref().is_none_or(is_said)
    })
}

fn said_at(origin: Origin, now: Timestamp) -> Timestamp {
    origin.sent_at_s.map_or(now, |seconds| Timestamp::from_ms(seconds.saturating_mul(1_000)))
}

fn message(
    first: &NewMessage,
    text: Option<String>,
    images: Vec<Image>,
    source: &SourceName,
    now: Timestamp,
) -> Result<Draft, StepError> {
    let origin = first.origin;
    let payload = TelegramMessage {
        chat_id: origin.chat_id.0,
        thread_id: origin.thread_id.map(|ThreadId(id)| id),
        message_id: origin.message_id.0,
        user_id: origin.user_id.0,
        text,
        images,
        reply_to_message_id: origin.reply_to_message_id.map(|MessageId(id)| id),
        media_group_id: first.media_group_id.clone(),
    };
    Ok(draft::telegram_message(source, origin.bot_id.0, &payload, said_at(origin, now))?)
}

fn command(new: &NewCommand, source: &SourceName, now: Timestamp) -> Result<Draft, StepError> {
    let origin = new.origin;
    let payload = TelegramCommand {
        chat_id: origin.chat_id.0,
        thread_id: origin.thread_id.map(|ThreadId(id)| id),
        message_id: origin.message_id.0,
        user_id: origin.user_id.0,
        command: new.command.as_str().to_owned(),
        argument: new.argument.as_ref().map(|argument| argument.expose().clone()),
        reply_to_message_id: origin.reply_to_message_id.map(|MessageId(id)| id),
    };
    Ok(draft::telegram_command(source, origin.bot_id.0, &payload, said_at(origin, now))?)
}

/// One notice per message or album; none where notices are off.
fn unsupported(
    origin: Origin,
    album: Option<&str>,
    switches: Switches,
    now: Timestamp,
) -> Result<Option<Draft>, StepError> {
    if !switches.notices {
        return Ok(None);
    }
    let payload = NoticeRequested {
        name: NoticeName::UnsupportedKind,
        chat_id: origin.chat_id.0,
        thread_id: origin.thread_id.map(|ThreadId(id)| id),
    };
    let which = album.map_or_else(|| origin.message_id.to_string(), str::to_owned);
    let about = NoticeSubject { subject: format!("{}:{which}", origin.chat_id), day: None, cause: None };
    Ok(Some(draft::notice_requested(NOTICE_ROLE, &about, &payload, said_at(origin, now))?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use thought_contract::event::EventType;
    use thought_protocol::{Sensitive, Sha256Hex};
    use thought_store::row::SpoolRow;

    use super::super::lane::read;
    use super::*;
    use crate::admit::Policy;
    use crate::ids::UserId;
    use crate::wire::BotIdentity;

    const ON: Switches = Switches { failure_notice: true, notices: true };

    fn of(parts: &[Value], switches: Switches) -> Result<Step, StepError> {
        let policy = Policy {
            allowed_chats: [ChatId(7)].into(),
            allowed_users: [].into(),
            bot: BotIdentity { id: UserId(100), username: "stream_bot".to_owned() },
        };
        let items: Vec<Item> = (1..)
            .zip(parts)
            .map(|(update, part)| {
                let mut message = json!({"message_id": update, "date": 1_796_000_000,
                    "chat": {"id": 7, "type": "private"}, "from": {"id": 7, "is_bot": false}});
                for (name, value) in part.as_object().unwrap() {
                    message[name] = value.clone();
                }
                let body = json!({"update_id": update, "message": message}).to_string().into_bytes();
                let arrived_at = Timestamp::from_ms(5);
                read(
                    &SpoolRow { ordinal: 1, update, body: Sensitive::new(body), tries: 0, arrived_at },
                    &policy,
                )
            })
            .collect();
        let unit = Unit { lane: items[0].lane, items };
        step(&unit, &Odd, &SourceName::new("telegram:stream"), switches, Timestamp::from_ms(9))
    }

    /// The photos of odd updates could be had.
    struct Odd;

    impl Kept for Odd {
        fn image(&self, update: i64) -> Option<Image> {
            let blob_sha256 = Sha256Hex::of(&update.to_be_bytes());
            let media_type = "image/png".to_owned();
            (update % 2 == 1).then_some(Image { blob_sha256, media_type, byte_count: 8, width: 1, height: 2 })
        }
    }

    fn event(parts: &[Value]) -> (EventType, String) {
        match of(parts, ON).unwrap() {
            Step::Event(draft, None) => {
                (draft.event_type(), String::from_utf8(draft.payload().expose().clone()).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    fn photo() -> Value {
        json!([{"file_id": "a", "width": 1, "height": 1}])
    }

    #[test]
    fn a_text_and_a_caption_are_messages_told_at_their_own_time() {
        let Step::Event(draft, None) = of(&[json!({"text": "hello"})], ON).unwrap() else { panic!() };
        assert_eq!(draft.occurred_at().ms(), 1_796_000_000_000);
        assert_eq!(draft.external_id(), Some("7:1"));
        let (kind, payload) = event(&[json!({"photo": photo(), "caption": "look"})]);
        assert_eq!(kind, EventType::TelegramMessage);
        assert!(payload.contains(r#""text":"look""#) && payload.contains(r#""byteCount":8"#), "{payload}");
        let (kind, payload) = event(&[json!({"photo": photo()})]);
        assert_eq!(kind, EventType::TelegramMessage);
        assert!(
            !payload.contains(r#""text""#) && payload.contains(r#""mediaType":"image/png""#),
            "{payload}"
        );
    }

    #[test]
    fn an_album_is_one_message_with_all_captions() {
        let part = |caption: &str| json!({"photo": photo(), "caption": caption, "media_group_id": "g"});
        let bare = json!({"photo": photo(), "media_group_id": "g"});
        let (kind, payload) = event(&[part("one"), bare, part("two")]);
        assert_eq!(kind, EventType::TelegramMessage);
        assert!(payload.contains(r#""text":"one\n\ntwo""#) && payload.contains(r#""messageId":1"#));
        // Of the three, the second photo could not be had.
        assert_eq!(payload.matches("blobSha256").count(), 2, "{payload}");
    }

    #[test]
    fn of_an_album_that_is_read_in_part_every_caption_is_heard_and_the_rest_is_told_of_once() {
        let read = json!({"photo": photo(), "media_group_id": "g"});
        let film = json!({"video": {}, "caption": "look at both", "media_group_id": "g"});
        let bare = json!({"video": {}, "media_group_id": "g"});
        let Step::Event(draft, Some(notice)) = of(&[read.clone(), film, bare.clone()], ON).unwrap() else {
            panic!("an event and a notice")
        };
        let payload = String::from_utf8(draft.payload().expose().clone()).unwrap();
        assert!(payload.contains(r#""text":"look at both""#) && payload.contains("blobSha256"), "{payload}");
        assert_eq!(notice.event_type(), EventType::NoticeRequested);
        // The same notice as for a part that comes alone.
        let Step::Event(alone, None) = of(std::slice::from_ref(&bare), ON).unwrap() else {
            panic!("a notice")
        };
        assert_eq!(alone.id(), notice.id());
        let off = Switches { failure_notice: true, notices: false };
        assert!(matches!(of(&[read, bare], off).unwrap(), Step::Event(_, None)));
    }

    #[test]
    fn what_cannot_be_read_gives_one_notice_or_none_where_notices_are_off() {
        let lost = json!({"photo": photo(), "caption": "look", "media_group_id": "g"});
        let sticker = json!({"sticker": {}});
        for parts in [
            vec![sticker.clone()],
            vec![sticker.clone(), lost],
            vec![json!({"animation": {}, "caption": "x"})],
        ] {
            assert_eq!(event(&parts).0, EventType::NoticeRequested);
            let off = Switches { failure_notice: true, notices: false };
            assert!(matches!(of(&parts, off), Ok(Step::Forget)));
        }
    }

    #[test]
    fn commands_strangers_and_moves_are_told_apart() {
        assert_eq!(event(&[json!({"text": "/help"})]).0, EventType::TelegramCommand);
        assert_eq!(event(&[json!({"text": "/focus bicycles"})]).0, EventType::TelegramMessage);
        let stranger = json!({"text": "x", "from": {"id": 8}});
        assert!(matches!(of(&[stranger], ON), Ok(Step::Refuse(chat)) if chat.chat == 7));
        let moved = json!({"migrate_to_chat_id": -1007});
        assert!(matches!(of(&[moved], ON), Ok(Step::Migrated { to: ChatId(-1007), .. })));
        assert!(matches!(of(&[json!({"new_chat_title": "x"})], ON), Ok(Step::Forget)));
        assert!(matches!(of(&[json!({"text": [1]})], ON), Err(StepError::Unreadable)));
    }
}
