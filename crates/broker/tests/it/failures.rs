//! Failures on either side of the request: what was certainly never sent, and what nobody can tell.

use std::net::TcpListener;

use thought_broker::{Api, BeforeReason, Endpoint, EndpointError, Reply, UnknownReason};
use thought_protocol::limits::ANSWER_BYTES_MAX;

use crate::server::{Record, Script};
use crate::support::{PATIENT, SHORT, block_on, body, broker, call};

fn assert_unknown(outcome: (Reply, Record), expected: UnknownReason, requests: usize) -> Record {
    let (reply, record) = outcome;
    assert_eq!(reply, Reply::Unknown { reason: expected });
    assert_eq!(record.connections, 1, "connections");
    assert_eq!(record.requests.len(), requests, "requests");
    record
}

#[test]
fn dropped_before_reading_is_unknown_and_not_repeated() {
    // The connection stood, so the request may have been on its way.
    assert_unknown(call(Script::CloseAtOnce, PATIENT), UnknownReason::BrokenConnection, 0);
}

#[test]
fn dropped_after_reading_is_unknown_and_not_repeated() {
    assert_unknown(call(Script::CloseAfterReading, PATIENT), UnknownReason::BrokenConnection, 1);
}

#[test]
fn a_head_that_breaks_off_or_is_not_http_is_unknown() {
    for bytes in
        [&b"HTTP/1.1 200 OK\r\ncontent-le"[..], b"SSH-2.0-nope\r\n\r\n", b"HTTP/1.1 999999 no\r\n\r\n"]
    {
        let script = Script::AnswerAndClose(bytes.to_vec());
        assert_unknown(call(script, PATIENT), UnknownReason::BrokenConnection, 1);
    }
}

#[test]
fn a_head_without_end_is_unknown_and_bounded() {
    let head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let script = Script::Flood { head, piece: b"x-more: and more\r\n".repeat(64), pieces: 20_000 };
    let record = assert_unknown(call(script, PATIENT), UnknownReason::BrokenConnection, 1);
    assert!(record.flood_pieces_written < 20_000, "the whole head was read");
}

#[test]
fn a_truncated_body_is_unknown() {
    let bodies = [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n{\"half\":\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nnot a length\r\n",
    ];
    for bytes in bodies {
        let script = Script::AnswerAndClose(bytes.to_vec());
        assert_unknown(call(script, PATIENT), UnknownReason::TruncatedBody, 1);
    }
}

#[test]
fn a_hung_provider_is_unknown_by_time_out() {
    assert_unknown(call(Script::Hang, SHORT), UnknownReason::Timeout, 1);
}

#[test]
fn a_slow_drip_does_not_stretch_the_time_out() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n".to_vec();
    assert_unknown(call(Script::Drip(head), SHORT), UnknownReason::Timeout, 1);
    let slow_head = b"HTTP/1.1 200 OK\r\nx-slow: ".to_vec();
    assert_unknown(call(Script::Drip(slow_head), SHORT), UnknownReason::Timeout, 1);
}

#[test]
fn twenty_megabytes_are_not_read() {
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 20000000\r\n\r\n".to_vec();
    let script = Script::Flood { head: announced, piece: vec![b'x'; 20_000], pieces: 1_000 };
    let record = assert_unknown(call(script, PATIENT), UnknownReason::BodyTooLarge, 1);
    assert!(record.flood_pieces_written < 1_000, "the whole body was read");

    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let piece = [b"4e20\r\n", &vec![b'x'; 20_000][..], b"\r\n"].concat();
    // Of a body without a length everything up to the bound is read, and the system's buffers take some megabytes more:
    // the end must lie beyond both.
    let script = Script::Flood { head: chunked, piece, pieces: 5_000 };
    let record = assert_unknown(call(script, PATIENT), UnknownReason::BodyTooLarge, 1);
    assert!(record.flood_pieces_written < 5_000, "the whole body was read");
}

#[test]
fn one_byte_beyond_the_bound_is_too_large() {
    let unannounced = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let script = Script::AnswerAndClose([unannounced, vec![b'x'; ANSWER_BYTES_MAX + 1]].concat());
    assert_unknown(call(script, PATIENT), UnknownReason::BodyTooLarge, 1);
}

#[test]
fn a_refused_connection_is_known_to_come_before() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let broker = broker(Api::OpenaiChat, &format!("http://{address}"), PATIENT);
    let reply = block_on(broker.request(body()));
    assert_eq!(reply, Reply::RefusedBeforeRequest { reason: BeforeReason::Connect });
    assert_eq!(broker.requests_made(), 1);
}

#[test]
fn http_to_a_public_host_never_becomes_an_endpoint() {
    for base_url in ["http://api.example.org", "http://192.0.2.1:8080/v1", "http://[2001:db8::1]"] {
        let refused = Endpoint::new(Api::OpenaiChat, base_url, None, PATIENT);
        assert_eq!(refused.unwrap_err(), EndpointError::PlainHttpBeyondLoopback);
    }
}

#[test]
fn a_call_that_is_dropped_closes_its_connection() {
    let server = crate::server::Server::start(Script::Hang);
    let broker = broker(Api::AnthropicMessages, &server.base_url(), PATIENT);
    block_on(async {
        let request = broker.request(body());
        assert!(tokio::time::timeout(SHORT, request).await.is_err());
    });
    assert_eq!(broker.requests_made(), 1);
    // Ends only because the connection was closed.
    assert_eq!(server.finish().connections, 1);
}
