//! The head of a document: what is read of it does not depend on the body, and what is refused is refused at a line that
//! the file has, and for every body that is text. Neither what is read nor a refusal quotes it.

use thought_contract::frontmatter::{self, FrontmatterError};

use super::{Seen, is_dark, is_dark_error};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
    match frontmatter::read(data) {
        Ok(head) => {
            is_dark(&head);
            assert!(!head.id.trim().is_empty());
            let (before, body) = data.split_at(head.body_offset);
            assert!(std::str::from_utf8(body).is_ok());
            assert!(before.starts_with(format!("---{}", head.line_end.as_str()).as_bytes()));
            assert_eq!(frontmatter::read(before), Ok(head));
            Seen::Taken
        }
        Err(error) => {
            is_dark_error(&error);
            match error {
                FrontmatterError::Invalid { line, .. } => {
                    assert!((1..=lines).contains(&line), "line {line} of {lines}");
                }
                FrontmatterError::Missing => {
                    assert_eq!(
                        frontmatter::read(&[data, b"more\n"].concat()),
                        Err(FrontmatterError::Missing)
                    );
                }
                FrontmatterError::InvalidUtf8 => assert!(std::str::from_utf8(data).is_err()),
            }
            Seen::Refused
        }
    }
}
