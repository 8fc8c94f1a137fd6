//! Percent, form and base64 decoding, as strict as the vendors are.

/// Decodes `%XX`; `+` is a space only in forms and queries. `None` for a broken escape or bytes that are not UTF-8.
pub(crate) fn percent_decode(text: &str, plus: Plus) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let high = char::from(*bytes.get(at + 1)?).to_digit(16)?;
                let low = char::from(*bytes.get(at + 2)?).to_digit(16)?;
                decoded.push(u8::try_from(high * 16 + low).ok()?);
                at += 3;
                continue;
            }
            b'+' if plus == Plus::IsSpace => decoded.push(b' '),
            byte => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8(decoded).ok()
}

/// What a plus sign stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    /// In a form or a query.
    IsSpace,
    /// In a path.
    IsPlus,
}

/// The pairs of a form body or a query.
pub(crate) fn form_pairs(text: &str) -> Option<Vec<(String, String)>> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((percent_decode(name, Plus::IsSpace)?, percent_decode(value, Plus::IsSpace)?))
        })
        .collect()
}

/// Decodes standard base64 with padding. `None` for anything else, line breaks included.
pub(crate) fn base64_decode(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return None;
    }
    let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in &bytes[..bytes.len() - padding] {
        bits = (bits << 6) | sextet(*byte)?;
        held += 6;
        if held >= 8 {
            held -= 8;
            decoded.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    Some(decoded)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_decoding_takes_whole_escapes_only() {
        assert_eq!(percent_decode("a%3Ab+c", Plus::IsPlus).as_deref(), Some("a:b+c"));
        assert_eq!(percent_decode("a%3ab+c", Plus::IsSpace).as_deref(), Some("a:b c"));
        for broken in ["%", "%3", "%zz", "%ff"] {
            assert_eq!(percent_decode(broken, Plus::IsPlus), None, "{broken}");
        }
    }

    #[test]
    fn forms_keep_order_and_empty_values() {
        let pairs = form_pairs("text=%F0%9F%99%82+x&empty=&bare&&text=2");
        let expected = [("text", "🙂 x"), ("empty", ""), ("bare", ""), ("text", "2")];
        assert_eq!(pairs, Some(expected.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()));
    }

    #[test]
    fn base64_is_standard_and_padded() {
        assert_eq!(base64_decode("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(base64_decode("/+8="), Some(vec![0xff, 0xef]));
        for broken in ["", "aGVsbG8", "aGVs bG8=", "aGVs\nbG8=", "a===", "_-8="] {
            assert_eq!(base64_decode(broken), None, "{broken:?}");
        }
    }
}
