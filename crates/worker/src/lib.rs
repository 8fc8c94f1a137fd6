//! What runs in the jail: one packet in, one request out, one answer in, one result out, and then it is over.
//!
//! It owns the order of the four frames and nothing else. It opens nothing, starts nothing, knows no key, address,
//! clock or file, keeps no state, and serves one attempt. All that it reads and writes goes through the one channel
//! that it is handed, by the codecs of the protocol room.

mod rehearsal;

use std::io::{Read, Write};

use thought_protocol::frame::{FrameError, FrameKind, read_frame, write_frame};
use thought_protocol::packet::{Packet, PacketError};
use thought_protocol::provider;
use thought_protocol::reason::FailReason;
use thought_protocol::result::{WorkerResult, judge};

/// How a worker ended. The parent never rests on it: it reads the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// All four frames have passed.
    Served,
    /// The channel closed before a packet came: a warm worker that was not needed.
    Unused,
    /// The channel closed while the answer was due: the attempt had none.
    NoAnswer,
    /// Something that was read is out of contract; a result frame says so.
    Refused(FailReason),
    /// The channel broke, so that nothing could be said.
    Broken,
}

impl ExitReason {
    /// The process's exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Served | Self::Unused | Self::NoAnswer => 0,
            Self::Refused(_) => 10,
            Self::Broken => 11,
        }
    }
}

/// Serves one attempt on the channel and returns. It never panics on anything that it reads.
pub fn serve<S: Read + Write>(mut channel: S) -> ExitReason {
    rehearsal::rehearse();
    match attempt(&mut channel) {
        Ok(reason) => reason,
        Err(reason) => match send_result(&mut channel, &WorkerResult::of_failure(reason)) {
            Ok(()) => ExitReason::Refused(reason),
            Err(_) => ExitReason::Broken,
        },
    }
}

fn attempt<S: Read + Write>(channel: &mut S) -> Result<ExitReason, FailReason> {
    let Some(packet) = receive(channel, FrameKind::Packet)? else { return Ok(ExitReason::Unused) };
    let packet = Packet::decode(&packet).map_err(|error| match error {
        PacketError::Format { .. } => FailReason::ProtocolVersion,
        PacketError::Json(_) | PacketError::Shape { .. } => FailReason::PacketMalformed,
    })?;
    let request = provider::render_request(&packet).map_err(|error| error.fail_reason())?;
    if write_frame(channel, FrameKind::Request, &request).is_err() {
        return Ok(ExitReason::Broken);
    }
    drop(request);
    let Some(answer) = receive(channel, FrameKind::Answer)? else { return Ok(ExitReason::NoAnswer) };
    Ok(match send_result(channel, &judge(&packet, &answer)) {
        Ok(()) => ExitReason::Served,
        Err(_) => ExitReason::Broken,
    })
}

/// The body of the frame that is due; `None` when the parent has closed the channel instead.
fn receive<S: Read>(channel: &mut S, kind: FrameKind) -> Result<Option<Vec<u8>>, FailReason> {
    match read_frame(channel, kind) {
        Ok(body) => Ok(Some(body)),
        Err(FrameError::Closed) => Ok(None),
        Err(error) => Err(error.fail_reason()),
    }
}

fn send_result<S: Write>(channel: &mut S, result: &WorkerResult) -> Result<(), FrameError> {
    match result.encode() {
        Ok(bytes) => write_frame(channel, FrameKind::Result, &bytes),
        // Counts are within the contract's integers, so a result always encodes; else nothing is sent.
        Err(_) => Err(FrameError::Empty { kind: FrameKind::Result }),
    }
}
