//! What can go wrong on either side. Content-dark: stages, error numbers, times, nothing else.

use crate::{ExitKind, Stage};

/// A worker could not be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no jail for this operating system.
    #[error("jail a process on this platform")]
    Platform,
    /// The executable could not be opened or read.
    #[error("open the executable to jail: error {errno}")]
    Executable {
        /// The system's error number.
        errno: i32,
    },
    /// The process could not be started.
    #[error("start the worker process: error {errno}")]
    Spawn {
        /// The system's error number.
        errno: i32,
    },
    /// A system call of the launcher failed.
    #[error("talk to the starting worker: error {errno}")]
    Channel {
        /// The system's error number.
        errno: i32,
    },
    /// The worker could not put a layer in place.
    #[error("seal the worker at stage {stage}: error {errno}")]
    Refused {
        /// The layer that is missing.
        stage: Stage,
        /// The system's error number.
        errno: i32,
    },
    /// The worker ended without a word.
    #[error("wait for the sealed report: the worker ended first ({exit:?})")]
    Died {
        /// How it ended.
        exit: ExitKind,
    },
    /// The worker reported neither seal nor refusal in time.
    #[error("wait for the sealed report: nothing within {timeout_ms} ms")]
    Timeout {
        /// The time it was given.
        timeout_ms: u64,
    },
    /// What came first on the channel is not the report of a worker of this tier.
    #[error("read the sealed report")]
    Report,
    /// The thread that starts workers is gone.
    #[error("reach the thread that starts workers")]
    Thread,
    /// The pool was closed.
    #[error("take a worker from a closed pool")]
    Closed,
}

impl LaunchError {
    /// The step that failed, by name.
    #[must_use]
    pub fn stage(&self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Executable { .. } => "executable",
            Self::Spawn { .. } => "spawn",
            Self::Channel { .. } => "channel",
            Self::Refused { stage, .. } => stage.name(),
            Self::Died { .. } | Self::Timeout { .. } | Self::Report => "report",
            Self::Thread => "thread",
            Self::Closed => "pool",
        }
    }

    /// The system's error number, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Executable { errno }
            | Self::Spawn { errno }
            | Self::Channel { errno }
            | Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

/// A worker could not seal itself; it must end with [`crate::EXIT_REFUSED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("seal this process at stage {stage}: error {errno}")]
pub struct EnterError {
    /// The layer that is missing.
    pub stage: Stage,
    /// The system's error number.
    pub errno: i32,
}
