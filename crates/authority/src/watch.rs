//! Notification: tells when something below the context root moved, so that a person's edit is scanned soon.
//!
//! A hint only: what counts is the look before each snapshot. It watches the root and its folders, finds a root that
//! was replaced, and sleeps until something moves or it is dropped; only while the root is away does it look for it.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;
use tokio::sync::watch;

use crate::limits::{DEPTH_MAX, FOLDERS_WATCHED_MAX, QUIET_MS, QUIET_ROUNDS_MAX, REARM_PAUSE_MS};
use crate::root::{ContextRoot, RootError, open_beneath};

/// Watches a root until it is dropped.
#[derive(Debug)]
pub struct RootWatch {
    moved: watch::Receiver<u64>,
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// A root that cannot be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The root.
    #[error("watch the context root")]
    Root(#[from] RootError),
    /// The system has no watch to give.
    #[error("watch the context root: {0}")]
    System(#[from] Errno),
}

impl RootWatch {
    /// Begins to watch the root and its folders.
    ///
    /// # Errors
    /// [`WatchError`] when the root is not there, or the system has no watch or thread to give.
    pub fn start(root: &ContextRoot) -> Result<Self, WatchError> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (tell, moved) = watch::channel(0);
        let mut watcher =
            Watcher { root: root.clone(), queue, end: end.clone(), watched: BTreeSet::new(), tell };
        watcher.arm()?;
        let thread = std::thread::Builder::new()
            .name("thought-watch".into())
            .stack_size(128 * 1024)
            .spawn(move || watcher.run())
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
        Ok(Self { moved, end, thread: Some(thread) })
    }

    /// Changes whenever something moved, shortly after it came to rest.
    pub fn moved(&self) -> watch::Receiver<u64> {
        self.moved.clone()
    }
}

impl Drop for RootWatch {
    fn drop(&mut self) {
        // The counter of an eventfd that is written once never overflows.
        let _unheard = rustix::io::write(&*self.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // The thread cannot fail in a way that matters at the end.
            drop(thread.join());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Wake {
    Moved,
    Nothing,
    End,
}

/// What a batch of notifications came to.
#[derive(Debug, Default, Clone, Copy)]
struct News {
    /// A name that may be a document's was touched.
    is_told: bool,
    /// A folder came, went or moved, or notifications were lost: the watches may no longer be the right ones.
    is_elsewhere: bool,
}

struct Watcher {
    root: ContextRoot,
    queue: OwnedFd,
    end: Arc<OwnedFd>,
    watched: BTreeSet<i32>,
    tell: watch::Sender<u64>,
}

impl Watcher {
    fn run(mut self) {
        let mut is_armed = true;
        loop {
            let pause_ms = if is_armed { None } else { Some(REARM_PAUSE_MS) };
            let mut news = match self.wait(pause_ms) {
                Wake::End => return,
                Wake::Moved => self.drain(),
                Wake::Nothing => News::default(),
            };
            for _ in 0..QUIET_ROUNDS_MAX {
                if !news.is_told && !news.is_elsewhere {
                    break;
                }
                match self.wait(Some(QUIET_MS)) {
                    Wake::End => return,
                    Wake::Nothing => break,
                    Wake::Moved => {
                        let more = self.drain();
                        news.is_told |= more.is_told;
                        news.is_elsewhere |= more.is_elsewhere;
                    }
                }
            }
            if news.is_elsewhere || !is_armed {
                let was_armed = is_armed;
                is_armed = self.arm().is_ok();
                news.is_told |= is_armed != was_armed;
            }
            if news.is_told {
                self.tell.send_modify(|count| *count = count.wrapping_add(1));
            }
        }
    }

    /// Sleeps until something moved, the end is told, or the pause is over.
    fn wait(&self, pause_ms: Option<i64>) -> Wake {
        let pause = pause_ms.map(|ms| Timespec { tv_sec: ms / 1_000, tv_nsec: (ms % 1_000) * 1_000_000 });
        loop {
            let mut both = [PollFd::new(&self.queue, PollFlags::IN), PollFd::new(&*self.end, PollFlags::IN)];
            match poll(&mut both, pause.as_ref()) {
                Ok(0) => return Wake::Nothing,
                Ok(_) if both[1].revents().is_empty() => return Wake::Moved,
                Err(Errno::INTR) => {}
                // Without a poll there is no watch; the receivers see that it ended.
                Ok(_) | Err(_) => return Wake::End,
            }
        }
    }

    fn drain(&self) -> News {
        let mut room = [std::mem::MaybeUninit::uninit(); 4_096];
        let mut reader = inotify::Reader::new(&self.queue, &mut room);
        let mut news = News::default();
        while let Ok(event) = reader.next() {
            // The lock file is written with every scan; hidden names are never documents.
            if event.file_name().is_some_and(|name| name.to_bytes().starts_with(b".")) {
                continue;
            }
            let lost = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::QUEUE_OVERFLOW;
            let flags = event.events();
            news.is_elsewhere |= flags.intersects(lost | ReadFlags::ISDIR | ReadFlags::IGNORED);
            // A watch that ended tells nothing that its folder did not.
            news.is_told |= !flags.contains(ReadFlags::IGNORED);
        }
        news
    }

    /// Watches the root as it stands now and its folders, and nothing else any more.
    fn arm(&mut self) -> Result<(), WatchError> {
        let mut armed = BTreeSet::new();
        let outcome = match self.root.directory() {
            Ok(folder) => self.arm_folder(folder, 1, &mut armed),
            Err(error) => Err(error.into()),
        };
        for gone in self.watched.difference(&armed) {
            // A watch whose folder was deleted is gone already.
            let _unheard = inotify::remove_watch(&self.queue, *gone);
        }
        self.watched = armed;
        outcome
    }

    fn arm_folder(&self, folder: OwnedFd, depth: usize, armed: &mut BTreeSet<i32>) -> Result<(), WatchError> {
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        // Through the descriptor, so that the folder that was checked is the folder that is watched.
        let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
        armed.insert(inotify::add_watch(&self.queue, path, flags)?);
        if depth == DEPTH_MAX {
            return Ok(());
        }
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            if !may_be_folder || armed.len() >= FOLDERS_WATCHED_MAX {
                continue;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') {
                continue;
            }
            // A folder that cannot be watched is still looked at before each snapshot.
            if let Ok(below) = open_beneath(&folder, name, OFlags::RDONLY | OFlags::DIRECTORY) {
                let _unheard = self.arm_folder(below, depth + 1, armed);
            }
        }
        Ok(())
    }
}
