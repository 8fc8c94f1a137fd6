//! Properties of rendering and cutting: nothing visible is lost, and every message is one that Telegram takes.

use proptest::prelude::*;
use thought_telegram::chunks::{Completeness, reply, split};
use thought_telegram::entities::{Entity, EntityKind, Formatted, is_blank, utf16_length};
use thought_telegram::limits::{CHUNK_ENTITIES_MAX, CHUNK_UTF16_MAX};
use thought_telegram::markdown::render;

/// What the Bot API demands of a message.
#[track_caller]
fn assert_sendable(message: &Formatted) {
    let units: Vec<u16> = message.text().encode_utf16().collect();
    assert!(!is_blank(message.text()), "a message that shows nothing");
    assert!((1..=CHUNK_UTF16_MAX).contains(&units.len()), "{} units", units.len());
    assert_eq!(message.text().trim_end(), message.text());
    assert!(message.entities().len() <= CHUNK_ENTITIES_MAX);
    let mut before = 0;
    for entity in message.entities() {
        assert!(entity.length > 0 && entity.end() <= units.len(), "{entity:?} leaves its text");
        assert!(entity.offset >= before, "{entity:?} is out of order");
        before = entity.offset;
        // Both ends lie between characters.
        let words = String::from_utf16(&units[entity.offset..entity.end()]);
        assert!(words.is_ok_and(|words| !is_blank(&words)), "{entity:?} splits a pair or shows nothing");
    }
    for (index, one) in message.entities().iter().enumerate() {
        for other in &message.entities()[index + 1..] {
            let apart = one.end() <= other.offset;
            assert!(apart || other.end() <= one.end(), "{one:?} and {other:?} cross");
            let code = matches!(one.kind, EntityKind::Code | EntityKind::Pre { .. });
            assert!(apart || !code, "{other:?} within code");
        }
    }
}

fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_blank(&c.to_string())).collect()
}

fn joined(messages: &[Formatted]) -> String {
    messages.iter().map(|message| visible(message.text())).collect()
}

#[track_caller]
fn assert_whole(text: &Formatted) -> Vec<Formatted> {
    let messages = split(text);
    messages.iter().for_each(assert_sendable);
    assert_eq!(joined(&messages), visible(text.text()));
    messages
}

/// The scenario of replies at the very bounds of a message.
#[test]
fn report_29_replies_at_the_bounds() {
    let lengths = |text: &str| -> Vec<usize> {
        assert_whole(&Formatted::plain(text)).iter().map(Formatted::utf16_length).collect()
    };
    assert_eq!(lengths(&"a".repeat(4_096)), [4_096]);
    assert_eq!(lengths(&"a".repeat(4_097)), [4_096, 1]);
    assert_eq!(lengths(&format!("a{}", "\u{1f642}".repeat(4_096))), [4_095, 4_096, 2]);
    let links = "[a](https://x.example/b) ".repeat(12_000 / 25);
    let messages = reply(&links, Completeness::Whole);
    messages.iter().for_each(assert_sendable);
    assert_eq!(joined(&messages), "a".repeat(480));
    let entities: Vec<_> = messages.iter().map(|message| message.entities().len()).collect();
    assert_eq!(entities, [CHUNK_ENTITIES_MAX, 100, 100, 100, 80], "no address is lost");
    let unbalanced = "**bold _it `code [link](https://x.example ".repeat(280);
    let messages = reply(&unbalanced, Completeness::Whole);
    messages.iter().for_each(assert_sendable);
    assert!(messages.len() >= 2);
}

#[test]
fn a_message_ends_at_a_paragraph_then_a_line_then_a_word() {
    let fill = |length: usize| "x".repeat(length);
    let cut = |text: String| -> Vec<usize> {
        assert_whole(&Formatted::plain(text)).iter().map(Formatted::utf16_length).collect()
    };
    assert_eq!(
        cut(format!("{}\n\n{}\n{} {}", fill(1_000), fill(1_000), fill(1_000), fill(2_000))),
        [1_000, 4_002]
    );
    assert_eq!(cut(format!("{}\n{} {}", fill(1_000), fill(1_000), fill(4_000))), [1_000, 1_000, 4_000]);
    assert_eq!(cut(format!("{} {} {}", fill(1_000), fill(1_000), fill(4_000))), [2_001, 4_000]);
    assert_eq!(cut(format!("{}\n\n{}", fill(4_096), fill(10))), [4_096, 10]);
    assert_eq!(cut(format!("{}\n\n{}", fill(4_095), fill(10))), [4_095, 10]);
    assert_eq!(cut(format!("{} {}", fill(4_096), fill(10))), [4_096, 10]);
    assert_eq!(cut(format!("{}\u{a0}{}", fill(4_090), fill(10))), [4_096, 5]);
}

#[test]
fn a_grapheme_is_cut_only_if_it_is_longer_than_a_message() {
    let family = "👨‍👩‍👧‍👦";
    let text = family.repeat(1_000);
    let messages = assert_whole(&Formatted::plain(text));
    for message in &messages {
        assert_eq!(message.utf16_length() % utf16_length(family), 0);
    }
    let endless = format!("a{}", "\u{301}".repeat(9_000));
    let lengths: Vec<_> =
        assert_whole(&Formatted::plain(endless)).iter().map(Formatted::utf16_length).collect();
    assert_eq!(lengths, [4_096, 4_096, 809]);
}

#[test]
fn blank_stretches_make_no_message() {
    assert!(split(&Formatted::plain("")).is_empty());
    assert!(split(&Formatted::plain(" \n\u{200b}\u{feff} ")).is_empty());
    let text = format!("a{}b", "\n".repeat(9_000));
    assert_eq!(assert_whole(&Formatted::plain(text)).len(), 2);
    let text = format!("{}a", "\u{200b}".repeat(9_000));
    assert_eq!(joined(&assert_whole(&Formatted::plain(text))), "a");
}

#[test]
fn an_entity_goes_on_in_the_next_message() {
    let text = format!("{} {}", "x".repeat(4_000), "y".repeat(4_000));
    let bold = Entity { kind: EntityKind::Bold, offset: 10, length: 5_000 };
    let messages = assert_whole(&Formatted::new(text, vec![bold]));
    let seen: Vec<_> = messages.iter().map(|m| (m.entities()[0].offset, m.entities()[0].length)).collect();
    assert_eq!(seen, [(10, 3_990), (0, 1_009)]);
}

#[test]
fn code_keeps_its_indentation_in_the_next_message() {
    let line = "    indented line of code\n";
    let source = format!("```\n{}```", line.repeat(400));
    let messages = reply(&source, Completeness::Whole);
    assert!(messages.len() > 2);
    for message in &messages {
        assert_sendable(message);
        assert!(message.text().starts_with("    indented"));
        assert_eq!(
            message.entities(),
            [Entity { kind: EntityKind::Pre { language: None }, offset: 0, length: message.utf16_length() }]
        );
    }
}

#[test]
fn beyond_a_hundred_entities_the_next_message_begins_and_nothing_is_lost() {
    let counts = |source: &str| -> Vec<usize> {
        let messages = reply(source, Completeness::Whole);
        messages.iter().for_each(assert_sendable);
        let whole = render(source);
        assert_eq!(joined(&messages), visible(whole.text()));
        messages.iter().map(|message| message.entities().len()).collect()
    };
    assert_eq!(counts(&format!("{}[l](https://x.example)", "*i* ".repeat(150))), [100, 51]);
    assert_eq!(counts(&"*i* ".repeat(100)), [100]);
    assert_eq!(counts(&"*i* ".repeat(101)), [100, 1]);
    // Within a word there is no better place, and one that goes on counts in both.
    assert_eq!(counts(&format!("> {}", "*i*`c`".repeat(75))), [100, 52]);
    // A paragraph that fits is not torn.
    assert_eq!(counts(&format!("{}\n\n{}", "*i* ".repeat(60), "*j* ".repeat(60))), [60, 60]);
    // Emoji and text from right to left count as they are sent.
    assert_eq!(counts(&"**🙂שלום** ".repeat(130)), [100, 30]);
}

#[test]
fn an_answer_cut_short_says_so_in_its_last_message() {
    let messages = reply("**never ends", Completeness::CutShort);
    assert_eq!(messages[0].text(), "**never ends\n\n(cut short)");
    let full = reply(&"x".repeat(4_096), Completeness::CutShort);
    assert_eq!(full.len(), 2);
    assert_eq!(full[1].text(), "(cut short)");
    let code = reply("```\nlet a", Completeness::CutShort);
    assert_eq!(code[0].entities()[0].length, 5);
    assert_eq!(reply("", Completeness::CutShort)[0].text(), "(cut short)");
}

/// Words and markup in any order, so that much of it is almost Markdown.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,9}",
        2 => Just(String::from(" ")),
        1 => prop::sample::select(vec![
            "\n", "\n\n", "*", "**", "_", "__", "`", "```", "~~", "~", "# ", "> ", "- ", "1. ", "[", "](", ")", "]: ",
            "https://x.example", "![", "|", "|-|-|\n", "<b>", "</b>", "<", "<!--", "\\", "    ", "---\n", "🙂", "é", "\u{301}",
            "\"", "\u{202e}", "שלום",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.sort();
    words
}

/// Every letter of the source is in what is shown or in what an entity carries.
fn missing(source: &str, made: &Formatted) -> Vec<String> {
    let mut shown = made.text().to_owned();
    for entity in made.entities() {
        match &entity.kind {
            EntityKind::TextLink { url } => shown.push_str(&format!(" {url}")),
            EntityKind::Pre { language: Some(language) } => shown.push_str(&format!(" {language}")),
            _ => {}
        }
    }
    // Markup may join or part words (`a*b*`), so a word counts as shown where its letters stand together.
    let joined: String = shown.chars().filter(char::is_ascii_alphanumeric).collect();
    words(source).into_iter().filter(|word| !joined.contains(word.as_str())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rendering_loses_no_word_and_makes_valid_entities(source in markdown()) {
        let made = render(&source);
        let lost = missing(&source, &made);
        prop_assert!(lost.is_empty(), "lost {lost:?} of {source:?}");
        for message in split(&made) {
            assert_sendable(&message);
        }
    }

    #[test]
    fn cutting_any_text_loses_nothing_visible(source in "[a-z \n🙂é\u{301}\u{200d}\u{a0}\t🇩]{0,6000}", marks in prop::collection::vec((0_usize..7_000, 1_usize..5_000), 0..40)) {
        let entities = marks.into_iter().map(|(offset, length)| Entity { kind: EntityKind::Blockquote, offset, length }).collect::<Vec<_>>();
        // Only entities that lie between characters are promised to be kept so.
        let units: Vec<u16> = source.encode_utf16().collect();
        let entities = entities.into_iter().filter(|e| {
            let low = |at: usize| units.get(at).is_some_and(|unit| (0xdc00..=0xdfff).contains(unit));
            !low(e.offset) && !low(e.end())
        }).collect();
        assert_whole(&Formatted::new(source, entities));
    }

    #[test]
    fn any_bytes_as_markdown_never_stop_a_reply(source in any::<String>()) {
        let messages = reply(&source, Completeness::Whole);
        messages.iter().for_each(assert_sendable);
        prop_assert_eq!(messages.is_empty(), is_blank(&source));
    }
}
