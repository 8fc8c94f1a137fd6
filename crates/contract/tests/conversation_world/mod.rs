//! A small log for tests: real drafts, put in order, with the evidence that a store would hand over.

use std::collections::HashMap;

use serde_json::json;
use thought_contract::conversation::{Reply, RunEvidence, TurnEvidence};
use thought_contract::declaration::{Declaration, fingerprint};
use thought_contract::draft::{self, Draft, output_id};
use thought_contract::event::{Envelope, EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::run::{RunState, attempt_id, run_id, snapshot_id};
use thought_contract::shipped::SHIPPED;
use thought_contract::snapshot::build::{DocumentEvidence, ModelBinding};
use thought_contract::snapshot::{DeclarationBytes, DocumentReference, LoadedEvidence};
use thought_contract::time::Timestamp;
use thought_protocol::packet::{Api, Compat, TokenLimit};
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{DocumentId, EventId, Fingerprint, Sensitive, Sha256Hex, VersionId};

pub const CHAT: i64 = 4242;
pub const USER: i64 = 4242;
pub const PROMPT: &str = "You are the Stream.\n";
pub const MANIFEST: &str = "[]";

/// The canary that stands in every message, document and answer: no error or debug text may hold it.
pub const CANARY: &str = "canary-words";

pub struct World {
    pub declaration: Declaration,
    pub turns: Vec<TurnEvidence>,
    pub prompt: Vec<u8>,
    sequences: HashMap<String, u64>,
    position: u64,
}

fn shipped(name: &str) -> &'static str {
    SHIPPED.iter().find(|file| file.name == name).unwrap().text
}

/// The shipped conversation declaration with other budgets, allowed to propose everything.
pub fn telegram_declaration(max_events: u32, max_characters: u32) -> Declaration {
    let text = shipped("stream-telegram-conversation.yaml")
        .replace("maxEvents: 64", &format!("maxEvents: {max_events}"))
        .replace("maxCharacters: 120000", &format!("maxCharacters: {max_characters}"));
    Declaration::parse(&text).unwrap()
}

/// The shipped conversation declaration, allowed to propose nothing.
pub fn silent_declaration() -> Declaration {
    Declaration::parse(&without_proposals(shipped("stream-telegram-conversation.yaml"))).unwrap()
}

fn without_proposals(text: &str) -> String {
    let mut out = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("proposals:") {
            out.push("  proposals: []".to_owned());
            inside = true;
        } else if !(inside && line.trim_start().starts_with("- ")) {
            inside = false;
            out.push(line.to_owned());
        }
    }
    out.join("\n") + "\n"
}

/// A declaration that no shipped file moves.
pub fn fixed_declaration() -> Declaration {
    let text = "id: stream-telegram-conversation\nversion: 1\nrunner: pi\ncontext: telegram-conversation\n\
        input: {privacy: sensitive}\n\
        output: {mode: conversation-text, type: stream.thought.derived.message.observation@1}\n\
        subscriptions:\n  - {type: stream.thought.source.telegram.message@1, source: telegram:stream, replay: now}\n\
        documents: {source: filesystem:telegram-agent-context, paths: [identity.md, memory.md]}\n\
        prompt: prompts/p.md\n\
        budget: {maxEvents: 64, maxCharacters: 120000, maxOutputTokens: 4096}\n\
        policy: {tools: [], proposals: [memory-change, self-correction, focus-declaration], externalActions: false}\n";
    Declaration::parse(text).unwrap()
}

pub fn agent_declaration() -> Declaration {
    Declaration::parse(shipped("stream-agent-conversation.yaml")).unwrap()
}

impl World {
    pub fn new(declaration: Declaration) -> Self {
        Self {
            declaration,
            turns: Vec::new(),
            prompt: PROMPT.as_bytes().to_vec(),
            sequences: HashMap::new(),
            position: 0,
        }
    }

    pub fn telegram() -> Self {
        Self::new(telegram_declaration(64, 120_000))
    }

    pub fn agents() -> Self {
        Self::new(agent_declaration())
    }

    pub fn agent(&self) -> String {
        self.declaration.id().to_string()
    }

    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(self.declaration.canonical_bytes(), &self.prompt, MANIFEST.as_bytes())
    }

    /// Gives a draft its place in the log.
    pub fn append(&mut self, draft: &Draft) -> StoredEvent {
        let sequence = self.sequences.entry(draft.source().to_string()).or_default();
        *sequence += 1;
        self.position += 1;
        let envelope = Envelope {
            id: draft.id().clone(),
            event_type: draft.event_type(),
            source: draft.source().clone(),
            sequence: *sequence,
            position: self.position,
            actor: draft.actor().clone(),
            root_id: draft.root_id().clone(),
            parent_id: draft.parent().cloned(),
            privacy: draft.event_type().privacy(),
            correlation_id: draft.correlation_id().map(str::to_owned),
            external_id: draft.external_id().map(str::to_owned),
            occurred_at: draft.occurred_at(),
            recorded_at: Timestamp::from_ms(1_796_000_000_000 + i64::try_from(self.position).unwrap()),
            payload_sha256: Sha256Hex::of(draft.payload().expose()),
            previous_sha256: Sha256Hex::zero(),
        };
        let chain_sha256 = envelope.chain_sha256().unwrap();
        StoredEvent { envelope, chain_sha256, payload: draft.payload().clone() }
    }

    pub fn telegram_message(&self, number: i64, text: &str) -> p::TelegramMessage {
        p::TelegramMessage {
            chat_id: CHAT,
            thread_id: None,
            message_id: number,
            user_id: USER,
            text: (!text.is_empty()).then(|| text.to_owned()),
            images: Vec::new(),
            reply_to_message_id: None,
            media_group_id: None,
        }
    }

    pub fn agent_message(&self, number: i64, text: &str) -> p::AgentMessage {
        p::AgentMessage {
            message_id: format!("m{number}"),
            thread_id: "t1".to_owned(),
            sender_agent_id: "co".to_owned(),
            recipient_agent_id: self.agent(),
            text: text.to_owned(),
        }
    }

    pub fn append_telegram(&mut self, payload: &p::TelegramMessage) -> StoredEvent {
        let source = SourceName::new("telegram:stream");
        let draft = draft::telegram_message(&source, 7, payload, Timestamp::from_ms(1)).unwrap();
        self.append(&draft)
    }

    pub fn append_mail(&mut self, payload: &p::AgentMessage) -> StoredEvent {
        let draft = draft::agent_message(payload, Timestamp::from_ms(1)).unwrap();
        self.append(&draft)
    }

    /// A message of this world's kind of conversation.
    pub fn message(&mut self, text: &str) -> StoredEvent {
        let number = i64::try_from(self.position).unwrap() + 1_000;
        if self.declaration.output_type() == EventType::MessageObservation {
            let payload = self.telegram_message(number, text);
            self.append_telegram(&payload)
        } else {
            let payload = self.agent_message(number, text);
            self.append_mail(&payload)
        }
    }

    /// A turn without any run; its index.
    pub fn say(&mut self, text: &str) -> usize {
        let message = self.message(text);
        self.push(message)
    }

    pub fn push(&mut self, message: StoredEvent) -> usize {
        let ordinal = u64::try_from(self.turns.len()).unwrap() + 1;
        self.turns.push(TurnEvidence { ordinal, message, runs: Vec::new() });
        self.turns.len() - 1
    }

    /// The ordinal of the trigger that follows.
    pub fn next_ordinal(&self) -> u64 {
        u64::try_from(self.turns.len()).unwrap() + 1
    }

    /// Answers a turn by the declaration's own agent, delivered.
    pub fn answer(&mut self, turn: usize, summary: &str) {
        let agent = self.agent();
        let run = self.completed_run(turn, &agent, 1, summary, &[]);
        self.turns[turn].runs.push(run);
    }

    /// Answers with proposals of these kinds.
    pub fn propose(&mut self, turn: usize, summary: &str, kinds: &[ProposalKind]) {
        let agent = self.agent();
        let run = self.completed_run(turn, &agent, 1, summary, kinds);
        self.turns[turn].runs.push(run);
    }

    /// A run that ended without an answer.
    pub fn fail(&mut self, turn: usize) {
        let agent = self.agent();
        let message = &self.turns[turn].message;
        let run = RunEvidence {
            run: run_id(&agent, 1, &message.envelope.id, 0),
            agent,
            version: 1,
            state: RunState::Failed,
            output: None,
            completed: None,
            proposals: Vec::new(),
            reply: Reply::NotDelivered,
            receipt: None,
            judgment: None,
        };
        self.turns[turn].runs.push(run);
    }

    pub fn exchange(&mut self, words: &str, summary: &str) -> usize {
        let turn = self.say(words);
        self.answer(turn, summary);
        turn
    }

    pub fn completed_run(
        &mut self,
        turn: usize,
        agent: &str,
        version: u32,
        summary: &str,
        kinds: &[ProposalKind],
    ) -> RunEvidence {
        let message = self.turns[turn].message.clone();
        let run = run_id(agent, version, &message.envelope.id, 0);
        let output_type = self.declaration.output_type();
        let output = self.output(&message, agent, version, summary);
        let proposals: Vec<StoredEvent> =
            kinds.iter().map(|kind| self.proposal(&message, agent, version, *kind)).collect();
        let payload = p::RunCompleted {
            run: run.clone(),
            attempt: attempt_id(&run, 1),
            context_snapshot: snapshot_id(&run),
            output: output_id(output_type, &run),
            proposals: kinds
                .iter()
                .zip(&proposals)
                .map(|(kind, event)| p::ProposalReference { kind: *kind, event: event.envelope.id.clone() })
                .collect(),
            usage: p::Usage { input_tokens: None, output_tokens: None },
            thinking_parts_dropped: 0,
        };
        let completed = draft::run_completed(agent, &message, &payload, Timestamp::from_ms(3)).unwrap();
        let completed = self.append(&completed);
        let telegram = output_type == EventType::MessageObservation;
        let receipt = telegram.then(|| {
            let payload = self.delivery(&message, &output, &run);
            let source = message.envelope.source.clone();
            let draft = draft::delivery(&source, &output, &payload, Timestamp::from_ms(4)).unwrap();
            self.append(&draft)
        });
        RunEvidence {
            run,
            agent: agent.to_owned(),
            version,
            state: RunState::Completed,
            output: Some(output),
            completed: Some(completed),
            proposals,
            reply: if telegram { Reply::Delivered } else { Reply::NotDelivered },
            receipt,
            judgment: None,
        }
    }

    fn output(&mut self, message: &StoredEvent, agent: &str, version: u32, summary: &str) -> StoredEvent {
        let run = run_id(agent, version, &message.envelope.id, 0);
        let agent_version =
            p::AgentVersion { id: agent.to_owned(), version, fingerprint: self.fingerprint() };
        let at = Timestamp::from_ms(2);
        let draft = if self.declaration.output_type() == EventType::MessageObservation {
            let payload = p::MessageObservation {
                summary: summary.to_owned(),
                truncated: false,
                contract: p::OutputContract::ConversationText,
                run: run.clone(),
                agent: agent_version,
                provider: "main".to_owned(),
                model: "m".to_owned(),
                context_snapshot: snapshot_id(&run),
            };
            draft::observation(message, &payload, at).unwrap()
        } else {
            let asked: p::AgentMessage = message.payload().unwrap();
            let payload = p::DerivedAgentMessage {
                summary: summary.to_owned(),
                truncated: false,
                contract: p::OutputContract::ConversationText,
                run: run.clone(),
                agent: agent_version,
                provider: "main".to_owned(),
                model: "m".to_owned(),
                context_snapshot: snapshot_id(&run),
                message_id: format!("r-{}", asked.message_id),
                thread_id: asked.thread_id,
                sender_agent_id: asked.recipient_agent_id,
                recipient_agent_id: asked.sender_agent_id,
                in_reply_to: asked.message_id,
                input_sequence: message.envelope.sequence,
            };
            draft::derived_agent_message(message, &payload, at).unwrap()
        };
        self.append(&draft)
    }

    pub fn delivery(
        &self,
        message: &StoredEvent,
        output: &StoredEvent,
        run: &thought_protocol::RunId,
    ) -> p::DeliveryTelegram {
        let words: p::TelegramMessage = message.payload().unwrap();
        p::DeliveryTelegram {
            kind: p::DeliveryKind::Reply,
            chat_id: words.chat_id,
            thread_id: words.thread_id,
            chunks: vec![p::DeliveredChunk { message_id: Some(9), utf16_length: 5, confirmed_by: None }],
            run: Some(run.clone()),
            output: Some(output.envelope.id.clone()),
        }
    }

    fn proposal(
        &mut self,
        message: &StoredEvent,
        agent: &str,
        version: u32,
        kind: ProposalKind,
    ) -> StoredEvent {
        let run = run_id(agent, version, &message.envelope.id, 0);
        let proposer = p::Proposer {
            run: run.clone(),
            output: output_id(self.declaration.output_type(), &run),
            trigger: message.envelope.id.clone(),
            agent: p::ProposerAgent { id: agent.to_owned(), version },
            fingerprint: self.fingerprint(),
            provider: "main".to_owned(),
            model: "m".to_owned(),
            context_snapshot: snapshot_id(&run),
        };
        let at = Timestamp::from_ms(2);
        let draft = match kind {
            ProposalKind::MemoryChange => {
                draft::memory_change_proposed(message, &memory_change(proposer), at)
            }
            ProposalKind::SelfCorrection => {
                draft::correction_proposed(message, &correction(proposer, &self.turns[0].runs[0]), at)
            }
            ProposalKind::FocusDeclaration => draft::focus_proposed(message, &focus_proposal(proposer), at),
        };
        self.append(&draft.unwrap())
    }

    /// A judgment on the answer of a turn, as evidence: a stored event of the right type and payload.
    pub fn judge(&mut self, turn: usize, replacement: &str) {
        let run = self.turns[turn].runs[0].clone();
        let judgment = self.judgment(&run, replacement);
        self.turns[turn].runs[0].judgment = Some(judgment);
    }

    pub fn judgment(&mut self, run: &RunEvidence, replacement: &str) -> StoredEvent {
        let output = run.output.clone().unwrap();
        let payload = p::JudgmentRecorded {
            schema_version: 2,
            kind: p::JudgmentKind::Correct,
            criterion: "operator-correction".to_owned(),
            criterion_version: 1,
            actor: "human:telegram:4242".to_owned(),
            target: correction_target(run),
            replacement: p::ConversationText { summary: replacement.to_owned() },
            feedback: output.envelope.root_id.clone(),
            quality_eligible: true,
            external_export_eligible: false,
            supersedes: None,
        };
        let mut event = rewritten(&output, &payload);
        event.envelope.event_type = EventType::JudgmentRecorded;
        event.envelope.source = SourceName::new("review:judgments");
        event.envelope.id = EventId::of("judgment", &[json!(output.envelope.id), json!(replacement)]);
        event
    }

    pub fn binding(&self) -> ModelBinding {
        ModelBinding {
            api: Api::AnthropicMessages,
            model: "model-1".to_owned(),
            compat: Compat::Standard,
            token_limit: TokenLimit::MaxCompletionTokens,
        }
    }

    /// Everything that a renderer may ask for.
    pub fn evidence(&self, trigger: &StoredEvent, documents: &[DocumentEvidence]) -> LoadedEvidence {
        let mut loaded = LoadedEvidence::default();
        loaded.put_event(trigger.clone());
        for turn in &self.turns {
            loaded.put_event(turn.message.clone());
            for run in &turn.runs {
                let single = [&run.output, &run.completed, &run.judgment];
                single
                    .into_iter()
                    .flatten()
                    .chain(&run.proposals)
                    .for_each(|event| loaded.put_event(event.clone()));
            }
        }
        for document in documents {
            loaded.put_version(document.reference.version_id.clone(), document.content.clone());
        }
        let bytes = DeclarationBytes {
            declaration: self.declaration.canonical_bytes(),
            prompt: &self.prompt,
            manifest: MANIFEST.as_bytes(),
        };
        loaded.put_declaration(self.declaration.id().as_str(), self.declaration.version(), bytes);
        loaded
    }
}

fn memory_change(proposer: p::Proposer) -> p::MemoryChangeProposed {
    let text = format!("- {CANARY} Lisbon \u{1F642}\n");
    p::MemoryChangeProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        evidence: vec![proposer.trigger.clone()],
        proposer,
        target: memory_target(),
        operation: p::MemoryOperation::Append,
        text_length: u64::try_from(text.chars().count()).unwrap(),
        text_sha256: Sha256Hex::of(text.as_bytes()),
        proposed_text: text,
        reason: "asked".to_owned(),
        publication_eligible: p::No,
    }
}

fn correction(proposer: p::Proposer, target: &RunEvidence) -> p::CorrectionProposed {
    p::CorrectionProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        evidence: vec![proposer.trigger.clone()],
        proposer,
        target: correction_target(target),
        replacement: p::ConversationText { summary: "better words".to_owned() },
        reason: "wrong".to_owned(),
        quality_eligible: p::No,
        external_export_eligible: p::No,
        publication_eligible: p::No,
    }
}

fn correction_target(run: &RunEvidence) -> p::CorrectionTarget {
    let output = run.output.clone().unwrap().envelope;
    p::CorrectionTarget {
        run: run.run.clone(),
        output: output.id,
        delivery_receipt: run.receipt.clone().unwrap().envelope.id,
        source_root: output.root_id,
        contract: p::OutputContract::ConversationText,
    }
}

fn focus_proposal(proposer: p::Proposer) -> p::FocusProposed {
    p::FocusProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer,
        fingerprint: Fingerprint::of(b"focus"),
        declaration: focus(),
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

pub fn focus() -> serde_json::Value {
    json!({
        "id": "local-news", "version": 1, "lineage": {"kind": "new"},
        "scope": {"summary": "News", "includes": ["a"], "excludes": []},
        "objective": "Follow the news.",
        "subscriptions": [{"eventType": "stream.thought.source.telegram.message@1", "source": "telegram:stream"}],
        "budgets": {"maxEventsPerDay": 10, "maxInferenceRequestsPerDay": 1, "maxContextCharacters": 1000},
        "requestedPermissions": ["read-events"],
        "retirement": {"kind": "manual"}
    })
}

pub fn memory_target() -> p::MemoryTarget {
    let document = memory();
    p::MemoryTarget {
        source: document.reference.source,
        document_id: document.reference.document_id,
        path: document.reference.path,
        version_id: document.reference.version_id,
        sha256: document.reference.sha256,
        content_type: document.reference.content_type,
    }
}

/// The same event with another payload and a fitting hash.
pub fn rewritten<P: serde::Serialize>(event: &StoredEvent, payload: &P) -> StoredEvent {
    let bytes = thought_protocol::canonical::to_vec(payload).unwrap();
    let mut event = event.clone();
    event.envelope.payload_sha256 = Sha256Hex::of(&bytes);
    event.payload = Sensitive::new(bytes);
    event
}

pub fn document(path: &str, content: &[u8], frontmatter_id: Option<&str>) -> DocumentEvidence {
    let source = SourceName::context();
    let document_id = DocumentId::of("document", &[json!(source), json!(path)]);
    let sha256 = Sha256Hex::of(content);
    DocumentEvidence {
        reference: DocumentReference {
            version_id: VersionId::of("version", &[json!(document_id), json!(null), json!(sha256)]),
            source,
            document_id,
            path: path.to_owned(),
            sha256,
            content_type: "text/markdown".to_owned(),
            byte_count: u64::try_from(content.len()).unwrap(),
        },
        frontmatter_id: frontmatter_id.map(str::to_owned),
        content: Sensitive::new(content.to_vec()),
    }
}

pub fn identity() -> DocumentEvidence {
    document("identity.md", b"---\nid: identity\n---\nI am calm.\n", Some("identity"))
}

pub fn memory() -> DocumentEvidence {
    document("memory.md", b"---\nid: memory\n---\n- Likes tea.\n", Some("memory"))
}
