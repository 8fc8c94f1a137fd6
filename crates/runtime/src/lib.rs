//! thought stream: runtime.
