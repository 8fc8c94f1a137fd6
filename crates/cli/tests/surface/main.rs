//! The surface from outside: what is refused and how it is told, what never leaves, and the demonstration.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

mod appends;
mod changes;
mod configuration;
mod declarations;
mod demo;
mod doctor;
mod homes;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
