//! Composition: where ports meet adapters. The only place that holds a whole store; every command gets the handles it
//! needs from here, and nothing more.

use std::future::Future;
use std::sync::Arc;

use thought_contract::time::{Clock, Timestamp};
use thought_store::{Images, Store};
use thought_store_sqlite::{OpenOptions, SqliteStore};

use crate::args::{Acknowledge, AgentSend, Cli, Command, Global};
use crate::blobs::HomeBlobs;
use crate::command::{
    completions, context, decisions, declaration, delivery, events, export, judgments, lineage, mail, menu,
    proposals, review, runs, status, verify, webhook,
};
use crate::config::LogLevel;
use crate::exit::{Exit, Failure, chain};
use crate::home::{self, Home};
use crate::print::{Consent, Content, Printer};
use crate::word::Word;
use crate::{appends, backup, demo, doctor, init, jail, logging, serve};

/// The machine's clock: the one place that asks for the time of day.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Timestamp::from_ms(i64::try_from(since).unwrap_or(i64::MAX))
    }
}

/// Opens the store of a home, making it when it is not there.
///
/// # Errors
/// [`Failure`]: newer than this binary (3), unreachable (8).
pub fn open_store(home: &Home) -> Result<Store, Failure> {
    let engine = SqliteStore::open(&home.database(), OpenOptions::create())?;
    Ok(Store::new(engine, Arc::new(SystemClock)))
}

/// Runs a future of a short command on this thread.
///
/// # Errors
/// What the future failed with; [`Failure`] when no runtime can be had.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::internal(&error))?.block_on(work)
}

/// Runs a command.
///
/// # Errors
/// [`Failure`] with the exit code.
pub fn run(cli: Cli, printer: Printer) -> Result<(), Failure> {
    let Cli { global, command } = cli;
    match command {
        Command::Init { provider, model } => init::run(global.home.as_deref(), printer, provider, model),
        Command::Completions { shell } => completions::print(shell),
        Command::Man { output } => {
            let count = completions::write_pages(&output)?;
            printer.remark(&format!("wrote {count} pages to {}", output.display()));
            Ok(())
        }
        Command::Appends => appends::print(printer),
        Command::Demo => demo::run(&global, printer),
        Command::Restore { input } => {
            logging::start(global.log_level.unwrap_or_default(), global.log_format.unwrap_or_default());
            let folder = home::locate(global.home.as_deref())?;
            block_on(backup::restore(&input, &folder, printer))
        }
        Command::AgentSend(options) if options.socket.is_some() => {
            mail_through_socket(&global, printer, &options)
        }
        command => in_home(&global, printer, command),
    }
}

fn in_home(global: &Global, printer: Printer, command: Command) -> Result<(), Failure> {
    let home = Home::open(global.home.as_deref())?;
    let log = &home.config.log;
    let level = match (&command, log.level) {
        // A person reads along: what happened is told in words, and a log between them would only hide it.
        (Command::Review { .. }, LogLevel::Warn | LogLevel::Info) => LogLevel::Error,
        (_, level) => level,
    };
    logging::start(global.log_level.unwrap_or(level), global.log_format.unwrap_or(log.format));
    match command {
        Command::Serve => serve::run(home, printer),
        Command::Consume { agent } => serve::alone::run(home, printer, &agent),
        Command::AgentSend(options) => {
            let errand = mail::errand(&options)?;
            mail::check_owner(&home, &errand)?;
            block_on(async { mail::send(&open_store(&home)?, printer, &errand).await })
        }
        Command::Doctor { clear_lock: true, yes, .. } => {
            let yes = if yes { doctor::lock::Yes::Said } else { doctor::lock::Yes::ToBeAsked };
            doctor::lock::clear(&home, printer, yes)
        }
        Command::Doctor { who: false, .. } => block_on(doctor::run(&home, printer)),
        Command::TelegramWebhookSet => block_on(webhook::set(&home, printer)),
        Command::TelegramWebhookDelete => block_on(webhook::delete(&home, printer)),
        Command::DeclarationCheck { file } => declaration::check(&home, printer, &file),
        command => {
            let store = open_store(&home)?;
            block_on(with_store(&home, &store, printer, command))
        }
    }
}

/// `agent-send` of an agent's own account: it has no home, so nothing of one is looked at.
fn mail_through_socket(global: &Global, printer: Printer, options: &AgentSend) -> Result<(), Failure> {
    logging::start(global.log_level.unwrap_or_default(), global.log_format.unwrap_or_default());
    let Some(socket) = &options.socket else {
        return Err(Failure::new(Exit::Internal, "internal", "dispatch a command"));
    };
    let errand = mail::errand(options)?;
    block_on(mail::send_through(socket, printer, &errand))
}

async fn with_store(home: &Home, store: &Store, printer: Printer, command: Command) -> Result<(), Failure> {
    let reader = &store.reader();
    match command {
        Command::Verify { against } => verify::run(reader, &HomeBlobs::open(home)?, printer, against).await,
        Command::Backup { output } => backup::backup(home, store, printer, &output).await,
        Command::Status => status::show(home, reader, printer).await,
        Command::Doctor { .. } => doctor::who(home, reader, printer).await,
        Command::EventList { event_type, source, after, page, acknowledge } => {
            let content = content(acknowledge);
            let options = events::ListOptions { event_type, source, after, limit: page.limit, content };
            events::list(reader, printer, options).await
        }
        Command::EventShow { id, acknowledge } => {
            events::show(reader, printer, &id, consent(acknowledge)).await
        }
        command @ (Command::Review { .. }
        | Command::ProposalList { .. }
        | Command::ProposalShow { .. }
        | Command::JudgmentList { .. }) => suggested(home, store, printer, command).await,
        command @ (Command::ProposalDecision(_)
        | Command::ProposalProject { .. }
        | Command::ProposalRepropose(_)
        | Command::ProposalRevert(_)) => word_of(home, store, printer, command).await,
        command @ (Command::JudgmentRelease { .. }
        | Command::PrivateTrainingExport { .. }
        | Command::TrainingExport { .. }) => training(home, store, printer, command).await,
        Command::Lineage { id } => lineage::show(reader, printer, &id).await,
        command @ (Command::RunList { .. }
        | Command::RunShow { .. }
        | Command::RunAbandon { .. }
        | Command::RunRetry { .. }
        | Command::ContextShow { .. }) => of_runs(home, store, printer, command).await,
        Command::DeclarationList => declaration::list(home, reader, printer).await,
        Command::DeclarationActivate { file } => declaration::activate(home, store, printer, &file).await,
        command @ (Command::TelegramMenuRegister { .. }
        | Command::DeliveryRetry { .. }
        | Command::DeliveryConfirm { .. }) => by_channel(home, store, printer, command).await,
        Command::Scan => serve::scan_once(home, store, printer).await,
        // The rest is served before a store is opened.
        Command::Init { .. }
        | Command::Appends
        | Command::Demo
        | Command::Restore { .. }
        | Command::Serve
        | Command::Consume { .. }
        | Command::AgentSend(_)
        | Command::DeclarationCheck { .. }
        | Command::TelegramWebhookSet
        | Command::TelegramWebhookDelete
        | Command::Completions { .. }
        | Command::Man { .. } => Err(Failure::new(Exit::Internal, "internal", "dispatch a command")),
    }
}

/// Evidence of execution.
async fn of_runs(home: &Home, store: &Store, printer: Printer, command: Command) -> Result<(), Failure> {
    let reader = &store.reader();
    match command {
        Command::RunList { agent, state, after, page } => {
            runs::list(reader, printer, runs::ListOptions { agent, state, after, limit: page.limit }).await
        }
        Command::RunShow { id } => runs::show(reader, printer, &id).await,
        Command::RunAbandon { id } => runs::abandon(store, printer, &id).await,
        Command::RunRetry { id } => runs::retry(store, printer, &id).await,
        Command::ContextShow { run, acknowledge } => {
            let images = images(home)?;
            context::show((reader, &*images), printer, &run, consent(acknowledge)).await
        }
        _ => Err(Failure::new(Exit::Internal, "internal", "dispatch a command")),
    }
}

/// What waits for a person's word, and what came of earlier ones.
async fn suggested(home: &Home, store: &Store, printer: Printer, command: Command) -> Result<(), Failure> {
    let reader = &store.reader();
    match command {
        Command::Review { actor, acknowledge } => {
            let options = review::Options { consent: consent(acknowledge), actor };
            review::run(home, store, printer, options).await
        }
        Command::JudgmentList { after, page, acknowledge } => {
            let options = judgments::ListOptions { after, limit: page.limit, content: content(acknowledge) };
            judgments::list(reader, printer, options).await
        }
        Command::ProposalList { state, kind, after, page } => {
            let options = proposals::ListOptions { state, kind, after, limit: page.limit };
            proposals::list((home, reader, &SystemClock), printer, options).await
        }
        Command::ProposalShow { id, acknowledge } => {
            let images = images(home)?;
            let parts = (home, reader, &*images, &SystemClock as &dyn Clock);
            proposals::show(parts, printer, &id, consent(acknowledge)).await
        }
        _ => Err(Failure::new(Exit::Internal, "internal", "dispatch a command")),
    }
}

/// A person's word, for scripts.
async fn word_of(home: &Home, store: &Store, printer: Printer, command: Command) -> Result<(), Failure> {
    let word = Word::open(home, store, &images(home)?)?;
    let parts = (&store.reader(), &word);
    match command {
        Command::ProposalDecision(options) => decisions::decide(parts, printer, &options).await,
        Command::ProposalProject { proposal } => {
            decisions::project(parts, printer, proposal.as_deref()).await
        }
        Command::ProposalRepropose(options) => decisions::repropose(parts, printer, &options).await,
        Command::ProposalRevert(options) => decisions::revert(parts, printer, &options).await,
        _ => Err(Failure::new(Exit::Internal, "internal", "dispatch a command")),
    }
}

/// What judgments become, in this house or beyond it.
async fn training(home: &Home, store: &Store, printer: Printer, command: Command) -> Result<(), Failure> {
    let images = images(home)?;
    let parts = (home, store, &*images);
    match command {
        Command::JudgmentRelease { id, acknowledge_external, actor } => {
            let acknowledged = export::Acknowledged::of(acknowledge_external);
            let whom = (id.as_str(), actor.as_deref());
            export::release(parts, printer, whom, acknowledged).await
        }
        Command::PrivateTrainingExport { output, acknowledge_sensitive_private_training } => {
            let acknowledged = export::Acknowledged::of(acknowledge_sensitive_private_training);
            export::private(parts, printer, &output, acknowledged).await
        }
        Command::TrainingExport { output } => export::external(parts, printer, &output).await,
        _ => Err(Failure::new(Exit::Internal, "internal", "dispatch a command")),
    }
}

/// What a person says about the channel.
async fn by_channel(home: &Home, store: &Store, printer: Printer, command: Command) -> Result<(), Failure> {
    match command {
        Command::TelegramMenuRegister { skip_help_notice } => {
            let help = if skip_help_notice { menu::HelpNotice::Skip } else { menu::HelpNotice::Send };
            menu::register(home, store, printer, help).await
        }
        Command::DeliveryRetry { id } => {
            delivery::say(home, store, printer, &id, delivery::Word::Again).await
        }
        Command::DeliveryConfirm { id, actor } => {
            delivery::say(home, store, printer, &id, delivery::Word::Seen { actor }).await
        }
        _ => Err(Failure::new(Exit::Internal, "internal", "dispatch a command")),
    }
}

/// Where the images of frozen contexts are read.
///
/// # Errors
/// As [`HomeBlobs::open`].
pub fn images(home: &Home) -> Result<Arc<dyn Images>, Failure> {
    Ok(Arc::new(HomeBlobs::open(home)?))
}

/// Consent of a list, which is never asked for: a person cannot say yes to what is not known yet.
const fn content(acknowledge: Acknowledge) -> Content {
    if acknowledge.acknowledged { Content::Shown } else { Content::Dark }
}

/// Consent of a command that shows one thing.
const fn consent(acknowledge: Acknowledge) -> Consent {
    if acknowledge.acknowledged { Consent::Given } else { Consent::ToBeAsked }
}

/// Hash of the binary that will be jailed.
///
/// # Errors
/// [`Failure`] (8) when it cannot be read.
pub fn worker_sha256(home: &Home) -> Result<thought_protocol::Sha256Hex, Failure> {
    let launcher = jail::launcher(jail::tier(home.config.sandbox.mode))?;
    let hex = launcher
        .sha256_hex()
        .map_err(|error| Failure::new(Exit::Machine, "sandbox-unavailable", chain(&error)))?;
    hex.parse().map_err(|error: thought_protocol::hash::HashError| Failure::internal(&error))
}
