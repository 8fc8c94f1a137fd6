//! The life of a run, from its turn to its end.
//!
//! A run is taken, checked, given its frozen context and a sealed worker, and only then recorded as started; after that
//! exactly one commit settles it or ends its attempt. Every commit is compare-and-set, so whoever loses it discards
//! what it has. A run never decides, projects or writes outside the store's commands of its declaration.

mod attempt;
mod course;
mod deterministic;
pub(crate) mod end;
mod freeze;
mod settle;
pub(crate) mod verdict;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use thought_contract::draft::DraftError;
use thought_contract::event::{PayloadError, SourceName, StoredEvent};
use thought_contract::run::HeldReason;
use thought_contract::time::Timestamp;
use thought_protocol::{EventId, RunId};
use thought_store::handle::Admission;
use thought_store::{Precondition, StoreError};

use crate::consumer::Parts;
use crate::context::ContextError;
use crate::declarations::Active;
use crate::port::CorrectionsError;
pub(crate) use course::take;

/// A run that could not be carried on: its consumer takes it again later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("carry on a run: reach the store")]
    Store(#[from] StoreError),
    #[error("carry on a run: draft an event")]
    Draft(#[from] DraftError),
    #[error("carry on a run: read its trigger")]
    Payload(#[from] PayloadError),
    #[error("carry on a run: freeze its context")]
    Context(#[from] ContextError),
    #[error("carry on a run: wait for earlier corrections")]
    Corrections(#[from] CorrectionsError),
    #[error("carry on a run: put its settlement together")]
    Settle(#[from] settle::Error),
}

/// What became of a run that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It has ended, here or elsewhere.
    Done,
    /// It waits for a cause to go away.
    Held(HeldReason),
    /// The consumer stops; the store holds all that is known of it.
    Left,
}

/// What all runs of a consumer share.
pub(crate) struct Shared {
    pub(crate) parts: Parts,
    pub(crate) active: Active,
    notices: Mutex<HashSet<(String, String)>>,
}

impl Shared {
    pub(crate) fn new(parts: Parts, active: Active) -> Self {
        Self { parts, active, notices: Mutex::new(HashSet::new()) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn reach(&self, point: &'static str) {
        self.parts.crash.reach(point);
    }

    /// Whether this process has not yet asked for this chat's notice of this day. Days that are over are forgotten.
    fn first_notice(&self, subject: &str, day: &str) -> bool {
        let mut asked = self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        asked.retain(|(_, known)| known == day);
        asked.insert((subject.to_owned(), day.to_owned()))
    }
}

/// The admission that still has to be committed for a run; whoever commits first empties the slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admissions {
    pub(crate) slot: Arc<tokio::sync::Mutex<Option<Admission>>>,
}

impl Admissions {
    pub(crate) fn of(admission: Admission) -> Self {
        Self { slot: Arc::new(tokio::sync::Mutex::new(Some(admission))) }
    }
}

/// Empties the slot when the store has the run: by this commit, or, as the refusal says, already.
pub(crate) fn clear_admitted<T>(slot: &mut Option<Admission>, result: &Result<T, StoreError>) {
    if matches!(result, Ok(_) | Err(StoreError::Precondition(Precondition::RunAbsent))) {
        *slot = None;
    }
}

/// A run by what names it.
#[derive(Debug, Clone)]
pub(crate) struct RunRef {
    pub(crate) id: RunId,
    pub(crate) trigger: EventId,
    pub(crate) source: SourceName,
    pub(crate) sequence: u64,
    pub(crate) retry: u32,
}

/// A run whose turn has come.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub(crate) run: RunRef,
    pub(crate) trigger: Option<StoredEvent>,
    pub(crate) admissions: Admissions,
}
