//! What a process that holds keys does for itself: it is not dumpable and leaves no core. And the crash points of tests.

use std::sync::Arc;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use thought_runtime::port::CrashPoints;

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

/// The crash points of this process: none in a release build; in a build for tests, the one that the environment names.
pub(super) fn crash_points() -> Arc<dyn CrashPoints> {
    #[cfg(debug_assertions)]
    if let Some(point) = crate::env::text("THOUGHT_TEST_CRASH_POINT") {
        return Arc::new(AbortAt::parse(&point));
    }
    Arc::new(thought_runtime::port::NoCrashPoints)
}

/// Ends the process at the n-th passing of a point, as `kill -9` would: `name` or `name:n`.
#[cfg(debug_assertions)]
struct AbortAt {
    name: String,
    left: std::sync::atomic::AtomicU32,
}

#[cfg(debug_assertions)]
impl AbortAt {
    fn parse(text: &str) -> Self {
        let (name, count) = text.rsplit_once(':').unwrap_or((text, "1"));
        let left = count.parse().unwrap_or(1);
        Self { name: name.to_owned(), left: std::sync::atomic::AtomicU32::new(left) }
    }
}

#[cfg(debug_assertions)]
impl CrashPoints for AbortAt {
    fn reach(&self, name: &'static str) {
        use std::sync::atomic::Ordering;
        if name == self.name && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Nothing is flushed, dropped or told: that is the point.
            let own = rustix::process::getpid();
            let _unheard = rustix::process::kill_process(own, rustix::process::Signal::KILL);
            std::process::abort();
        }
    }
}
