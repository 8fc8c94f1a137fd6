//! The daily count of suggestions that wait for a person: requested once a UTC day and chat, and counted.
//!
//! Only what has waited since an earlier day is told of: of a new suggestion its own turn has spoken. A chat hears of it
//! where something that waits was said there. It decides nothing, and names no suggestion.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use thought_contract::draft::{self, DraftError, NoticeSubject};
use thought_contract::event::{EventType, PayloadError, SourceName};
use thought_contract::payload::{NoticeName, NoticeRequested, ProposalDecision};
use thought_contract::time::{Clock, Timestamp};
use thought_store::StoreError;
use thought_store::handle::{Notices, Reader};
use thought_store::row::{EventFilter, ProposalFilter, ProposalRow, ProposalState};

use super::letter::said_by_person;
use crate::ids::ChatId;
use crate::limits::{BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS, REMINDER_LOOK_MS, WAITING_PAGE, WAITING_READ_MAX};
use crate::stop::{Backoff, Next, Stop};

/// A look that came to nothing. Content-dark.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("look for suggestions that wait")]
    Store(#[from] StoreError),
    #[error("read where a suggestion was said")]
    Payload(#[from] PayloadError),
    #[error("request the count of suggestions")]
    Draft(#[from] DraftError),
}

/// What the reminder works with.
pub struct ReminderPorts {
    /// Reads.
    pub reader: Reader,
    /// Requests the notice.
    pub notices: Notices,
    /// The present moment.
    pub clock: Arc<dyn Clock>,
}

/// Requests the count, day by day.
pub struct Reminder {
    ports: ReminderPorts,
    channel: SourceName,
    allowed_chats: BTreeSet<ChatId>,
    /// What this process has asked for on the day that is on.
    asked: (String, BTreeSet<ChatId>),
}

impl std::fmt::Debug for Reminder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reminder").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl Reminder {
    /// Prepares, for the admitted chats of a channel.
    pub const fn new(ports: ReminderPorts, channel: SourceName, allowed_chats: BTreeSet<ChatId>) -> Self {
        Self { ports, channel, allowed_chats, asked: (String::new(), BTreeSet::new()) }
    }

    /// Works until told to stop.
    pub async fn run(mut self, stop: Stop) {
        let mut backoff = Backoff::new(BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS);
        loop {
            let pause = match self.look().await {
                Ok(()) => {
                    backoff.reset();
                    self.until_the_next_look()
                }
                Err(error) => {
                    tracing::warn!(%error, "suggestions that wait are not counted");
                    backoff.next_pause()
                }
            };
            if stop.pause(pause).await == Next::Stop {
                return;
            }
        }
    }

    /// To the next day, or less: a calendar may step.
    fn until_the_next_look(&self) -> Duration {
        let now = self.ports.clock.now();
        let left_ms = u64::try_from(now.next_day().since_ms(now)).unwrap_or(REMINDER_LOOK_MS);
        Duration::from_millis(left_ms.clamp(1, REMINDER_LOOK_MS))
    }

    async fn look(&mut self) -> Result<(), Error> {
        let now = self.ports.clock.now();
        if self.asked.0 != now.day() {
            self.asked = (now.day(), BTreeSet::new());
        }
        let oldest = self.ports.reader.proposal_counts().await?.oldest_undecided_at;
        if oldest.is_none_or(|at| !is_of_an_earlier_day(at, now)) {
            return Ok(());
        }
        for chat in self.chats(now).await? {
            if self.asked.1.contains(&chat) {
                continue;
            }
            let about = NoticeSubject {
                subject: draft::telegram_correlation(chat.0, None),
                day: Some(now.day()),
                cause: None,
            };
            let payload =
                NoticeRequested { name: NoticeName::SuggestionsWaiting, chat_id: chat.0, thread_id: None };
            let draft = draft::notice_requested(self.ports.notices.role(), &about, &payload, now)?;
            self.ports.notices.request(draft).await?;
            self.asked.1.insert(chat);
        }
        Ok(())
    }

    /// The admitted chats in which something was said that waits since an earlier day.
    async fn chats(&self, now: Timestamp) -> Result<BTreeSet<ChatId>, Error> {
        let mut chats = BTreeSet::new();
        let mut after = 0;
        for _ in 0..WAITING_READ_MAX.div_ceil(WAITING_PAGE) {
            let page = undecided(&self.ports.reader, after).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for row in page.iter().filter(|row| is_of_an_earlier_day(row.proposed_at, now)) {
                chats.extend(self.chat(row).await?.filter(|chat| self.allowed_chats.contains(chat)));
            }
        }
        Ok(chats)
    }

    async fn chat(&self, row: &ProposalRow) -> Result<Option<ChatId>, Error> {
        let reader = &self.ports.reader;
        let Some(proposal) = reader.event(row.proposal.clone()).await? else { return Ok(None) };
        let Some(root) = reader.event(proposal.envelope.root_id).await? else { return Ok(None) };
        Ok(said_by_person(&self.channel, &root)?.map(|said| said.chat))
    }
}

fn is_of_an_earlier_day(at: Timestamp, now: Timestamp) -> bool {
    at.next_day() <= now
}

async fn undecided(reader: &Reader, after_position: u64) -> Result<Vec<ProposalRow>, StoreError> {
    let filter = ProposalFilter {
        states: vec![ProposalState::Undecided],
        after_position,
        limit: WAITING_PAGE,
        ..ProposalFilter::default()
    };
    reader.proposals(filter).await
}

/// How many suggestions waited at a position of the log, so that the same request says the same whenever it is read: those
/// that wait now, without the newer ones, and with those that were decided since.
pub(super) async fn waiting_at(reader: &Reader, position: u64) -> Result<u64, super::LetterError> {
    let mut waiting = reader.proposal_counts().await?.of(ProposalState::Undecided);
    let mut after = position;
    loop {
        let newer = undecided(reader, after).await?;
        let Some(last) = newer.last() else { break };
        after = last.position;
        waiting = waiting.saturating_sub(newer.len() as u64);
    }
    let mut after = position;
    loop {
        let filter = EventFilter {
            types: vec![EventType::ProposalDecision],
            after_position: after,
            limit: WAITING_PAGE,
            ..EventFilter::default()
        };
        let decisions = reader.events(filter).await?;
        let Some(last) = decisions.last() else { return Ok(waiting) };
        after = last.envelope.position;
        for decision in decisions {
            let proposal = decision.payload::<ProposalDecision>()?.proposal;
            let row = reader.proposal(proposal).await?;
            waiting += u64::from(row.is_some_and(|row| row.position < position));
        }
    }
}
