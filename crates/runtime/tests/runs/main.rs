//! A consumer against the real embedded store, with a jail, a model and a clock that the tests own.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails here")]

mod crash;
mod dark;
mod held;
mod install;
mod mail;
mod operator;
mod order;
mod outcomes;
mod ports;
mod proposals;
mod soak;
mod stop;
mod support;
mod turns;
