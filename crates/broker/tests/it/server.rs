//! A raw TCP server that plays one script per connection and counts what arrives. It speaks just enough HTTP/1.1 to
//! find the end of a request, and shares no code with the client under test.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the server does with each connection.
#[derive(Clone)]
pub(crate) enum Script {
    /// Reads the request, writes these bytes, and goes on reading: a second request on the connection would count.
    Answer(Vec<u8>),
    /// Reads the request, writes these bytes, and closes.
    AnswerAndClose(Vec<u8>),
    /// Closes without reading.
    CloseAtOnce,
    /// Reads the whole request and closes.
    CloseAfterReading,
    /// Reads the request and says nothing until the client goes away.
    Hang,
    /// Accepts, and neither reads nor writes until the client goes away.
    Ignore,
    /// Reads the request, writes the head, then one byte every 20 ms until the client goes away.
    Drip(Vec<u8>),
    /// Reads the request, writes the head, then pieces until the client goes away or all are written.
    Flood { head: Vec<u8>, piece: Vec<u8>, pieces: usize },
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// All values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let named = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        named.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }
}

/// What had happened when every connection was closed.
pub(crate) struct Record {
    pub(crate) connections: usize,
    pub(crate) requests: Vec<Seen>,
    pub(crate) flood_pieces_written: usize,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<Seen>>,
    flood_pieces_written: Mutex<usize>,
    /// The address of the connection that ends the server; held while that connection is made.
    sentinel: Mutex<Option<SocketAddr>>,
}

pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<usize>,
}

impl Server {
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || accept(&listener, &script, &for_thread));
        Self { address, shared, accepting }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until every connection made so far was served to its end, and says what happened.
    pub(crate) fn finish(self) -> Record {
        let sentinel = {
            let mut place = self.shared.sentinel.lock().unwrap();
            let stream = TcpStream::connect(self.address).unwrap();
            *place = Some(stream.local_addr().unwrap());
            stream
        };
        let connections = self.accepting.join().unwrap();
        drop(sentinel);
        let requests = self.shared.requests.lock().unwrap().clone();
        let flood_pieces_written = *self.shared.flood_pieces_written.lock().unwrap();
        Record { connections, requests, flood_pieces_written }
    }
}

/// Serves connections in the order they came until the sentinel does; gives their number.
fn accept(listener: &TcpListener, script: &Script, shared: &Arc<Shared>) -> usize {
    let mut serving = Vec::new();
    loop {
        let (stream, peer) = listener.accept().unwrap();
        if *shared.sentinel.lock().unwrap() == Some(peer) {
            break;
        }
        let (script, shared) = (script.clone(), Arc::clone(shared));
        serving.push(std::thread::spawn(move || serve(stream, &script, &shared)));
    }
    let connections = serving.len();
    for thread in serving {
        thread.join().unwrap();
    }
    connections
}

fn serve(mut stream: TcpStream, script: &Script, shared: &Shared) {
    // A client that never goes away would otherwise hang the test.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    match script {
        Script::CloseAtOnce => return,
        Script::Ignore => return until_gone(&mut stream),
        _ => {}
    }
    while let Some(seen) = read_request(&mut stream) {
        shared.requests.lock().unwrap().push(seen);
        // The client may be gone already: what could not be written is not the server's concern.
        match script {
            Script::Answer(bytes) => drop(stream.write_all(bytes)),
            Script::AnswerAndClose(bytes) => {
                drop(stream.write_all(bytes));
                return;
            }
            Script::CloseAfterReading => {
                drop(stream.shutdown(Shutdown::Both));
                return;
            }
            Script::Drip(head) => {
                drop(stream.write_all(head));
                while stream.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                return;
            }
            Script::Flood { head, piece, pieces } => {
                drop(stream.write_all(head));
                for _ in 0..*pieces {
                    if stream.write_all(piece).is_err() {
                        return;
                    }
                    *shared.flood_pieces_written.lock().unwrap() += 1;
                }
            }
            Script::Hang | Script::Ignore | Script::CloseAtOnce => {}
        }
    }
}

fn until_gone(stream: &mut TcpStream) {
    let mut buffer = [0; 1024];
    while matches!(stream.read(&mut buffer), Ok(count) if count > 0) {}
}

/// One whole request, or `None` at the end of the connection.
pub(crate) fn read_request(stream: &mut impl Read) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut seen = Seen { head, body: bytes[head_end..].to_vec() };
    let length: usize = seen.header("content-length").first().map_or(0, |value| value.parse().unwrap());
    while seen.body.len() < length {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => seen.body.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
    Some(seen)
}
