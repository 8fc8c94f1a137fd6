//! The number of the first update, seen in the beginning of an answer that is too large to be read. Pure.
//!
//! Only the exact form in which the Bot API writes is taken: a number that stands anywhere else may be one that a person
//! wrote, and to confirm that would lose updates.

use crate::ids::UpdateId;

/// What stands before the number, without spaces.
const BEFORE: [&str; 10] = ["{", "\"ok\"", ":", "true", ",", "\"result\"", ":", "[", "{", "\"update_id\""];

pub(super) fn update_id(beginning: &[u8]) -> Option<UpdateId> {
    let mut rest = beginning;
    for token in BEFORE.iter().chain(&[":"]) {
        rest = rest.trim_ascii_start().strip_prefix(token.as_bytes())?;
    }
    rest = rest.trim_ascii_start();
    let end = rest.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b'-'))?;
    let (number, behind) = rest.split_at(end);
    // A number that is cut off, or goes on as another kind of number, is none.
    if !matches!(behind.trim_ascii_start().first(), Some(b',' | b'}')) {
        return None;
    }
    serde_json::from_slice(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_that_stands_before_all_else_is_taken() {
        let number = |text: &str| update_id(text.as_bytes()).map(|id| id.0);
        assert_eq!(number(r#"{"ok":true,"result":[{"update_id":12,"message":{"te"#), Some(12));
        assert_eq!(number("{ \"ok\": true,\n \"result\": [ {\"update_id\" : -3\n}"), Some(-3));
        for other in [
            "",
            r#"{"ok":true,"result":[]}"#,
            r#"{"ok":true,"result":[{"update_id":12"#,
            r#"{"ok":true,"result":[{"update_id":1.5,"x"#,
            r#"{"ok":true,"result":[{"update_id":1e3,"x"#,
            r#"{"ok":true,"result":[{"update_id":"7","x"#,
            r#"{"ok":true,"result":[{"update_id":--7,"x"#,
            r#"{"ok":true,"result":[{"update_id":99999999999999999999,"x"#,
            r#"{"ok":true,"result":[{"message":{"text":"x"},"update_id":7}]}"#,
            r#"{"ok":false,"result":[{"update_id":12,"message""#,
            r#"{"result":[{"update_id":12,"message""#,
        ] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
