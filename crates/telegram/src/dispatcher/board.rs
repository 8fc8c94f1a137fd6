//! Who is served next: one delivery of a chat at a time, chats side by side, and how far the log is worked off. Pure.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thought_contract::event::StoredEvent;
use thought_store::row::ChunkState;

use super::letter::Letter;
use crate::ids::ChatId;
use crate::limits::{CHATS_AT_ONCE_MAX, DELIVERIES_WAITING_MAX};

/// How a delivery begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// From its event, which stands at this position.
    Event {
        /// The event's position.
        position: u64,
    },
    /// From a correction that matched nothing, which has this place among them.
    Refusal {
        /// The place.
        ordinal: u64,
    },
    /// In the middle: this chunk stands there, and was certainly not sent.
    Chunk {
        /// The chunk.
        ordinal: u32,
        /// Where it stands.
        from: ChunkState,
    },
}

/// A delivery that is due.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) letter: Letter,
    pub(super) begin: Begin,
    /// The event, if it is still at hand; one that has to wait is read again.
    pub(super) event: Option<StoredEvent>,
}

/// How far the log is worked off, or the corrections that matched nothing, by their places. Shared with the deliveries under way, each of which takes its own event off.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Positions>>);

#[derive(Debug, Default)]
struct Positions {
    /// Everything up to here was read.
    read: u64,
    /// What of it is not recorded as begun.
    open: BTreeSet<u64>,
}

impl Progress {
    fn positions(&self) -> MutexGuard<'_, Positions> {
        // Every change is a single step, so what a panic leaves is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin_at(&self, position: u64) {
        self.positions().read = position;
    }

    /// Everything up to here was read.
    pub(super) fn read(&self) -> u64 {
        self.positions().read
    }

    /// An event without a delivery.
    pub(super) fn skip(&self, position: u64) {
        self.positions().read = position;
    }

    /// An event with a delivery.
    pub(super) fn add(&self, position: u64) {
        let mut positions = self.positions();
        positions.read = position;
        positions.open.insert(position);
    }

    /// The cursor as it is right in the commit that takes this event off: below the first that is still open.
    pub(super) fn cursor_without(&self, position: u64) -> u64 {
        let positions = self.positions();
        let first = positions.open.iter().find(|open| **open != position);
        first.map_or(positions.read, |first| first - 1)
    }

    /// The cursor as it is right now.
    pub(super) fn cursor(&self) -> u64 {
        let positions = self.positions();
        positions.open.first().map_or(positions.read, |first| first - 1)
    }

    /// The commit that takes this event off is durable.
    pub(super) fn done(&self, position: u64) {
        self.positions().open.remove(&position);
    }
}

/// Deliveries that wait, by chat.
#[derive(Debug, Default)]
pub(super) struct Board {
    lanes: HashMap<ChatId, VecDeque<Job>>,
    /// Chats that have something waiting and are not served, in the order in which they came.
    ready: VecDeque<ChatId>,
    served: HashSet<ChatId>,
    waiting: usize,
}

impl Board {
    /// Whether no more may be taken on.
    pub(super) fn is_full(&self) -> bool {
        self.waiting >= DELIVERIES_WAITING_MAX
    }

    /// Takes on a delivery, behind all others of its chat.
    pub(super) fn push(&mut self, mut job: Job) {
        let chat = job.letter.to.chat;
        let lane = self.lanes.entry(chat).or_default();
        let starts_at_once =
            lane.is_empty() && !self.served.contains(&chat) && self.served.len() < CHATS_AT_ONCE_MAX;
        if !starts_at_once {
            job.event = None;
        }
        if lane.is_empty() && !self.served.contains(&chat) {
            self.ready.push_back(chat);
        }
        lane.push_back(job);
        self.waiting += 1;
    }

    /// The next delivery that may begin; its chat is served until [`Board::finished`].
    pub(super) fn next(&mut self) -> Option<Job> {
        if self.served.len() >= CHATS_AT_ONCE_MAX {
            return None;
        }
        let chat = self.ready.pop_front()?;
        let job = self.lanes.get_mut(&chat)?.pop_front()?;
        self.waiting -= 1;
        self.served.insert(chat);
        Some(job)
    }

    /// The delivery of this chat came to an end.
    pub(super) fn finished(&mut self, chat: ChatId) {
        self.served.remove(&chat);
        match self.lanes.get(&chat) {
            Some(lane) if !lane.is_empty() => self.ready.push_back(chat),
            _ => drop(self.lanes.remove(&chat)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use thought_contract::payload::DeliveryKind;
    use thought_protocol::EventId;

    use super::super::letter::{Body, Destination};
    use super::*;
    use crate::notices::Notice;

    fn job(chat: i64, position: u64) -> Job {
        let letter = Letter {
            cause: EventId::of("test", &[json!(position)]),
            kind: DeliveryKind::RunFailed,
            to: Destination { chat: ChatId(chat), thread: None, answers: None },
            body: Body::Notice(Notice::RunFailed),
        };
        Job { letter, begin: Begin::Event { position }, event: None }
    }

    fn next(board: &mut Board) -> Option<(i64, u64)> {
        let job = board.next()?;
        match job.begin {
            Begin::Event { position } => Some((job.letter.to.chat.0, position)),
            Begin::Refusal { .. } | Begin::Chunk { .. } => None,
        }
    }

    #[test]
    fn a_chat_is_served_in_order_one_at_a_time_and_holds_up_no_other() {
        let mut board = Board::default();
        for (chat, position) in [(1, 1), (1, 2), (2, 3), (1, 4)] {
            board.push(job(chat, position));
        }
        assert_eq!(next(&mut board), Some((1, 1)));
        assert_eq!(next(&mut board), Some((2, 3)));
        assert_eq!(next(&mut board), None);
        board.finished(ChatId(1));
        board.push(job(2, 5));
        assert_eq!(next(&mut board), Some((1, 2)));
        assert_eq!(next(&mut board), None);
        board.finished(ChatId(2));
        assert_eq!(next(&mut board), Some((2, 5)));
        board.finished(ChatId(1));
        assert_eq!(next(&mut board), Some((1, 4)));
        board.finished(ChatId(1));
        board.finished(ChatId(2));
        assert_eq!(next(&mut board), None);
        assert!(board.lanes.is_empty());
    }

    #[test]
    fn what_waits_and_what_is_served_is_bounded() {
        let mut board = Board::default();
        for position in 1..=DELIVERIES_WAITING_MAX as u64 {
            assert!(!board.is_full());
            board.push(job(position as i64, position));
        }
        assert!(board.is_full());
        let begun = std::iter::from_fn(|| board.next()).count();
        assert_eq!(begun, CHATS_AT_ONCE_MAX);
        assert!(!board.is_full());
    }

    #[test]
    fn the_cursor_never_passes_an_event_that_was_not_begun() {
        let progress = Progress::default();
        progress.begin_at(10);
        progress.add(12);
        progress.add(15);
        progress.skip(17);
        assert_eq!(progress.cursor(), 11);
        // 15 begins first: the cursor stays below 12.
        assert_eq!(progress.cursor_without(15), 11);
        progress.done(15);
        assert_eq!(progress.cursor_without(12), 17);
        progress.done(12);
        assert_eq!((progress.cursor(), progress.read()), (17, 17));
    }
}
