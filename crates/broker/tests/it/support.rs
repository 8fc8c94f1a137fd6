//! Shorthands of these tests.

use std::future::Future;
use std::time::Duration;

use thought_broker::{Api, ApiKey, Broker, Endpoint, EqualBytes, Reply};

use crate::server::{Record, Script, Server};

/// A key that must be found nowhere but in its header.
pub(crate) const KEY: &str = "sk-canary-7f3a";
/// A request body that must be found nowhere but on the wire.
pub(crate) const BODY: &[u8] = br#"{"model":"m","messages":"canary-body"}"#;
/// Long enough for a loaded machine, for tests in which nothing should time out.
pub(crate) const PATIENT: Duration = Duration::from_secs(60);
/// For tests in which the time-out is what happens.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn broker(api: Api, base_url: &str, timeout: Duration) -> Broker {
    let key = ApiKey::new(KEY.to_owned()).unwrap();
    Broker::new(Endpoint::new(api, base_url, Some(key), timeout).unwrap()).unwrap()
}

pub(crate) fn body() -> EqualBytes {
    EqualBytes::check(BODY.to_vec(), BODY).unwrap()
}

/// One call against one script.
pub(crate) fn call(script: Script, timeout: Duration) -> (Reply, Record) {
    let server = Server::start(script);
    let broker = broker(Api::AnthropicMessages, &server.base_url(), timeout);
    let reply = block_on(broker.request(body()));
    assert_eq!(broker.requests_made(), 1);
    (reply, server.finish())
}

/// A whole HTTP/1.1 message.
pub(crate) fn http(status_line: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut message = format!("HTTP/1.1 {status_line}\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        message.push_str(header);
        message.push_str("\r\n");
    }
    message.push_str("\r\n");
    let mut message = message.into_bytes();
    message.extend_from_slice(body);
    message
}
