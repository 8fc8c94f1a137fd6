//! The words of this crate's surface.

use std::fmt;
use std::str::FromStr;

use crate::{LaunchError, Stage};

/// How much of the jail a machine is asked for. Never nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Every layer.
    Full,
    /// Every layer but the namespaces and the empty root, where a machine forbids them.
    LandlockSeccomp,
}

impl Tier {
    /// The word of the configuration and of the evidence.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::LandlockSeccomp => "landlock+seccomp",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Full, Self::LandlockSeccomp].into_iter().find(|tier| tier.name() == name)
    }
}

/// The codes of the status record.
#[cfg(target_os = "linux")]
impl Tier {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Full => 1,
            Self::LandlockSeccomp => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Full, Self::LandlockSeccomp].into_iter().find(|tier| tier.code() == code)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A word that names no tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read the sandbox mode: it is \"full\" or \"landlock+seccomp\"")]
pub struct UnknownTier;

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::from_name(name).ok_or(UnknownTier)
    }
}

/// What a sealed worker proved about itself; it belongs to the evidence of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealEvidence {
    /// The tier in force.
    pub tier: Tier,
    /// The Landlock ABI enforced in full.
    pub landlock_abi: u32,
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitKind {
    /// By itself, with code 0.
    Clean,
    /// By a signal that the launcher did not send (31 = a forbidden system call, 9 = out of processor time).
    Signal(i32),
    /// By itself, with another code.
    Code(i32),
    /// By the launcher's hand.
    Killed,
    /// Unknown: someone else collected its status, or it did not end in time.
    Lost,
}

/// What is known of a worker's standard output and error: how much, never what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StderrReport {
    /// Bytes written; at most [`crate::limits::STDERR_BYTES`] are told.
    pub bytes: usize,
    /// Whether it wrote that many or more: a flood. It blocks soon, until it is killed.
    pub is_full: bool,
}

/// One layer, on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStatus {
    /// In place.
    Ok,
    /// Missing, with the system's error number.
    Refused {
        /// The error number.
        errno: i32,
    },
    /// Not tried, for an earlier one is missing.
    NotReached,
    /// Not part of the tier.
    NotInTier,
}

/// A layer and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerReport {
    /// The layer.
    pub stage: Stage,
    /// Its state.
    pub status: LayerStatus,
}

impl LayerReport {
    /// What is missing and how to get it, in one sentence; only for a refused layer.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self.status, LayerStatus::Refused { .. }).then(|| self.stage.hint())
    }
}

/// What one throwaway launch showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailReport {
    /// The tier that was tried.
    pub tier: Tier,
    /// Every layer in the order of the launch.
    pub layers: Vec<LayerReport>,
    /// The seal, or why there is none.
    pub outcome: Result<SealEvidence, LaunchError>,
}

impl JailReport {
    /// The report for the outcome of a launch.
    pub(crate) fn of(tier: Tier, outcome: Result<SealEvidence, LaunchError>) -> Self {
        let layers = Stage::ALL
            .iter()
            .map(|stage| LayerReport { stage: *stage, status: status(*stage, tier, &outcome) })
            .collect();
        Self { tier, layers, outcome }
    }

    /// What is missing and how to get it, in one sentence; nothing when the jail works.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match &self.outcome {
            Ok(_) => None,
            Err(LaunchError::Refused { stage, .. }) => Some(stage.hint()),
            Err(LaunchError::Platform) => {
                Some("the jail needs Linux; run it there, or in a Linux virtual machine")
            }
            Err(LaunchError::Executable { .. }) => Some(
                "the executable cannot be opened; /proc must be mounted and the binary readable by its user",
            ),
            Err(LaunchError::Spawn { .. }) => {
                Some("no process can be started; raise the limit of processes or of memory")
            }
            Err(_) => {
                Some("the worker did not report; try again, and look for an outer sandbox that kills it")
            }
        }
    }
}

fn status(stage: Stage, tier: Tier, outcome: &Result<SealEvidence, LaunchError>) -> LayerStatus {
    if !stage.is_in(tier) {
        return LayerStatus::NotInTier;
    }
    match outcome {
        Ok(_) => LayerStatus::Ok,
        Err(LaunchError::Refused { stage: refused, errno }) => match stage.cmp(refused) {
            std::cmp::Ordering::Less => LayerStatus::Ok,
            std::cmp::Ordering::Equal => LayerStatus::Refused { errno: *errno },
            std::cmp::Ordering::Greater => LayerStatus::NotReached,
        },
        Err(_) => LayerStatus::NotReached,
    }
}

/// The tier that suits this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recommendation {
    /// Every layer works.
    Full,
    /// Only the lesser tier works; the report says what the full one lacks.
    LandlockSeccomp {
        /// The refused attempt at the full tier.
        full: JailReport,
    },
    /// Neither works: nothing can run here.
    Refused {
        /// The refused attempt at the full tier.
        full: JailReport,
        /// The refused attempt at the lesser tier.
        lesser: JailReport,
    },
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn tiers_have_one_name_each_and_no_other_is_read() {
        for tier in [Tier::Full, Tier::LandlockSeccomp] {
            assert_eq!(tier.name().parse(), Ok(tier));
            assert_eq!(Tier::from_code(tier.code()), Some(tier));
        }
        for name in ["", "none", "off", "FULL", "landlock", "full "] {
            assert_eq!(name.parse::<Tier>(), Err(UnknownTier), "{name}");
        }
    }

    #[test]
    fn a_refusal_is_reported_at_its_layer() {
        let outcome = Err(LaunchError::Refused { stage: Stage::EmptyRoot, errno: 13 });
        let report = JailReport::of(Tier::Full, outcome);
        for layer in &report.layers {
            let expected = match layer.stage {
                stage if stage < Stage::EmptyRoot => LayerStatus::Ok,
                Stage::EmptyRoot => LayerStatus::Refused { errno: 13 },
                _ => LayerStatus::NotReached,
            };
            assert_eq!(layer.status, expected, "{}", layer.stage);
            assert_eq!(layer.hint().is_some(), layer.stage == Stage::EmptyRoot);
        }
        assert!(report.hint().is_some_and(|hint| hint.contains("AppArmor")));
    }

    #[test]
    fn a_worker_that_never_reported_proves_no_layer() {
        let report = JailReport::of(Tier::LandlockSeccomp, Err(LaunchError::Timeout { timeout_ms: 1 }));
        assert!(report.layers.iter().all(|layer| layer.status != LayerStatus::Ok));
        assert!(report.hint().is_some());
    }
}
