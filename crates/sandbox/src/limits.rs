//! The bounds of a worker and of its launch. Each stands here once.

use std::time::Duration;

/// Address space of a worker, in bytes: 512 MiB.
pub const ADDRESS_SPACE_BYTES: u64 = 512 * 1024 * 1024;

/// Processor time of a worker, in seconds; soft and hard limit alike, for the first process of a
/// namespace ignores the soft one's signal.
pub const CPU_SECONDS: u64 = 30;

/// Descriptors while the layers are put in place: the three standard ones and one of the set-up's own.
pub const FILES_WHILE_SEALING: u64 = 4;

/// Descriptors of a sealed worker: the three it has, so no further one can be opened.
pub const FILES_SEALED: u64 = 3;

/// How long a launch waits for the worker's report.
pub const SEAL_TIMEOUT: Duration = Duration::from_millis(5_000);

/// How long a worker that was taken has the processors before its successor is launched, unless somebody waits: about as
/// long as a turn takes without its model.
pub const HEAD_START: Duration = Duration::from_millis(8);

/// How long whoever talks to a worker waits for one frame to go in and one to come out, and for its end:
/// as long as the processor time it has, for a worker that waits uses none.
pub const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(CPU_SECONDS);

/// How long a reaper waits for a killed process to be gone.
pub const REAP_TIMEOUT: Duration = Duration::from_millis(5_000);

/// Bytes of standard output and error that are counted; more is a flood. They are never read.
pub const STDERR_BYTES: usize = 4096;

/// Room for standard output and error. The kernel gives a write that does not fit behind the last one a
/// page of its own, so a worker may block with the last page half empty: with two, it has been counted as
/// a flood by then.
pub const STDERR_ROOM_BYTES: usize = 2 * STDERR_BYTES;

/// Length of the third argument of a worker, in bytes.
pub const ORDER_BYTES: usize = 128;

/// What one worker may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Address space in bytes, soft = hard.
    pub address_space_bytes: u64,
    /// Processor time in seconds, soft = hard; at the end the kernel kills.
    pub cpu_seconds: u64,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self { address_space_bytes: ADDRESS_SPACE_BYTES, cpu_seconds: CPU_SECONDS }
    }
}
