//! The worker's side: an ordered list of steps, then one report, then the channel.
//!
//! The list is the documentation: what stands in [`STEPS`] is what happens, in that order. A step that
//! fails ends the start with a refusal that names it; there is no way around a step, and the channel can
//! only be had at the end.

#[cfg(feature = "ablation")]
pub mod ablation;
mod confine;
mod isolate;
mod link;
pub(crate) mod seccomp;

use std::ffi::OsStr;
use std::io::{self, Read, Write};

use crate::order::Order;
use crate::record::Record;
use crate::sys::{self, Errno};
use crate::{EnterError, SealEvidence, Stage, Tier};

/// What the steps know and learn.
struct Sealing {
    order: Order,
    landlock_abi: i32,
    /// The limit of descriptors that is left to set when no layer needs a further one.
    files_last: Option<u64>,
    /// User and group from before the namespaces.
    ids: (u32, u32),
    handoff: Option<link::Handoff>,
    trial: Trial,
}

/// How a start may differ from the product's, for `ablation` alone.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// Stages that are not taken.
    left_out: &'static [Stage],
    /// What a forbidden call does.
    violation: seccomp::Violation,
    /// A rule of the list, by its place, that is left out.
    rule_left_out: Option<usize>,
}

impl Trial {
    /// The product: every stage, every rule, and a violation kills.
    const NONE: Self = Self { left_out: &[], violation: seccomp::Violation::Kill, rule_left_out: None };
}

struct Step {
    stage: Stage,
    run: fn(&mut Sealing) -> Result<(), Errno>,
}

/// The steps of a start, in order. [`Stage::Order`] comes before them: it is what makes a [`Sealing`].
const STEPS: &[Step] = &[
    Step { stage: Stage::ParentLink, run: link::die_with_parent },
    Step { stage: Stage::Descriptors, run: link::shed_inheritance },
    Step { stage: Stage::Identity, run: confine::become_nobody },
    Step { stage: Stage::Namespaces, run: isolate::enter_namespaces },
    Step { stage: Stage::IdMaps, run: isolate::map_ids },
    Step { stage: Stage::InnerProcess, run: link::go_inside },
    Step { stage: Stage::EmptyRoot, run: isolate::empty_root },
    Step { stage: Stage::Capabilities, run: confine::drop_capabilities },
    Step { stage: Stage::NoNewPrivileges, run: confine::renounce_privileges },
    Step { stage: Stage::ResourceLimits, run: confine::limit_resources },
    Step { stage: Stage::Landlock, run: confine::forbid_files_and_network },
    Step { stage: Stage::Undumpable, run: confine::become_undumpable },
    Step { stage: Stage::Seccomp, run: seccomp::install },
];

/// Seals this process and gives the channel to its launcher.
///
/// The hidden subcommand calls it first thing in `main`, before any thread, with its last argument. On
/// return nothing has been read yet and the launcher has the sealed report. From here on any system call
/// that is not in [`crate::allowed::ALLOWED`] kills the process.
///
/// # Errors
/// The stage that could not be put in place. The launcher has been told; the process must end with
/// [`crate::EXIT_REFUSED`].
pub fn enter(tier_argument: &OsStr) -> Result<SealedChannel, EnterError> {
    seal(tier_argument, Trial::NONE)
}

/// Takes every step of the tier, but for what the trial leaves out.
fn seal(tier_argument: &OsStr, trial: Trial) -> Result<SealedChannel, EnterError> {
    let order = match read_order(tier_argument) {
        Ok(order) => order,
        Err(error) => return Err(error.refuse(None)),
    };
    // A panic's text may hold content, and printing it takes calls that kill: say nothing, unwind.
    std::panic::set_hook(Box::new(|_| {}));
    let mut sealing = Sealing { order, landlock_abi: 0, files_last: None, ids: (0, 0), handoff: None, trial };
    for step in STEPS.iter().filter(|step| step.stage.is_in(order.tier)) {
        if trial.left_out.contains(&step.stage) {
            continue;
        }
        let handed = if step.stage > Stage::EmptyRoot { link::finish_handoff(&mut sealing) } else { Ok(()) };
        if let Err(errno) = handed.and_then(|()| (step.run)(&mut sealing)) {
            return Err(Refusal { stage: step.stage, errno }.refuse(sealing.handoff));
        }
    }
    let evidence = SealEvidence { tier: order.tier, landlock_abi: sealing.landlock_abi.unsigned_abs() };
    // The first proof that the list lets the channel through.
    let report = Record::Sealed { tier: order.tier, landlock_abi: sealing.landlock_abi };
    link::report(report).map_err(|errno| EnterError { stage: Stage::Seccomp, errno })?;
    Ok(SealedChannel { evidence })
}

struct Refusal {
    stage: Stage,
    errno: Errno,
}

impl Refusal {
    /// Tells the launcher, if there is one, and gives the error of the caller.
    fn refuse(self, handoff: Option<link::Handoff>) -> EnterError {
        let Self { stage, errno } = self;
        // The launcher must hear of this process before it hears from it.
        let told = handoff.map_or(Ok(()), link::Handoff::wait);
        if told.is_ok() && link::is_channel().is_ok() {
            // Nobody is left to tell of a failure to tell; the exit code says it too.
            let _unheard = link::report(Record::Refused { stage, errno });
        }
        EnterError { stage, errno }
    }
}

/// [`Stage::Order`]: a launcher's channel, an empty environment, a readable order.
fn read_order(argument: &OsStr) -> Result<Order, Refusal> {
    let refusal = |errno| Refusal { stage: Stage::Order, errno };
    link::is_channel().map_err(refusal)?;
    if std::env::vars_os().next().is_some() {
        return Err(refusal(libc::E2BIG));
    }
    argument.to_str().and_then(Order::decode).ok_or_else(|| refusal(libc::EINVAL))
}

/// The one way in and out of a sealed worker. It can only be had from [`enter`], and only sealed.
///
/// It reads and writes without buffers of its own. It is never closed: it ends with the process.
#[derive(Debug)]
pub struct SealedChannel {
    evidence: SealEvidence,
}

impl SealedChannel {
    /// What is in force.
    #[must_use]
    pub fn evidence(&self) -> SealEvidence {
        self.evidence
    }

    /// The tier in force.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.evidence.tier
    }
}

impl Read for SealedChannel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::read_channel(buffer).map_err(io::Error::from_raw_os_error)
    }
}

impl Write for SealedChannel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::write_channel(bytes).map_err(io::Error::from_raw_os_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_the_stages_in_order_without_a_gap() {
        let steps: Vec<_> = STEPS.iter().map(|step| step.stage).collect();
        assert_eq!(steps, Stage::ALL[1..]);
    }

    #[test]
    fn a_process_that_no_launcher_started_gets_no_channel() {
        // The test runner gives no socket, and its environment is not empty.
        let error = enter(OsStr::new("full")).unwrap_err();
        assert_eq!(error.stage, Stage::Order);
    }
}
