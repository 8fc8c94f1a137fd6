//! A consumer against the real embedded store, with a jail, a model and a clock that the tests own.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails here")]

mod calendar;
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
mod replay;
mod soak;
mod stop;
mod suggestions;
mod support;
#[expect(dead_code, reason = "the packets of the table are the codec's alone; here a snapshot makes them")]
#[path = "../../../protocol/tests/table/mod.rs"]
mod table;
mod turns;
