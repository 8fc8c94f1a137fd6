//! Reading the HTTP client's errors.
//!
//! Owns the translation of a client error into a reason code. The error itself ends here: its text may hold an address,
//! and nothing of it goes on. When in doubt a failure counts as *after* the request: claiming "never sent" wrongly
//! would have someone pay twice.

use std::error::Error as StdError;
use std::io;

use crate::reply::{BeforeReason, UnknownReason};

/// On which side of the request a failure lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Certainly before the first byte of the request.
    Before(BeforeReason),
    /// Perhaps after.
    Unknown(UnknownReason),
}

/// A failure of sending a request up to the head of its answer.
pub(crate) fn of_sending(error: &reqwest::Error) -> Failure {
    if error.is_builder() {
        return Failure::Before(BeforeReason::NotBuilt);
    }
    if error.is_connect() {
        // The client names a failure so only while it has no connection to write to.
        let reason = if error.is_timeout() {
            BeforeReason::ConnectTimeout
        } else if error.is_dns() {
            BeforeReason::Dns
        } else if has_tls_cause(error) {
            BeforeReason::Tls
        } else {
            BeforeReason::Connect
        };
        return Failure::Before(reason);
    }
    if error.is_timeout() {
        return Failure::Unknown(UnknownReason::Timeout);
    }
    Failure::Unknown(UnknownReason::BrokenConnection)
}

/// A failure of reading the body of an answer.
pub(crate) fn of_reading(error: &reqwest::Error) -> UnknownReason {
    if error.is_timeout() { UnknownReason::Timeout } else { UnknownReason::TruncatedBody }
}

/// Whether a TLS error stands anywhere among the causes. An `io::Error` does not list what it wraps as its source, so
/// each one is opened.
fn has_tls_cause(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(current) = next {
        if current.is::<rustls::Error>() {
            return true;
        }
        let wrapped = current.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => current.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tls_error_is_found_below_wrapped_io_errors() {
        let tls = rustls::Error::General("canary".to_owned());
        let inner = io::Error::new(io::ErrorKind::InvalidData, tls);
        assert!(has_tls_cause(&io::Error::other(inner)));
        assert!(!has_tls_cause(&io::Error::other(io::Error::from(io::ErrorKind::ConnectionReset))));
    }
}
