//! Definite answers: the body as it came, the status as it is, one request each.

use std::time::Duration;

use thought_broker::limits::STATUS_BODY_BYTES_MAX;
use thought_broker::{Api, Endpoint, Reply};
use thought_protocol::limits::ANSWER_BYTES_MAX;

use crate::server::{Record, Script, Server};
use crate::support::{BODY, KEY, PATIENT, SHORT, block_on, body, broker, call, http};

fn assert_one(record: &Record) {
    assert_eq!(record.requests.len(), 1, "requests");
    assert_eq!(record.connections, 1, "connections");
}

fn assert_answered(reply: &Reply, expected: &[u8]) {
    match reply {
        Reply::Answered { body, timings } => {
            assert_eq!(body.expose(), expected);
            assert!(timings.first_byte <= timings.total);
        }
        other => panic!("{other:?}"),
    }
}

/// Status, retry-after and body of a definite answer.
fn status_of(reply: Reply) -> (u16, Option<u64>, Vec<u8>) {
    match reply {
        Reply::Status { status, retry_after_seconds, body, .. } => {
            (status, retry_after_seconds, body.into_inner())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_200_gives_its_bytes_untouched() {
    let raw = b"\xef\xbb\xbf not JSON at all \x00\xff";
    let (reply, record) = call(Script::Answer(http("200 OK", &[], raw)), PATIENT);
    assert_answered(&reply, raw);
    assert_one(&record);
    assert_eq!(record.requests[0].body, BODY);
}

#[test]
fn an_anthropic_request_carries_its_headers_and_no_others() {
    let (_, record) = call(Script::Answer(http("200 OK", &[], b"{}")), PATIENT);
    let seen = &record.requests[0];
    assert!(seen.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(seen.header("x-api-key"), [KEY]);
    assert_eq!(seen.header("anthropic-version"), ["2023-06-01"]);
    assert_eq!(seen.header("content-type"), ["application/json"]);
    assert_eq!(seen.header("user-agent"), [concat!("thought/", env!("CARGO_PKG_VERSION"))]);
    for absent in ["authorization", "accept-encoding", "cookie", "referer", "transfer-encoding", "expect"] {
        assert!(seen.header(absent).is_empty(), "{absent}");
    }
    let names: Vec<_> = seen.head.lines().skip(1).filter_map(|line| line.split_once(':')).collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert_eq!(seen.head.matches(KEY).count(), 1);
}

#[test]
fn an_openai_request_bears_its_key_and_a_local_one_bears_none() {
    let server = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let root = format!("{}/v1/", server.base_url());
    let with_key = broker(Api::OpenaiChat, &root, PATIENT);
    assert_answered(&block_on(with_key.request(body())), b"{}");
    for api in [Api::OpenaiChat, Api::AnthropicMessages] {
        let endpoint = Endpoint::new(api, &root, None, PATIENT).unwrap();
        let without_key = thought_broker::Broker::new(endpoint).unwrap();
        assert_answered(&block_on(without_key.request(body())), b"{}");
    }
    let record = server.finish();
    assert_eq!(record.requests.len(), 3);
    assert!(record.requests[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    assert_eq!(record.requests[0].header("authorization"), [format!("Bearer {KEY}")]);
    assert!(record.requests[0].header("x-api-key").is_empty());
    assert!(record.requests[2].head.starts_with("POST /v1/messages HTTP/1.1\r\n"));
    for keyless in &record.requests[1..] {
        assert!(keyless.header("authorization").is_empty() && keyless.header("x-api-key").is_empty());
    }
}

#[test]
fn no_connection_serves_twice() {
    let server = Server::start(Script::Answer(http("200 OK", &["connection: keep-alive"], b"{}")));
    let broker = broker(Api::AnthropicMessages, &server.base_url(), PATIENT);
    block_on(async {
        for _ in 0..3 {
            assert_answered(&broker.request(body()).await, b"{}");
        }
    });
    assert_eq!(broker.requests_made(), 3);
    let record = server.finish();
    assert_eq!((record.requests.len(), record.connections), (3, 3));
}

#[test]
fn localhost_is_loopback() {
    let server = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let root = format!("http://localhost:{}", server.address().port());
    let broker = broker(Api::AnthropicMessages, &root, PATIENT);
    assert_answered(&block_on(broker.request(body())), b"{}");
    assert_one(&server.finish());
}

#[test]
fn a_chunked_body_is_joined_and_one_without_length_ends_with_its_connection() {
    let chunked =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\n\r\n";
    let (reply, record) = call(Script::Answer(chunked.to_vec()), PATIENT);
    assert_answered(&reply, b"{\"a\":1}");
    assert_one(&record);

    let until_close = b"HTTP/1.1 200 OK\r\n\r\n{\"a\":1}".to_vec();
    let (reply, record) = call(Script::AnswerAndClose(until_close), PATIENT);
    assert_answered(&reply, b"{\"a\":1}");
    assert_one(&record);
}

#[test]
fn a_compressed_body_stays_as_it_came() {
    let raw = b"\x1f\x8b\x08\x00 not really gzip";
    let (reply, _) = call(Script::Answer(http("200 OK", &["content-encoding: gzip"], raw)), PATIENT);
    assert_answered(&reply, raw);
}

#[test]
fn an_answer_of_exactly_the_bound_is_whole() {
    let raw = vec![b'x'; ANSWER_BYTES_MAX];
    let (reply, _) = call(Script::Answer(http("200 OK", &[], &raw)), PATIENT);
    assert_answered(&reply, &raw);
}

#[test]
fn a_redirect_is_a_status_and_is_not_followed() {
    let elsewhere = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let location = format!("location: {}/v1/messages", elsewhere.base_url());
    for status in [301, 302, 303, 307, 308] {
        let line = format!("{status} Elsewhere");
        let (reply, record) = call(Script::Answer(http(&line, &[&location], b"")), PATIENT);
        assert_eq!(status_of(reply), (status, None, Vec::new()));
        assert_one(&record);
    }
    assert_eq!(elsewhere.finish().connections, 0);
}

#[test]
fn a_429_tells_its_seconds_and_nothing_else_counts() {
    let cases = [
        ("retry-after: 7", Some(7)),
        ("Retry-After: 100000", Some(100_000)),
        ("retry-after: Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("retry-after: Fri, 31 Dec 2199 23:59:59 GMT", None),
        ("retry-after: soon", None),
        ("retry-after: -3", None),
        ("x-nothing: here", None),
    ];
    for (header, expected) in cases {
        let script = Script::Answer(http("429 Too Many Requests", &[header], b"{\"error\":1}"));
        let (reply, record) = call(script, PATIENT);
        assert_eq!(status_of(reply), (429, expected, b"{\"error\":1}".to_vec()), "{header}");
        assert_one(&record);
    }
}

#[test]
fn every_other_status_is_passed_on_without_a_second_request() {
    for status in [201, 204, 400, 401, 408, 409, 421, 425, 500, 502, 503, 504, 529] {
        let line = format!("{status} Whatever");
        let raw = if status == 204 { b"HTTP/1.1 204 No\r\n\r\n".to_vec() } else { http(&line, &[], b"why") };
        let (reply, record) = call(Script::Answer(raw), PATIENT);
        let (seen, retry_after, text) = status_of(reply);
        assert_eq!((seen, retry_after), (status, None));
        assert_eq!(text, if status == 204 { &b""[..] } else { b"why" });
        assert_one(&record);
    }
}

#[test]
fn a_503_that_asks_for_patience_is_not_repeated_here() {
    let script = Script::Answer(http("503 Unavailable", &["retry-after: 0"], b""));
    let (reply, record) = call(script, PATIENT);
    assert_eq!(status_of(reply), (503, Some(0), Vec::new()));
    assert_one(&record);
}

#[test]
fn the_body_of_a_status_is_cut_at_its_bound() {
    let head = b"HTTP/1.1 500 Oops\r\ncontent-length: 20000000\r\n\r\n".to_vec();
    let script = Script::Flood { head, piece: vec![b'e'; 20_000], pieces: 1_000 };
    let (reply, record) = call(script, PATIENT);
    let (status, _, text) = status_of(reply);
    assert_eq!(status, 500);
    assert_eq!(text, vec![b'e'; STATUS_BODY_BYTES_MAX]);
    assert_one(&record);
    assert!(record.flood_pieces_written < 1_000, "the rest was read");
}

#[test]
fn a_status_whose_body_breaks_off_or_never_ends_is_still_that_status() {
    let broken = b"HTTP/1.1 529 Overloaded\r\ncontent-length: 100\r\nretry-after: 2\r\n\r\nhalf".to_vec();
    let (reply, record) = call(Script::AnswerAndClose(broken), PATIENT);
    assert_eq!(status_of(reply), (529, Some(2), b"half".to_vec()));
    assert_one(&record);

    let endless = b"HTTP/1.1 503 Unavailable\r\ncontent-length: 1000000\r\n\r\n".to_vec();
    let (reply, record) = call(Script::Drip(endless), SHORT);
    assert_eq!(status_of(reply).0, 503);
    assert_one(&record);
}

#[test]
fn calls_side_by_side_count_one_each() {
    let server = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let broker = std::sync::Arc::new(broker(Api::AnthropicMessages, &server.base_url(), PATIENT));
    block_on(async {
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let broker = std::sync::Arc::clone(&broker);
                tokio::spawn(async move { broker.request(body()).await })
            })
            .collect();
        for one in calls {
            assert_answered(&one.await.unwrap(), b"{}");
        }
    });
    assert_eq!(broker.requests_made(), 8);
    let record = server.finish();
    assert_eq!((record.requests.len(), record.connections), (8, 8));
}

#[test]
fn an_interim_answer_is_not_the_answer() {
    let mut raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".to_vec();
    raw.extend(http("200 OK", &[], b"{}"));
    let (reply, record) = call(Script::Answer(raw), Duration::from_secs(30));
    assert_answered(&reply, b"{}");
    assert_one(&record);
}
