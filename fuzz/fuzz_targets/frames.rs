//! What comes over the private channel: a frame of any kind, or anything else.
//!
//! A frame that is read was written like that; nothing longer than its kind may be is ever taken.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thought_protocol::frame::{FrameKind, HEADER_BYTES, read_frame, write_frame};

fuzz_target!(|data: &[u8]| {
    for kind in FrameKind::ALL {
        let mut channel = data;
        let Ok(body) = read_frame(&mut channel, kind) else { continue };
        assert!(body.len() <= kind.bytes_max());
        let mut written = Vec::new();
        write_frame(&mut written, kind, &body).expect("what was read can be written");
        assert_eq!(written, data[..HEADER_BYTES + body.len()]);
    }
});
