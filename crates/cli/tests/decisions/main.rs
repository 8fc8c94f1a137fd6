//! A person's word from outside: decided by script, carried out once, and healed wherever it was cut short.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

mod counted;
mod dark;
mod disk;
mod kills;
mod locks;
mod races;
mod refused;
mod reports;
mod said;
mod template;
mod world;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
