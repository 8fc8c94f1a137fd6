//! Exports from outside: what a person's corrections become, what never gets in, and where a file may not lie.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects")]

mod canaries;
mod fill;
mod kills;
mod many;
mod photos;
mod python;
mod refusals;
mod scene;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
