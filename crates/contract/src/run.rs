//! Runs and attempts: their identities, states and reason codes.
//!
//! A run is one declaration version on one trigger; each attempt of it makes at most one provider request, and every
//! attempt of it reuses the stored snapshot.

use serde::{Deserialize, Serialize};
use serde_json::json;
use thought_protocol::{AttemptId, EventId, RunId, SnapshotId};

/// The identity of a run; `retry` is 0 for the run that the trigger itself opens, and counts an operator's retries.
pub fn run_id(declaration: &str, version: u32, trigger: &EventId, retry: u32) -> RunId {
    let mut parts = vec![json!(declaration), json!(version), json!(trigger)];
    if retry > 0 {
        parts.push(json!(retry));
    }
    RunId::of("run", &parts)
}

/// The identity of an attempt; ordinals begin at 1.
pub fn attempt_id(run: &RunId, ordinal: u32) -> AttemptId {
    AttemptId::of("attempt", &[run.into(), json!(ordinal)])
}

/// The identity of a run's snapshot: the run itself.
pub fn snapshot_id(run: &RunId) -> SnapshotId {
    SnapshotId::of("snapshot", &[run.into()])
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value of a stable code.
            pub fn from_code(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

codes! {
    /// Where a run stands.
    RunState {
        /// Admitted: its turn has not come yet. Shown to the outside as `running`.
        Admitted = "admitted",
        /// It has a snapshot, and an attempt is on or due.
        Running = "running",
        /// No snapshot, no attempt; it goes on when the cause is gone.
        Held = "held",
        /// It ended with an answer.
        Completed = "completed",
        /// It ended without a valid answer.
        Failed = "failed",
        /// It may not go on.
        Blocked = "blocked",
        /// It was given up.
        Abandoned = "abandoned",
    }
    /// Why a run waits.
    HeldReason {
        /// The day's requests are spent.
        DailyBudget = "daily-budget",
        /// No usable provider: no key, or none configured.
        ProviderUnconfigured = "provider-unconfigured",
        /// A subscribed document that must be there is not.
        DocumentMissing = "document-missing",
        /// The machine does not allow the jail.
        SandboxUnavailable = "sandbox-unavailable",
        /// This binary's proposal manifest is not the one that was activated.
        ManifestChanged = "manifest-changed",
    }
    /// Why a run may not go on.
    BlockedReason {
        /// The declaration's policy forbids it.
        Policy = "policy",
        /// Another model is configured than the one the snapshot was made for.
        ProviderChanged = "provider-changed",
        /// Packet or result versions differ.
        ProtocolVersion = "protocol-version",
        /// The context does not fit the model.
        ContextTooLarge = "context-too-large",
        /// The message came by a route that is not admitted.
        RouteRefused = "route-refused",
        /// A newer version of the declaration took over.
        Superseded = "superseded",
    }
    /// How an attempt stands.
    AttemptState {
        /// The packet may have left; nothing is known yet.
        Started = "started",
        /// A whole answer came.
        Answered = "answered",
        /// It failed before a request was made.
        RefusedBeforeRequest = "refused-before-request",
        /// The provider said: later.
        Transient = "transient",
        /// The provider said: never.
        Permanent = "permanent",
        /// The request was written and no complete answer came.
        Unknown = "unknown",
        /// The process died.
        Abandoned = "abandoned",
    }
}

impl RunState {
    /// Whether the run has not ended.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Admitted | Self::Running | Self::Held)
    }

    /// The state as lists show it.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Admitted => Self::Running.as_str(),
            other => other.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_another_run_and_version_and_trigger_count() {
        let trigger = EventId::of("t", &[]);
        let first = run_id("a-b", 1, &trigger, 0);
        assert_eq!(first, run_id("a-b", 1, &trigger, 0));
        for other in [
            run_id("a-b", 1, &trigger, 1),
            run_id("a-b", 2, &trigger, 0),
            run_id("a-c", 1, &trigger, 0),
            run_id("a-b", 1, &EventId::of("u", &[]), 0),
        ] {
            assert_ne!(first, other);
        }
        assert_ne!(attempt_id(&first, 1), attempt_id(&first, 2));
    }

    #[test]
    fn codes_read_back() {
        for state in RunState::ALL {
            assert_eq!(RunState::from_code(state.as_str()), Some(*state));
        }
        assert_eq!(RunState::Admitted.shown(), "running");
        assert_eq!(RunState::from_code("queued"), None);
    }
}
