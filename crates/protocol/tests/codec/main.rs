//! Answers and proposals: the hand-written table, the fixed texts, and generated hostility.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a fixture that cannot be read fails the test")]

mod answers;
mod hostile;
mod proposals;
#[path = "../table/mod.rs"]
mod table;
