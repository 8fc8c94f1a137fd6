//! Content stays where it belongs. Words are planted in every private field, every command is run and everything that can
//! fail fails, at the most talkative level and in both forms of the log; then every place that may hold none of them is
//! searched: what was printed, the logs, arguments and environment of every process while it ran, the names of files, the
//! columns of the store that hold no content, and the payloads of events that are not sensitive.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

mod commands;
mod control;
mod failures;
mod lived;
mod places;
mod watch;
mod words;

/// One test looks at every process of the binary, and another gives one a word on purpose.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The binary under test.
const THOUGHT: &str = env!("CARGO_BIN_EXE_thought");
