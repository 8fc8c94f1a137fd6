//! The jail: what a launch takes beside a bare start, what a warm worker takes, and how soon a packet becomes a request.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use thought_cli::jail::{Jailer, launcher};
use thought_cli::model::Models;
use thought_protocol::packet::Packet;
use thought_protocol::{RunId, provider};
use thought_runtime::context::{NoImages, rebuild};
use thought_runtime::port::{Jail, Model, ModelReply, Worker};
use thought_sandbox::Tier;
use thought_store_sqlite::{OpenOptions, SqliteStore};

use crate::options::Options;
use crate::place::{self, Place, Servers, Serving};
use crate::stats::Sample;
use crate::table::{Row, Table};
use crate::turns;

const LAUNCHES: usize = 100;
const PACKETS: usize = 100;
/// Time for a successor to be launched and sealed.
const BETWEEN: Duration = Duration::from_millis(25);
/// Turns after which a context is as full as it gets.
const FULL_CONTEXT: usize = 66;
const FIRST_BYTE_MS_MAX: f64 = 5.0;

/// A launch beside a bare start of the same executable, turn about; then the warm worker.
pub(crate) fn launches(table: &mut Table) -> Result<()> {
    let launch = launcher(Tier::Full)?;
    let (mut bare, mut launched) = (Sample::default(), Sample::default());
    for _ in 0..LAUNCHES {
        bare.push_ms(place::bare_start()?);
        let worker = launched.time(|| launch.launch())?;
        worker.kill_and_reap();
    }
    table.group(format!("Launch of a worker, until it is sealed ({LAUNCHES} each, turn about)"));
    table.row(Row::new("launch, median", launched.median(), "ms").beside("a bare process", bare.median()));
    table.row(
        Row::new("launch, 95th percentile", launched.p95(), "ms").beside("a bare process's", bare.p95()),
    );

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let jailer = Jailer::start(launch)?;
    jailer.warm_up()?;
    let mut warm = Sample::default();
    for _ in 0..LAUNCHES {
        std::thread::sleep(BETWEEN);
        let began = Instant::now();
        let worker = runtime.block_on(jailer.checkout())?;
        warm.push_ms(began.elapsed());
        runtime.block_on(async { drop(worker) });
    }
    table.row(
        Row::new("checkout of a warm worker, median", warm.median(), "ms")
            .beside("a launch", launched.median()),
    );
    Ok(())
}

/// From a packet in hand to the first byte of the request at the server, through the adapters that `serve` uses.
pub(crate) fn packet_to_first_byte(options: &Options, table: &mut Table) -> Result<()> {
    let packet = full_packet(options)?;
    let bytes = packet.encode()?;
    let listener = Listener::start()?;
    let place = Place::make(&options.memory, listener.url.clone(), "http://127.0.0.1:9".to_owned())?;
    let models = Models::open(&place.open()?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let jailer = Jailer::start(launcher(Tier::Full)?)?;
    jailer.warm_up()?;
    let mut times = Times::default();
    let mut bare = Sample::default();
    for _ in 0..PACKETS {
        std::thread::sleep(BETWEEN);
        bare.push_ms(listener.bare()?);
        std::thread::sleep(BETWEEN);
        runtime.block_on(times.one(&packet, &bytes, &jailer, &models, &listener))?;
    }
    let size = bytes.len() as f64 / 1024.0;
    table.group(format!(
        "Packet of 64 turns ({size:.0} KiB) to the first byte of its request ({PACKETS} times)"
    ));
    let row = Row::new("first byte, median", times.whole.median(), "ms").at_most(FIRST_BYTE_MS_MAX);
    table.row(row.beside("a bare connection's first byte", bare.median()));
    table.row(Row::new("first byte, 95th percentile", times.whole.p95(), "ms"));
    table.row(Row::new("of it: checkout of the warm worker", times.checkout.median(), "ms"));
    table.row(Row::new("of it: the parent's rendering", times.parent.median(), "ms"));
    table.row(Row::new("of it: the jail's rendering", times.jail.median(), "ms"));
    table.row(Row::new("of it: comparison, connection, first byte", times.connect.median(), "ms"));
    Ok(())
}

#[derive(Default)]
struct Times {
    whole: Sample,
    checkout: Sample,
    parent: Sample,
    jail: Sample,
    connect: Sample,
}

impl Times {
    async fn one(
        &mut self,
        packet: &Packet,
        bytes: &[u8],
        jailer: &Jailer,
        models: &Models,
        listener: &Listener,
    ) -> Result<()> {
        let handed = bytes.to_vec();
        let began = Instant::now();
        let mut worker: Box<dyn Worker> = jailer.checkout().await?;
        let checked_out = Instant::now();
        let parent = provider::render_request(packet)?;
        let rendered = Instant::now();
        let own = worker.render(handed).await?;
        let answered = Instant::now();
        let reply = models.request("main", parent, own).await;
        let arrived = listener.arrived()?;
        ensure!(matches!(reply, ModelReply::Answered { .. }), "the listener's answer did not arrive");
        self.whole.push_ms(arrived - began);
        self.checkout.push_ms(checked_out - began);
        self.parent.push_ms(rendered - checked_out);
        self.jail.push_ms(answered - rendered);
        self.connect.push_ms(arrived - answered);
        Ok(())
    }
}

/// The packet of a conversation that fills its context, from a store in which it was served.
fn full_packet(options: &Options) -> Result<Packet> {
    let servers = Servers::start()?;
    let place = Place::beside(&options.memory, &servers)?;
    let serving = Serving::start(&place)?;
    turns::speak(&servers, &place.observer()?, FULL_CONTEXT)?;
    serving.stop()?;
    let run: String =
        place
            .observer()?
            .0
            .query_row("SELECT id FROM runs ORDER BY ordinal DESC LIMIT 1", [], |row| row.get(0))?;
    let run: RunId = run.parse()?;
    let engine = SqliteStore::open(&place.database(), OpenOptions::default())?;
    let store = thought_store::Store::new(engine, std::sync::Arc::new(thought_cli::compose::SystemClock));
    let (_, packet) = servers.runtime.block_on(rebuild(&store.reader(), &NoImages, &run))?;
    Ok(packet)
}

/// A server that tells when the first byte of each request arrives, and answers them all alike.
struct Listener {
    url: String,
    arrivals: Receiver<Instant>,
}

impl Listener {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("bind a loopback port")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (arrived, arrivals) = mpsc::channel();
        // The thread ends with the process: nothing tells it to.
        std::thread::Builder::new().name("listener".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let mut bytes = vec![0; 1024 * 1024];
                let Ok(mut filled) = stream.read(&mut bytes) else { continue };
                if filled == 0 || arrived.send(Instant::now()).is_err() {
                    continue;
                }
                while !is_whole(&bytes[..filled]) {
                    match stream.read(&mut bytes[filled..]) {
                        Ok(count) if count > 0 => filled += count,
                        _ => break,
                    }
                }
                // A client that went away has been timed already.
                let _sent = stream.write_all(answer().as_bytes());
            }
        })?;
        Ok(Self { url, arrivals })
    }

    fn arrived(&self) -> Result<Instant> {
        self.arrivals.recv_timeout(Duration::from_secs(10)).context("wait for the first byte of a request")
    }

    /// The baseline: connect, and write one byte.
    fn bare(&self) -> Result<Duration> {
        let began = Instant::now();
        let mut stream = std::net::TcpStream::connect(self.url.trim_start_matches("http://"))?;
        stream.write_all(b"x")?;
        let arrived = self.arrived()?;
        Ok(arrived - began)
    }
}

const ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"a-model","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}"#;

fn answer() -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    format!("{head}content-length: {}\r\n\r\n{ANSWER}", ANSWER.len())
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0);
    request.len() >= end + 4 + length
}
