//! A person's word while `serve` is at work: corrections from the chat, decisions from the command line, and what the chat
//! and the next turn know of either.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

mod correct;
mod dark;
mod decide;
mod unmatched;
mod waiting;
mod world;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
