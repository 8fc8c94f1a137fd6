//! The worker's side: what it does to its parent once it is sealed.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::process::ExitCode;

use thought_protocol::answer::{FailReason, RawCall};
use thought_protocol::frame::{FrameKind, encode_header, read_frame, write_frame};
use thought_protocol::packet::{Packet, PacketMessage};
use thought_protocol::provider::render_request;
use thought_protocol::result::{Captured, Outcome, WorkerResult, judge};
use thought_sandbox::ablation::{OnViolation, Without, enter_without};
use thought_sandbox::{EXIT_REFUSED, SealedChannel, enter};

/// Does what the packet says.
pub(crate) const OBEDIENT: &str = "__obeys";
/// Ends before it reads anything.
pub(crate) const DEAD: &str = "__dead";
/// Never reads anything.
pub(crate) const DEAF: &str = "__deaf";
/// The real worker, with a rule of the list left out.
pub(crate) const WITHOUT_RULE: &str = "__without-rule=";

/// What stands before the word that says what to do.
pub(crate) const TELLS: &str = "act:";

/// When this process was started as a worker: its life.
pub(crate) fn started_as_one(arguments: &[OsString]) -> Option<ExitCode> {
    let [argument, order] = arguments else { return None };
    let argument = argument.to_str()?;
    if let Some(rule) = argument.strip_prefix(WITHOUT_RULE) {
        let without = Without { stages: &[], rule: rule.parse().ok() };
        return Some(match enter_without(order, without, OnViolation::Kill) {
            Ok(channel) => ExitCode::from(thought_worker::serve(channel).code()),
            Err(_) => refused(),
        });
    }
    match argument {
        OBEDIENT => Some(sealed(order, obey)),
        DEAD => Some(sealed(order, |_| ())),
        DEAF => Some(sealed(order, |_| spin())),
        _ => None,
    }
}

fn refused() -> ExitCode {
    ExitCode::from(u8::try_from(EXIT_REFUSED).unwrap())
}

fn sealed(order: &OsStr, life: fn(SealedChannel)) -> ExitCode {
    match enter(order) {
        Ok(channel) => {
            life(channel);
            ExitCode::SUCCESS
        }
        Err(_) => refused(),
    }
}

fn spin() {
    loop {
        std::hint::spin_loop();
    }
}

/// Waits for something that never comes.
fn wait(channel: &mut SealedChannel) {
    while channel.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
}

/// Writes until nobody listens.
fn pour(channel: &mut SealedChannel) {
    while channel.write_all(&[0x54; 4096]).is_ok() {}
}

fn raw_header(length: u32, kind: FrameKind, version: u16) -> [u8; 12] {
    let mut header = encode_header(kind, 1).unwrap();
    header[4..6].copy_from_slice(&version.to_be_bytes());
    header[8..].copy_from_slice(&length.to_be_bytes());
    header
}

/// The word in the newest message.
fn word_of(packet: &Packet) -> String {
    let Some(PacketMessage::User { text, .. }) = packet.messages.last() else { return String::new() };
    let after = text.split_once(TELLS).map_or("", |(_, rest)| rest);
    after.split_whitespace().next().unwrap_or("").to_owned()
}

fn obey(mut channel: SealedChannel) {
    let Ok(bytes) = read_frame(&mut channel, FrameKind::Packet) else { return };
    let packet = Packet::decode(&bytes).unwrap();
    let word = word_of(&packet);
    if before_the_request(&word, &bytes, &mut channel) {
        return;
    }
    let request = render_request(&packet).unwrap();
    if in_the_request(&word, &request, &mut channel) {
        return;
    }
    let Ok(body) = read_frame(&mut channel, FrameKind::Answer) else { return };
    if before_the_result(&word, &mut channel) {
        return;
    }
    let result = result(&word, judge(&packet, &body));
    send(&mut channel, FrameKind::Result, &result);
    match word.as_str() {
        "second-frame-behind-result" => send(&mut channel, FrameKind::Result, &result),
        "lingers" => wait(&mut channel),
        "dies-behind-result" => drop(std::fs::File::open("/etc/passwd")),
        _ => {}
    }
}

fn send(channel: &mut SealedChannel, kind: FrameKind, body: &[u8]) {
    // The parent may have ended it already, which is what is looked for.
    let _sent = write_frame(channel, kind, body);
}

/// What may be done with a packet. Content is put wherever it might get out.
fn before_the_request(word: &str, packet: &[u8], channel: &mut SealedChannel) -> bool {
    match word {
        "dies-at-packet" => {}
        "mute-at-packet" => wait(channel),
        "spins-at-packet" => spin(),
        "panics" => panic!("{}", String::from_utf8_lossy(packet)),
        "starts-a-thread" => drop(std::thread::spawn(|| ())),
        #[expect(clippy::disallowed_methods, reason = "the worker must not be able to")]
        "starts-a-process" => drop(std::process::Command::new("/bin/true").spawn()),
        "opens-a-file" => drop(std::fs::File::open("/etc/passwd")),
        "connects" => drop(std::net::TcpStream::connect("127.0.0.1:9")),
        "floods" => while std::io::stderr().write_all(packet).is_ok() {},
        "frame-too-long" => drop(channel.write_all(&raw_header(u32::MAX, FrameKind::Request, 1))),
        "frame-of-another-version" => drop(channel.write_all(&raw_header(4, FrameKind::Request, 2))),
        "frame-without-magic" => drop(channel.write_all(&packet[..64])),
        "endless-stream" => pour(channel),
        "result-for-request" => {
            send(
                channel,
                FrameKind::Result,
                &WorkerResult::of_failure(FailReason::Refusal).encode().unwrap(),
            );
        }
        "packet-for-request" => send(channel, FrameKind::Packet, packet),
        "unfinished-request" => drop(channel.write_all(&raw_header(4096, FrameKind::Request, 1))),
        "half-a-header" => drop(channel.write_all(&raw_header(4096, FrameKind::Request, 1)[..7])),
        "waits-within-request" => {
            drop(channel.write_all(&raw_header(4096, FrameKind::Request, 1)));
            wait(channel);
        }
        "murmurs" => {
            drop(std::io::stderr().write_all(&packet[..512]));
            return false;
        }
        _ => return false,
    }
    true
}

/// What may be done with a request.
fn in_the_request(word: &str, request: &[u8], channel: &mut SealedChannel) -> bool {
    let mut body = request.to_vec();
    match word {
        "lies-at-the-end" => body.push(b' '),
        "lies-at-the-start" => body[0] ^= 1,
        "lies-in-length" => drop(body.pop()),
        "lies-with-another-model" => {
            body = String::from_utf8(body).unwrap().replace("model-1", "model-2").into_bytes();
        }
        _ => {}
    }
    send(channel, FrameKind::Request, &body);
    match word {
        "dies-behind-request" => {}
        "second-request" => {
            send(channel, FrameKind::Request, request);
            wait(channel);
        }
        "endless-behind-request" => pour(channel),
        "result-before-answer" => {
            send(
                channel,
                FrameKind::Result,
                &WorkerResult::of_failure(FailReason::Refusal).encode().unwrap(),
            );
            drop(read_frame(channel, FrameKind::Answer));
        }
        "mute-behind-request" => wait(channel),
        _ => return false,
    }
    true
}

fn before_the_result(word: &str, channel: &mut SealedChannel) -> bool {
    match word {
        "dies-at-answer" => {}
        "mute-at-answer" => wait(channel),
        "unfinished-result" => drop(channel.write_all(&raw_header(4096, FrameKind::Result, 1))),
        "result-of-another-version" => drop(channel.write_all(&raw_header(4, FrameKind::Result, 2))),
        "result-too-long" => drop(channel.write_all(&raw_header(u32::MAX, FrameKind::Result, 1))),
        "endless-result" => {
            drop(channel.write_all(&raw_header(4 * 1024 * 1024, FrameKind::Result, 1)));
            pour(channel);
        }
        "request-for-result" => send(channel, FrameKind::Request, b"{}"),
        _ => return false,
    }
    true
}

/// The result, as the word wants it.
fn result(word: &str, mut honest: WorkerResult) -> Vec<u8> {
    match word {
        "result-of-nonsense" => return b"not a result".to_vec(),
        "result-of-another-format" => honest.result_format = 2,
        "withholds" => honest = WorkerResult::of_failure(FailReason::Refusal),
        _ => {}
    }
    if let Outcome::Answer { text, truncated, calls, captured, usage, thinking_parts_dropped } =
        &mut honest.outcome
    {
        match word {
            "other-text" => *text = Some("Other words.".to_owned()),
            "no-text" => *text = None,
            "cut-text" => *truncated = true,
            "drops-a-call" => (*calls, *captured) = (vec![], vec![]),
            "invents-a-call" => {
                let (id, name) = ("toolu_9".to_owned(), "request_memory_change".to_owned());
                captured.push(Captured { id: id.clone(), terminate: true });
                calls.push(RawCall { id, name, arguments: "{}".to_owned() });
            }
            "changes-a-call" => calls[0].arguments.push(' '),
            "frees-a-call" => captured[0].terminate = false,
            "other-tokens" => usage.output_tokens = Some(1_000_000),
            "other-thinking" => *thinking_parts_dropped += 1,
            _ => {}
        }
    }
    honest.encode().unwrap()
}
