//! What a reviewer is shown of any text on any document: nothing hidden stays hidden, and an append keeps its base.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thought_contract::change::changed;
use thought_contract::payload::MemoryOperation;
use thought_contract::review::{Review, Standing, has_hidden, visible};

fuzz_target!(|data: (String, String)| {
    let (base, text) = data;
    let appended = changed(&base, MemoryOperation::Append, &text);
    assert!(appended.starts_with(&base) && appended.ends_with('\n'));
    for operation in [MemoryOperation::Append, MemoryOperation::ReplaceDocument] {
        let review = Review::of_memory(operation, (&text, ""), &base, Standing::Current);
        assert_eq!(review.text.expose(), &text);
        assert!(!has_hidden(&visible(review.diff.expose())));
    }
});
