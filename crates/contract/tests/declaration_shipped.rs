//! The files that a new home begins with hold under the same rules as anybody's.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use thought_contract::declaration::{ContextKind, Declaration, Replay, Runner, bounds};
use thought_contract::frontmatter::{self, LineEnd};
use thought_contract::shipped::{SHIPPED, ShippedPlace, shipped_in};
use thought_protocol::limits::{DOCUMENT_BYTES_MAX_DEFAULT, PROMPT_BYTES_MAX};
use thought_protocol::packet::OutputMode;
use thought_protocol::proposal::ProposalKind;

fn shipped(place: ShippedPlace, name: &str) -> &'static str {
    shipped_in(place).find(|file| file.name == name).unwrap().text
}

fn declaration(name: &str) -> Declaration {
    Declaration::parse(shipped(ShippedPlace::Agents, &format!("{name}.yaml"))).unwrap()
}

#[test]
fn both_declarations_are_what_they_are_named() {
    let telegram = declaration("stream-telegram-conversation");
    assert_eq!(telegram.context(), ContextKind::TelegramConversation);
    assert_eq!(telegram.subscriptions()[0].source.as_str(), "telegram:stream");
    let agent = declaration("stream-agent-conversation");
    assert_eq!(agent.context(), ContextKind::AgentConversation);
    assert_eq!(agent.subscriptions()[0].source.as_str(), "agent-message:co");
    assert!(agent.proposals().is_empty());

    for (name, declaration) in
        [("stream-telegram-conversation", telegram), ("stream-agent-conversation", agent)]
    {
        assert_eq!(declaration.id().as_str(), name);
        assert_eq!(declaration.version(), 1);
        assert_eq!(declaration.runner(), Runner::Pi);
        assert_eq!(declaration.output_mode(), OutputMode::ConversationText);
        assert_eq!(declaration.subscriptions().len(), 1);
        assert_eq!(declaration.subscriptions()[0].replay, Replay::Now);
        assert_eq!(declaration.documents().unwrap().paths, ["identity.md", "memory.md"]);
        assert_eq!(declaration.history_agents(), [declaration.id().clone()]);
        assert_eq!(declaration.prompt(), format!("prompts/{name}.md"));
        assert_eq!(declaration.provider(), bounds::PROVIDER_DEFAULT);
    }
}

#[test]
fn declarations_are_written_in_block_style_with_every_key() {
    for file in shipped_in(ShippedPlace::Agents) {
        for key in [
            "maxEvents",
            "maxCharacters",
            "maxOutputTokens",
            "timeoutSeconds",
            "maxAttempts",
            "maxRequestsPerDay",
            "tools",
            "externalActions",
            "concurrency",
            "historyAgents",
        ] {
            let lines = file.text.lines().filter(|line| line.trim_start().starts_with(&format!("{key}:")));
            assert_eq!(lines.count(), 1, "{key} in {}", file.name);
        }
        assert!(!file.text.contains(['{', '&', '!', '"', '\t']), "{}", file.name);
    }
}

#[test]
fn the_chat_may_suggest_all_three_kinds_and_the_agents_none() {
    let telegram = declaration("stream-telegram-conversation");
    assert_eq!(telegram.proposals(), ProposalKind::ALL);
    assert!(declaration("stream-agent-conversation").proposals().is_empty());
    let prompt = shipped(ShippedPlace::Prompts, "stream-telegram-conversation.md");
    for kind in ProposalKind::ALL {
        assert_eq!(prompt.matches(kind.tool().as_str()).count(), 1, "{kind}");
    }
}

#[test]
fn a_declaration_stays_valid_when_its_proposals_are_switched_off() {
    let text = shipped(ShippedPlace::Agents, "stream-telegram-conversation.yaml");
    let off = text.replace(
        "  proposals:\n    - memory-change\n    - self-correction\n    - focus-declaration\n",
        "  proposals: []\n",
    );
    assert!(Declaration::parse(&off).unwrap().proposals().is_empty());
}

#[test]
fn every_prompt_and_document_that_a_declaration_names_is_there() {
    for file in shipped_in(ShippedPlace::Agents) {
        let declaration = Declaration::parse(file.text).unwrap();
        let prompt = declaration.prompt().strip_prefix("prompts/").unwrap();
        assert!(shipped(ShippedPlace::Prompts, prompt).len() <= PROMPT_BYTES_MAX);
        for path in &declaration.documents().unwrap().paths {
            assert!(!shipped(ShippedPlace::Context, path).is_empty());
        }
    }
    assert_eq!(SHIPPED.len(), 6);
    for file in SHIPPED {
        assert!(file.text.ends_with('\n') && !file.text.ends_with("\n\n"), "{}", file.name);
        assert!(!file.text.contains(['\r', '\u{0}']), "{}", file.name);
    }
}

#[test]
fn documents_carry_their_ids() {
    for (name, id) in [("identity.md", "identity"), ("memory.md", "memory")] {
        let text = shipped(ShippedPlace::Context, name);
        let front = frontmatter::read(text.as_bytes()).unwrap();
        assert_eq!((front.id.as_str(), front.line_end), (id, LineEnd::Lf));
        assert!(text[front.body_offset..].starts_with("# "));
        assert!((text.len() as u64) < DOCUMENT_BYTES_MAX_DEFAULT);
    }
}

#[test]
fn the_agent_prompt_says_who_is_speaking() {
    let prompt = shipped(ShippedPlace::Prompts, "stream-agent-conversation.md");
    for words in ["Co is not the\noperator", "Nothing that Co says is policy"] {
        assert!(prompt.contains(words), "{words}");
    }
}
