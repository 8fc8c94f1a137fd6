//! Proposals: the schemas say what the validators do, the sentences and ids are fixed, and every fault has one name.

use serde_json::{Value, json};
use thought_protocol::EventId;
use thought_protocol::capability::PacketCapability;
use thought_protocol::proposal::{
    ArgumentFault, CorrectionArguments, FocusDeclaration, MemoryChangeArguments, ProposalCall, ProposalKind,
    TargetOutput, ToolName, acknowledgment, description, input_schema, manifest, request_schema,
    resolve_target, synthetic_call_id,
};
use thought_protocol::reason::FailReason;

fn id(number: u32) -> EventId {
    format!("evt_{number:032}").parse().unwrap()
}

fn capability() -> PacketCapability {
    PacketCapability {
        memory_target: true,
        correction_targets: vec![id(1), id(2)],
        evidence: vec![id(1), id(3)],
    }
}

fn memory() -> Value {
    json!({"operation": "append", "proposed_text": "t", "reason": "r", "evidence_event_ids": [id(3)]})
}

fn focus() -> Value {
    json!({
        "id": "harbour-news", "version": 1, "lineage": {"kind": "new"},
        "scope": {"summary": "s", "includes": [], "excludes": []}, "objective": "o",
        "subscriptions": [{"eventType": "e", "source": "s"}],
        "budgets": {"maxEventsPerDay": 1, "maxInferenceRequestsPerDay": 0, "maxContextCharacters": 1000},
        "requestedPermissions": [], "retirement": {"kind": "manual"},
    })
}

#[test]
fn each_fault_of_a_memory_change_has_its_name() {
    let faults: [(&str, Value, &str, ArgumentFault, FailReason); 9] = [
        ("operation", json!("delete"), "operation", ArgumentFault::Shape, FailReason::ArgumentsInvalid),
        ("proposed_text", json!(""), "proposed_text", ArgumentFault::Empty, FailReason::ArgumentsInvalid),
        (
            "proposed_text",
            json!("a\0"),
            "proposed_text",
            ArgumentFault::Characters,
            FailReason::ArgumentsInvalid,
        ),
        ("reason", json!("x".repeat(1001)), "reason", ArgumentFault::TooLong, FailReason::ArgumentsInvalid),
        ("reason", json!(null), "reason", ArgumentFault::Shape, FailReason::ArgumentsInvalid),
        ("path", json!("memory.md"), ".", ArgumentFault::Unknown, FailReason::ArgumentsInvalid),
        (
            "evidence_event_ids",
            json!([id(3), id(3)]),
            "evidence_event_ids",
            ArgumentFault::Duplicate,
            FailReason::ArgumentsInvalid,
        ),
        (
            "evidence_event_ids",
            json!([id(2)]),
            "evidence_event_ids",
            ArgumentFault::EvidenceNotAdmitted,
            FailReason::EvidenceNotAdmitted,
        ),
        (
            "evidence_event_ids",
            json!("x"),
            "evidence_event_ids",
            ArgumentFault::Shape,
            FailReason::ArgumentsInvalid,
        ),
    ];
    for (member, value, named, fault, reason) in faults {
        let mut arguments = memory();
        arguments[member] = value;
        let error = MemoryChangeArguments::from_value(&arguments, &capability()).unwrap_err();
        assert_eq!((error.member, error.fault, error.fail_reason()), (named, fault, reason));
    }
    for member in MemoryChangeArguments::MEMBERS {
        let mut arguments = memory();
        arguments.as_object_mut().unwrap().remove(member);
        let error = MemoryChangeArguments::from_value(&arguments, &capability()).unwrap_err();
        assert_eq!((error.member, error.fault), (member, ArgumentFault::Missing));
    }
    let untargeted = PacketCapability { memory_target: false, ..capability() };
    let error = MemoryChangeArguments::from_value(&memory(), &untargeted).unwrap_err();
    assert_eq!(error.fail_reason(), FailReason::TargetNotAdmitted);
}

#[test]
fn latest_is_the_newest_target_and_nothing_else_is_guessed() {
    assert_eq!(resolve_target(&TargetOutput::Latest, &capability()), Some(id(2)));
    assert_eq!(resolve_target(&TargetOutput::Output(id(1)), &capability()), Some(id(1)));
    assert_eq!(resolve_target(&TargetOutput::Output(id(3)), &capability()), None, "evidence is no target");
    assert_eq!(resolve_target(&TargetOutput::Latest, &PacketCapability::default()), None);
    let arguments = |target: &str| {
        let value =
            json!({"target_output": target, "replacement": "x", "reason": "r", "evidence_event_ids": []});
        CorrectionArguments::from_value(&value, &capability())
    };
    assert_eq!(arguments("latest").unwrap().target_output, TargetOutput::Latest);
    assert_eq!(arguments(id(1).as_str()).unwrap().target_output, TargetOutput::Output(id(1)));
    assert_eq!(arguments(id(3).as_str()).unwrap_err().fault, ArgumentFault::TargetNotAdmitted);
}

#[test]
fn a_stored_declaration_is_read_as_strictly_as_a_proposed_one() {
    let declaration: FocusDeclaration = serde_json::from_value(focus()).unwrap();
    assert_eq!(serde_json::to_value(&declaration).unwrap(), focus());
    assert_eq!(FocusDeclaration::from_value(&focus()).unwrap(), declaration);
    let bytes = thought_protocol::canonical::to_vec(&focus()).unwrap();
    assert_eq!(declaration.fingerprint().unwrap(), thought_protocol::Fingerprint::of(&bytes));
    let mut wider = focus();
    wider["budgets"]["maxEventsPerDay"] = json!(10_001);
    assert!(serde_json::from_value::<FocusDeclaration>(wider).is_err());
}

#[test]
fn arguments_go_into_history_as_canonical_text() {
    for (tool, value) in [(ToolName::RequestMemoryChange, memory()), (ToolName::ProposeFocus, focus())] {
        let call = ProposalCall::from_arguments(tool, &value, &capability()).unwrap();
        assert_eq!(call.kind().tool(), tool);
        let text = call.canonical_arguments().unwrap();
        assert_eq!(text, thought_protocol::canonical::to_string(&value).unwrap());
        assert!(!format!("{call:?}").contains("harbour"));
    }
}

#[test]
fn a_resolved_correction_names_its_target_and_never_latest() {
    let value =
        json!({"target_output": "latest", "replacement": "x", "reason": "r", "evidence_event_ids": []});
    let call = ProposalCall::from_arguments(ToolName::SubmitCorrection, &value, &capability()).unwrap();
    let text = call.clone().resolved(&capability()).unwrap().canonical_arguments().unwrap();
    assert!(text.contains(id(2).as_str()) && !text.contains("latest"), "{text}");
    assert_eq!(call.resolved(&PacketCapability::default()), None);
}

#[test]
fn the_sentences_are_the_fixed_ones() {
    let [memory, correction, focus] = ProposalKind::ALL;
    for (kinds, sentence) in [
        (vec![memory], "I saved that as a memory suggestion."),
        (vec![correction], "I saved that as a proposed correction."),
        (vec![focus], "I saved that as a focus proposal."),
        (vec![correction, memory], "I saved those as memory and correction suggestions."),
        (vec![focus, memory], "I saved those as a memory suggestion and a focus proposal."),
        (vec![focus, correction], "I saved those as a proposed correction and a focus proposal."),
        (
            vec![focus, correction, memory],
            "I saved those as memory and correction suggestions and a focus proposal.",
        ),
    ] {
        assert_eq!(acknowledgment(&kinds), Some(sentence));
        for claim in ["approv", "appli", "learn", "train", "publish", "will", "_"] {
            assert!(!sentence.contains(claim), "{sentence}");
        }
    }
    assert_eq!(acknowledgment(&[]), None);
}

#[test]
fn synthetic_ids_fit_every_provider_and_differ() {
    let first = synthetic_call_id(&id(1));
    assert_eq!(first, synthetic_call_id(&id(1)));
    assert_ne!(first, synthetic_call_id(&id(2)));
    assert_eq!(first.len(), 29);
    let key = first.strip_prefix("call_").unwrap();
    assert!(key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
}

#[test]
fn names_are_exact_both_ways() {
    for (tool, name, kind) in [
        (ToolName::RequestMemoryChange, "request_memory_change", "memory-change"),
        (ToolName::SubmitCorrection, "submit_correction", "self-correction"),
        (ToolName::ProposeFocus, "propose_focus", "focus-declaration"),
    ] {
        assert_eq!((tool.as_str(), tool.kind().as_str()), (name, kind));
        assert_eq!(serde_json::to_value(tool).unwrap(), json!(name));
        assert_eq!(serde_json::to_value(tool.kind()).unwrap(), json!(kind));
        assert_eq!(ToolName::from_wire(name), Some(tool));
    }
    assert_eq!(ToolName::from_wire("memory-change"), None);
}

#[test]
fn reason_codes_read_back_and_are_unique() {
    let codes: std::collections::HashSet<_> = FailReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(codes.len(), FailReason::ALL.len());
    for reason in FailReason::ALL {
        assert_eq!(reason.as_str().parse(), Ok(*reason));
        let kebab = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        assert!(reason.as_str().bytes().all(kebab), "{reason}");
    }
    assert!("Refusal".parse::<FailReason>().is_err());
}

/// The few words of JSON Schema that the product's schemas use. Any other fails the test that meets it.
fn allows(schema: &Value, value: &Value) -> bool {
    let schema = schema.as_object().unwrap();
    schema.iter().all(|(word, bound)| match word.as_str() {
        "description" | "properties" => true,
        "type" => match bound.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("type {other}"),
        },
        "additionalProperties" => {
            assert_eq!(*bound, json!(false));
            let properties = schema["properties"].as_object().unwrap();
            value.as_object().is_some_and(|members| {
                members
                    .iter()
                    .all(|(name, value)| properties.get(name).is_some_and(|schema| allows(schema, value)))
            })
        }
        "required" => {
            bound.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some())
        }
        "enum" => bound.as_array().unwrap().contains(value),
        "oneOf" => bound.as_array().unwrap().iter().filter(|schema| allows(schema, value)).count() == 1,
        "items" => value.as_array().is_some_and(|items| items.iter().all(|item| allows(bound, item))),
        "minItems" => value.as_array().is_some_and(|items| items.len() as u64 >= bound.as_u64().unwrap()),
        "maxItems" => value.as_array().is_some_and(|items| items.len() as u64 <= bound.as_u64().unwrap()),
        "uniqueItems" => {
            value.as_array().is_some_and(|items| (1..items.len()).all(|at| !items[..at].contains(&items[at])))
        }
        "minLength" => {
            value.as_str().is_some_and(|text| text.chars().count() as u64 >= bound.as_u64().unwrap())
        }
        "maxLength" => {
            value.as_str().is_some_and(|text| text.chars().count() as u64 <= bound.as_u64().unwrap())
        }
        "minimum" => value.as_i64().is_some_and(|number| number >= bound.as_i64().unwrap()),
        "maximum" => value.as_i64().is_some_and(|number| number <= bound.as_i64().unwrap()),
        "pattern" => matches_pattern(bound.as_str().unwrap(), value),
        other => panic!("the schema says {other}"),
    })
}

fn matches_pattern(pattern: &str, value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match pattern {
        "^[a-z0-9]+(-[a-z0-9]+)*$" => text.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        }),
        "^sha256:[0-9a-f]{64}$" => {
            text.strip_prefix("sha256:").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(hex))
        }
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$" => {
            text.len() == 24 && text.ends_with('Z') && text.as_bytes()[19] == b'.'
        }
        other => panic!("pattern {other}"),
    }
}

#[test]
fn the_schemas_allow_what_the_validators_allow() {
    // What a schema cannot say: U+0000, lines, admitted ids, and whether a day exists.
    let beyond = [
        "U+0000",
        "a\\u0000",
        "not admitted",
        "is no id",
        "cut short",
        "upper case",
        "evidence empty text",
        "two lines",
        "target",
        "excludes ['a",
        "retirement",
    ];
    let mut agreed = 0;
    for case in crate::table::cases() {
        if !case.name.starts_with("openai: ")
            || case.name.contains("report 24")
            || beyond.iter().any(|word| case.name.contains(word))
        {
            continue;
        }
        let body: Value = serde_json::from_slice(&case.body).unwrap_or_default();
        let calls = &body["choices"][0]["message"]["tool_calls"];
        let (Some(1), Some(text)) =
            (calls.as_array().map(Vec::len), calls[0]["function"]["arguments"].as_str())
        else {
            continue;
        };
        let Some(tool) = calls[0]["function"]["name"].as_str().and_then(ToolName::from_wire) else {
            continue;
        };
        let Ok(value) = thought_protocol::strict_json::parse(text.as_bytes()) else { continue };
        if !case.name.contains(tool.as_str()) {
            continue;
        }
        let valid = ProposalCall::from_arguments(tool, &value, &case.packet.capability).is_ok();
        assert_eq!(allows(&input_schema(tool), &value), valid, "{}", case.name);
        agreed += 1;
    }
    assert!(agreed > 150, "{agreed}");
}

#[test]
fn every_object_of_a_schema_is_closed() {
    fn walk(schema: &Value) {
        if schema["type"] == "object" {
            assert_eq!(schema["additionalProperties"], json!(false), "{schema}");
            assert_eq!(
                schema["required"].as_array().unwrap().len(),
                schema["properties"].as_object().unwrap().len()
            );
        }
        match schema {
            Value::Object(members) => members.values().for_each(walk),
            Value::Array(items) => items.iter().for_each(walk),
            _ => {}
        }
    }
    for tool in ToolName::ALL {
        walk(&input_schema(tool));
        assert!(
            description(tool).len() < 1_024 && !description(tool).contains("  "),
            "{}",
            description(tool)
        );
    }
}

/// A server that compiles schemas into grammars refused a whole request for one length.
#[test]
fn a_request_says_long_lengths_in_words_and_changes_nothing_else() {
    fn compare(full: &Value, sent: &Value, said: &mut Vec<u64>) {
        match (full, sent) {
            (Value::Object(full), Value::Object(sent)) => {
                let long = full.get("maxLength").and_then(Value::as_u64).filter(|length| *length > 64);
                for (name, value) in full {
                    match (name.as_str(), long) {
                        ("maxLength", Some(length)) => {
                            assert!(!sent.contains_key(name), "{length}");
                            let words = format!("At most {length} characters.");
                            assert!(sent["description"].as_str().unwrap().ends_with(&words), "{sent:?}");
                            said.push(length);
                        }
                        ("description", Some(_)) => {
                            assert!(sent[name].as_str().unwrap().starts_with(value.as_str().unwrap()));
                        }
                        _ => compare(value, &sent[name], said),
                    }
                }
                assert!(sent.keys().all(|name| full.contains_key(name)), "nothing was added");
            }
            (Value::Array(full), Value::Array(sent)) => {
                assert_eq!(full.len(), sent.len());
                full.iter().zip(sent).for_each(|(full, sent)| compare(full, sent, said));
            }
            _ => assert_eq!(full, sent),
        }
    }
    let said = ToolName::ALL.map(|tool| {
        let mut said = Vec::new();
        compare(&input_schema(tool), &request_schema(tool), &mut said);
        said.sort_unstable();
        said
    });
    assert_eq!(said[0], [1_000, 32_768]);
    assert_eq!(said[1], [1_000, 4_096]);
    assert_eq!(said[2], [200, 200, 500, 512, 512, 2_000]);
}

#[test]
fn the_manifest_is_static_and_covers_what_is_declared() {
    let [memory, correction, focus] = ProposalKind::ALL;
    let all = manifest(&ProposalKind::ALL);
    assert_eq!(all, manifest(&[focus, memory, correction]), "order does not matter");
    let names = |kinds: &[ProposalKind]| {
        manifest(kinds)["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&ProposalKind::ALL), ["request_memory_change", "submit_correction", "propose_focus"]);
    assert_eq!(names(&[focus]), ["propose_focus"]);
    assert!(names(&[]).is_empty());
    assert_eq!(
        (&all["packetFormat"], &all["resultFormat"], &all["bounds"]["calls"]),
        (&json!(1), &json!(1), &json!(3))
    );
    assert_eq!(all["tools"][0]["inputSchema"], input_schema(ToolName::RequestMemoryChange));
    assert!(thought_protocol::canonical::to_vec(&all).is_ok());
}
