//! Ids: every one is a *stable key*, a hash of what the thing is, so that the same thing gets the same id whoever
//! writes it and however often.
//!
//! `stable key(kind, parts…)` = SHA-256 over the canonical JSON of `[kind, part, …]`; an id is `<prefix>_` and the
//! first 160 bits in lower-case Crockford base32 (32 characters).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Characters after the prefix of a whole id.
pub const ID_KEY_LENGTH: usize = 32;
/// Fewest characters after the prefix of a shortened id on the command line.
pub const ID_SHORT_LENGTH_MIN: usize = 8;

const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Whether a byte is one of the alphabet's: digits and lower-case letters without i, l, o and u. Every id that is read
/// passes here, some thousands a turn.
const fn is_crockford(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'h' | b'j' | b'k' | b'm' | b'n' | b'p'..=b't' | b'v'..=b'z')
}

/// The 160-bit key of `[kind, part, …]`, 32 characters of lower-case Crockford base32.
pub fn stable_key(kind: &str, parts: &[Value]) -> String {
    let kind = Value::String(kind.to_owned());
    let list = std::iter::once(&kind).chain(parts);
    // Strings, integers and lists of them always have a canonical form; should one not, its plain JSON is hashed.
    let bytes = crate::canonical::list_to_vec(list.clone())
        .unwrap_or_else(|_| Value::Array(list.cloned().collect()).to_string().into_bytes());
    base32(&Sha256::digest(&bytes)[..20])
}

fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut word = 0_u64;
        for byte in chunk {
            word = (word << 8) | u64::from(*byte);
        }
        for shift in (0..8).rev() {
            text.push(char::from(CROCKFORD[((word >> (shift * 5)) & 31) as usize]));
        }
    }
    text
}

/// Text that is not an id of the demanded kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read an id: expected {prefix}_ and 32 characters of lower-case Crockford base32")]
pub struct IdError {
    /// The prefix of the demanded kind.
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// What stands before the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// The id of `[kind, part, …]`.
            pub fn of(kind: &str, parts: &[Value]) -> Self {
                Self(format!("{}_{}", $prefix, stable_key(kind, parts)))
            }

            /// The written form.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

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
        impl From<$name> for Value {
            fn from(id: $name) -> Value {
                Value::String(id.0)
            }
        }
        impl From<&$name> for Value {
            fn from(id: &$name) -> Value {
                Value::String(id.0.clone())
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let key = text.strip_prefix(concat!($prefix, "_")).ok_or(IdError { prefix: $prefix })?;
                if key.len() == ID_KEY_LENGTH && key.bytes().all(is_crockford) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(IdError { prefix: $prefix })
                }
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// An event of the log.
    EventId = "evt";
    /// A run: one declaration version on one trigger.
    RunId = "run";
    /// One attempt of a run: at most one provider request.
    AttemptId = "att";
    /// The frozen context of a run.
    SnapshotId = "snap";
    /// A document of the context root, whatever its version.
    DocumentId = "doc";
    /// One immutable version of a document.
    VersionId = "ver";
    /// An export.
    ExportId = "exp";
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_depends_on_kind_and_every_part() {
        let a = EventId::of("x", &[json!("a"), json!(1)]);
        assert_eq!(a, EventId::of("x", &[json!("a"), json!(1)]));
        assert_ne!(a, EventId::of("y", &[json!("a"), json!(1)]));
        assert_ne!(a, EventId::of("x", &[json!("a"), json!(2)]));
        assert_ne!(a, EventId::of("x", &[json!("a1")]));
        assert_eq!(a.as_str().len(), 4 + ID_KEY_LENGTH);
        assert_eq!(a.as_str().parse::<EventId>().unwrap(), a);
    }

    #[test]
    fn the_written_form_is_pinned() {
        // SHA-256 of ["run","a"] begins with these 160 bits; a change here would rename everything ever stored.
        let digest = Sha256::digest(b"[\"run\",\"a\"]");
        assert_eq!(stable_key("run", &[json!("a")]), base32(&digest[..20]));
        assert_eq!(base32(&[0; 20]), "0".repeat(32));
        assert_eq!(base32(&[255; 20]), "z".repeat(32));
    }

    #[test]
    fn the_alphabet_is_read_as_it_is_written() {
        for byte in 0..=u8::MAX {
            assert_eq!(is_crockford(byte), CROCKFORD.contains(&byte), "{byte}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        assert!("evt_short".parse::<EventId>().is_err());
        assert!(format!("run_{}", "0".repeat(32)).parse::<EventId>().is_err());
        assert!(format!("evt_{}", "u".repeat(32)).parse::<EventId>().is_err());
        assert!(format!("evt_{}", "A".repeat(32)).parse::<EventId>().is_err());
    }
}
