//! thought stream: authority.
