//! A tiny HTTP/1.1 client over raw TCP, so that the servers are judged byte by byte and not by a client's kindness.
#![expect(clippy::expect_used, reason = "a helper of tests fails by panicking")]

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back on a connection.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The whole declared body came.
    pub(crate) is_complete: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

pub(crate) fn authority(base_url: &str) -> &str {
    base_url.strip_prefix("http://").expect("plain http")
}

/// Writes bytes on a new connection and reads to its end; `None` when not even a head came.
pub(crate) async fn raw(base_url: &str, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(authority(base_url)).await.expect("the server listens");
    if stream.write_all(bytes).await.is_err() {
        return None;
    }
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    // A reset counts as an end.
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..count]);
    }
    parse(&all)
}

fn parse(all: &[u8]) -> Option<Answer> {
    let head_end = all.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(all[..head_end].to_vec()).expect("a text head");
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status");
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").expect("a header"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut answer = Answer { status, headers, body: all[head_end + 4..].to_vec(), is_complete: true };
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.is_complete = answer.body.ends_with(b"0\r\n\r\n");
    } else {
        let declared: usize = answer.header("content-length").expect("a length").parse().expect("a number");
        answer.is_complete = answer.body.len() == declared;
    }
    Some(answer)
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) async fn post(
    base_url: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Option<Answer> {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    raw(base_url, &request("POST", path, &all, body.to_string().as_bytes())).await
}
