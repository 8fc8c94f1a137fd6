//! OpenAI chat completions: the checks of a request, and the vendor's error form.

use serde_json::{Map, Value, json};

use super::check::{Checked, Refusal, check_image, is_name, text, unknown_member};
use super::{ContentBesideCalls, ModelConfig, TokenLimit};
use crate::http::Request;
use crate::limits::OPENAI_ID_CHARS_MAX;

const MEMBERS: [&str; 31] = [
    "model",
    "messages",
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
];

/// The key, before the body is looked at.
pub(super) fn check_headers(config: &ModelConfig, request: &Request) -> Checked {
    let Some(key) = &config.api_key else { return Ok(()) };
    match request.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) {
        Some(given) if given == key => Ok(()),
        Some(_) => Err(Refusal::of(401, "invalid_request_error", "Incorrect API key provided.")
            .with_code("invalid_api_key")),
        None => Err(Refusal::of(
            401,
            "invalid_request_error",
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        )),
    }
}

/// The whole body.
pub(super) fn check_body(config: &ModelConfig, body: &Value) -> Checked {
    let Some(body) = body.as_object() else {
        return Err(Refusal::invalid("We could not parse the JSON body of your request."));
    };
    if let Some(name) = unknown_member(body, &MEMBERS) {
        return Err(Refusal::invalid(format!("Unknown parameter: '{name}'."))
            .with_code("unknown_parameter")
            .with_param(name));
    }
    match text(body, "model") {
        Some(model) if !model.is_empty() => {
            if !config.models.admits(model) {
                let message = format!("The model `{model}` does not exist or you do not have access to it.");
                return Err(Refusal::of(404, "invalid_request_error", message).with_code("model_not_found"));
            }
        }
        _ => return Err(Refusal::invalid("you must provide a model parameter")),
    }
    check_numbers(config, body)?;
    let tools = check_tools(body)?;
    check_tool_choice(body, tools.as_deref())?;
    check_messages(config, body)
}

fn check_numbers(config: &ModelConfig, body: &Map<String, Value>) -> Checked {
    let (older, newer) = (body.get("max_tokens"), body.get("max_completion_tokens"));
    let unsupported = |given: &str, instead: &str| {
        Refusal::invalid(format!(
            "Unsupported parameter: '{given}' is not supported with this model. Use '{instead}' instead."
        ))
        .with_code("unsupported_parameter")
        .with_param(given)
    };
    match (config.token_limit, older, newer) {
        (_, Some(_), Some(_)) => {
            return Err(Refusal::invalid(
                "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            ));
        }
        (TokenLimit::MaxCompletionTokens, Some(_), _) => {
            return Err(unsupported("max_tokens", "max_completion_tokens"));
        }
        (TokenLimit::MaxTokens, _, Some(_)) => {
            return Err(unsupported("max_completion_tokens", "max_tokens"));
        }
        _ => {}
    }
    if let Some(limit) = older.or(newer)
        && limit.as_u64().is_none_or(|limit| limit == 0)
    {
        return Err(Refusal::invalid(
            "Invalid token limit: integer below minimum value. Expected a value >= 1.",
        )
        .with_code("integer_below_min_value"));
    }
    if body.get("stream").is_some_and(|stream| stream != &json!(false)) {
        return Err(Refusal::invalid("This server does not stream.").with_param("stream"));
    }
    if body.get("n").is_some_and(|count| count != &json!(1)) {
        return Err(Refusal::invalid("This server gives one choice.").with_param("n"));
    }
    let in_range = |value: &Value| value.as_f64().is_some_and(|value| (0.0..=2.0).contains(&value));
    if body.get("temperature").is_some_and(|value| !in_range(value)) {
        return Err(
            Refusal::invalid("Invalid 'temperature': decimal above maximum value.").with_param("temperature")
        );
    }
    Ok(())
}

/// The names of the tools; `None` when none are given.
fn check_tools(body: &Map<String, Value>) -> Checked<Option<Vec<String>>> {
    let Some(tools) = body.get("tools") else { return Ok(None) };
    let tools = tools.as_array().ok_or_else(|| wrong_type("tools", "an array of objects"))?;
    if tools.is_empty() {
        return Err(Refusal::invalid(
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        )
        .with_code("empty_array")
        .with_param("tools"));
    }
    let mut names: Vec<String> = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        let tool = tool.as_object().ok_or_else(|| wrong_type(&at, "an object"))?;
        extra(tool, &["type", "function"], &at)?;
        if text(tool, "type") != Some("function") {
            return Err(wrong_value(&format!("{at}.type"), "'function'"));
        }
        let at = format!("{at}.function");
        let function =
            tool.get("function").and_then(Value::as_object).ok_or_else(|| wrong_type(&at, "an object"))?;
        extra(function, &["name", "description", "parameters", "strict"], &at)?;
        let name = checked_name(function, &at)?;
        if names.contains(&name) {
            return Err(Refusal::invalid(format!("Duplicate tool name: {name}")));
        }
        if function.get("description").is_some_and(|description| !description.is_string()) {
            return Err(wrong_type(&format!("{at}.description"), "a string"));
        }
        let parameters = function.get("parameters");
        if parameters.is_some_and(|schema| schema.get("type") != Some(&json!("object"))) {
            return Err(Refusal::invalid(format!(
                "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'."
            ))
            .with_code("invalid_function_parameters")
            .with_param(&format!("{at}.parameters")));
        }
        if function.get("strict") == Some(&json!(true)) {
            check_strict_schema(&name, parameters)?;
        }
        names.push(name);
    }
    Ok(Some(names))
}

/// A strict schema names all its properties as required and admits no others.
fn check_strict_schema(name: &str, schema: Option<&Value>) -> Checked {
    let schema = schema.unwrap_or(&Value::Null);
    let closed = schema.get("additionalProperties") == Some(&json!(false));
    let required = schema.get("required").and_then(Value::as_array);
    let all_required = schema.get("properties").and_then(Value::as_object).is_none_or(|properties| {
        properties.keys().all(|property| required.is_some_and(|names| names.contains(&json!(property))))
    });
    if closed && all_required {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "Invalid schema for function '{name}': 'additionalProperties' is required to be supplied and to be false, and 'required' must name every property."
    ))
    .with_code("invalid_function_parameters"))
}

fn check_tool_choice(body: &Map<String, Value>, tools: Option<&[String]>) -> Checked {
    if tools.is_none() && body.contains_key("parallel_tool_calls") {
        return Err(Refusal::invalid(
            "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
        )
        .with_param("parallel_tool_calls"));
    }
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    let Some(tools) = tools else {
        return Err(Refusal::invalid(
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        )
        .with_param("tool_choice"));
    };
    match choice {
        Value::String(word) if ["auto", "none", "required"].contains(&word.as_str()) => Ok(()),
        Value::Object(_) => {
            let name = choice.pointer("/function/name").and_then(Value::as_str).unwrap_or("");
            if tools.iter().any(|tool| tool == name) {
                Ok(())
            } else {
                Err(Refusal::invalid("Tool choice not found in 'tools' parameter.").with_param("tool_choice"))
            }
        }
        _ => Err(wrong_value("tool_choice", "'none', 'auto', and 'required'")),
    }
}

fn check_messages(config: &ModelConfig, body: &Map<String, Value>) -> Checked {
    let messages = match body.get("messages") {
        None => {
            return Err(Refusal::invalid("Missing required parameter: 'messages'.")
                .with_code("missing_required_parameter")
                .with_param("messages"));
        }
        Some(Value::Array(messages)) if messages.is_empty() => {
            return Err(Refusal::invalid(
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            )
            .with_code("empty_array")
            .with_param("messages"));
        }
        Some(Value::Array(messages)) => messages,
        Some(_) => return Err(wrong_type("messages", "an array of objects")),
    };
    // Ids of the calls that still want a result, and of all calls of the message before.
    let mut open: Vec<String> = Vec::new();
    let mut offered: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let message = message.as_object().ok_or_else(|| wrong_type(&at, "an object"))?;
        let role = text(message, "role").unwrap_or("");
        if role != "tool" {
            all_answered(&open)?;
            offered.clear();
        }
        match role {
            "system" | "developer" => {
                extra(message, &["role", "content", "name"], &at)?;
                check_parts(message.get("content"), &at, Parts::TextOnly)?;
            }
            "user" => {
                extra(message, &["role", "content", "name"], &at)?;
                check_parts(message.get("content"), &at, Parts::TextAndImages)?;
            }
            "assistant" => {
                open = check_assistant(config, message, &at)?;
                offered.clone_from(&open);
            }
            "tool" => {
                extra(message, &["role", "content", "tool_call_id"], &at)?;
                check_parts(message.get("content"), &at, Parts::TextOnly)?;
                answer_call(message, &mut open, &offered, &at)?;
            }
            _ => {
                return Err(wrong_value(
                    &format!("{at}.role"),
                    "'system', 'assistant', 'user', 'tool', and 'developer'",
                ));
            }
        }
    }
    all_answered(&open)
}

fn all_answered(open: &[String]) -> Checked {
    if open.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
    .with_param("messages"))
}

fn answer_call(
    message: &Map<String, Value>,
    open: &mut Vec<String>,
    offered: &[String],
    at: &str,
) -> Checked {
    if offered.is_empty() {
        return Err(Refusal::invalid(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        )
        .with_param(&format!("{at}.role")));
    }
    let Some(id) = text(message, "tool_call_id") else {
        return Err(Refusal::invalid(format!("Missing required parameter: '{at}.tool_call_id'."))
            .with_code("missing_required_parameter"));
    };
    let Some(position) = open.iter().position(|wanted| wanted == id) else {
        return Err(Refusal::invalid(format!(
            "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message."
        ))
        .with_param(&format!("{at}.tool_call_id")));
    };
    open.remove(position);
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Parts {
    TextOnly,
    TextAndImages,
}

fn check_parts(content: Option<&Value>, at: &str, allowed: Parts) -> Checked {
    let at = format!("{at}.content");
    let parts = match content {
        Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(parts)) if !parts.is_empty() => parts,
        _ => return Err(wrong_type(&at, "a string or a non-empty array of objects")),
    };
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let part = part.as_object().ok_or_else(|| wrong_type(&at, "an object"))?;
        match text(part, "type") {
            Some("text") => {
                extra(part, &["type", "text"], &at)?;
                if text(part, "text").is_none_or(str::is_empty) {
                    return Err(
                        Refusal::invalid(format!("Invalid '{at}.text': empty string.")).with_param(&at)
                    );
                }
            }
            Some("image_url") if allowed == Parts::TextAndImages => check_image_part(part, &at)?,
            _ => return Err(wrong_value(&format!("{at}.type"), "'text' or, from the user, 'image_url'")),
        }
    }
    Ok(())
}

fn check_image_part(part: &Map<String, Value>, at: &str) -> Checked {
    extra(part, &["type", "image_url"], at)?;
    let at = format!("{at}.image_url");
    let image =
        part.get("image_url").and_then(Value::as_object).ok_or_else(|| wrong_type(&at, "an object"))?;
    extra(image, &["url", "detail"], &at)?;
    let data = text(image, "url").and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
    let checked = match data {
        Some((media_type, base64)) => check_image(media_type, base64),
        None => Err("only data URLs are reached from here".to_owned()),
    };
    checked.map_err(|why| {
        Refusal::invalid(format!("Invalid image: {why}.")).with_code("invalid_image_url").with_param(&at)
    })
}

/// The ids of its calls.
fn check_assistant(config: &ModelConfig, message: &Map<String, Value>, at: &str) -> Checked<Vec<String>> {
    extra(message, &["role", "content", "name", "refusal", "audio", "tool_calls"], at)?;
    let content = message.get("content");
    let Some(calls) = message.get("tool_calls") else {
        return match content {
            None | Some(Value::Null) => Err(Refusal::invalid(format!(
                "Invalid value for '{at}.content': expected a string, got null."
            ))
            .with_param(&format!("{at}.content"))),
            content => check_parts(content, at, Parts::TextOnly).map(|()| Vec::new()),
        };
    };
    if !matches!(content, None | Some(Value::Null)) {
        check_parts(content, at, Parts::TextOnly)?;
    }
    let stands = match config.content_beside_calls {
        ContentBesideCalls::Any => true,
        ContentBesideCalls::Null => content == Some(&Value::Null),
        ContentBesideCalls::Empty => content == Some(&json!("")),
    };
    if !stands {
        return Err(Refusal::of(
            500,
            "server_error",
            format!("{at}.content: not what the chat template takes"),
        ));
    }
    let calls =
        calls.as_array().ok_or_else(|| wrong_type(&format!("{at}.tool_calls"), "an array of objects"))?;
    if calls.is_empty() {
        return Err(
            Refusal::invalid(format!("Invalid '{at}.tool_calls': empty array.")).with_code("empty_array")
        );
    }
    let mut ids: Vec<String> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        let id = check_call(call, &at)?;
        if ids.contains(&id) {
            return Err(Refusal::invalid(format!("Duplicate value for 'tool_call_id' of '{id}'")));
        }
        ids.push(id);
    }
    Ok(ids)
}

fn check_call(call: &Value, at: &str) -> Checked<String> {
    let call = call.as_object().ok_or_else(|| wrong_type(at, "an object"))?;
    extra(call, &["id", "type", "function"], at)?;
    let id = match text(call, "id") {
        Some("") => return Err(wrong_value(&format!("{at}.id"), "a non-empty string")),
        Some(id) if id.chars().count() > OPENAI_ID_CHARS_MAX => {
            return Err(Refusal::invalid(format!(
                "Invalid '{at}.id': string too long. Expected a string with maximum length {OPENAI_ID_CHARS_MAX}, but got a string with length {} instead.",
                id.chars().count()
            ))
            .with_code("string_above_max_length"));
        }
        Some(id) => id,
        None => return Err(wrong_type(&format!("{at}.id"), "a string")),
    };
    if text(call, "type") != Some("function") {
        return Err(wrong_value(&format!("{at}.type"), "'function'"));
    }
    let at = format!("{at}.function");
    let function =
        call.get("function").and_then(Value::as_object).ok_or_else(|| wrong_type(&at, "an object"))?;
    extra(function, &["name", "arguments"], &at)?;
    checked_name(function, &at)?;
    match text(function, "arguments").map(serde_json::from_str::<Map<String, Value>>) {
        None => Err(wrong_type(&format!("{at}.arguments"), "a string")),
        Some(Err(_)) => Err(wrong_value(&format!("{at}.arguments"), "the JSON text of an object")),
        Some(Ok(_)) => Ok(id.to_owned()),
    }
}

fn checked_name(function: &Map<String, Value>, at: &str) -> Checked<String> {
    match text(function, "name") {
        Some(name) if is_name(name) => Ok(name.to_owned()),
        _ => Err(Refusal::invalid(format!(
            "Invalid '{at}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]{{1,64}}$'."
        ))
        .with_code("invalid_value")
        .with_param(&format!("{at}.name"))),
    }
}

fn extra(object: &Map<String, Value>, known: &[&str], at: &str) -> Checked {
    match unknown_member(object, known) {
        Some(name) => {
            let param = format!("{at}.{name}");
            Err(Refusal::invalid(format!("Unknown parameter: '{param}'."))
                .with_code("unknown_parameter")
                .with_param(&param))
        }
        None => Ok(()),
    }
}

fn wrong_type(at: &str, expected: &str) -> Refusal {
    Refusal::invalid(format!("Invalid type for '{at}': expected {expected}."))
        .with_code("invalid_type")
        .with_param(at)
}

fn wrong_value(at: &str, expected: &str) -> Refusal {
    Refusal::invalid(format!("Invalid value for '{at}'. Supported values are: {expected}."))
        .with_code("invalid_value")
        .with_param(at)
}

/// The vendor's error body.
pub(super) fn error_body(kind: &str, code: Option<&str>, param: Option<&str>, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

/// The type and code that go with a status when none were given.
pub(super) fn usual_type(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        400 | 404 => ("invalid_request_error", None),
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("permission_error", None),
        429 => ("requests", Some("rate_limit_exceeded")),
        _ => ("server_error", None),
    }
}
