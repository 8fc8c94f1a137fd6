//! A store with documents and a declaration, a consumer on it, and what the process holds open.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use thought_cli::compose::SystemClock;
use thought_cli::jail::Jailer;
use thought_contract::draft;
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload::{FileVersion, Incident, TelegramMessage};
use thought_contract::shipped::{ShippedPlace, shipped_in};
use thought_contract::time::Clock;
use thought_protocol::{DocumentId, EventId, Sensitive, Sha256Hex, VersionId};
use thought_runtime::consumer::{Consumer, HeldNotice, Parts, Settings, StopSwitch, stop_switch};
use thought_runtime::context::NoImages;
use thought_runtime::declarations;
use thought_runtime::port::{NoCorrections, NoCrashPoints, TokioSleeper};
use thought_sandbox::{Launcher, Tier, WorkerLimits};
use thought_store::Store;
use thought_store::command::{NewVersion, Presence};
use thought_store::handle::Reader;
use thought_store::row::{AttemptRow, EventFilter, RunFilter, RunRow};
use thought_store_sqlite::{OpenOptions, SqliteStore};
use tokio::task::JoinHandle;

use crate::model::{OneAnswer, Unchanged};

const TELEGRAM: &str = "stream-telegram-conversation";
/// Words that stand in the documents, in messages, and in no log.
pub(crate) const REMEMBERED: &str = "quetzal-remembered";
pub(crate) const ASKED: &str = "quetzal-asked";

/// Far beyond what anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn source() -> SourceName {
    SourceName::new("telegram:stream")
}

/// A launcher of this program as a worker.
pub(crate) fn launcher(tier: Tier, argument: &'static str) -> Launcher {
    of_path(Path::new("/proc/self/exe"), tier, argument)
}

pub(crate) fn of_path(path: &Path, tier: Tier, argument: &'static str) -> Launcher {
    Launcher::of_path(path, tier, WorkerLimits::default(), argument).unwrap().with_seal_timeout(PATIENCE)
}

pub(crate) fn jailer(launcher: Launcher, patience: Duration) -> Arc<Jailer> {
    Arc::new(Jailer::start(launcher).unwrap().with_patience(patience))
}

/// A runtime as `serve` has it.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).max_blocking_threads(8).enable_all().build().unwrap().block_on(work)
}

pub(crate) struct Home {
    _folder: TempDir,
    store: Store,
    pub(crate) model: Arc<OneAnswer>,
    messages: i64,
}

/// A consumer at work.
pub(crate) struct AtWork {
    task: JoinHandle<()>,
    stop: StopSwitch,
}

impl AtWork {
    pub(crate) async fn stop(self) {
        self.stop.stop();
        self.task.await.unwrap();
    }
}

impl Home {
    pub(crate) async fn new(timeout_seconds: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = SqliteStore::open(&folder.path().join("thought.db"), OpenOptions::create()).unwrap();
        let home = Self {
            _folder: folder,
            store: Store::new(engine, Arc::new(SystemClock)),
            model: Arc::default(),
            messages: 0,
        };
        home.model.says_text();
        home.document("identity.md", "identity").await;
        home.document("memory.md", "memory").await;
        home.install(timeout_seconds).await;
        let dispatcher = home.store.dispatcher(source());
        dispatcher.set_presence(Presence::Away).await.unwrap();
        home
    }

    async fn install(&self, timeout_seconds: u32) {
        let find = |place, file: &str| shipped_in(place).find(|shipped| shipped.name == file).unwrap().text;
        let text = find(ShippedPlace::Agents, &format!("{TELEGRAM}.yaml"))
            .replace("timeoutSeconds: 300", &format!("timeoutSeconds: {timeout_seconds}"))
            .replace(
                "proposals: []",
                "proposals:\n    - memory-change\n    - self-correction\n    - focus-declaration",
            );
        let prompt = find(ShippedPlace::Prompts, &format!("{TELEGRAM}.md"));
        let package = declarations::check(&text).unwrap().with_prompt(prompt.as_bytes().to_vec()).unwrap();
        let (reader, activator) = (self.reader(), self.store.activator());
        let worker = Sha256Hex::of(b"worker");
        declarations::install(&reader, &activator, &SystemClock, &package, &worker).await.unwrap();
    }

    async fn document(&self, path: &str, id: &str) {
        let document = DocumentId::of("document", &[json!(SourceName::context()), json!(path)]);
        let content = format!("---\nid: {id}\n---\n{REMEMBERED}\n").into_bytes();
        let sha256 = Sha256Hex::of(&content);
        let version = VersionId::of("version", &[json!(document), json!(sha256)]);
        let payload = FileVersion {
            document_id: document.clone(),
            version_id: version.clone(),
            previous_version_id: None,
            path: path.to_owned(),
            sha256: sha256.clone(),
            byte_count: content.len() as u64,
            content_type: "text/markdown".to_owned(),
            frontmatter_id: Some(id.to_owned()),
        };
        let draft = draft::file_version(&payload, SystemClock.now()).unwrap();
        let row = NewVersion {
            document,
            version,
            previous: None,
            source: SourceName::context(),
            path: path.to_owned(),
            sha256,
            content_type: "text/markdown".to_owned(),
            frontmatter_id: Some(id.to_owned()),
            content: Sensitive::new(content),
            event: draft.id().clone(),
        };
        self.store.filesystem().version(draft, row).await.unwrap();
    }

    pub(crate) fn reader(&self) -> Reader {
        self.store.reader()
    }

    /// Starts the consumer with a jail.
    pub(crate) async fn consumer(&self, jail: Arc<Jailer>) -> AtWork {
        let (stop, signal) = stop_switch();
        let parts = Parts {
            reader: self.reader(),
            runs: self.store.consumer(TELEGRAM),
            notices: self.store.notices("runtime"),
            incidents: self.store.incidents("runtime"),
            jail,
            model: self.model.clone(),
            documents: Arc::new(Unchanged),
            corrections: Arc::new(NoCorrections),
            images: Arc::new(NoImages),
            clock: Arc::new(SystemClock),
            sleeper: Arc::new(TokioSleeper),
            crash: Arc::new(NoCrashPoints),
            settings: Settings { held_notice: HeldNotice::Off, stop_grace_ms: 10_000 },
        };
        let consumer = Consumer::open(parts, signal).await.unwrap();
        let task = tokio::spawn(async move {
            let _ended = consumer.run().await.unwrap();
        });
        AtWork { task, stop }
    }

    /// A person's message, which tells the worker what to do.
    pub(crate) async fn tell(&mut self, word: &str) -> EventId {
        self.messages += 1;
        let payload = TelegramMessage {
            chat_id: 4242,
            thread_id: None,
            message_id: self.messages,
            user_id: 4242,
            text: Some(format!("{ASKED} {}{word}", crate::worker::TELLS)),
            images: vec![],
            reply_to_message_id: None,
            media_group_id: None,
        };
        let draft = draft::telegram_message(&source(), 1, &payload, SystemClock.now()).unwrap();
        self.store.telegram_ingress(source()).admit(&[self.messages], draft).await.unwrap().id
    }

    /// The run on a message, once it has ended, and its attempts.
    pub(crate) async fn ended(&self, trigger: &EventId, word: &str) -> (RunRow, Vec<AttemptRow>) {
        let began = Instant::now();
        loop {
            let filter = RunFilter { trigger: Some(trigger.clone()), limit: 10, ..RunFilter::default() };
            let runs = self.reader().runs(filter).await.unwrap();
            if let [run] = runs.as_slice()
                && !run.state.is_open()
            {
                let attempts = self.reader().attempts(run.id.clone()).await.unwrap();
                return (run.clone(), attempts);
            }
            assert!(began.elapsed() < PATIENCE, "{word}: the run never ended");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The kind of the incident that names a run; it is recorded after the run has ended.
    pub(crate) async fn incident(&self, run: &RunRow) -> String {
        let began = Instant::now();
        loop {
            let filter =
                EventFilter { types: vec![EventType::Incident], limit: 1_000, ..EventFilter::default() };
            let events = self.reader().events(filter).await.unwrap();
            let mut payloads = events.iter().map(|event| event.payload::<Incident>().unwrap());
            if let Some(incident) = payloads.find(|incident| incident.subject == run.id.as_str()) {
                return incident.kind;
            }
            assert!(began.elapsed() < PATIENCE, "no incident of {}", run.id);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// The ids of this process's children, zombies included.
pub(crate) fn children() -> Vec<u32> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process may end while one looks.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        if after_name.split(' ').nth(1) == Some(&me) {
            found.push(pid);
        }
    }
    found
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many descriptors are open, once what the libraries and the launching thread keep for good is there.
pub(crate) fn standing() -> usize {
    block_on(async { drop(launcher(Tier::Full, crate::worker::DEAD).launch()) });
    descriptors()
}

/// Requires that nothing is left that was not there before. Reaping goes on in the background.
pub(crate) fn nothing_left(before: usize) {
    let began = Instant::now();
    while !children().is_empty() || descriptors() > before {
        let (children, descriptors) = (children(), descriptors());
        assert!(began.elapsed() < PATIENCE, "left: {children:?}, {descriptors} descriptors of {before}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
