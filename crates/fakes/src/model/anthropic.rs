//! Anthropic Messages: the checks of a request, and the vendor's error form.

use serde_json::{Map, Value, json};

use super::check::{Checked, Refusal, check_image, is_name, text, unknown_member};
use super::{ModelConfig, RoleOrder};
use crate::http::Request;
use crate::limits::ANTHROPIC_REQUEST_BYTES_MAX;

const MEMBERS: [&str; 23] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "metadata",
    "stop_sequences",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "tools",
    "tool_choice",
    "thinking",
    "service_tier",
    "container",
    "context_management",
    "mcp_servers",
    "output_config",
    "output_format",
    "cache_control",
    "diagnostics",
    "inference_geo",
    "speed",
];

/// Members of a tool that the client defines.
const TOOL_MEMBERS: [&str; 10] = [
    "name",
    "description",
    "input_schema",
    "type",
    "cache_control",
    "strict",
    "allowed_callers",
    "defer_loading",
    "eager_input_streaming",
    "input_examples",
];

/// The version of the API since which the vendor's own clients send the key as a bearer token.
const BEARER_VERSION: &str = "2026-10-21";

/// Key and headers, before the body is looked at.
pub(super) fn check_headers(config: &ModelConfig, request: &Request) -> Checked {
    let version = request.header("anthropic-version");
    if let Some(key) = &config.api_key {
        let has_key_header = request.headers.iter().any(|(name, _)| name == "x-api-key");
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let given = match version {
            Some(BEARER_VERSION) if !has_key_header => bearer,
            _ => request.header("x-api-key"),
        };
        match given {
            None => return Err(Refusal::of(401, "authentication_error", "x-api-key header is required")),
            Some(given) if given != key => {
                return Err(Refusal::of(401, "authentication_error", "invalid x-api-key"));
            }
            Some(_) => {}
        }
    }
    match version {
        Some("2023-01-01" | "2023-06-01" | BEARER_VERSION) => Ok(()),
        Some(_) => Err(Refusal::invalid("anthropic-version: is not a valid version")),
        None => Err(Refusal::invalid("anthropic-version: header is required")),
    }
}

/// The whole body.
pub(super) fn check_body(config: &ModelConfig, request: &Request, body: &Value) -> Checked {
    if request.body.len() > ANTHROPIC_REQUEST_BYTES_MAX {
        return Err(Refusal::of(413, "request_too_large", "Request exceeds the maximum size"));
    }
    let Some(body) = body.as_object() else {
        return Err(Refusal::invalid("The request body is not valid JSON: an object is needed"));
    };
    if let Some(name) = unknown_member(body, &MEMBERS) {
        return Err(Refusal::invalid(format!("{name}: Extra inputs are not permitted")));
    }
    match text(body, "model") {
        Some(model) if !model.is_empty() => {
            if !config.models.admits(model) {
                return Err(Refusal::of(404, "not_found_error", format!("model: {model}")));
            }
        }
        _ => return Err(Refusal::invalid("model: Field required")),
    }
    check_numbers(body)?;
    if let Some(system) = body.get("system") {
        check_system(system)?;
    }
    let tools = check_tools(body)?;
    check_tool_choice(body, tools.as_deref())?;
    check_messages(config, body, tools.is_some())
}

fn check_numbers(body: &Map<String, Value>) -> Checked {
    match body.get("max_tokens") {
        None => return Err(Refusal::invalid("max_tokens: Field required")),
        Some(value) if value.as_u64().is_some_and(|count| count > 0) => {}
        Some(_) => return Err(Refusal::invalid("max_tokens: Input should be greater than or equal to 1")),
    }
    if body.get("stream").is_some_and(|stream| stream != &json!(false)) {
        return Err(Refusal::invalid("stream: this server does not stream"));
    }
    for name in ["temperature", "top_p"] {
        let in_range = |value: &Value| value.as_f64().is_some_and(|value| (0.0..=1.0).contains(&value));
        if body.get(name).is_some_and(|value| !in_range(value)) {
            return Err(Refusal::invalid(format!("{name}: Input should be between 0 and 1")));
        }
    }
    Ok(())
}

fn check_system(system: &Value) -> Checked {
    match system {
        Value::String(_) => Ok(()),
        Value::Array(blocks) => {
            for (index, block) in blocks.iter().enumerate() {
                let at = format!("system.{index}");
                let block = block.as_object().ok_or_else(|| bad_block(&at))?;
                if text(block, "type") != Some("text") {
                    return Err(Refusal::invalid(format!("{at}.type: Input should be 'text'")));
                }
                check_text_block(block, &at)?;
            }
            Ok(())
        }
        _ => Err(Refusal::invalid("system: Input should be a valid string or list")),
    }
}

fn bad_block(at: &str) -> Refusal {
    Refusal::invalid(format!("{at}: Input should be a valid dictionary"))
}

fn extra(block: &Map<String, Value>, known: &[&str], at: &str) -> Checked {
    match unknown_member(block, known) {
        Some(name) => Err(Refusal::invalid(format!("{at}.{name}: Extra inputs are not permitted"))),
        None => Ok(()),
    }
}

fn check_text_block(block: &Map<String, Value>, at: &str) -> Checked {
    extra(block, &["type", "text", "cache_control", "citations"], at)?;
    match text(block, "text") {
        None => Err(Refusal::invalid(format!("{at}.text: Field required"))),
        Some("") => Err(Refusal::invalid(format!("{at}: text content blocks must be non-empty"))),
        Some(text) if text.trim().is_empty() => {
            Err(Refusal::invalid(format!("{at}: text content blocks must contain non-whitespace text")))
        }
        Some(_) => Ok(()),
    }
}

/// The names of the tools; `None` when none are given.
fn check_tools(body: &Map<String, Value>) -> Checked<Option<Vec<String>>> {
    let Some(tools) = body.get("tools") else { return Ok(None) };
    let tools = tools.as_array().ok_or_else(|| Refusal::invalid("tools: Input should be a valid list"))?;
    if tools.is_empty() {
        return Err(Refusal::invalid("tools: List should have at least 1 item"));
    }
    let mut names: Vec<String> = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools.{index}");
        let tool = tool.as_object().ok_or_else(|| bad_block(&at))?;
        extra(tool, &TOOL_MEMBERS, &at)?;
        let name = text(tool, "name").unwrap_or("");
        if !is_name(name) {
            return Err(Refusal::invalid(format!(
                "{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
            )));
        }
        if names.iter().any(|earlier| earlier == name) {
            return Err(Refusal::invalid("tools: Tool names must be unique."));
        }
        if tool.get("type").is_some_and(|kind| kind != "custom") {
            return Err(Refusal::invalid(format!("{at}.type: Input should be 'custom'")));
        }
        if tool.get("description").is_some_and(|description| !description.is_string()) {
            return Err(Refusal::invalid(format!("{at}.description: Input should be a valid string")));
        }
        if tool.get("input_schema").and_then(|schema| schema.get("type")) != Some(&json!("object")) {
            return Err(Refusal::invalid(format!("{at}.input_schema.type: Input should be 'object'")));
        }
        names.push(name.to_owned());
    }
    Ok(Some(names))
}

fn check_tool_choice(body: &Map<String, Value>, tools: Option<&[String]>) -> Checked {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    let Some(tools) = tools else {
        return Err(Refusal::invalid("tool_choice may only be specified while providing tools."));
    };
    let choice = choice
        .as_object()
        .ok_or_else(|| Refusal::invalid("tool_choice: Input should be a valid dictionary"))?;
    let known: &[&str] = match text(choice, "type") {
        Some("auto" | "any") => &["type", "disable_parallel_tool_use"],
        Some("none") => &["type"],
        Some("tool") => &["type", "name", "disable_parallel_tool_use"],
        _ => {
            return Err(Refusal::invalid(
                "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'",
            ));
        }
    };
    extra(choice, known, "tool_choice")?;
    match text(choice, "name") {
        Some(name) if !tools.iter().any(|tool| tool == name) => {
            Err(Refusal::invalid(format!("tool_choice: Tool '{name}' not found in provided tools")))
        }
        None if known.contains(&"name") => Err(Refusal::invalid("tool_choice.name: Field required")),
        _ => Ok(()),
    }
}

fn check_messages(config: &ModelConfig, body: &Map<String, Value>, has_tools: bool) -> Checked {
    let messages = match body.get("messages") {
        None => return Err(Refusal::invalid("messages: Field required")),
        Some(Value::Array(messages)) if messages.is_empty() => {
            return Err(Refusal::invalid("messages: at least one message is required"));
        }
        Some(Value::Array(messages)) => messages,
        Some(_) => return Err(Refusal::invalid("messages: Input should be a valid list")),
    };
    let mut open_calls: Vec<String> = Vec::new();
    let mut all_calls: Vec<String> = Vec::new();
    let mut last_role = "";
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let message = message.as_object().ok_or_else(|| bad_block(&at))?;
        extra(message, &["role", "content"], &at)?;
        let role = match text(message, "role") {
            Some(role @ ("user" | "assistant")) => role,
            Some("system") => {
                return Err(Refusal::invalid(
                    "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.",
                ));
            }
            _ => return Err(Refusal::invalid(format!("{at}.role: Input should be 'user' or 'assistant'"))),
        };
        if index == 0 && role != "user" {
            return Err(Refusal::invalid("messages: first message must use the \"user\" role"));
        }
        if config.role_order == RoleOrder::Alternating && role == last_role {
            return Err(Refusal::invalid(
                "messages: roles must alternate between \"user\" and \"assistant\", but found multiple in a row",
            ));
        }
        last_role = role;
        let found = check_content(message.get("content"), role, &at)?;
        if !has_tools && (!found.calls.is_empty() || !found.results.is_empty()) {
            return Err(Refusal::invalid(
                "Requests which include `tool_use` or `tool_result` blocks must define tools",
            ));
        }
        match_results(&open_calls, &found.results, &at)?;
        if let Some(repeated) = found.calls.iter().find(|id| all_calls.contains(id)) {
            return Err(Refusal::invalid(format!("{at}: `tool_use` ids must be unique: {repeated}")));
        }
        all_calls.extend(found.calls.iter().cloned());
        open_calls = found.calls;
    }
    if !open_calls.is_empty() {
        return Err(unanswered(&open_calls, messages.len() - 1));
    }
    if last_role == "assistant" {
        return Err(Refusal::invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ));
    }
    Ok(())
}

/// Every call of the message before must have its result here, and no other result may stand here.
fn match_results(open: &[String], results: &[String], at: &str) -> Checked {
    if let Some(stray) = results.iter().find(|id| !open.contains(id)) {
        return Err(Refusal::invalid(format!(
            "{at}.content: unexpected `tool_use_id` found in `tool_result` blocks: {stray}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )));
    }
    let missing: Vec<String> = open.iter().filter(|id| !results.contains(id)).cloned().collect();
    if !missing.is_empty() {
        return Err(Refusal::invalid(format!("{at}: {}", unanswered(&missing, 0).message)));
    }
    if results.len() != open.len() {
        return Err(Refusal::invalid(format!(
            "{at}.content: each tool_use must have a single result. Found multiple `tool_result` blocks with one id"
        )));
    }
    Ok(())
}

fn unanswered(ids: &[String], index: usize) -> Refusal {
    Refusal::invalid(format!(
        "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    ))
}

#[derive(Default)]
struct Found {
    calls: Vec<String>,
    results: Vec<String>,
}

fn check_content(content: Option<&Value>, role: &str, at: &str) -> Checked<Found> {
    let empty = || Refusal::invalid(format!("{at}: {role} messages must have non-empty content"));
    let mut found = Found::default();
    let blocks = match content {
        None => return Err(Refusal::invalid(format!("{at}.content: Field required"))),
        Some(Value::String(text)) if text.trim().is_empty() => return Err(empty()),
        Some(Value::String(_)) => return Ok(found),
        Some(Value::Array(blocks)) if blocks.is_empty() => return Err(empty()),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => {
            return Err(Refusal::invalid(format!("{at}.content: Input should be a valid string or list")));
        }
    };
    let mut seen_other = false;
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content.{index}");
        let block = block.as_object().ok_or_else(|| bad_block(&at))?;
        let kind = text(block, "type").unwrap_or("");
        match (role, kind) {
            (_, "text") => check_text_block(block, &at)?,
            ("user", "image") => check_image_block(block, &at)?,
            ("user", "tool_result") => {
                if seen_other {
                    return Err(Refusal::invalid(format!(
                        "{at}: `tool_result` blocks must come first in the content of a user message"
                    )));
                }
                found.results.push(check_result_block(block, &at)?);
            }
            ("assistant", "tool_use") => found.calls.push(check_call_block(block, &at)?),
            ("assistant", "thinking") => {
                extra(block, &["type", "thinking", "signature"], &at)?;
                if text(block, "thinking").is_none() || text(block, "signature").is_none_or(str::is_empty) {
                    return Err(Refusal::invalid(format!(
                        "{at}.thinking: Invalid `signature` in `thinking` block"
                    )));
                }
            }
            ("assistant", "redacted_thinking") => extra(block, &["type", "data"], &at)?,
            _ => {
                return Err(Refusal::invalid(format!(
                    "{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags of a {role} message"
                )));
            }
        }
        seen_other |= kind != "tool_result";
    }
    Ok(found)
}

fn check_image_block(block: &Map<String, Value>, at: &str) -> Checked {
    extra(block, &["type", "source", "cache_control"], at)?;
    let source =
        block.get("source").and_then(Value::as_object).ok_or_else(|| bad_block(&format!("{at}.source")))?;
    if text(source, "type") != Some("base64") {
        return Err(Refusal::invalid(format!("{at}.source: this server takes base64 sources only")));
    }
    extra(source, &["type", "media_type", "data"], &format!("{at}.source"))?;
    let media_type = text(source, "media_type").unwrap_or("");
    check_image(media_type, text(source, "data").unwrap_or(""))
        .map_err(|why| Refusal::invalid(format!("{at}.image.source.base64: {why}")))
}

fn check_call_block(block: &Map<String, Value>, at: &str) -> Checked<String> {
    extra(block, &["type", "id", "name", "input", "cache_control", "caller", "toolset_name"], at)?;
    let id = checked_id(block, "id", at)?;
    if !text(block, "name").is_some_and(is_name) {
        return Err(Refusal::invalid(format!(
            "{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        )));
    }
    if !block.get("input").is_some_and(Value::is_object) {
        return Err(Refusal::invalid(format!("{at}.tool_use.input: Input should be a valid dictionary")));
    }
    Ok(id)
}

fn check_result_block(block: &Map<String, Value>, at: &str) -> Checked<String> {
    extra(block, &["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"], at)?;
    let id = checked_id(block, "tool_use_id", at)?;
    match block.get("content") {
        None | Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                let at = format!("{at}.tool_result.content.{index}");
                let part = part.as_object().ok_or_else(|| bad_block(&at))?;
                match text(part, "type") {
                    Some("text") => check_text_block(part, &at)?,
                    Some("image") => check_image_block(part, &at)?,
                    _ => return Err(bad_block(&at)),
                }
            }
        }
        Some(_) => return Err(bad_block(&format!("{at}.tool_result.content"))),
    }
    if block.get("is_error").is_some_and(|value| !value.is_boolean()) {
        return Err(Refusal::invalid(format!("{at}.tool_result.is_error: Input should be a valid boolean")));
    }
    Ok(id)
}

fn checked_id(block: &Map<String, Value>, name: &str, at: &str) -> Checked<String> {
    match text(block, name) {
        Some(id) if is_name(id) => Ok(id.to_owned()),
        _ => Err(Refusal::invalid(format!(
            "{at}.{name}: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        ))),
    }
}

/// The vendor's error body.
pub(super) fn error_body(kind: &str, code: Option<&str>, message: &str, request_id: &str) -> Value {
    let mut error = json!({"type": kind, "message": message});
    if let Some(code) = code {
        error["details"] = json!({"error_code": code});
    }
    json!({"type": "error", "error": error, "request_id": request_id})
}

/// The type that goes with a status when none was given.
pub(super) fn usual_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}
