//! The crash points of this process: none in a release build; in a build for tests, the one that the environment names.

/// Every room's crash points: a point that the environment names ends the process there, as `kill -9` would.
///
/// `THOUGHT_TEST_CRASH_POINT` is `name` or `name:n`, for the n-th passing. A release build does not look.
#[derive(Debug)]
pub struct EnvironmentPoints {
    #[cfg(debug_assertions)]
    abort_at: Option<AbortAt>,
}

impl EnvironmentPoints {
    /// The points of this process.
    pub fn of_this_process() -> Self {
        Self {
            #[cfg(debug_assertions)]
            abort_at: crate::env::text("THOUGHT_TEST_CRASH_POINT").map(|point| AbortAt::parse(&point)),
        }
    }

    #[cfg_attr(not(debug_assertions), expect(clippy::unused_self, reason = "a release build has no points"))]
    fn pass(&self, name: &'static str) {
        #[cfg(debug_assertions)]
        if let Some(abort_at) = &self.abort_at {
            abort_at.pass(name);
        }
        #[cfg(not(debug_assertions))]
        let _passed = name;
    }
}

impl thought_runtime::port::CrashPoints for EnvironmentPoints {
    fn reach(&self, name: &'static str) {
        self.pass(name);
    }
}

impl thought_authority::materialize::CrashPoints for EnvironmentPoints {
    fn reach(&self, name: &'static str) {
        self.pass(name);
    }
}

/// Ends the process at the n-th passing of a point.
#[cfg(debug_assertions)]
#[derive(Debug)]
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

    fn pass(&self, name: &str) {
        use std::sync::atomic::Ordering;
        if name == self.name && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Nothing is flushed, dropped or told: that is the point.
            let own = rustix::process::getpid();
            let _unheard = rustix::process::kill_process(own, rustix::process::Signal::KILL);
            std::process::abort();
        }
    }
}
