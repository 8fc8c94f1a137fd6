//! The root, its lock, the scan and the watch, on real folders and a real store.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod home;
mod lock;
mod races;
mod root;
mod scan;
mod watch;
