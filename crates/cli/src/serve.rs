//! `serve`: every role of a home in one process, and `scan`.
//!
//! It starts the roles, says one line once nothing more can be missing (store, locks, a sealed worker, the documents),
//! and ends them when it is told to. A role that another process holds is left to its holder.

pub mod alone;
mod changeover;
mod channel;
mod documents;
mod hardening;
mod newcomers;
pub mod socket;
mod word;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use thought_protocol::Sha256Hex;
use thought_runtime::changeover::Asked;
use thought_runtime::consumer::{self, Consumer, HeldNotice, Parts, Settings, StopSignal};
use thought_runtime::declarations::{self, Installed, Standing};
use thought_runtime::port::TokioSleeper;
use thought_sandbox::SealEvidence;
use thought_store::{Images, Store};
use thought_telegram::stop::Stop;
use tokio::task::JoinSet;

use crate::blobs::HomeBlobs;
use crate::command::declaration as files;
use crate::compose::{SystemClock, open_store, worker_sha256};
use crate::crash::EnvironmentPoints;
use crate::exit::{Exit, Failure, chain};
use crate::home::Home;
use crate::jail::{self, Jailer};
use crate::lock::{self, RoleLock, Taken};
use crate::model::Models;
use crate::print::Printer;
use crate::word::Word;

pub use documents::scan_once;

/// How long a stop waits for what is in flight.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// What a role gets on top to put its things away.
const STOP_MARGIN: Duration = Duration::from_secs(2);
/// Threads that carry the roles; the store and the jail have their own.
const WORKER_THREADS: usize = 2;
/// Threads for what blocks: reaping, scanning.
const BLOCKING_THREADS_MAX: usize = 8;
/// Stack of each of these threads, bytes.
const STACK_BYTES: usize = 512 * 1024;

/// A home with everything that must be there before the first role starts.
pub struct Ready {
    home: Arc<Home>,
    store: Store,
    seal: SealEvidence,
    jail: Arc<Jailer>,
    models: Arc<Models>,
    documents: Arc<documents::ScannedDocuments>,
    blobs: HomeBlobs,
    agents: Vec<String>,
    locks: Vec<RoleLock>,
    held_elsewhere: Vec<String>,
    sockets: Vec<socket::Bound>,
}

/// `serve`.
///
/// # Errors
/// [`Failure`]: another `serve` on this home (4), no jail or store (8), a refused declaration (3).
pub fn run(home: Home, printer: Printer) -> Result<(), Failure> {
    hardening::apply()?;
    runtime()?.block_on(async {
        let began = tokio::time::Instant::now();
        let ready = prepare(home, printer).await?;
        let signals = Signals::listen()?;
        announce(&ready, printer, began.elapsed())?;
        work(ready, signals).await
    })
}

/// The runtime that carries roles.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build();
    built.map_err(|error| Failure::internal(&error))
}

/// Takes everything that the roles need, in the order in which it is cheap to fail.
///
/// # Errors
/// As [`run`].
pub async fn prepare(home: Home, printer: Printer) -> Result<Ready, Failure> {
    let mut locks = vec![serve_lock(&home)?];
    // The first worker seals itself while the store opens; without it nothing is installed and nothing scanned.
    let jail = Arc::new(Jailer::start(jail::launcher(jail::tier(home.config.sandbox.mode))?)?);
    let store = open_store(&home)?;
    let blobs = HomeBlobs::open(&home)?;
    let models = Arc::new(Models::open(&home)?);
    for problem in models.problems() {
        printer.remark(&format!("{problem}: its runs wait"));
    }
    let seal = jail.warm_up()?;
    install(&home, &store, printer).await?;
    let documents = Arc::new(documents::ScannedDocuments::open(&home, &store)?);
    documents.first_scan(printer).await?;
    let agents = store.reader().declarations().await?;
    let agents = agents.into_iter().filter(|row| row.activity == thought_store::row::Activity::Active);
    let agents: Vec<String> = agents.map(|row| row.id).collect();
    let mut held_elsewhere = Vec::new();
    let channel = ["ingress", lock::DISPATCH].map(str::to_owned);
    for role in channel.into_iter().chain(agents.iter().map(|agent| lock::consumer(agent))) {
        match lock::patiently(|| lock::take(&home, &role))? {
            Taken::Ours(lock) => locks.push(lock),
            Taken::Held => held_elsewhere.push(role),
        }
    }
    let sockets = socket::bind(&home, &store).await?;
    let home = Arc::new(home);
    Ok(Ready { home, store, seal, jail, models, documents, blobs, agents, locks, held_elsewhere, sockets })
}

fn serve_lock(home: &Home) -> Result<RoleLock, Failure> {
    match lock::patiently(|| lock::take_home(home))? {
        Taken::Ours(lock) => Ok(lock),
        Taken::Held => {
            let message = format!("another thought serve works on {}", home.path.display());
            Err(Failure::new(Exit::Conflict, "already-serving", message)
                .hint("stop it first, or name another --home"))
        }
    }
}

/// Installs what was never installed; says what differs and how to activate it.
async fn install(home: &Home, store: &Store, printer: Printer) -> Result<(), Failure> {
    let reader = store.reader();
    let mut worker: Option<Sha256Hex> = None;
    let mut remarks = Vec::new();
    for file in files::files(home)? {
        let package = files::read(home, &file)?;
        let standing =
            declarations::standing(&reader, &package).await.map_err(|error| Failure::internal(&error))?;
        if standing != Standing::NotInstalled {
            remarks.extend(files::difference(home, &file, &package, &standing));
            continue;
        }
        let sha256 = match worker.take() {
            Some(sha256) => sha256,
            None => worker_sha256(home)?,
        };
        let installed =
            declarations::install(&reader, &store.activator(), &SystemClock, &package, &sha256).await;
        let installed = installed.map_err(|error| files::refusal(&error, &file))?;
        if let Installed::Now { .. } = installed {
            let declaration = package.declaration();
            printer.remark(&format!("installed {} v{}", declaration.id(), declaration.version()));
        }
        worker = Some(sha256);
    }
    for remark in remarks {
        printer.remark(&remark);
    }
    Ok(())
}

fn announce(ready: &Ready, printer: Printer, took: Duration) -> Result<(), Failure> {
    let telegram = ready.home.config.telegram.as_ref();
    let ingress = telegram.map_or("off", |telegram| telegram.ingress.as_str());
    let source = telegram.map_or("telegram:stream", |telegram| telegram.source.as_str());
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let value: Value = json!({
        "ready": true, "home": ready.home.path, "ingress": ingress, "source": source, "agents": ready.agents,
        "sandbox": jail::tier(ready.home.config.sandbox.mode).name(), "milliseconds": took_ms,
        "leftToTheirHolders": ready.held_elsewhere,
    });
    printer.either(&value, || {
        let channel = match ingress {
            "poll" => format!("polling {source}"),
            "webhook" => format!("{source} by webhook"),
            _ => "no channel (telegram.ingress is off)".to_owned(),
        };
        let agents = ready.agents.len();
        vec![format!("ready in {took_ms} ms · {channel} · {agents} agents")]
    })
}

/// Runs the roles until a signal or until one of them ends by itself, then ends them all.
async fn work(mut ready: Ready, mut signals: Signals) -> Result<(), Failure> {
    let mut roles = start(&mut ready).await?;
    let mut news = newcomers::news(&ready);
    let ended = loop {
        tokio::select! {
            () = signals.received() => break Ok(()),
            joined = roles.consumers.join_next(), if !roles.consumers.is_empty() => break Err(ended_by_itself(joined)),
            joined = roles.projectors.join_next() => break Err(ended_by_itself(joined)),
            joined = roles.others.join_next() => break Err(ended_by_itself(joined)),
            () = newcomers::told(&mut news) => newcomers::join(&mut ready, &mut roles).await,
        }
    };
    tracing::info!(target: "thought::serve", "stopping");
    roles.finish().await;
    tracing::info!(target: "thought::serve", locks = ready.locks.len(), "stopped");
    ended
}

fn ended_by_itself(joined: Option<Result<Result<(), Failure>, tokio::task::JoinError>>) -> Failure {
    match joined {
        Some(Ok(Err(failure))) => failure,
        Some(Err(error)) => Failure::internal(&error),
        Some(Ok(Ok(()))) | None => Failure::new(Exit::Internal, "role-ended", "a role ended by itself"),
    }
}

/// The roles at work, and what ends them.
pub struct Roles {
    consumers: JoinSet<Result<(), Failure>>,
    others: JoinSet<Result<(), Failure>>,
    projectors: JoinSet<Result<(), Failure>>,
    stop_consumers: consumer::StopSwitch,
    consumers_told: (StopSignal, Asked),
    stop_projectors: tokio::sync::watch::Sender<bool>,
    stop_others: tokio::sync::watch::Sender<bool>,
}

impl Roles {
    /// Ends the roles: runs first, then what follows from a person's word, then the channel: what either still leaves for a
    /// chat meets a dispatcher that is at work.
    pub async fn finish(mut self) {
        self.stop_consumers.stop();
        end("consumers", &mut self.consumers).await;
        self.stop_projectors.send_replace(true);
        end("projectors", &mut self.projectors).await;
        self.stop_others.send_replace(true);
        end("channel", &mut self.others).await;
    }
}

async fn end(what: &str, tasks: &mut JoinSet<Result<(), Failure>>) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_GRACE + STOP_MARGIN, all).await.is_err() {
        tracing::warn!(target: "thought::serve", what, "a role did not end in time and is cut");
        tasks.shutdown().await;
    }
}

/// Starts every role that is this process's own.
///
/// # Errors
/// [`Failure`] when a role cannot be started.
pub async fn start(ready: &mut Ready) -> Result<Roles, Failure> {
    let (stop_consumers, signal) = consumer::stop_switch();
    let (stop_projectors, projectors_told) = tokio::sync::watch::channel(false);
    let (stop_others, others_told) = tokio::sync::watch::channel(false);
    let stop = Stop::new(others_told);
    let sockets = std::mem::take(&mut ready.sockets);
    let ready = &*ready;
    let is_ours = |role: &str| !ready.held_elsewhere.iter().any(|held| held == role);
    let mut others = JoinSet::new();
    let own = channel::Own { ingress: is_ours("ingress"), dispatch: is_ours("dispatch") };
    let (switch, freeze) = thought_telegram::spool::freeze();
    let asked =
        changeover::follow((&ready.home, &ready.store), &mut others, &stop, own.ingress.then_some(switch));
    channel::start(ready, &mut others, &stop, own, freeze)?;
    let mut consumers = JoinSet::new();
    for agent in ready.agents.iter().filter(|agent| is_ours(&lock::consumer(agent))) {
        consume(ready, agent, (signal.clone(), asked.clone()), &mut consumers).await?;
    }
    let mut projectors = JoinSet::new();
    word::start(ready, &mut projectors, Stop::new(projectors_told));
    if own.dispatch {
        word::remind(ready, &mut others, stop.clone());
    }
    socket::start(sockets, &mut others, &stop);
    ready.documents.clone().follow(&mut others, stop);
    let consumers_told = (signal, asked);
    Ok(Roles { consumers, others, projectors, stop_consumers, consumers_told, stop_projectors, stop_others })
}

async fn consume(
    ready: &Ready,
    agent: &str,
    (stop, asked): (StopSignal, Asked),
    tasks: &mut JoinSet<Result<(), Failure>>,
) -> Result<(), Failure> {
    let failure_notice = ready.home.config.telegram.as_ref().is_some_and(|telegram| telegram.failure_notice);
    let settings = Settings {
        held_notice: if failure_notice { HeldNotice::On } else { HeldNotice::Off },
        stop_grace_ms: u64::try_from(STOP_GRACE.as_millis()).unwrap_or(u64::MAX),
    };
    let (store, agent) = (ready.store.clone(), agent.to_owned());
    let blobs = ready.blobs.clone();
    let (jail, models, documents) = (ready.jail.clone(), ready.models.clone(), ready.documents.clone());
    let parts = move || Parts {
        reader: store.reader(),
        runs: store.consumer(&agent),
        notices: store.notices("runtime"),
        incidents: store.incidents("runtime"),
        jail: jail.clone(),
        model: models.clone(),
        documents: documents.clone(),
        corrections: Arc::new(word::Settler::new(&store)),
        images: Arc::new(blobs.clone()),
        clock: Arc::new(SystemClock),
        sleeper: Arc::new(TokioSleeper),
        crash: Arc::new(EnvironmentPoints::of_this_process()),
        settings,
    };
    let first = Consumer::open(parts(), stop.clone())
        .await
        .map_err(|error| Failure::refused("declaration", chain(&error)))?;
    tasks.spawn(changeover::consume(first, parts, ready.store.activator(), (stop, asked)));
    Ok(())
}

impl Ready {
    /// The store, for the demonstration's own looks.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Where the images of frozen contexts are read.
    pub fn images(&self) -> Arc<dyn Images> {
        Arc::new(self.blobs.clone())
    }

    /// What a person's word sets in motion, over the documents that this process holds.
    pub fn word(&self) -> Word {
        Word::with(&self.home, &self.store, &self.images(), self.documents.documents().clone())
    }

    /// What the ready worker is sealed with.
    pub fn seal(&self) -> SealEvidence {
        self.seal
    }

    /// The declarations that are consumed.
    pub fn agents(&self) -> &[String] {
        &self.agents
    }
}

/// The signals that end a `serve`.
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|error| Failure::internal(&error));
        Ok(Self { term: listen(SignalKind::terminate())?, int: listen(SignalKind::interrupt())? })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
