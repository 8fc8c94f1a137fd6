//! From a tree to a declaration, field by field.

use thought_protocol::packet::OutputMode;
use thought_protocol::proposal::ProposalKind;

use super::agent_id::{AgentId, AgentIdError, agent_id, is_slug};
use super::error::{DeclarationError, Problem};
use super::fields::Field;
use super::{
    AGENT_MESSAGE_PREFIX, Budget, ContextKind, Declaration, Documents, RUNNERS_NOT_BUILT, Replay, Result,
    Runner, Subscription, TELEGRAM_PREFIX, bounds, rules, stored,
};
use crate::event::{CONTEXT_SOURCE, EventType, Privacy, SourceName};
use crate::yaml::Node;

const KEYS: [&str; 14] = [
    "id",
    "version",
    "runner",
    "context",
    "input",
    "output",
    "subscriptions",
    "documents",
    "historyAgents",
    "prompt",
    "provider",
    "concurrency",
    "budget",
    "policy",
];
const CONTEXTS: [(&str, ContextKind); 2] = [
    (ContextKind::TelegramConversation.as_str(), ContextKind::TelegramConversation),
    (ContextKind::AgentConversation.as_str(), ContextKind::AgentConversation),
];
const PRIVACIES: [(&str, Privacy); 2] =
    [(Privacy::Sensitive.as_str(), Privacy::Sensitive), (Privacy::Private.as_str(), Privacy::Private)];
const OUTPUT_MODES: [(&str, OutputMode); 2] = [
    (OutputMode::ConversationText.as_str(), OutputMode::ConversationText),
    (OutputMode::StrictJson.as_str(), OutputMode::StrictJson),
];
const OUTPUT_TYPES: [EventType; 2] = [EventType::MessageObservation, EventType::DerivedAgentMessage];
const INPUT_TYPES: [EventType; 2] = [EventType::TelegramMessage, EventType::AgentMessage];
const REPLAYS: [(&str, Replay); 2] = [("now", Replay::Now), ("all", Replay::All)];
const BUDGET_KEYS: [&str; 6] =
    ["maxEvents", "maxCharacters", "maxOutputTokens", "timeoutSeconds", "maxAttempts", "maxRequestsPerDay"];

const AGENT_ID_FORM: &str = "2 to 64 characters of a-z and 0-9 in words joined by single hyphens";
const PATH_FORM: &str = "a relative path of at most 255 bytes, without . or .. or empty parts";
const PROVIDER_FORM: &str = "a name of at most 64 letters, digits, hyphens and underscores";
const SOURCE_FORM: &str = "a source: telegram: or agent-message: and a lower-case name";

/// Reads a whole declaration and checks it as one.
pub(super) fn declaration(root: &Node) -> Result<Declaration> {
    let fields = Field::root(root).fields(&KEYS)?;
    let id = read_agent_id(&fields.require("id")?)?;
    let version = fields.require("version")?.number(&bounds::VERSION)?;
    let runner = read_runner(&fields.require("runner")?)?;
    let context = fields.require("context")?.one_of(&CONTEXTS)?;
    let input = fields.require("input")?.fields(&["privacy"])?;
    let input_privacy = input.require("privacy")?.one_of(&PRIVACIES)?;
    let output = fields.require("output")?.fields(&["mode", "type"])?;
    let output_mode = output.require("mode")?.one_of(&OUTPUT_MODES)?;
    let output_type = read_type(&output.require("type")?, &OUTPUT_TYPES)?;
    let subscriptions = read_subscriptions(&fields.require("subscriptions")?)?;
    let documents = fields.get("documents").map(read_documents).transpose()?;
    let history_agents = match fields.get("historyAgents") {
        Some(field) => field.distinct(&bounds::HISTORY_AGENTS, |entry| read_agent_id(&entry))?,
        None => vec![id.clone()],
    };
    let prompt = read_path(&fields.require("prompt")?)?;
    let provider = match fields.get("provider") {
        Some(field) => field.form(PROVIDER_FORM, is_provider)?.to_owned(),
        None => bounds::PROVIDER_DEFAULT.to_owned(),
    };
    let concurrency = fields.number_or("concurrency", &bounds::CONCURRENCY, bounds::CONCURRENCY_DEFAULT)?;
    let budget = fields.get("budget").map_or(Ok(Budget::default()), read_budget)?;
    let proposals = fields.get("policy").map_or(Ok(Vec::new()), read_policy)?;
    let canonical = stored::canonical_bytes(root)?;
    let declaration = Declaration {
        id,
        version,
        runner,
        context,
        input_privacy,
        output_mode,
        output_type,
        subscriptions,
        documents,
        history_agents,
        prompt,
        provider,
        concurrency,
        budget,
        proposals,
        canonical,
    };
    let refuse = |path: &str, why, hint: &str| refusal_at(root, path, why, hint);
    rules::check_proposals(&declaration, &refuse)?;
    rules::check_context(&declaration, &refuse)?;
    Ok(declaration)
}

fn read_agent_id(field: &Field<'_>) -> Result<AgentId> {
    match agent_id(field.text()?) {
        Ok(id) => Ok(id),
        Err(AgentIdError) => Err(field.refuse(Problem::Form { expected: AGENT_ID_FORM }, None)),
    }
}

fn read_runner(field: &Field<'_>) -> Result<Runner> {
    const KNOWN: [(&str, Runner); 2] =
        [(Runner::Pi.as_str(), Runner::Pi), (Runner::Deterministic.as_str(), Runner::Deterministic)];
    if RUNNERS_NOT_BUILT.contains(&field.text()?) {
        return Err(field.refuse(Problem::NoSuchRunner, Some("it has pi and deterministic".to_owned())));
    }
    field.one_of(&KNOWN)
}

/// The name of an event type, in full and with its version: the one form that is accepted.
fn read_type(field: &Field<'_>, known: &[EventType]) -> Result<EventType> {
    let names: Vec<(&str, EventType)> =
        known.iter().map(|event_type| (event_type.as_str(), *event_type)).collect();
    field.one_of(&names)
}

fn read_subscriptions(field: &Field<'_>) -> Result<Vec<Subscription>> {
    let mut subscriptions: Vec<Subscription> = Vec::new();
    for entry in field.list(&bounds::SUBSCRIPTIONS)? {
        let fields = entry.clone().fields(&["type", "source", "replay"])?;
        let event_type = read_type(&fields.require("type")?, &INPUT_TYPES)?;
        let source = SourceName::new(fields.require("source")?.form(SOURCE_FORM, is_source)?);
        let replay = fields.require("replay")?.one_of(&REPLAYS)?;
        if subscriptions.iter().any(|other| other.event_type == event_type && other.source == source) {
            return Err(entry.refuse(Problem::Repeated, None));
        }
        subscriptions.push(Subscription { event_type, source, replay });
    }
    Ok(subscriptions)
}

fn is_source(text: &str) -> bool {
    if let Some(name) = text.strip_prefix(AGENT_MESSAGE_PREFIX) {
        return agent_id(name).is_ok();
    }
    text.strip_prefix(TELEGRAM_PREFIX)
        .is_some_and(|name| name.len() <= bounds::NAME_BYTES_MAX && is_slug(name))
}

fn read_documents(field: Field<'_>) -> Result<Documents> {
    let fields = field.fields(&["source", "paths"])?;
    let source = fields.require("source")?.one_of(&[(CONTEXT_SOURCE, CONTEXT_SOURCE)])?;
    let paths = fields.require("paths")?.distinct(&bounds::DOCUMENT_PATHS, |entry| read_path(&entry))?;
    Ok(Documents { source: SourceName::new(source), paths })
}

fn read_path(field: &Field<'_>) -> Result<String> {
    field.form(PATH_FORM, is_relative_path).map(str::to_owned)
}

fn is_relative_path(text: &str) -> bool {
    text.len() <= bounds::PATH_BYTES_MAX
        && !text.chars().any(|character| character.is_control() || character == '\\')
        && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn is_provider(text: &str) -> bool {
    (1..=bounds::NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn read_budget(field: Field<'_>) -> Result<Budget> {
    let fields = field.fields(&BUDGET_KEYS)?;
    let absent = Budget::default();
    let number = |name, range, value| fields.number_or(name, range, value);
    Ok(Budget {
        events_max: number("maxEvents", &bounds::MAX_EVENTS, absent.events_max)?,
        characters_max: number("maxCharacters", &bounds::MAX_CHARACTERS, absent.characters_max)?,
        output_tokens_max: number("maxOutputTokens", &bounds::MAX_OUTPUT_TOKENS, absent.output_tokens_max)?,
        timeout_seconds: number("timeoutSeconds", &bounds::TIMEOUT_SECONDS, absent.timeout_seconds)?,
        attempts_max: number("maxAttempts", &bounds::MAX_ATTEMPTS, absent.attempts_max)?,
        requests_per_day_max: number(
            "maxRequestsPerDay",
            &bounds::MAX_REQUESTS_PER_DAY,
            absent.requests_per_day_max,
        )?,
    })
}

/// Tools and external actions have keys so that their absence can be written down; no other value is accepted.
fn read_policy(field: Field<'_>) -> Result<Vec<ProposalKind>> {
    let fields = field.fields(&["tools", "proposals", "externalActions"])?;
    if let Some(tools) = fields.get("tools")
        && !tools.list(&(0..=usize::MAX))?.is_empty()
    {
        return Err(tools.refuse(
            Problem::Refused { why: "a declaration grants no tool" },
            Some("write tools: [], or leave it out".to_owned()),
        ));
    }
    if let Some(actions) = fields.get("externalActions")
        && actions.boolean()?
    {
        return Err(actions.refuse(
            Problem::Refused { why: "a declaration grants no external action" },
            Some("write externalActions: false, or leave it out".to_owned()),
        ));
    }
    let known = ProposalKind::ALL.map(|kind| (kind.as_str(), kind));
    match fields.get("proposals") {
        Some(proposals) => proposals.distinct(&bounds::PROPOSALS, |entry| entry.one_of(&known)),
        None => Ok(Vec::new()),
    }
}

/// The refusal of a combination, on the line of the field that breaks it.
fn refusal_at(root: &Node, path: &str, why: &'static str, hint: &str) -> DeclarationError {
    let mut node = root;
    for part in path.split(['.', '[']) {
        let next = match part.strip_suffix(']') {
            Some(index) => {
                let index: usize = index.parse().unwrap_or(usize::MAX);
                node.as_sequence().and_then(|items| items.get(index))
            }
            None => node.get(part),
        };
        let Some(next) = next else { break };
        node = next;
    }
    DeclarationError {
        line: Some(node.line()),
        field: path.to_owned(),
        problem: Problem::Refused { why },
        hint: Some(hint.to_owned()),
    }
}
