//! One sealed worker, kept ahead of its use.
//!
//! A thread of the pool launches the successor once its predecessor is taken, so that taking one waits for
//! nothing. The predecessor gets a head start: a launch takes as much of the processors as the work of a whole
//! turn, and would be paid for in that turn's time. Whoever finds no worker ready ends the head start. A launch
//! that fails is not repeated until somebody asks again.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::errno_of;
use super::launcher::{Launcher, SealedWorker};
use crate::limits::HEAD_START;
use crate::{LaunchError, SealEvidence};

/// What is in the pool's one place.
#[derive(Debug)]
enum Place {
    /// A launch is to be made or on its way.
    Filling,
    /// Ready to be taken.
    Ready(SealedWorker),
    /// The last launch failed; nothing is on its way.
    Vacant,
    /// No more.
    Closed,
}

#[derive(Debug)]
struct Shared {
    launcher: Launcher,
    place: Mutex<Place>,
    changed: Condvar,
    /// Who waits for a worker. Changes under the lock of the place.
    waiting: AtomicUsize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Place> {
        // No holder leaves the place half changed.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, place: MutexGuard<'a, Place>) -> MutexGuard<'a, Place> {
        self.changed.wait(place).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change on the way to a worker, and has the launch begin at once.
    fn wait_for_worker<'a>(&self, place: MutexGuard<'a, Place>) -> MutexGuard<'a, Place> {
        // The first alone rouses the thread: waiters that roused each other would never rest.
        if self.waiting.fetch_add(1, SeqCst) == 0 {
            self.changed.notify_all();
        }
        let place = self.wait(place);
        self.waiting.fetch_sub(1, SeqCst);
        place
    }

    /// Waits until the head start of the worker that was taken is over, or somebody waits for the next.
    fn head_start<'a>(&self, mut place: MutexGuard<'a, Place>) -> MutexGuard<'a, Place> {
        let over = Instant::now() + HEAD_START;
        while matches!(*place, Place::Filling) && self.waiting.load(SeqCst) == 0 {
            let left = over.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            place = self.changed.wait_timeout(place, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        place
    }

    fn set(&self, mut place: MutexGuard<'_, Place>, new: Place) -> Place {
        let old = std::mem::replace(&mut *place, new);
        drop(place);
        self.changed.notify_all();
        old
    }
}

/// Keeps one sealed worker ready. Dropping it closes it.
#[derive(Debug)]
pub struct WarmPool {
    shared: Arc<Shared>,
    filler: Option<JoinHandle<()>>,
}

impl WarmPool {
    /// Begins to launch the first worker at once.
    ///
    /// # Errors
    /// [`LaunchError::Spawn`] if the pool's thread cannot be started.
    pub fn new(launcher: Launcher) -> Result<Self, LaunchError> {
        let shared = Arc::new(Shared {
            launcher,
            place: Mutex::new(Place::Filling),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
        });
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("thought-warm".into()).spawn(move || fill(&its));
        let filler = thread.map_err(|error| LaunchError::Spawn { errno: errno_of(&error) })?;
        Ok(Self { shared, filler: Some(filler) })
    }

    /// Gives the ready worker and begins to launch its successor. Without a ready one it waits for the
    /// launch under way, or launches one itself, within the launcher's bound.
    ///
    /// # Errors
    /// What the launch met, or [`LaunchError::Closed`].
    pub fn checkout(&self) -> Result<SealedWorker, LaunchError> {
        loop {
            let mut place = self.shared.lock();
            while matches!(*place, Place::Filling) {
                place = self.shared.wait_for_worker(place);
            }
            match &*place {
                Place::Closed => return Err(LaunchError::Closed),
                Place::Vacant => {
                    drop(place);
                    return self.launch_here();
                }
                Place::Ready(_) | Place::Filling => {}
            }
            match self.shared.set(place, Place::Filling) {
                Place::Ready(worker) if worker.is_alive() => return Ok(worker),
                // It died while it waited, and is reaped; its successor is on its way.
                dead => drop(dead),
            }
        }
    }

    /// The ready worker, if there is one: waits for nothing, and else is as [`Self::checkout`].
    pub fn checkout_ready(&self) -> Option<SealedWorker> {
        let place = self.shared.lock();
        if !matches!(*place, Place::Ready(_)) {
            return None;
        }
        match self.shared.set(place, Place::Filling) {
            Place::Ready(worker) if worker.is_alive() => Some(worker),
            _ => None,
        }
    }

    /// Waits until a worker is ready, and leaves it in its place.
    ///
    /// # Errors
    /// As [`Self::checkout`].
    pub fn warm_up(&self) -> Result<SealEvidence, LaunchError> {
        loop {
            let mut place = self.shared.lock();
            while matches!(*place, Place::Filling) {
                place = self.shared.wait_for_worker(place);
            }
            match &*place {
                Place::Closed => return Err(LaunchError::Closed),
                Place::Ready(worker) if worker.is_alive() => return Ok(worker.evidence()),
                Place::Ready(_) | Place::Filling => drop(self.shared.set(place, Place::Filling)),
                Place::Vacant => {
                    drop(place);
                    return self.launch_into_place();
                }
            }
        }
    }

    fn launch_into_place(&self) -> Result<SealEvidence, LaunchError> {
        let worker = self.shared.launcher.launch()?;
        let evidence = worker.evidence();
        let place = self.shared.lock();
        // Somebody else may have been faster; then this one ends.
        if matches!(*place, Place::Vacant) {
            drop(self.shared.set(place, Place::Ready(worker)));
        }
        Ok(evidence)
    }

    /// The last launch in the background failed: launch here, and let the thread go on if it works.
    fn launch_here(&self) -> Result<SealedWorker, LaunchError> {
        let worker = self.shared.launcher.launch()?;
        let place = self.shared.lock();
        if matches!(*place, Place::Vacant) {
            drop(self.shared.set(place, Place::Filling));
        }
        Ok(worker)
    }

    /// Ends the ready worker and the pool's thread.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for WarmPool {
    fn drop(&mut self) {
        let place = self.shared.lock();
        drop(self.shared.set(place, Place::Closed));
        if let Some(filler) = self.filler.take() {
            // A launch under way ends within its bound. The thread has no result to give.
            drop(filler.join());
        }
    }
}

/// The thread: one launch whenever the place asks for one.
fn fill(shared: &Shared) {
    let mut was_taken = false;
    loop {
        let mut place = shared.lock();
        while !matches!(*place, Place::Filling | Place::Closed) {
            place = shared.wait(place);
        }
        if was_taken {
            place = shared.head_start(place);
        }
        was_taken = true;
        if matches!(*place, Place::Closed) {
            return;
        }
        drop(place);
        let launched = shared.launcher.launch();
        let place = shared.lock();
        if matches!(*place, Place::Filling) {
            let new = launched.map_or(Place::Vacant, Place::Ready);
            drop(shared.set(place, new));
        }
    }
}
