//! Where turns happen: the servers of this process, a home that talks to them, and the binary that serves it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use thought_cli::config::Ingress;
use thought_cli::init::{self, Plan, ProviderPlan, TOKEN_VARIABLE, TelegramPlan};
use thought_fakes::{BotApi, BotConfig, ChatSpec, ModelConfig, ModelServer, Reply, UserSpec};
use tokio::runtime::Runtime;

/// The chat that the measured person writes in.
pub(crate) const CHAT: i64 = 4_242;
/// The shipped declaration that answers in Telegram.
pub(crate) const AGENT: &str = "stream-telegram-conversation";
/// What the person says: as long as a message is.
const SAID: &str =
    "Could you tell me which of the two trains I should take on Thursday, if I want to be there by noon?";
/// What the model answers.
const ANSWER: &str = "Take the earlier one. It leaves at 9:12 and is there at 11:40, which leaves you twenty minutes; \
                      the later one arrives at 12:10.";
/// Longest wait for anything that must happen.
const WAIT: Duration = Duration::from_secs(30);
const TOKEN: &str = "123456:figures-on-loopback-only-0000000000";

/// A moment, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// Since the epoch, milliseconds with their fraction.
    pub(crate) wall_ms: f64,
}

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "a bench compares its own time of day with the store's")]
    pub(crate) fn now() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at: Instant::now(), wall_ms: wall.as_secs_f64() * 1_000.0 }
    }
}

/// The servers, on a runtime of their own.
pub(crate) struct Servers {
    pub(crate) runtime: Runtime,
    pub(crate) bot: BotApi,
    pub(crate) model: ModelServer,
    arrivals: Arc<Mutex<Vec<Moment>>>,
}

impl Servers {
    pub(crate) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (bot, model) = runtime.block_on(async {
            let bot = BotApi::start(BotConfig::new(TOKEN)).await?;
            let model = ModelServer::start(ModelConfig::default()).await?;
            anyhow::Ok((bot, model))
        })?;
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let seen = arrivals.clone();
        model.set_default_reply(move |_| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(Moment::now());
            Reply::Text(ANSWER.to_owned())
        });
        bot.add_chat(ChatSpec::private(CHAT));
        Ok(Self { runtime, bot, model, arrivals })
    }

    /// When each request to the model had arrived whole.
    pub(crate) fn arrivals(&self) -> Vec<Moment> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A person's message.
    pub(crate) fn say(&self) -> Moment {
        let moment = Moment::now();
        self.bot.push_message(ChatSpec::private(CHAT), UserSpec::person(CHAT), SAID);
        moment
    }

    /// Waits until the bot has been told to send this many messages.
    pub(crate) fn wait_for_sent(&self, count: usize) -> Result<Moment> {
        self.runtime.block_on(self.bot.wait_for_calls("sendMessage", count, WAIT))?;
        Ok(Moment::now())
    }

    /// What the model's own part of a turn takes: the last request again, on a connection that is open, until the
    /// answer is read whole.
    pub(crate) fn model_time(&self) -> Result<Duration> {
        let requests = self.model.requests();
        let last = requests.last().context("find a recorded request")?;
        let mut head = format!("POST {} HTTP/1.1\r\n", last.path);
        for (name, value) in &last.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        exchange(&self.model.base_url(), head.as_bytes(), &last.body)
    }

    /// What Telegram's own part of a sent message takes.
    pub(crate) fn send_time(&self) -> Result<Duration> {
        let body = serde_json::to_vec(&serde_json::json!({"chat_id": CHAT, "text": ANSWER}))?;
        let head = format!(
            "POST /bot{TOKEN}/sendMessage HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        exchange(&self.bot.base_url(), head.as_bytes(), &body)
    }
}

/// One exchange with a server, timed from the first byte written to the last byte read.
fn exchange(url: &str, head: &[u8], body: &[u8]) -> Result<Duration> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).context("reach a server")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(WAIT))?;
    let bytes = [head, body].concat();
    let began = Instant::now();
    stream.write_all(&bytes)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        if let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
            if !head.starts_with("http/1.1 200") {
                bail!("a server answered {}", head.lines().next().unwrap_or_default());
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.context("find the length of an answer")?.trim().parse()?;
            if answer.len() >= end + 4 + length {
                return Ok(began.elapsed());
            }
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            bail!("a server closed before its answer was whole");
        }
        answer.extend_from_slice(&buffer[..count]);
    }
}

/// A fresh home that talks to the servers. It is removed with this value.
pub(crate) struct Place {
    _folder: TempDir,
    pub(crate) home: PathBuf,
}

impl Place {
    /// Makes a home below a folder.
    pub(crate) fn make(below: &Path, model_url: String, bot_url: String) -> Result<Self> {
        std::fs::create_dir_all(below)?;
        let folder = tempfile::Builder::new().prefix("thought-figures-").tempdir_in(below)?;
        let plan = Plan {
            provider: ProviderPlan {
                api: "anthropic-messages",
                base_url: model_url,
                model: "a-model".to_owned(),
                key_env: None,
                token_limit: "max_tokens",
            },
            operator: "figures".to_owned(),
            telegram: TelegramPlan {
                api_url: Some(bot_url),
                token_file: None,
                allowed_chats: vec![CHAT],
                ingress: Ingress::Poll,
            },
            jail: thought_cli::jail::allowed(),
            inspector: "127.0.0.1:8788".to_owned(),
        };
        let home = init::make(&folder.path().join("home"), &plan).map_err(anyhow::Error::new)?;
        raise_daily_budget(&home)?;
        Ok(Self { _folder: folder, home })
    }

    /// Makes a home that talks to these servers.
    pub(crate) fn beside(below: &Path, servers: &Servers) -> Result<Self> {
        Self::make(below, servers.model.base_url(), servers.bot.base_url())
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home.join("thought.db")
    }

    /// A look at the store from outside, which no count of the store's own threads sees.
    pub(crate) fn observer(&self) -> Result<Observer> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Ok(Observer(Connection::open_with_flags(self.database(), flags).context("look at the store")?))
    }

    /// The home as the binary's own library reads it, with the bot's token.
    pub(crate) fn open(&self) -> Result<thought_cli::home::Home> {
        let mut home = thought_cli::home::Home::open(Some(&self.home)).map_err(anyhow::Error::new)?;
        home.handed_token = Some(thought_protocol::Sensitive::new(TOKEN.to_owned()));
        Ok(home)
    }
}

/// The shipped declaration allows fewer requests a day than a bench makes.
fn raise_daily_budget(home: &Path) -> Result<()> {
    let file = home.join("agents").join(format!("{AGENT}.yaml"));
    let text = std::fs::read_to_string(&file)?;
    let line = text.lines().find(|line| line.trim_start().starts_with("maxRequestsPerDay:"));
    let line = line.context("find the daily budget")?;
    std::fs::write(&file, text.replace(line, "  maxRequestsPerDay: 1000000"))?;
    Ok(())
}

/// A read-only connection of the bench.
pub(crate) struct Observer(pub(crate) Connection);

impl Observer {
    /// Position of the newest receipt; 0 when there is none.
    pub(crate) fn newest_receipt(&self) -> Result<u64> {
        let sql =
            "SELECT coalesce(max(position), 0) FROM events WHERE type = 'stream.thought.delivery.telegram@1'";
        Ok(self.0.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    /// Waits until there is a newer receipt than this one.
    pub(crate) fn wait_for_receipt(&self, known: u64) -> Result<Moment> {
        let deadline = Instant::now() + WAIT;
        while self.newest_receipt()? <= known {
            if Instant::now() > deadline {
                bail!("no receipt came within {} s", WAIT.as_secs());
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(Moment::now())
    }
}

/// A running `thought serve`. Dropping it ends it.
pub(crate) struct Serving {
    child: Child,
    /// From its start to the ready line.
    pub(crate) ready_after: Duration,
}

impl Serving {
    /// Starts the binary and waits for its ready line.
    #[expect(clippy::disallowed_methods, reason = "a bench starts the binary that it measures")]
    pub(crate) fn start(place: &Place) -> Result<Self> {
        let began = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_thought"))
            .arg("--home")
            .arg(&place.home)
            .args(["--json", "--log-level", "warn", "serve"])
            .env_clear()
            .env(TOKEN_VARIABLE, TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("start thought serve")?;
        let stdout = child.stdout.take().context("take the output of thought serve")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let serving = Self { child, ready_after: began.elapsed() };
        let ready: serde_json::Value =
            serde_json::from_str(&line).context("thought serve did not become ready")?;
        if ready["ready"] != true {
            bail!("thought serve said something else than that it is ready");
        }
        Ok(serving)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it in order.
    pub(crate) fn stop(mut self) -> Result<()> {
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::TERM,
        )?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { bail!("thought serve ended with {status}") }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // After an orderly stop there is nothing left to end.
        let _ended = self.child.kill();
        let _collected = self.child.wait();
    }
}

/// Times bare process starts: this very executable, which ends at once.
#[expect(clippy::disallowed_methods, reason = "the bare start that launches are compared with")]
pub(crate) fn bare_start() -> Result<Duration> {
    let began = Instant::now();
    let status = Command::new("/proc/self/exe").arg(crate::BARE).env_clear().stdin(Stdio::null()).status()?;
    if status.success() { Ok(began.elapsed()) } else { bail!("a bare process ended with {status}") }
}
