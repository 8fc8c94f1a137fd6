//! HTTP/1.1 by hand over loopback TCP: exactly as much as the two servers need, with control over every byte.
//!
//! It owns the accept loop, the reading of requests (strict, bounded) and the writing of answers. It never knows
//! what a request means, and it never repairs one: what is not well formed is answered 400 and closed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::error::Error;
use crate::limits::{BODY_BYTES_MAX, CONNECTIONS_MAX, HEAD_BYTES_MAX};

/// One whole request.
pub(crate) struct Request {
    /// `GET`, `POST`, …
    pub(crate) method: String,
    /// The path as sent, without the query.
    pub(crate) path: String,
    /// The query as sent, without `?`; empty when there is none.
    pub(crate) query: String,
    /// Names in lower case, in order, repetitions kept.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, decoded from chunks where it came in chunks.
    pub(crate) body: Vec<u8>,
    /// Counts accepted connections of this server from 1.
    pub(crate) connection: u64,
    keep_alive: bool,
}

impl Request {
    /// The value of a header that stands exactly once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        single(&self.headers, name)
    }
}

fn single<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut values = headers.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str());
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

/// One answer.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// `transfer-encoding: chunked` among them makes the body go out in chunks; otherwise its length is declared.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::of(status, "application/json", value.to_string().into_bytes())
    }

    pub(crate) fn of(status: u16, content_type: &str, body: Vec<u8>) -> Self {
        Self { status, headers: vec![("content-type".to_owned(), content_type.to_owned())], body }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The bytes on the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let chunked = self.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked")
        });
        if !chunked && !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        if chunked {
            for chunk in self.body.chunks(16 * 1024) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// What becomes of a request that was read.
pub(crate) enum Outcome {
    /// A whole answer.
    Respond(Response),
    /// These bytes, then the end of the connection.
    RawThenClose(Vec<u8>),
    /// These bytes, then nothing until the client goes.
    RawThenHang(Vec<u8>),
    /// The connection ends without a byte.
    Close,
}

/// What becomes of a request of which the first byte has arrived.
#[derive(PartialEq, Eq)]
pub(crate) enum Begin {
    Read,
    /// Close without reading a byte of it.
    Drop,
}

/// The meaning behind a server.
pub(crate) trait Handler: Send + Sync + 'static {
    /// A connection was accepted.
    fn accepted(&self) {}
    /// The first byte of a request has arrived.
    fn begun(&self) -> Begin {
        Begin::Read
    }
    /// A request was read whole. Dropped when the client goes away meanwhile.
    fn handle(&self, request: Request) -> impl Future<Output = Outcome> + Send;
}

/// A running server; it ends with this value.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start<H: Handler>(handler: Arc<H>) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Error::Bind)?;
        let address = listener.local_addr().map_err(Error::Bind)?;
        Ok(Self { address, task: tokio::spawn(accept(listener, handler)) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept<H: Handler>(listener: TcpListener, handler: Arc<H>) {
    let mut connections = JoinSet::new();
    let mut count = 0;
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    count += 1;
                    handler.accepted();
                    connections.spawn(connection(stream, Arc::clone(&handler), count));
                }
                // Out of descriptors, most likely: wait for a connection to end rather than spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn connection<H: Handler>(mut stream: TcpStream, handler: Arc<H>, number: u64) {
    // Answers are single writes; without this, small ones wait for the client's acknowledgment.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut buffer = Vec::new();
    loop {
        if buffer.is_empty() && !first_byte(&stream).await {
            return;
        }
        if handler.begun() == Begin::Drop {
            return;
        }
        let mut request = match read_request(&mut stream, &mut buffer).await {
            Ok(request) => request,
            Err(Unreadable::Gone) => return,
            Err(Unreadable::Malformed(why)) => {
                let answer =
                    Response::of(400, "text/plain", why.as_bytes().to_vec()).with("connection", "close");
                return finish(stream, &answer.bytes()).await;
            }
        };
        request.connection = number;
        let keep_alive = request.keep_alive;
        let outcome = tokio::select! {
            biased;
            outcome = handler.handle(request) => outcome,
            () = gone(&stream) => return,
        };
        match outcome {
            Outcome::Respond(mut response) => {
                if !keep_alive {
                    response.headers.push(("connection".to_owned(), "close".to_owned()));
                    return finish(stream, &response.bytes()).await;
                }
                if stream.write_all(&response.bytes()).await.is_err() {
                    return;
                }
            }
            Outcome::RawThenClose(bytes) => return finish(stream, &bytes).await,
            Outcome::RawThenHang(bytes) => {
                if stream.write_all(&bytes).await.is_ok() {
                    gone(&stream).await;
                }
                return;
            }
            Outcome::Close => return,
        }
    }
}

/// Writes the last bytes and ends the connection in order; a client that has gone loses nothing.
async fn finish(mut stream: TcpStream, bytes: &[u8]) {
    if stream.write_all(bytes).await.is_ok() && stream.shutdown().await.is_ok() {
        // Reading what is left keeps the kernel from resetting the answer away before it was read.
        let mut rest = [0; 4096];
        let drain = async { while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {} };
        if tokio::time::timeout(Duration::from_secs(1), drain).await.is_err() {
            // The client keeps the connection open: it has had its time to read.
        }
    }
}

/// Waits for a byte without taking it. False when the client went instead.
async fn first_byte(stream: &TcpStream) -> bool {
    matches!(stream.peek(&mut [0]).await, Ok(count) if count > 0)
}

/// Ends when the client closes; a client that already sends its next request has not gone.
async fn gone(stream: &TcpStream) {
    if first_byte(stream).await {
        std::future::pending::<()>().await;
    }
}

enum Unreadable {
    Gone,
    Malformed(&'static str),
}

impl From<io::Error> for Unreadable {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Request, Unreadable> {
    let head_end = loop {
        let end = find(buffer, b"\r\n\r\n");
        if end.unwrap_or(buffer.len()) > HEAD_BYTES_MAX {
            return Err(Unreadable::Malformed("head too long"));
        }
        if let Some(at) = end {
            break at;
        }
        fill(stream, buffer).await?;
    };
    let rest = buffer.split_off(head_end + 4);
    let head = std::mem::replace(buffer, rest);
    let mut request = parse_head(&head[..head_end]).map_err(Unreadable::Malformed)?;
    let length = body_length(&request).map_err(Unreadable::Malformed)?;
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    request.body = match length {
        Length::Known(length) => take(stream, buffer, length).await?,
        Length::Chunked => read_chunks(stream, buffer).await?,
    };
    Ok(request)
}

fn parse_head(head: &[u8]) -> Result<Request, &'static str> {
    let Ok(head) = str::from_utf8(head) else { return Err("head is not text") };
    let mut lines = head.split("\r\n");
    let request_line: Vec<&str> = lines.next().unwrap_or("").split(' ').collect();
    let [method, target, version] = request_line[..] else { return Err("bad request line") };
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) || !target.starts_with('/')
    {
        return Err("bad request line");
    }
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("bad header")?;
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err("bad header");
        }
        headers.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
    }
    let asks = |what| single(&headers, "connection").is_some_and(|value| value.eq_ignore_ascii_case(what));
    let keep_alive = match version {
        "HTTP/1.1" if single(&headers, "host").is_none() => return Err("one host header is needed"),
        "HTTP/1.1" => !asks("close"),
        "HTTP/1.0" => asks("keep-alive"),
        _ => return Err("bad version"),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: Vec::new(),
        connection: 0,
        keep_alive,
    })
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

enum Length {
    Known(usize),
    Chunked,
}

fn body_length(request: &Request) -> Result<Length, &'static str> {
    let has = |name: &str| request.headers.iter().any(|(given, _)| given == name);
    match (has("content-length"), has("transfer-encoding")) {
        (true, true) => Err("both content-length and transfer-encoding"),
        (false, false) => Ok(Length::Known(0)),
        (false, true) => match request.header("transfer-encoding") {
            Some(value) if value.eq_ignore_ascii_case("chunked") => Ok(Length::Chunked),
            _ => Err("bad transfer-encoding"),
        },
        (true, false) => {
            let text = request.header("content-length").ok_or("several content-lengths")?;
            let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            match text.parse() {
                Ok(length) if all_digits && length <= BODY_BYTES_MAX => Ok(Length::Known(length)),
                _ => Err("bad content-length"),
            }
        }
    }
}

async fn read_chunks(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Vec<u8>, Unreadable> {
    let mut body = Vec::new();
    loop {
        let line = take_line(stream, buffer).await?;
        let size = line.split(';').next().unwrap_or("").trim();
        let Ok(size) = usize::from_str_radix(size, 16) else {
            return Err(Unreadable::Malformed("bad chunk size"));
        };
        if size.saturating_add(body.len()) > BODY_BYTES_MAX {
            return Err(Unreadable::Malformed("body too long"));
        }
        if size == 0 {
            // Trailers carry nothing that matters here.
            while !take_line(stream, buffer).await?.is_empty() {}
            return Ok(body);
        }
        body.extend(take(stream, buffer, size).await?);
        if !take_line(stream, buffer).await?.is_empty() {
            return Err(Unreadable::Malformed("bad chunk end"));
        }
    }
}

async fn take_line(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<String, Unreadable> {
    loop {
        if let Some(at) = find(buffer, b"\r\n") {
            let line: Vec<u8> = buffer.drain(..at + 2).take(at).collect();
            return String::from_utf8(line).map_err(|_not_text| Unreadable::Malformed("line is not text"));
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Err(Unreadable::Malformed("line too long"));
        }
        fill(stream, buffer).await?;
    }
}

async fn take(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> Result<Vec<u8>, Unreadable> {
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    let rest = buffer.split_off(length);
    Ok(std::mem::replace(buffer, rest))
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<(), Unreadable> {
    buffer.reserve(16 * 1024);
    match stream.read_buf(buffer).await? {
        0 => Err(Unreadable::Gone),
        _ => Ok(()),
    }
}

fn find(buffer: &[u8], pattern: &[u8]) -> Option<usize> {
    buffer.windows(pattern.len()).position(|window| window == pattern)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        425 => "Too Early",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
