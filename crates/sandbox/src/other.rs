//! Where there is no jail: everything refuses, nothing ever runs unsandboxed.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::{
    EnterError, ExitKind, JailReport, LaunchError, Recommendation, SealEvidence, Stage, StderrReport, Tier,
    WorkerLimits,
};

/// `ENOSYS`, where this crate has no table of error numbers.
const UNSUPPORTED: i32 = 38;

/// Launches nothing here.
#[derive(Debug, Clone)]
pub struct Launcher {
    tier: Tier,
}

impl Launcher {
    /// A launcher that refuses.
    #[must_use]
    pub fn new(_: OwnedFd, tier: Tier, _: WorkerLimits, _: &'static str) -> Self {
        Self { tier }
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`LaunchError::Platform`].
    pub fn of_self(_: Tier, _: WorkerLimits, _: &'static str) -> Result<Self, LaunchError> {
        Err(LaunchError::Platform)
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`LaunchError::Platform`].
    pub fn of_path(_: &Path, _: Tier, _: WorkerLimits, _: &'static str) -> Result<Self, LaunchError> {
        Err(LaunchError::Platform)
    }

    /// The same with another tier.
    #[must_use]
    pub fn with_tier(&self, tier: Tier) -> Self {
        Self { tier }
    }

    /// The same.
    #[must_use]
    pub fn with_seal_timeout(&self, _: Duration) -> Self {
        self.clone()
    }

    /// The tier it would launch in.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`LaunchError::Platform`].
    pub fn sha256_hex(&self) -> Result<&str, LaunchError> {
        Err(LaunchError::Platform)
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`LaunchError::Platform`].
    pub fn launch(&self) -> Result<SealedWorker, LaunchError> {
        Err(LaunchError::Platform)
    }
}

/// Can't exist here.
#[derive(Debug)]
pub struct WorkerProcess(Infallible);

impl WorkerProcess {
    /// Unreachable.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn stderr(&self) -> StderrReport {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        match self.0 {}
    }

    /// Unreachable.
    pub fn kill_and_reap(self) -> ExitKind {
        match self.0 {}
    }

    /// Unreachable.
    pub fn wait(self, _: Duration) -> ExitKind {
        match self.0 {}
    }
}

/// Can't exist here.
#[derive(Debug)]
pub struct SealedWorker(Infallible);

impl SealedWorker {
    /// Unreachable.
    pub fn channel(&mut self) -> &mut UnixStream {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn into_parts(self) -> (UnixStream, WorkerProcess) {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn evidence(&self) -> SealEvidence {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn stderr(&self) -> StderrReport {
        match self.0 {}
    }

    /// Unreachable.
    pub fn kill_and_reap(self) -> ExitKind {
        match self.0 {}
    }

    /// Unreachable.
    pub fn wait(self, _: Duration) -> ExitKind {
        match self.0 {}
    }
}

/// Holds nothing here.
#[derive(Debug)]
pub struct WarmPool;

impl WarmPool {
    /// Refuses.
    ///
    /// # Errors
    /// Always [`LaunchError::Platform`].
    pub fn new(_: Launcher) -> Result<Self, LaunchError> {
        Err(LaunchError::Platform)
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`LaunchError::Platform`].
    pub fn checkout(&self) -> Result<SealedWorker, LaunchError> {
        Err(LaunchError::Platform)
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`LaunchError::Platform`].
    pub fn warm_up(&self) -> Result<SealEvidence, LaunchError> {
        Err(LaunchError::Platform)
    }

    /// Nothing to end.
    pub fn close(self) {}
}

/// Can't exist here.
#[derive(Debug)]
pub struct SealedChannel(Infallible);

impl SealedChannel {
    /// Unreachable.
    #[must_use]
    pub fn evidence(&self) -> SealEvidence {
        match self.0 {}
    }

    /// Unreachable.
    #[must_use]
    pub fn tier(&self) -> Tier {
        match self.0 {}
    }
}

impl Read for SealedChannel {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

impl Write for SealedChannel {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

/// Refuses.
///
/// # Errors
/// Always, at the first stage.
pub fn enter(_: &OsStr) -> Result<SealedChannel, EnterError> {
    Err(EnterError { stage: Stage::Order, errno: UNSUPPORTED })
}

/// The report of a platform without a jail.
#[must_use]
pub fn probe(launcher: &Launcher) -> JailReport {
    JailReport::of(launcher.tier(), Err(LaunchError::Platform))
}

/// Neither tier works.
#[must_use]
pub fn recommend(_: &Launcher) -> Recommendation {
    Recommendation::Refused {
        full: JailReport::of(Tier::Full, Err(LaunchError::Platform)),
        lesser: JailReport::of(Tier::LandlockSeccomp, Err(LaunchError::Platform)),
    }
}
