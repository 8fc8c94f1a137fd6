//! The worker over a channel in memory: the whole table of answers, and every way to break the four frames.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a fixture that cannot be read fails the test")]

#[path = "../../protocol/tests/table/mod.rs"]
mod table;

use std::io::{self, Cursor, Read, Write};

use table::{Expect, cases, packet};
use thought_protocol::frame::{FrameKind, encode_header, expect_end, read_frame, write_frame};
use thought_protocol::packet::PacketMessage;
use thought_protocol::provider::render_request;
use thought_protocol::reason::FailReason;
use thought_protocol::result::{Outcome, WorkerResult, confirm};
use thought_worker::{ExitReason, serve};

/// What the parent wrote, and what the worker wrote.
struct Channel {
    inbound: Cursor<Vec<u8>>,
    outbound: Vec<u8>,
    writes_left: usize,
}

impl Read for &mut Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inbound.read(buffer)
    }
}

impl Write for &mut Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.writes_left == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.writes_left -= 1;
        self.outbound.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(inbound: Vec<u8>, writes_left: usize) -> (ExitReason, Vec<u8>) {
    let mut channel = Channel { inbound: Cursor::new(inbound), outbound: Vec::new(), writes_left };
    let reason = serve(&mut channel);
    (reason, channel.outbound)
}

fn frames(bodies: &[(FrameKind, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, body) in bodies {
        write_frame(&mut bytes, *kind, body).unwrap();
    }
    bytes
}

fn result_alone(outbound: Vec<u8>) -> FailReason {
    let mut outbound = Cursor::new(outbound);
    let result = WorkerResult::decode(&read_frame(&mut outbound, FrameKind::Result).unwrap()).unwrap();
    expect_end(&mut outbound).unwrap();
    match result.outcome {
        Outcome::Failed { reason } => reason,
        Outcome::Answer { .. } => panic!("an answer"),
    }
}

#[test]
fn every_answer_of_the_table_comes_out_as_written() {
    for case in cases() {
        let packet = case.packet.encode().unwrap();
        let (reason, outbound) =
            run(frames(&[(FrameKind::Packet, &packet), (FrameKind::Answer, &case.body)]), usize::MAX);
        assert_eq!(reason, ExitReason::Served, "{}", case.name);
        let mut outbound = Cursor::new(outbound);
        let request = read_frame(&mut outbound, FrameKind::Request).unwrap();
        assert_eq!(request, render_request(&case.packet).unwrap(), "{}", case.name);
        let result = WorkerResult::decode(&read_frame(&mut outbound, FrameKind::Result).unwrap()).unwrap();
        expect_end(&mut outbound).unwrap();
        match (&case.expect, &result.outcome) {
            (Expect::Valid(_), Outcome::Answer { .. }) => {
                confirm(&case.packet, &case.body, &result).unwrap_or_else(|e| panic!("{}: {e}", case.name));
            }
            (Expect::Reason(reason), Outcome::Failed { reason: found }) => {
                assert_eq!(found.as_str(), reason, "{}", case.name);
            }
            (_, other) => panic!("{}: {other:?}", case.name),
        }
    }
}

#[test]
fn a_packet_out_of_contract_ends_with_a_reason_and_no_request() {
    let good = String::from_utf8(packet("openai").encode().unwrap()).unwrap();
    let mut assistant_last = packet("openai");
    assistant_last.messages.push(PacketMessage::Assistant { text: String::from("x") });
    for (bytes, expected) in [
        (good.replace("\"packetFormat\":1", "\"packetFormat\":9"), FailReason::ProtocolVersion),
        (good.replace("\"packetFormat\":1", "\"packetFormat\":1,\"x\":1"), FailReason::PacketMalformed),
        (String::from("{}"), FailReason::PacketMalformed),
        (String::from("not JSON"), FailReason::PacketMalformed),
        (String::from_utf8(assistant_last.encode().unwrap()).unwrap(), FailReason::PacketUnrenderable),
    ] {
        let (reason, outbound) = run(frames(&[(FrameKind::Packet, bytes.as_bytes())]), usize::MAX);
        assert_eq!(reason, ExitReason::Refused(expected));
        assert_ne!(reason.code(), 0);
        assert_eq!(result_alone(outbound), expected);
    }
}

#[test]
fn frames_that_are_not_due_end_with_a_reason() {
    let packet = packet("openai").encode().unwrap();
    let mut other_version = frames(&[(FrameKind::Packet, &packet)]);
    other_version[5] = 2;
    let mut oversized = encode_header(FrameKind::Packet, 1).unwrap().to_vec();
    oversized[8] = 0xff;
    let mut cut = frames(&[(FrameKind::Packet, &packet)]);
    cut.truncate(40);
    for (inbound, expected) in [
        (other_version, FailReason::ProtocolVersion),
        (oversized, FailReason::WorkerProtocol),
        (cut, FailReason::WorkerProtocol),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), FailReason::WorkerProtocol),
        (frames(&[(FrameKind::Answer, b"{}")]), FailReason::WorkerProtocol),
    ] {
        let (reason, outbound) = run(inbound, usize::MAX);
        assert_eq!(reason, ExitReason::Refused(expected));
        assert_eq!(result_alone(outbound), expected);
    }
}

#[test]
fn a_second_packet_in_the_answers_place_is_refused() {
    let packet = packet("openai").encode().unwrap();
    let (reason, outbound) =
        run(frames(&[(FrameKind::Packet, &packet), (FrameKind::Packet, &packet)]), usize::MAX);
    assert_eq!(reason, ExitReason::Refused(FailReason::WorkerProtocol));
    let mut outbound = Cursor::new(outbound);
    read_frame(&mut outbound, FrameKind::Request).unwrap();
    read_frame(&mut outbound, FrameKind::Result).unwrap();
    expect_end(&mut outbound).unwrap();
}

#[test]
fn one_attempt_is_served_and_no_second() {
    let case = cases().remove(0);
    let packet = case.packet.encode().unwrap();
    let attempt = [(FrameKind::Packet, packet.as_slice()), (FrameKind::Answer, case.body.as_slice())];
    let (reason, outbound) = run(frames(&[attempt, attempt].concat()), usize::MAX);
    assert_eq!(reason, ExitReason::Served);
    let mut outbound = Cursor::new(outbound);
    read_frame(&mut outbound, FrameKind::Request).unwrap();
    read_frame(&mut outbound, FrameKind::Result).unwrap();
    expect_end(&mut outbound).unwrap();
}

#[test]
fn a_parent_that_goes_away_ends_the_worker_quietly() {
    assert_eq!(run(Vec::new(), usize::MAX), (ExitReason::Unused, Vec::new()));
    let packet = packet("anthropic").encode().unwrap();
    let (reason, _) = run(frames(&[(FrameKind::Packet, &packet)]), usize::MAX);
    assert_eq!((reason, reason.code()), (ExitReason::NoAnswer, 0));
}

#[test]
fn a_channel_that_takes_nothing_is_broken_and_no_panic() {
    let case = cases().remove(0);
    let packet = case.packet.encode().unwrap();
    let inbound = frames(&[(FrameKind::Packet, &packet), (FrameKind::Answer, &case.body)]);
    for writes_left in 0..4 {
        let (reason, _) = run(inbound.clone(), writes_left);
        assert_eq!((reason, reason.code()), (ExitReason::Broken, 11), "{writes_left}");
    }
    assert_eq!(run(b"nonsense that is no frame".to_vec(), 0).0, ExitReason::Broken);
}
