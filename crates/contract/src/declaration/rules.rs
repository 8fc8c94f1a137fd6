//! What the fields of a declaration must be together: a context and what it reads and writes, and the one tuple that
//! may propose.

use super::error::DeclarationError;
use super::{ContextKind, Declaration, Runner};
use crate::event::{CONTEXT_SOURCE, EventType, Privacy};
use thought_protocol::packet::OutputMode;

type Result = std::result::Result<(), DeclarationError>;

/// The documents that a declaration must read, both and no other, before it may propose.
pub(super) const PROPOSAL_DOCUMENTS: [&str; 2] = ["identity.md", "memory.md"];

/// Builds the refusal of a field by its path, with the line on which it stands.
pub(super) type Refuse<'a> = &'a dyn Fn(&str, &'static str, &str) -> DeclarationError;

/// Proposals are for one exact tuple; the first field that breaks it is named.
pub(super) fn check_proposals(declaration: &Declaration, refuse: Refuse<'_>) -> Result {
    if declaration.proposals.is_empty() {
        return Ok(());
    }
    let demand = |holds: bool, field: &str, why: &'static str, instead: &str| {
        if holds { Ok(()) } else { Err(refuse(field, why, instead)) }
    };
    demand(
        declaration.runner == Runner::Pi,
        "runner",
        "only the runner pi may propose",
        "set runner to pi, or leave policy.proposals empty",
    )?;
    demand(
        declaration.context == ContextKind::TelegramConversation,
        "context",
        "only the context telegram-conversation may propose",
        "set context to telegram-conversation, or leave policy.proposals empty",
    )?;
    demand(
        declaration.input_privacy == Privacy::Sensitive,
        "input.privacy",
        "only a declaration with sensitive input may propose",
        "set input.privacy to sensitive, or leave policy.proposals empty",
    )?;
    demand(
        declaration.output_mode == OutputMode::ConversationText,
        "output.mode",
        "only the output mode conversation-text may propose",
        "set output.mode to conversation-text, or leave policy.proposals empty",
    )?;
    demand(
        declaration.output_type == EventType::MessageObservation,
        "output.type",
        "only a declaration that writes message observations may propose",
        "set output.type to stream.thought.derived.message.observation@1, or leave policy.proposals empty",
    )?;
    let Some(documents) = &declaration.documents else {
        return Err(refuse(
            "documents",
            "only a declaration that reads identity.md and memory.md may propose",
            "write documents with both paths, or leave policy.proposals empty",
        ));
    };
    demand(
        documents.source.as_str() == CONTEXT_SOURCE,
        "documents.source",
        "only a declaration that reads the context root may propose",
        "set documents.source to filesystem:telegram-agent-context, or leave policy.proposals empty",
    )?;
    let both = documents.paths.len() == PROPOSAL_DOCUMENTS.len()
        && PROPOSAL_DOCUMENTS.iter().all(|name| documents.paths.iter().any(|path| path == name));
    demand(
        both,
        "documents.paths",
        "only a declaration that reads exactly identity.md and memory.md may propose",
        "list identity.md and memory.md and no other, or leave policy.proposals empty",
    )
}

/// A context reads one kind of message and writes one kind of answer.
pub(super) fn check_context(declaration: &Declaration, refuse: Refuse<'_>) -> Result {
    let kind = declaration.context;
    if declaration.output_type != kind.output_type() {
        return Err(refuse(
            "output.type",
            "the context writes another type",
            &format!("write {}", kind.output_type()),
        ));
    }
    for (index, subscription) in declaration.subscriptions.iter().enumerate() {
        if subscription.event_type != kind.input_type() {
            return Err(refuse(
                &format!("subscriptions[{index}].type"),
                "the context reads another type",
                &format!("write {}", kind.input_type()),
            ));
        }
        if !subscription.source.as_str().starts_with(kind.source_prefix()) {
            return Err(refuse(
                &format!("subscriptions[{index}].source"),
                "the context reads another kind of source",
                &format!("write {} and a name", kind.source_prefix()),
            ));
        }
    }
    if declaration.input_privacy != kind.input_type().privacy() {
        return Err(refuse(
            "input.privacy",
            "the subscribed events are sensitive",
            "set input.privacy to sensitive",
        ));
    }
    // Between agents only the endpoint's own completed answers are evidence.
    let own = declaration.history_agents.iter().all(|agent| *agent == declaration.id);
    if kind == ContextKind::AgentConversation && !own {
        return Err(refuse(
            "historyAgents",
            "an agent conversation admits its own answers only",
            "leave historyAgents out",
        ));
    }
    Ok(())
}
