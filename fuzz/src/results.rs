//! A worker's result as the parent reads it: only the exact canonical bytes of what they say, and nothing after them. What
//! is told of it does not quote it.

use thought_protocol::result::WorkerResult;

use super::{Seen, is_dark, is_dark_error};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let result = match WorkerResult::decode(data) {
        Ok(result) => result,
        Err(error) => {
            is_dark_error(&error);
            return Seen::Refused;
        }
    };
    is_dark(&result);
    assert_eq!(result.encode().expect("a result encodes"), data);
    assert!(WorkerResult::decode(&[data, b" "].concat()).is_err());
    Seen::Taken
}
