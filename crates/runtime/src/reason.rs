//! Reason codes of runs and attempts that no other room has: words that stand in events, rows and logs, never content.

/// An operator gave the run up.
pub const OPERATOR: &str = "operator";
/// The process died in the last allowed attempt.
pub const ATTEMPT_ABANDONED: &str = "attempt-abandoned";
/// The run's time is up.
pub const RUN_TIMEOUT: &str = "run-timeout";
/// The provider kept saying: later.
pub const PROVIDER_UNAVAILABLE: &str = "provider-unavailable";
/// The provider could not be connected to.
pub const PROVIDER_UNREACHABLE: &str = "provider-unreachable";
/// Twice a request was written and no complete answer came, or once in the last allowed attempt.
pub const OUTCOME_UNKNOWN: &str = "outcome-unknown";
/// The attempts are used up, and the last one left no reason.
pub const ATTEMPTS_EXHAUSTED: &str = "attempts-exhausted";
/// The context's evidence is missing or is not what it was.
pub const CONTEXT_UNREADABLE: &str = "context-unreadable";
