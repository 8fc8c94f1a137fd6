//! The last layer: turns the list into a filter and installs it.
//!
//! Only this layer stops new processes, nested namespaces, io_uring, memfd and vsock, so it is part of
//! every tier. Calls of another architecture, and x32 numbers, are on no list and kill too.

pub mod allowed;

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use self::allowed::{ALLOWED, Rule};
use super::Sealing;
use crate::sys::Errno;

/// What happens on a call that is not on the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The process is killed with `SIGSYS`.
    Kill,
    /// The call fails with `EPERM`, so that a test program can try the next one.
    #[cfg(feature = "ablation")]
    Fail,
}

pub(super) fn install(sealing: &mut Sealing) -> Result<(), Errno> {
    let left_out = sealing.trial.rule_left_out;
    let rules: Vec<Rule> = ALLOWED
        .iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != left_out)
        .map(|(_, rule)| *rule)
        .collect();
    let program = program(&rules, sealing.trial.violation).map_err(|error| errno_of(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| errno_of(&error))
}

/// The filter for a list.
fn program(rules: &[Rule], violation: Violation) -> Result<BpfProgram, seccompiler::Error> {
    let mut table: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for rule in rules {
        let entry = table.entry(rule.number).or_default();
        // A call without tests has an empty list of rules: it is always permitted.
        if !rule.tests.is_empty() {
            entry.push(SeccompRule::new(conditions(rule)?)?);
        }
    }
    let on_violation = match violation {
        Violation::Kill => SeccompAction::KillProcess,
        #[cfg(feature = "ablation")]
        Violation::Fail => SeccompAction::Errno(libc::EPERM as u32),
    };
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(table, on_violation, SeccompAction::Allow, target)?;
    Ok(filter.try_into()?)
}

fn conditions(rule: &Rule) -> Result<Vec<SeccompCondition>, seccompiler::BackendError> {
    let test = |test: &allowed::ArgumentTest| {
        let operator = SeccompCmpOp::MaskedEq(test.mask);
        SeccompCondition::new(test.index, SeccompCmpArgLen::Qword, operator, test.value)
    };
    rule.tests.iter().map(test).collect()
}

fn errno_of(error: &seccompiler::Error) -> Errno {
    match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => {
            error.raw_os_error().unwrap_or(libc::EIO)
        }
        _ => libc::EINVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_makes_a_filter() {
        let program = program(ALLOWED, Violation::Kill).unwrap();
        assert!(program.len() > ALLOWED.len());
    }

    #[test]
    fn a_rule_with_an_impossible_argument_makes_none() {
        let test = allowed::ArgumentTest { index: 9, mask: 1, value: 0 };
        let tests: &'static [_] = Box::leak(Box::new([test]));
        let rule = Rule { name: "read", number: libc::SYS_read, tests };
        assert!(program(&[rule], Violation::Kill).is_err());
    }
}
