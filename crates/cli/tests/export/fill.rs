//! Fills the store of a home with judged turns, through the engine's own commits: every event is as valid and as chained
//! as one that was served, and every chain replays. Shared with the bench.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use thought_cli::compose::SystemClock;
use thought_contract::conversation::Conversation;
use thought_contract::declaration::{Declaration, fingerprint};
use thought_contract::draft::{self, Draft};
use thought_contract::event::{SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{AttemptState, RunState, attempt_id, run_id, snapshot_id};
use thought_contract::snapshot::build::{
    Composition, DocumentEvidence, ModelBinding, compose, freeze, select,
};
use thought_contract::snapshot::{DeclarationBytes, DocumentReference, LoadedEvidence};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::packet::{Api, Compat, TokenLimit};
use thought_protocol::{EventId, Fingerprint, RunId, Sensitive, Sha256Hex};
use thought_store::command::{AttemptEnd, Commit, NewAttempt, NewDeclaration, NewRun, NewSnapshot, Op};
use thought_store::row::{ChunkState, CorrectionOutcome, DeliveryState};
use thought_store::{Engine, Reads};
use thought_store_sqlite::{OpenOptions, SqliteStore};

/// Turns of one commit.
const BATCH: i64 = 250;
const AGENT: &str = "stream-telegram-conversation";
const PROMPT: &[u8] = b"You are the Stream. You answer in one sentence where one is enough.\n";
const MANIFEST: &[u8] = b"[]";
const DECLARATION: &str = "id: stream-telegram-conversation\nversion: 1\nrunner: pi\n\
    context: telegram-conversation\ninput: {privacy: sensitive}\n\
    output: {mode: conversation-text, type: stream.thought.derived.message.observation@1}\n\
    subscriptions:\n  - {type: stream.thought.source.telegram.message@1, source: telegram:stream, replay: now}\n\
    documents: {source: filesystem:telegram-agent-context, paths: [identity.md, memory.md]}\n\
    prompt: prompts/p.md\nbudget: {maxEvents: 16, maxCharacters: 120000, maxOutputTokens: 4096}\n\
    policy: {tools: [], proposals: [], externalActions: false}\n";

/// A store that judged turns are written to as fast as it goes.
pub(crate) struct Filler {
    store: Arc<SqliteStore>,
    declaration: Declaration,
    fingerprint: Fingerprint,
    documents: Vec<DocumentEvidence>,
    /// Chat and message of the next turn: each has a conversation of its own.
    next: i64,
}

impl Filler {
    /// Opens the store of a home whose documents were scanned, and installs a declaration.
    pub(crate) async fn open(database: &Path) -> Result<Self> {
        let store = SqliteStore::open(database, OpenOptions::default())?;
        let declaration = Declaration::parse(DECLARATION)?;
        let fingerprint = fingerprint(declaration.canonical_bytes(), PROMPT, MANIFEST);
        let mut documents = Vec::new();
        for row in store.documents(SourceName::context()).await? {
            let version = store.version(row.version).await?.context("find a version")?;
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
        let filler = Self { store, declaration, fingerprint, documents, next: 1 };
        filler.install().await?;
        Ok(filler)
    }

    /// Adds judged turns.
    pub(crate) async fn fill(&mut self, turns: i64) -> Result<()> {
        let end = self.next + turns;
        while self.next < end {
            let first = self.next;
            self.next = end.min(first + BATCH);
            let triggers = self.append((first..self.next).map(message).collect::<Result<_>>()?).await?;
            let mut ops = Vec::new();
            let mut outputs = Vec::new();
            for trigger in &triggers {
                let (start, settle, output) = self.turn(trigger).await?;
                ops.extend(start);
                ops.extend(settle);
                outputs.push(output);
            }
            self.commit(ops).await?;
            let outputs = self.events(outputs).await?;
            let mut ops = Vec::new();
            let mut commands = Vec::new();
            let mut targets = Vec::new();
            for (output, number) in outputs.iter().zip(first..) {
                let (delivery, target) = delivery(output, number)?;
                ops.extend(delivery);
                targets.push(target);
                commands.push(command(number)?);
            }
            self.commit(ops).await?;
            let commands = self.append(commands).await?;
            let judged = commands.iter().zip(targets).map(|(command, target)| judgment(command, target));
            self.commit(judged.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()).await?;
        }
        Ok(())
    }

    async fn commit(&self, ops: Vec<Op>) -> Result<()> {
        self.store.commit(Commit { at: SystemClock.now(), ops }).await?;
        Ok(())
    }

    async fn append(&self, drafts: Vec<Draft>) -> Result<Vec<StoredEvent>> {
        let ids = drafts.iter().map(|draft| draft.id().clone()).collect();
        self.commit(drafts.into_iter().map(append).collect()).await?;
        self.events(ids).await
    }

    async fn events(&self, ids: Vec<EventId>) -> Result<Vec<StoredEvent>> {
        let mut events = Vec::new();
        for id in ids {
            events.push(self.store.event(id).await?.context("find an event")?);
        }
        Ok(events)
    }

    async fn install(&self) -> Result<()> {
        let payload = p::DeclarationActivated {
            declaration: AGENT.to_owned(),
            version: 1,
            fingerprint: self.fingerprint.clone(),
            sources: vec![p::SourceHead { source: telegram(), head: 0 }],
            worker_sha256: Sha256Hex::of(b"worker"),
        };
        let new = NewDeclaration {
            id: AGENT.to_owned(),
            version: 1,
            expected_active: None,
            fingerprint: self.fingerprint.clone(),
            declaration: Sensitive::new(self.declaration.canonical_bytes().to_vec()),
            prompt: Sensitive::new(PROMPT.to_vec()),
            manifest: Sensitive::new(MANIFEST.to_vec()),
            sources: vec![(telegram(), 0)],
        };
        let event = draft::declaration_activated(&payload, now())?;
        self.commit(vec![append(event), Op::InstallDeclaration(new)]).await
    }

    /// What starts a run, what settles it, and its output.
    async fn turn(&self, trigger: &StoredEvent) -> Result<(Vec<Op>, Vec<Op>, EventId)> {
        let run = run_id(AGENT, 1, &trigger.envelope.id, 0);
        let new = NewRun {
            id: run.clone(),
            declaration: AGENT.to_owned(),
            version: 1,
            trigger: trigger.envelope.id.clone(),
            source: telegram(),
            sequence: trigger.envelope.sequence,
            conversation: trigger.envelope.correlation_id.clone().context("find a conversation")?,
            retry: 0,
        };
        let attempt = NewAttempt {
            id: attempt_id(&run, 1),
            ordinal: 1,
            sandbox: "full".to_owned(),
            day: "2001-01-01".to_owned(),
            requests_per_day_max: u64::from(u32::MAX),
        };
        let snapshot = self.freeze(trigger, &run).await?;
        let start = vec![
            Op::AdmitRun(new),
            Op::PutSnapshot { run: run.clone(), snapshot },
            Op::StartAttempt { run: run.clone(), attempt },
        ];
        let (settle, output) = self.settle(trigger, &run)?;
        Ok((start, settle, output))
    }

    async fn freeze(&self, trigger: &StoredEvent, run: &RunId) -> Result<NewSnapshot> {
        let conversation = Conversation::open(&self.declaration, trigger)?;
        let found = self.store.turn_ordinal(trigger.envelope.id.clone()).await?;
        let (name, ordinal) = found.context("find a turn")?;
        let selection = select(&conversation, &[], &self.documents, self.declaration.budget(), ordinal)?;
        let parts = Composition {
            declaration: &self.declaration,
            fingerprint: &self.fingerprint,
            model: ModelBinding {
                api: Api::AnthropicMessages,
                model: "a-model".to_owned(),
                compat: Compat::Standard,
                token_limit: TokenLimit::MaxCompletionTokens,
            },
            conversation: &name,
            ordinal,
            documents: &self.documents,
            missing_documents: Vec::new(),
            omitted_newest: Vec::new(),
        };
        let mut loaded = LoadedEvidence::default();
        let declaration = self.declaration.canonical_bytes();
        loaded.put_declaration(
            AGENT,
            1,
            DeclarationBytes { declaration, prompt: PROMPT, manifest: MANIFEST },
        );
        loaded.put_event(trigger.clone());
        for document in &self.documents {
            loaded.put_version(document.reference.version_id.clone(), document.content.clone());
        }
        let snapshot = freeze(compose(parts, &conversation, &selection), &loaded)?.snapshot;
        let encoded = snapshot.encode()?;
        Ok(NewSnapshot {
            id: snapshot_id(run),
            sha256: encoded.sha256,
            packet_sha256: snapshot.packet_sha256.clone(),
            bytes: encoded.compressed,
        })
    }

    fn settle(&self, trigger: &StoredEvent, run: &RunId) -> Result<(Vec<Op>, EventId)> {
        let payload = p::MessageObservation {
            summary: "Take the later one. It leaves at 10:12 and is there at 12:10.".to_owned(),
            truncated: false,
            contract: p::OutputContract::ConversationText,
            run: run.clone(),
            agent: p::AgentVersion {
                id: AGENT.to_owned(),
                version: 1,
                fingerprint: self.fingerprint.clone(),
            },
            provider: "main".to_owned(),
            model: "a-model".to_owned(),
            context_snapshot: snapshot_id(run),
        };
        let output = draft::observation(trigger, &payload, now())?;
        let id = output.id().clone();
        let payload = p::RunCompleted {
            run: run.clone(),
            attempt: attempt_id(run, 1),
            context_snapshot: snapshot_id(run),
            output: id.clone(),
            proposals: vec![],
            usage: p::Usage { input_tokens: None, output_tokens: None },
            thinking_parts_dropped: 0,
        };
        let completed = draft::run_completed(AGENT, trigger, &payload, now())?;
        let attempt = AttemptEnd {
            attempt: attempt_id(run, 1),
            state: AttemptState::Answered,
            reason: None,
            input_tokens: None,
            output_tokens: None,
        };
        let end = Op::EndRun {
            run: run.clone(),
            state: RunState::Completed,
            reason: None,
            output: Some(id.clone()),
            terminal: completed.id().clone(),
        };
        Ok((vec![Op::EndAttempt(attempt), append(output), append(completed), end], id))
    }
}

fn append(draft: Draft) -> Op {
    Op::Append(Box::new(draft))
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn telegram() -> SourceName {
    SourceName::new("telegram:stream")
}

fn message(number: i64) -> Result<Draft> {
    let payload = p::TelegramMessage {
        chat_id: number,
        thread_id: None,
        message_id: 1,
        user_id: number,
        text: Some(format!("Which of the two trains should I take on Thursday, number {number}?")),
        images: vec![],
        reply_to_message_id: None,
        media_group_id: None,
    };
    Ok(draft::telegram_message(&telegram(), 123_456, &payload, now())?)
}

fn command(number: i64) -> Result<Draft> {
    let payload = p::TelegramCommand {
        chat_id: number,
        thread_id: None,
        message_id: 3,
        user_id: number,
        command: "correct".to_owned(),
        argument: Some("Take the earlier one. It leaves at 9:12 and is there at 11:40.".to_owned()),
        reply_to_message_id: Some(2),
    };
    Ok(draft::telegram_command(&telegram(), 123_456, &payload, now())?)
}

fn delivery(output: &StoredEvent, chat: i64) -> Result<(Vec<Op>, p::CorrectionTarget)> {
    let said: p::MessageObservation = output.payload()?;
    let (cause, kind) = (output.envelope.id.clone(), p::DeliveryKind::Reply);
    let utf16_length = said.summary.encode_utf16().count() as u64;
    let open = Op::OpenDelivery {
        cause: cause.clone(),
        kind,
        channel: telegram(),
        chat,
        thread: None,
        chunk_utf16_lengths: vec![utf16_length],
    };
    let sent = Op::MoveChunk {
        cause: cause.clone(),
        kind,
        ordinal: 0,
        from: ChunkState::Sending,
        to: ChunkState::Sent,
        message: Some(2),
        confirmed_by: None,
    };
    let payload = p::DeliveryTelegram {
        kind,
        chat_id: chat,
        thread_id: None,
        chunks: vec![p::DeliveredChunk { message_id: Some(2), utf16_length, confirmed_by: None }],
        run: Some(said.run.clone()),
        output: Some(cause.clone()),
    };
    let receipt = draft::delivery(&telegram(), output, &payload, now())?;
    let target = p::CorrectionTarget {
        run: said.run,
        output: cause.clone(),
        delivery_receipt: receipt.id().clone(),
        source_root: output.envelope.root_id.clone(),
        contract: p::OutputContract::ConversationText,
    };
    let (to, receipt_id) = (DeliveryState::Delivered, Some(receipt.id().clone()));
    let done = Op::MoveDelivery { cause, kind, to, reason: None, receipt: receipt_id };
    Ok((vec![open, sent, append(receipt), done], target))
}

fn judgment(command: &StoredEvent, target: p::CorrectionTarget) -> Result<Vec<Op>> {
    let said: p::TelegramCommand = command.payload()?;
    let payload = p::JudgmentRecorded {
        schema_version: 2,
        kind: p::JudgmentKind::Correct,
        criterion: "operator-correction".to_owned(),
        criterion_version: 1,
        actor: command.envelope.actor.as_str().to_owned(),
        target,
        replacement: p::ConversationText { summary: said.argument.context("find the words")? },
        feedback: command.envelope.id.clone(),
        quality_eligible: true,
        external_export_eligible: false,
        supersedes: None,
    };
    let judgment = draft::judgment_recorded(&payload, now())?;
    let outcome = CorrectionOutcome::Judged(judgment.id().clone());
    Ok(vec![append(judgment), Op::SettleCorrection { command: command.envelope.id.clone(), outcome }])
}
