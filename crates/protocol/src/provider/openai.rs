//! OpenAI chat completions, and the many local servers that speak it: requests without streaming, answers of one
//! choice.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Parts, RenderError, Stop, call_id, choice_word, schema, string, to_bytes, tokens};
use crate::answer::{Answer, FailReason, RawCall, Usage};
use crate::packet::{Compat, HistoryCall, Packet, PacketImage, PacketMessage, TokenLimit};
use crate::proposal::{NORMALIZED_RESULT, ToolName, description};

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        #[serde(skip_serializing_if = "AssistantContent::is_absent")]
        content: AssistantContent<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'static str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

/// An image as a data URL, put together only while it is written.
struct ImageUrl<'a>(&'a PacketImage);

impl Serialize for ImageUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ImageUrl", 1)?;
        let url = format_args!("data:{};base64,{}", self.0.media_type, self.0.data_base64);
        object.serialize_field("url", &url)?;
        object.end()
    }
}

/// What stands as an assistant's content.
#[derive(Serialize)]
#[serde(untagged)]
enum AssistantContent<'a> {
    Absent,
    Null(()),
    Text(&'a str),
}

impl AssistantContent<'_> {
    const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: ToolName,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ToolFunction,
}

#[derive(Serialize)]
struct ToolFunction {
    name: ToolName,
    description: &'static str,
    parameters: Box<RawValue>,
}

pub(super) fn render(packet: &Packet) -> Result<Vec<u8>, RenderError> {
    let mut messages = Vec::with_capacity(packet.messages.len() + 1);
    if !packet.system.is_empty() {
        messages.push(Message::System { content: &packet.system });
    }
    for message in &packet.messages {
        match message {
            PacketMessage::User { text, images } => {
                messages.push(Message::User { content: user_content(text, images) });
            }
            PacketMessage::Assistant { text } => messages
                .push(Message::Assistant { content: AssistantContent::Text(text), tool_calls: Vec::new() }),
            PacketMessage::ToolTurn { calls } => {
                messages.push(Message::Assistant {
                    content: beside_calls(packet.compat),
                    tool_calls: calls.iter().map(call).collect(),
                });
                messages.extend(
                    calls
                        .iter()
                        .map(|call| Message::Tool { tool_call_id: &call.id, content: NORMALIZED_RESULT }),
                );
            }
        }
    }
    let tools = packet.tools.iter().map(|tool| {
        let function =
            ToolFunction { name: *tool, description: description(*tool), parameters: schema(*tool)? };
        Ok(Tool { kind: "function", function })
    });
    let limit = |name| (packet.token_limit == name).then_some(packet.max_output_tokens);
    to_bytes(&Request {
        model: &packet.model,
        max_completion_tokens: limit(TokenLimit::MaxCompletionTokens),
        max_tokens: limit(TokenLimit::MaxTokens),
        messages,
        tools: tools.collect::<Result<_, RenderError>>()?,
        tool_choice: packet.tool_choice.map(choice_word),
    })
}

fn user_content<'a>(text: &'a str, images: &'a [PacketImage]) -> UserContent<'a> {
    if images.is_empty() {
        return UserContent::Text(text);
    }
    let text = Some(text).filter(|text| !text.is_empty()).map(|text| Part::Text { text });
    UserContent::Parts(
        images.iter().map(|image| Part::ImageUrl { image_url: ImageUrl(image) }).chain(text).collect(),
    )
}

const fn beside_calls(compat: Compat) -> AssistantContent<'static> {
    match compat {
        Compat::Standard => AssistantContent::Absent,
        Compat::ContentNull => AssistantContent::Null(()),
        Compat::ContentEmpty => AssistantContent::Text(""),
    }
}

fn call(call: &HistoryCall) -> Call<'_> {
    Call {
        id: &call.id,
        kind: "function",
        function: CallFunction { name: call.name, arguments: &call.arguments },
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: AnswerMessage<'a>,
    finish_reason: Option<Value>,
}

#[derive(Deserialize)]
struct AnswerMessage<'a> {
    role: Option<Value>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<Value>,
    function_call: Option<Value>,
    audio: Option<Value>,
    #[serde(borrow)]
    tool_calls: Option<Vec<AnswerCall<'a>>>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    reasoning_text: Option<Value>,
    reasoning_details: Option<Value>,
}

#[derive(Deserialize)]
struct AnswerCall<'a> {
    #[serde(rename = "type")]
    kind: Option<Value>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<AnswerFunction<'a>>,
}

#[derive(Deserialize)]
struct AnswerFunction<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnswerPart<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChoicesOnly<'a> {
    #[serde(borrow)]
    choices: Vec<&'a RawValue>,
}

/// Reads a body that passed the strict check.
pub(super) fn read(body: &[u8]) -> Result<Answer, FailReason> {
    let malformed = FailReason::MalformedBody;
    // Counted before their shape is looked at: a second choice is one, whatever it holds.
    let only: ChoicesOnly<'_> = serde_json::from_slice(body).or(Err(malformed))?;
    if only.choices.len() > 1 {
        return Err(FailReason::SecondChoice);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(body).or(Err(malformed))?;
    let choice = envelope.choices.into_iter().next().ok_or(malformed)?;
    let message = choice.message;
    if message.role.as_ref().is_none_or(|role| role != "assistant") {
        return Err(FailReason::UnknownRole);
    }
    if message.function_call.is_some() {
        return Err(FailReason::FunctionCall);
    }
    if message.audio.is_some() {
        return Err(FailReason::UnknownPart);
    }
    if message.refusal.as_ref().is_some_and(|refusal| refusal != "") {
        return Err(FailReason::Refusal);
    }
    let stop = match choice.finish_reason.as_ref().and_then(Value::as_str) {
        Some("stop") => Stop::TextOrCalls,
        Some("length") => Stop::Length,
        Some("tool_calls") => Stop::Calls,
        Some("content_filter") => return Err(FailReason::ContentFilter),
        Some("function_call") => return Err(FailReason::FunctionCall),
        Some(_) | None => return Err(FailReason::UnknownStop),
    };
    let usage = envelope.usage.as_ref();
    let mut parts = Parts {
        usage: Usage {
            input_tokens: tokens(usage, "prompt_tokens"),
            output_tokens: tokens(usage, "completion_tokens"),
        },
        ..Parts::default()
    };
    read_content(message.content, &mut parts)?;
    let thinking =
        [&message.reasoning_content, &message.reasoning, &message.reasoning_text, &message.reasoning_details];
    parts.drop_thinking(thinking.into_iter().flatten().map(thinking_parts).sum());
    for call in message.tool_calls.unwrap_or_default() {
        parts.calls.push(read_call(&call)?);
    }
    parts.assemble(stop)
}

/// Servers put thinking beside the content under several names, as text or as a list.
fn thinking_parts(member: &Value) -> usize {
    match member {
        Value::Array(parts) => parts.len(),
        Value::String(text) if text.is_empty() => 0,
        _ => 1,
    }
}

fn read_content(content: Option<&RawValue>, parts: &mut Parts) -> Result<(), FailReason> {
    let Some(content) = content else { return Ok(()) };
    if content.get().starts_with('"') {
        parts.texts.push(string(Some(content))?);
        return Ok(());
    }
    let list: Vec<AnswerPart<'_>> = serde_json::from_str(content.get()).or(Err(FailReason::MalformedBody))?;
    for part in list {
        match part.kind.as_str() {
            "text" => parts.texts.push(string(part.text)?),
            "thinking" | "reasoning" => parts.drop_thinking(1),
            "refusal" => return Err(FailReason::Refusal),
            _ => return Err(FailReason::UnknownPart),
        }
    }
    Ok(())
}

fn read_call(call: &AnswerCall<'_>) -> Result<RawCall, FailReason> {
    if call.kind.as_ref().is_some_and(|kind| kind != "function") {
        return Err(FailReason::UnknownPart);
    }
    let function = call.function.as_ref().ok_or(FailReason::MalformedBody)?;
    let arguments = function.arguments.ok_or(FailReason::ArgumentsMalformed)?;
    Ok(RawCall {
        id: call_id(call.id)?,
        name: string(function.name)?,
        arguments: serde_json::from_str(arguments.get()).or(Err(FailReason::ArgumentsMalformed))?,
    })
}
