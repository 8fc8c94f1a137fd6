//! Faults that are drawn beforehand and armed for one step: what fires, where, and how often each kind did.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use thought_authority::materialize;
use thought_runtime::port;
use thought_store_sqlite::{Faults, Verdict};
use tokio::sync::watch;

/// What goes wrong in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process dies before its nth commit.
    CrashBefore(u32),
    /// The process dies after its nth commit, which is durable and was told to nobody.
    CrashAfter(u32),
    /// The nth commit fails with an error of the disk.
    CommitFails(u32),
    /// The nth commit finds no space.
    NoSpace(u32),
    /// The nth commit is durable, and its caller is told that it failed.
    ToldFailed(u32),
    /// The nth read fails.
    ReadFails(u32),
    /// The process dies at a named point of the code.
    Point(&'static str),
    /// The document cannot be written: no space, or an error of the disk.
    FileFails(&'static str),
    /// The file system cannot exchange two names.
    NoExchange,
    /// A person saves the document at a named point of its materialization.
    SavedMeanwhile(&'static str),
}

impl Fault {
    pub(crate) const KINDS: [&'static str; 10] = [
        "crash-before-commit",
        "crash-after-commit",
        "commit-io-error",
        "commit-no-space",
        "commit-told-failed",
        "read-error",
        "crash-at-point",
        "file-write-error",
        "no-exchange",
        "saved-meanwhile",
    ];

    const fn kind(&self) -> &'static str {
        match self {
            Self::CrashBefore(_) => Self::KINDS[0],
            Self::CrashAfter(_) => Self::KINDS[1],
            Self::CommitFails(_) => Self::KINDS[2],
            Self::NoSpace(_) => Self::KINDS[3],
            Self::ToldFailed(_) => Self::KINDS[4],
            Self::ReadFails(_) => Self::KINDS[5],
            Self::Point(_) => Self::KINDS[6],
            Self::FileFails(_) => Self::KINDS[7],
            Self::NoExchange => Self::KINDS[8],
            Self::SavedMeanwhile(_) => Self::KINDS[9],
        }
    }
}

/// What a commit is to come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Lives,
    DiesBefore,
    DiesAfter,
}

#[derive(Default)]
struct State {
    armed: Option<Fault>,
    before: Option<Verdict>,
    after: Option<Verdict>,
    fired: BTreeMap<String, u64>,
    saves: u64,
}

/// The faults of one world.
pub(crate) struct Chaos {
    state: Mutex<State>,
    dead: watch::Sender<bool>,
    memory: PathBuf,
}

impl Chaos {
    pub(crate) fn new(memory: PathBuf) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), dead: watch::Sender::new(false), memory })
    }

    pub(crate) fn arm(&self, fault: Option<Fault>) {
        let mut state = self.state.lock().unwrap();
        (state.armed, state.before, state.after) = (fault, None, None);
    }

    /// Counts that something happened.
    pub(crate) fn count(&self, what: &str) {
        *self.state.lock().unwrap().fired.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.state.lock().unwrap().fired.clone()
    }

    pub(crate) fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// The next process is at work.
    pub(crate) fn revive(&self) {
        self.dead.send_replace(false);
    }

    pub(crate) async fn died(&self) {
        self.dead.subscribe().wait_for(|dead| *dead).await.unwrap();
    }

    pub(crate) fn die(&self) {
        self.dead.send_replace(true);
    }

    /// Takes the armed fault if it is one that is due now.
    fn due(&self, is_it: impl FnOnce(&mut Fault) -> bool) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        if !state.armed.as_mut().is_some_and(is_it) {
            return None;
        }
        let fault = state.armed.take()?;
        *state.fired.entry(fault.kind().to_owned()).or_default() += 1;
        Some(fault)
    }

    pub(crate) fn on_commit(&self) -> Fate {
        let due = self.due(|fault| match fault {
            Fault::CrashBefore(left)
            | Fault::CrashAfter(left)
            | Fault::CommitFails(left)
            | Fault::NoSpace(left)
            | Fault::ToldFailed(left) => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        });
        let mut state = self.state.lock().unwrap();
        match due {
            Some(Fault::CrashBefore(_)) => return Fate::DiesBefore,
            Some(Fault::CrashAfter(_)) => return Fate::DiesAfter,
            Some(Fault::CommitFails(_)) => state.before = Some(Verdict::Fail),
            Some(Fault::NoSpace(_)) => state.before = Some(Verdict::NoSpace),
            Some(Fault::ToldFailed(_)) => state.after = Some(Verdict::Fail),
            _ => {}
        }
        Fate::Lives
    }

    pub(crate) fn read_fails(&self) -> bool {
        let due = self.due(|fault| match fault {
            Fault::ReadFails(left) => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        });
        due.is_some()
    }

    fn reach(&self, name: &'static str) {
        if self.due(|fault| matches!(fault, Fault::SavedMeanwhile(point) if *point == name)).is_some() {
            let saves = {
                let mut state = self.state.lock().unwrap();
                state.saves += 1;
                state.saves
            };
            let text = format!("---\nid: memory\n---\nkanari-f{saves} saved meanwhile\n");
            std::fs::write(&self.memory, text).unwrap();
        }
        if self.due(|fault| matches!(fault, Fault::Point(point) if *point == name)).is_some() {
            self.die();
            // Without a message: the unwinding is the end of the process.
            std::panic::resume_unwind(Box::new(name));
        }
    }
}

impl Faults for Chaos {
    fn before_commit(&self, _transaction: u64) -> Verdict {
        self.state.lock().unwrap().before.take().unwrap_or(Verdict::Proceed)
    }

    fn after_commit(&self, _transaction: u64) -> Verdict {
        self.state.lock().unwrap().after.take().unwrap_or(Verdict::Proceed)
    }
}

impl port::CrashPoints for Chaos {
    fn reach(&self, name: &'static str) {
        self.reach(name);
    }
}

impl materialize::CrashPoints for Chaos {
    fn reach(&self, name: &'static str) {
        self.reach(name);
    }

    fn write(&self) -> std::io::Result<()> {
        match self.due(|fault| matches!(fault, Fault::FileFails(_))) {
            Some(Fault::FileFails("no-space")) => Err(std::io::ErrorKind::StorageFull.into()),
            Some(_) => Err(std::io::Error::other("simulated")),
            None => Ok(()),
        }
    }

    fn cannot_exchange(&self) -> bool {
        self.due(|fault| *fault == Fault::NoExchange).is_some()
    }
}
