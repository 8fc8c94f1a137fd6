//! Generated answers for both APIs: nothing panics, and no call ever comes out that breaks a bound.

use crate::table::packet;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use thought_protocol::answer::{ValidatedAnswer, validate};
use thought_protocol::frame::{HEADER_BYTES, decode_header};
use thought_protocol::packet::Packet;
use thought_protocol::proposal::{ProposalCall, TargetOutput};
use thought_protocol::provider::{classify_status, read_answer};
use thought_protocol::result::{WorkerResult, confirm, judge};

const TOOLS: [&str; 5] =
    ["request_memory_change", "submit_correction", "propose_focus", "apply_pending", "proposal_decision"];
const WORDS: [&str; 24] = [
    "append",
    "replace-document",
    "latest",
    "memory.md",
    "",
    " ",
    "a\0b",
    "evt_00000000000000000000000000000001",
    "evt_00000000000000000000000000000003",
    "evt_00000000000000000000000000000009",
    "new",
    "revises",
    "manual",
    "after-days",
    "read-events",
    "write-memory",
    "text",
    "tool_use",
    "thinking",
    "refusal",
    "stop",
    "harbour-news",
    "x",
    "\u{202e}\u{1F642}",
];
const MEMBERS: [&str; 24] = [
    "operation",
    "proposed_text",
    "reason",
    "evidence_event_ids",
    "target_output",
    "replacement",
    "id",
    "version",
    "lineage",
    "scope",
    "objective",
    "subscriptions",
    "budgets",
    "requestedPermissions",
    "retirement",
    "path",
    "type",
    "text",
    "name",
    "input",
    "kind",
    "content",
    "function",
    "arguments",
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_i64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(&WORDS[..]).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        (0_usize..40_000).prop_map(|length| Value::from("x".repeat(length))),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..20).prop_map(Value::from),
            vec((select(&MEMBERS[..]), inner), 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

fn honest(tool: &str) -> Value {
    match tool {
        "request_memory_change" => {
            json!({"operation": "append", "proposed_text": "t", "reason": "r", "evidence_event_ids": []})
        }
        "submit_correction" => {
            json!({"target_output": "latest", "replacement": "t", "reason": "r", "evidence_event_ids": []})
        }
        _ => json!({
            "id": "harbour-news", "version": 1, "lineage": {"kind": "new"},
            "scope": {"summary": "s", "includes": [], "excludes": []}, "objective": "o",
            "subscriptions": [{"eventType": "e", "source": "s"}],
            "budgets": {"maxEventsPerDay": 1, "maxInferenceRequestsPerDay": 0, "maxContextCharacters": 1000},
            "requestedPermissions": [], "retirement": {"kind": "manual"},
        }),
    }
}

/// A call that is honest but for at most one member.
fn call() -> impl Strategy<Value = (String, String, Value)> {
    (
        select(&["a", "b", "c", "d", ""][..]),
        select(&TOOLS[..]),
        proptest::option::of((select(&MEMBERS[..]), json_value())),
        proptest::option::weighted(0.1, json_value()),
    )
        .prop_map(|(id, tool, edit, other)| {
            let mut arguments = other.unwrap_or_else(|| honest(tool));
            if let (Some((member, value)), Some(members)) = (edit, arguments.as_object_mut()) {
                members.insert(member.to_owned(), value);
            }
            (id.to_owned(), tool.to_owned(), arguments)
        })
}

fn anthropic() -> impl Strategy<Value = Value> {
    const STOPS: [&str; 7] =
        ["end_turn", "tool_use", "tool_use", "max_tokens", "refusal", "stop_sequence", "pause_turn"];
    let part = prop_oneof![
        3 => call().prop_map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        2 => select(&WORDS[..]).prop_map(|text| json!({"type": "text", "text": text})),
        1 => Just(json!({"type": "thinking", "thinking": "t", "signature": "s"})),
        1 => json_value(),
    ];
    (vec(part, 0..6), select(&STOPS[..])).prop_map(|(content, stop)| {
        json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop,
            "usage": {"input_tokens": 1, "output_tokens": 1}})
    })
}

fn openai() -> impl Strategy<Value = Value> {
    const STOPS: [&str; 6] =
        ["stop", "tool_calls", "tool_calls", "length", "content_filter", "function_call"];
    let call = call().prop_map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
    });
    let extra = proptest::option::weighted(
        0.2,
        (
            select(&["function_call", "refusal", "reasoning", "audio", "role", "content", "tool_calls"][..]),
            json_value(),
        ),
    );
    let content = prop_oneof![Just(Value::Null), select(&WORDS[..]).prop_map(Value::from), json_value()];
    (vec(call, 0..5), content, select(&STOPS[..]), extra).prop_map(|(calls, content, stop, extra)| {
        let mut message = json!({"role": "assistant", "content": content, "tool_calls": calls});
        if let Some((member, value)) = extra {
            message[member] = value;
        }
        json!({"choices": [{"index": 0, "message": message, "finish_reason": stop}]})
    })
}

fn characters(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.chars().count()) && !text.contains('\0')
}

/// Everything that a valid answer must keep, whatever led to it.
fn assert_bounded(packet: &Packet, answer: &ValidatedAnswer) {
    assert!(characters(&answer.summary, 12_000));
    assert_eq!(answer.summary, answer.summary.trim());
    assert!(answer.proposals.len() <= 3);
    let kinds: std::collections::HashSet<_> = answer.proposals.iter().map(ProposalCall::kind).collect();
    assert_eq!(kinds.len(), answer.proposals.len());
    assert!(!answer.truncated || answer.proposals.is_empty());
    for call in &answer.proposals {
        assert!(packet.offered().contains(&call.kind().tool()));
        let evidence = match call {
            ProposalCall::MemoryChange(arguments) => {
                assert!(characters(&arguments.proposed_text, 32_768) && characters(&arguments.reason, 1_000));
                assert!(packet.capability.memory_target);
                &arguments.evidence_event_ids[..]
            }
            ProposalCall::SelfCorrection(arguments) => {
                assert!(characters(&arguments.replacement, 4_096) && characters(&arguments.reason, 1_000));
                match &arguments.target_output {
                    TargetOutput::Latest => assert!(packet.capability.latest_target().is_some()),
                    TargetOutput::Output(id) => assert!(packet.capability.correction_targets.contains(id)),
                }
                &arguments.evidence_event_ids[..]
            }
            ProposalCall::FocusDeclaration(declaration) => {
                assert!(
                    characters(&declaration.objective, 2_000) && (3..=64).contains(&declaration.id.len())
                );
                assert!((1..=16).contains(&declaration.subscriptions.len()));
                &[]
            }
        };
        assert!(evidence.len() <= 16 && evidence.iter().all(|id| packet.capability.evidence.contains(id)));
    }
}

fn try_answer(name: &str, body: &[u8]) -> bool {
    let packet = packet(name);
    let result = judge(&packet, body);
    let decoded = WorkerResult::decode(&result.encode().unwrap()).unwrap();
    let read = read_answer(&packet, body).and_then(|answer| validate(&packet, &answer));
    assert_eq!(confirm(&packet, body, &decoded), read);
    for status in [200, 400, 429, 500] {
        classify_status(packet.api, status, None, body);
    }
    if let Ok(answer) = &read {
        assert_bounded(&packet, answer);
    }
    read.is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anthropic_answers_never_break_a_bound(body in anthropic(), variant in select(&["anthropic", "anthropic-memory-only", "anthropic-no-targets", "anthropic-choice-none", "anthropic-strict-json"][..])) {
        try_answer(variant, body.to_string().as_bytes());
    }

    #[test]
    fn openai_answers_never_break_a_bound(body in openai(), variant in select(&["openai", "openai-memory-only", "openai-no-targets", "openai-choice-none", "openai-strict-json"][..])) {
        try_answer(variant, body.to_string().as_bytes());
    }

    #[test]
    fn any_json_is_read_or_refused(body in json_value(), name in select(&["anthropic", "openai"][..])) {
        try_answer(name, body.to_string().as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in vec(any::<u8>(), 0..300), name in select(&["anthropic", "openai"][..])) {
        try_answer(name, &body);
        prop_assert!(Packet::decode(&body).is_err());
        prop_assert!(WorkerResult::decode(&body).is_err());
    }

    #[test]
    fn an_honest_answer_with_one_byte_changed_is_read_or_refused(at in 0_usize..2_000, byte in any::<u8>(), name in select(&["anthropic", "openai"][..])) {
        let mut body = honest_answer(name).to_string().into_bytes();
        let at = at % body.len();
        body[at] = byte;
        try_answer(name, &body);
    }

    #[test]
    fn any_header_is_within_its_bound_or_refused(header in any::<[u8; HEADER_BYTES]>()) {
        if let Ok(header) = decode_header(&header) {
            prop_assert!((1..=header.kind.bytes_max()).contains(&header.length));
        }
    }
}

fn honest_answer(name: &str) -> Value {
    let calls = &TOOLS[..3];
    if name == "anthropic" {
        let content: Vec<Value> = calls
            .iter()
            .map(|tool| json!({"type": "tool_use", "id": tool, "name": tool, "input": honest(tool)}))
            .collect();
        json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"})
    } else {
        let calls: Vec<Value> = calls
            .iter()
            .map(|tool| json!({"id": tool, "type": "function", "function": {"name": tool, "arguments": honest(tool).to_string()}}))
            .collect();
        let message = Map::from_iter([
            (String::from("role"), json!("assistant")),
            (String::from("content"), Value::Null),
            (String::from("tool_calls"), json!(calls)),
        ]);
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    }
}

#[test]
fn the_generators_start_from_answers_that_are_valid() {
    for name in ["anthropic", "openai"] {
        assert!(try_answer(name, honest_answer(name).to_string().as_bytes()));
    }
}
