//! Faults from outside: processes that are killed, channels that misbehave, and a disk that is full. Nothing may be lost,
//! nothing doubled, and what is not known must be said.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

mod channel;
mod crash;
mod disk;
mod replies;
mod strangers;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
