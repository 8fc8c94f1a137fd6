//! A home with a store and a conversation in it: what a person finds when it is time to decide.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use thought_authority::chain::{self, ChainError, Verified};
use thought_authority::decide::{DecideError, Desk, Operators, Recorded, Submission};
use thought_authority::filesystem::FilesystemConnector;
use thought_authority::lock::{OwnEvidence, acquire};
use thought_authority::materialize::{
    CrashPoints, MaterializerParts, MemoryMaterializer, NoCrashPoints, PROJECTION_LOCK_WAIT,
};
use thought_authority::operator::OperatorDesk;
use thought_authority::project::{Outcome, Projector};
use thought_authority::root::ContextRoot;
use thought_contract::conversation::{Conversation, Reply, RunEvidence, TurnEvidence};
use thought_contract::declaration::{Declaration, fingerprint};
use thought_contract::draft;
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{attempt_id, run_id, snapshot_id};
use thought_contract::snapshot::build::{
    Composition, DocumentEvidence, ModelBinding, compose, freeze, select,
};
use thought_contract::snapshot::{DeclarationBytes, DocumentReference, LoadedEvidence, Snapshot};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::packet::{Api, Compat, TokenLimit};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Fingerprint, RunId, Sensitive, Sha256Hex};
use thought_store::NoImages;
use thought_store::Store;
use thought_store::command::{BaseVersion, NewAttempt, NewDeclaration, NewRun, NewSnapshot};
use thought_store::handle::{Admission, ChunkRef, Proposed, Reader, Settlement, Start};
use thought_store::row::{HistoryQuery, HistoryTurn, ReplyState};
use thought_store_sqlite::{OpenOptions, SqliteStore};

pub(crate) const MEMORY: &str = "---\nid: memory\n---\n# Memory\n\n- Likes tea.\n";
pub(crate) const AGENT: &str = "stream-telegram-conversation";
pub(crate) const BYTES_MAX: u64 = 65_536;
const IDENTITY: &str = "---\nid: identity\n---\nI am calm.\n";
const CHAT: i64 = 4242;
const PROMPT: &[u8] = b"You are the Stream.\n";
const MANIFEST: &[u8] = b"[]";
const DECLARATION: &str = "id: stream-telegram-conversation\nversion: 1\nrunner: pi\n\
    context: telegram-conversation\ninput: {privacy: sensitive}\n\
    output: {mode: conversation-text, type: stream.thought.derived.message.observation@1}\n\
    subscriptions:\n  - {type: stream.thought.source.telegram.message@1, source: telegram:stream, replay: now}\n\
    documents: {source: filesystem:telegram-agent-context, paths: [identity.md, memory.md]}\n\
    prompt: prompts/p.md\nbudget: {maxEvents: 16, maxCharacters: 120000, maxOutputTokens: 4096}\n\
    policy: {tools: [], proposals: [memory-change, self-correction, focus-declaration], externalActions: false}\n";

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        at(9)
    }
}

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(1_796_072_531_000 + ms)
}

pub(crate) fn telegram() -> SourceName {
    SourceName::new("telegram:stream")
}

pub(crate) fn own() -> OwnEvidence {
    OwnEvidence::of_this_process("00000000000000000000000000000001".to_owned()).unwrap()
}

/// What a turn of this world asks for.
#[derive(Clone)]
pub(crate) enum Ask {
    Append(String),
    Replace(String),
    /// Corrects the output of an earlier turn.
    Correct(EventId, String),
    Focus,
}

/// A settled turn.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) trigger: StoredEvent,
    pub(crate) run: RunId,
    pub(crate) output: EventId,
    pub(crate) proposals: Vec<EventId>,
}

impl Turn {
    pub(crate) fn only(&self) -> EventId {
        assert_eq!(self.proposals.len(), 1);
        self.proposals[0].clone()
    }
}

pub(crate) struct World {
    pub(crate) folder: Arc<TempDir>,
    root: &'static str,
    pub(crate) side: Side,
}

/// One process's view of a home.
pub(crate) struct Side {
    pub(crate) store: Store,
    pub(crate) reader: Reader,
    pub(crate) connector: FilesystemConnector,
    pub(crate) points: Arc<dyn CrashPoints>,
    pub(crate) bytes_max: u64,
    pub(crate) lock_wait: std::time::Duration,
    declaration: Declaration,
}

impl Side {
    /// Opens the home as a process would.
    pub(crate) fn open(home: &Path, points: Arc<dyn CrashPoints>) -> Self {
        Self::open_with(home, points, OpenOptions::create())
    }

    pub(crate) fn open_with(home: &Path, points: Arc<dyn CrashPoints>, options: OpenOptions) -> Self {
        Self::rooted(home, "context", points, options)
    }

    fn rooted(home: &Path, root: &str, points: Arc<dyn CrashPoints>, options: OpenOptions) -> Self {
        let engine = SqliteStore::open(&home.join("thought.db"), options).unwrap();
        let store = Store::new(engine, Arc::new(Still));
        let root = Arc::new(ContextRoot::open(home, Path::new(root)).unwrap());
        let reader = store.reader();
        let handles = (store.filesystem(), store.reader());
        let connector = FilesystemConnector::new(root, own(), BYTES_MAX, handles, Arc::new(Still));
        let declaration = Declaration::parse(DECLARATION).unwrap();
        Self {
            store,
            reader,
            connector,
            points,
            bytes_max: BYTES_MAX,
            lock_wait: PROJECTION_LOCK_WAIT,
            declaration,
        }
    }

    pub(crate) fn desk(&self) -> Desk {
        let operators = Operators::new(vec!["alex".to_owned(), "sam".to_owned()]);
        let handles = (self.reader.clone(), self.store.decisions());
        Desk::new(handles, Arc::new(NoImages), self.connector.clone(), operators, Arc::new(Still))
    }

    pub(crate) fn operator_desk(&self) -> OperatorDesk {
        let operators = Operators::new(vec!["alex".to_owned()]);
        let handles = (self.reader.clone(), self.store.operator_proposals());
        OperatorDesk::new(handles, Arc::new(NoImages), self.connector.clone(), operators, Arc::new(Still))
    }

    pub(crate) fn projector(&self) -> Projector {
        let materializer = MemoryMaterializer::new(MaterializerParts {
            reader: self.reader.clone(),
            store: self.store.materializer(),
            images: Arc::new(NoImages),
            connector: self.connector.clone(),
            evidence: own(),
            bytes_max: self.bytes_max,
            lock_wait: self.lock_wait,
            clock: Arc::new(Still),
            points: self.points.clone(),
        });
        let handles = (self.reader.clone(), self.store.judgments());
        Projector::new(handles, materializer, Arc::new(NoImages), Arc::new(Still))
    }

    pub(crate) async fn validate(&self, proposal: &EventId) -> Result<Verified, ChainError> {
        chain::validate(&self.reader, &NoImages, proposal).await
    }

    pub(crate) async fn decide(
        &self,
        proposal: &EventId,
        disposition: p::Disposition,
    ) -> Result<Recorded, DecideError> {
        self.desk().decide(proposal, &submission(disposition)).await
    }

    pub(crate) async fn accept(&self, proposal: &EventId) -> Recorded {
        self.decide(proposal, p::Disposition::Accept).await.unwrap()
    }

    pub(crate) async fn project(&self, proposal: &EventId) -> Outcome {
        self.projector().project(proposal).await.unwrap()
    }

    /// Status and reason after accepting and projecting.
    pub(crate) async fn carry_out(&self, proposal: &EventId) -> String {
        self.accept(proposal).await;
        shown(&self.project(proposal).await)
    }

    pub(crate) async fn scan(&self) {
        let guard = acquire(self.connector.root(), &own(), std::time::Duration::from_secs(5)).unwrap();
        self.connector.scan(&guard).await.unwrap();
    }

    pub(crate) async fn events(&self, event_type: EventType) -> Vec<StoredEvent> {
        let filter =
            thought_store::row::EventFilter { types: vec![event_type], limit: 10_000, ..Default::default() };
        self.reader.events(filter).await.unwrap()
    }

    /// Reasons of the failed receipts, in order.
    pub(crate) async fn failures(&self) -> Vec<String> {
        let events = self.events(EventType::MaterializationFailed).await;
        events.iter().map(|event| event.payload::<p::MaterializationFailed>().unwrap().reason).collect()
    }

    pub(crate) async fn receipts(&self) -> Vec<p::MemoryMaterialized> {
        let events = self.events(EventType::MemoryMaterialized).await;
        events.iter().map(|event| event.payload().unwrap()).collect()
    }

    async fn install(&self) {
        let declaration = self.declaration.canonical_bytes().to_vec();
        let fingerprint = self.fingerprint();
        let payload = p::DeclarationActivated {
            declaration: AGENT.to_owned(),
            version: 1,
            fingerprint: fingerprint.clone(),
            sources: vec![p::SourceHead { source: telegram(), head: 0 }],
            worker_sha256: Sha256Hex::of(b"worker"),
        };
        let event = draft::declaration_activated(&payload, at(0)).unwrap();
        let new = NewDeclaration {
            id: AGENT.to_owned(),
            version: 1,
            expected_active: None,
            fingerprint,
            declaration: Sensitive::new(declaration),
            prompt: Sensitive::new(PROMPT.to_vec()),
            manifest: Sensitive::new(MANIFEST.to_vec()),
            sources: vec![(telegram(), 0)],
        };
        self.store.activator().install(event, new).await.unwrap();
    }

    fn fingerprint(&self) -> Fingerprint {
        fingerprint(self.declaration.canonical_bytes(), PROMPT, MANIFEST)
    }

    /// A person's message.
    pub(crate) async fn message(&self, number: i64) -> StoredEvent {
        let payload = p::TelegramMessage {
            chat_id: CHAT,
            thread_id: None,
            message_id: number,
            user_id: CHAT,
            text: Some(format!("message {number}")),
            images: Vec::new(),
            reply_to_message_id: None,
            media_group_id: None,
        };
        let draft = draft::telegram_message(&telegram(), 7, &payload, at(1)).unwrap();
        let appended = self.store.telegram_ingress(telegram()).admit(&[], draft).await.unwrap();
        self.reader.event(appended.id).await.unwrap().unwrap()
    }

    /// A whole turn: message, frozen context, answer with these proposals, delivery.
    pub(crate) async fn turn(&self, number: i64, asks: &[Ask]) -> Turn {
        let trigger = self.message(number).await;
        let run = run_id(AGENT, 1, &trigger.envelope.id, 0);
        let snapshot = self.start(&trigger, &run).await;
        let output = draft::observation(&trigger, &self.said(&run, number), at(2)).unwrap();
        let output_id = output.id().clone();
        let mut proposals = Vec::new();
        let mut references = Vec::new();
        for ask in asks {
            let (kind, proposed) = self.proposal(ask, &trigger, &run, &snapshot);
            references.push(p::ProposalReference { kind, event: proposed.draft.id().clone() });
            proposals.push(proposed);
        }
        let completed = p::RunCompleted {
            run: run.clone(),
            attempt: attempt_id(&run, 1),
            context_snapshot: snapshot_id(&run),
            output: output_id.clone(),
            proposals: references.clone(),
            usage: p::Usage { input_tokens: None, output_tokens: None },
            thinking_parts_dropped: 0,
        };
        let completed = draft::run_completed(AGENT, &trigger, &completed, at(2)).unwrap();
        let attempt = attempt_id(&run, 1);
        let whole =
            Settlement::new(run.clone(), attempt, (None, None), output, proposals, completed).unwrap();
        self.store.consumer(AGENT).settle(whole).await.unwrap();
        self.deliver(&trigger, &run, &output_id, number).await;
        let proposals = references.into_iter().map(|reference| reference.event).collect();
        Turn { trigger, run, output: output_id, proposals }
    }

    async fn start(&self, trigger: &StoredEvent, run: &RunId) -> Snapshot {
        let (snapshot, new_snapshot) = self.freeze(trigger, run).await;
        let new = NewRun {
            id: run.clone(),
            declaration: AGENT.to_owned(),
            version: 1,
            trigger: trigger.envelope.id.clone(),
            source: telegram(),
            sequence: trigger.envelope.sequence,
            conversation: trigger.envelope.correlation_id.clone().unwrap(),
            retry: 0,
        };
        let attempt = NewAttempt {
            id: attempt_id(run, 1),
            ordinal: 1,
            sandbox: "full".to_owned(),
            day: "2026-11-30".to_owned(),
            requests_per_day_max: 100_000,
        };
        let start = Start {
            run: run.clone(),
            admission: Some(Admission { run: new, scanned: trigger.envelope.sequence }),
            snapshot: Some(new_snapshot),
            abandoned: None,
            attempt,
        };
        self.store.consumer(AGENT).start(start).await.unwrap();
        snapshot
    }

    async fn freeze(&self, trigger: &StoredEvent, run: &RunId) -> (Snapshot, NewSnapshot) {
        let conversation = Conversation::open(&self.declaration, trigger).unwrap();
        let (name, ordinal) = self.reader.turn_ordinal(trigger.envelope.id.clone()).await.unwrap().unwrap();
        let query = HistoryQuery {
            source: telegram(),
            conversation: name.clone(),
            before_ordinal: ordinal,
            limit: 15,
            agents: vec![AGENT.to_owned()],
        };
        let history: Vec<TurnEvidence> =
            self.reader.history(query).await.unwrap().into_iter().map(turn_evidence).collect();
        let documents = self.documents().await;
        let selection =
            select(&conversation, &history, &documents, self.declaration.budget(), ordinal).unwrap();
        let parts = Composition {
            declaration: &self.declaration,
            fingerprint: &self.fingerprint(),
            model: ModelBinding {
                api: Api::AnthropicMessages,
                model: "a-model".to_owned(),
                compat: Compat::Standard,
                token_limit: TokenLimit::MaxCompletionTokens,
            },
            conversation: &name,
            ordinal,
            documents: &documents,
            missing_documents: Vec::new(),
            omitted_newest: Vec::new(),
        };
        let composed = compose(parts, &conversation, &selection);
        let mut loaded = LoadedEvidence::default();
        let bytes = DeclarationBytes {
            declaration: self.declaration.canonical_bytes(),
            prompt: PROMPT,
            manifest: MANIFEST,
        };
        loaded.put_declaration(AGENT, 1, bytes);
        loaded.put_event(trigger.clone());
        for turn in &history {
            loaded.put_event(turn.message.clone());
            for run in &turn.runs {
                let single = [&run.output, &run.completed, &run.judgment];
                single.into_iter().flatten().chain(&run.proposals).for_each(|e| loaded.put_event(e.clone()));
            }
        }
        for document in &documents {
            loaded.put_version(document.reference.version_id.clone(), document.content.clone());
        }
        let snapshot = freeze(composed, &loaded).unwrap().snapshot;
        let encoded = snapshot.encode().unwrap();
        let new = NewSnapshot {
            id: snapshot_id(run),
            sha256: encoded.sha256,
            packet_sha256: snapshot.packet_sha256.clone(),
            bytes: encoded.compressed,
        };
        (snapshot, new)
    }

    async fn documents(&self) -> Vec<DocumentEvidence> {
        let mut documents = Vec::new();
        for row in self.reader.documents(SourceName::context()).await.unwrap() {
            let version = self.reader.version(row.version).await.unwrap().unwrap();
            documents.push(DocumentEvidence {
                reference: DocumentReference {
                    source: version.source,
                    document_id: version.document,
                    path: version.path,
                    version_id: version.version,
                    sha256: version.sha256,
                    content_type: version.content_type,
                    byte_count: version.byte_count,
                },
                frontmatter_id: version.frontmatter_id,
                content: version.content,
            });
        }
        documents
    }

    fn said(&self, run: &RunId, number: i64) -> p::MessageObservation {
        p::MessageObservation {
            summary: format!("answer {number}"),
            truncated: false,
            contract: p::OutputContract::ConversationText,
            run: run.clone(),
            agent: p::AgentVersion { id: AGENT.to_owned(), version: 1, fingerprint: self.fingerprint() },
            provider: "main".to_owned(),
            model: "a-model".to_owned(),
            context_snapshot: snapshot_id(run),
        }
    }

    fn proposal(
        &self,
        ask: &Ask,
        trigger: &StoredEvent,
        run: &RunId,
        snapshot: &Snapshot,
    ) -> (ProposalKind, Proposed) {
        let proposer = p::Proposer {
            run: run.clone(),
            output: draft::output_id(EventType::MessageObservation, run),
            trigger: trigger.envelope.id.clone(),
            agent: p::ProposerAgent { id: AGENT.to_owned(), version: 1 },
            fingerprint: self.fingerprint(),
            provider: "main".to_owned(),
            model: "a-model".to_owned(),
            context_snapshot: snapshot_id(run),
        };
        match ask {
            Ask::Append(text) => memory(trigger, proposer, snapshot, p::MemoryOperation::Append, text),
            Ask::Replace(text) => {
                memory(trigger, proposer, snapshot, p::MemoryOperation::ReplaceDocument, text)
            }
            Ask::Correct(output, text) => {
                let payload = p::CorrectionProposed {
                    proposal_state: p::AgentProposed::AgentProposed,
                    evidence: vec![output.clone()],
                    proposer,
                    target: snapshot.correction_target_of(output).unwrap(),
                    replacement: p::ConversationText { summary: text.clone() },
                    reason: "it was wrong".to_owned(),
                    quality_eligible: p::No,
                    external_export_eligible: p::No,
                    publication_eligible: p::No,
                };
                let draft = draft::correction_proposed(trigger, &payload, at(2)).unwrap();
                (ProposalKind::SelfCorrection, Proposed { draft, base: None })
            }
            Ask::Focus => {
                let draft = draft::focus_proposed(trigger, &focus(proposer), at(2)).unwrap();
                (ProposalKind::FocusDeclaration, Proposed { draft, base: None })
            }
        }
    }

    async fn deliver(&self, trigger: &StoredEvent, run: &RunId, output: &EventId, number: i64) {
        let dispatcher = self.store.dispatcher(telegram());
        let kind = p::DeliveryKind::Reply;
        dispatcher.open(output.clone(), kind, (CHAT, None), vec![8], 1).await.unwrap();
        let payload = p::DeliveryTelegram {
            kind,
            chat_id: CHAT,
            thread_id: None,
            chunks: vec![p::DeliveredChunk {
                message_id: Some(number + 5_000),
                utf16_length: 8,
                confirmed_by: None,
            }],
            run: Some(run.clone()),
            output: Some(output.clone()),
        };
        let event = self.reader.event(output.clone()).await.unwrap().unwrap();
        assert_eq!(event.envelope.root_id, trigger.envelope.id);
        let receipt = draft::delivery(&telegram(), &event, &payload, at(3)).unwrap();
        let chunk = ChunkRef { cause: output.clone(), kind, ordinal: 0 };
        dispatcher.delivered(chunk, number + 5_000, receipt).await.unwrap();
    }
}

fn memory(
    trigger: &StoredEvent,
    proposer: p::Proposer,
    snapshot: &Snapshot,
    operation: p::MemoryOperation,
    text: &str,
) -> (ProposalKind, Proposed) {
    let target = snapshot.memory_target().unwrap();
    let base = BaseVersion { document: target.document_id.clone(), version: target.version_id.clone() };
    let payload = p::MemoryChangeProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        evidence: vec![proposer.trigger.clone()],
        proposer,
        target,
        operation,
        proposed_text: text.to_owned(),
        text_length: u64::try_from(text.chars().count()).unwrap(),
        text_sha256: Sha256Hex::of(text.as_bytes()),
        reason: "asked to".to_owned(),
        publication_eligible: p::No,
    };
    let draft = draft::memory_change_proposed(trigger, &payload, at(2)).unwrap();
    (ProposalKind::MemoryChange, Proposed { draft, base: Some(base) })
}

fn focus(proposer: p::Proposer) -> p::FocusProposed {
    p::FocusProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer,
        declaration: serde_json::json!({"id": "a-focus"}),
        fingerprint: Fingerprint::of(b"focus"),
        authority: p::FocusAuthority {
            activation: p::No,
            data_expansion: p::No,
            external_actions: p::No,
            training: p::No,
            adapter_promotion: p::No,
        },
        resolution: p::FocusResolution {
            events: p::Unchecked::Unchecked,
            sources: p::Unchecked::Unchecked,
            capabilities: p::Unchecked::Unchecked,
            lineage: p::Unchecked::Unchecked,
        },
    }
}

fn turn_evidence(turn: HistoryTurn) -> TurnEvidence {
    let runs = turn.runs.into_iter().map(|history| RunEvidence {
        run: history.run.id,
        agent: history.run.declaration,
        version: history.run.version,
        state: history.run.state,
        output: history.output,
        completed: history.completed,
        proposals: history.proposals,
        reply: match history.reply {
            ReplyState::Receipt(_) => Reply::Delivered,
            ReplyState::Sending => Reply::Pending,
            ReplyState::NotDelivered => Reply::NotDelivered,
        },
        receipt: history.receipt,
        judgment: history.judgment,
    });
    TurnEvidence { ordinal: turn.ordinal, message: turn.message, runs: runs.collect() }
}

pub(crate) fn submission(disposition: p::Disposition) -> Submission {
    Submission {
        disposition,
        replacement: None,
        submission_id: "a-submission".to_owned(),
        actor: Some("alex".to_owned()),
        expect_sha256: None,
        expect_base: None,
        surface: p::Surface::Cli,
        uid: 1_000,
    }
}

pub(crate) fn edit(text: &str) -> Submission {
    Submission {
        replacement: Some(Sensitive::new(text.as_bytes().to_vec())),
        ..submission(p::Disposition::Edit)
    }
}

/// Status and reason.
pub(crate) fn shown(outcome: &Outcome) -> String {
    match outcome.status.reason() {
        Some(reason) => format!("{} {reason}", outcome.status.as_str()),
        None => outcome.status.as_str().to_owned(),
    }
}

impl World {
    /// A home whose memory is known.
    pub(crate) async fn new() -> Self {
        Self::with(MEMORY.as_bytes()).await
    }

    pub(crate) async fn with(memory: &[u8]) -> Self {
        Self::with_points(memory, Arc::new(NoCrashPoints)).await
    }

    pub(crate) async fn with_points(memory: &[u8], points: Arc<dyn CrashPoints>) -> Self {
        Self::rooted("context", memory, points).await
    }

    /// A home whose root lies here, one or more folders deep.
    pub(crate) async fn rooted(root: &'static str, memory: &[u8], points: Arc<dyn CrashPoints>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir_all(folder.path().join(root)).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/memory.md"), "OUTSIDE").unwrap();
        fs::write(folder.path().join(root).join("memory.md"), memory).unwrap();
        fs::write(folder.path().join(root).join("identity.md"), IDENTITY).unwrap();
        let side = Side::rooted(folder.path(), root, points, OpenOptions::create());
        let world = Self { folder: Arc::new(folder), root, side };
        world.side.scan().await;
        world.side.install().await;
        world
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn context(&self, name: &str) -> PathBuf {
        self.home().join(self.root).join(name)
    }

    pub(crate) fn memory(&self) -> String {
        fs::read_to_string(self.context("memory.md")).unwrap()
    }

    pub(crate) fn write_memory(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.context("memory.md"), bytes).unwrap();
    }

    /// Another process on the same home.
    pub(crate) fn another(&self, points: Arc<dyn CrashPoints>) -> Side {
        Side::open(self.home(), points)
    }

    pub(crate) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.home().join("thought.db")).unwrap()
    }

    /// Names in the root, without the lock.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.home().join(self.root))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".thought.lock")
            .collect();
        names.sort();
        names
    }

    pub(crate) fn outside_is_as_it_was(&self) {
        assert_eq!(fs::read_to_string(self.home().join("outside/memory.md")).unwrap(), "OUTSIDE");
        assert_eq!(fs::read_dir(self.home().join("outside")).unwrap().count(), 1);
    }

    pub(crate) async fn append(&self, number: i64, text: &str) -> EventId {
        self.side.turn(number, &[Ask::Append(text.to_owned())]).await.only()
    }
}
