//! Private messages between agents, from outside: what is sent, refused, waited for and read; under whose account; and
//! that none of it touches the other conversation.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

mod account;
mod alone;
mod apart;
mod dark;
mod exchange;
mod forged;
mod letter;
mod refused;
mod rules;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
/// The endpoint.
const STREAM: &str = "stream-agent-conversation";
