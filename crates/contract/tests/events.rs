//! Golden files of every event type: what was once written decodes for ever, and its id, equality and place in a lineage
//! never move. A new version of a payload is a new type with a golden file of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot build its evidence has failed")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use thought_contract::draft::{self, Draft, Ending, NoticeSubject};
use thought_contract::event::{Envelope, EventType, SourceName, StoredEvent};
use thought_contract::payload as p;
use thought_contract::time::Timestamp;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{
    AttemptId, DocumentId, EventId, Fingerprint, RunId, Sensitive, Sha256Hex, SnapshotId, VersionId,
};

const AT: i64 = 1_796_072_531_402;

fn at() -> Timestamp {
    Timestamp::from_ms(AT)
}

fn sha(text: &str) -> Sha256Hex {
    Sha256Hex::of(text.as_bytes())
}

fn event(name: &str) -> EventId {
    EventId::of("golden", &[json!(name)])
}

/// A stored event made from a draft, as the first of its source.
fn stored(draft: &Draft) -> StoredEvent {
    let envelope = Envelope {
        id: draft.id().clone(),
        event_type: draft.event_type(),
        source: draft.source().clone(),
        sequence: 1,
        position: 1,
        actor: draft.actor().clone(),
        root_id: draft.root_id().clone(),
        parent_id: draft.parent().cloned(),
        privacy: draft.event_type().privacy(),
        correlation_id: draft.correlation_id().map(str::to_owned),
        external_id: draft.external_id().map(str::to_owned),
        occurred_at: draft.occurred_at(),
        recorded_at: at(),
        payload_sha256: Sha256Hex::of(draft.payload().expose()),
        previous_sha256: Sha256Hex::zero(),
    };
    let chain_sha256 = envelope.chain_sha256().unwrap();
    StoredEvent { envelope, chain_sha256, payload: draft.payload().clone() }
}

fn message() -> Draft {
    let payload = p::TelegramMessage {
        chat_id: 4242,
        thread_id: None,
        message_id: 7,
        user_id: 4242,
        text: Some("Where do I live?".to_owned()),
        images: vec![p::Image {
            blob_sha256: sha("blob"),
            media_type: "image/jpeg".to_owned(),
            byte_count: 3,
            width: 2,
            height: 1,
        }],
        reply_to_message_id: Some(6),
        media_group_id: None,
    };
    draft::telegram_message(&SourceName::new("telegram:stream"), 99, &payload, at()).unwrap()
}

fn run() -> RunId {
    thought_contract::run::run_id("stream-telegram-conversation", 1, message().id(), 0)
}

fn proposer() -> p::Proposer {
    p::Proposer {
        run: run(),
        output: draft::output_id(EventType::MessageObservation, &run()),
        trigger: message().id().clone(),
        agent: p::ProposerAgent { id: "stream-telegram-conversation".to_owned(), version: 1 },
        fingerprint: Fingerprint::of(b"declaration"),
        provider: "main".to_owned(),
        model: "a-model".to_owned(),
        context_snapshot: SnapshotId::of("golden", &[]),
    }
}

fn memory_target() -> p::MemoryTarget {
    p::MemoryTarget {
        source: SourceName::context(),
        document_id: DocumentId::of("golden", &[]),
        path: "memory.md".to_owned(),
        version_id: VersionId::of("golden", &[]),
        sha256: sha("memory"),
        content_type: "text/markdown".to_owned(),
    }
}

fn correction_target() -> p::CorrectionTarget {
    p::CorrectionTarget {
        run: run(),
        output: event("target"),
        delivery_receipt: event("receipt"),
        source_root: event("root"),
        contract: p::OutputContract::ConversationText,
    }
}

fn agent_version() -> p::AgentVersion {
    p::AgentVersion {
        id: "stream-telegram-conversation".to_owned(),
        version: 1,
        fingerprint: Fingerprint::of(b"declaration"),
    }
}

fn sources() -> Vec<Draft> {
    let telegram = SourceName::new("telegram:stream");
    let command = p::TelegramCommand {
        chat_id: -100,
        thread_id: Some(5),
        message_id: 8,
        user_id: 4242,
        command: "correct".to_owned(),
        argument: Some("It is Porto.".to_owned()),
        reply_to_message_id: None,
    };
    let version = p::FileVersion {
        document_id: DocumentId::of("golden", &[]),
        version_id: VersionId::of("golden", &[]),
        previous_version_id: None,
        path: "memory.md".to_owned(),
        sha256: sha("memory"),
        byte_count: 6,
        content_type: "text/markdown".to_owned(),
        frontmatter_id: Some("memory".to_owned()),
    };
    let removed = p::FileRemoved {
        document_id: DocumentId::of("golden", &[]),
        previous_version_id: VersionId::of("golden", &[]),
        path: "memory.md".to_owned(),
    };
    let mail = p::AgentMessage {
        message_id: "m-1".to_owned(),
        thread_id: "t-1".to_owned(),
        sender_agent_id: "co".to_owned(),
        recipient_agent_id: "stream-agent-conversation".to_owned(),
        text: "Anything new?".to_owned(),
    };
    vec![
        message(),
        draft::telegram_command(&telegram, 99, &command, at()).unwrap(),
        draft::file_version(&version, at()).unwrap(),
        draft::file_removed(&removed, at()).unwrap(),
        draft::agent_message(&mail, at()).unwrap(),
    ]
}

fn outputs() -> Vec<Draft> {
    let trigger = stored(&message());
    let observation = p::MessageObservation {
        summary: "In Lisbon.".to_owned(),
        truncated: false,
        contract: p::OutputContract::ConversationText,
        run: run(),
        agent: agent_version(),
        provider: "main".to_owned(),
        model: "a-model".to_owned(),
        context_snapshot: SnapshotId::of("golden", &[]),
    };
    let mail = stored(&sources()[4]);
    let answer = p::DerivedAgentMessage {
        summary: "Nothing new.".to_owned(),
        truncated: false,
        contract: p::OutputContract::ConversationText,
        run: run(),
        agent: agent_version(),
        provider: "main".to_owned(),
        model: "a-model".to_owned(),
        context_snapshot: SnapshotId::of("golden", &[]),
        message_id: "reply-1".to_owned(),
        thread_id: "t-1".to_owned(),
        sender_agent_id: "stream-agent-conversation".to_owned(),
        recipient_agent_id: "co".to_owned(),
        in_reply_to: "m-1".to_owned(),
        input_sequence: 1,
    };
    vec![
        draft::observation(&trigger, &observation, at()).unwrap(),
        draft::derived_agent_message(&mail, &answer, at()).unwrap(),
    ]
}

fn proposals() -> Vec<Draft> {
    let trigger = stored(&message());
    let memory = p::MemoryChangeProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: proposer(),
        target: memory_target(),
        operation: p::MemoryOperation::Append,
        proposed_text: "- Lives in Lisbon.".to_owned(),
        text_length: 18,
        text_sha256: sha("- Lives in Lisbon."),
        reason: "They said so.".to_owned(),
        evidence: vec![message().id().clone()],
        publication_eligible: p::No,
    };
    let correction = p::CorrectionProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: proposer(),
        target: correction_target(),
        replacement: p::ConversationText { summary: "In Porto.".to_owned() },
        reason: "It was wrong.".to_owned(),
        evidence: vec![],
        quality_eligible: p::No,
        external_export_eligible: p::No,
        publication_eligible: p::No,
    };
    let focus = p::FocusProposed {
        proposal_state: p::AgentProposed::AgentProposed,
        proposer: proposer(),
        declaration: json!({"id": "lisbon-news", "version": 1}),
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
    };
    vec![
        draft::memory_change_proposed(&trigger, &memory, at()).unwrap(),
        draft::correction_proposed(&trigger, &correction, at()).unwrap(),
        draft::focus_proposed(&trigger, &focus, at()).unwrap(),
    ]
}

fn endings() -> Vec<Draft> {
    let trigger = stored(&message());
    let completed = p::RunCompleted {
        run: run(),
        attempt: AttemptId::of("golden", &[]),
        context_snapshot: SnapshotId::of("golden", &[]),
        output: draft::output_id(EventType::MessageObservation, &run()),
        proposals: vec![p::ProposalReference { kind: ProposalKind::MemoryChange, event: event("proposal") }],
        usage: p::Usage { input_tokens: Some(10), output_tokens: None },
        thinking_parts_dropped: 1,
    };
    let ended = p::RunEnded { run: run(), attempts: 3, reason: "refusal".to_owned() };
    let agent = "stream-telegram-conversation";
    let mut drafts = vec![draft::run_completed(agent, &trigger, &completed, at()).unwrap()];
    for ending in [Ending::Failed, Ending::Blocked, Ending::Abandoned] {
        drafts.push(draft::run_ended(ending, agent, &trigger, &ended, at()).unwrap());
    }
    drafts
}

fn system() -> Vec<Draft> {
    let delivery = p::DeliveryTelegram {
        kind: p::DeliveryKind::Reply,
        chat_id: 4242,
        thread_id: None,
        chunks: vec![p::DeliveredChunk { message_id: Some(9), utf16_length: 10, confirmed_by: None }],
        run: Some(run()),
        output: Some(outputs()[0].id().clone()),
    };
    let notice = p::NoticeRequested { name: p::NoticeName::RunHeld, chat_id: 4242, thread_id: None };
    let about = NoticeSubject {
        subject: "4242:0".to_owned(),
        day: Some("2026-11-30".to_owned()),
        cause: Some((message().id().clone(), message().id().clone())),
    };
    let activated = p::DeclarationActivated {
        declaration: "stream-telegram-conversation".to_owned(),
        version: 1,
        fingerprint: Fingerprint::of(b"declaration"),
        sources: vec![p::SourceHead { source: SourceName::new("telegram:stream"), head: 0 }],
        worker_sha256: sha("worker"),
    };
    let incident = p::Incident { kind: "update-parked".to_owned(), subject: "700001".to_owned(), count: 1 };
    let telegram = SourceName::new("telegram:stream");
    vec![
        draft::delivery(&telegram, &stored(&outputs()[0]), &delivery, at()).unwrap(),
        draft::notice_requested("runtime", &about, &notice, at()).unwrap(),
        draft::declaration_activated(&activated, at()).unwrap(),
        draft::incident("telegram", &incident, at()).unwrap(),
    ]
}

fn words_of_a_person() -> Vec<Draft> {
    let proposal = stored(&proposals()[0]);
    let again = p::OperatorMemoryChangeProposed {
        proposal_state: p::OperatorProposed::OperatorProposed,
        origin: proposal.envelope.id.clone(),
        purpose: p::Purpose::Repropose,
        operation: p::MemoryOperation::Append,
        proposed_text: "- Lives in Lisbon.".to_owned(),
        text_length: 18,
        text_sha256: sha("- Lives in Lisbon."),
        target: memory_target(),
        operator: "alex".to_owned(),
        publication_eligible: p::No,
    };
    let decision = p::ProposalDecision {
        proposal: proposal.envelope.id.clone(),
        proposal_kind: ProposalKind::MemoryChange,
        disposition: p::Disposition::Edit,
        replacement: Some(p::DecisionReplacement {
            text: "- Lives in Porto.".to_owned(),
            length: 17,
            sha256: sha("- Lives in Porto."),
        }),
        submission_id: "s-1".to_owned(),
        operator: "alex".to_owned(),
        authority: p::HumanAuthority::Human,
        surface: p::Surface::Cli,
        uid: 1000,
    };
    let decided = draft::proposal_decision(&proposal, &decision, at()).unwrap();
    let judgment = p::JudgmentRecorded {
        schema_version: 2,
        kind: p::JudgmentKind::Correct,
        criterion: "agent-self-correction".to_owned(),
        criterion_version: 1,
        actor: "human:alex".to_owned(),
        target: correction_target(),
        replacement: p::ConversationText { summary: "In Porto.".to_owned() },
        feedback: event("feedback"),
        quality_eligible: true,
        external_export_eligible: false,
        supersedes: None,
    };
    let written = p::MemoryMaterialized {
        proposal: proposal.envelope.id.clone(),
        decision: decided.id().clone(),
        document_id: DocumentId::of("golden", &[]),
        base_version_id: VersionId::of("golden", &[]),
        version_id: VersionId::of("golden", &[json!(2)]),
        sha256: sha("memory 2"),
        byte_count: 8,
        file_event: event("file"),
    };
    let failed = p::MaterializationFailed {
        proposal: proposal.envelope.id.clone(),
        decision: decided.id().clone(),
        reason: "stale-base".to_owned(),
    };
    let by = stored(&decided);
    vec![
        draft::operator_memory_change_proposed(&proposal, &again, at()).unwrap(),
        decided,
        draft::judgment_recorded(&judgment, at()).unwrap(),
        draft::memory_materialized(&by, &written, at()).unwrap(),
        draft::materialization_failed(&by, &failed, at()).unwrap(),
    ]
}

/// Every type of the registry, once.
fn all() -> Vec<Draft> {
    [sources(), outputs(), proposals(), words_of_a_person(), endings(), system()].concat()
}

#[test]
fn every_type_of_the_registry_has_a_draft_here() {
    let drafted: BTreeSet<EventType> = all().iter().map(Draft::event_type).collect();
    assert_eq!(drafted, EventType::ALL.iter().copied().collect());
}

#[test]
fn a_decision_is_one_whatever_its_submission_and_another_word_is_another() {
    let proposal = stored(&proposals()[0]);
    let draft = |change: &dyn Fn(&mut p::ProposalDecision)| {
        let mut payload: p::ProposalDecision = stored(&words_of_a_person()[1]).payload().unwrap();
        change(&mut payload);
        draft::proposal_decision(&proposal, &payload, at()).unwrap()
    };
    let first = draft(&|_| {});
    let resubmitted = draft(&|payload| payload.submission_id = "s-2".to_owned());
    assert_eq!((first.id(), first.equality_sha256()), (resubmitted.id(), resubmitted.equality_sha256()));
    let rejected = draft(&|payload| {
        payload.disposition = p::Disposition::Reject;
        payload.replacement = None;
    });
    assert_eq!(first.id(), rejected.id());
    assert_ne!(first.equality_sha256(), rejected.equality_sha256());
}

fn golden(event_type: EventType) -> PathBuf {
    let name = event_type.as_str().trim_start_matches("stream.thought.").replace('@', ".");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/events/{name}.json"))
}

fn written(draft: &Draft) -> Value {
    let stored = stored(draft);
    json!({
        "envelope": stored.envelope,
        "chainSha256": stored.chain_sha256,
        "equalitySha256": draft.equality_sha256(),
        "conversation": draft.conversation(),
        "payload": serde_json::from_slice::<Value>(draft.payload().expose()).unwrap(),
    })
}

/// The golden files are written once, by hand of whoever adds a type: `UPDATE_GOLDEN=1 cargo test -p thought-contract`.
#[test]
fn every_draft_is_what_its_golden_file_says() {
    for draft in all() {
        let path = golden(draft.event_type());
        let now = format!("{}\n", serde_json::to_string_pretty(&written(&draft)).unwrap());
        if std::env::var_os("UPDATE_GOLDEN").is_some() && !path.exists() {
            std::fs::write(&path, &now).unwrap();
        }
        let then = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(now, then, "{} moved", draft.event_type());
    }
}

#[test]
fn every_golden_payload_decodes_and_encodes_to_the_same_bytes() {
    fn same<P: p::Payload>(event: &StoredEvent) {
        let payload: P = event.payload().unwrap();
        let bytes = thought_protocol::canonical::to_vec(&payload).unwrap();
        assert_eq!(&bytes, event.payload.expose(), "{}", event.envelope.event_type);
    }
    for draft in all() {
        let file = std::fs::read(golden(draft.event_type())).unwrap();
        let value: Value = serde_json::from_slice(&file).unwrap();
        let envelope: Envelope = serde_json::from_value(value["envelope"].clone()).unwrap();
        let chain_sha256 = envelope.chain_sha256().unwrap();
        assert_eq!(json!(chain_sha256), value["chainSha256"]);
        let payload = Sensitive::new(thought_protocol::canonical::to_vec(&value["payload"]).unwrap());
        assert_eq!(envelope.payload_sha256, Sha256Hex::of(payload.expose()));
        let event = StoredEvent { envelope, chain_sha256, payload };
        match event.envelope.event_type {
            EventType::TelegramMessage => same::<p::TelegramMessage>(&event),
            EventType::TelegramCommand => same::<p::TelegramCommand>(&event),
            EventType::FileVersion => same::<p::FileVersion>(&event),
            EventType::FileRemoved => same::<p::FileRemoved>(&event),
            EventType::AgentMessage => same::<p::AgentMessage>(&event),
            EventType::MessageObservation => same::<p::MessageObservation>(&event),
            EventType::DerivedAgentMessage => same::<p::DerivedAgentMessage>(&event),
            EventType::MemoryChangeProposed => same::<p::MemoryChangeProposed>(&event),
            EventType::CorrectionProposed => same::<p::CorrectionProposed>(&event),
            EventType::FocusProposed => same::<p::FocusProposed>(&event),
            EventType::RunCompleted => same::<p::RunCompleted>(&event),
            EventType::RunFailed | EventType::RunBlocked | EventType::RunAbandoned => {
                same::<p::RunEnded>(&event);
            }
            EventType::DeliveryTelegram => same::<p::DeliveryTelegram>(&event),
            EventType::NoticeRequested => same::<p::NoticeRequested>(&event),
            EventType::DeclarationActivated => same::<p::DeclarationActivated>(&event),
            EventType::Incident => same::<p::Incident>(&event),
            EventType::OperatorMemoryChangeProposed => same::<p::OperatorMemoryChangeProposed>(&event),
            EventType::ProposalDecision => same::<p::ProposalDecision>(&event),
            EventType::JudgmentRecorded => same::<p::JudgmentRecorded>(&event),
            EventType::MemoryMaterialized => same::<p::MemoryMaterialized>(&event),
            EventType::MaterializationFailed => same::<p::MaterializationFailed>(&event),
        }
    }
}

#[test]
fn a_payload_with_an_unknown_or_a_missing_member_or_a_true_literal_is_refused() {
    fn decodes<P: p::Payload>(draft: &Draft, value: &Value) -> bool {
        let mut event = stored(draft);
        event.payload = Sensitive::new(serde_json::to_vec(value).unwrap());
        event.payload::<P>().is_ok()
    }
    type Decodes = fn(&Draft, &Value) -> bool;
    let cases: [(&Draft, Decodes, &str, &str); 3] = [
        (&proposals()[0], decodes::<p::MemoryChangeProposed>, "reason", "publicationEligible"),
        (&proposals()[1], decodes::<p::CorrectionProposed>, "replacement", "externalExportEligible"),
        (
            &words_of_a_person()[0],
            decodes::<p::OperatorMemoryChangeProposed>,
            "origin",
            "publicationEligible",
        ),
    ];
    for (draft, decodes, member, literal) in cases {
        let whole: Value = serde_json::from_slice(draft.payload().expose()).unwrap();
        assert!(decodes(draft, &whole));
        let changed = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut value = whole.clone();
            change(value.as_object_mut().unwrap());
            value
        };
        let more = changed(&|members| drop(members.insert("extra".to_owned(), json!(1))));
        let less = changed(&|members| drop(members.remove(member)));
        let granted = changed(&|members| drop(members.insert(literal.to_owned(), json!(true))));
        for (what, value) in [("an unknown member", more), ("a missing member", less), ("a grant", granted)] {
            assert!(!decodes(draft, &value), "{} took {what}", draft.event_type());
        }
    }
}

#[test]
fn a_run_ends_once_whatever_the_ending() {
    let ids: BTreeSet<String> = endings().iter().map(|draft| draft.id().to_string()).collect();
    assert_eq!(ids.len(), 1);
    let equalities: BTreeSet<String> =
        endings().iter().map(|draft| draft.equality_sha256().to_string()).collect();
    assert_eq!(equalities.len(), 4);
}

#[test]
fn a_telegram_message_is_the_same_whatever_its_text_and_a_correction_hangs_from_its_target() {
    let payload: p::TelegramMessage = stored(&message()).payload().unwrap();
    let edited = p::TelegramMessage { text: Some("Another text".to_owned()), ..payload };
    let again = draft::telegram_message(&SourceName::new("telegram:stream"), 99, &edited, at()).unwrap();
    assert_eq!((again.id(), again.equality_sha256()), (message().id(), message().equality_sha256()));
    let correction = &proposals()[1];
    assert_eq!(correction.root_id(), &event("root"));
    assert_eq!(correction.parent(), Some(&event("target")));
    let memory = &proposals()[0];
    assert_eq!(memory.root_id(), message().id());
    assert_eq!(memory.parent(), Some(&draft::output_id(EventType::MessageObservation, &run())));
}
