//! Canonical JSON (RFC 8785): the one form in which anything is hashed, compared or stored.
//!
//! The writer here does what contracts need of RFC 8785 and no more; tests hold it to an independent one, byte for byte.
//! Numbers in contracts are integers within ±(2^53 − 1); anything else is refused here, so that no hash ever rests on
//! how a float is printed.

use serde::Serialize;
use serde_json::{Map, Value};

/// The largest integer that a contract may hold: 2^53 − 1.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

/// A value that has no canonical form under the contract.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// The value did not serialize to JSON.
    #[error("serialize a value to canonical JSON")]
    Serialize(#[source] serde_json::Error),
    /// A number that is no integer within ±(2^53 − 1).
    #[error("serialize a value to canonical JSON: a number is outside the contract's integers")]
    Number,
}

/// The canonical bytes of a value.
///
/// # Errors
/// [`CanonicalError`] when it does not serialize or holds a number outside the contract's integers.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    value_to_vec(&serde_json::to_value(value).map_err(CanonicalError::Serialize)?)
}

/// The canonical form as text.
///
/// # Errors
/// As [`to_vec`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    let mut text = Text::default();
    text.value(&serde_json::to_value(value).map_err(CanonicalError::Serialize)?)?;
    Ok(text.0)
}

/// The canonical bytes of what is JSON already.
///
/// # Errors
/// [`CanonicalError::Number`] when it holds a number outside the contract's integers.
pub fn value_to_vec(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut text = Text::default();
    text.value(value)?;
    Ok(text.0.into_bytes())
}

/// The canonical bytes of a list.
///
/// # Errors
/// As [`value_to_vec`].
pub(crate) fn list_to_vec<'a>(items: impl Iterator<Item = &'a Value>) -> Result<Vec<u8>, CanonicalError> {
    let mut text = Text::default();
    text.list(items)?;
    Ok(text.0.into_bytes())
}

/// Canonical text as it grows. Some dozens of values are written a turn, tens of kilobytes among them.
#[derive(Default)]
struct Text(String);

impl Text {
    fn value(&mut self, value: &Value) -> Result<(), CanonicalError> {
        match value {
            Value::Null => self.0.push_str("null"),
            Value::Bool(true) => self.0.push_str("true"),
            Value::Bool(false) => self.0.push_str("false"),
            Value::Number(number) => match number.as_i64() {
                Some(n) if (-INTEGER_MAX..=INTEGER_MAX).contains(&n) => self.0.push_str(&n.to_string()),
                _ => return Err(CanonicalError::Number),
            },
            Value::String(string) => self.string(string),
            Value::Array(items) => self.list(items.iter())?,
            Value::Object(members) => self.object(members)?,
        }
        Ok(())
    }

    fn list<'a>(&mut self, items: impl Iterator<Item = &'a Value>) -> Result<(), CanonicalError> {
        self.0.push('[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.value(item)?;
        }
        self.0.push(']');
        Ok(())
    }

    fn object(&mut self, members: &Map<String, Value>) -> Result<(), CanonicalError> {
        self.0.push('{');
        // Members stand in the order of their code points, which is that of UTF-16 except above the surrogates.
        if members.keys().all(|name| name.bytes().all(|byte| byte < FIRST_ABOVE_SURROGATES)) {
            self.members(members.iter())?;
        } else {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            self.members(sorted.into_iter())?;
        }
        self.0.push('}');
        Ok(())
    }

    fn members<'a>(
        &mut self,
        members: impl Iterator<Item = (&'a String, &'a Value)>,
    ) -> Result<(), CanonicalError> {
        for (index, (name, value)) in members.enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.string(name);
            self.0.push(':');
            self.value(value)?;
        }
        Ok(())
    }

    fn string(&mut self, string: &str) {
        self.0.push('"');
        let mut rest = string;
        while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            self.0.push_str(&rest[..at]);
            self.escape(rest.as_bytes()[at]);
            rest = &rest[at + 1..];
        }
        self.0.push_str(rest);
        self.0.push('"');
    }

    /// Writes one of the ASCII characters that never stand for themselves.
    fn escape(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self.0.push('\\');
        match byte {
            b'"' | b'\\' => self.0.push(char::from(byte)),
            0x08 => self.0.push('b'),
            b'\t' => self.0.push('t'),
            b'\n' => self.0.push('n'),
            0x0c => self.0.push('f'),
            b'\r' => self.0.push('r'),
            _ => {
                self.0.push_str("u00");
                self.0.push(char::from(HEX[usize::from(byte >> 4)]));
                self.0.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}

/// The first byte of what UTF-8 writes for U+E000 and above. Below it both orders are one.
const FIRST_ABOVE_SURROGATES: u8 = 0xee;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn members_are_sorted_by_utf16_and_white_space_is_gone() {
        let bytes = to_vec(&json!({"b": 1, "a": [true, null], "\u{20ac}": "\u{1F600}", "\r": ""})).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "{\"\\r\":\"\",\"a\":[true,null],\"b\":1,\"\u{20ac}\":\"\u{1F600}\"}"
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-INTEGER_MAX..=INTEGER_MAX).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\x00-\\x7f\u{80}-\u{a0}\u{d7ff}\u{e000}\u{ffff}\u{10000}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            let name =
                prop_oneof![any::<String>(), "[a-c\"\\\\\n\u{d7ff}\u{e000}\u{fffd}\u{10000}\u{10ffff}]{0,3}"];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                proptest::collection::vec((name, inner), 0..8)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_written_as_an_independent_writer_does(value in any_json()) {
            let expected = serde_json_canonicalizer::to_string(&value).unwrap();
            prop_assert_eq!(&to_string(&value).unwrap(), &expected);
            prop_assert_eq!(to_vec(&value).unwrap(), expected.clone().into_bytes());
            prop_assert_eq!(value_to_vec(&value).unwrap(), expected.into_bytes());
        }
    }

    #[test]
    fn every_character_is_written_as_an_independent_writer_does() {
        for character in '\0'..=char::MAX {
            let value = Value::from(character.to_string());
            assert_eq!(to_vec(&value).unwrap(), serde_json_canonicalizer::to_vec(&value).unwrap());
        }
    }

    #[test]
    fn numbers_are_integers_within_two_to_the_53() {
        assert!(to_vec(&json!(INTEGER_MAX)).is_ok());
        assert!(to_vec(&json!(INTEGER_MAX + 1)).is_err());
        assert!(to_vec(&json!(-INTEGER_MAX)).is_ok());
        assert!(to_vec(&json!({"deep": [1.5]})).is_err());
    }
}
