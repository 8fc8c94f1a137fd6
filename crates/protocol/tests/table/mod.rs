//! The one table of answers: hand-written from the vendors' documented shapes, read as JSON, never built from the
//! product's own types. Every test that reads answers runs all of it, in the jail's code and in the parent's.
//!
//! In bodies and expectations `@x*3@` stands for `xxx`.

use serde_json::Value;
use serde_json::value::RawValue;
use thought_protocol::packet::Packet;

/// What must come of a case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expect {
    /// A failed run with this reason.
    Reason(String),
    /// A valid answer; the members that are absent here are not compared.
    Valid(Value),
}

/// One raw answer.
pub(crate) struct Case {
    /// What is tried.
    pub(crate) name: String,
    /// What was asked.
    pub(crate) packet: Packet,
    /// The raw bytes.
    pub(crate) body: Vec<u8>,
    /// What must come of it.
    pub(crate) expect: Expect,
}

#[derive(serde::Deserialize)]
struct Written {
    name: String,
    packet: String,
    body: Option<Box<RawValue>>,
    #[serde(rename = "bodyText")]
    body_text: Option<String>,
    expect: Value,
}

#[derive(serde::Deserialize)]
struct WrittenArguments {
    name: String,
    tool: String,
    arguments: String,
    expect: String,
}

/// The packet of this name.
pub(crate) fn packet(name: &str) -> Packet {
    let packets: Value = serde_json::from_str(include_str!("../vectors/packets.json")).unwrap();
    serde_json::from_value(packets[name].clone()).unwrap_or_else(|error| panic!("packet {name}: {error}"))
}

/// Every case of every table.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for table in [include_str!("../vectors/anthropic.json"), include_str!("../vectors/openai.json")] {
        let written: Vec<Written> = serde_json::from_str(table).unwrap();
        cases.extend(written.into_iter().map(answer_case));
    }
    let written: Vec<WrittenArguments> =
        serde_json::from_str(include_str!("../vectors/arguments.json")).unwrap();
    for arguments in &written {
        cases.push(anthropic_case(arguments));
        cases.push(openai_case(arguments));
    }
    cases
}

fn answer_case(written: Written) -> Case {
    let body = written.body.as_deref().map(RawValue::get).or(written.body_text.as_deref()).unwrap_or("null");
    let expect = match written.expect.get("reason") {
        Some(reason) => Expect::Reason(reason.as_str().unwrap().to_owned()),
        None => {
            let mut valid = written.expect["valid"].clone();
            valid["summary"] = expand(valid["summary"].as_str().unwrap()).into();
            Expect::Valid(valid)
        }
    };
    Case {
        name: format!("{}: {}", written.packet, written.name),
        packet: packet(&written.packet),
        body: expand(body).into_bytes(),
        expect,
    }
}

/// The arguments as raw bytes in the place of the block's object.
fn anthropic_case(written: &WrittenArguments) -> Case {
    let body = format!(
        r#"{{"type":"message","role":"assistant","content":[{{"type":"tool_use","id":"a","name":"{}","input":{}}}],"stop_reason":"tool_use"}}"#,
        written.tool,
        expand(&written.arguments)
    );
    let reason = match written.expect.as_str() {
        "malformed" => "malformed-body",
        "duplicate" => "duplicate-key",
        "not-object" => "arguments-malformed",
        other => other,
    };
    arguments_case("anthropic", written, body, reason)
}

/// The arguments as a JSON string.
fn openai_case(written: &WrittenArguments) -> Case {
    let body = format!(
        r#"{{"choices":[{{"message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"a","type":"function","function":{{"name":"{}","arguments":{}}}}}]}},"finish_reason":"tool_calls"}}]}}"#,
        written.tool,
        Value::String(expand(&written.arguments))
    );
    let reason = match written.expect.as_str() {
        "malformed" | "duplicate" | "not-object" => "arguments-malformed",
        other => other,
    };
    arguments_case("openai", written, body, reason)
}

fn arguments_case(api: &str, written: &WrittenArguments, body: String, reason: &str) -> Case {
    let kind = match written.tool.as_str() {
        "request_memory_change" => "memory-change",
        "submit_correction" => "self-correction",
        _ => "focus-declaration",
    };
    let expect = match reason {
        "valid" => {
            Expect::Valid(serde_json::json!({"fromModel": false, "truncated": false, "kinds": [kind]}))
        }
        other => Expect::Reason(other.to_owned()),
    };
    Case {
        name: format!("{api}: {}: {}", written.tool, written.name),
        packet: packet(api),
        body: body.into_bytes(),
        expect,
    }
}

/// Writes out every `@text*count@`.
fn expand(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('@') {
        expanded.push_str(before);
        let repeated = after.split_once('@').and_then(|(inside, behind)| {
            let (unit, count) = inside.rsplit_once('*')?;
            Some((unit.repeat(count.parse().ok()?), behind))
        });
        match repeated {
            Some((run, behind)) => {
                expanded.push_str(&run);
                rest = behind;
            }
            None => {
                expanded.push('@');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}
