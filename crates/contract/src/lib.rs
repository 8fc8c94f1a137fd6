//! thought stream: contract.
