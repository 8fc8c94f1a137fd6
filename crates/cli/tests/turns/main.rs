//! Turns from outside: a message in, one request, one answer out, and everything that a person can look at afterwards.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

mod commits;
mod documents;
mod first;
mod history;
mod keys;
mod models;
mod request;
mod states;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");

/// The one sentence of a run that ended without an answer.
const RUN_FAILED: &str = "I couldn't answer that one. Nothing was changed.";
/// The one sentence of a run that waits.
const RUN_HELD: &str = "I can't answer right now. I'll reply when I can.";
