//! The strict YAML reader: what it takes, what it refuses, and where it says the fault is.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper of a test fails the test")]

use thought_contract::yaml::{
    Node, NodeValue, Resolved, Style, YAML_BYTES_MAX, YAML_DEPTH_MAX, YAML_NODES_MAX, YamlErrorKind as Kind,
    load,
};

fn refused(text: &str) -> (Kind, usize) {
    match load(text) {
        Ok(node) => panic!("accepted {text:?} as {node:?}"),
        Err(error) => {
            assert!(error.position.line >= 1 && error.position.column >= 1, "{text:?}");
            (error.kind, error.position.line)
        }
    }
}

fn scalar(text: &str) -> Node {
    let root = load(&format!("k: {text}\n")).unwrap();
    root.get("k").unwrap().clone()
}

#[test]
fn a_document_becomes_a_tree_with_its_lines() {
    let root =
        load("# head\na: 1\nb:\n  - x\n  - \"y\"\n  - {c: true, d: [ ]}\ne: |\n  two\n  lines\n").unwrap();
    let pairs = root.as_mapping().unwrap();
    assert_eq!(pairs.len(), 3);
    assert_eq!(pairs.iter().map(|(key, _)| key.line()).collect::<Vec<_>>(), [2, 3, 7]);
    assert_eq!(root.get("a").unwrap().as_int(), Some(1));
    assert_eq!((root.get("a").unwrap().position.line, root.get("a").unwrap().position.column), (2, 4));
    let list = root.get("b").unwrap().as_sequence().unwrap();
    assert_eq!(list.iter().map(Node::line).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(list[0].as_str(), Some("x"));
    assert_eq!(list[2].get("c").unwrap().as_bool(), Some(true));
    assert_eq!(list[2].get("d").unwrap().as_sequence(), Some(&[][..]));
    assert_eq!(root.get("e").unwrap().as_str(), Some("two\nlines\n"));
    assert_eq!(root.get("nothing"), None);
}

#[test]
fn line_ends_do_not_change_the_tree() {
    let lf = load("a: x\nb:\n  - 1\n").unwrap();
    assert!(lf == load("a: x\r\nb:\r\n  - 1\r\n").unwrap());
    assert!(lf == load("a: x\r\nb:\n  - 1\r\n").unwrap());
    assert!(lf == load("a: x\nb:\n  - 1").unwrap());
    assert_eq!(load("---\na: x\n...\n").unwrap().get("a").unwrap().as_str(), Some("x"));
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    let cases: &[(&str, Resolved<'_>)] = &[
        ("", Resolved::Null),
        ("~", Resolved::Null),
        ("null", Resolved::Null),
        ("Null", Resolved::Null),
        ("nULL", Resolved::Str("nULL")),
        ("true", Resolved::Bool(true)),
        ("FALSE", Resolved::Bool(false)),
        ("tRue", Resolved::Str("tRue")),
        ("yes", Resolved::Str("yes")),
        ("No", Resolved::Str("No")),
        ("on", Resolved::Str("on")),
        ("12", Resolved::Int(12)),
        ("-7", Resolved::Int(-7)),
        ("+7", Resolved::Int(7)),
        ("012", Resolved::Int(12)),
        ("0x10", Resolved::Int(16)),
        ("0o17", Resolved::Int(15)),
        ("0o18", Resolved::Str("0o18")),
        ("0b11", Resolved::Str("0b11")),
        ("-0x10", Resolved::Str("-0x10")),
        ("1_000", Resolved::Str("1_000")),
        ("9223372036854775807", Resolved::Int(i64::MAX)),
        ("9223372036854775808", Resolved::OtherNumber),
        ("0xffffffffffffffff", Resolved::OtherNumber),
        ("1.5", Resolved::OtherNumber),
        ("1.", Resolved::OtherNumber),
        (".5", Resolved::OtherNumber),
        ("1e3", Resolved::OtherNumber),
        ("-1.5E-3", Resolved::OtherNumber),
        (".inf", Resolved::OtherNumber),
        ("-.INF", Resolved::OtherNumber),
        (".nan", Resolved::OtherNumber),
        ("-.nan", Resolved::Str("-.nan")),
        ("1e", Resolved::Str("1e")),
        (".", Resolved::Str(".")),
        ("1.2.3", Resolved::Str("1.2.3")),
        ("2026-11-30", Resolved::Str("2026-11-30")),
        ("12:30", Resolved::Str("12:30")),
        ("\u{201c}quoted\u{201d}", Resolved::Str("\u{201c}quoted\u{201d}")),
        ("\"12\"", Resolved::Str("12")),
        ("'true'", Resolved::Str("true")),
        ("\"\"", Resolved::Str("")),
    ];
    for (text, expected) in cases {
        assert_eq!(scalar(text).resolve(), Some(*expected), "{text}");
    }
    assert!(scalar("~").is_null() && scalar("").is_null() && !scalar("''").is_null());
    assert!(matches!(scalar("x").value, NodeValue::Scalar(ref s) if s.style == Style::Plain));
    assert!(matches!(scalar("'x'").value, NodeValue::Scalar(ref s) if s.style == Style::Quoted));
}

#[test]
fn whatever_makes_a_reader_guess_is_refused_at_its_line() {
    let cases: &[(&str, Kind, usize)] = &[
        ("", Kind::Empty, 1),
        ("# only a comment\n", Kind::Empty, 1),
        ("\u{feff}a: 1\n", Kind::ByteOrderMark, 1),
        ("a: 1\nb: \"x\u{0}y\"\n", Kind::Character, 2),
        ("a: 1\u{0}\n%%%: }{\n", Kind::Character, 1),
        ("a: \u{7}\n", Kind::Character, 1),
        ("a: \u{9f}\n", Kind::Character, 1),
        ("a: \u{ffff}\n", Kind::Character, 1),
        ("a: 1\na: 2\n", Kind::DuplicateKey, 2),
        ("a: 1\n\"a\": 2\n", Kind::DuplicateKey, 2),
        ("x:\n  b: {c: 1, c: 1}\n", Kind::DuplicateKey, 2),
        ("1: a\n0x1: b\n", Kind::DuplicateKey, 2),
        ("? [a]\n: b\n", Kind::KeyNotScalar, 1),
        ("? {a: 1}\n: b\n", Kind::KeyNotScalar, 1),
        ("a: &x 1\n", Kind::Anchor, 1),
        ("&x a: 1\n", Kind::Anchor, 1),
        ("a: &x\nb: 1\n", Kind::Anchor, 2),
        ("a: &x [1]\n", Kind::Anchor, 1),
        ("a: &x {b: 1}\n", Kind::Anchor, 1),
        ("a: 1\nb: &x 2\nc: *x\n", Kind::Anchor, 2),
        ("a: !!str 1\n", Kind::Tag, 1),
        ("a: ! 1\n", Kind::Tag, 1),
        ("a: !thing [1]\n", Kind::Tag, 1),
        ("!!map\na: 1\n", Kind::Tag, 2),
        ("%YAML 1.1\n---\na: yes\n", Kind::Directive, 1),
        ("# x\n%TAG ! tag:x,1:\n---\na: 1\n", Kind::Directive, 2),
        ("a: 1\n---\nb: 2\n", Kind::SecondDocument, 2),
        ("a: 1\n...\n---\nb: 2\n", Kind::SecondDocument, 3),
    ];
    for (text, kind, line) in cases {
        assert_eq!(refused(text), (*kind, *line), "{text:?}");
    }
}

#[test]
fn what_is_not_yaml_is_refused() {
    let cases = [
        "description: \"abc \"def\" ghi\"\n",
        "a: \"open\n",
        "a: [1, 2\n",
        "a: {b: 1\n",
        "a: 1]\n b: }\n",
        "a: b: c\n",
        "a:\n\t- b\n",
        "a: *gone\n",
        "a: 'it's'\n",
        "a: \"\\q\"\n",
        "a: @x\n",
        "a: `x`\n",
        "- a\nb: 1\n",
        "a: 1\n b: 2\n",
    ];
    for text in cases {
        let (kind, _) = refused(text);
        assert!(matches!(kind, Kind::Syntax | Kind::Alias), "{text:?} gave {kind:?}");
    }
}

#[test]
fn a_refusal_names_a_line_that_the_text_has() {
    for (text, line) in [
        ("{\"a\":#", 1),
        ("{a: [1,\n b", 2),
        ("{a: [1,\r\n b", 2),
        ("{a: [1,\r b", 2),
        ("[a,\n", 2),
        ("'", 1),
    ] {
        let (kind, at) = refused(text);
        assert_eq!((kind, at), (Kind::Syntax, line), "{text:?}");
    }
    assert_eq!(refused("a:\n  - b: &c"), (Kind::Anchor, 2));
    assert_eq!(refused("a:\n  - b: !c"), (Kind::Tag, 2));
    assert_eq!(load("a:\n  b:").unwrap().get("a").unwrap().get("b").unwrap().line(), 2);
}

#[test]
fn bounds_hold_on_both_sides() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(load(&deep(YAML_DEPTH_MAX)).is_ok());
    assert_eq!(refused(&deep(YAML_DEPTH_MAX + 1)).0, Kind::TooDeep);
    assert_eq!(refused(&"- ".repeat(100_000)).0, Kind::TooDeep);
    // The parser looks ahead for a key and meets its own limit first.
    assert!(matches!(refused(&"[".repeat(100_000)).0, Kind::TooDeep | Kind::Syntax));
    let blocks: String = (0..2_000).map(|n| format!("{}a:\n", " ".repeat(n % 50))).collect();
    assert!(load(&blocks).is_err());

    // The list itself is a node too.
    assert!(load(&"- a\n".repeat(YAML_NODES_MAX - 1)).is_ok());
    assert_eq!(refused(&"- a\n".repeat(YAML_NODES_MAX)).0, Kind::TooManyNodes);

    assert!(load(&format!("a: {}", "x".repeat(YAML_BYTES_MAX - 3))).is_ok());
    assert_eq!(refused(&format!("a: {}", "x".repeat(YAML_BYTES_MAX - 2))).0, Kind::TooLong);
}

#[test]
fn errors_and_debug_hold_no_text() {
    let error = load("canary-key: 1\ncanary-key: 2\n").unwrap_err();
    assert_eq!(error.to_string(), "read YAML: line 2, column 1: a duplicate key");
    assert!(!format!("{error:?}").contains("canary"));
    let unknown = load("a: !canary!x 1\n").unwrap_err();
    assert!(!format!("{unknown} {unknown:?}").contains("canary"));
    let node = load("canary: canary\n").unwrap();
    assert!(!format!("{node:?}").contains("canary"));
}

/// Pieces that steer a YAML reader, strung together by a fixed generator.
#[test]
fn no_text_makes_the_reader_panic_and_no_accepted_tree_breaks_its_promises() {
    const PIECES: [&str; 32] = [
        "a",
        "id",
        ":",
        ": ",
        "- ",
        "\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "\t",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\"",
        "'",
        "|\n",
        ">-\n",
        "#",
        "&a ",
        "*a",
        "!!str ",
        "? ",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "\\",
        "\u{feff}",
        "\u{1F600}",
        "~",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    let mut accepted = 0;
    for _ in 0..20_000 {
        let length = next() % 14;
        let text: String = (0..length).map(|_| PIECES[next() % PIECES.len()]).collect();
        if let Ok(root) = load(&text) {
            accepted += 1;
            holds(&root, &text);
        }
    }
    assert!(accepted > 100, "{accepted}");
}

fn holds(node: &Node, text: &str) {
    assert!(node.line() <= text.split(['\n', '\r']).count() + 1, "{text:?}");
    match &node.value {
        NodeValue::Scalar(_) => {}
        NodeValue::Sequence(items) => items.iter().for_each(|item| holds(item, text)),
        NodeValue::Mapping(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                assert!(key.resolve().is_some(), "{text:?}");
                assert!(pairs[..index].iter().all(|(other, _)| other.resolve() != key.resolve()), "{text:?}");
                holds(value, text);
            }
        }
    }
}
