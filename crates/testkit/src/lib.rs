//! What tests from outside stand on: a temporary home, the real binary with a clean environment, a guard around
//! `thought serve`, a search for words that must stand nowhere, and a count of commits.
//!
//! It sees the product as a person does: through arguments, files, exit codes and printed lines. It must never link a
//! room of the product, so that a test cannot pass on what only the inside knows. Everything in it panics with what it
//! saw instead of returning an error: a test has nobody to pass one to.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects, and fails by panicking")]

pub mod canary;
pub mod home;
pub mod run;
pub mod serve;
pub mod wal;
pub mod world;

use std::time::{Duration, Instant};

/// Bound of every wait: far beyond what anything takes, so that only what never comes runs into it.
pub const WAIT_MAX: Duration = Duration::from_secs(45);
/// Between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Looks until there is something, and returns it.
///
/// # Panics
/// When [`WAIT_MAX`] ran out, with what was waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_within(WAIT_MAX, what, look)
}

/// As [`wait_for`], with a bound of its own: for what grows with a soak.
///
/// # Panics
/// When the bound ran out, with what was waited for.
#[track_caller]
pub fn wait_within<T>(bound: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < bound, "waited in vain for {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Looks until the condition holds.
///
/// # Panics
/// As [`wait_for`].
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}
