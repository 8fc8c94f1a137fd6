//! The real worker, in the real binary, sealed: whatever a provider says, it answers as it does outside.

use std::io::{Read, Write};
use std::path::Path;

use thought_protocol::answer::FailReason;
use thought_protocol::frame::{FrameKind, encode_header, expect_end, read_frame, write_frame};
use thought_protocol::packet::{Packet, PacketImage, PacketMessage};
use thought_protocol::provider::render_request;
use thought_protocol::result::{Outcome, WorkerResult, confirm};
use thought_sandbox::{ExitKind, Launcher, SealedWorker, Tier, WorkerLimits};

use crate::home::{PATIENCE, of_path};
use crate::table::{Expect, cases, packet};

const REAL: &str = env!("CARGO_BIN_EXE_thought");
const WORKER: &str = "__worker";
pub(crate) const TIERS: [Tier; 2] = [Tier::Full, Tier::LandlockSeccomp];

fn real(tier: Tier) -> Launcher {
    of_path(Path::new(REAL), tier, WORKER)
}

/// What one attempt gave.
pub(crate) struct Attempt {
    pub(crate) request: Vec<u8>,
    pub(crate) result: WorkerResult,
    pub(crate) end: ExitKind,
}

/// One whole attempt; nothing if the worker broke off.
pub(crate) fn attempt(launcher: &Launcher, packet: &Packet, answer: &[u8]) -> Option<Attempt> {
    let mut worker = launcher.launch().ok()?;
    worker.channel().set_read_timeout(Some(PATIENCE)).unwrap();
    worker.channel().set_write_timeout(Some(PATIENCE)).unwrap();
    write_frame(worker.channel(), FrameKind::Packet, &packet.encode().unwrap()).ok()?;
    let request = read_frame(worker.channel(), FrameKind::Request).ok()?;
    write_frame(worker.channel(), FrameKind::Answer, answer).ok()?;
    let result = read_frame(worker.channel(), FrameKind::Result).ok()?;
    expect_end(worker.channel()).ok()?;
    assert_eq!(worker.stderr().bytes, 0, "it has nothing to say");
    Some(Attempt { request, result: WorkerResult::decode(&result).unwrap(), end: worker.wait(PATIENCE) })
}

pub(crate) fn the_whole_table() {
    let launchers = TIERS.map(real);
    for (index, case) in cases().into_iter().enumerate() {
        let launcher = &launchers[index % launchers.len()];
        let done = attempt(launcher, &case.packet, &case.body).unwrap_or_else(|| panic!("{}", case.name));
        assert_eq!(done.end, ExitKind::Clean, "{}", case.name);
        assert!(done.request == render_request(&case.packet).unwrap(), "{}: other bytes", case.name);
        match (&case.expect, &done.result.outcome) {
            (Expect::Valid(_), Outcome::Answer { .. }) => {
                confirm(&case.packet, &case.body, &done.result)
                    .unwrap_or_else(|e| panic!("{}: {e}", case.name));
            }
            (Expect::Reason(reason), Outcome::Failed { reason: found }) => {
                assert_eq!(found.as_str(), reason, "{}", case.name);
            }
            _ => panic!("{}: it reads another thing than outside", case.name),
        }
    }
}

/// A packet with that much text, and images of that many characters each.
pub(crate) fn large(api: &str, text_bytes: usize, images: &[usize]) -> Packet {
    let mut packet = packet(api);
    let Some(PacketMessage::User { text, images: place, .. }) = packet.messages.last_mut() else {
        panic!("a message is last")
    };
    *text = "a\"\u{e9}\n".chars().cycle().take(text_bytes).collect();
    place.extend(images.iter().map(|length| PacketImage {
        media_type: "image/jpeg".to_owned(),
        data_base64: "QUFB".repeat(length / 4),
    }));
    packet
}

pub(crate) fn answer_of(api: &str, text: &str) -> Vec<u8> {
    let body = if api == "openai" {
        serde_json::json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
    } else {
        serde_json::json!({
            "type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
        })
    };
    serde_json::to_vec(&body).unwrap()
}

pub(crate) fn large_frames() {
    const MIB: usize = 1024 * 1024;
    for tier in TIERS {
        for api in ["anthropic", "openai"] {
            for (text, images) in [(MIB, &[][..]), (MIB, &[2 * MIB, MIB])] {
                check_large(tier, api, &large(api, text, images));
            }
        }
    }
    // As many images as a turn may have.
    check_large(Tier::Full, "anthropic", &large("anthropic", 8, &[9 * MIB, 9 * MIB, 9 * MIB]));
    // An answer as long as one may be, and far too long for a person.
    let answer = answer_of("openai", &"c".repeat(8 * MIB - 1024));
    let done = attempt(&real(Tier::Full), &packet("openai"), &answer).unwrap();
    assert!(matches!(done.result.outcome, Outcome::Failed { reason: FailReason::TextTooLong }));
}

fn check_large(tier: Tier, api: &str, packet: &Packet) {
    let answer = answer_of(api, &"b".repeat(12_000));
    let done = attempt(&real(tier), packet, &answer).unwrap_or_else(|| panic!("{tier}: {api}: no attempt"));
    assert!(done.request == render_request(packet).unwrap(), "{tier}: {api}: other bytes");
    assert_eq!(done.end, ExitKind::Clean, "{tier}: {api}");
    confirm(packet, &answer, &done.result).unwrap_or_else(|e| panic!("{tier}: {api}: {e}"));
}

/// Sends bytes to a real worker, and gives the reason that its one result frame names, and its end.
fn refusal(tier: Tier, bytes: &[u8]) -> (Option<FailReason>, ExitKind) {
    let mut worker = real(tier).launch().unwrap();
    worker.channel().set_read_timeout(Some(PATIENCE)).unwrap();
    // It may end before it has read everything.
    let _sent = worker.channel().write_all(bytes);
    worker.channel().shutdown(std::net::Shutdown::Write).unwrap();
    let reason = result_alone(&mut worker);
    (reason, worker.wait(PATIENCE))
}

fn result_alone(worker: &mut SealedWorker) -> Option<FailReason> {
    let bytes = read_frame(worker.channel(), FrameKind::Result).ok()?;
    // What it did not read resets the channel, which ends it as well.
    assert_eq!(worker.channel().read(&mut [0; 1]).unwrap_or(0), 0, "one frame and no more");
    match WorkerResult::decode(&bytes).unwrap().outcome {
        Outcome::Failed { reason } => Some(reason),
        Outcome::Answer { .. } => panic!("an answer"),
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = encode_header(FrameKind::Packet, body.len()).unwrap().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn refusals() {
    for api in ["anthropic", "openai"] {
        let good = String::from_utf8(packet(api).encode().unwrap()).unwrap();
        let mut other_version = framed(good.as_bytes());
        other_version[5] = 2;
        let mut cut = framed(good.as_bytes());
        cut.truncate(40);
        let cases = [
            (framed(b"not JSON"), Some(FailReason::PacketMalformed), 10),
            (framed(b"{}"), Some(FailReason::PacketMalformed), 10),
            (
                framed(good.replace("\"packetFormat\":1", "\"packetFormat\":9").as_bytes()),
                Some(FailReason::ProtocolVersion),
                10,
            ),
            (other_version, Some(FailReason::ProtocolVersion), 10),
            (cut, Some(FailReason::WorkerProtocol), 10),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Some(FailReason::WorkerProtocol), 10),
            (vec![], None, 0),
        ];
        for tier in TIERS {
            for (bytes, reason, code) in &cases {
                let end = if *code == 0 { ExitKind::Clean } else { ExitKind::Code(*code) };
                assert_eq!(refusal(tier, bytes), (*reason, end), "{tier}: {api}: {} bytes", bytes.len());
            }
        }
    }
}

pub(crate) fn without_memory() {
    for tier in TIERS {
        // Room for the program, and not for the packet.
        let limits = WorkerLimits { address_space_bytes: 24 * 1024 * 1024, ..WorkerLimits::default() };
        let launcher =
            Launcher::of_path(Path::new(REAL), tier, limits, WORKER).unwrap().with_seal_timeout(PATIENCE);
        let packet = large("anthropic", 8, &[30 * 1024 * 1024]).encode().unwrap();
        let mut worker = launcher.launch().unwrap();
        worker.channel().set_read_timeout(Some(PATIENCE)).unwrap();
        // It ends while it is written to.
        let _broken = write_frame(worker.channel(), FrameKind::Packet, &packet);
        let said = read_frame(worker.channel(), FrameKind::Request);
        assert!(said.is_err(), "{tier}: a request needs the packet");
        let end = worker.wait(PATIENCE);
        assert!(matches!(end, ExitKind::Code(10 | 11) | ExitKind::Signal(31)), "{tier}: {end:?}");
    }
}
