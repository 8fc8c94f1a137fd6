//! A provider's key in memory.
//!
//! Owns its check and its end: the bytes are wiped when the key is dropped. It must never be printed, serialized or
//! compared; the HTTP client copies it into its own buffers while a request is written, which this room cannot wipe.

use std::fmt;

use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

use crate::limits::KEY_BYTES_MAX;

/// Why a key was refused. Holds lengths alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing but white space.
    #[error("read the provider's key: it is empty")]
    Empty,
    /// Longer than [`KEY_BYTES_MAX`].
    #[error("read the provider's key: {length} bytes, at most {KEY_BYTES_MAX} are allowed")]
    TooLong {
        /// Bytes that were given.
        length: usize,
    },
    /// A byte that no header may carry: white space inside, a control, or anything beyond ASCII.
    #[error("read the provider's key: byte {offset} is not visible ASCII")]
    NotVisibleAscii {
        /// Offset of the first such byte after trimming.
        offset: usize,
    },
}

/// A provider's key: 1 to [`KEY_BYTES_MAX`] bytes of visible ASCII. `Debug` prints the length, there is no `Display`
/// and no way to the text outside this room.
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Takes the key as it stood in a variable or a file; white space around it (the line end of a key file) is
    /// removed, and the given text is wiped.
    ///
    /// # Errors
    /// [`KeyError`] when nothing is left, when it is too long, or when a byte is not visible ASCII.
    pub fn new(text: String) -> Result<Self, KeyError> {
        let text = Zeroizing::new(text);
        let key = text.trim_ascii();
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if key.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong { length: key.len() });
        }
        if let Some(offset) = key.bytes().position(|byte| !byte.is_ascii_graphic()) {
            return Err(KeyError::NotVisibleAscii { offset });
        }
        Ok(Self(Zeroizing::new(key.to_owned())))
    }

    /// The key after `scheme` (which may be empty) as a header value that the client's own `Debug` hides.
    pub(crate) fn header(&self, scheme: &str) -> Result<HeaderValue, reqwest::header::InvalidHeaderValue> {
        let mut text = Zeroizing::new(String::with_capacity(scheme.len() + self.0.len()));
        text.push_str(scheme);
        text.push_str(&self.0);
        let mut value = HeaderValue::from_str(&text)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_key_is_removed() {
        let key = ApiKey::new("  sk-canary-1\r\n".to_owned()).unwrap();
        assert_eq!(key.header("").unwrap().to_str().unwrap(), "sk-canary-1");
        assert_eq!(key.header("Bearer ").unwrap().to_str().unwrap(), "Bearer sk-canary-1");
    }

    #[test]
    fn a_key_that_no_header_may_carry_is_refused_without_showing_it() {
        let cases = [
            (String::new(), KeyError::Empty),
            (" \n".to_owned(), KeyError::Empty),
            ("sk canary".to_owned(), KeyError::NotVisibleAscii { offset: 2 }),
            ("sk\r\nx-evil: canary".to_owned(), KeyError::NotVisibleAscii { offset: 2 }),
            ("canary\u{e9}".to_owned(), KeyError::NotVisibleAscii { offset: 6 }),
            ("c".repeat(KEY_BYTES_MAX + 1), KeyError::TooLong { length: KEY_BYTES_MAX + 1 }),
        ];
        for (text, expected) in cases {
            let error = ApiKey::new(text).unwrap_err();
            assert_eq!(error, expected);
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
        assert!(ApiKey::new("c".repeat(KEY_BYTES_MAX)).is_ok());
    }

    #[test]
    fn debug_shows_the_length_alone() {
        let key = ApiKey::new("sk-canary-1".to_owned()).unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey(11 bytes)");
        assert_eq!(format!("{:?}", key.header("Bearer ").unwrap()), "Sensitive");
    }
}
