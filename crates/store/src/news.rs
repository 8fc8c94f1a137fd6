//! News: that something was committed, and what of it a follower may care about.
//!
//! News is a hint to look again and nothing more: it holds no row, and who looks without it finds the same. It may tell of
//! more than there was; it never keeps silent about a topic that a commit touched.

use thought_contract::event::EventType;
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;

use crate::command::{Commit, Op};

/// Kinds of change, as a set: events by their type, and rows by their table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topics(u64);

/// Bits in a set.
const TOPICS: usize = u64::BITS as usize;

// Each type of event has a bit of its own below those of the rows.
const _: () = assert!(EventType::ALL.len() <= Topics::FIRST_ROW as usize);

impl Topics {
    const FIRST_ROW: u32 = 54;
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Everything; what another process does is always told as this.
    pub const ALL: Self = Self(u64::MAX);
    /// A change of a declaration at work was asked for, answered, installed or withdrawn.
    pub const CHANGEOVERS: Self = Self(1 << Self::FIRST_ROW);
    /// A raw update came into the spool.
    pub const SPOOLED: Self = Self(1 << 55);
    /// A person's own correction was judged or refused.
    pub const CORRECTIONS: Self = Self(1 << 56);
    /// A run was admitted.
    pub const RUN_ADMITTED: Self = Self(1 << 57);
    /// A run that was there took another state.
    pub const RUN_MOVED: Self = Self(1 << 58);
    /// A delivery or a chunk of one was opened or moved.
    pub const DELIVERIES: Self = Self(1 << 59);
    /// A proposal entered the index or moved in it.
    pub const PROPOSALS: Self = Self(1 << 60);
    /// A document got a version, or was removed.
    pub const DOCUMENTS: Self = Self(1 << 61);
    /// A role came to work or left.
    pub const ROLES: Self = Self(1 << 62);
    /// Whatever has no topic of its own.
    pub const REST: Self = Self(1 << 63);

    /// Events of one type.
    pub const fn event(event_type: EventType) -> Self {
        Self(1 << event_type as u32)
    }

    /// Events of these types.
    pub fn events<'a>(types: impl IntoIterator<Item = &'a EventType>) -> Self {
        types.into_iter().fold(Self::NONE, |all, event_type| all.and(Self::event(*event_type)))
    }

    /// Both sets together.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the sets have a topic in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What a commit touches.
    pub fn of(commit: &Commit) -> Self {
        commit.ops.iter().fold(Self::NONE, |all, op| all.and(Self::of_op(op)))
    }

    fn of_op(op: &Op) -> Self {
        match op {
            Op::Append(draft) => Self::event(draft.event_type()),
            Op::SpoolPut { .. } => Self::SPOOLED,
            Op::AdmitRun(_) => Self::RUN_ADMITTED,
            Op::StartAttempt { .. } | Op::EndAttempt(_) | Op::HoldRun { .. } | Op::EndRun { .. } => {
                Self::RUN_MOVED
            }
            Op::OpenDelivery { .. } | Op::MoveChunk { .. } | Op::MoveDelivery { .. } => Self::DELIVERIES,
            Op::TrackProposal(_) | Op::MoveProposal { .. } => Self::PROPOSALS,
            Op::PutVersion(_) | Op::RemoveDocument { .. } => Self::DOCUMENTS,
            Op::SettleCorrection { .. } => Self::CORRECTIONS,
            Op::SetRole { .. } => Self::ROLES,
            Op::InstallDeclaration(_)
            | Op::PutChangeover(_)
            | Op::AckChangeover { .. }
            | Op::ClearChangeover { .. } => Self::CHANGEOVERS,
            Op::SpoolDelete { .. }
            | Op::SpoolFailed { .. }
            | Op::CountRefusedChat { .. }
            | Op::SetScanned { .. }
            | Op::PutSnapshot { .. }
            | Op::ExpectJudgment { .. }
            | Op::PutIntent(_)
            | Op::ClearIntent { .. }
            | Op::SetCursor { .. } => Self::REST,
        }
    }

    fn each(self) -> impl Iterator<Item = usize> {
        (0..TOPICS).filter(move |topic| self.0 & (1 << topic) != 0)
    }
}

/// The number of the newest tidings, and of the newest of each topic.
#[derive(Debug)]
struct Tidings {
    number: u64,
    newest: [u64; TOPICS],
}

/// Where an engine tells its news.
#[derive(Debug, Clone)]
pub struct Herald(watch::Sender<Tidings>);

impl Default for Herald {
    fn default() -> Self {
        Self(watch::Sender::new(Tidings { number: 0, newest: [0; TOPICS] }))
    }
}

impl Herald {
    /// Tells that these topics were touched.
    pub fn tell(&self, topics: Topics) {
        self.0.send_modify(|tidings| {
            tidings.number += 1;
            topics.each().for_each(|topic| tidings.newest[topic] = tidings.number);
        });
    }

    /// News from here on, of everything; whatever was told before counts as not seen.
    pub fn news(&self) -> News {
        News { tidings: self.0.subscribe(), about: Topics::ALL, seen: 0 }
    }
}

/// Tells a follower when to look again.
#[derive(Debug, Clone)]
pub struct News {
    tidings: watch::Receiver<Tidings>,
    about: Topics,
    seen: u64,
}

impl News {
    /// The same news, of these topics alone.
    #[must_use]
    pub fn about(self, topics: Topics) -> Self {
        Self { about: topics, ..self }
    }

    /// From now on these topics count, also for what was told and not seen yet.
    pub fn listen_for(&mut self, topics: Topics) {
        self.about = topics;
    }

    /// All that was told so far is seen. Call it before a look, so that what comes in between is told again.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.tidings.borrow_and_update().number;
    }

    /// The topics that were touched since the last time, or since [`Self::mark_unchanged`]; they are seen with this. Call
    /// it before a look, as that one.
    pub fn take(&mut self) -> Topics {
        let tidings = self.tidings.borrow_and_update();
        let touched = self.about.each().filter(|topic| tidings.newest[*topic] > self.seen);
        let touched = touched.fold(Topics::NONE, |all, topic| all.and(Topics(1 << topic)));
        if touched != Topics::NONE {
            self.seen = tidings.number;
        }
        touched
    }

    /// Ends when one of the topics was touched since the last time, or since [`Self::mark_unchanged`]; answers which were.
    ///
    /// # Errors
    /// [`RecvError`] when the engine is gone.
    pub async fn changed(&mut self) -> Result<Topics, RecvError> {
        loop {
            let touched = self.take();
            if touched != Topics::NONE {
                return Ok(touched);
            }
            self.tidings.changed().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn told(news: &mut News) -> Option<Topics> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(news.changed()).poll(&mut context) {
            Poll::Ready(Ok(topics)) => Some(topics),
            _ => None,
        }
    }

    fn is_told(news: &mut News) -> bool {
        told(news).is_some()
    }

    #[test]
    fn a_follower_hears_of_its_own_topics_once() {
        let herald = Herald::default();
        let mut all = herald.news();
        let mut some =
            herald.news().about(Topics::SPOOLED.and(Topics::events(&[EventType::TelegramMessage])));
        assert!(!is_told(&mut all) && !is_told(&mut some));
        herald.tell(Topics::RUN_MOVED);
        assert!(is_told(&mut all) && !is_told(&mut some) && !is_told(&mut all));
        herald.tell(Topics::event(EventType::TelegramMessage));
        herald.tell(Topics::RUN_MOVED);
        assert!(is_told(&mut some) && !is_told(&mut some));
        herald.tell(Topics::ALL);
        some.mark_unchanged();
        assert!(!is_told(&mut some));
    }

    #[test]
    fn what_was_told_and_not_seen_is_heard_by_who_listens_for_more() {
        let herald = Herald::default();
        let mut news = herald.news().about(Topics::SPOOLED);
        herald.tell(Topics::DOCUMENTS);
        assert!(!is_told(&mut news));
        news.listen_for(Topics::ALL);
        assert!(is_told(&mut news) && !is_told(&mut news));
        drop(herald);
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(pin!(news.changed()).poll(&mut context), Poll::Ready(Err(_))));
    }

    #[test]
    fn a_follower_hears_which_of_its_topics_were_touched() {
        let herald = Herald::default();
        let mut news = herald.news().about(Topics::SPOOLED.and(Topics::RUN_ADMITTED));
        herald.tell(Topics::SPOOLED.and(Topics::RUN_MOVED));
        assert_eq!(told(&mut news), Some(Topics::SPOOLED));
        herald.tell(Topics::RUN_ADMITTED);
        herald.tell(Topics::SPOOLED);
        assert_eq!(told(&mut news), Some(Topics::SPOOLED.and(Topics::RUN_ADMITTED)));
        herald.tell(Topics::ALL);
        assert!(told(&mut news).is_some_and(|topics| topics.meets(Topics::RUN_ADMITTED)));
        assert!(!Topics::SPOOLED.meets(Topics::RUN_ADMITTED));
        herald.tell(Topics::SPOOLED);
        assert_eq!(news.take(), Topics::SPOOLED);
        assert_eq!((news.take(), told(&mut news)), (Topics::NONE, None));
    }

    #[test]
    fn every_type_of_event_is_a_topic_of_its_own() {
        for (index, one) in EventType::ALL.iter().enumerate() {
            for other in &EventType::ALL[index + 1..] {
                assert_ne!(Topics::event(*one), Topics::event(*other));
            }
        }
    }
}
