//! The channel from outside: what a person says of a delivery, images, the webhook, the menu, focus, and the odd things
//! that people meet in Telegram.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects, and fails by panicking")]

mod deliveries;
mod images;
mod menu;
mod odd;
mod soak;
mod webhook;

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
