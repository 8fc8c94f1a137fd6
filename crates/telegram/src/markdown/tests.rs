use super::render;
use crate::entities::EntityKind;

/// Text, and per entity its wire name with the words it covers (and, of a link or a label, what it carries).
fn seen(markdown: &str) -> (String, Vec<String>) {
    let made = render(markdown);
    let units: Vec<u16> = made.text().encode_utf16().collect();
    let entities = made.entities().iter().map(|entity| {
        let words = String::from_utf16(&units[entity.offset..entity.end()]).unwrap();
        match &entity.kind {
            EntityKind::TextLink { url } => format!("text_link {words} -> {url}"),
            EntityKind::Pre { language: Some(language) } => format!("pre({language}) {words}"),
            kind => format!("{} {words}", kind.name()),
        }
    });
    let entities = entities.collect();
    (made.text().to_owned(), entities)
}

#[track_caller]
fn check(markdown: &str, text: &str, entities: &[&str]) {
    let (seen_text, seen_entities) = seen(markdown);
    assert_eq!(seen_text, text, "text of {markdown:?}");
    assert_eq!(seen_entities, entities, "entities of {markdown:?}");
}

#[test]
fn spans_become_entities_with_utf16_offsets() {
    check(
        "🙂 **bold** *it* ~~no~~ `c`",
        "🙂 bold it no c",
        &["bold bold", "italic it", "strikethrough no", "code c"],
    );
    check("**a *b* c**", "a b c", &["bold a b c", "italic b"]);
    check("**a `b` c**", "a b c", &["bold a ", "code b", "bold  c"]);
    check("**a __b__ c**", "a b c", &["bold a b c"]);
    check("שלום **עולם** 👨‍👩‍👧", "שלום עולם 👨‍👩‍👧", &["bold עולם"]);
}

#[test]
fn blocks_are_separated_as_they_look() {
    check("# Head\nText\n\nmore  \nline", "Head\n\nText\n\nmore\nline", &["bold Head"]);
    check("# A **b**", "A b", &["bold A b"]);
    check("a\n\n---\n\nb", "a\n\n———\n\nb", &[]);
    check("> one\n> two\n\nafter", "one\ntwo\n\nafter", &["blockquote one\ntwo"]);
    check("> a\n>> b\n\nc", "a\n\nb\n\nc", &["blockquote a\n\nb"]);
    check("a\r\nb\rc", "a\nb\nc", &[]);
}

#[test]
fn lists_keep_their_marks_and_numbers() {
    check("- a\n- b\n  - c\n- d", "• a\n• b\n  • c\n• d", &[]);
    check("1. a\n2. b", "1. a\n2. b", &[]);
    check("1. a\n5. b", "1. a\n5. b", &[]);
    check("2019. was a year", "2019. was a year", &[]);
    check("- a\n\n  more\n\n- b", "• a\n\n  more\n\n• b", &[]);
    check("- a\n  b", "• a\n  b", &[]);
    check("- **a**: b", "• a: b", &["bold a"]);
    check("- [ ] todo\n- [x] done", "• [ ] todo\n• [x] done", &[]);
    check("> - a\n> - b", "• a\n• b", &["blockquote • a\n• b"]);
}

#[test]
fn code_blocks_keep_every_line_and_their_label() {
    check("```rust\nfn a() {\n    b\n}\n```", "fn a() {\n    b\n}", &["pre(rust) fn a() {\n    b\n}"]);
    check("```\n*a* <b> [c](d)\n```", "*a* <b> [c](d)", &["pre *a* <b> [c](d)"]);
    check("```py title here\nx\n```", "title here\nx", &["pre(py) title here\nx"]);
    check("~~~ what, now?\nx\n~~~", "what, now?\nx", &["pre what, now?\nx"]);
    check("    indented\n      more", "indented\n  more", &["pre indented\n  more"]);
    check("```\n```\n\nafter", "after", &[]);
    check("before\n```words", "before\n\nwords", &["pre words"]);
}

#[test]
fn unbalanced_markup_stays_as_text() {
    check("**open", "**open", &[]);
    check("a * b * c", "a * b * c", &[]);
    check("[a](b", "[a](b", &[]);
    check("`open", "`open", &[]);
    check("~~open", "~~open", &[]);
    check("```rust\nnever closed", "never closed", &["pre(rust) never closed"]);
    check("_a **b_ c**", "a **b c**", &["italic a **b"]);
}

#[test]
fn arithmetic_and_approximation_are_not_markup() {
    check("2*3*4 and 2**3**4", "2*3*4 and 2**3**4", &[]);
    check("~5 to 6~ is fine", "~5 to 6~ is fine", &[]);
    check("snake_case_name", "snake_case_name", &[]);
    check("中文**加粗**中文", "中文加粗中文", &["bold 加粗"]);
}

#[test]
fn html_stays_literal() {
    check("a <b>bold</b> & <i>x", "a <b>bold</b> & <i>x", &[]);
    check("<div>\n**x**\n</div>\n\nafter", "<div>\n**x**\n</div>\n\nafter", &[]);
    check("<!-- note --> x", "<!-- note --> x", &[]);
}

#[test]
fn links_have_known_schemes_or_show_their_address() {
    check("[a](https://x.example/p?q=1)", "a", &["text_link a -> https://x.example/p?q=1"]);
    check("[a](HTTP://x.example)", "a", &["text_link a -> HTTP://x.example"]);
    check("[a](tg://resolve?domain=x)", "a", &["text_link a -> tg://resolve?domain=x"]);
    check("[a](mailto:a@b.example)", "a", &["text_link a -> mailto:a@b.example"]);
    check("[a](javascript:alert(1))", "a (javascript:alert(1))", &[]);
    check("[a](file:///etc/passwd)", "a (file:///etc/passwd)", &[]);
    check("[a](/relative)", "a (/relative)", &[]);
    check("[**a** `b`](https://x.example)", "a b", &["text_link a b -> https://x.example", "bold a"]);
    check(
        "[](https://x.example)",
        "https://x.example",
        &["text_link https://x.example -> https://x.example"],
    );
    check("[a](https://x.example \"title words\")", "a (title words)", &["text_link a -> https://x.example"]);
    check("<https://x.example> <a@b.example>", "https://x.example a@b.example", &[]);
    check("https://x.example/a_b_c", "https://x.example/a_b_c", &[]);
}

#[test]
fn images_are_their_words_and_a_link() {
    check("![a cat](https://x.example/c.png)", "a cat", &["text_link a cat -> https://x.example/c.png"]);
    check(
        "![](https://x.example/c.png)",
        "https://x.example/c.png",
        &["text_link https://x.example/c.png -> https://x.example/c.png"],
    );
    check(
        "[![cat](c.png)](https://x.example)",
        "cat (c.png)",
        &["text_link cat (c.png) -> https://x.example"],
    );
}

#[test]
fn a_definition_that_is_a_sentence_stays_one() {
    check("[Alex]: hello", "[Alex]: hello", &[]);
    check("[Alex]: hello\n\n[Alex]: bye", "[Alex]: hello\n\n[Alex]: bye", &[]);
    check("[Alex]\n\n[Alex]: hello", "[Alex]\n\n[Alex]: hello", &[]);
    check("[^1]: note", "[^1]: note", &[]);
    check("see [it]\n\n[it]: https://x.example", "see it", &["text_link it -> https://x.example"]);
    check("[unused]: https://x.example", "[unused]: https://x.example", &[]);
}

#[test]
fn tables_become_columns() {
    check(
        "| a | bb |\n|---|---|\n| **c** | [d](https://x.example) |\n| e |",
        "a | bb\n--+----------------------\nc | d (https://x.example)\ne",
        &["pre a | bb\n--+----------------------\nc | d (https://x.example)\ne"],
    );
    let wide = format!("|a|b|\n|-|-|\n|{}|y|\n\nafter", "x".repeat(70));
    let text = format!("a | b\n{} | y\n\nafter", "x".repeat(70));
    assert_eq!(seen(&wide).0, text);
}

#[test]
fn what_shows_nothing_is_sent_as_it_was_written() {
    check("&nbsp;", "&nbsp;", &[]);
    check("[]()", "[]()", &[]);
    check("#", "#", &[]);
    check("   \n ", "", &[]);
}

#[test]
fn hostile_shapes_stay_bounded() {
    let nested = "- ".repeat(6_000);
    let quotes = format!("{}x", "> ".repeat(6_000));
    let table = format!("{}|\n{}|\n{}", "|a".repeat(1_500), "|-".repeat(1_500), "|b|\n".repeat(1_500));
    let references = format!("[a]: https://x.example/{}\n\n{}", "p".repeat(1_900), "[a] ".repeat(2_500));
    let spans = "*a **b ".repeat(1_700);
    for source in [nested, quotes, table, references, spans] {
        let made = render(&source);
        assert!(made.utf16_length() <= source.encode_utf16().count() * 4 + 4_096);
        assert!(!made.text().is_empty());
    }
}
