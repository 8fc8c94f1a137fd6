//! The proof that both sides of the wall rendered the same request.
//!
//! Owns the comparison and the only body that can be sent. It must never repair, choose between or describe the two:
//! one differing byte ends it, and the error names lengths and an offset.

use std::fmt;

use thought_protocol::limits::REQUEST_BYTES_MAX;

/// Why there is no body to send. Holds lengths and an offset alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The jail rendered something else.
    #[error(
        "compare the two renderings of a request: they differ from byte {first_difference} on \
         ({parent_length} bytes here, {worker_length} bytes in the jail)"
    )]
    Differ {
        /// Bytes of the trusted rendering.
        parent_length: usize,
        /// Bytes of the jailed rendering.
        worker_length: usize,
        /// Offset of the first byte that differs, or the length of the shorter one.
        first_difference: usize,
    },
    /// Both are empty: nothing was rendered.
    #[error("compare the two renderings of a request: both are empty")]
    Empty,
    /// Longer than [`REQUEST_BYTES_MAX`].
    #[error(
        "compare the two renderings of a request: {length} bytes, at most {REQUEST_BYTES_MAX} are allowed"
    )]
    TooLong {
        /// Bytes of the trusted rendering.
        length: usize,
    },
}

/// A request body that the trusted side rendered itself and the jail rendered byte for byte alike. Not cloneable, and
/// consumed by [`crate::Broker::request`]: one comparison allows one request.
pub struct EqualBytes(Vec<u8>);

impl EqualBytes {
    /// Keeps `parent_rendered` if `worker_rendered` equals it. What is sent is always the trusted side's copy.
    ///
    /// # Errors
    /// [`Mismatch`] if a byte differs, nothing was rendered, or the body is too long.
    pub fn check(parent_rendered: Vec<u8>, worker_rendered: &[u8]) -> Result<Self, Mismatch> {
        if parent_rendered != worker_rendered {
            let shorter = parent_rendered.len().min(worker_rendered.len());
            let first_difference =
                parent_rendered.iter().zip(worker_rendered).position(|(a, b)| a != b).unwrap_or(shorter);
            return Err(Mismatch::Differ {
                parent_length: parent_rendered.len(),
                worker_length: worker_rendered.len(),
                first_difference,
            });
        }
        if parent_rendered.is_empty() {
            return Err(Mismatch::Empty);
        }
        if parent_rendered.len() > REQUEST_BYTES_MAX {
            return Err(Mismatch::TooLong { length: parent_rendered.len() });
        }
        Ok(Self(parent_rendered))
    }

    /// Length of the body, bytes.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_body(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Debug for EqualBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EqualBytes({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_renderings_give_the_body_of_the_trusted_side() {
        let equal = EqualBytes::check(b"{\"a\":1}".to_vec(), b"{\"a\":1}").unwrap();
        assert_eq!(equal.byte_count(), 7);
        assert_eq!(equal.into_body(), b"{\"a\":1}");
    }

    #[test]
    fn any_difference_is_refused_and_shown_by_offset_alone() {
        let cases: [(&[u8], &[u8], usize); 5] = [
            (b"canary-a", b"canary-b", 7),
            (b"canary", b"canary ", 6),
            (b"canary ", b"canary", 6),
            (b"canary", b"", 0),
            (b"", b"canary", 0),
        ];
        for (parent, worker, offset) in cases {
            let error = EqualBytes::check(parent.to_vec(), worker).unwrap_err();
            assert_eq!(
                error,
                Mismatch::Differ {
                    parent_length: parent.len(),
                    worker_length: worker.len(),
                    first_difference: offset
                }
            );
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
    }

    #[test]
    fn an_empty_or_oversized_body_is_refused() {
        assert_eq!(EqualBytes::check(Vec::new(), b"").unwrap_err(), Mismatch::Empty);
        let big = vec![b'x'; REQUEST_BYTES_MAX + 1];
        assert_eq!(
            EqualBytes::check(big.clone(), &big).unwrap_err(),
            Mismatch::TooLong { length: REQUEST_BYTES_MAX + 1 }
        );
    }

    #[test]
    fn debug_shows_the_length_alone() {
        let equal = EqualBytes::check(b"canary".to_vec(), b"canary").unwrap();
        assert_eq!(format!("{equal:?}"), "EqualBytes(6 bytes)");
    }
}
