//! A simulation: the product's own domain code in one process, over a store, a channel, a provider and documents with faults.
//! A seed fixes its steps and what is armed in each. It does not fix how tasks and threads interleave: tokio wakes who
//! waits on one value in an order of its own. A seed that failed is run again, more than once if need be, with
//! `THOUGHT_SIMULATION_SEED=n THOUGHT_SIMULATION_SEEDS=1`. `cargo xtask soak --only simulation` runs the long version.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails where it stands")]

mod channel;
mod chaos;
mod dice;
mod driver;
mod engine;
mod floors;
mod forged;
mod invariants;
mod provider;
mod steps;
mod world;

use driver::Counts;

/// Seeds in the tests.
const SEEDS: u64 = 300;

/// A number that the long version sets.
fn asked(name: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the long version says so this way; the product reads no such variable"
    )]
    let value = std::env::var(name);
    value.ok().map(|text| text.parse().unwrap())
}

#[test]
fn whatever_goes_wrong_what_must_hold_holds() {
    let first = asked("THOUGHT_SIMULATION_SEED").unwrap_or(1);
    let seeds = asked("THOUGHT_SIMULATION_SEEDS").unwrap_or(SEEDS);
    let mut counts = Counts::new();
    let mut broken = Vec::new();
    for seed in first..first + seeds {
        match driver::seed(seed) {
            Ok(seen) => seen.counts.into_iter().for_each(|(what, count)| {
                *counts.entry(what).or_default() += count;
            }),
            Err(what) => broken.push(what),
        }
    }
    // What fired is the figure of a long run.
    println!("{seeds} seeds from {first}: {counts:#?}");
    assert!(broken.is_empty(), "{} of {seeds} seeds:\n{}", broken.len(), broken.join("\n"));
    // A few seeds alone do not come by everything.
    if seeds >= SEEDS {
        assert_eq!(floors::missing(&counts), Vec::<String>::new(), "nothing of this came about: {counts:#?}");
    }
}

#[test]
fn a_seed_fixes_its_steps_and_what_is_armed_in_each() {
    for seed in [3, 17] {
        let (once, again) = (driver::seed(seed), driver::seed(seed));
        let (once, again) = (once.map(|seen| seen.steps), again.map(|seen| seen.steps));
        assert_eq!(once, again, "seed {seed}");
    }
}
