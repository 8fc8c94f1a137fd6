//! Reading spooled updates, and the order in which they may become events. Pure.
//!
//! A wave is the longest beginning of what waits in which no chat stands twice: its commits are made side by side and
//! share one write to the disk, and still every event has its place by arrival.

use std::collections::{HashMap, HashSet, VecDeque};

use thought_store::row::SpoolRow;

use crate::admit::{Admission, Policy, admit};
use crate::ids::ChatId;
use crate::ingress::glimpsed_chat;
use crate::wire::parse_update;

/// What is kept in order, and waits together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    /// A chat.
    Chat(ChatId),
    /// An update that belongs to no chat that could be told.
    Alone(i64),
}

/// A spooled update, read.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) update: i64,
    pub(super) tries: u32,
    pub(super) lane: Lane,
    /// What it means, or that it cannot be read.
    pub(super) meaning: Result<Admission, Unreadable>,
}

/// An update that is no update. What it holds is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Updates that become one event: one, or the parts of an album, in order of arrival.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) lane: Lane,
    pub(super) items: Vec<Item>,
}

impl Unit {
    pub(super) fn updates(&self) -> Vec<i64> {
        self.items.iter().map(|item| item.update).collect()
    }

    /// Whether it was collected.
    pub(super) fn is_album(&self) -> bool {
        self.items.first().is_some_and(|item| item.album().is_some())
    }

    /// Its parts, each a unit by itself and its message one of no album.
    pub(super) fn parts(&self) -> impl Iterator<Item = Self> + '_ {
        self.items.iter().cloned().map(|mut item| {
            if let Ok(Admission::Message(message)) = &mut item.meaning {
                message.media_group_id = None;
            }
            Self { lane: self.lane, items: vec![item] }
        })
    }

    /// Failed tries so far.
    pub(super) fn tries(&self) -> u32 {
        self.items.iter().map(|item| item.tries).max().unwrap_or(0)
    }
}

/// Names an album.
pub(super) type Album = (Lane, String);

pub(super) fn read(row: &SpoolRow, policy: &Policy) -> Item {
    let bytes = row.body.expose();
    let (lane, meaning) = match parse_update(bytes) {
        Ok(update) => {
            let admission = admit(&update, policy);
            (chat(&admission), Ok(admission))
        }
        Err(_unreadable) => (glimpsed_chat(bytes), Err(Unreadable)),
    };
    let lane = lane.map_or(Lane::Alone(row.update), Lane::Chat);
    Item { update: row.update, tries: row.tries, lane, meaning }
}

const fn chat(admission: &Admission) -> Option<ChatId> {
    match admission {
        Admission::Message(message) => Some(message.origin.chat_id),
        Admission::Command(command) => Some(command.origin.chat_id),
        Admission::Unsupported { origin, .. } => Some(origin.chat_id),
        Admission::Refused { chat_id, .. } | Admission::Migrated { chat_id, .. } => Some(*chat_id),
        Admission::Edited | Admission::Ignored => None,
    }
}

impl Item {
    pub(super) fn album(&self) -> Option<Album> {
        let group = match &self.meaning {
            Ok(Admission::Message(message)) => message.media_group_id.as_ref(),
            Ok(Admission::Unsupported { media_group_id, .. }) => media_group_id.as_ref(),
            _ => None,
        };
        group.map(|group| (self.lane, group.clone()))
    }
}

/// How many parts of each album wait.
pub(super) fn albums(items: &VecDeque<Item>) -> HashMap<Album, usize> {
    let mut counts = HashMap::new();
    for album in items.iter().filter_map(Item::album) {
        *counts.entry(album).or_insert(0) += 1;
    }
    counts
}

/// Takes the next wave. `waits` are lanes that may not go on; `is_ready` says whether a unit that begins with this item,
/// and is this album, has all that it needs. A lane whose next unit has not, is added to `waits`.
pub(super) fn take_wave(
    items: &mut VecDeque<Item>,
    waits: &mut HashSet<Lane>,
    is_ready: impl Fn(&Item, Option<&Album>) -> bool,
) -> Vec<Unit> {
    let mut wave: Vec<Unit> = Vec::new();
    let mut in_wave = HashSet::new();
    let mut at = 0;
    while let Some(item) = items.get(at) {
        let lane = item.lane;
        if waits.contains(&lane) {
            at += 1;
            continue;
        }
        if in_wave.contains(&lane) {
            break;
        }
        let album = item.album();
        if !is_ready(item, album.as_ref()) {
            waits.insert(lane);
            continue;
        }
        in_wave.insert(lane);
        wave.push(Unit { lane, items: take_unit(items, at, album.as_ref()) });
    }
    wave
}

/// The item at a place, and with it every other part of its album.
fn take_unit(items: &mut VecDeque<Item>, at: usize, album: Option<&Album>) -> Vec<Item> {
    let mut taken: Vec<Item> = items.remove(at).into_iter().collect();
    let mut next = at;
    while album.is_some() && next < items.len() {
        if items.get(next).and_then(Item::album).as_ref() == album {
            taken.extend(items.remove(next));
        } else {
            next += 1;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use thought_contract::time::Timestamp;
    use thought_protocol::Sensitive;

    use super::*;
    use crate::ids::UserId;
    use crate::wire::BotIdentity;

    fn policy() -> Policy {
        Policy {
            allowed_chats: (1..10).map(ChatId).collect(),
            allowed_users: [].into(),
            bot: BotIdentity { id: UserId(100), username: "stream_bot".to_owned() },
        }
    }

    fn item(update: i64, chat: i64, album: Option<&str>) -> Item {
        let mut message = json!({"message_id": update, "date": 1, "text": "x", "chat": {"id": chat, "type": "private"},
            "from": {"id": chat, "is_bot": false}});
        if let Some(album) = album {
            message["media_group_id"] = json!(album);
        }
        let body = json!({"update_id": update, "message": message}).to_string().into_bytes();
        row(update, body)
    }

    fn row(update: i64, body: Vec<u8>) -> Item {
        let row = SpoolRow {
            ordinal: 1,
            update,
            body: Sensitive::new(body),
            tries: 0,
            arrived_at: Timestamp::from_ms(0),
        };
        read(&row, &policy())
    }

    fn waves(items: Vec<Item>, blocked: &[i64], whole: &[&str]) -> Vec<Vec<Vec<i64>>> {
        let mut items = VecDeque::from(items);
        let mut waits: HashSet<_> = blocked.iter().map(|chat| Lane::Chat(ChatId(*chat))).collect();
        let mut waves = Vec::new();
        loop {
            let wave = take_wave(&mut items, &mut waits, |_, album| {
                album.is_none_or(|(_, name)| whole.contains(&name.as_str()))
            });
            if wave.is_empty() {
                return waves;
            }
            waves.push(wave.iter().map(Unit::updates).collect());
        }
    }

    #[test]
    fn a_wave_holds_each_chat_once_and_never_passes_an_earlier_update() {
        let items = vec![item(9, 1, None), item(2, 2, None), item(3, 1, None), item(4, 3, None)];
        assert_eq!(waves(items, &[], &[]), [[[9], [2]], [[3], [4]]]);
    }

    #[test]
    fn a_chat_that_waits_holds_up_nobody_else() {
        let items = vec![item(1, 1, None), item(2, 1, None), item(3, 2, None), item(4, 2, None)];
        assert_eq!(waves(items, &[1], &[]), [[[3]], [[4]]]);
    }

    #[test]
    fn an_album_is_one_unit_once_it_is_whole_and_its_chat_waits_for_it() {
        let parts = || vec![item(1, 1, Some("a")), item(2, 2, None), item(3, 1, Some("a")), item(4, 1, None)];
        assert_eq!(waves(parts(), &[], &[]), [[[2]]]);
        assert_eq!(waves(parts(), &[], &["a"]), [vec![vec![1, 3], vec![2]], vec![vec![4]]]);
        assert_eq!(albums(&parts().into())[&(Lane::Chat(ChatId(1)), "a".to_owned())], 2);
    }

    #[test]
    fn what_cannot_be_read_waits_in_its_own_chat_where_that_can_be_told() {
        let bad = json!({"update_id": 1, "message": {"message_id": "canary",
            "chat": {"id": 3, "type": "private"}}});
        let item = row(1, bad.to_string().into_bytes());
        assert_eq!((item.lane, item.meaning.is_err()), (Lane::Chat(ChatId(3)), true));
        assert!(!format!("{item:?}").contains("canary"));
        assert_eq!(row(7, b"{".to_vec()).lane, Lane::Alone(7));
    }
}
