//! thought stream: worker.
