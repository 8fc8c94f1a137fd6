//! What this machine's jail can do, found out by a throwaway launch of the real executable.

use crate::{JailReport, Launcher, Recommendation, Tier};

/// Launches once in the launcher's tier, ends the worker, and tells layer by layer.
#[must_use]
pub fn probe(launcher: &Launcher) -> JailReport {
    let outcome = launcher.launch().map(|worker| {
        let evidence = worker.evidence();
        worker.kill_and_reap();
        evidence
    });
    JailReport::of(launcher.tier(), outcome)
}

/// Tries the full tier, then the lesser one. It chooses for a new home only; nothing that runs falls
/// back by itself.
#[must_use]
pub fn recommend(launcher: &Launcher) -> Recommendation {
    let full = probe(&launcher.with_tier(Tier::Full));
    if full.outcome.is_ok() {
        return Recommendation::Full;
    }
    let lesser = probe(&launcher.with_tier(Tier::LandlockSeccomp));
    match lesser.outcome {
        Ok(_) => Recommendation::LandlockSeccomp { full },
        Err(_) => Recommendation::Refused { full, lesser },
    }
}
