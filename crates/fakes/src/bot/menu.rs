//! The command menu: `setMyCommands`, `getMyCommands`, `deleteMyCommands`, per scope and language.

use serde_json::{Value, json};

use super::params::Params;
use super::state::State;
use super::{Refusal, refuse};
use crate::limits::COMMANDS_MAX;

pub(crate) fn set(state: &mut State, params: &Params) -> Result<Value, Refusal> {
    let key = scope(params)?;
    let Some(commands) = params.list("commands")? else {
        return refuse("Bad Request: parameter \"commands\" is required");
    };
    if commands.len() > COMMANDS_MAX {
        return refuse("Bad Request: BOT_COMMANDS_TOO_MUCH");
    }
    let mut menu: Vec<Value> = Vec::new();
    for command in &commands {
        let name = command.get("command").and_then(Value::as_str).unwrap_or("");
        let name = name.strip_prefix('/').unwrap_or(name);
        let named = (1..=32).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !named || menu.iter().any(|earlier| earlier["command"] == name) {
            return refuse("Bad Request: BOT_COMMAND_INVALID");
        }
        let description = command.get("description").and_then(Value::as_str).unwrap_or("").trim();
        if !(1..=256).contains(&description.chars().count()) {
            return refuse("Bad Request: BOT_COMMAND_DESCRIPTION_INVALID");
        }
        menu.push(json!({"command": name, "description": description}));
    }
    state.commands.insert(key, menu);
    Ok(json!(true))
}

pub(crate) fn get(state: &State, params: &Params) -> Result<Value, Refusal> {
    let key = scope(params)?;
    Ok(Value::Array(state.commands.get(&key).cloned().unwrap_or_default()))
}

pub(crate) fn delete(state: &mut State, params: &Params) -> Result<Value, Refusal> {
    let key = scope(params)?;
    state.commands.remove(&key);
    Ok(json!(true))
}

/// The scope (as text that tells equal ones) and the language.
pub(crate) fn scope(params: &Params) -> Result<(String, String), Refusal> {
    let language = params.text("language_code").unwrap_or_default();
    if !language.is_empty()
        && (language.len() != 2 || !language.bytes().all(|byte| byte.is_ascii_lowercase()))
    {
        return refuse("Bad Request: invalid language code specified");
    }
    let Some(scope) = params.structure("scope")? else { return Ok(("default".to_owned(), language)) };
    let number = |name: &str| match scope.get(name) {
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_i64(),
        None => None,
    };
    let kind = scope.get("type").and_then(Value::as_str).unwrap_or("");
    let key = match (kind, number("chat_id"), number("user_id")) {
        ("default" | "all_private_chats" | "all_group_chats" | "all_chat_administrators", _, _) => {
            kind.to_owned()
        }
        ("chat" | "chat_administrators", Some(chat), _) => format!("{kind}:{chat}"),
        ("chat_member", Some(chat), Some(user)) => format!("{kind}:{chat}:{user}"),
        _ => return refuse("Bad Request: can't parse BotCommandScope"),
    };
    Ok((key, language))
}
