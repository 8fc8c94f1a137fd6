//! A store in a temporary folder, with a context, an installed declaration, and what the tests ask it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use thought_contract::draft::{self, Draft};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::{
    DeliveredChunk, DeliveryKind, DeliveryTelegram, FileVersion, Incident, MessageObservation, RunEnded,
    TelegramMessage,
};
use thought_contract::run::RunState;
use thought_contract::shipped::{ShippedPlace, shipped_in};
use thought_contract::time::Clock;
use thought_protocol::{DocumentId, EventId, RunId, Sensitive, Sha256Hex, VersionId};
use thought_runtime::consumer::{
    Consumer, Ended, Error, HeldNotice, Parts, Settings, StopSwitch, stop_switch,
};
use thought_runtime::context::NoImages;
use thought_runtime::declarations::{self, Installed, Package};
use thought_store::Store;
use thought_store::command::{NewVersion, Presence};
use thought_store::handle::{ChunkRef, Reader};
use thought_store::row::{AttemptRow, EventFilter, RunFilter, RunRow};
use thought_store_sqlite::{OpenOptions, SqliteStore};
use tokio::task::JoinHandle;

use crate::ports::{
    FakeCorrections, FakeCrash, FakeDocuments, FakeFaults, FakeJail, FakeModel, GRACE_MS, Time,
};

pub(crate) const TELEGRAM: &str = "stream-telegram-conversation";
pub(crate) const AGENT: &str = "stream-agent-conversation";
pub(crate) const CHAT: i64 = 4242;

pub(crate) struct Home {
    _dir: TempDir,
    pub(crate) store: Store,
    pub(crate) time: Arc<Time>,
    pub(crate) jail: Arc<FakeJail>,
    pub(crate) model: Arc<FakeModel>,
    pub(crate) documents: Arc<FakeDocuments>,
    pub(crate) corrections: Arc<FakeCorrections>,
    pub(crate) crash: Arc<FakeCrash>,
    pub(crate) faults: Arc<FakeFaults>,
}

/// A consumer at work.
pub(crate) struct AtWork {
    pub(crate) task: JoinHandle<Result<Ended, Error>>,
    stop: StopSwitch,
}

impl AtWork {
    /// Stops it and waits for it.
    pub(crate) async fn stop(self) {
        self.stop.stop();
        self.task.await.unwrap().unwrap();
    }

    pub(crate) fn ask_to_stop(&self) {
        self.stop.stop();
    }

    /// Waits for the crash that was armed.
    pub(crate) async fn crashed(self) {
        let ended = tokio::time::timeout(Duration::from_secs(20), self.task).await.unwrap();
        match ended {
            Ok(Err(Error::Broken(_))) | Err(_) => {}
            Ok(other) => panic!("the consumer ended otherwise: {other:?}"),
        }
    }
}

/// A shipped declaration, changed as the test wants it.
pub(crate) fn package(name: &str, change: impl Fn(String) -> String) -> Package {
    let find =
        |place, file: String| shipped_in(place).find(|shipped| shipped.name == file).unwrap().text.to_owned();
    let text = change(find(ShippedPlace::Agents, format!("{name}.yaml")));
    let prompt = find(ShippedPlace::Prompts, format!("{name}.md"));
    declarations::check(&text).unwrap().with_prompt(prompt.into_bytes()).unwrap()
}

pub(crate) fn worker_sha256() -> Sha256Hex {
    Sha256Hex::of(b"worker")
}

impl Home {
    /// A store with both documents and nothing installed.
    pub(crate) async fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let faults = Arc::<FakeFaults>::default();
        let options = OpenOptions { faults: Some(faults.clone()), ..OpenOptions::create() };
        let engine = SqliteStore::open(&dir.path().join("thought.db"), options).unwrap();
        let time = Arc::new(Time::default());
        let home = Self {
            _dir: dir,
            store: Store::new(engine, time.clone()),
            time,
            jail: Arc::default(),
            model: Arc::default(),
            documents: Arc::default(),
            corrections: Arc::default(),
            crash: Arc::default(),
            faults,
        };
        home.document("memory.md", "memory", "Tea, not coffee.").await;
        home
    }

    /// With the Telegram declaration, changed as the test wants it.
    pub(crate) async fn with(change: impl Fn(String) -> String) -> Self {
        let home = Self::bare().await;
        home.document("identity.md", "identity", "I am the Stream.").await;
        home.install(&package(TELEGRAM, change)).await.unwrap();
        home
    }

    pub(crate) async fn new() -> Self {
        Self::with(|text| text).await
    }

    pub(crate) fn reader(&self) -> Reader {
        self.store.reader()
    }

    pub(crate) fn now(&self) -> thought_contract::time::Timestamp {
        self.time.now()
    }

    pub(crate) async fn install(&self, package: &Package) -> Result<Installed, declarations::Error> {
        let activator = self.store.activator();
        declarations::install(&self.reader(), &activator, &*self.time, package, &worker_sha256()).await
    }

    pub(crate) async fn document(&self, path: &str, id: &str, words: &str) {
        let source = SourceName::context();
        let document = DocumentId::of("document", &[json!(source), json!(path)]);
        let content = format!("---\nid: {id}\n---\n{words}\n").into_bytes();
        let sha256 = Sha256Hex::of(&content);
        let previous = self.reader().document(document.clone()).await.unwrap().map(|row| row.version);
        let version = VersionId::of("version", &[json!(document), json!(previous), json!(sha256)]);
        let payload = FileVersion {
            document_id: document.clone(),
            version_id: version.clone(),
            previous_version_id: previous.clone(),
            path: path.to_owned(),
            sha256: sha256.clone(),
            byte_count: content.len() as u64,
            content_type: "text/markdown".to_owned(),
            frontmatter_id: Some(id.to_owned()),
        };
        let draft = draft::file_version(&payload, self.now()).unwrap();
        let row = NewVersion {
            document,
            version,
            previous,
            source,
            path: path.to_owned(),
            sha256,
            content_type: "text/markdown".to_owned(),
            frontmatter_id: Some(id.to_owned()),
            content: Sensitive::new(content),
            event: draft.id().clone(),
        };
        self.store.filesystem().version(draft, row).await.unwrap();
    }

    /// A person's message in a chat.
    pub(crate) async fn message_in(&self, chat: i64, message: i64, words: &str) -> EventId {
        let source = SourceName::new("telegram:stream");
        let draft = self.message_draft(chat, message, words);
        let ingress = self.store.telegram_ingress(source);
        loop {
            // A test may spoil commits: what was not acknowledged is sent again.
            if let Ok(appended) = ingress.admit(&[message], draft.clone()).await {
                return appended.id;
            }
        }
    }

    pub(crate) fn message_draft(&self, chat: i64, message: i64, words: &str) -> Draft {
        let payload = TelegramMessage {
            chat_id: chat,
            thread_id: None,
            message_id: message,
            user_id: 4242,
            text: Some(words.to_owned()),
            images: vec![],
            reply_to_message_id: None,
            media_group_id: None,
        };
        draft::telegram_message(&SourceName::new("telegram:stream"), 1, &payload, self.now()).unwrap()
    }

    pub(crate) async fn message(&self, message: i64, words: &str) -> EventId {
        self.message_in(CHAT, message, words).await
    }

    /// Delivers the output of a run and leaves its receipt.
    pub(crate) async fn deliver(&self, output: &EventId, message: i64) -> EventId {
        let dispatcher = self.store.dispatcher(SourceName::new("telegram:stream"));
        let output = self.reader().event(output.clone()).await.unwrap().unwrap();
        let cause = output.envelope.id.clone();
        let run = output.payload::<MessageObservation>().unwrap().run;
        let place = (CHAT, None);
        let kind = DeliveryKind::Reply;
        dispatcher.open(cause.clone(), kind, place, vec![5], output.envelope.position).await.unwrap();
        let payload = DeliveryTelegram {
            kind,
            chat_id: CHAT,
            thread_id: None,
            chunks: vec![DeliveredChunk { message_id: Some(message), utf16_length: 5, confirmed_by: None }],
            run: Some(run),
            output: Some(cause.clone()),
        };
        let receipt =
            draft::delivery(&SourceName::new("telegram:stream"), &output, &payload, self.now()).unwrap();
        let chunk = ChunkRef { cause, kind, ordinal: 0 };
        dispatcher.delivered(chunk, message, receipt).await.unwrap().id
    }

    pub(crate) async fn dispatcher(&self, presence: Presence) {
        let dispatcher = self.store.dispatcher(SourceName::new("telegram:stream"));
        dispatcher.set_presence(presence).await.unwrap();
    }

    pub(crate) async fn consumer(&self, declaration: &str) -> Result<AtWork, Error> {
        let (stop, signal) = stop_switch();
        let parts = Parts {
            reader: self.reader(),
            runs: self.store.consumer(declaration),
            notices: self.store.notices("runtime"),
            incidents: self.store.incidents("runtime"),
            jail: self.jail.clone(),
            model: self.model.clone(),
            documents: self.documents.clone(),
            corrections: self.corrections.clone(),
            images: Arc::new(NoImages),
            clock: self.time.clone(),
            sleeper: self.time.clone(),
            crash: self.crash.clone(),
            settings: Settings { held_notice: HeldNotice::On, stop_grace_ms: GRACE_MS },
        };
        let consumer = Consumer::open(parts, signal).await?;
        Ok(AtWork { task: tokio::spawn(consumer.run()), stop })
    }

    /// An incident of a kind, by its subjects.
    pub(crate) async fn incidents(&self, kind: &str) -> Vec<String> {
        let events = self.events(EventType::Incident).await;
        let payloads = events.iter().map(|event| event.payload::<Incident>().unwrap());
        payloads.filter(|incident| incident.kind == kind).map(|incident| incident.subject).collect()
    }

    /// The Telegram consumer.
    pub(crate) async fn start(&self) -> AtWork {
        self.consumer(TELEGRAM).await.unwrap()
    }

    pub(crate) async fn runs(&self) -> Vec<RunRow> {
        self.reader().runs(RunFilter { limit: 1_000, ..RunFilter::default() }).await.unwrap()
    }

    pub(crate) async fn runs_on(&self, trigger: &EventId) -> Vec<RunRow> {
        let filter = RunFilter { trigger: Some(trigger.clone()), limit: 100, ..RunFilter::default() };
        self.reader().runs(filter).await.unwrap()
    }

    pub(crate) async fn attempts(&self, run: &RunId) -> Vec<AttemptRow> {
        self.reader().attempts(run.clone()).await.unwrap()
    }

    pub(crate) async fn events(&self, event_type: EventType) -> Vec<StoredEvent> {
        let filter = EventFilter { types: vec![event_type], limit: 1_000, ..EventFilter::default() };
        self.reader().events(filter).await.unwrap()
    }

    /// Waits until the newest run on a trigger is in a state, and gives its row.
    pub(crate) async fn until(&self, trigger: &EventId, state: RunState) -> RunRow {
        for _ in 0..5_000 {
            if let Some(run) = self.runs_on(trigger).await.pop().filter(|run| run.state == state) {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let found = self.runs_on(trigger).await;
        panic!(
            "no run on {trigger} became {state}: {:?}",
            found.iter().map(|run| (run.state, &run.reason)).collect::<Vec<_>>()
        );
    }

    /// Lets half a minute pass, again and again, until the newest run on a trigger is completed.
    pub(crate) async fn completes_in_time(&self, trigger: &EventId) -> RunRow {
        self.wait_for("its completion", async || {
            self.time.advance_ms(30_000);
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.runs_on(trigger).await.last().is_some_and(|run| run.state == RunState::Completed)
        })
        .await;
        self.until(trigger, RunState::Completed).await
    }

    /// Waits until something holds.
    pub(crate) async fn wait_for(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..5_000 {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("it never held: {what}");
    }

    /// The one completed run on a trigger, and its output's words.
    pub(crate) async fn answer(&self, trigger: &EventId) -> String {
        let run = self.until(trigger, RunState::Completed).await;
        let output = self.reader().event(run.output.unwrap()).await.unwrap().unwrap();
        output.payload::<MessageObservation>().unwrap().summary
    }

    /// The reason of a terminal event, checked to be the run's own.
    pub(crate) async fn ended(&self, run: &RunRow) -> (EventType, String) {
        let event = self.reader().event(run.terminal.clone().unwrap()).await.unwrap().unwrap();
        let payload: RunEnded = event.payload().unwrap();
        assert_eq!(payload.run, run.id);
        assert_eq!(Some(&payload.reason), run.reason.as_ref());
        assert_eq!(payload.attempts, run.attempts);
        assert_eq!(event.envelope.parent_id.as_ref(), Some(&run.trigger));
        (event.envelope.event_type, payload.reason)
    }

    /// `(scanned, progress)` of a declaration in its one source.
    pub(crate) async fn standing(&self, declaration: &str) -> (u64, u64) {
        let rows = self.reader().consumers().await.unwrap();
        let row = rows.iter().find(|row| row.declaration == declaration).unwrap();
        (row.scanned, row.progress)
    }

    /// Nothing is lost and nothing doubled: each trigger has one run, one terminal event, at most one output, and no
    /// attempt more than it has requests.
    pub(crate) async fn check_whole(&self, triggers: &[EventId]) {
        let mut attempts = 0;
        for trigger in triggers {
            let runs = self.runs_on(trigger).await;
            assert_eq!(runs.len(), 1, "runs on {trigger}");
            let run = &runs[0];
            assert!(!run.state.is_open(), "{:?}", run.state);
            let rows = self.attempts(&run.id).await;
            assert_eq!(rows.len(), run.attempts as usize);
            assert!(rows.iter().all(|row| row.ended_at.is_some()));
            attempts += rows.len();
        }
        let completed = self.runs().await.iter().filter(|run| run.state == RunState::Completed).count();
        assert_eq!(self.events(EventType::MessageObservation).await.len(), completed);
        assert_eq!(self.events(EventType::RunCompleted).await.len(), completed);
        assert!(self.model.request_count() <= attempts, "at most one request an attempt");
    }
}
