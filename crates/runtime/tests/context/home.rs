//! A real store in a temporary folder, with turns that are admitted, settled and delivered by its own handles.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tempfile::TempDir;
use thought_contract::declaration::Declaration;
use thought_contract::draft::{self, Ending};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{HeldReason, RunState, attempt_id, run_id, snapshot_id};
use thought_contract::shipped::SHIPPED;
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::packet::{Api, Compat, TokenLimit};
use thought_protocol::{DocumentId, EventId, RunId, Sensitive, Sha256Hex, VersionId};
use thought_runtime::context::{
    Ask, Built, BuiltContext, ContextBuilder, ContextError, Images, ImagesError, PendingReplies,
};
use thought_runtime::declarations;
use thought_runtime::port::{Binding, Documents, DocumentsError};
use thought_store::command::{NewAttempt, NewRun, NewSnapshot, NewVersion, Presence};
use thought_store::handle::{Admission, ChunkRef, Reader, Settlement, Start};
use thought_store::row::DeclarationRow;
use thought_store::{BoxFuture, Store};
use thought_store_sqlite::{OpenOptions, SqliteStore};

pub const TELEGRAM: &str = "stream-telegram-conversation";
pub const AGENT: &str = "stream-agent-conversation";
pub const CHAT: i64 = 4242;

pub struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// Counts its looks, and fails when told so.
#[derive(Default)]
pub struct Looks {
    pub count: AtomicU64,
    pub fail: Mutex<bool>,
}

impl Documents for Looks {
    fn refresh(&self) -> BoxFuture<'_, Result<(), DocumentsError>> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let fail = *self.fail.lock().unwrap();
        Box::pin(async move { if fail { Err(DocumentsError { code: "lock-held" }) } else { Ok(()) } })
    }
}

/// Blobs by name.
#[derive(Default)]
pub struct Blobs(pub Mutex<Vec<Vec<u8>>>);

impl Images for Blobs {
    fn read(&self, sha256: &Sha256Hex) -> BoxFuture<'_, Result<Sensitive<Vec<u8>>, ImagesError>> {
        let found = self.0.lock().unwrap().iter().find(|bytes| Sha256Hex::of(bytes) == *sha256).cloned();
        let missing = ImagesError { sha256: sha256.clone(), code: "missing" };
        Box::pin(async move { found.map(Sensitive::new).ok_or(missing) })
    }
}

pub struct Home {
    _dir: TempDir,
    pub store: Store,
    pub looks: Looks,
    pub blobs: Blobs,
    clock: Arc<TestClock>,
    messages: AtomicI64,
}

pub fn binding() -> Binding {
    Binding {
        provider: "main".to_owned(),
        api: Api::AnthropicMessages,
        model: "model-1".to_owned(),
        compat: Compat::Standard,
        token_limit: TokenLimit::MaxCompletionTokens,
    }
}

fn shipped(name: &str) -> String {
    SHIPPED.iter().find(|file| file.name == name).unwrap().text.to_owned()
}

impl Home {
    /// A store without documents and declarations.
    pub fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = SqliteStore::open(&dir.path().join("thought.db"), OpenOptions::create()).unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(1_796_040_000_000)));
        Self {
            _dir: dir,
            store: Store::new(engine, clock.clone()),
            looks: Looks::default(),
            blobs: Blobs::default(),
            clock,
            messages: AtomicI64::new(1),
        }
    }

    /// With both documents and both declarations.
    pub async fn new() -> Self {
        Self::with(|text| text).await
    }

    /// With the Telegram declaration changed.
    pub async fn with(change: impl Fn(String) -> String) -> Self {
        let home = Self::bare();
        home.document("identity.md", b"---\nid: identity\n---\nI am calm.\n").await;
        home.document("memory.md", b"---\nid: memory\n---\n- Likes tea.\n").await;
        home.install(TELEGRAM, change).await;
        home.install(AGENT, |text| text).await;
        home
    }

    pub async fn install(&self, name: &str, change: impl Fn(String) -> String) {
        let text = change(shipped(&format!("{name}.yaml")));
        let prompt = shipped(&format!("{name}.md")).into_bytes();
        let package = declarations::check(&text).unwrap().with_prompt(prompt).unwrap();
        let (reader, activator) = (self.reader(), self.store.activator());
        let worker = Sha256Hex::of(b"worker");
        declarations::install(&reader, &activator, &*self.clock, &package, &worker).await.unwrap();
    }

    pub fn reader(&self) -> Reader {
        self.store.reader()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub async fn active(&self, name: &str) -> (DeclarationRow, Declaration) {
        let row = self.reader().declaration(name.to_owned()).await.unwrap().unwrap();
        let declaration = Declaration::from_canonical(row.declaration.expose()).unwrap();
        (row, declaration)
    }

    pub async fn document(&self, path: &str, content: &[u8]) {
        let source = SourceName::context();
        let document = DocumentId::of("document", &[json!(source), json!(path)]);
        let sha256 = Sha256Hex::of(content);
        let previous = self.reader().document(document.clone()).await.unwrap().map(|row| row.version);
        let version = VersionId::of("version", &[json!(document), json!(previous), json!(sha256)]);
        let frontmatter_id = thought_contract::frontmatter::read(content).ok().map(|head| head.id);
        let payload = p::FileVersion {
            document_id: document.clone(),
            version_id: version.clone(),
            previous_version_id: previous.clone(),
            path: path.to_owned(),
            sha256: sha256.clone(),
            byte_count: u64::try_from(content.len()).unwrap(),
            content_type: "text/markdown".to_owned(),
            frontmatter_id: frontmatter_id.clone(),
        };
        let event = draft::file_version(&payload, self.now()).unwrap();
        let new = NewVersion {
            document,
            version,
            previous,
            source,
            path: path.to_owned(),
            sha256,
            content_type: payload.content_type.clone(),
            frontmatter_id,
            content: Sensitive::new(content.to_vec()),
            event: event.id().clone(),
        };
        self.store.filesystem().version(event, new).await.unwrap();
    }

    pub async fn remove(&self, path: &str) {
        let document = DocumentId::of("document", &[json!(SourceName::context()), json!(path)]);
        let row = self.reader().document(document.clone()).await.unwrap().unwrap();
        let payload = p::FileRemoved {
            document_id: document.clone(),
            previous_version_id: row.version.clone(),
            path: path.to_owned(),
        };
        let event = draft::file_removed(&payload, self.now()).unwrap();
        self.store.filesystem().removed(event, document, row.version).await.unwrap();
    }

    pub async fn event(&self, id: &EventId) -> StoredEvent {
        self.reader().event(id.clone()).await.unwrap().unwrap()
    }

    /// A person's message.
    pub async fn say(&self, text: &str) -> StoredEvent {
        self.say_in(CHAT, text, Vec::new()).await
    }

    pub async fn say_in(&self, chat_id: i64, text: &str, images: Vec<p::Image>) -> StoredEvent {
        let payload = p::TelegramMessage {
            chat_id,
            thread_id: None,
            message_id: self.messages.fetch_add(1, Ordering::SeqCst),
            user_id: 4242,
            text: Some(text.to_owned()),
            images,
            reply_to_message_id: None,
            media_group_id: None,
        };
        let source = SourceName::new("telegram:stream");
        let draft = draft::telegram_message(&source, 7, &payload, self.now()).unwrap();
        let id = draft.id().clone();
        self.store.telegram_ingress(source).admit(&[], draft).await.unwrap();
        self.event(&id).await
    }

    /// Co's message.
    pub async fn write(&self, thread: &str, text: &str) -> StoredEvent {
        let payload = p::AgentMessage {
            message_id: format!("m{}", self.messages.fetch_add(1, Ordering::SeqCst)),
            thread_id: thread.to_owned(),
            sender_agent_id: "co".to_owned(),
            recipient_agent_id: AGENT.to_owned(),
            text: text.to_owned(),
        };
        let draft = draft::agent_message(&payload, self.now()).unwrap();
        let id = draft.id().clone();
        self.store.agent_mail("co").send(draft).await.unwrap();
        self.event(&id).await
    }

    pub async fn try_build(
        &self,
        agent: &str,
        trigger: &StoredEvent,
        pending: PendingReplies,
    ) -> Result<Built, ContextError> {
        let (stored, declaration) = self.active(agent).await;
        let run = run_id(agent, stored.version, &trigger.envelope.id, 0);
        let (reader, binding) = (self.reader(), binding());
        let builder = ContextBuilder::new(&reader, &self.looks, &self.blobs);
        let ask = Ask {
            run: &run,
            stored: &stored,
            declaration: &declaration,
            binding: &binding,
            trigger,
            pending,
        };
        builder.build(ask).await
    }

    pub async fn build(&self, agent: &str, trigger: &StoredEvent) -> BuiltContext {
        match self.try_build(agent, trigger, PendingReplies::Await).await.unwrap() {
            Built::Ready(built) => *built,
            other => panic!("not ready: {other:?}"),
        }
    }

    /// Freezes a context and records its first attempt.
    pub async fn start(&self, agent: &str, trigger: &StoredEvent) -> (RunId, BuiltContext) {
        let built = match self.try_build(agent, trigger, PendingReplies::Omit).await.unwrap() {
            Built::Ready(built) => *built,
            other => panic!("not ready: {other:?}"),
        };
        let run = self.start_with(agent, trigger, built.snapshot.clone()).await;
        (run, built)
    }

    async fn admission(&self, agent: &str, trigger: &StoredEvent) -> Admission {
        let (row, _) = self.active(agent).await;
        let (conversation, _) =
            self.reader().turn_ordinal(trigger.envelope.id.clone()).await.unwrap().unwrap();
        Admission {
            run: NewRun {
                id: run_id(agent, row.version, &trigger.envelope.id, 0),
                declaration: agent.to_owned(),
                version: row.version,
                trigger: trigger.envelope.id.clone(),
                source: trigger.envelope.source.clone(),
                sequence: trigger.envelope.sequence,
                conversation,
                retry: 0,
            },
            scanned: trigger.envelope.sequence,
        }
    }

    /// A run that waits.
    pub async fn hold(&self, trigger: &StoredEvent) -> RunId {
        let admission = self.admission(TELEGRAM, trigger).await;
        let run = admission.run.id.clone();
        let reason = HeldReason::DailyBudget;
        self.store.consumer(TELEGRAM).hold(run.clone(), Some(admission), reason).await.unwrap();
        run
    }

    pub async fn start_with(&self, agent: &str, trigger: &StoredEvent, snapshot: NewSnapshot) -> RunId {
        let admission = self.admission(agent, trigger).await;
        let run = admission.run.id.clone();
        let start = Start {
            run: run.clone(),
            admission: Some(admission),
            snapshot: Some(NewSnapshot { id: snapshot_id(&run), ..snapshot }),
            abandoned: None,
            attempt: NewAttempt {
                id: attempt_id(&run, 1),
                ordinal: 1,
                sandbox: "full".to_owned(),
                day: "2026-11-30".to_owned(),
                requests_per_day_max: 1_000_000,
            },
        };
        self.store.consumer(agent).start(start).await.unwrap();
        run
    }

    /// A whole turn but for its delivery: its output.
    pub async fn settle(&self, agent: &str, trigger: &StoredEvent, summary: &str) -> StoredEvent {
        let (run, _) = self.start(agent, trigger).await;
        let (row, declaration) = self.active(agent).await;
        let version = p::AgentVersion {
            id: agent.to_owned(),
            version: row.version,
            fingerprint: row.fingerprint.clone(),
        };
        let output = if declaration.output_type() == EventType::MessageObservation {
            let payload = p::MessageObservation {
                summary: summary.to_owned(),
                truncated: false,
                contract: p::OutputContract::ConversationText,
                run: run.clone(),
                agent: version,
                provider: "main".to_owned(),
                model: "model-1".to_owned(),
                context_snapshot: snapshot_id(&run),
            };
            draft::observation(trigger, &payload, self.now()).unwrap()
        } else {
            let asked: p::AgentMessage = trigger.payload().unwrap();
            let payload = p::DerivedAgentMessage {
                summary: summary.to_owned(),
                truncated: false,
                contract: p::OutputContract::ConversationText,
                run: run.clone(),
                agent: version,
                provider: "main".to_owned(),
                model: "model-1".to_owned(),
                context_snapshot: snapshot_id(&run),
                message_id: format!("r-{}", asked.message_id),
                thread_id: asked.thread_id,
                sender_agent_id: asked.recipient_agent_id,
                recipient_agent_id: asked.sender_agent_id,
                in_reply_to: asked.message_id,
                input_sequence: trigger.envelope.sequence,
            };
            draft::derived_agent_message(trigger, &payload, self.now()).unwrap()
        };
        let id = output.id().clone();
        let completed = p::RunCompleted {
            run: run.clone(),
            attempt: attempt_id(&run, 1),
            context_snapshot: snapshot_id(&run),
            output: id.clone(),
            proposals: Vec::new(),
            usage: p::Usage { input_tokens: None, output_tokens: None },
            thinking_parts_dropped: 0,
        };
        let completed = draft::run_completed(agent, trigger, &completed, self.now()).unwrap();
        let attempt = attempt_id(&run, 1);
        let settlement = Settlement::new(run, attempt, (None, None), output, Vec::new(), completed).unwrap();
        self.store.consumer(agent).settle(settlement).await.unwrap();
        self.event(&id).await
    }

    /// A run that ends without an answer.
    pub async fn fail(&self, trigger: &StoredEvent) {
        let (run, _) = self.start(TELEGRAM, trigger).await;
        let payload = p::RunEnded { run: run.clone(), attempts: 1, reason: "refusal".to_owned() };
        let event = draft::run_ended(Ending::Failed, TELEGRAM, trigger, &payload, self.now()).unwrap();
        let end = thought_store::command::AttemptEnd {
            attempt: attempt_id(&run, 1),
            state: thought_contract::run::AttemptState::Permanent,
            reason: Some("refusal".to_owned()),
            input_tokens: None,
            output_tokens: None,
        };
        self.store.consumer(TELEGRAM).end(run.clone(), None, Some(end), "refusal", event).await.unwrap();
        assert_eq!(self.reader().run(run).await.unwrap().unwrap().state, RunState::Failed);
    }

    pub async fn dispatcher(&self, presence: Presence) {
        let source = SourceName::new("telegram:stream");
        self.store.dispatcher(source).set_presence(presence).await.unwrap();
    }

    /// Delivers an output in one chunk.
    pub async fn deliver(&self, output: &StoredEvent) {
        let source = SourceName::new("telegram:stream");
        let dispatcher = self.store.dispatcher(source.clone());
        let said: p::MessageObservation = output.payload().unwrap();
        let kind = p::DeliveryKind::Reply;
        let cause = output.envelope.id.clone();
        let cursor = output.envelope.position;
        dispatcher.open(cause.clone(), kind, (CHAT, None), vec![5], cursor).await.unwrap();
        let payload = p::DeliveryTelegram {
            kind,
            chat_id: CHAT,
            thread_id: None,
            chunks: vec![p::DeliveredChunk { message_id: Some(900), utf16_length: 5, confirmed_by: None }],
            run: Some(said.run),
            output: Some(cause.clone()),
        };
        let receipt = draft::delivery(&source, output, &payload, self.now()).unwrap();
        dispatcher.delivered(ChunkRef { cause, kind, ordinal: 0 }, 900, receipt).await.unwrap();
    }

    pub async fn exchange(&self, words: &str, summary: &str) {
        let trigger = self.say(words).await;
        let output = self.settle(TELEGRAM, &trigger, summary).await;
        self.deliver(&output).await;
    }
}
