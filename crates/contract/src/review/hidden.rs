//! Characters that do not show, and text in which they do.
//!
//! Controls, marks that turn the direction of writing, characters without width, fillers that look like nothing, and the
//! ranges in which text can be smuggled. What a person sees must be what is there.

/// Whether a character does not show. `before` is the one in front of it: the form selector of a picture is hidden only
/// where it selects nothing.
fn is_hidden(character: char, before: Option<char>) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{fe0e}' | '\u{fe0f}' => before.is_none_or(|before| {
            before.is_ascii_alphabetic() || before.is_whitespace() || is_hidden(before, None)
        }),
        character if character.is_control() => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Text with every character that does not show written out, such as `<U+202E>`. Line ends and tabs stay; a carriage
/// return is written out wherever it stands, since a terminal would act on it.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for character in text.chars() {
        if is_hidden(character, before) {
            shown.push_str(&format!("<U+{:04X}>", u32::from(character)));
        } else {
            shown.push(character);
        }
        before = Some(character);
    }
    shown
}

/// Whether a text holds anything that does not show. The line end of two characters is no such thing.
pub fn has_hidden(text: &str) -> bool {
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_line_end = character == '\r' && characters.peek() == Some(&'\n');
        if !is_line_end && is_hidden(character, before) {
            return true;
        }
        before = Some(character);
    }
    false
}

/// A text without what does not show.
pub(super) fn without_hidden(text: &str) -> String {
    let mut before = None;
    text.chars()
        .filter(|character| {
            let keep = *character == '\r' || !is_hidden(*character, before);
            before = Some(*character);
            keep
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        for (text, shown) in [
            ("a\u{202e}b\u{1b}[31m\nc\u{200b}", "a<U+202E>b<U+001B>[31m\nc<U+200B>"),
            ("one\r\ntwo\rthree", "one<U+000D>\ntwo<U+000D>three"),
            ("tab\there", "tab\there"),
            ("\u{e0041}\u{e0042}", "<U+E0041><U+E0042>"),
            ("\u{61c}\u{2066}x\u{2069}\u{feff}", "<U+061C><U+2066>x<U+2069><U+FEFF>"),
            ("\u{3164}\u{ad}\u{2028}", "<U+3164><U+00AD><U+2028>"),
            ("\u{85}\u{9b}31m\u{7f}", "<U+0085><U+009B>31m<U+007F>"),
            ("plain \u{e9}\u{df}\u{4e2d}\u{1f642}", "plain \u{e9}\u{df}\u{4e2d}\u{1f642}"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(has_hidden(text), shown.contains('<') && text != "one\r\ntwo", "{shown}");
        }
    }

    #[test]
    fn a_selector_behind_its_picture_is_no_hidden_character_and_a_row_of_them_is() {
        assert!(!has_hidden("\u{2764}\u{fe0f}"));
        assert!(has_hidden("a\u{fe0f}"));
        assert!(has_hidden("\u{2764}\u{fe0f}\u{fe0f}"));
        assert!(has_hidden("\u{fe0f}"));
        assert!(has_hidden("\u{1f642}\u{fe01}"));
        assert!(has_hidden("\u{1f642}\u{e0100}"));
    }

    #[test]
    fn a_line_end_of_two_characters_is_not_warned_about() {
        assert!(!has_hidden("one\r\ntwo\r\n"));
        assert!(has_hidden("one\rtwo"));
        assert!(has_hidden("one\r"));
    }
}
