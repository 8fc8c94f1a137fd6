//! `demo`: the whole chain on a fresh machine, with no account. The product's own roles work in a fresh temporary home
//! against a Bot API and a model server on loopback; a person's messages arrive, and each step is told with the ids that
//! stand in the store.
//!
//! It tells nothing that it has not read back, and it fails when something that it would tell is not there.

mod mail;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::{DeliveryTelegram, MemoryChangeProposed, RunCompleted};
use thought_contract::review::{Review, Standing, Subject, visible};
use thought_contract::run::RunState;
use thought_fakes::{BotApi, BotConfig, ChatSpec, ModelConfig, ModelServer, UserSpec, demo_brain};
use thought_protocol::proposal::{ProposalKind, acknowledgment};
use thought_protocol::{EventId, Sensitive};
use thought_store::handle::Reader;
use thought_store::row::{Base, EventFilter, ProposalFilter, ProposalState, RunFilter, RunRow};

use crate::args::Global;
use crate::command::resolve::short;
use crate::config::{Ingress, LogLevel};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::init::{self, Plan, ProviderPlan, TelegramPlan};
use crate::print::Printer;
use crate::serve::{self, Ready, Roles};
use crate::{env, jail, logging};

/// The chat that the demonstration's person writes in.
const CHAT: i64 = 4_242;
/// Longest wait for one turn.
const TURN_WAIT: Duration = Duration::from_secs(20);
/// What the person says, turn by turn.
const SAID: [&str; 2] = ["Please remember that I moved to Lisbon.", "Do you still see what I said before?"];
/// What stands in history where the model would read how its call went.
const CAPTURED: &str = "Captured as a durable proposal. It is inert: approval and application are pending.";

/// `demo`.
///
/// # Errors
/// [`Failure`]: an existing home was named (3), no jail (8), or a claimed event is not in the store (1).
pub fn run(global: &Global, printer: Printer) -> Result<(), Failure> {
    logging::start(global.log_level.unwrap_or(LogLevel::Off), global.log_format.unwrap_or_default());
    let path = fresh_home(global.home.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(&error))?;
    runtime.block_on(show(&path, printer))
}

/// Where the demonstration lives: a new folder below the temporary one, or the one that was named, which must be new.
fn fresh_home(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        let is_used = named.symlink_metadata().is_ok()
            && std::fs::read_dir(named).map_or(true, |mut entries| entries.next().is_some());
        if is_used {
            let message = format!("{} exists; the demonstration wants a fresh home", named.display());
            return Err(
                Failure::refused("home-exists", message).hint("leave --home out, or name a new folder")
            );
        }
        return Ok(named.to_owned());
    }
    let temporary = env::path("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    if !temporary.is_dir() {
        let message = format!("there is no folder {}", temporary.display());
        return Err(
            Failure::new(Exit::NotFound, "no-folder", message).hint("set TMPDIR to a folder that is there")
        );
    }
    let mut random = [0_u8; 5];
    let filled = rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty());
    filled.map_err(|error| Failure::internal(&error))?;
    let suffix: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(temporary.join(format!("thought-demo-{suffix}")))
}

/// How this binary is called from here: by its name where the path has it, else by where it lies.
fn own_name() -> String {
    let Ok(own) = std::env::current_exe() else { return "thought".to_owned() };
    let folders = env::path("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&folders).any(|folder| Some(folder.as_path()) == own.parent());
    if on_path { "thought".to_owned() } else { own.display().to_string() }
}

struct Servers {
    bot: BotApi,
    model: ModelServer,
    token: String,
}

async fn show(path: &Path, printer: Printer) -> Result<(), Failure> {
    let servers = servers().await?;
    let home = make_home(path, &servers)?;
    let shown = home.path.clone();
    let show = Show { printer };
    show.step("home", &json!({"path": shown}), || {
        format!("{}  (a fresh one; kept until you delete it)", shown.display())
    })?;
    let mut ready = serve::prepare(home, printer).await?;
    let seal = ready.seal();
    show.step("jail", &json!({"tier": seal.tier.name(), "landlockAbi": seal.landlock_abi}), || {
        let layers = match seal.tier {
            thought_sandbox::Tier::Full => "namespaces, landlock, seccomp, limits",
            thought_sandbox::Tier::LandlockSeccomp => "landlock, seccomp, limits",
        };
        format!(
            "{}: {layers}; a sealed worker is ready (landlock abi {})",
            seal.tier.name(),
            seal.landlock_abi
        )
    })?;
    let roles = serve::start(&mut ready).await?;
    let outcome = scenes(&show, &ready, &servers).await;
    finish(roles, &ready).await;
    outcome?;
    show.look_around(&shown)
}

async fn servers() -> Result<Servers, Failure> {
    let cannot = |error: &dyn std::error::Error| {
        Failure::new(Exit::Machine, "no-loopback", format!("start a server on loopback: {error}"))
    };
    // A token of the real shape that no bot has: it opens nothing but the server of this demonstration.
    let token = format!("{}:{}", 123_456, "demonstration-on-loopback-only-00000");
    let bot = BotApi::start(BotConfig::new(&token)).await.map_err(|error| cannot(&error))?;
    let model = ModelServer::start(ModelConfig::default()).await.map_err(|error| cannot(&error))?;
    model.set_default_reply(demo_brain);
    bot.add_chat(ChatSpec::private(CHAT));
    Ok(Servers { bot, model, token })
}

fn make_home(path: &Path, servers: &Servers) -> Result<Home, Failure> {
    let allowed = jail::allowed();
    let plan = Plan {
        provider: ProviderPlan {
            api: "anthropic-messages",
            base_url: servers.model.base_url(),
            model: "demo-model".to_owned(),
            key_env: None,
            token_limit: "max_tokens",
        },
        operator: "alex (demo)".to_owned(),
        // The file says `off`, so that the home can be looked around in later, when the servers are gone.
        telegram: TelegramPlan {
            api_url: Some(servers.bot.base_url()),
            token_file: None,
            allowed_chats: vec![CHAT],
            ingress: Ingress::Off,
        },
        jail: allowed,
        inspector: "127.0.0.1:8788".to_owned(),
    };
    let path = init::make(path, &plan)?;
    let mut home = Home::open(Some(&path))?;
    if let Some(telegram) = &mut home.config.telegram {
        telegram.ingress = Ingress::Poll;
    }
    home.handed_token = Some(Sensitive::new(servers.token.clone()));
    Ok(home)
}

async fn scenes(show: &Show, ready: &Ready, servers: &Servers) -> Result<(), Failure> {
    turns(show, ready, servers).await?;
    mail::exchange(show, ready, servers).await
}

async fn turns(show: &Show, ready: &Ready, servers: &Servers) -> Result<(), Failure> {
    let reader = ready.store().reader();
    let mut earlier_requests = 0;
    for (index, said) in SAID.iter().enumerate() {
        let update = servers.bot.push_message(ChatSpec::private(CHAT), UserSpec::person(CHAT), said);
        show.step("you", &json!({"update": update}), || format!("{said:<58} update {update}"))?;
        let turn = Turn::wait(&reader, index + 1).await?;
        turn.tell(show, &reader).await?;
        let requests = servers.model.request_count();
        let made = requests - earlier_requests;
        earlier_requests = requests;
        if made != 1 {
            return Err(not_there(&format!("exactly one request for this turn ({made} were made)")));
        }
        let sent = servers.bot.sent();
        let answer = sent.last().map(|message| message.text.clone()).unwrap_or_default();
        show.step("bot", &json!({"messages": sent.len(), "requests": made}), || {
            format!("{answer:<58} exactly 1 request")
        })?;
        match index {
            0 => suggestion(show, &reader, &turn, &answer).await?,
            _ => remembered(show, servers)?,
        }
    }
    let documents = reader.documents(SourceName::context()).await?;
    show.step("memory", &json!({"documents": documents.len()}), || {
        let names: Vec<&str> = documents.iter().map(|row| row.path.as_str()).collect();
        format!("{}: scanned versions, unchanged by any of this", names.join(", "))
    })
}

/// The suggestion that the first turn made: bound, waiting, and without any effect.
async fn suggestion(show: &Show, reader: &Reader, turn: &Turn, answer: &str) -> Result<(), Failure> {
    let waiting = ProposalFilter {
        states: vec![ProposalState::Undecided],
        kinds: vec![ProposalKind::MemoryChange],
        limit: 2,
        ..ProposalFilter::default()
    };
    let found = reader.proposals(waiting).await?;
    let [row] = found.as_slice() else { return Err(not_there("exactly one waiting memory suggestion")) };
    if row.run.as_ref() != Some(&turn.run.id) || row.base != Base::Current {
        return Err(not_there("a suggestion of this run on the memory as it stands"));
    }
    if acknowledgment(&[ProposalKind::MemoryChange]) != Some(answer) {
        return Err(not_there("the fixed sentence as the delivered answer"));
    }
    let event = reader.event(row.proposal.clone()).await?.ok_or_else(|| not_there("the proposal's event"))?;
    let proposed: MemoryChangeProposed = event.payload().map_err(|error| Failure::internal(&error))?;
    let base = reader.version(proposed.target.version_id.clone()).await?;
    let base = base.ok_or_else(|| not_there("the version that the suggestion is bound to"))?;
    let base = Sensitive::new(String::from_utf8_lossy(base.content.expose()).into_owned());
    let review = Review::of(Subject::MemoryChange(&proposed, &base), Standing::Current)
        .map_err(|error| Failure::internal(&error))?;
    let value = json!({"proposal": row.proposal, "kind": row.kind, "state": row.state.as_str()});
    show.step("proposal", &value, || {
        let id = short(row.proposal.as_str());
        format!("{id}  {}, {}: nothing in memory.md has changed yet", row.kind, row.state.as_str())
    })?;
    let diff = review.diff.expose();
    show.step("diff", &json!({"diff": diff}), || {
        let lines = visible(diff).lines().map(|line| format!("            {line}")).collect::<Vec<_>>();
        format!("what it would change, if a person accepted it\n{}", lines.join("\n"))
    })
}

/// What the second request told the model of the first turn: its call, how that went, and what was delivered.
fn remembered(show: &Show, servers: &Servers) -> Result<(), Failure> {
    let requests = servers.model.requests();
    let messages = requests.last().and_then(|request| request.json["messages"].as_array().cloned());
    let messages = messages.ok_or_else(|| not_there("the second request"))?;
    let parts = |index: usize| {
        messages.get(index).and_then(|message| message["content"].as_array()?.first().cloned())
    };
    let (call, result, said) = (parts(1), parts(2), parts(3));
    let call =
        call.filter(|part| part["type"] == "tool_use").ok_or_else(|| not_there("the call in history"))?;
    let is_answered = result.is_some_and(|part| {
        let told = part["content"].as_str().or_else(|| part["content"][0]["text"].as_str());
        part["tool_use_id"] == call["id"] && told == Some(CAPTURED)
    });
    let is_said = messages.get(3).is_some_and(|message| message["role"] == "assistant")
        && (said.is_some_and(|part| part["text"].is_string())
            || messages.get(3).is_some_and(|message| message["content"].is_string()));
    if !is_answered || !is_said {
        return Err(not_there("call, result and sentence in the second request's history"));
    }
    let value = json!({"call": call["name"], "messages": messages.len()});
    show.step("history", &value, || {
        let name = call["name"].as_str().unwrap_or_default();
        format!("the model was shown its call {name}, that it is inert, and the sentence")
    })
}

/// One turn as the store tells it.
struct Turn {
    message: StoredEvent,
    run: RunRow,
    receipt: StoredEvent,
}

impl Turn {
    /// Waits until the n-th message has a delivered answer.
    async fn wait(reader: &Reader, number: usize) -> Result<Self, Failure> {
        let mut news = reader.news();
        let waited = tokio::time::timeout(TURN_WAIT, async {
            loop {
                news.mark_unchanged();
                if let Some(turn) = Self::find(reader, number).await? {
                    return Ok::<Self, Failure>(turn);
                }
                // A store whose news ended still answers; look again after a while.
                let _news = tokio::time::timeout(Duration::from_millis(200), news.changed()).await;
            }
        });
        waited.await.map_err(|_late| not_there("an answer within 20 s"))?
    }

    async fn find(reader: &Reader, number: usize) -> Result<Option<Self>, Failure> {
        let limit = u32::try_from(number).unwrap_or(u32::MAX);
        let of_type = |event_type| EventFilter { types: vec![event_type], limit, ..EventFilter::default() };
        let messages = reader.events(of_type(EventType::TelegramMessage)).await?;
        let Some(message) = messages.into_iter().nth(number - 1) else { return Ok(None) };
        let on_it =
            RunFilter { trigger: Some(message.envelope.id.clone()), limit: 1, ..RunFilter::default() };
        let Some(run) = reader.runs(on_it).await?.into_iter().next() else { return Ok(None) };
        if !run.state.is_open() && run.state != RunState::Completed {
            let reason = run.reason.clone().unwrap_or_default();
            return Err(not_there(&format!("an answer: run {} ended {} ({reason})", run.id, run.state)));
        }
        let Some(output) = run.output.clone() else { return Ok(None) };
        for event in reader.children(output, 16).await? {
            if event.envelope.event_type == EventType::DeliveryTelegram {
                return Ok(Some(Self { message, run, receipt: event }));
            }
        }
        Ok(None)
    }

    async fn tell(&self, show: &Show, reader: &Reader) -> Result<(), Failure> {
        let message = &self.message.envelope;
        show.event("event", &self.message, format!("{}  root", message.event_type))?;
        let run = &self.run;
        let snapshot =
            reader.snapshot(run.id.clone()).await?.ok_or_else(|| not_there("the snapshot of the run"))?;
        let bytes = snapshot.bytes.expose().len();
        let value = json!({"run": run.id, "snapshot": snapshot.id, "storedBytes": bytes});
        show.step("run", &value, || {
            let agent = format!("{} v{}", run.declaration, run.version);
            format!(
                "{}  {agent}  snapshot {} ({bytes} bytes)",
                short(run.id.as_str()),
                short(snapshot.id.as_str())
            )
        })?;
        let attempts = reader.attempts(run.id.clone()).await?;
        let [attempt] = attempts.as_slice() else { return Err(not_there("exactly one attempt")) };
        let value = json!({"attempt": attempt.id, "outcome": attempt.state, "sandbox": attempt.sandbox});
        show.step("model", &value, || {
            let attempt_id = short(attempt.id.as_str());
            format!("{attempt_id}  one attempt in the jail ({}): {}", attempt.sandbox, attempt.state)
        })?;
        let (output, completed) = self.settled(reader).await?;
        let value = json!({"output": output.envelope.id, "completed": completed.envelope.id});
        show.step("settled", &value, || {
            let (output, completed) = (&output.envelope.id, &completed.envelope.id);
            format!(
                "output {}  completed {}  one transaction",
                short(output.as_str()),
                short(completed.as_str())
            )
        })?;
        let delivery: DeliveryTelegram = self.receipt.payload().map_err(|error| Failure::internal(&error))?;
        let ids: Vec<i64> = delivery.chunks.iter().filter_map(|chunk| chunk.message_id).collect();
        show.event("receipt", &self.receipt, format!("delivered; Telegram calls it {ids:?}"))
    }

    /// The output and the completed event, read back and held against each other.
    async fn settled(&self, reader: &Reader) -> Result<(StoredEvent, StoredEvent), Failure> {
        let read = async |id: Option<EventId>, what: &str| {
            let id = id.ok_or_else(|| not_there(what))?;
            reader.event(id).await?.ok_or_else(|| not_there(what))
        };
        let output = read(self.run.output.clone(), "the output event").await?;
        let completed = read(self.run.terminal.clone(), "the completed event").await?;
        let receipt: RunCompleted = completed.payload().map_err(|error| Failure::internal(&error))?;
        if receipt.output != output.envelope.id || receipt.run != self.run.id {
            return Err(not_there("a completed event that names this run and its output"));
        }
        if self.receipt.envelope.root_id != self.message.envelope.id {
            return Err(not_there("a receipt under the message's root"));
        }
        Ok((output, completed))
    }
}

fn not_there(what: &str) -> Failure {
    Failure::new(Exit::Internal, "demo", format!("the store does not hold {what}"))
}

async fn finish(roles: Roles, ready: &Ready) {
    roles.finish().await;
    tracing::debug!(target: "thought::demo", agents = ready.agents().len(), "the roles ended");
}

struct Show {
    printer: Printer,
}

impl Show {
    fn step(&self, word: &str, value: &Value, line: impl FnOnce() -> String) -> Result<(), Failure> {
        let mut object = json!({"step": word});
        if let (Some(object), Some(members)) = (object.as_object_mut(), value.as_object()) {
            object.extend(members.clone());
        }
        let printer = self.printer;
        printer.either(&object, || vec![format!("  {:<9} {}", printer.bold(word), line())])
    }

    fn event(&self, word: &str, event: &StoredEvent, what: String) -> Result<(), Failure> {
        let e = &event.envelope;
        let value = json!({"event": e.id, "type": e.event_type, "source": e.source, "position": e.position});
        self.step(word, &value, || format!("{}  {what}", short(e.id.as_str())))
    }

    fn look_around(&self, path: &Path) -> Result<(), Failure> {
        let thought = format!("{} --home {}", own_name(), path.display());
        let commands = ["status", "event-list", "run-list", "proposal-list"];
        let value = json!({"step": "done", "home": path});
        self.printer.either(&value, || {
            let mut lines = vec![String::new()];
            lines.extend(commands.iter().enumerate().map(|(index, command)| {
                let lead = if index == 0 { "Look around:" } else { "" };
                format!("{lead:<14} {thought} {command}")
            }));
            lines.push(String::new());
            lines.push(format!(
                "Your own: thought init, then thought doctor.  When done here: rm -r {}",
                path.display()
            ));
            lines
        })
    }
}
