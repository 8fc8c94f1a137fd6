//! A home on a file system of memory, and the processes that live on it one after another. Each has every part of the
//! product that this world drives, composed as `serve` and the commands compose it, over ports that the seed owns.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use thought_authority::correct::{self, Corrections};
use thought_authority::decide::{Desk, Operators};
use thought_authority::filesystem::FilesystemConnector;
use thought_authority::lock::OwnEvidence;
use thought_authority::materialize::{MaterializerParts, MemoryMaterializer};
use thought_authority::operator::OperatorDesk;
use thought_authority::project::Projector;
use thought_authority::root::ContextRoot;
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::shipped::{ShippedPlace, shipped_in};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::Sha256Hex;
use thought_runtime::consumer::{HeldNotice, Parts, Settings};
use thought_runtime::declarations::{self, Package};
use thought_runtime::port::{self, CorrectionsError, Documents, DocumentsError, TokioSleeper};
use thought_store::handle::Reader;
use thought_store::{BoxFuture, NoImages, Store};
use thought_store_sqlite::{OpenOptions, SqliteStore};
use thought_telegram::client::BotClient;
use thought_telegram::dispatcher::{DispatchOptions, Dispatcher, DispatcherPorts};
use thought_telegram::ids::{ChatId, UserId};
use thought_telegram::ingress::{Allowed, PollOptions, Poller};
use thought_telegram::notices::Switches;
use thought_telegram::spool::{BlobError, Blobs, Freeze, PhotoPorts, SpoolOptions, SpoolPorts, Spooler};

use crate::channel::Channel;
use crate::chaos::Chaos;
use crate::dice::Dice;
use crate::engine::Chaotic;
use crate::provider::Provider;

pub(crate) const TELEGRAM: &str = "stream-telegram-conversation";
pub(crate) const AGENT: &str = "stream-agent-conversation";
pub(crate) const DECLARATIONS: [&str; 2] = [TELEGRAM, AGENT];
/// The chats that are admitted, each of one person.
pub(crate) const CHATS: [i64; 3] = [101, 102, 103];
/// A chat that is not.
pub(crate) const STRANGER: i64 = 999;
const BYTES_MAX: u64 = 65_536;
const SWITCHES: Switches = Switches { failure_notice: true, notices: true };

pub(crate) fn source() -> SourceName {
    SourceName::new("telegram:stream")
}

/// A calendar that ticks at every look and jumps when it is told to.
pub(crate) struct Calendar(AtomicI64);

impl Calendar {
    pub(crate) fn jump_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Calendar {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

struct NoBlobs;

impl Blobs for NoBlobs {
    fn keep(&self, _bytes: Vec<u8>) -> BoxFuture<'_, Result<Sha256Hex, BlobError>> {
        Box::pin(std::future::ready(Err(BlobError { code: "no-space" })))
    }
}

/// What outlives every process.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) channel: Arc<Channel>,
    pub(crate) provider: Arc<Provider>,
    pub(crate) calendar: Arc<Calendar>,
}

/// One process.
pub(crate) struct Life {
    pub(crate) engine: Arc<SqliteStore>,
    pub(crate) store: Store,
    pub(crate) connector: FilesystemConnector,
    evidence: OwnEvidence,
    client: Arc<BotClient>,
    provider: Arc<Provider>,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) calendar: Arc<Calendar>,
}

/// A shipped declaration, in a version; the agents' own asks another provider.
pub(crate) fn package(id: &str, version: u32) -> Package {
    let find =
        |place, name: String| shipped_in(place).find(|file| file.name == name).unwrap().text.to_owned();
    let text = find(ShippedPlace::Agents, format!("{id}.yaml"));
    let text = text.replace("version: 1", &format!("version: {version}"));
    let text = text.replace("timeoutSeconds: 300", "timeoutSeconds: 60");
    let text = if id == AGENT { text.replace("provider: main", "provider: private") } else { text };
    let prompt = find(ShippedPlace::Prompts, format!("{id}.md"));
    declarations::check(&text).unwrap().with_prompt(prompt.into_bytes()).unwrap()
}

impl World {
    pub(crate) fn new(dice: &mut Dice, faults_percent: u64) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.unwrap();
        std::fs::create_dir(folder.path().join("context")).unwrap();
        let chaos = Chaos::new(folder.path().join("context/memory.md"));
        let channel = Channel::new(dice.apart(), faults_percent, chaos.clone());
        let provider = Provider::new(dice.apart(), faults_percent, chaos.clone());
        let world = Self {
            folder,
            chaos,
            channel,
            provider,
            calendar: Arc::new(Calendar(AtomicI64::new(1_796_040_000_000))),
        };
        world.write("identity.md", "---\nid: identity\n---\nkanari-f I am the Stream.\n");
        world.write("memory.md", "---\nid: memory\n---\nkanari-f Tea, not coffee.\n");
        world
    }

    pub(crate) fn document(&self, name: &str) -> PathBuf {
        self.folder.path().join("context").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.document(name), text).unwrap();
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("thought.db")
    }

    /// Begins a process.
    pub(crate) fn live(&self) -> Life {
        let options = OpenOptions { faults: Some(self.chaos.clone()), readers: 1, ..OpenOptions::create() };
        let engine = SqliteStore::open(&self.database(), options).unwrap();
        self.provider.look_at(Some(engine.clone()));
        let store = Store::new(Chaotic::new(engine.clone(), self.chaos.clone()), self.calendar.clone());
        let root = ContextRoot::open(self.folder.path(), Path::new("context")).unwrap();
        let evidence = OwnEvidence::of_this_process("0".repeat(31) + "1").unwrap();
        let handles = (store.filesystem(), store.reader());
        let connector = FilesystemConnector::new(
            Arc::new(root),
            evidence.clone(),
            BYTES_MAX,
            handles,
            self.calendar.clone(),
        );
        Life {
            engine,
            store,
            connector,
            evidence,
            client: Arc::new(BotClient::carried(self.channel.clone())),
            provider: self.provider.clone(),
            chaos: self.chaos.clone(),
            calendar: self.calendar.clone(),
        }
    }
}

impl Life {
    pub(crate) fn reader(&self) -> Reader {
        self.store.reader()
    }

    pub(crate) fn poller(&self) -> Poller {
        let allowed = Allowed { chats: CHATS.map(ChatId).into(), users: CHATS.map(UserId).into() };
        let ingress = self.store.telegram_ingress(source());
        Poller::new(self.client.clone(), ingress, allowed, PollOptions::default())
    }

    /// Spools what a poller of this process fetched, or an earlier one.
    pub(crate) fn spooler(&self, poller: &Poller, freeze: Freeze) -> Spooler {
        let ports = SpoolPorts {
            reader: self.reader(),
            ingress: self.store.telegram_ingress(source()),
            incidents: self.store.incidents("telegram"),
            photos: PhotoPorts { client: self.client.clone(), blobs: Arc::new(NoBlobs) },
            policy: poller.policy(),
            clock: self.calendar.clone(),
            freeze,
        };
        Spooler::new(ports, SpoolOptions::new(SWITCHES))
    }

    pub(crate) fn dispatcher(&self) -> Dispatcher {
        let ports = DispatcherPorts {
            reader: self.reader(),
            deliveries: self.store.dispatcher(source()),
            incidents: self.store.incidents("dispatcher"),
            client: self.client.clone(),
            clock: self.calendar.clone(),
        };
        Dispatcher::new(ports, DispatchOptions::new(CHATS.map(ChatId).into(), SWITCHES))
    }

    pub(crate) fn parts(&self, declaration: &str) -> Parts {
        Parts {
            reader: self.reader(),
            runs: self.store.consumer(declaration),
            notices: self.store.notices("runtime"),
            incidents: self.store.incidents("runtime"),
            jail: self.provider.clone(),
            model: self.provider.clone(),
            documents: Arc::new(Scanned(self.connector.clone())),
            corrections: Arc::new(Settler { reader: self.reader(), corrections: self.corrections() }),
            images: Arc::new(NoImages),
            clock: self.calendar.clone(),
            sleeper: Arc::new(TokioSleeper),
            crash: self.chaos.clone(),
            settings: Settings { held_notice: HeldNotice::On, stop_grace_ms: 10_000 },
        }
    }

    pub(crate) fn corrections(&self) -> Corrections {
        Corrections::new((self.reader(), self.store.judgments()), self.calendar.clone())
    }

    fn operators() -> Operators {
        Operators::new(vec!["alex".to_owned(), "sam".to_owned()])
    }

    pub(crate) fn desk(&self) -> Desk {
        let handles = (self.reader(), self.store.decisions());
        let images = Arc::new(NoImages);
        Desk::new(handles, images, self.connector.clone(), Self::operators(), self.calendar.clone())
    }

    pub(crate) fn operator_desk(&self) -> OperatorDesk {
        let handles = (self.reader(), self.store.operator_proposals());
        let images = Arc::new(NoImages);
        OperatorDesk::new(handles, images, self.connector.clone(), Self::operators(), self.calendar.clone())
    }

    pub(crate) fn projector(&self) -> Projector {
        let materializer = MemoryMaterializer::new(MaterializerParts {
            reader: self.reader(),
            store: self.store.materializer(),
            images: Arc::new(NoImages),
            connector: self.connector.clone(),
            evidence: self.evidence.clone(),
            bytes_max: BYTES_MAX,
            lock_wait: Duration::from_secs(1),
            clock: self.calendar.clone(),
            points: self.chaos.clone(),
        });
        let handles = (self.reader(), self.store.judgments());
        Projector::new(handles, materializer, Arc::new(NoImages), self.calendar.clone())
    }
}

/// The documents of a consumer, as `serve` hands them in.
struct Scanned(FilesystemConnector);

impl Documents for Scanned {
    fn refresh(&self) -> BoxFuture<'_, Result<(), DocumentsError>> {
        Box::pin(async move {
            self.0.refresh().await.map(drop).map_err(|_failed| DocumentsError { code: "store" })
        })
    }
}

/// The corrections that a message waits for, as `serve` hands them in.
struct Settler {
    reader: Reader,
    corrections: Corrections,
}

impl port::Corrections for Settler {
    fn settle_before<'a>(&'a self, message: &'a StoredEvent) -> BoxFuture<'a, Result<(), CorrectionsError>> {
        Box::pin(async move {
            if message.envelope.event_type != EventType::TelegramMessage {
                return Ok(());
            }
            let failed = CorrectionsError { code: "store" };
            let looked = correct::is_settled_before(&self.reader, message).await;
            if looked.map_err(|_store| failed)? {
                return Ok(());
            }
            self.corrections.catch_up().await.map_err(|_store| failed)?;
            let looked = correct::is_settled_before(&self.reader, message).await;
            if looked.map_err(|_store| failed)? { Ok(()) } else { Err(failed) }
        })
    }
}
