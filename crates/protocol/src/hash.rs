//! SHA-256 in the two written forms of the contract: bare 64 hex digits, and `sha256:`-prefixed fingerprints.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

/// Text that is not 64 lower-case hex digits (or lacks the `sha256:` prefix where one is due).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read a sha256: expected {expected}, found {found_length} characters")]
pub struct HashError {
    /// What the form demands.
    pub expected: &'static str,
    /// Length of what was found, in bytes.
    pub found_length: usize,
}

/// SHA-256 as 64 lower-case hex digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Sha256Hex(String);

impl Sha256Hex {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex(&Sha256::digest(bytes)))
    }

    /// The 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Sixty-four zeros: what stands before the first link of a hash chain.
    pub fn zero() -> Self {
        Self("0".repeat(64))
    }
}

/// The hash of bytes that come piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all pieces.
    pub fn finish(self) -> Sha256Hex {
        Sha256Hex(hex(&self.0.finalize()))
    }
}

/// SHA-256 over canonical bytes as they were at activation: `sha256:` and 64 hex digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", Sha256Hex::of(bytes).0))
    }

    /// The written form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]])
        .map(char::from)
        .collect()
}

fn is_hex64(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl FromStr for Sha256Hex {
    type Err = HashError;
    fn from_str(text: &str) -> Result<Self, HashError> {
        if is_hex64(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(HashError { expected: "64 lower-case hex digits", found_length: text.len() })
        }
    }
}

impl FromStr for Fingerprint {
    type Err = HashError;
    fn from_str(text: &str) -> Result<Self, HashError> {
        match text.strip_prefix("sha256:") {
            Some(rest) if is_hex64(rest) => Ok(Self(text.to_owned())),
            _ => {
                Err(HashError { expected: "sha256: and 64 lower-case hex digits", found_length: text.len() })
            }
        }
    }
}

macro_rules! text_traits {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
text_traits!(Sha256Hex);
text_traits!(Fingerprint);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_hash_is_the_known_one() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256Hex::of(b"").as_str(), empty);
        assert_eq!(Fingerprint::of(b"").as_str(), format!("sha256:{empty}"));
    }

    #[test]
    fn other_forms_are_refused() {
        assert!("E3B0".parse::<Sha256Hex>().is_err());
        assert!("A".repeat(64).parse::<Sha256Hex>().is_err());
        assert!("a".repeat(64).parse::<Fingerprint>().is_err());
        assert!(format!("sha256:{}", "a".repeat(64)).parse::<Fingerprint>().is_ok());
    }
}
