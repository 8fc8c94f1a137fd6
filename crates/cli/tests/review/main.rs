//! The review from outside: a person at a terminal, key by key, with the real binary on a terminal of its own.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

mod editing;
mod hostile;
mod keys;
mod person;
mod walked;
mod world;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
