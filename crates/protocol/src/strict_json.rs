//! Strict JSON: one value, no repair. No duplicate key anywhere, no trailing bytes, no byte order mark, valid UTF-8,
//! bounded depth.
//!
//! What a model or a provider wrote passes through here before anything is read from it. Errors never quote the text.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::limits::JSON_DEPTH_MAX;

/// Why bytes are not strict JSON. It holds no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StrictJsonError {
    /// A byte order mark at the start.
    #[error("read strict JSON: a byte order mark stands at the start")]
    ByteOrderMark,
    /// Not UTF-8.
    #[error("read strict JSON: the bytes are not UTF-8")]
    Utf8,
    /// Not JSON, cut short, or followed by other bytes.
    #[error("read strict JSON: bad syntax at line {line}, column {column}")]
    Syntax {
        /// Where, counted from 1.
        line: usize,
        /// Where, counted from 1.
        column: usize,
    },
    /// A key stands twice in one object.
    #[error("read strict JSON: a key stands twice in one object")]
    DuplicateKey,
    /// Deeper than [`JSON_DEPTH_MAX`].
    #[error("read strict JSON: nested deeper than {JSON_DEPTH_MAX}")]
    Depth,
    /// Strict JSON that does not have the demanded shape.
    #[error("read strict JSON: another shape than demanded")]
    Shape,
}

/// Checks bytes without building a value: large packets pass through with no copy of their strings kept.
///
/// # Errors
/// [`StrictJsonError`].
pub fn check(bytes: &[u8]) -> Result<(), StrictJsonError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(StrictJsonError::ByteOrderMark);
    }
    if std::str::from_utf8(bytes).is_err() {
        return Err(StrictJsonError::Utf8);
    }
    let fault = Cell::new(None);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Check { depth: 0, fault: &fault };
    seed.deserialize(&mut deserializer).and_then(|()| deserializer.end()).map_err(|error| {
        fault.get().unwrap_or(StrictJsonError::Syntax { line: error.line(), column: error.column() })
    })
}

/// One value by strict parsing.
///
/// # Errors
/// [`StrictJsonError`].
pub fn parse(bytes: &[u8]) -> Result<Value, StrictJsonError> {
    from_slice(bytes)
}

/// A typed value by strict parsing. Owned types only; for raw members use [`check`] and a borrowing type.
///
/// # Errors
/// [`StrictJsonError`]; [`StrictJsonError::Shape`] when the JSON is strict but not of this type.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StrictJsonError> {
    check(bytes)?;
    serde_json::from_slice(bytes).or(Err(StrictJsonError::Shape))
}

/// Walks a value, keeping nothing but the keys of the objects that are open.
#[derive(Clone, Copy)]
struct Check<'a> {
    depth: usize,
    fault: &'a Cell<Option<StrictJsonError>>,
}

impl Check<'_> {
    fn fail<E: serde::de::Error>(self, fault: StrictJsonError) -> E {
        self.fault.set(Some(fault));
        E::custom("not strict")
    }

    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= JSON_DEPTH_MAX {
            return Err(self.fail(StrictJsonError::Depth));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(self.fail(StrictJsonError::DuplicateKey));
            }
            members.next_value_seed(inner)?;
        }
        Ok(())
    }
}
