//! What a process that holds keys does for itself: it is not dumpable and leaves no core.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::exit::{Exit, Failure};

/// Makes this process not dumpable, without a core.
///
/// # Errors
/// [`Failure`] (8) when the system refuses.
pub(super) fn apply() -> Result<(), Failure> {
    let refused = |errno: rustix::io::Errno| {
        Failure::new(Exit::Machine, "not-hardened", format!("make the process not dumpable: {errno}"))
    };
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).map_err(refused)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(refused)
}
