//! Frames: both sides of every bound, and every malformed header with its own reason.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be written fails the test")]

use std::io::{Cursor, Read};

use thought_protocol::frame::{
    FRAME_VERSION, FrameError, FrameKind, HEADER_BYTES, Header, MAGIC, decode_header, encode_header,
    expect_end, read_frame, write_frame,
};
use thought_protocol::reason::FailReason;

fn written(kind: FrameKind, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, kind, body).unwrap();
    bytes
}

#[test]
fn four_frames_pass_in_order_and_then_the_end() {
    let mut bytes = Vec::new();
    for kind in FrameKind::ALL {
        write_frame(&mut bytes, kind, format!("{kind:?}").as_bytes()).unwrap();
    }
    let mut channel = Cursor::new(bytes);
    for kind in FrameKind::ALL {
        assert_eq!(read_frame(&mut channel, kind).unwrap(), format!("{kind:?}").into_bytes());
    }
    expect_end(&mut channel).unwrap();
    assert!(matches!(read_frame(&mut channel, FrameKind::Result), Err(FrameError::Closed)));
}

#[test]
fn the_header_is_pinned() {
    let header = encode_header(FrameKind::Result, 258).unwrap();
    assert_eq!(&header, b"TSWF\0\x01\0\x04\0\0\x01\x02");
    assert_eq!(decode_header(&header).unwrap(), Header { kind: FrameKind::Result, length: 258 });
}

#[test]
fn each_kind_is_bounded_on_both_sides() {
    for kind in FrameKind::ALL {
        let max = kind.bytes_max();
        for length in [1, max] {
            assert_eq!(
                decode_header(&encode_header(kind, length).unwrap()).unwrap(),
                Header { kind, length }
            );
        }
        assert!(matches!(encode_header(kind, 0), Err(FrameError::Empty { .. })));
        assert!(matches!(encode_header(kind, max + 1), Err(FrameError::TooLong { .. })));
        assert!(matches!(encode_header(kind, usize::MAX), Err(FrameError::TooLong { .. })));
        let mut header = encode_header(kind, 1).unwrap();
        header[8..].copy_from_slice(&u32::try_from(max + 1).unwrap().to_be_bytes());
        assert!(matches!(decode_header(&header), Err(FrameError::TooLong { .. })), "{kind:?}");
        header[8..].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(decode_header(&header), Err(FrameError::TooLong { .. })), "{kind:?}");
        header[8..].copy_from_slice(&[0; 4]);
        assert!(matches!(decode_header(&header), Err(FrameError::Empty { .. })), "{kind:?}");
    }
}

#[test]
fn every_wrong_byte_of_a_header_has_its_reason() {
    let good = encode_header(FrameKind::Packet, 4).unwrap();
    for at in 0..HEADER_BYTES {
        for value in 0..=u8::MAX {
            let mut header = good;
            header[at] = value;
            let read = decode_header(&header);
            match at {
                _ if header == good => assert!(read.is_ok()),
                0..4 => assert!(matches!(read, Err(FrameError::Magic))),
                4 | 5 => {
                    let error = read.unwrap_err();
                    assert!(matches!(error, FrameError::Version { found } if found != FRAME_VERSION));
                    assert_eq!(error.fail_reason(), FailReason::ProtocolVersion);
                }
                7 if (1..=4).contains(&value) => assert_ne!(read.unwrap().kind, FrameKind::Packet),
                6 | 7 => {
                    let error = read.unwrap_err();
                    assert!(matches!(error, FrameError::UnknownKind { .. }));
                    assert_eq!(error.fail_reason(), FailReason::WorkerProtocol);
                }
                _ => {
                    let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
                    assert_eq!(read.is_ok(), (1..=FrameKind::Packet.bytes_max()).contains(&length));
                }
            }
        }
    }
    assert_eq!(good[..4], MAGIC);
}

#[test]
fn a_frame_that_is_not_due_is_refused_with_its_own_reason() {
    let read = |found, expected| read_frame(&mut Cursor::new(written(found, b"x")), expected).unwrap_err();
    assert!(matches!(
        read(FrameKind::Packet, FrameKind::Answer),
        FrameError::SecondFrame { kind: FrameKind::Packet }
    ));
    assert!(matches!(
        read(FrameKind::Request, FrameKind::Result),
        FrameError::SecondFrame { kind: FrameKind::Request }
    ));
    assert!(matches!(
        read(FrameKind::Result, FrameKind::Request),
        FrameError::UnexpectedKind { expected: FrameKind::Request, found: FrameKind::Result }
    ));
    let mut twice = written(FrameKind::Result, b"x");
    twice.extend(written(FrameKind::Result, b"x"));
    let mut channel = Cursor::new(twice);
    read_frame(&mut channel, FrameKind::Result).unwrap();
    assert!(matches!(expect_end(&mut channel), Err(FrameError::Trailing)));
}

#[test]
fn a_channel_that_closes_early_is_closed_or_truncated() {
    let whole = written(FrameKind::Answer, b"answer");
    for length in 0..whole.len() {
        let read = read_frame(&mut Cursor::new(&whole[..length]), FrameKind::Answer);
        match length {
            0 => assert!(matches!(read, Err(FrameError::Closed))),
            _ => assert!(matches!(read, Err(FrameError::Truncated)), "{length}: {read:?}"),
        }
    }
}

/// Gives one byte at a time, and every other time an interruption.
struct Slow(Cursor<Vec<u8>>, u32);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 += 1;
        if self.1.is_multiple_of(2) {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let end = buffer.len().min(1);
        self.0.read(&mut buffer[..end])
    }
}

#[test]
fn a_frame_in_single_bytes_is_still_one_frame() {
    let mut channel = Slow(Cursor::new(written(FrameKind::Packet, b"a packet")), 0);
    assert_eq!(read_frame(&mut channel, FrameKind::Packet).unwrap(), b"a packet");
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::ConnectionReset.into())
    }
}

#[test]
fn a_broken_channel_is_its_own_error() {
    assert!(matches!(read_frame(&mut Broken, FrameKind::Packet), Err(FrameError::Io(_))));
    assert!(matches!(expect_end(&mut Broken), Err(FrameError::Io(_))));
}
