//! Declarations: what an agent of the stream is, reads, writes and may spend, as one strict file.
//!
//! Owns the type, its reading from YAML, its canonical bytes as written, and the fingerprint over them. An unknown key,
//! a value of another kind, a number outside its bounds and a combination that no part of this build can serve are
//! refused here, by line and field, so that nothing later has to ask. A declaration can never grant a tool or an
//! external action: there is no such value of the type.

mod agent_id;
pub mod bounds;
mod error;
mod fields;
mod read;
mod rules;
mod stored;

use thought_protocol::limits::DECLARATION_BYTES_MAX;
use thought_protocol::packet::OutputMode;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{Fingerprint, Sha256Hex, strict_json};

pub use self::agent_id::{AgentId, AgentIdError, agent_id};
pub use self::error::{DeclarationError, Problem, nearest_name};
use crate::event::{EventType, Privacy, SourceName};
use crate::yaml;

type Result<T> = std::result::Result<T, DeclarationError>;

/// Who computes the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Runner {
    /// `pi`: a model behind the jail.
    Pi,
    /// `deterministic`: code, without a model.
    Deterministic,
}

impl Runner {
    /// The written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::Deterministic => "deterministic",
        }
    }
}

/// Names of runners that other builds have and this one has not.
pub const RUNNERS_NOT_BUILT: [&str; 5] = ["repair", "letta-agent-sdk", "atproto", "review", "conceptualizer"];

/// How the context of a run is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextKind {
    /// `telegram-conversation`: one chat and thread with a person.
    TelegramConversation,
    /// `agent-conversation`: one thread with another agent.
    AgentConversation,
}

impl ContextKind {
    /// The written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TelegramConversation => "telegram-conversation",
            Self::AgentConversation => "agent-conversation",
        }
    }

    /// The one type of event that it subscribes to.
    pub const fn input_type(self) -> EventType {
        match self {
            Self::TelegramConversation => EventType::TelegramMessage,
            Self::AgentConversation => EventType::AgentMessage,
        }
    }

    /// The one type of event that its answers become.
    pub const fn output_type(self) -> EventType {
        match self {
            Self::TelegramConversation => EventType::MessageObservation,
            Self::AgentConversation => EventType::DerivedAgentMessage,
        }
    }

    /// What the names of its sources begin with.
    pub const fn source_prefix(self) -> &'static str {
        match self {
            Self::TelegramConversation => TELEGRAM_PREFIX,
            Self::AgentConversation => AGENT_MESSAGE_PREFIX,
        }
    }
}

const TELEGRAM_PREFIX: &str = "telegram:";
const AGENT_MESSAGE_PREFIX: &str = "agent-message:";

/// Where a consumer begins in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Replay {
    /// `now`: behind the head of the source as frozen at activation.
    Now,
    /// `all`: at the first event.
    All,
}

/// One source that a declaration follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The type of event, written in full with its version.
    pub event_type: EventType,
    /// The source.
    pub source: SourceName,
    /// Where it begins.
    pub replay: Replay,
}

/// The documents that stand in a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The source that scans them.
    pub source: SourceName,
    /// Their paths below the context root, distinct, in the order of the context.
    pub paths: Vec<String>,
}

/// What a declaration may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Turns of one context.
    pub events_max: u32,
    /// Characters of one context's turns.
    pub characters_max: u32,
    /// Tokens of one answer.
    pub output_tokens_max: u32,
    /// A run with its backoff, seconds.
    pub timeout_seconds: u32,
    /// Attempts of one run.
    pub attempts_max: u32,
    /// Requests of one UTC day.
    pub requests_per_day_max: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            events_max: bounds::MAX_EVENTS_DEFAULT,
            characters_max: bounds::MAX_CHARACTERS_DEFAULT,
            output_tokens_max: bounds::MAX_OUTPUT_TOKENS_DEFAULT,
            timeout_seconds: bounds::TIMEOUT_SECONDS_DEFAULT,
            attempts_max: bounds::MAX_ATTEMPTS_DEFAULT,
            requests_per_day_max: bounds::MAX_REQUESTS_PER_DAY_DEFAULT,
        }
    }
}

/// A declaration that this build can serve. Fields that may be left out: `documents` (none), `historyAgents` (its own
/// id), `provider` (`main`), `concurrency`, `budget` and each of its keys ([`bounds`]), `policy` and each of its keys
/// (nothing granted).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    id: AgentId,
    version: u32,
    runner: Runner,
    context: ContextKind,
    input_privacy: Privacy,
    output_mode: OutputMode,
    output_type: EventType,
    subscriptions: Vec<Subscription>,
    documents: Option<Documents>,
    history_agents: Vec<AgentId>,
    prompt: String,
    provider: String,
    concurrency: u32,
    budget: Budget,
    proposals: Vec<ProposalKind>,
    canonical: Vec<u8>,
}

impl Declaration {
    /// Reads a declaration file.
    ///
    /// # Errors
    /// [`DeclarationError`] with line, field and where possible a hint.
    pub fn parse(text: &str) -> Result<Self> {
        let whole = |line, problem| DeclarationError { line, field: String::new(), problem, hint: None };
        if text.len() > DECLARATION_BYTES_MAX {
            return Err(whole(None, Problem::TooLong { max: DECLARATION_BYTES_MAX }));
        }
        match yaml::load(text) {
            Ok(root) => read::declaration(&root),
            Err(error) => Err(whole(Some(error.position.line), Problem::Yaml(error.kind))),
        }
    }

    /// Reads the canonical bytes that an activation stored.
    ///
    /// # Errors
    /// [`DeclarationError`] when they are not the canonical bytes of a declaration that this build can serve.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self> {
        let not_canonical =
            DeclarationError { line: None, field: String::new(), problem: Problem::NotCanonical, hint: None };
        if bytes.len() > DECLARATION_BYTES_MAX {
            return Err(not_canonical);
        }
        let Ok(value) = strict_json::parse(bytes) else {
            return Err(not_canonical);
        };
        let declaration = read::declaration(&stored::node_of(&value))
            .map_err(|error| DeclarationError { line: None, ..error })?;
        if declaration.canonical == bytes { Ok(declaration) } else { Err(not_canonical) }
    }

    /// Its id: the agent's name in sources, events and routes.
    pub fn id(&self) -> &AgentId {
        &self.id
    }

    /// Its version, from 1; versions only rise.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Who computes the answer.
    pub fn runner(&self) -> Runner {
        self.runner
    }

    /// How the context is built.
    pub fn context(&self) -> ContextKind {
        self.context
    }

    /// The privacy of what it reads.
    pub fn input_privacy(&self) -> Privacy {
        self.input_privacy
    }

    /// What the visible answer must be.
    pub fn output_mode(&self) -> OutputMode {
        self.output_mode
    }

    /// The type of event that an answer becomes.
    pub fn output_type(&self) -> EventType {
        self.output_type
    }

    /// The sources that it follows, at least one, no type and source twice.
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    /// The documents in its context.
    pub fn documents(&self) -> Option<&Documents> {
        self.documents.as_ref()
    }

    /// The declarations whose delivered outputs are history and correction targets, in every version.
    pub fn history_agents(&self) -> &[AgentId] {
        &self.history_agents
    }

    /// The prompt's path, relative to the home.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// The name of the provider in the configuration.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// How many conversations may run side by side.
    pub fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// What it may spend.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The kinds of proposal that it may make, in the order written.
    pub fn proposals(&self) -> &[ProposalKind] {
        &self.proposals
    }

    /// The canonical JSON of the declaration as written: a field that is not written is not there either.
    pub fn canonical_bytes(&self) -> &[u8] {
        &self.canonical
    }
}

/// The fingerprint of what an activation stores: the declaration's canonical bytes, the prompt's bytes and the bytes of
/// the proposal manifest, each by its hash, so that no two triples share one text.
pub fn fingerprint(declaration_canonical: &[u8], prompt: &[u8], proposal_manifest: &[u8]) -> Fingerprint {
    // Canonical JSON written by hand: members in order, and values that need no escape.
    let bytes = format!(
        "{{\"declaration\":\"{}\",\"prompt\":\"{}\",\"proposalManifest\":\"{}\"}}",
        Sha256Hex::of(declaration_canonical),
        Sha256Hex::of(prompt),
        Sha256Hex::of(proposal_manifest)
    );
    Fingerprint::of(bytes.as_bytes())
}
