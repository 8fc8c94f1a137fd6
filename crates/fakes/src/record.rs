//! State behind a lock that others can wait on: what arrived is written here, and whoever waits is woken.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::Error;

/// A value that can be changed from any thread and waited on from any task.
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changes: watch::Sender<u64>,
}

impl<T> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changes: watch::Sender::new(0) }
    }

    /// Looks, or changes without waking anybody. A panic of another holder does not matter: every change is small
    /// and leaves the record readable.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes and wakes all who wait.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        result
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until `count` says at least `wanted`, at most `timeout`.
    pub(crate) async fn wait_for(
        &self,
        what: &'static str,
        wanted: usize,
        timeout: Duration,
        count: impl Fn(&T) -> usize,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        let mut changes = self.subscribe();
        loop {
            let seen = count(&self.lock());
            if seen >= wanted {
                return Ok(());
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(Error::WaitRanOut { what, wanted, seen }),
            }
        }
    }
}

/// A list that keeps its newest entries and counts all.
pub(crate) struct Kept<T> {
    entries: VecDeque<T>,
    total: usize,
    kept_max: usize,
}

impl<T: Clone> Kept<T> {
    pub(crate) fn new(kept_max: usize) -> Self {
        Self { entries: VecDeque::new(), total: 0, kept_max }
    }

    pub(crate) fn push(&mut self, entry: T) {
        if self.entries.len() >= self.kept_max {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.total += 1;
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.entries.iter_mut()
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.entries.iter().cloned().collect()
    }
}
