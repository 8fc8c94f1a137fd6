//! thought stream: store.
