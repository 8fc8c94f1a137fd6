//! What the model is told about the tools: descriptions and JSON Schemas, static, from the same bounds as the
//! validators.
//!
//! A schema informs; it decides nothing. The validators of this room decide, whatever a provider made of the schema.

use serde_json::{Value, json};

use super::{FocusDeclaration, ProposalKind, ToolName};
use crate::limits;
use crate::packet::PACKET_FORMAT;
use crate::proposal::correction::{CorrectionArguments, LATEST};
use crate::proposal::focus::FocusPermission;
use crate::proposal::memory::{MemoryChangeArguments, MemoryOperation};
use crate::result::RESULT_FORMAT;

/// The version of the manifest's form.
pub const MANIFEST_FORMAT: u32 = 1;

const FOCUS_ID_PATTERN: &str = "^[a-z0-9]+(-[a-z0-9]+)*$";
const FINGERPRINT_PATTERN: &str = "^sha256:[0-9a-f]{64}$";
const TIME_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$";

/// What a tool is for, in the words that the model reads.
pub const fn description(tool: ToolName) -> &'static str {
    match tool {
        ToolName::RequestMemoryChange => {
            "Suggest a change to the long-term memory document, memory.md. Use it when the person asks you to remember, \
             update or forget something, or tells you something that clearly should outlast this conversation. The \
             call only saves a suggestion: nothing is changed until a person reviews and approves it, so never say \
             that memory was changed. Use append to add text at the end. Use replace-document only to rewrite the \
             document; then give the whole new document, with its frontmatter kept as it is. Cite ids from the list \
             at the end of the system text as evidence, or none. At most one such call in an answer."
        }
        ToolName::SubmitCorrection => {
            "Suggest a correction of one of your own earlier replies. Use it when the person points out that a reply \
             was wrong, or when you notice it yourself. Give latest as the target for your most recent reply that can \
             be corrected, or the exact output id from the list at the end of the system text. The replacement is the \
             whole text that the reply should have been. The call only saves a suggestion: the earlier reply stays as \
             it is until a person approves, so never say that it was corrected. Cite ids from the list as evidence, \
             or none. At most one such call in an answer."
        }
        ToolName::ProposeFocus => {
            "Suggest a focus: a lasting subject that the person would like to have followed. Use it when the person \
             sends /focus with a description. Fill in one complete declaration; choose modest budgets, ask for no \
             permission that the subject does not need, and use the manual retirement when no end was named. The call \
             only saves a suggestion: it activates nothing, grants nothing and starts nothing, so never say that \
             something is being followed now. At most one such call in an answer."
        }
    }
}

fn object(required: &[&str], properties: &Value) -> Value {
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

fn text(characters_max: usize, description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": characters_max, "description": description})
}

fn integer(range: &std::ops::RangeInclusive<u32>) -> Value {
    json!({"type": "integer", "minimum": range.start(), "maximum": range.end()})
}

fn evidence() -> Value {
    json!({
        "type": "array",
        "maxItems": limits::EVIDENCE_IDS_MAX,
        "uniqueItems": true,
        "items": {"type": "string"},
        "description": "Ids of the messages that this rests on, as listed at the end of the system text. May be empty.",
    })
}

/// The static JSON Schema of a tool's arguments.
pub fn input_schema(tool: ToolName) -> Value {
    match tool {
        ToolName::RequestMemoryChange => object(
            &MemoryChangeArguments::MEMBERS,
            &json!({
                "operation": {
                    "type": "string",
                    "enum": [MemoryOperation::Append.as_str(), MemoryOperation::ReplaceDocument.as_str()],
                    "description": "append adds the text at the end; replace-document puts it in place of the whole document.",
                },
                "proposed_text": text(limits::PROPOSED_TEXT_CHARACTERS_MAX, "The text to add, or the whole new document."),
                "reason": text(limits::REASON_CHARACTERS_MAX, "Why, for the person who reviews it."),
                "evidence_event_ids": evidence(),
            }),
        ),
        ToolName::SubmitCorrection => object(
            &CorrectionArguments::MEMBERS,
            &json!({
                "target_output": {
                    "type": "string",
                    "minLength": 1,
                    "description": format!("The id of the output to correct, or {LATEST} for your most recent reply."),
                },
                "replacement": text(limits::REPLACEMENT_CHARACTERS_MAX, "The whole text that the reply should have been."),
                "reason": text(limits::REASON_CHARACTERS_MAX, "What was wrong, for the person who reviews it."),
                "evidence_event_ids": evidence(),
            }),
        ),
        ToolName::ProposeFocus => focus_schema(),
    }
}

/// The schema of a tool as a request carries it: [`input_schema`], with every length beyond
/// [`limits::REQUEST_SCHEMA_LENGTH_MAX`] said in the member's description.
///
/// Local servers compile a schema into a grammar before the model writes a word, unroll each length, and refuse the whole
/// request where there is too much to unroll. The manifest keeps every bound, and the validators hold each of them.
pub fn request_schema(tool: ToolName) -> Value {
    let mut schema = input_schema(tool);
    say_long_lengths(&mut schema);
    schema
}

fn say_long_lengths(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let length = members.get("maxLength").and_then(Value::as_u64);
            if let Some(length) = length.filter(|length| *length > limits::REQUEST_SCHEMA_LENGTH_MAX) {
                members.remove("maxLength");
                let said = members.get("description").and_then(Value::as_str).unwrap_or_default();
                let said = format!("{said} At most {length} characters.");
                members.insert("description".to_owned(), said.trim_start().into());
            }
            members.values_mut().for_each(say_long_lengths);
        }
        Value::Array(items) => items.iter_mut().for_each(say_long_lengths),
        _ => {}
    }
}

fn focus_schema() -> Value {
    let id = json!({
        "type": "string",
        "minLength": limits::FOCUS_ID_CHARACTERS.start(),
        "maxLength": limits::FOCUS_ID_CHARACTERS.end(),
        "pattern": FOCUS_ID_PATTERN,
    });
    let entries = json!({
        "type": "array",
        "maxItems": limits::FOCUS_SCOPE_ENTRIES_MAX,
        "items": text(limits::FOCUS_SCOPE_ENTRY_CHARACTERS_MAX, "One thing, in a few words."),
    });
    let permissions = FocusPermission::ALL.map(FocusPermission::as_str);
    object(
        &FocusDeclaration::MEMBERS,
        &json!({
            "id": id,
            "version": integer(&limits::FOCUS_VERSION),
            "lineage": lineage_schema(&id),
            "scope": object(
                &["summary", "includes", "excludes"],
                &json!({
                    "summary": text(limits::FOCUS_SUMMARY_CHARACTERS_MAX, "What the focus covers, in a sentence or two."),
                    "includes": entries,
                    "excludes": entries,
                }),
            ),
            "objective": text(limits::FOCUS_OBJECTIVE_CHARACTERS_MAX, "What the person wants to get out of it."),
            "subscriptions": {
                "type": "array",
                "minItems": limits::FOCUS_SUBSCRIPTIONS.start(),
                "maxItems": limits::FOCUS_SUBSCRIPTIONS.end(),
                "items": object(
                    &["eventType", "source"],
                    &json!({
                        "eventType": text(limits::LABEL_CHARACTERS_MAX, "The type of event to follow."),
                        "source": text(limits::LABEL_CHARACTERS_MAX, "The source of those events."),
                    }),
                ),
            },
            "budgets": object(
                &["maxEventsPerDay", "maxInferenceRequestsPerDay", "maxContextCharacters"],
                &json!({
                    "maxEventsPerDay": integer(&limits::FOCUS_EVENTS_PER_DAY),
                    "maxInferenceRequestsPerDay": integer(&limits::FOCUS_INFERENCE_REQUESTS_PER_DAY),
                    "maxContextCharacters": integer(&limits::FOCUS_CONTEXT_CHARACTERS),
                }),
            ),
            "requestedPermissions": {
                "type": "array",
                "maxItems": limits::FOCUS_PERMISSIONS_MAX,
                "uniqueItems": true,
                "items": {"type": "string", "enum": permissions},
            },
            "retirement": retirement_schema(),
        }),
    )
}

fn lineage_schema(id: &Value) -> Value {
    json!({
        "oneOf": [
            object(&["kind"], &json!({"kind": {"type": "string", "enum": ["new"]}})),
            object(
                &["kind", "focusId", "version", "fingerprint"],
                &json!({
                    "kind": {"type": "string", "enum": ["revises"]},
                    "focusId": id,
                    "version": integer(&limits::FOCUS_VERSION),
                    "fingerprint": {"type": "string", "pattern": FINGERPRINT_PATTERN},
                }),
            ),
        ],
    })
}

fn retirement_schema() -> Value {
    let kind = |kind: &str| json!({"type": "string", "enum": [kind]});
    json!({
        "oneOf": [
            object(
                &["kind", "at"],
                &json!({
                    "kind": kind("at"),
                    "at": {"type": "string", "pattern": TIME_PATTERN, "description": "UTC with milliseconds, such as 2030-01-31T12:00:00.000Z."},
                }),
            ),
            object(
                &["kind", "days"],
                &json!({"kind": kind("after-days"), "days": integer(&limits::FOCUS_RETIREMENT_DAYS)}),
            ),
            object(
                &["kind", "count"],
                &json!({"kind": kind("after-events"), "count": integer(&limits::FOCUS_RETIREMENT_EVENTS)}),
            ),
            object(&["kind"], &json!({"kind": kind("manual")})),
        ],
    })
}

/// The static proposal manifest of a declaration: tool names, schemas, bounds, packet and result versions. It is part
/// of the declaration's fingerprint; what one turn may aim at is the snapshot's capability, not this.
///
/// The order of `kinds` does not matter.
pub fn manifest(kinds: &[ProposalKind]) -> Value {
    let tools: Vec<Value> = ToolName::ALL
        .into_iter()
        .filter(|tool| kinds.contains(&tool.kind()))
        .map(|tool| {
            json!({
                "kind": tool.kind(),
                "name": tool,
                "description": description(tool),
                "inputSchema": input_schema(tool),
            })
        })
        .collect();
    json!({
        "manifestFormat": MANIFEST_FORMAT,
        "packetFormat": PACKET_FORMAT,
        "resultFormat": RESULT_FORMAT,
        "bounds": {
            "calls": limits::CALLS_MAX,
            "callsOfOneKind": 1,
            "evidenceIds": limits::EVIDENCE_IDS_MAX,
            "argumentsBytes": limits::ARGUMENTS_BYTES_MAX,
            "visibleTextCharacters": limits::VISIBLE_TEXT_CHARACTERS_MAX,
        },
        "tools": tools,
    })
}
