//! A focus declaration as a model wrote it: what is taken reads back from its canonical form as the same, under the same
//! fingerprint, and what is told of it does not quote it.

use thought_protocol::proposal::FocusDeclaration;
use thought_protocol::{canonical, strict_json};

use super::{Seen, is_dark, is_dark_error};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let Ok(value) = strict_json::parse(data) else { return Seen::Refused };
    let focus = match FocusDeclaration::from_value(&value) {
        Ok(focus) => focus,
        Err(error) => {
            is_dark_error(&error);
            return Seen::Refused;
        }
    };
    is_dark(&focus);
    let written = canonical::to_vec(&focus).expect("a focus has a canonical form");
    let again: FocusDeclaration = serde_json::from_slice(&written).expect("the canonical form is a focus");
    let print = |focus: &FocusDeclaration| focus.fingerprint().expect("a focus has a fingerprint");
    assert_eq!(print(&again), print(&focus));
    assert_eq!(again, focus);
    Seen::Taken
}
