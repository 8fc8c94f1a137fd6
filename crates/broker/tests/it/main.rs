//! The broker against a raw TCP server that counts: one call, one request, whatever happens.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod answers;
mod dark;
mod environment;
mod failures;
mod reach;
mod server;
mod support;
mod tls;
