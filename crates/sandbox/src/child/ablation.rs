//! For test programs alone: the same steps with some left out, to see what each layer stops by itself.
//!
//! It exists only with the feature of the same name, which the product does not enable.

use std::ffi::OsStr;

use super::seccomp::Violation;
use super::{SealedChannel, Trial, seal};
use crate::{EnterError, Stage};

/// What a forbidden system call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnViolation {
    /// It kills, as in the product.
    Kill,
    /// It fails with `EPERM`, so that a program can try one act after the other.
    Fail,
}

/// What is left out of a start.
#[derive(Debug, Clone, Copy)]
pub struct Without {
    /// These stages.
    pub stages: &'static [Stage],
    /// The rule at this place of [`crate::allowed::ALLOWED`].
    pub rule: Option<usize>,
}

/// As [`crate::enter`], with something left out.
///
/// # Errors
/// As [`crate::enter`].
pub fn enter_without(
    tier_argument: &OsStr,
    without: Without,
    on_violation: OnViolation,
) -> Result<SealedChannel, EnterError> {
    let violation = match on_violation {
        OnViolation::Kill => Violation::Kill,
        OnViolation::Fail => Violation::Fail,
    };
    seal(tier_argument, Trial { left_out: without.stages, violation, rule_left_out: without.rule })
}
