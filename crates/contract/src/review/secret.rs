//! What looks like a key: the well-known shapes, and no guess beyond them.
//!
//! A mark for a person. Nothing is withheld because of it, and nothing is safe because it is missing.

use super::hidden::without_hidden;

/// A key that begins with a fixed word: which characters follow it, and how many at least.
struct Shape {
    prefix: &'static str,
    follows: fn(u8) -> bool,
    count_min: usize,
}

const fn shape(prefix: &'static str, follows: fn(u8) -> bool, count_min: usize) -> Shape {
    Shape { prefix, follows, count_min }
}

const SHAPES: [Shape; 32] = [
    // Model providers.
    shape("sk-", word, 20),
    shape("hf_", word, 30),
    shape("gsk_", word, 40),
    shape("AIza", word, 35),
    shape("xai-", word, 40),
    // Code hosts and package registries.
    shape("ghp_", word, 36),
    shape("gho_", word, 36),
    shape("ghu_", word, 36),
    shape("ghs_", word, 36),
    shape("ghr_", word, 36),
    shape("github_pat_", word, 22),
    shape("glpat-", word, 20),
    shape("npm_", word, 36),
    shape("pypi-", word, 40),
    shape("dckr_pat_", word, 20),
    // Clouds.
    shape("AKIA", upper, 16),
    shape("ASIA", upper, 16),
    shape("ya29.", word, 20),
    shape("dop_v1_", word, 40),
    // Messengers and mail.
    shape("xoxa-", word, 10),
    shape("xoxb-", word, 10),
    shape("xoxe-", word, 10),
    shape("xoxo-", word, 10),
    shape("xoxp-", word, 10),
    shape("xoxr-", word, 10),
    shape("xoxs-", word, 10),
    shape("SG.", dotted, 40),
    // Payments.
    shape("sk_live_", word, 16),
    shape("rk_live_", word, 16),
    shape("whsec_", word, 24),
    // Keys for files, and signed tokens.
    shape("AGE-SECRET-KEY-1", upper, 40),
    shape("eyJ", dotted, 40),
];

/// Digits of a bot's number, in front of its token.
const BOT_DIGITS: std::ops::RangeInclusive<usize> = 6..=12;
/// Characters of a bot's token behind the colon.
const BOT_TOKEN_LENGTH: usize = 35;

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn dotted(byte: u8) -> bool {
    word(byte) || byte == b'.'
}

/// Whether a text holds something of the shape of a key. Characters that do not show are looked through.
pub fn possible_secret(text: &str) -> bool {
    let text = without_hidden(text);
    holds_private_key(&text) || holds_token(text.as_bytes())
}

fn holds_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(at, _)| {
        let line = text[at..].lines().next().unwrap_or("");
        line.contains("PRIVATE KEY")
    })
}

fn holds_token(text: &[u8]) -> bool {
    (0..text.len()).any(|at| {
        let is_start = at == 0 || !text[at - 1].is_ascii_alphanumeric();
        is_start && (begins_with_shape(&text[at..]) || begins_with_bot_token(&text[at..]))
    })
}

fn begins_with_shape(text: &[u8]) -> bool {
    SHAPES.iter().any(|shape| {
        let Some(rest) = text.strip_prefix(shape.prefix.as_bytes()) else { return false };
        let found = rest.iter().take(shape.count_min).take_while(|byte| (shape.follows)(**byte)).count();
        found == shape.count_min
    })
}

fn begins_with_bot_token(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !BOT_DIGITS.contains(&digits) || text.get(digits) != Some(&b':') {
        return false;
    }
    let token = &text[digits + 1..];
    token.iter().take(BOT_TOKEN_LENGTH).take_while(|byte| word(**byte)).count() == BOT_TOKEN_LENGTH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together here, so that no file holds anything of the shape of a key.
    fn key(prefix: &str, count: usize) -> String {
        format!("{prefix}{}", "A7".repeat(count).chars().take(count).collect::<String>())
    }

    #[test]
    fn every_shape_is_seen_at_its_length_and_not_below() {
        for shape in &SHAPES {
            let whole = key(shape.prefix, shape.count_min);
            for text in
                [whole.clone(), format!("my key: \"{whole}\""), format!("a\n{whole}\n"), format!("({whole})")]
            {
                assert!(possible_secret(&text), "{}", shape.prefix);
            }
            let short = key(shape.prefix, shape.count_min - 1);
            assert!(!possible_secret(&short), "{}", shape.prefix);
        }
    }

    #[test]
    fn private_keys_and_bot_tokens_are_seen() {
        for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
            assert!(possible_secret(&format!("x -----BEGIN {kind}PRIVATE KEY-----\nMII")), "{kind}");
        }
        assert!(!possible_secret("-----BEGIN CERTIFICATE-----\nPRIVATE KEY"));
        assert!(possible_secret(&key("123456:", 35)) && possible_secret(&key("1234567890:", 36)));
        assert!(!possible_secret(&key("123456:", 34)) && !possible_secret(&key("12345:", 40)));
    }

    #[test]
    fn a_key_that_is_broken_up_by_what_does_not_show_is_seen() {
        let whole = key("sk-", 40);
        let broken: String = whole.chars().flat_map(|c| [c, '\u{200b}']).collect();
        assert!(possible_secret(&broken));
    }

    #[test]
    fn ordinary_words_are_not() {
        for text in [
            "Ask-me-anything-about-the-old-risk-register-of-this-house",
            "The meeting is at 12:30 in room 123456: bring a pen",
            "sk- is how it begins",
            "An id such as evt_0123456789abcdefghjkmnpqrstvwxyz",
            "AKIA and ASIA are beginnings",
            "https://example.org/a/long/path/with-many-words-and-numbers-1234567890",
        ] {
            assert!(!possible_secret(text), "{text}");
        }
    }
}
