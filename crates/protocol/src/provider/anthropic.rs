//! Anthropic Messages: requests without streaming, answers of content blocks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Parts, RenderError, Stop, call_id, choice_word, schema, string, to_bytes, tokens};
use crate::answer::{Answer, FailReason, RawCall, Usage};
use crate::packet::{HistoryCall, Packet, PacketImage, PacketMessage};
use crate::proposal::{NORMALIZED_RESULT, ToolName, description};

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    system: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Content<'a>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
    ToolUse { id: &'a str, name: ToolName, input: &'a RawValue },
    ToolResult { tool_use_id: &'a str, content: &'static str },
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Tool {
    name: ToolName,
    description: &'static str,
    input_schema: Box<RawValue>,
}

#[derive(Serialize)]
struct Choice {
    #[serde(rename = "type")]
    kind: &'static str,
}

pub(super) fn render(packet: &Packet) -> Result<Vec<u8>, RenderError> {
    let mut turns: Vec<(Role, Vec<Block<'_>>)> = Vec::new();
    for message in &packet.messages {
        match message {
            PacketMessage::User { text, images } => push(&mut turns, Role::User, user_blocks(text, images)),
            PacketMessage::Assistant { text } => {
                push(&mut turns, Role::Assistant, vec![Block::Text { text }])
            }
            PacketMessage::ToolTurn { calls } => {
                let uses = calls.iter().map(tool_use).collect::<Result<_, _>>()?;
                push(&mut turns, Role::Assistant, uses);
                push(&mut turns, Role::User, calls.iter().map(tool_result).collect());
            }
        }
    }
    let tools = packet
        .tools
        .iter()
        .map(|tool| Ok(Tool { name: *tool, description: description(*tool), input_schema: schema(*tool)? }));
    to_bytes(&Request {
        model: &packet.model,
        max_tokens: packet.max_output_tokens,
        system: &packet.system,
        messages: turns
            .into_iter()
            .map(|(role, blocks)| Message { role, content: content(blocks) })
            .collect(),
        tools: tools.collect::<Result<_, RenderError>>()?,
        tool_choice: packet.tool_choice.map(|choice| Choice { kind: choice_word(choice) }),
    })
}

/// Roles must alternate for strict servers, so blocks of one role join into one message. Each person's message stays a
/// block of its own, its words unbroken; results, which come first after their calls, stay first.
fn push<'a>(turns: &mut Vec<(Role, Vec<Block<'a>>)>, role: Role, blocks: Vec<Block<'a>>) {
    match turns.last_mut() {
        Some((last, joined)) if *last == role => joined.extend(blocks),
        _ => turns.push((role, blocks)),
    }
}

fn content(mut blocks: Vec<Block<'_>>) -> Content<'_> {
    match (blocks.pop(), blocks.is_empty()) {
        (Some(Block::Text { text }), true) => Content::Text(text),
        (last, _) => {
            blocks.extend(last);
            Content::Blocks(blocks)
        }
    }
}

fn user_blocks<'a>(text: &'a str, images: &'a [PacketImage]) -> Vec<Block<'a>> {
    let image = |image: &'a PacketImage| Block::Image {
        source: Source { kind: "base64", media_type: &image.media_type, data: &image.data_base64 },
    };
    let text = Some(text).filter(|text| !text.is_empty()).map(|text| Block::Text { text });
    images.iter().map(image).chain(text).collect()
}

fn tool_use(call: &HistoryCall) -> Result<Block<'_>, RenderError> {
    let input = serde_json::from_str(&call.arguments).map_err(RenderError::Serialize)?;
    Ok(Block::ToolUse { id: &call.id, name: call.name, input })
}

fn tool_result(call: &HistoryCall) -> Block<'_> {
    Block::ToolResult { tool_use_id: &call.id, content: NORMALIZED_RESULT }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: Option<Value>,
    role: Option<Value>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<Value>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct AnswerBlock<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// Reads a body that passed the strict check.
pub(super) fn read(body: &[u8]) -> Result<Answer, FailReason> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).or(Err(FailReason::MalformedBody))?;
    if envelope.kind.as_ref().is_some_and(|kind| kind != "message") {
        return Err(FailReason::MalformedBody);
    }
    if envelope.role.as_ref().is_none_or(|role| role != "assistant") {
        return Err(FailReason::UnknownRole);
    }
    let stop = match envelope.stop_reason.as_ref().and_then(Value::as_str) {
        Some("end_turn" | "stop_sequence") => Stop::Text,
        Some("max_tokens") => Stop::Length,
        Some("tool_use") => Stop::Calls,
        Some("refusal") => return Err(FailReason::Refusal),
        Some("model_context_window_exceeded") => return Err(FailReason::ContextOverflow),
        Some(_) | None => return Err(FailReason::UnknownStop),
    };
    let usage = envelope.usage.as_ref();
    let mut parts = Parts {
        usage: Usage {
            input_tokens: tokens(usage, "input_tokens"),
            output_tokens: tokens(usage, "output_tokens"),
        },
        ..Parts::default()
    };
    for block in envelope.content {
        read_block(block, &mut parts)?;
    }
    parts.assemble(stop)
}

fn read_block(block: &RawValue, parts: &mut Parts) -> Result<(), FailReason> {
    let block: AnswerBlock<'_> = serde_json::from_str(block.get()).or(Err(FailReason::MalformedBody))?;
    match block.kind.as_str() {
        "text" => parts.texts.push(string(block.text)?),
        "thinking" | "redacted_thinking" => parts.drop_thinking(1),
        "tool_use" => parts.calls.push(RawCall {
            id: call_id(block.id)?,
            name: string(block.name)?,
            arguments: block.input.ok_or(FailReason::ArgumentsMalformed)?.get().to_owned(),
        }),
        _ => return Err(FailReason::UnknownPart),
    }
    Ok(())
}
