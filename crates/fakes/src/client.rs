//! One HTTP/1.1 POST to a loopback address, for webhook delivery. It never leaves the machine.

use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::limits::WEBHOOK_ANSWER_BYTES_MAX;

/// Where a webhook lives: `http://<loopback>[:port]/path`.
pub(crate) struct Target {
    host: String,
    port: u16,
    path: String,
}

impl Target {
    /// Reads a plain http URL of a loopback host; anything else is `None`.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?;
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], &rest[at..]),
            None => (rest, "/"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, 80),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let loopback =
            bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        loopback.then(|| Self { host: bare.to_owned(), port, path: path.to_owned() })
    }

    /// Posts and returns the status, or in a few words what went wrong.
    pub(crate) async fn post(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<u16, &'static str> {
        match tokio::time::timeout(timeout, self.exchange(headers, body)).await {
            Ok(result) => result,
            Err(_) => Err("Connection timed out"),
        }
    }

    async fn exchange(&self, headers: &[(&str, &str)], body: &[u8]) -> Result<u16, &'static str> {
        let Ok(mut stream) = TcpStream::connect((self.host.as_str(), self.port)).await else {
            return Err("Connection refused");
        };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let mut bytes = format!(
            "POST {} HTTP/1.1\r\nhost: {host}:{}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
            self.path,
            self.port,
            body.len()
        )
        .into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        if stream.write_all(&bytes).await.is_err() {
            return Err("Connection reset by peer");
        }
        let mut answer = Vec::new();
        while !answer.windows(4).any(|window| window == b"\r\n\r\n")
            && answer.len() < WEBHOOK_ANSWER_BYTES_MAX
        {
            match stream.read_buf(&mut answer).await {
                Ok(count) if count > 0 => {}
                _ => return Err("Connection reset by peer"),
            }
        }
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
        let status = str::from_utf8(line).map(|line| line.split(' ').nth(1).map(str::parse::<u16>));
        match status {
            Ok(Some(Ok(status))) => Ok(status),
            _ => Err("Wrong response from the webhook"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn only_plain_http_to_loopback_is_a_target() {
        for url in
            ["http://127.0.0.1:8787/telegram", "http://localhost/x", "http://[::1]:80/x", "http://127.0.0.1"]
        {
            assert!(Target::parse(url).is_some(), "{url}");
        }
        for url in
            ["https://127.0.0.1/x", "http://example.org/x", "http://10.0.0.1/x", "ftp://localhost/", ""]
        {
            assert!(Target::parse(url).is_none(), "{url}");
        }
    }
}
