//! The launcher's side: start, wait for the seal, hand over, kill and reap.
//!
//! It uses no `unsafe`. It must leave no process and no descriptor behind, whatever the worker does.

mod launcher;
mod pool;
mod process;
mod report;
mod spawner;

pub use launcher::{Launcher, SealedWorker};
pub use pool::WarmPool;
pub use process::WorkerProcess;
pub use report::{probe, recommend};

/// The error number of an input or output error.
fn errno_of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
