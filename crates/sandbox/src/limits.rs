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

/// How long a reaper waits for a killed process to be gone.
pub const REAP_TIMEOUT: Duration = Duration::from_millis(5_000);

/// Bytes of standard output and error that a worker can write before it blocks. They are counted,
/// never read.
pub const STDERR_BYTES: usize = 4096;

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
