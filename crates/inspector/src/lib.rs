//! thought stream: inspector.
