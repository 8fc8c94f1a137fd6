//! `doctor`: looks at everything that `serve` needs, and says of each what is wrong and what to do. It makes no model
//! request and changes nothing; `--clear-lock` alone does, after a person's yes.

mod context;
pub mod lock;

use serde_json::{Value, json};
use thought_broker::{ModelListing, Reachability};
use thought_sandbox::{JailReport, LayerStatus};
use thought_store::handle::Reader;
use thought_store::row::EventFilter;
use thought_telegram::client::{BotClient, ClientConfig, ClientError};

use crate::command::declaration::differences;
use crate::command::{status, webhook};
use crate::compose;
use crate::config::{Ingress, Provider};
use crate::exit::{Exit, Failure, chain};
use crate::home::{self, Home};
use crate::print::Printer;
use crate::secrets::{self, Secret};
use crate::{jail, model, serve};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Ok,
    Warn,
    Fail,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One line of the report.
#[derive(Debug)]
struct Check {
    name: String,
    state: State,
    text: String,
    hint: Option<String>,
    /// Whether a failure means that this machine cannot do it.
    is_machine: bool,
}

#[derive(Debug, Default)]
struct Report(Vec<Check>);

impl Report {
    fn add(&mut self, name: &str, state: State, text: impl Into<String>, hint: Option<String>) {
        let check = Check { name: name.to_owned(), state, text: text.into(), hint, is_machine: false };
        self.0.push(check);
    }

    fn failure(&mut self, name: &str, failure: Failure) {
        self.add(name, State::Fail, failure.message, failure.hint);
    }

    fn machine(&mut self, name: &str, state: State, text: impl Into<String>, hint: Option<String>) {
        self.add(name, state, text, hint);
        if let Some(check) = self.0.last_mut() {
            check.is_machine = true;
        }
    }
}

/// `doctor`.
///
/// # Errors
/// [`Failure`]: 8 when jail or store cannot work, else 3 when anything failed.
pub async fn run(home: &Home, printer: Printer) -> Result<(), Failure> {
    let mut report = Report::default();
    check_home(home, &mut report);
    check_accounts(home, &mut report);
    let reader = check_store(home, &mut report).await;
    if let Some(reader) = &reader {
        check_declarations(home, reader, &mut report).await;
    }
    check_jail(home, &mut report);
    context::check(home, &mut report);
    if let Some(reader) = &reader {
        context::check_waiting(home, reader, &mut report).await;
    }
    for (name, provider) in &home.config.provider {
        check_provider(home, name, provider, &mut report).await;
    }
    if home.config.provider.is_empty() {
        let hint = Some("add a [provider.main] to thought.toml".to_owned());
        report.add("provider", State::Fail, "none is configured", hint);
    }
    check_telegram(home, &mut report).await;
    print(&report, printer)?;
    verdict(&report)
}

/// `doctor --who`.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub async fn who(home: &Home, reader: &Reader, printer: Printer) -> Result<(), Failure> {
    let chats = reader.refused_chats(status::channel_source(home)).await?;
    if printer.is_json() {
        return chats.iter().try_for_each(|row| {
            printer
                .object(&json!({"id": row.chat, "kind": row.kind, "lastAt": row.last_at, "count": row.count}))
        });
    }
    if chats.is_empty() {
        printer
            .line("nobody who is not admitted wrote to the bot; write to it once while thought serve runs")?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = chats
        .iter()
        .map(|row| {
            vec![row.chat.to_string(), row.kind.clone(), row.count.to_string(), row.last_at.to_string()]
        })
        .collect();
    printer.table(&["chat", "kind", "updates", "last"], &rows)?;
    for row in &chats {
        printer.remark(&format!("{}: {}", row.chat, status::admit_hint(home, row.chat)));
    }
    Ok(())
}

fn print(report: &Report, printer: Printer) -> Result<(), Failure> {
    if printer.is_json() {
        let checks: Vec<Value> = report.0.iter().map(check_json).collect();
        return printer.object(&json!({"checks": checks}));
    }
    for check in &report.0 {
        printer.line(&format!("{} {:<14} {}", printer.state(check.state.word()), check.name, check.text))?;
        if let Some(hint) = &check.hint {
            printer.line(&printer.dim(&format!("{:21}hint: {hint}", "")))?;
        }
    }
    Ok(())
}

fn check_json(check: &Check) -> Value {
    let mut value = json!({"name": check.name, "state": check.state.word(), "text": check.text});
    if let Some(hint) = &check.hint {
        value["hint"] = json!(hint);
    }
    value
}

fn verdict(report: &Report) -> Result<(), Failure> {
    let failed = report.0.iter().filter(|check| check.state == State::Fail);
    let (machine, other): (Vec<&Check>, Vec<&Check>) = failed.partition(|check| check.is_machine);
    let (exit, checks) = match (machine.is_empty(), other.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => (Exit::Machine, machine),
        (true, false) => (Exit::Refused, other),
    };
    let names: Vec<&str> = checks.iter().map(|check| check.name.trim()).collect();
    Err(Failure::new(exit, "doctor", format!("failed: {}", names.join(", "))))
}

fn check_home(home: &Home, report: &mut Report) {
    report.add("home", State::Ok, format!("{}, 0700, yours", home.path.display()), None);
    for folder in ["agents", "prompts", "blobs", "run"] {
        let path = home.below(folder);
        if path.symlink_metadata().is_err() {
            report.add("home", State::Warn, format!("the folder {folder} is missing"), None);
        } else if let Err(failure) = home::check_folder(&path) {
            report.failure("home", failure);
        }
    }
    report.add("configuration", State::Ok, home::CONFIGURATION, None);
}

fn check_accounts(home: &Home, report: &mut Report) {
    let owner = home::uid();
    for (name, account) in &home.config.agents {
        if account.uid == owner {
            let text = format!("agent {name} shares your account: it could open this home and decide as you");
            let hint = Some(format!("give it an account of its own and set [agents.{name}] uid"));
            report.add("accounts", State::Warn, text, hint);
        }
        match serve::socket::place(home, account) {
            Ok(path) => report.add("socket", State::Ok, format!("agent {name}: {}", path.display()), None),
            Err(failure) => report.failure("socket", failure),
        }
    }
}

async fn check_store(home: &Home, report: &mut Report) -> Option<Reader> {
    if home.database().symlink_metadata().is_err() {
        report.machine("store", State::Ok, "none yet; thought serve makes it", None);
        return None;
    }
    let reader = match compose::open_store(home) {
        Ok(store) => store.reader(),
        Err(failure) => {
            report.machine("store", State::Fail, failure.message, failure.hint);
            return None;
        }
    };
    match look_through(&reader).await {
        Ok(count) => {
            report.machine("store", State::Ok, format!("sqlite, {count} events"), None);
            Some(reader)
        }
        Err(error) => {
            let failure = Failure::from(error);
            report.machine("store", State::Fail, failure.message, failure.hint);
            None
        }
    }
}

/// Reads what every command reads, so that a damaged store is noticed here; answers how many events there are.
async fn look_through(reader: &Reader) -> Result<u64, thought_store::StoreError> {
    reader.sources().await?;
    reader.declarations().await?;
    reader.consumers().await?;
    reader.run_counts().await?;
    reader.documents(thought_contract::event::SourceName::context()).await?;
    let newest = EventFilter { limit: 100, ..EventFilter::default() };
    reader.events(newest).await?;
    reader.event_count().await
}

async fn check_declarations(home: &Home, reader: &Reader, report: &mut Report) {
    match differences(home, reader).await {
        Ok(remarks) if remarks.is_empty() => {
            let installed = reader.declarations().await.map_or(0, |rows| rows.len());
            let text =
                if installed == 0 { "nothing is installed yet" } else { "the files are what is active" };
            report.add("declarations", State::Ok, text, None);
        }
        Ok(remarks) => {
            for remark in remarks {
                report.add("declarations", State::Warn, remark, None);
            }
        }
        Err(failure) => report.failure("declarations", failure),
    }
}

/// What is missing where every layer of the lesser tier is in place.
fn lesser_tier(tier: thought_sandbox::Tier) -> Option<String> {
    let text = "namespaces are left out, so the list of system calls alone stops UDP and pathname sockets; where the \
                machine allows namespaces, set [sandbox] mode = \"full\"";
    (tier == thought_sandbox::Tier::LandlockSeccomp).then(|| text.to_owned())
}

fn check_jail(home: &Home, report: &mut Report) {
    let tier = jail::tier(home.config.sandbox.mode);
    let launcher = match jail::launcher(tier) {
        Ok(launcher) => launcher,
        Err(failure) => return report.machine("jail", State::Fail, failure.message, failure.hint),
    };
    let tried: JailReport = thought_sandbox::probe(&launcher);
    match &tried.outcome {
        Ok(evidence) => {
            let text =
                format!("{}: every layer in place, landlock abi {}", tier.name(), evidence.landlock_abi);
            report.machine("jail", State::Ok, text, lesser_tier(tier));
        }
        Err(error) => {
            let text = format!("{}: {}", tier.name(), chain(error));
            report.machine("jail", State::Fail, text, tried.hint().map(str::to_owned));
        }
    }
    for layer in &tried.layers {
        let (state, text) = match layer.status {
            LayerStatus::Ok => (State::Ok, format!("in place: {}", layer.stage.purpose())),
            LayerStatus::Refused { errno } => (State::Fail, format!("refused (errno {errno})")),
            LayerStatus::NotReached => (State::Warn, "not reached".to_owned()),
            LayerStatus::NotInTier => continue,
        };
        let name = format!("  {}", layer.stage.name());
        report.machine(&name, state, text, layer.hint().map(str::to_owned));
    }
}

async fn check_provider(home: &Home, name: &str, provider: &Provider, report: &mut Report) {
    let line = format!("provider {name}");
    let broker = match model::broker(home, name, provider) {
        Ok(Ok(broker)) => broker,
        Ok(Err(problem)) => {
            let hint = provider.key_env.as_ref().map(|variable| format!("export {variable}=…"));
            return report.add(&line, State::Fail, problem, hint);
        }
        Err(failure) => return report.failure(&line, failure),
    };
    let model = &provider.model;
    let root = &provider.base_url;
    let (state, text, hint) = match broker.reachable(model).await {
        Reachability::Reachable { model: ModelListing::Listed } => {
            (State::Ok, format!("{root} answers and has {model}"), None)
        }
        Reachability::Reachable { model: ModelListing::CannotTell } => {
            (State::Ok, format!("{root} answers; it does not say whether it has {model}"), None)
        }
        Reachability::Reachable { model: ModelListing::NotListed } => (
            State::Warn,
            format!("{root} answers, but has no model {model}"),
            Some(format!("set model in [provider.{name}] of thought.toml, or fetch it: ollama pull {model}")),
        ),
        Reachability::KeyRefused { status } => (
            State::Fail,
            format!("{root} refuses the key (status {status})"),
            Some("set a valid key".to_owned()),
        ),
        Reachability::OtherStatus { status } => {
            (State::Warn, format!("{root} answers with status {status}"), None)
        }
        Reachability::Unreachable { reason } => {
            let hint = Some(format!("start it, or set base_url in [provider.{name}] of thought.toml"));
            (State::Fail, format!("{root} cannot be reached ({})", reason.code()), hint)
        }
        Reachability::NoAnswer { reason } => {
            (State::Fail, format!("{root} gave no answer ({})", reason.code()), None)
        }
    };
    report.add(&line, state, text, hint);
}

async fn check_telegram(home: &Home, report: &mut Report) {
    let Some(telegram) = &home.config.telegram else {
        return report.add("telegram", State::Warn, "not configured", None);
    };
    if telegram.ingress == Ingress::Off {
        let hint = Some("set ingress = \"poll\" in [telegram] once a token is there".to_owned());
        report.add("telegram", State::Warn, "ingress is off: no message arrives", hint);
    }
    let token = match secrets::telegram_token(home, telegram) {
        Ok(Secret::Found(token)) => token,
        Ok(Secret::Missing(problem)) => {
            let hint = Some("export it, or set token_file".to_owned());
            return report.add("telegram", State::Fail, problem, hint);
        }
        Ok(Secret::NotNamed) => {
            let hint = Some("set token_env or token_file in [telegram]".to_owned());
            return report.add("telegram", State::Fail, "no token is named", hint);
        }
        Err(failure) => return report.failure("telegram", failure),
    };
    let client = match client(&telegram.api_url, token.into_inner()) {
        Ok(client) => client,
        Err(failure) => return report.failure("telegram", failure),
    };
    match client.get_me().await {
        Ok(_) => report.add("telegram", State::Ok, "the token is valid", None),
        Err(ClientError::Unauthorized) => {
            let hint = Some("ask @BotFather for the token".to_owned());
            return report.add("telegram", State::Fail, "Telegram refuses the token", hint);
        }
        Err(error) => return report.add("telegram", State::Fail, chain(&error), None),
    }
    if telegram.ingress == Ingress::Poll {
        match client.get_webhook_info().await {
            Ok(info) if !info.url.is_empty() => {
                let hint = Some("thought telegram-webhook-delete, or set ingress = \"webhook\"".to_owned());
                report.add("telegram", State::Fail, "a webhook is set, so polling gets nothing", hint);
            }
            Ok(_) => {}
            Err(error) => report.add("telegram", State::Warn, chain(&error), None),
        }
    }
    if telegram.ingress == Ingress::Webhook {
        match webhook::standing(home, telegram, &client).await {
            Ok(text) => report.add("telegram", State::Ok, text, None),
            Err(failure) => report.failure("telegram", failure),
        }
    }
    if telegram.allowed_chats.is_empty() {
        let hint = Some("write to the bot while thought serve runs, then thought doctor --who".to_owned());
        report.add("telegram", State::Warn, "no chat is admitted (allowed_chats is empty)", hint);
    }
}

/// A Bot API client for a configured root and token.
///
/// # Errors
/// [`Failure`] for a token or root that cannot be one.
pub fn client(api_url: &str, token: String) -> Result<BotClient, Failure> {
    let refused = |error: &dyn std::error::Error| Failure::refused("telegram", error.to_string());
    let token = thought_telegram::client::BotToken::new(token).map_err(|error| refused(&error))?;
    let config = ClientConfig { api_url: api_url.to_owned(), token, timeouts: Default::default() };
    BotClient::new(config).map_err(|error| refused(&error))
}
