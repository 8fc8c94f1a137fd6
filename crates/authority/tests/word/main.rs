//! A person's word, from the verified chain to the file and its receipt, on real folders and a real store.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod corrections;
mod decisions;
mod faults;
mod forgery;
mod kills;
mod materials;
mod operators;
mod races;
mod scale;
mod world;
