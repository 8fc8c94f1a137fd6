//! A Bot API on loopback, a store in a temporary folder, and the loops of the room between them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails where it stands"
)]
#![expect(dead_code, reason = "each test program uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use thought_contract::draft::{self, Draft, Ending};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::{
    AgentVersion, DeliveryKind, MessageObservation, OutputContract, RunEnded, TelegramCommand,
    TelegramMessage,
};
use thought_contract::run::{run_id, snapshot_id};
use thought_contract::time::{Clock, Timestamp};
use thought_fakes::{BotApi, BotConfig, ChatKind, ChatSpec, UserSpec};
use thought_protocol::{EventId, Fingerprint, Sha256Hex};
use thought_store::command::{Commit, Op};
use thought_store::row::{DeliveryRow, DeliveryState, EventFilter};
use thought_store::{BoxFuture, Engine, Reads, Store};
use thought_store_sqlite::{Faults, OpenOptions, SqliteStore};
use thought_telegram::client::{BotClient, BotToken, ClientConfig, Timeouts};
use thought_telegram::dispatcher::{DispatchOptions, Dispatcher, DispatcherPorts};
use thought_telegram::ids::{ChatId, UserId};
use thought_telegram::ingress::{Allowed, ChannelState, PollOptions, Poller};
use thought_telegram::notices::Switches;
use thought_telegram::spool::{BlobError, Blobs, Freeze, PhotoPorts, SpoolOptions, SpoolPorts, Spooler};
use thought_telegram::stop::Stop;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "123456:SECRET-of-the-bot";
/// Longer than anything takes; what is waited for comes at once or never.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const ON: Switches = Switches { failure_notice: true, notices: true };
pub(crate) const AGENT: &str = "stream-telegram-conversation";

struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(1_796_000_000_000 + self.0.fetch_add(1, Ordering::Relaxed))
    }
}

pub(crate) struct World {
    pub(crate) bot: BotApi,
    pub(crate) engine: Arc<SqliteStore>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) chats: BTreeSet<ChatId>,
    pub(crate) switches: Switches,
    pub(crate) blobs: Arc<Memory>,
    pub(crate) photo_patience_ms: u64,
}

/// Blobs that are kept in memory; the first so many cannot be kept.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) kept: Mutex<BTreeMap<Sha256Hex, Vec<u8>>>,
    pub(crate) refusals: AtomicI64,
}

impl Blobs for Memory {
    fn keep(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<Sha256Hex, BlobError>> {
        let outcome = if self.refusals.fetch_sub(1, Ordering::Relaxed) > 0 {
            Err(BlobError { code: "no-space" })
        } else {
            let name = Sha256Hex::of(&bytes);
            self.kept.lock().unwrap().insert(name.clone(), bytes);
            Ok(name)
        };
        Box::pin(std::future::ready(outcome))
    }
}

/// A loop at work, or several.
pub(crate) struct Running {
    say: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    pub(crate) state: watch::Receiver<ChannelState>,
}

impl Running {
    /// Nothing at work: a place for what is started later.
    pub(crate) fn idle() -> Running {
        let (say, _) = watch::channel(false);
        let (_, state) = watch::channel(ChannelState::Starting);
        Running { say, tasks: Vec::new(), state }
    }

    /// Ends in good order.
    pub(crate) async fn stop(self) {
        self.say.send_replace(true);
        for task in self.tasks {
            tokio::time::timeout(PATIENCE, task).await.expect("it ends when it is told to").unwrap();
        }
    }

    /// Ends as a process does that is killed.
    pub(crate) async fn kill(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        for task in self.tasks {
            assert!(task.await.is_err_and(|error| error.is_cancelled()), "it had ended by itself");
        }
    }

    pub(crate) async fn wait_for_state(&mut self, wanted: ChannelState) {
        let seen = tokio::time::timeout(PATIENCE, self.state.wait_for(|state| *state == wanted)).await;
        assert!(seen.is_ok(), "never {wanted:?}");
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_faults(None).await
    }

    pub(crate) async fn with_faults(faults: Option<Arc<dyn Faults>>) -> Self {
        let bot = BotApi::start(BotConfig::new(TOKEN)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let engine = SqliteStore::open(
            &folder.path().join("thought.db"),
            OpenOptions { faults, ..OpenOptions::create() },
        )
        .unwrap();
        let clock: Arc<dyn Clock> = Arc::new(Ticking(AtomicI64::new(0)));
        let store = Store::new(engine.clone(), clock.clone());
        let chats: BTreeSet<ChatId> = (1..=20).chain([4242, -7, -70]).map(ChatId).collect();
        for chat in &chats {
            bot.add_chat(match chat.0 {
                -70 => ChatSpec::of(ChatKind::Forum, -70),
                id if id < 0 => ChatSpec::of(ChatKind::Supergroup, id),
                id => ChatSpec::private(id),
            });
        }
        let blobs = Arc::new(Memory::default());
        Self { bot, engine, store, clock, folder, chats, switches: ON, blobs, photo_patience_ms: 20_000 }
    }

    pub(crate) fn source() -> SourceName {
        SourceName::new("telegram:stream")
    }

    pub(crate) fn client(&self) -> Arc<BotClient> {
        client(&self.bot.base_url())
    }

    /// Polling and spool, with short pauses.
    pub(crate) fn ingress(&self) -> Running {
        self.ingress_with(&self.client())
    }

    pub(crate) fn ingress_with(&self, client: &Arc<BotClient>) -> Running {
        let allowed = Allowed { chats: self.chats.clone(), users: [UserId(4242)].into() };
        let options = PollOptions { backoff_ms: (5, 50), ..PollOptions::default() };
        let ingress = self.store.telegram_ingress(Self::source());
        let poller = Poller::new(client.clone(), ingress.clone(), allowed, options);
        let ports = SpoolPorts {
            freeze: Freeze::never(),
            reader: self.store.reader(),
            ingress,
            incidents: self.store.incidents("telegram"),
            photos: PhotoPorts { client: client.clone(), blobs: self.blobs.clone() },
            policy: poller.policy(),
            clock: self.clock.clone(),
        };
        let options =
            SpoolOptions { retry_first_ms: 20, album_quiet_ms: 300, ..SpoolOptions::new(self.switches) };
        let options = SpoolOptions { photo_patience_ms: self.photo_patience_ms, ..options };
        let spooler = Spooler::new(ports, options);
        let (say, word) = watch::channel(false);
        let state = poller.state();
        let tasks = vec![
            tokio::spawn(poller.run(Stop::new(word.clone()))),
            tokio::spawn(spooler.run(Stop::new(word))),
        ];
        Running { say, tasks, state }
    }

    pub(crate) fn dispatcher(&self) -> Dispatcher {
        self.dispatcher_with(&self.client())
    }

    pub(crate) fn dispatcher_with(&self, client: &Arc<BotClient>) -> Dispatcher {
        self.dispatcher_patient(client, 60_000)
    }

    /// A dispatcher that waits so long for sends on their way when it is told to stop.
    pub(crate) fn dispatcher_patient(&self, client: &Arc<BotClient>, stop_grace_ms: u64) -> Dispatcher {
        let ports = DispatcherPorts {
            reader: self.store.reader(),
            deliveries: self.store.dispatcher(Self::source()),
            incidents: self.store.incidents("dispatcher"),
            client: client.clone(),
            clock: self.clock.clone(),
        };
        let options = DispatchOptions {
            backoff_ms: (5, 50),
            stop_grace_ms,
            ..DispatchOptions::new(self.chats.clone(), self.switches)
        };
        Dispatcher::new(ports, options)
    }

    pub(crate) fn dispatch(&self) -> Running {
        self.dispatch_with(self.dispatcher())
    }

    pub(crate) fn dispatch_with(&self, dispatcher: Dispatcher) -> Running {
        let (say, word) = watch::channel(false);
        let state = dispatcher.state();
        Running { say, tasks: vec![tokio::spawn(dispatcher.run(Stop::new(word)))], state }
    }

    pub(crate) async fn commit(&self, ops: Vec<Op>) {
        self.engine.commit(Commit { at: self.clock.now(), ops }).await.unwrap();
    }

    pub(crate) async fn append(&self, draft: Draft) -> StoredEvent {
        let id = draft.id().clone();
        self.commit(vec![Op::Append(Box::new(draft))]).await;
        self.engine.event(id).await.unwrap().unwrap()
    }

    /// A message that a person said.
    pub(crate) async fn said(&self, chat: i64, thread: Option<i64>, message: i64) -> StoredEvent {
        let payload = TelegramMessage {
            chat_id: chat,
            thread_id: thread,
            message_id: message,
            user_id: 4242,
            text: Some("a question".to_owned()),
            images: vec![],
            reply_to_message_id: None,
            media_group_id: None,
        };
        let draft = draft::telegram_message(&Self::source(), 123_456, &payload, self.clock.now());
        self.append(draft.unwrap()).await
    }

    pub(crate) async fn commanded(&self, chat: i64, message: i64, command: &str) -> StoredEvent {
        let payload = TelegramCommand {
            chat_id: chat,
            thread_id: None,
            message_id: message,
            user_id: 4242,
            command: command.to_owned(),
            argument: None,
            reply_to_message_id: None,
        };
        let draft = draft::telegram_command(&Self::source(), 123_456, &payload, self.clock.now());
        self.append(draft.unwrap()).await
    }

    /// The output of a run on a message.
    pub(crate) async fn answered(&self, trigger: &StoredEvent, text: &str, truncated: bool) -> StoredEvent {
        self.append(observation(trigger, text, truncated, self.clock.now())).await
    }

    /// A message and its answer.
    pub(crate) async fn turn(&self, chat: i64, message: i64, text: &str) -> EventId {
        let trigger = self.said(chat, None, message).await;
        self.answered(&trigger, text, false).await.envelope.id
    }

    pub(crate) async fn ended(&self, trigger: &StoredEvent, ending: Ending, reason: &str) -> StoredEvent {
        let run = run_id(AGENT, 1, &trigger.envelope.id, 0);
        let payload = RunEnded { run, attempts: 1, reason: reason.to_owned() };
        let draft = draft::run_ended(ending, AGENT, trigger, &payload, self.clock.now());
        self.append(draft.unwrap()).await
    }

    pub(crate) async fn events(&self, types: &[EventType]) -> Vec<StoredEvent> {
        let filter = EventFilter { types: types.to_vec(), limit: 10_000, ..EventFilter::default() };
        self.engine.events(filter).await.unwrap()
    }

    /// Waits until there are so many events of a type, and makes sure that there are no more.
    pub(crate) async fn wait_for_events(&self, event_type: EventType, count: usize) -> Vec<StoredEvent> {
        self.wait_until("events", async || self.events(&[event_type]).await.len() >= count).await;
        let events = self.events(&[event_type]).await;
        assert_eq!(events.len(), count, "{event_type}");
        events
    }

    pub(crate) async fn delivery(&self, cause: &EventId, kind: DeliveryKind) -> Option<DeliveryRow> {
        self.engine.delivery(cause.clone(), kind).await.unwrap()
    }

    pub(crate) async fn wait_for_delivery(&self, cause: &EventId, state: DeliveryState) -> DeliveryRow {
        self.wait_for_kind(cause, DeliveryKind::Reply, state).await
    }

    pub(crate) async fn wait_for_kind(
        &self,
        cause: &EventId,
        kind: DeliveryKind,
        state: DeliveryState,
    ) -> DeliveryRow {
        self.wait_until("a delivery", async || {
            self.delivery(cause, kind).await.is_some_and(|row| row.state == state)
        })
        .await;
        self.delivery(cause, kind).await.unwrap()
    }

    pub(crate) async fn wait_until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let mut news = self.engine.news();
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                news.mark_unchanged();
                if is_so().await {
                    return;
                }
                news.changed().await.unwrap();
            }
        });
        assert!(waited.await.is_ok(), "waited in vain for {what}");
    }

    /// Whether these bytes stand anywhere in the store's files.
    pub(crate) fn stores(&self, words: &str) -> bool {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).any(|bytes| holds(&bytes, words))
    }

    pub(crate) fn push(&self, chat: i64, text: &str) -> i64 {
        self.bot.push_message(ChatSpec::private(chat), UserSpec::person(chat), text)
    }

    pub(crate) async fn confirmed(&self) {
        self.bot.wait_until_confirmed(PATIENCE).await.unwrap();
    }
}

pub(crate) fn client(url: &str) -> Arc<BotClient> {
    client_with(url, TOKEN)
}

pub(crate) fn client_with(url: &str, token: &str) -> Arc<BotClient> {
    let config = ClientConfig {
        api_url: url.to_owned(),
        token: BotToken::new(token.to_owned()).unwrap(),
        timeouts: Timeouts::default(),
    };
    Arc::new(BotClient::new(config).unwrap())
}

pub(crate) fn observation(trigger: &StoredEvent, text: &str, truncated: bool, now: Timestamp) -> Draft {
    let run = run_id(AGENT, 1, &trigger.envelope.id, 0);
    let payload = MessageObservation {
        summary: text.to_owned(),
        truncated,
        contract: OutputContract::ConversationText,
        context_snapshot: snapshot_id(&run),
        run,
        agent: AgentVersion { id: AGENT.to_owned(), version: 1, fingerprint: Fingerprint::of(b"x") },
        provider: "main".to_owned(),
        model: "a-model".to_owned(),
    };
    draft::observation(trigger, &payload, now).unwrap()
}

pub(crate) fn payload(event: &StoredEvent) -> Value {
    serde_json::from_slice(event.payload.expose()).unwrap()
}

pub(crate) fn holds(bytes: &[u8], words: &str) -> bool {
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}

/// Everything that is logged on this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Logs everything, of every room and library, as long as the guard lives.
    pub(crate) fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
