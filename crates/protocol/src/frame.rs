//! Frames between the parent and the jail: length-prefixed, versioned, each kind bounded.
//!
//! One attempt is exactly four frames: packet in, request out, answer in, result out. A header says what follows and
//! how long it is; nothing is read, and nothing allocated, before it was checked.
//!
//! Header, 12 bytes: magic `TSWF`; version, kind (big-endian, 16 bits each); length of the body (big-endian, 32 bits).

use std::io::{self, Read, Write};

use crate::limits::{ANSWER_BYTES_MAX, PACKET_BYTES_MAX, REQUEST_BYTES_MAX, RESULT_BYTES_MAX};
use crate::reason::FailReason;

/// The version of the frame's form.
pub const FRAME_VERSION: u16 = 1;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 12;
/// What every frame starts with.
pub const MAGIC: [u8; 4] = *b"TSWF";

/// The kinds of frame, in the order in which they pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// Parent to jail: the packet.
    Packet,
    /// Jail to parent: the body of the one request.
    Request,
    /// Parent to jail: the provider's raw answer.
    Answer,
    /// Jail to parent: the reading of it, or a reason.
    Result,
}

impl FrameKind {
    /// Every kind, in order.
    pub const ALL: [Self; 4] = [Self::Packet, Self::Request, Self::Answer, Self::Result];

    const fn code(self) -> u16 {
        match self {
            Self::Packet => 1,
            Self::Request => 2,
            Self::Answer => 3,
            Self::Result => 4,
        }
    }

    /// The longest body of this kind, bytes.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Packet => PACKET_BYTES_MAX,
            Self::Request => REQUEST_BYTES_MAX,
            Self::Answer => ANSWER_BYTES_MAX,
            Self::Result => RESULT_BYTES_MAX,
        }
    }
}

/// Why bytes are not the frame that was due.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side closed before the first byte of the frame.
    #[error("read a frame: the channel is closed")]
    Closed,
    /// The other side closed within a frame.
    #[error("read a frame: the channel was closed within it")]
    Truncated,
    /// The channel failed.
    #[error("move a frame through the channel")]
    Io(#[source] io::Error),
    /// It does not start with the magic.
    #[error("read a frame: it does not start with the magic")]
    Magic,
    /// Another version.
    #[error("read a frame: it has version {found}, this build speaks {FRAME_VERSION}")]
    Version {
        /// The version found.
        found: u16,
    },
    /// A kind that does not exist.
    #[error("read a frame: kind {found} does not exist")]
    UnknownKind {
        /// The code found.
        found: u16,
    },
    /// A kind that was not due.
    #[error("read a frame: a {found:?} frame stands where a {expected:?} frame was due")]
    UnexpectedKind {
        /// The kind that was due.
        expected: FrameKind,
        /// The kind found.
        found: FrameKind,
    },
    /// A second frame of a kind of which there is one.
    #[error("read a frame: a second {kind:?} frame")]
    SecondFrame {
        /// The kind.
        kind: FrameKind,
    },
    /// A length over the kind's bound.
    #[error("move a frame: a {kind:?} frame of {length} bytes is over its bound")]
    TooLong {
        /// The kind.
        kind: FrameKind,
        /// The length.
        length: usize,
    },
    /// A frame without a body.
    #[error("move a frame: a {kind:?} frame without a body")]
    Empty {
        /// The kind.
        kind: FrameKind,
    },
    /// Bytes after the last frame.
    #[error("read a frame: bytes follow the last one")]
    Trailing,
    /// No memory for the body.
    #[error("read a frame: no memory for {length} bytes")]
    Memory {
        /// The length.
        length: usize,
    },
}

impl FrameError {
    /// The reason under which an attempt ends.
    pub const fn fail_reason(&self) -> FailReason {
        match self {
            Self::Version { .. } => FailReason::ProtocolVersion,
            _ => FailReason::WorkerProtocol,
        }
    }
}

/// A checked header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind.
    pub kind: FrameKind,
    /// Length of the body in bytes, within the kind's bound.
    pub length: usize,
}

impl Header {
    /// The length of the body, if the frame is the one that is due.
    ///
    /// # Errors
    /// [`FrameError::SecondFrame`] for a kind that has passed already, else [`FrameError::UnexpectedKind`].
    pub fn expect(self, expected: FrameKind) -> Result<usize, FrameError> {
        if self.kind == expected {
            Ok(self.length)
        } else if self.kind < expected {
            Err(FrameError::SecondFrame { kind: self.kind })
        } else {
            Err(FrameError::UnexpectedKind { expected, found: self.kind })
        }
    }
}

fn check_length(kind: FrameKind, length: usize) -> Result<(), FrameError> {
    if length == 0 {
        Err(FrameError::Empty { kind })
    } else if length > kind.bytes_max() {
        Err(FrameError::TooLong { kind, length })
    } else {
        Ok(())
    }
}

/// The header of a body of this length.
///
/// # Errors
/// [`FrameError::Empty`] or [`FrameError::TooLong`].
pub fn encode_header(kind: FrameKind, length: usize) -> Result<[u8; HEADER_BYTES], FrameError> {
    check_length(kind, length)?;
    let written = u32::try_from(length).or(Err(FrameError::TooLong { kind, length }))?;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&FRAME_VERSION.to_be_bytes());
    header[6..8].copy_from_slice(&kind.code().to_be_bytes());
    header[8..].copy_from_slice(&written.to_be_bytes());
    Ok(header)
}

/// Reads a header. What kind is due is [`Header::expect`]'s to say.
///
/// # Errors
/// [`FrameError`]: magic, version, kind, length, in this order.
pub fn decode_header(header: &[u8; HEADER_BYTES]) -> Result<Header, FrameError> {
    let [m0, m1, m2, m3, v0, v1, k0, k1, l0, l1, l2, l3] = *header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(FrameError::Magic);
    }
    let version = u16::from_be_bytes([v0, v1]);
    if version != FRAME_VERSION {
        return Err(FrameError::Version { found: version });
    }
    let code = u16::from_be_bytes([k0, k1]);
    let kind = FrameKind::ALL
        .into_iter()
        .find(|kind| kind.code() == code)
        .ok_or(FrameError::UnknownKind { found: code })?;
    let length = u32::from_be_bytes([l0, l1, l2, l3]);
    let length = usize::try_from(length).or(Err(FrameError::TooLong { kind, length: usize::MAX }))?;
    check_length(kind, length)?;
    Ok(Header { kind, length })
}

/// Writes one frame and flushes.
///
/// # Errors
/// [`FrameError`].
pub fn write_frame<W: Write>(channel: &mut W, kind: FrameKind, body: &[u8]) -> Result<(), FrameError> {
    let header = encode_header(kind, body.len())?;
    channel.write_all(&header).map_err(FrameError::Io)?;
    channel.write_all(body).map_err(FrameError::Io)?;
    channel.flush().map_err(FrameError::Io)
}

/// Reads one frame of the kind that is due.
///
/// # Errors
/// [`FrameError`].
pub fn read_frame<R: Read>(channel: &mut R, expected: FrameKind) -> Result<Vec<u8>, FrameError> {
    let mut header = [0; HEADER_BYTES];
    if fill(channel, &mut header)? == 0 {
        return Err(FrameError::Closed);
    }
    let length = decode_header(&header)?.expect(expected)?;
    let mut body = Vec::new();
    body.try_reserve_exact(length).or(Err(FrameError::Memory { length }))?;
    body.resize(length, 0);
    if fill(channel, &mut body)? == 0 {
        return Err(FrameError::Truncated);
    }
    Ok(body)
}

/// Demands that the other side has closed: after the last frame nothing may follow.
///
/// # Errors
/// [`FrameError::Trailing`], or the channel's failure.
pub fn expect_end<R: Read>(channel: &mut R) -> Result<(), FrameError> {
    match fill(channel, &mut [0; 1]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(FrameError::Trailing),
        Err(error) => Err(error),
    }
}

/// Fills the buffer whole, or finds the channel closed before its first byte (0).
fn fill<R: Read>(channel: &mut R, buffer: &mut [u8]) -> Result<usize, FrameError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match channel.read(&mut buffer[filled..]) {
            Ok(0) if filled == 0 => return Ok(0),
            Ok(0) => return Err(FrameError::Truncated),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::Io(error)),
        }
    }
    Ok(filled)
}
