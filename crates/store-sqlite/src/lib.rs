//! thought stream: store-sqlite.
