//! `demo`: the whole chain on a fresh machine, with no account. The product's own roles work in a fresh temporary home
//! against a Bot API and a model server on loopback; a person's messages arrive, and each step is told with the ids that
//! stand in the store.
//!
//! It tells nothing that it has not read back, and it fails when something that it would tell is not there. Each chapter
//! of the story has a module of its own; what they share is how a turn is read back and how a step is told.

mod mail;
mod show;
mod suggestion;
mod turn;
mod word;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use thought_fakes::{
    BotApi, BotConfig, ChatSpec, MessageSpec, ModelConfig, ModelServer, UserSpec, demo_brain,
};
use thought_protocol::{EventId, Sensitive};
use thought_store::handle::Reader;

use self::show::{Show, not_there};
use self::turn::Turn;
use crate::args::Global;
use crate::config::{Ingress, LogLevel};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::init::{self, Plan, ProviderPlan, TelegramPlan};
use crate::print::{Printer, quoted};
use crate::serve::{self, Ready, Roles};
use crate::{env, jail, logging};

/// The chat that the demonstration's person writes in.
const CHAT: i64 = 4_242;
/// The person, who is the operator too.
const OPERATOR: &str = "alex (demo)";
/// Longest wait for one turn, or for what follows from a word.
const TURN_WAIT: Duration = Duration::from_secs(20);

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
    if on_path { "thought".to_owned() } else { quoted(&own) }
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
    let show = Show::on(printer);
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
    show.look_around(&shown, &own_name(), &outcome?)
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
        operator: OPERATOR.to_owned(),
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

/// The story, chapter by chapter; each stands on what those before it left in the store. Answers the receipt that the
/// whole chain of authority ends in.
async fn scenes(show: &Show, ready: &Ready, servers: &Servers) -> Result<EventId, Failure> {
    let stage = Stage { show, ready, servers, reader: ready.store().reader() };
    let proposal = suggestion::chapter(&stage).await?;
    let receipt = word::chapter(&stage, &proposal).await?;
    mail::exchange(show, ready, servers).await?;
    Ok(receipt)
}

/// Where a chapter plays.
struct Stage<'a> {
    show: &'a Show,
    ready: &'a Ready,
    servers: &'a Servers,
    reader: Reader,
}

impl Stage<'_> {
    /// The person says something, and is answered: the turn as the store holds it, and the delivered words.
    async fn say(&self, said: &str) -> Result<(Turn, String), Failure> {
        let (model, bot) = (&self.servers.model, &self.servers.bot);
        let (requests, sent) = (model.request_count(), bot.sent().len());
        let pushed = bot.push(&MessageSpec::text(ChatSpec::private(CHAT), UserSpec::person(CHAT), said));
        let update = pushed.update_id;
        self.show.step("you", &json!({"update": update}), || format!("{said:<58} update {update}"))?;
        let turn = Turn::wait(&self.reader, pushed.message_id).await?;
        turn.tell(self.show, &self.reader).await?;
        let made = model.request_count() - requests;
        if made != 1 {
            return Err(not_there(&format!("exactly one request for this turn ({made} were made)")));
        }
        let messages = bot.sent().split_off(sent);
        let [answer] = messages.as_slice() else {
            return Err(not_there(&format!("exactly one answer in the chat ({} came)", messages.len())));
        };
        let answer = answer.text.clone();
        self.show.step("bot", &json!({"messages": sent + 1, "requests": made}), || {
            format!("{answer:<58} exactly 1 request")
        })?;
        Ok((turn, answer))
    }
}

async fn finish(roles: Roles, ready: &Ready) {
    roles.finish().await;
    tracing::debug!(target: "thought::demo", agents = ready.agents().len(), "the roles ended");
}
