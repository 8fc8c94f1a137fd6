//! The bounds that only this room knows. Those of a request and of an answer are the contract's:
//! [`thought_protocol::limits::REQUEST_BYTES_MAX`] and [`thought_protocol::limits::ANSWER_BYTES_MAX`].

use std::time::Duration;

/// Longest wait for name, connection and TLS handshake together. A shorter total time-out halves itself instead, so
/// that a provider that cannot be reached is told apart from one that does not answer.
pub const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// Longest total time-out of one request.
pub const REQUEST_TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// Longest wait of the reachability check as a whole.
pub const REACHABILITY_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// Kept of a body that comes with any status but 200, bytes; the rest is not read.
pub const STATUS_BODY_BYTES_MAX: usize = 64 * 1024;
/// A list of models, bytes; a longer one cannot tell whether the model is there.
pub const MODEL_LIST_BYTES_MAX: usize = 1024 * 1024;
/// The configured root of a provider's API, bytes.
pub const BASE_URL_BYTES_MAX: usize = 2_048;
/// A provider's key, bytes.
pub const KEY_BYTES_MAX: usize = 4_096;
