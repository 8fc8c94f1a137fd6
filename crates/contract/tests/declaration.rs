//! Declarations: what is read, what is refused and by which field, and the bytes that a fingerprint rests on.

#![expect(clippy::panic, reason = "a helper of a test fails the test")]

use thought_contract::declaration::{
    AgentId, Budget, ContextKind, Declaration, DeclarationError, Problem, RUNNERS_NOT_BUILT, Replay, Runner,
    agent_id, bounds, fingerprint, nearest_name,
};
use thought_contract::event::{EventType, Privacy};
use thought_contract::yaml::YamlErrorKind;
use thought_protocol::canonical;
use thought_protocol::packet::OutputMode;
use thought_protocol::proposal::ProposalKind;

/// All that must be written, and nothing else.
const LEAST: &str = "\
id: stream-telegram-conversation
version: 1
runner: pi
context: telegram-conversation
input:
  privacy: sensitive
output:
  mode: conversation-text
  type: stream.thought.derived.message.observation@1
subscriptions:
  - type: stream.thought.source.telegram.message@1
    source: telegram:stream
    replay: now
prompt: prompts/p.md
";

/// The tuple that may propose.
const PROPOSING: &str = "\
documents:
  source: filesystem:telegram-agent-context
  paths: [identity.md, memory.md]
policy:
  tools: []
  proposals: [memory-change, self-correction, focus-declaration]
  externalActions: false
";

fn proposing() -> String {
    format!("{LEAST}{PROPOSING}")
}

fn agent() -> String {
    LEAST
        .replace("telegram-conversation", "agent-conversation")
        .replace("derived.message.observation", "derived.agent.message")
        .replace("source.telegram.message", "source.agent.message")
        .replace("telegram:stream", "agent-message:co")
}

fn read(text: &str) -> Declaration {
    Declaration::parse(text).unwrap_or_else(|error| panic!("{error} ({:?})\n{text}", error.hint))
}

fn refused(text: &str) -> DeclarationError {
    match Declaration::parse(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error,
    }
}

/// Replaces one piece of text that must be there.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not in the text");
    text.replacen(from, to, 1)
}

/// The refusal of a text with one piece replaced: its field and line.
fn field_of(text: &str, from: &str, to: &str) -> (String, Option<usize>) {
    let error = refused(&with(text, from, to));
    (error.field, error.line)
}

#[test]
fn the_least_declaration_grants_nothing_and_takes_the_defaults() {
    let declaration = read(LEAST);
    assert_eq!(declaration.id().as_str(), "stream-telegram-conversation");
    assert_eq!(declaration.version(), 1);
    assert_eq!(declaration.runner(), Runner::Pi);
    assert_eq!(declaration.context(), ContextKind::TelegramConversation);
    assert_eq!(declaration.input_privacy(), Privacy::Sensitive);
    assert_eq!(declaration.output_mode(), OutputMode::ConversationText);
    assert_eq!(declaration.output_type(), EventType::MessageObservation);
    assert_eq!(declaration.subscriptions().len(), 1);
    assert_eq!(declaration.subscriptions()[0].event_type, EventType::TelegramMessage);
    assert_eq!(declaration.subscriptions()[0].source.as_str(), "telegram:stream");
    assert_eq!(declaration.subscriptions()[0].replay, Replay::Now);
    assert_eq!(declaration.documents(), None);
    assert_eq!(declaration.history_agents(), std::slice::from_ref(declaration.id()));
    assert_eq!(declaration.prompt(), "prompts/p.md");
    assert_eq!(declaration.provider(), "main");
    assert_eq!(declaration.concurrency(), 4);
    assert_eq!(*declaration.budget(), Budget::default());
    assert_eq!(declaration.budget().attempts_max, 3);
    assert!(declaration.proposals().is_empty());
}

#[test]
fn every_field_is_read() {
    let text = format!(
        "{}historyAgents: [old-stream, stream-telegram-conversation]\nprovider: local_2\nconcurrency: 2\nbudget:\n  maxEvents: 8\n  maxCharacters: 900\n  maxOutputTokens: 64\n  timeoutSeconds: 30\n  maxAttempts: 1\n  maxRequestsPerDay: 0\n",
        with(&proposing(), "replay: now", "replay: all")
    );
    let declaration = read(&text);
    assert_eq!(declaration.subscriptions()[0].replay, Replay::All);
    let documents = declaration.documents().unwrap();
    assert_eq!(documents.source.as_str(), "filesystem:telegram-agent-context");
    assert_eq!(documents.paths, ["identity.md", "memory.md"]);
    assert_eq!(
        declaration.history_agents().iter().map(AgentId::as_str).collect::<Vec<_>>(),
        ["old-stream", "stream-telegram-conversation"]
    );
    assert_eq!((declaration.provider(), declaration.concurrency()), ("local_2", 2));
    let budget = Budget {
        events_max: 8,
        characters_max: 900,
        output_tokens_max: 64,
        timeout_seconds: 30,
        attempts_max: 1,
        requests_per_day_max: 0,
    };
    assert_eq!(*declaration.budget(), budget);
    assert_eq!(declaration.proposals(), ProposalKind::ALL);
    assert_eq!(read(&with(LEAST, "runner: pi", "runner: deterministic")).runner(), Runner::Deterministic);
    assert_eq!(read(&with(LEAST, "conversation-text", "strict-json")).output_mode(), OutputMode::StrictJson);
    let endpoint = read(&agent());
    assert_eq!(endpoint.context(), ContextKind::AgentConversation);
    assert_eq!(endpoint.output_type(), EventType::DerivedAgentMessage);
    assert_eq!(endpoint.subscriptions()[0].source.as_str(), "agent-message:co");
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
    let error = refused(&format!("{LEAST}budgt:\n  maxEvents: 1\n"));
    assert_eq!((error.line, error.field.as_str()), (Some(15), "budgt"));
    assert_eq!(error.problem, Problem::UnknownKey);
    assert_eq!(error.hint.as_deref(), Some("did you mean budget?"));
    assert_eq!(error.to_string(), "read a declaration: line 15: budgt: unknown key");

    let deep = refused(&with(LEAST, "    replay: now", "    replay: now\n    repaly: all"));
    assert_eq!((deep.line, deep.field.as_str()), (Some(14), "subscriptions[0].repaly"));
    assert_eq!(deep.hint.as_deref(), Some("did you mean replay?"));

    for text in ["\"\\nx\": 1", "? 12\n: 1", "learnedAdapter: x"] {
        let far = refused(&format!("{LEAST}{text}\n"));
        assert_eq!((&far.problem, far.hint.as_deref()), (&Problem::UnknownKey, None), "{text}");
        assert!(!far.field.contains('\n'));
    }
}

#[test]
fn a_missing_field_is_named() {
    for (line, field) in [
        ("id: stream-telegram-conversation\n", "id"),
        ("version: 1\n", "version"),
        ("runner: pi\n", "runner"),
        ("context: telegram-conversation\n", "context"),
        ("input:\n  privacy: sensitive\n", "input"),
        ("prompt: prompts/p.md\n", "prompt"),
        ("  mode: conversation-text\n", "output.mode"),
        ("  type: stream.thought.derived.message.observation@1\n", "output.type"),
        ("    source: telegram:stream\n", "subscriptions[0].source"),
        ("    replay: now\n", "subscriptions[0].replay"),
    ] {
        let error = refused(&with(LEAST, line, ""));
        assert_eq!((error.field.as_str(), error.problem), (field, Problem::Missing));
        assert!(error.line.is_some());
    }
    let bare = with(LEAST, "subscriptions:\n  - type", "subscriptions:\n  - typ");
    assert_eq!(refused(&bare).field, "subscriptions[0].typ");
    assert_eq!(
        refused(&with(&proposing(), "  paths: [identity.md, memory.md]\n", "")).field,
        "documents.paths"
    );
}

#[test]
fn a_value_of_another_kind_is_refused_and_never_converted() {
    let cases = [
        ("version: 1", "version: \"1\"", "version"),
        ("version: 1", "version: 1.0", "version"),
        ("version: 1", "version: one", "version"),
        ("version: 1", "version: null", "version"),
        ("version: 1", "version: [1]", "version"),
        ("id: stream-telegram-conversation", "id: 12", "id"),
        ("id: stream-telegram-conversation", "id:", "id"),
        ("runner: pi", "runner: true", "runner"),
        ("input:\n  privacy: sensitive", "input: sensitive", "input"),
        ("input:\n  privacy: sensitive", "input: [privacy]", "input"),
        ("prompt: prompts/p.md", "prompt: [prompts/p.md]", "prompt"),
        ("tools: []", "tools: none", "policy.tools"),
        ("externalActions: false", "externalActions: no", "policy.externalActions"),
        ("externalActions: false", "externalActions: 0", "policy.externalActions"),
        ("paths: [identity.md, memory.md]", "paths: identity.md", "documents.paths"),
        ("paths: [identity.md, memory.md]", "paths: [identity.md, 7]", "documents.paths[1]"),
    ];
    for (from, to, field) in cases {
        let error = refused(&with(&proposing(), from, to));
        assert_eq!(error.field, field, "{to}");
        assert!(matches!(error.problem, Problem::WrongType { .. }), "{to}: {:?}", error.problem);
    }
    for text in ["- a\n", "text\n", "12\n"] {
        assert!(matches!(refused(text).problem, Problem::WrongType { .. }), "{text}");
    }
}

#[test]
fn numbers_have_bounds_on_both_sides() {
    let budget = |key: &str, value: i64| format!("{LEAST}budget:\n  {key}: {value}\n");
    for (key, range) in [
        ("maxEvents", bounds::MAX_EVENTS),
        ("maxCharacters", bounds::MAX_CHARACTERS),
        ("maxOutputTokens", bounds::MAX_OUTPUT_TOKENS),
        ("timeoutSeconds", bounds::TIMEOUT_SECONDS),
        ("maxAttempts", bounds::MAX_ATTEMPTS),
        ("maxRequestsPerDay", bounds::MAX_REQUESTS_PER_DAY),
    ] {
        let (low, high) = (i64::from(*range.start()), i64::from(*range.end()));
        read(&budget(key, low));
        read(&budget(key, high));
        for outside in [low - 1, high + 1, i64::MAX, i64::MIN] {
            let error = refused(&budget(key, outside));
            assert_eq!(error.field, format!("budget.{key}"));
            assert_eq!(error.line, Some(16));
            assert_eq!(error.problem, Problem::OutOfRange { min: *range.start(), max: *range.end() });
        }
    }
    for (from, to, field) in [
        ("version: 1", "version: 0", "version"),
        ("version: 1", "version: 1000001", "version"),
        ("version: 1", "version: -1", "version"),
        ("prompt:", "concurrency: 0\nprompt:", "concurrency"),
        ("prompt:", "concurrency: 65\nprompt:", "concurrency"),
    ] {
        assert_eq!(field_of(LEAST, from, to).0, field, "{to}");
    }
    read(&with(LEAST, "version: 1", "version: 1000000"));
    assert!(matches!(
        refused(&budget("maxEvents", 1).replace("maxEvents: 1", "maxEvents: 1e3")).problem,
        Problem::WrongType { .. }
    ));
}

#[test]
fn runners_of_other_builds_are_told_apart_from_unknown_ones() {
    for runner in RUNNERS_NOT_BUILT {
        let error = refused(&with(LEAST, "runner: pi", &format!("runner: {runner}")));
        assert_eq!((error.field.as_str(), error.line), ("runner", Some(3)));
        assert_eq!(error.problem, Problem::NoSuchRunner);
        assert!(error.to_string().ends_with("runner: this build has no such runner"), "{error}");
    }
    let near = refused(&with(LEAST, "runner: pi", "runner: determinstic"));
    assert_eq!(near.problem, Problem::UnknownValue);
    assert_eq!(near.hint.as_deref(), Some("did you mean deterministic?"));
    let far = refused(&with(LEAST, "runner: pi", "runner: whatever"));
    assert_eq!(far.hint.as_deref(), Some("known: pi, deterministic"));
    assert_eq!(refused(&with(LEAST, "runner: pi", "runner: Pi")).field, "runner");
}

#[test]
fn names_and_forms_are_exact() {
    let cases = [
        ("id: stream-telegram-conversation", "id: Stream", "id"),
        ("id: stream-telegram-conversation", "id: s", "id"),
        ("id: stream-telegram-conversation", "id: a--b", "id"),
        ("context: telegram-conversation", "context: telegram", "context"),
        ("privacy: sensitive", "privacy: public", "input.privacy"),
        ("mode: conversation-text", "mode: text", "output.mode"),
        ("observation@1", "observation", "output.type"),
        ("observation@1", "observation@2", "output.type"),
        ("source.telegram.message@1", "source.telegram.command@1", "subscriptions[0].type"),
        ("source.telegram.message@1", "source.telegram.message", "subscriptions[0].type"),
        ("source: telegram:stream", "source: stream", "subscriptions[0].source"),
        ("source: telegram:stream", "source: 'telegram:'", "subscriptions[0].source"),
        ("source: telegram:stream", "source: telegram:a b", "subscriptions[0].source"),
        ("replay: now", "replay: latest", "subscriptions[0].replay"),
        ("prompt: prompts/p.md", "prompt: /etc/passwd", "prompt"),
        ("prompt: prompts/p.md", "prompt: prompts/../p.md", "prompt"),
        ("prompt: prompts/p.md", "prompt: ./p.md", "prompt"),
        ("prompt: prompts/p.md", "prompt: prompts//p.md", "prompt"),
        ("prompt: prompts/p.md", "prompt: prompts/", "prompt"),
        ("prompt: prompts/p.md", "prompt: 'a\\b'", "prompt"),
        ("prompt: prompts/p.md", "prompt: ''", "prompt"),
        ("prompt: prompts/p.md", "prompt: \"a\\0b\"", "prompt"),
        ("prompt:", "provider: 'a b'\nprompt:", "provider"),
        ("prompt:", "provider: ''\nprompt:", "provider"),
        ("prompt:", "historyAgents: [A]\nprompt:", "historyAgents[0]"),
        ("prompt:", "documents: {source: 'filesystem:other', paths: [a.md]}\nprompt:", "documents.source"),
        (
            "prompt:",
            "documents: {source: 'filesystem:telegram-agent-context', paths: [../a.md]}\nprompt:",
            "documents.paths[0]",
        ),
        ("prompt:", "policy: {proposals: [memory-changes]}\nprompt:", "policy.proposals[0]"),
    ];
    for (from, to, field) in cases {
        assert_eq!(field_of(LEAST, from, to).0, field, "{to}");
    }
    assert_eq!(field_of(LEAST, "prompt: prompts/p.md", &format!("prompt: {}", "a".repeat(256))).0, "prompt");
    let short = refused(&with(LEAST, "observation@1", "observation"));
    assert_eq!(short.hint.as_deref(), Some("did you mean stream.thought.derived.message.observation@1?"));
}

#[test]
fn lists_have_bounds_and_no_entry_twice() {
    let entry =
        "  - type: stream.thought.source.telegram.message@1\n    source: telegram:stream\n    replay: now\n";
    let twice = refused(&with(LEAST, entry, &entry.repeat(2)));
    assert_eq!(
        (twice.field.as_str(), twice.line, twice.problem),
        ("subscriptions[1]", Some(14), Problem::Repeated)
    );
    let many: String = (0..17).map(|n| entry.replace("telegram:stream", &format!("telegram:s{n}"))).collect();
    assert_eq!(refused(&with(LEAST, entry, &many)).problem, Problem::Count { min: 1, max: 16 });
    let none = with(LEAST, &format!("subscriptions:\n{entry}"), "subscriptions: []\n");
    assert_eq!(refused(&none).field, "subscriptions");

    for (from, to, field) in [
        ("[identity.md, memory.md]", "[identity.md, identity.md]", "documents.paths[1]"),
        ("[identity.md, memory.md]", "[]", "documents.paths"),
        (
            "[memory-change, self-correction, focus-declaration]",
            "[memory-change, memory-change]",
            "policy.proposals[1]",
        ),
        ("policy:", "historyAgents: [aa, aa]\npolicy:", "historyAgents[1]"),
    ] {
        assert_eq!(field_of(&proposing(), from, to).0, field, "{to}");
    }
}

#[test]
fn tools_and_external_actions_are_never_granted() {
    for text in [proposing(), format!("{}policy: {{tools: [], externalActions: false}}\n", agent())] {
        let tools = refused(&with(&text, "tools: []", "tools: [web-search]"));
        assert_eq!(tools.field, "policy.tools");
        assert!(matches!(tools.problem, Problem::Refused { .. }));
        let actions = refused(&with(&text, "externalActions: false", "externalActions: true"));
        assert_eq!(actions.field, "policy.externalActions");
        assert!(matches!(actions.problem, Problem::Refused { .. }));
    }
}

#[test]
fn proposals_are_for_the_exact_tuple_and_the_breaking_field_is_named() {
    assert_eq!(read(&proposing()).proposals().len(), 3);
    let reversed = read(&with(&proposing(), "[identity.md, memory.md]", "[memory.md, identity.md]"));
    assert_eq!(reversed.documents().unwrap().paths[0], "memory.md");
    let one = read(&with(&proposing(), ", self-correction, focus-declaration", ""));
    assert_eq!(one.proposals(), [ProposalKind::MemoryChange]);

    let cases = [
        ("runner: pi", "runner: deterministic", "runner", 3),
        ("context: telegram-conversation", "context: agent-conversation", "context", 4),
        ("privacy: sensitive", "privacy: private", "input.privacy", 6),
        ("mode: conversation-text", "mode: strict-json", "output.mode", 8),
        ("derived.message.observation@1", "derived.agent.message@1", "output.type", 9),
        ("[identity.md, memory.md]", "[memory.md]", "documents.paths", 17),
        ("[identity.md, memory.md]", "[identity.md, notes.md]", "documents.paths", 17),
        ("[identity.md, memory.md]", "[identity.md, memory.md, notes.md]", "documents.paths", 17),
        ("[identity.md, memory.md]", "[identity.md, sub/memory.md]", "documents.paths", 17),
    ];
    for (from, to, field, line) in cases {
        let error = refused(&with(&proposing(), from, to));
        assert_eq!((error.field.as_str(), error.line), (field, Some(line)), "{to}");
        assert!(matches!(error.problem, Problem::Refused { .. }), "{to}");
        assert!(error.hint.is_some());
    }
    let documents =
        "documents:\n  source: filesystem:telegram-agent-context\n  paths: [identity.md, memory.md]\n";
    assert_eq!(field_of(&proposing(), documents, "").0, "documents");
    let endpoint = format!("{}{PROPOSING}", agent());
    assert_eq!(refused(&endpoint).field, "context");
}

#[test]
fn a_context_reads_and_writes_its_own_types_only() {
    let cases = [
        (LEAST.to_owned(), "derived.message.observation", "derived.agent.message", "output.type"),
        (LEAST.to_owned(), "source.telegram.message", "source.agent.message", "subscriptions[0].type"),
        (LEAST.to_owned(), "telegram:stream", "agent-message:co", "subscriptions[0].source"),
        (LEAST.to_owned(), "privacy: sensitive", "privacy: private", "input.privacy"),
        (agent(), "derived.agent.message", "derived.message.observation", "output.type"),
        (agent(), "source.agent.message", "source.telegram.message", "subscriptions[0].type"),
        (agent(), "agent-message:co", "telegram:stream", "subscriptions[0].source"),
        (agent(), "agent-message:co", "agent-message:Co", "subscriptions[0].source"),
        (agent(), "prompt:", "historyAgents: [stream-telegram-conversation]\nprompt:", "historyAgents"),
    ];
    for (text, from, to, field) in cases {
        assert_eq!(field_of(&text, from, to).0, field, "{to}");
    }
    read(&with(&agent(), "prompt:", "historyAgents: [stream-agent-conversation]\nprompt:"));
}

#[test]
fn what_is_not_strict_yaml_is_refused_with_its_line() {
    let cases = [
        (format!("{LEAST}id: other\n"), YamlErrorKind::DuplicateKey, 15),
        (format!("{LEAST}provider: &a main\n"), YamlErrorKind::Anchor, 15),
        (format!("{LEAST}provider: !!str main\n"), YamlErrorKind::Tag, 15),
        (format!("{LEAST}---\n{LEAST}"), YamlErrorKind::SecondDocument, 15),
        (format!("\u{feff}{LEAST}"), YamlErrorKind::ByteOrderMark, 1),
        (format!("{LEAST}provider: \"a\n"), YamlErrorKind::Syntax, 15),
        (String::new(), YamlErrorKind::Empty, 1),
    ];
    for (text, kind, line) in cases {
        let error = refused(&text);
        assert_eq!(error.problem, Problem::Yaml(kind));
        assert_eq!(error.field, "");
        assert!(error.line >= Some(line), "{kind:?}: {:?}", error.line);
    }
    let long = refused(&format!("{LEAST}# {}\n", "x".repeat(64 * 1024)));
    assert!(matches!(long.problem, Problem::TooLong { .. }));
}

#[test]
fn canonical_bytes_hold_what_was_written_and_nothing_more() {
    let bytes = read(LEAST).canonical_bytes().to_vec();
    let expected = "{\"context\":\"telegram-conversation\",\"id\":\"stream-telegram-conversation\",\
        \"input\":{\"privacy\":\"sensitive\"},\"output\":{\"mode\":\"conversation-text\",\
        \"type\":\"stream.thought.derived.message.observation@1\"},\"prompt\":\"prompts/p.md\",\"runner\":\"pi\",\
        \"subscriptions\":[{\"replay\":\"now\",\"source\":\"telegram:stream\",\
        \"type\":\"stream.thought.source.telegram.message@1\"}],\"version\":1}";
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);

    // The way of writing does not count; what is written does, be it the default.
    let other_way =
        LEAST.replace("runner: pi", "# a comment\r\nrunner: 'pi'").replace("version: 1", "version: 0x1");
    assert_eq!(read(&other_way).canonical_bytes(), bytes);
    let moved = format!("prompt: prompts/p.md\n{}", with(LEAST, "prompt: prompts/p.md\n", ""));
    assert_eq!(read(&moved).canonical_bytes(), bytes);
    assert_ne!(read(&format!("{LEAST}concurrency: 4\n")).canonical_bytes(), bytes);
    assert_ne!(read(&format!("{LEAST}policy: {{}}\n")).canonical_bytes(), bytes);
}

#[test]
fn stored_bytes_give_the_same_declaration_back() {
    for text in
        [LEAST.to_owned(), proposing(), agent(), with(LEAST, "prompts/p.md", "prompts/\u{e9} \u{1F600}.md")]
    {
        let declaration = read(&text);
        assert_eq!(Declaration::from_canonical(declaration.canonical_bytes()).unwrap(), declaration);
    }
    let text = String::from_utf8(read(LEAST).canonical_bytes().to_vec()).unwrap();
    for broken in [
        text.replace(":1}", ":1 }"),
        text.replacen("{\"context\"", "{\"version\":1,\"context\"", 1),
        text[..text.len() - 1].to_owned(),
        format!("{text}\n"),
        "[]".to_owned(),
        String::new(),
    ] {
        assert!(Declaration::from_canonical(broken.as_bytes()).is_err(), "{broken}");
    }
    let error = Declaration::from_canonical(text.replace("\"pi\"", "\"repair\"").as_bytes()).unwrap_err();
    assert_eq!((error.line, error.field.as_str(), error.problem), (None, "runner", Problem::NoSuchRunner));
    assert!(Declaration::from_canonical(b"\xff").is_err());
}

#[test]
fn a_fingerprint_depends_on_each_of_its_three_parts() {
    let declaration = read(LEAST);
    let base = fingerprint(declaration.canonical_bytes(), b"prompt", b"manifest");
    assert_eq!(base, fingerprint(declaration.canonical_bytes(), b"prompt", b"manifest"));
    let bumped = read(&with(LEAST, "version: 1", "version: 2"));
    assert_ne!(base, fingerprint(bumped.canonical_bytes(), b"prompt", b"manifest"));
    assert_ne!(base, fingerprint(declaration.canonical_bytes(), b"prompt\n", b"manifest"));
    assert_ne!(base, fingerprint(declaration.canonical_bytes(), b"prompt", b"manifest2"));
    // No byte can move from one part to the next.
    assert_ne!(fingerprint(b"ab", b"c", b"d"), fingerprint(b"a", b"bc", b"d"));

    let hash = |bytes: &[u8]| thought_protocol::Sha256Hex::of(bytes).to_string();
    let parts = serde_json::json!({
        "declaration": hash(b"a"), "prompt": hash(b"b"), "proposalManifest": hash(b"c")
    });
    let canonical = canonical::to_vec(&parts).unwrap();
    assert_eq!(fingerprint(b"a", b"b", b"c"), thought_protocol::Fingerprint::of(&canonical));
}

#[test]
fn agent_ids_are_words_joined_by_single_hyphens() {
    for text in ["co", "a1", "12", "stream-agent-conversation", "a-b-c-9", &"a".repeat(64)] {
        let id = agent_id(text).unwrap();
        assert_eq!((id.as_str(), id.to_string().as_str()), (text, text));
        assert_eq!(text.parse::<AgentId>(), Ok(id.clone()));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<AgentId>(&json).unwrap(), id);
    }
    for text in
        ["", "a", "-a", "a-", "a--b", "Co", "a_b", "a b", "a.b", "\u{e9}\u{e9}", "co\n", &"a".repeat(65)]
    {
        assert!(agent_id(text).is_err(), "{text:?}");
        assert!(serde_json::from_value::<AgentId>(serde_json::json!(text)).is_err());
    }
    assert!(agent_id("aa").unwrap() < agent_id("ab").unwrap());
}

#[test]
fn the_nearest_name_is_near() {
    let known = ["version", "runner", "prompt", "historyAgents", "id"];
    for (written, expected) in [
        ("verison", Some("version")),
        ("Version", Some("version")),
        ("runer", Some("runner")),
        ("promtp", Some("prompt")),
        ("history_agents", Some("historyAgents")),
        ("historyAgent", Some("historyAgents")),
        ("di", Some("id")),
        ("colour", None),
        ("x", None),
        ("", None),
    ] {
        assert_eq!(nearest_name(written, &known), expected, "{written}");
    }
    assert_eq!(nearest_name(&"version".repeat(1_000), &known), None);
    assert_eq!(nearest_name("version", &[]), None);
}
