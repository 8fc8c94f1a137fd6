//! Suggestions from outside: a model asks, a person can look, and nothing else happens.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

mod cannot;
mod chat;
mod decided;
mod review;
mod world;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
