//! What comes over the private channel: a frame of any kind, or anything else.
//!
//! A frame that is read was written like that; nothing longer than its kind may be is ever taken; nothing is read as two
//! kinds; and what is refused for more than its end stays refused, whatever follows.

use thought_protocol::frame::{FrameError, FrameKind, HEADER_BYTES, expect_end, read_frame, write_frame};

use super::{Seen, is_dark_error};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let mut taken = 0;
    for kind in FrameKind::ALL {
        let mut channel = data;
        let body = match read_frame(&mut channel, kind) {
            Ok(body) => body,
            Err(error) => {
                is_dark_error(&error);
                stays_refused(data, kind, &error);
                continue;
            }
        };
        taken += 1;
        assert_eq!(expect_end(&mut channel).is_ok(), data.len() == HEADER_BYTES + body.len());
        assert!(body.len() <= kind.bytes_max());
        let mut written = Vec::new();
        write_frame(&mut written, kind, &body).expect("what was read can be written");
        assert_eq!(written, data[..HEADER_BYTES + body.len()]);
    }
    assert!(taken <= 1, "a frame is of one kind");
    if taken == 1 { Seen::Taken } else { Seen::Refused }
}

fn stays_refused(data: &[u8], kind: FrameKind, error: &FrameError) {
    if !matches!(error, FrameError::Closed | FrameError::Truncated) {
        let longer = [data, b"and more"].concat();
        let again = read_frame(&mut longer.as_slice(), kind);
        assert!(again.is_err_and(|again| again.to_string() == error.to_string()));
    }
}
