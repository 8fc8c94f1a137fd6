//! The writer, with no selector in front of it: it takes nothing that lacks an id.

use thought_authority::export::{Example, ExampleWriter, Message, Provenance, Role, WriteError, example_id};
use thought_protocol::{EventId, RunId, Sensitive, Sha256Hex, SnapshotId};

fn words(text: &str) -> Sensitive<String> {
    Sensitive::new(text.to_owned())
}

fn message(role: Role, text: &str) -> Message {
    Message { role, content: words(text) }
}

fn event(name: &str) -> EventId {
    EventId::of("test", &[name.into()])
}

fn whole() -> Example {
    Example {
        prompt: vec![message(Role::System, "be calm"), message(Role::User, "what day is it?")],
        chosen: words("Tuesday"),
        rejected: words("Monday"),
        provenance: Provenance {
            judgment: Some(event("judgment")),
            run: Some(RunId::of("test", &[])),
            output: Some(event("output")),
            trigger: Some(event("trigger")),
            feedback: Some(event("feedback")),
            delivery_receipt: Some(event("receipt")),
            context_snapshot: Some(SnapshotId::of("test", &[])),
            context_sha256: Some(Sha256Hex::of(b"context")),
        },
    }
}

/// What a writer says to an example, and the bytes that it wrote.
fn write(example: &Example) -> (Result<(), WriteError>, Vec<u8>) {
    let mut writer = ExampleWriter::new(Vec::new());
    let outcome = writer.write(example);
    let (bytes, written, sha256) = writer.finish().unwrap();
    assert_eq!((written.bytes, sha256), (bytes.len() as u64, Sha256Hex::of(&bytes)));
    assert_eq!(written.examples, u64::from(outcome.is_ok()));
    (outcome, bytes)
}

#[test]
fn an_example_is_one_line_of_canonical_json() {
    let (outcome, bytes) = write(&whole());
    outcome.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let id = example_id(&event("judgment"));
    assert!(text.starts_with(&format!(
        "{{\"chosen\":[{{\"content\":\"Tuesday\",\"role\":\"assistant\"}}],\"id\":\"{id}\",\"prompt\":["
    )));
    assert!(text.ends_with("\"schemaVersion\":1}\n"), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn each_missing_id_is_a_refusal_and_not_a_byte_is_written() {
    type Take = fn(&mut Provenance);
    let lacks: [(&str, Take); 8] = [
        ("judgment", |p| p.judgment = None),
        ("run", |p| p.run = None),
        ("output", |p| p.output = None),
        ("trigger", |p| p.trigger = None),
        ("feedback", |p| p.feedback = None),
        ("deliveryReceipt", |p| p.delivery_receipt = None),
        ("contextSnapshot", |p| p.context_snapshot = None),
        ("contextSha256", |p| p.context_sha256 = None),
    ];
    for (name, take) in lacks {
        let mut example = whole();
        take(&mut example.provenance);
        let (outcome, bytes) = write(&example);
        assert!(matches!(outcome, Err(WriteError::Lacks { id }) if id == name), "{name}");
        assert!(bytes.is_empty(), "{name}");
    }
}

#[test]
fn what_is_no_preference_between_two_answers_to_a_prompt_is_a_refusal() {
    type Spoil = fn(&mut Example);
    let spoils: [(&str, Spoil); 7] = [
        ("prompt", |e| e.prompt.clear()),
        ("prompt", |e| drop(e.prompt.pop())),
        ("prompt", |e| e.prompt.push(message(Role::Assistant, "and so"))),
        ("prompt", |e| e.prompt.insert(1, message(Role::System, "be quick"))),
        ("prompt", |e| e.prompt[1] = message(Role::User, "")),
        ("chosen", |e| e.chosen = words("")),
        ("rejected", |e| e.rejected = words("")),
    ];
    for (name, spoil) in spoils {
        let mut example = whole();
        spoil(&mut example);
        let (outcome, bytes) = write(&example);
        assert!(matches!(outcome, Err(WriteError::Form { part }) if part == name), "{name}");
        assert!(bytes.is_empty(), "{name}");
    }
}

#[test]
fn what_a_writer_and_an_example_show_of_themselves_is_dark() {
    let mut example = whole();
    let shown = format!("{example:?}");
    assert!(!shown.contains("Tuesday") && !shown.contains("Monday") && !shown.contains("calm"), "{shown}");
    example.provenance.run = None;
    let error = write(&example).0.unwrap_err();
    assert_eq!(error.to_string(), "write an example: its provenance has no run");
}
