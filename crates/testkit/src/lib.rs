//! thought stream: testkit.
