//! The doctor's check: one GET, no model request.

use thought_broker::{Api, BeforeReason, ModelListing, Reachability, UnknownReason};

use crate::server::{Record, Script, Server};
use crate::support::{KEY, PATIENT, SHORT, block_on, broker, http};

fn check(api: Api, script: Script, timeout: std::time::Duration) -> (Reachability, Record) {
    let server = Server::start(script);
    let broker = broker(api, &format!("{}/v1", server.base_url()), timeout);
    let seen = block_on(broker.reachable("m-1"));
    assert_eq!(broker.requests_made(), 0);
    (seen, server.finish())
}

fn listed(list: &str) -> Reachability {
    check(Api::OpenaiChat, Script::Answer(http("200 OK", &[], list.as_bytes())), PATIENT).0
}

#[test]
fn it_asks_for_the_list_of_models_alone() {
    let answer = Script::Answer(http("200 OK", &[], br#"{"data":[{"id":"m-1"}]}"#));
    let (seen, record) = check(Api::AnthropicMessages, answer.clone(), PATIENT);
    assert_eq!(seen, Reachability::Reachable { model: ModelListing::Listed });
    assert_eq!(record.requests.len(), 1);
    assert!(record.requests[0].head.starts_with("GET /v1/models?limit=1000 HTTP/1.1\r\n"));
    assert_eq!(record.requests[0].header("x-api-key"), [KEY]);
    assert!(record.requests[0].body.is_empty());

    let (_, record) = check(Api::OpenaiChat, answer, PATIENT);
    assert!(record.requests[0].head.starts_with("GET /v1/models HTTP/1.1\r\n"));
    assert_eq!(record.requests[0].header("authorization"), [format!("Bearer {KEY}")]);
}

#[test]
fn it_claims_no_more_than_the_list_says() {
    assert_eq!(
        listed(r#"{"data":[{"id":"m-2"}]}"#),
        Reachability::Reachable { model: ModelListing::NotListed }
    );
    for unclear in ["<html>", r#"{"data":[],"has_more":true}"#, "[]"] {
        assert_eq!(listed(unclear), Reachability::Reachable { model: ModelListing::CannotTell });
    }
    let long = format!(r#"{{"data":[{{"id":"m-1"}}],"x":"{}"}}"#, "x".repeat(2 * 1024 * 1024));
    assert_eq!(listed(&long), Reachability::Reachable { model: ModelListing::CannotTell });
}

#[test]
fn it_tells_a_refused_key_from_a_server_without_a_list() {
    for (line, expected) in [
        ("401 No", Reachability::KeyRefused { status: 401 }),
        ("403 No", Reachability::KeyRefused { status: 403 }),
        ("404 No", Reachability::OtherStatus { status: 404 }),
        ("307 Elsewhere", Reachability::OtherStatus { status: 307 }),
        ("500 No", Reachability::OtherStatus { status: 500 }),
    ] {
        let script = Script::Answer(http(line, &["location: /elsewhere"], b""));
        let (seen, record) = check(Api::OpenaiChat, script, PATIENT);
        assert_eq!(seen, expected);
        assert_eq!(record.requests.len(), 1);
    }
}

#[test]
fn it_tells_no_connection_from_no_answer() {
    let (seen, _) = check(Api::OpenaiChat, Script::Hang, SHORT);
    assert_eq!(seen, Reachability::NoAnswer { reason: UnknownReason::Timeout });
    let (seen, _) = check(Api::OpenaiChat, Script::CloseAfterReading, PATIENT);
    assert_eq!(seen, Reachability::NoAnswer { reason: UnknownReason::BrokenConnection });

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let root = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let seen = block_on(broker(Api::OpenaiChat, &root, PATIENT).reachable("m-1"));
    assert_eq!(seen, Reachability::Unreachable { reason: BeforeReason::Connect });
}
