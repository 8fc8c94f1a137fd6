//! The jail: set-up, launch, reap.
//!
//! A worker is the same executable started again with a hidden argument. It seals itself, layer by
//! layer, before it reads the first byte of its one channel, and serves one attempt. This crate owns
//! both sides of that start: [`Launcher`] and [`WarmPool`] in the trusted parent, [`enter`] in the
//! child.
//!
//! It must never start a worker with a layer missing: a layer that cannot be put in place is a
//! refusal that names it. It must never put content into an error, an argument, the environment or a
//! log; of the worker's standard error only the number of bytes is known. It reads no configuration
//! and knows nothing of what the worker does. It is the only crate with `unsafe`, and all of it is in
//! the wrappers of one file.

mod error;
pub mod limits;
#[cfg(target_os = "linux")]
mod order;
#[cfg(target_os = "linux")]
mod record;
mod stage;
mod types;

#[cfg(target_os = "linux")]
mod child;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod parent;
#[cfg(target_os = "linux")]
mod sys;

pub use error::{EnterError, LaunchError};
pub use limits::WorkerLimits;
pub use stage::Stage;
pub use types::{
    ExitKind, JailReport, LayerReport, LayerStatus, Recommendation, SealEvidence, StderrReport, Tier,
    UnknownTier,
};

/// The exit code of a worker that refused to work because it could not seal itself (sysexits'
/// `EX_CONFIG`). The hidden subcommand ends with it when [`enter`] fails.
pub const EXIT_REFUSED: i32 = 78;

#[cfg(target_os = "linux")]
pub use child::seccomp::allowed;
#[cfg(target_os = "linux")]
pub use child::{SealedChannel, enter};
#[cfg(not(target_os = "linux"))]
pub use other::{Launcher, SealedChannel, SealedWorker, WarmPool, WorkerProcess, enter, probe, recommend};
#[cfg(target_os = "linux")]
pub use parent::{Launcher, SealedWorker, WarmPool, WorkerProcess, probe, recommend};

#[cfg(all(target_os = "linux", feature = "ablation"))]
pub use child::ablation;
