//! Canonical JSON (RFC 8785): the one form in which anything is hashed, compared or stored.
//!
//! Numbers in contracts are integers within ±(2^53 − 1); anything else is refused here, so that no hash ever rests on
//! how a float is printed.

use serde::Serialize;
use serde_json::Value;

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
    let value = serde_json::to_value(value).map_err(CanonicalError::Serialize)?;
    check_numbers(&value)?;
    serde_json_canonicalizer::to_vec(&value).map_err(CanonicalError::Serialize)
}

/// The canonical form as text.
///
/// # Errors
/// As [`to_vec`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    let value = serde_json::to_value(value).map_err(CanonicalError::Serialize)?;
    check_numbers(&value)?;
    serde_json_canonicalizer::to_string(&value).map_err(CanonicalError::Serialize)
}

fn check_numbers(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(n) if (-INTEGER_MAX..=INTEGER_MAX).contains(&n) => Ok(()),
            _ => Err(CanonicalError::Number),
        },
        Value::Array(items) => items.iter().try_for_each(check_numbers),
        Value::Object(members) => members.values().try_for_each(check_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_sorted_by_utf16_and_white_space_is_gone() {
        let bytes = to_vec(&json!({"b": 1, "a": [true, null], "\u{20ac}": "\u{1F600}", "\r": ""})).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "{\"\\r\":\"\",\"a\":[true,null],\"b\":1,\"\u{20ac}\":\"\u{1F600}\"}"
        );
    }

    #[test]
    fn numbers_are_integers_within_two_to_the_53() {
        assert!(to_vec(&json!(INTEGER_MAX)).is_ok());
        assert!(to_vec(&json!(INTEGER_MAX + 1)).is_err());
        assert!(to_vec(&json!(-INTEGER_MAX)).is_ok());
        assert!(to_vec(&json!({"deep": [1.5]})).is_err());
    }
}
