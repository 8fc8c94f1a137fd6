//! What a reviewer is shown of any text on any document: nothing hidden stays hidden, and an append keeps its base. The
//! document ends at the first zero byte of the input. What is no text is neither.

use thought_contract::change::changed;
use thought_contract::payload::MemoryOperation;
use thought_contract::review::{Review, Standing, has_hidden, visible};

use super::{Seen, is_dark};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let Ok(input) = std::str::from_utf8(data) else { return Seen::Refused };
    let (base, text) = input.split_once('\0').unwrap_or((input, ""));
    let appended = changed(base, MemoryOperation::Append, text);
    assert!(appended.starts_with(base) && appended.ends_with('\n'));
    for operation in [MemoryOperation::Append, MemoryOperation::ReplaceDocument] {
        let review = Review::of_memory(operation, (text, ""), base, Standing::Current);
        assert_eq!(review.text.expose(), text);
        is_dark(&review);
        assert!(!has_hidden(&visible(review.diff.expose())));
    }
    Seen::Taken
}
