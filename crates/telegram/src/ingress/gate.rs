//! Which updates are kept: decided on the bytes as they came, before anything is stored.
//!
//! A stranger's update leaves nothing but the number and the kind of its chat. What makes no event is dropped. What is
//! kept is kept reduced to what is read of it, because a message of somebody who is heard quotes and names others. Of an
//! update that cannot be read only numbers are kept, and only if a look at its chat and sender shows somebody who is
//! heard: then it is the spool's task to try it, and to set it aside.

use serde::Deserialize;
use thought_protocol::Sensitive;
use thought_store::handle::{RawUpdate, RefusedChat};

use super::reduce::{reduced, stand_in};
use crate::admit::{Admission, Policy, admit};
use crate::client;
use crate::ids::{ChatId, UserId};
use crate::wire::{Chat, ChatKind, Presence, User, parse_update};

/// A batch, sorted into what is kept and what is counted.
#[derive(Debug, Default)]
pub struct Sifted {
    /// To be spooled, in order of arrival; reduced to what is read of them.
    pub kept: Vec<RawUpdate>,
    /// Chats whose updates are dropped, one entry an update.
    pub refused: Vec<RefusedChat>,
    /// Updates that mean nothing here, or of which not even the chat can be read.
    pub ignored: usize,
}

enum Verdict {
    /// With what is stored.
    Keep(Vec<u8>),
    Refuse {
        chat: ChatId,
        kind: ChatKind,
    },
    Ignore,
}

/// Sorts a batch. Pure.
pub fn sift(updates: Vec<client::RawUpdate>, policy: &Policy) -> Sifted {
    let mut sifted = Sifted::default();
    for raw in updates {
        match verdict(&raw, policy) {
            Verdict::Keep(stored) => {
                sifted.kept.push(RawUpdate { update: raw.update_id.0, body: Sensitive::new(stored) });
            }
            Verdict::Refuse { chat, kind } => {
                sifted.refused.push(RefusedChat { chat: chat.0, kind: kind.as_str().to_owned() });
            }
            Verdict::Ignore => sifted.ignored += 1,
        }
    }
    sifted
}

fn verdict(raw: &client::RawUpdate, policy: &Policy) -> Verdict {
    let Ok(update) = parse_update(&raw.bytes) else { return unreadable(raw, policy) };
    match admit(&update, policy) {
        Admission::Message(_)
        | Admission::Command(_)
        | Admission::Unsupported { .. }
        | Admission::Migrated { .. } => kept(reduced(&update)),
        Admission::Refused { chat_id, chat_kind, .. } => Verdict::Refuse { chat: chat_id, kind: chat_kind },
        Admission::Edited | Admission::Ignored => Verdict::Ignore,
    }
}

fn unreadable(raw: &client::RawUpdate, policy: &Policy) -> Verdict {
    match Glimpse::of(&raw.bytes) {
        Some(glimpse) if glimpse.is_heard(policy) => kept(stand_in(raw.update_id, glimpse.chat, &raw.bytes)),
        Some(Glimpse { chat, .. }) => Verdict::Refuse { chat: chat.id, kind: chat.kind },
        None => Verdict::Ignore,
    }
}

fn kept(stored: Result<Vec<u8>, serde_json::Error>) -> Verdict {
    match stored {
        Ok(stored) => Verdict::Keep(stored),
        // Numbers and texts always have a form.
        Err(_never) => Verdict::Ignore,
    }
}

/// What can still be seen of a message that cannot be read: its chat and its sender.
#[derive(Deserialize)]
struct Glimpse {
    chat: Chat,
    from: Option<User>,
    sender_chat: Option<Presence>,
    via_bot: Option<Presence>,
}

#[derive(Deserialize)]
struct GlimpsedUpdate {
    message: Option<Glimpse>,
}

impl Glimpse {
    fn of(bytes: &[u8]) -> Option<Self> {
        match serde_json::from_slice::<GlimpsedUpdate>(bytes) {
            Ok(update) => update.message,
            Err(_not_even_that) => None,
        }
    }

    /// The rule of admission on what can be seen.
    fn is_heard(&self, policy: &Policy) -> bool {
        let Some(from) = self.from else { return false };
        let in_own_name = self.sender_chat.is_none() && self.via_bot.is_none() && !from.is_bot;
        let may_speak = match self.chat.kind {
            ChatKind::Private => from.id == UserId(self.chat.id.0),
            ChatKind::Group | ChatKind::Supergroup => policy.allowed_users.contains(&from.id),
            ChatKind::Channel | ChatKind::Unknown => false,
        };
        in_own_name && may_speak && policy.allowed_chats.contains(&self.chat.id)
    }
}

/// The chat of an update that cannot be read, where that much can be seen.
pub(crate) fn glimpsed_chat(bytes: &[u8]) -> Option<ChatId> {
    Glimpse::of(bytes).map(|glimpse| glimpse.chat.id)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ids::UpdateId;
    use crate::wire::BotIdentity;

    fn policy() -> Policy {
        Policy {
            allowed_chats: [ChatId(4242), ChatId(-7)].into(),
            allowed_users: [UserId(4242)].into(),
            bot: BotIdentity { id: UserId(1), username: "stream_bot".to_owned() },
        }
    }

    fn sifted(updates: &[Value]) -> Sifted {
        let raw = (1..).zip(updates).map(|(id, update)| client::RawUpdate {
            update_id: UpdateId(id),
            bytes: update.to_string().into_bytes(),
        });
        sift(raw.collect(), &policy())
    }

    fn message(chat: i64, kind: &str, from: i64, text: Value) -> Value {
        json!({"update_id": 1, "message": {"message_id": 1, "date": 1, "text": text,
            "chat": {"id": chat, "type": kind}, "from": {"id": from, "is_bot": false}}})
    }

    #[test]
    fn nothing_of_a_stranger_is_kept_but_the_chat() {
        let sifted = sifted(&[
            message(4242, "private", 4242, json!("hello")),
            message(99, "private", 99, json!("canary")),
            message(-7, "supergroup", 99, json!("canary")),
            message(-7, "supergroup", 4242, json!("hello")),
            message(-8, "group", 4242, json!("canary")),
        ]);
        let kept: Vec<_> = sifted.kept.iter().map(|raw| raw.update).collect();
        assert_eq!(kept, [1, 4]);
        let refused: Vec<_> = sifted.refused.iter().map(|chat| (chat.chat, chat.kind.as_str())).collect();
        assert_eq!(refused, [(99, "private"), (-7, "supergroup"), (-8, "group")]);
        assert!(!format!("{sifted:?}").contains("canary"));
    }

    #[test]
    fn what_makes_no_event_is_dropped_and_not_counted_as_a_strangers() {
        let edited =
            json!({"update_id": 1, "edited_message": message(4242, "private", 4242, json!("x"))["message"]});
        let sifted = sifted(&[
            edited,
            json!({"update_id": 2, "poll": {"id": "x"}}),
            json!({"update_id": 3}),
            json!({"update_id": 4, "message": {"message_id": 1, "new_chat_title": "x",
                "chat": {"id": 4242, "type": "private"}, "from": {"id": 4242, "is_bot": false}}}),
        ]);
        assert_eq!((sifted.kept.len(), sifted.refused.len(), sifted.ignored), (0, 0, 4));
    }

    #[test]
    fn an_unreadable_update_is_kept_only_of_somebody_who_is_heard() {
        let mut as_chat = message(4242, "private", 4242, json!([1]));
        as_chat["message"]["sender_chat"] = json!({"id": -100});
        let sifted = sifted(&[
            message(4242, "private", 4242, json!([1])),
            message(99, "private", 99, json!([1])),
            message(-7, "group", 4242, json!({})),
            message(-7, "group", 99, json!({})),
            as_chat,
            json!({"update_id": 6, "message": "canary"}),
            json!({"update_id": 7, "message": {"message_id": "x", "chat": {"id": 4242, "type": "private"}}}),
        ]);
        let kept: Vec<_> = sifted.kept.iter().map(|raw| raw.update).collect();
        assert_eq!((kept, sifted.refused.len(), sifted.ignored), (vec![1, 3], 4, 1));
    }
}
