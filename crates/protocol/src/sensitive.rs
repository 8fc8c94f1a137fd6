//! Content that must never reach a log, an error or a file name by accident.
//!
//! Owns the wrapper that every message text, memory, prompt, answer and token travels in. It has no `Display`, its
//! `Debug` prints a length and a hash prefix, it does not serialize, and the only way to the value is to say `expose`.

use std::fmt;

use crate::hash::Sha256Hex;

/// A private value. `Debug` prints `Sensitive(<bytes> bytes, sha256 <8 hex digits>)`; there is no `Display` and no
/// `Serialize`: a value reaches a wire or a table only through [`Sensitive::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive<T>(T);

impl<T> Sensitive<T> {
    /// Wraps a private value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Each call is a place where content leaves its wrapper: keep them few and at the edges.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Unwraps for good.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Applies a function to the value, keeping the wrapper.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Sensitive<U> {
        Sensitive(f(self.0))
    }
}

impl<T: AsRef<[u8]>> fmt::Debug for Sensitive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_ref();
        let hash = Sha256Hex::of(bytes);
        write!(f, "Sensitive({} bytes, sha256 {})", bytes.len(), &hash.as_str()[..8])
    }
}

impl<T> From<T> for Sensitive<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_length_and_hash_and_never_the_value() {
        let secret = Sensitive::new(String::from("canary-words"));
        let shown = format!("{secret:?}");
        assert!(shown.starts_with("Sensitive(12 bytes, sha256 "), "{shown}");
        assert!(!shown.contains("canary"));
    }
}
