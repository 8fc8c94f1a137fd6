//! The frontmatter of documents, one table: what stands for an identity and what is refused.

use thought_contract::frontmatter::{FrontmatterError, LineEnd, read};

/// What a case of the table must give.
enum Want {
    Id(&'static str),
    Missing,
    /// Refused, at this line.
    Invalid(usize),
}
use Want::{Id, Invalid, Missing};

/// Name, file, and what it gives.
const TABLE: &[(&str, &str, Want)] = &[
    ("plain", "---\nid: memory\n---\nbody\n", Id("memory")),
    ("crlf", "---\r\nid: memory\r\n---\r\nbody\r\n", Id("memory")),
    ("alternating", "---\nid: memory\r\nname: x\n---\r\nbody\n", Id("memory")),
    ("alternating the other way", "---\r\nid: memory\nname: x\r\n---\nbody\n", Id("memory")),
    ("no line end behind the fence", "---\nid: memory\n---", Id("memory")),
    ("no body", "---\nid: memory\n---\n", Id("memory")),
    ("other keys", "---\nname: a\nid: memory\nlist: [1, {a: b}]\n---\n", Id("memory")),
    ("comments", "---\n# hello\nid: memory # why\n---\n", Id("memory")),
    ("quoted", "---\nid: \"0x10\"\n---\n", Id("0x10")),
    ("spaces kept", "---\nid: ' a '\n---\n", Id(" a ")),
    ("block", "---\nid: |-\n  memory\n---\n", Id("memory")),
    ("flow", "---\n{id: memory}\n---\n", Id("memory")),
    ("U+201C plain", "---\nid: memory\ndescription: \u{201c}abc\u{201d} ghi\n---\n", Id("memory")),
    ("yes is a string", "---\nid: yes\n---\n", Id("yes")),
    ("a date is a string", "---\nid: 2026-11-30\n---\n", Id("2026-11-30")),
    ("hyphens in a value", "---\nid: a---b\nnote: --- no fence\n---\n", Id("a---b")),
    ("indented hyphens", "---\nid: memory\nnote: |\n  ---\n---\n", Id("memory")),
    ("four hyphens is text", "---\nid: |-\n  x\n ----\n---\n", Invalid(4)),
    ("rule in the body", "---\nid: memory\n---\na\n---\nid: other\n---\n", Id("memory")),
    ("a rule twice in the body", "---\nid: memory\n---\n---\n---\n", Id("memory")),
    ("hyphens inside a body line", "---\nid: memory\n---\na --- b\n", Id("memory")),
    ("a control character in the body", "---\nid: memory\n---\n\u{7}\r\r\n", Id("memory")),
    ("merge is only a key", "---\nid: memory\n<<: {id: other}\n---\n", Id("memory")),
    ("nested id is another", "---\nid: memory\nx:\n  id: other\n---\n", Id("memory")),
    // no fence
    ("empty file", "", Missing),
    ("text", "hello\n", Missing),
    ("fence alone", "---", Missing),
    ("fence and lone CR", "---\rid: memory\r---\r", Missing),
    ("space behind", "--- \nid: memory\n---\n", Missing),
    ("four hyphens", "----\nid: memory\n----\n", Missing),
    ("blank line first", "\n---\nid: memory\n---\n", Missing),
    ("space first", " ---\nid: memory\n---\n", Missing),
    ("toml fence", "+++\nid = 1\n+++\n", Missing),
    // not closed
    ("never closed", "---\nid: memory\nbody\n", Invalid(1)),
    ("closed with a space", "---\nid: memory\n--- \nbody\n", Invalid(3)),
    ("closed with dots", "---\nid: memory\n...\nbody\n", Invalid(3)),
    ("closed with four", "---\nid: memory\n----\nbody\n", Invalid(1)),
    ("closed by two CR", "---\nid: memory\n---\r\r\n---\n", Invalid(3)),
    ("last fence with a lone CR", "---\nid: memory\n---\r", Invalid(3)),
    ("document inside", "---\nid: memory\n--- {id: other}\n---\n", Invalid(3)),
    ("lone CR hides a fence", "---\nid: memory\r---\rid: other\n---\n", Invalid(2)),
    // YAML
    ("unescaped quotes", "---\nid: memory\ndescription: \"abc \"def\" ghi\"\n---\n", Invalid(3)),
    ("duplicate id", "---\nid: memory\nid: memory\n---\n", Invalid(3)),
    ("duplicate id in quotes", "---\nid: memory\n\"id\": other\n---\n", Invalid(3)),
    ("other duplicate", "---\nid: memory\nx: {a: 1, a: 2}\n---\n", Invalid(3)),
    ("anchor", "---\nid: &a memory\n---\n", Invalid(2)),
    ("alias", "---\nx: &a memory\nid: *a\n---\n", Invalid(2)),
    ("tag", "---\nid: !!str 12\n---\n", Invalid(2)),
    ("directive", "---\n%YAML 1.1\nid: memory\n---\n", Invalid(2)),
    ("tab indent", "---\nid: memory\nx:\n\ty: 1\n---\n", Invalid(4)),
    ("NUL", "---\nid: mem\u{0}ory\n---\n", Invalid(2)),
    ("BOM before", "\u{feff}---\nid: memory\n---\n", Invalid(1)),
    ("BOM inside", "---\n\u{feff}id: memory\n---\n", Invalid(2)),
    // shape
    ("empty head", "---\n---\nid: memory\n", Invalid(2)),
    ("comment alone", "---\n# x\n---\n", Invalid(2)),
    ("list", "---\n- id: memory\n---\n", Invalid(2)),
    ("scalar", "---\nid\n---\n", Invalid(2)),
    // id
    ("no id", "---\nname: memory\n---\n", Invalid(1)),
    ("other case", "---\nID: memory\n---\n", Invalid(1)),
    ("list id", "---\nid: [x]\n---\n", Invalid(2)),
    ("mapping id", "---\nid: {a: b}\n---\n", Invalid(2)),
    ("hexadecimal id", "---\nid: 0x10\n---\n", Invalid(2)),
    ("octal id", "---\nid: 0o7\n---\n", Invalid(2)),
    ("number id", "---\nid: 12\n---\n", Invalid(2)),
    ("float id", "---\nid: 1e3\n---\n", Invalid(2)),
    ("bool id", "---\nid: true\n---\n", Invalid(2)),
    ("null id", "---\nid: null\n---\n", Invalid(2)),
    ("tilde id", "---\nid: ~\n---\n", Invalid(2)),
    ("absent id", "---\nid:\n---\n", Invalid(2)),
    ("empty id", "---\nid: \"\"\n---\n", Invalid(2)),
    ("blank id", "---\nx: 1\nid: '  '\n---\n", Invalid(3)),
];

#[test]
fn one_table_for_heads_of_every_kind() {
    for (name, text, want) in TABLE {
        let got = read(text.as_bytes());
        match (want, &got) {
            (Id(id), Ok(front)) => assert_eq!(front.id, *id, "{name}"),
            (Missing, Err(FrontmatterError::Missing)) => {}
            (Invalid(line), Err(FrontmatterError::Invalid { line: at, .. })) => {
                assert_eq!(at, line, "{name}")
            }
            _ => panic!("{name}: {got:?}"),
        }
    }
}

#[test]
fn the_body_begins_behind_the_closing_line() {
    for (text, body, end) in [
        ("---\nid: a\n---\nbody\n", "body\n", LineEnd::Lf),
        ("---\nid: a\n---", "", LineEnd::Lf),
        ("---\r\nid: a\r\n---\r\n\r\nbody", "\r\nbody", LineEnd::CrLf),
        ("---\r\nid: a\n---\n---\n", "---\n", LineEnd::CrLf),
        ("---\nid: \u{e9}\r\n---\r\n\u{1F600}", "\u{1F600}", LineEnd::Lf),
    ] {
        let front = read(text.as_bytes()).unwrap();
        assert_eq!(&text[front.body_offset..], body, "{text:?}");
        assert_eq!(front.line_end, end, "{text:?}");
    }
    assert_eq!((LineEnd::Lf.as_str(), LineEnd::CrLf.as_str()), ("\n", "\r\n"));
}

#[test]
fn bytes_that_are_no_utf8_are_their_own_refusal() {
    assert_eq!(read(b"---\nid: a\n---\n\xff"), Err(FrontmatterError::InvalidUtf8));
    assert_eq!(read(b"\xff\xfe-\x00"), Err(FrontmatterError::InvalidUtf8));
    assert_eq!(read(b"---\nid: \xed\xa0\x80\n---\n"), Err(FrontmatterError::InvalidUtf8));
}

#[test]
fn reasons_are_codes_and_errors_hold_no_text() {
    let missing = read(b"canary").unwrap_err();
    let invalid = read(b"---\nid: [canary]\n---\n").unwrap_err();
    let utf8 = read(b"canary\xff").unwrap_err();
    assert_eq!(
        [missing.reason(), invalid.reason(), utf8.reason()],
        ["frontmatter-missing", "frontmatter-invalid", "invalid-utf8"]
    );
    for error in [missing, invalid, utf8] {
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
    assert!(!format!("{:?}", read(b"---\nid: canary\n---\n")).contains("canary"));
}

#[test]
fn a_long_head_ends_in_a_refusal_and_a_long_body_does_not_matter() {
    let head = format!("---\nid: a\nx: {}\n---\n", "y".repeat(300 * 1024));
    assert!(matches!(read(head.as_bytes()), Err(FrontmatterError::Invalid { .. })));
    let body = format!("---\nid: a\n---\n{}", "y\n".repeat(300 * 1024));
    assert_eq!(read(body.as_bytes()).unwrap().id, "a");
}
