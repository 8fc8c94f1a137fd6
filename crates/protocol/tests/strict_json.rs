//! Strict JSON: what is refused, with which word, and what is not.

use serde_json::json;
use thought_protocol::limits::JSON_DEPTH_MAX;
use thought_protocol::strict_json::{StrictJsonError, check, from_slice, parse};

fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("{}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn strict_json_is_read_as_it_is() {
    for (text, value) in [
        ("null", json!(null)),
        (" [1, -2, 3.5, \"x\", true] \n", json!([1, -2, 3.5, "x", true])),
        (
            "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}",
            json!({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}),
        ),
        ("\"\\ud83d\\ude42\\u0000\"", json!("\u{1F642}\0")),
        ("18446744073709551615", json!(u64::MAX)),
    ] {
        assert_eq!(parse(text.as_bytes()), Ok(value), "{text}");
    }
}

#[test]
fn a_key_that_stands_twice_is_found_wherever_it_is() {
    for text in [
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":2}",
        "[[{\"b\":{\"x\":1,\"y\":2,\"x\":3}}]]",
        "{\"\":1,\"\":2}",
        "{\"a\":{},\"b\":[],\"a\":null}",
    ] {
        assert_eq!(check(text.as_bytes()), Err(StrictJsonError::DuplicateKey), "{text}");
        assert_eq!(parse(text.as_bytes()), Err(StrictJsonError::DuplicateKey), "{text}");
    }
}

#[test]
fn depth_is_bounded_on_both_sides() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let inner =
            |depth| nested(depth, open, close).replace(&format!("{open}{close}"), &format!("{open}1{close}"));
        assert_eq!(check(inner(JSON_DEPTH_MAX).as_bytes()), Ok(()));
        assert_eq!(check(inner(JSON_DEPTH_MAX + 1).as_bytes()), Err(StrictJsonError::Depth));
        assert_eq!(check(inner(100).as_bytes()), Err(StrictJsonError::Depth));
    }
    // Far deeper than any stack would bear.
    assert_eq!(check("[".repeat(1_000_000).as_bytes()), Err(StrictJsonError::Depth));
}

#[test]
fn anything_else_is_refused() {
    assert_eq!(check(b"\xef\xbb\xbf{}"), Err(StrictJsonError::ByteOrderMark));
    assert_eq!(check(b"\"\xff\""), Err(StrictJsonError::Utf8));
    assert_eq!(check(b"\"\xed\xa0\xbd\""), Err(StrictJsonError::Utf8));
    for text in [
        "",
        " ",
        "{",
        "{}{}",
        "{} x",
        "{}\0",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "01",
        "+1",
        ".5",
        "1.",
        "0x10",
        "NaN",
        "Infinity",
        "\"\\x\"",
        "\"a\nb\"",
        "\"\\ud83d\"",
        "\"\\ude42\"",
        "\"\\ud83dx\"",
        "tru",
        "nul",
        "// c\n1",
        "/**/1",
        "\u{a0}1",
    ] {
        assert!(matches!(check(text.as_bytes()), Err(StrictJsonError::Syntax { .. })), "{text:?}");
    }
}

#[test]
fn another_shape_is_its_own_error_and_quotes_nothing() {
    let read = from_slice::<Vec<u32>>(b"[\"canary\"]");
    assert_eq!(read, Err(StrictJsonError::Shape));
    assert!(!format!("{read:?}").contains("canary"));
    let syntax = check(b"{\"canary\" 1}").unwrap_err().to_string();
    assert!(!syntax.contains("canary"), "{syntax}");
}
