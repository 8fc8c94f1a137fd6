//! A declaration, as a file and as the bytes that an activation stored: what is read from a file reads back from its
//! canonical bytes as the same, no other bytes are taken for canonical, and a refusal names a line that the file has and
//! no value.

use thought_contract::declaration::{Declaration, Problem};
use thought_protocol::strict_json;

use super::{PLANTED, Seen};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    if let Ok(stored) = Declaration::from_canonical(data) {
        assert_eq!(stored.canonical_bytes(), data);
    }
    let Ok(text) = std::str::from_utf8(data) else { return Seen::Refused };
    match Declaration::parse(text) {
        Ok(declaration) => {
            assert!(strict_json::check(declaration.canonical_bytes()).is_ok());
            assert_eq!(Declaration::from_canonical(declaration.canonical_bytes()), Ok(declaration));
            Seen::Taken
        }
        Err(error) => {
            // YAML takes a lone carriage return for the end of a line too.
            let lines = text.replace("\r\n", "\n").matches(['\n', '\r']).count() + 1;
            assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error} of {lines}");
            assert!(error.problem == Problem::UnknownKey || !error.field.contains(PLANTED), "{error}");
            assert!(error.hint.is_none_or(|hint| !hint.contains(PLANTED)));
            Seen::Refused
        }
    }
}
