//! Notification: tells when something below the context root moved, so that a person's edit is scanned soon.
//!
//! A hint only: what counts is the look before each snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::watch;

use crate::root::ContextRoot;

/// How long the thread sleeps between two looks at whether it should end.
const POLL_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Watches a root until it is dropped.
#[derive(Debug)]
pub struct RootWatch {
    moved: watch::Receiver<u64>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A root that cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("watch the context root: {0}")]
pub struct WatchError(Errno);

impl RootWatch {
    /// Begins to watch the root's own folder.
    ///
    /// # Errors
    /// [`WatchError`] when the system has no watch to give.
    pub fn start(root: &ContextRoot) -> Result<Self, WatchError> {
        use std::os::fd::AsRawFd;
        let directory = root.directory().map_err(|_error| WatchError(Errno::NOTDIR))?;
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(WatchError)?;
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        // Through the descriptor, so that the folder that was checked is the folder that is watched.
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        inotify::add_watch(&queue, path, flags).map_err(WatchError)?;
        let (tell, moved) = watch::channel(0);
        let ending = Arc::new(AtomicBool::new(false));
        let its = ending.clone();
        let thread = std::thread::Builder::new()
            .name("thought-watch".into())
            .stack_size(64 * 1024)
            .spawn(move || follow(&queue, &tell, &its))
            .map_err(|error| WatchError(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)))?;
        Ok(Self { moved, ending, thread: Some(thread) })
    }

    /// Changes whenever something moved.
    pub fn moved(&self) -> watch::Receiver<u64> {
        self.moved.clone()
    }
}

impl Drop for RootWatch {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // The thread cannot fail in a way that matters at the end.
            drop(thread.join());
        }
    }
}

fn follow(queue: &std::os::fd::OwnedFd, tell: &watch::Sender<u64>, ending: &AtomicBool) {
    let mut room = [std::mem::MaybeUninit::uninit(); 4_096];
    while !ending.load(Ordering::Acquire) {
        let mut wait = [PollFd::new(queue, PollFlags::IN)];
        match poll(&mut wait, Some(&POLL_PAUSE)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        let mut reader = inotify::Reader::new(queue, &mut room);
        let mut is_document = false;
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| name.to_bytes());
            // The lock file comes and goes with every scan; hidden names are never documents.
            is_document |= name.is_none_or(|name| !name.starts_with(b"."));
        }
        if is_document {
            tell.send_modify(|count| *count += 1);
        }
    }
}
