//! Proof that a home is what was written: every hand that changes one thing is seen, and a backup comes back equal.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

mod backups;
mod mutations;
mod verify;
mod world;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
