//! Exports of judgments, on a real store and real folders: what is in them, what never is, and what a kill leaves.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod chains;
mod examples;
mod house;
mod kills;
mod places;
mod releases;
mod writer;

#[expect(dead_code, reason = "the world of another target, of which this one needs a part")]
#[path = "../word/world.rs"]
mod world;
