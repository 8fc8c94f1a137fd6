//! The methods of the Bot API, and the way of a request to its method.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::failures::{Failure, error};
use super::params::Params;
use super::state::State;
use super::{Call, Refusal, Shared, menu, refuse, send, webhook};
use crate::encoding::{Plus, percent_decode};
use crate::http::{Handler, Outcome, Request, Response};
use crate::limits::{FILE_BYTES_MAX, POLL_LIMIT_MAX, POLL_SECONDS_MAX};

/// Every method that is served, as documented; Telegram itself does not look at upper and lower case.
const METHODS: [&str; 11] = [
    "getMe",
    "getUpdates",
    "setWebhook",
    "deleteWebhook",
    "getWebhookInfo",
    "sendMessage",
    "sendChatAction",
    "getFile",
    "setMyCommands",
    "getMyCommands",
    "deleteMyCommands",
];

impl Handler for Shared {
    async fn handle(&self, request: Request) -> Outcome {
        let Some(path) = percent_decode(&request.path, Plus::IsPlus) else {
            return Outcome::Respond(error(404, "Not Found", None));
        };
        let (is_file, rest) = match (path.strip_prefix("/file/bot"), path.strip_prefix("/bot")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Outcome::Respond(error(404, "Not Found", None)),
        };
        let (token, target) = rest.split_once('/').unwrap_or((rest, ""));
        if token != self.token {
            self.state.change(|state| state.unauthorized += 1);
            return Outcome::Respond(error(401, "Unauthorized", None));
        }
        if is_file { self.file(&request, target).await } else { self.call(&request, target).await }
    }
}

impl Shared {
    async fn call(&self, request: &Request, name: &str) -> Outcome {
        let Some(method) = METHODS.iter().find(|known| known.eq_ignore_ascii_case(name)) else {
            return Outcome::Respond(error(404, "Not Found", None));
        };
        if !["GET", "POST"].contains(&request.method.as_str()) {
            return Outcome::Respond(error(405, "Method Not Allowed", None));
        }
        let params = match Params::read(request) {
            Ok(params) => params,
            Err(description) => return Outcome::Respond(error(400, &description, None)),
        };
        let failure = self.record(method, &params);
        if let Some(outcome) = failure.as_ref().and_then(Failure::instead) {
            return outcome;
        }
        if let Some(Failure::Delay(pause)) = failure {
            tokio::time::sleep(pause).await;
        }
        let result = match *method {
            "getUpdates" => self.get_updates(&params).await,
            method => self.state.change(|state| carry_out(state, method, &params)),
        };
        let was_answered = !matches!(
            failure,
            Some(
                Failure::DropAfter
                    | Failure::HangAfter
                    | Failure::InvalidJson
                    | Failure::WithoutResult
                    | Failure::Truncated
            )
        );
        let response = match result {
            Ok(value) => {
                if *method == "sendMessage" && was_answered {
                    let id = value["message_id"].as_i64();
                    let chat = value["chat"]["id"].as_i64();
                    self.state.change(|state| mark_answered(state, chat, id));
                }
                Response::json(200, &json!({"ok": true, "result": value}))
            }
            Err(refusal) => error(refusal.code, &refusal.description, None),
        };
        match failure {
            Some(failure) => failure.afterwards(response),
            None => Outcome::Respond(response),
        }
    }

    /// Records a call and takes the failure that was scripted for it.
    fn record(&self, method: &str, params: &Params) -> Option<Failure> {
        self.state.change(|state| {
            state.calls.push(Call { method: method.to_owned(), params: Value::Object(params.0.clone()) });
            state.failures.get_mut(method)?.pop_front()
        })
    }

    async fn file(&self, request: &Request, path: &str) -> Outcome {
        if request.method != "GET" {
            return Outcome::Respond(error(405, "Method Not Allowed", None));
        }
        let failure = self.record("file", &Params(json_object(json!({"file_path": path}))));
        if let Some(outcome) = failure.as_ref().and_then(Failure::instead) {
            return outcome;
        }
        if let Some(Failure::Delay(pause)) = failure {
            tokio::time::sleep(pause).await;
        }
        let bytes = {
            let state = self.state.lock();
            let file = state.files.values().find(|file| file.open && file.path == path);
            file.map(|file| file.bytes.clone())
        };
        let response = match bytes {
            Some(bytes) => Response::of(200, "application/octet-stream", bytes),
            None => error(404, "Not Found", None),
        };
        match failure {
            Some(failure) => failure.afterwards(response),
            None => Outcome::Respond(response),
        }
    }

    /// Long polling. A later poll, or a webhook that is set, ends this one with 409.
    async fn get_updates(&self, params: &Params) -> Result<Value, Refusal> {
        let offset = params.integer("offset")?.unwrap_or(0);
        let limit = params.integer("limit")?.unwrap_or(POLL_LIMIT_MAX).clamp(1, POLL_LIMIT_MAX);
        let limit = usize::try_from(limit).unwrap_or(1);
        let seconds = params.integer("timeout")?.unwrap_or(0).clamp(0, POLL_SECONDS_MAX);
        let deadline = Instant::now() + Duration::from_secs(seconds.unsigned_abs());
        let mut changes = self.state.subscribe();
        let ticket = self.state.change(|state| {
            if state.webhook.is_some() {
                return Err(conflict(
                    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
                ));
            }
            webhook::remember_allowed(state, params)?;
            state.poll_ticket += 1;
            state.confirm(offset);
            Ok(state.poll_ticket)
        })?;
        loop {
            changes.mark_unchanged();
            {
                let mut state = self.state.lock();
                if state.webhook.is_some() {
                    return Err(conflict("terminated by setWebhook request"));
                }
                if state.poll_ticket != ticket {
                    return Err(conflict(
                        "terminated by other getUpdates request; make sure that only one bot instance is running",
                    ));
                }
                let batch = state.deliver(limit);
                if !batch.is_empty() || Instant::now() >= deadline {
                    return Ok(Value::Array(batch));
                }
            }
            if let Ok(Err(_)) = tokio::time::timeout_at(deadline, changes.changed()).await {
                return Ok(json!([]));
            }
        }
    }
}

fn json_object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => serde_json::Map::new(),
    }
}

fn conflict(why: &str) -> Refusal {
    Refusal { code: 409, description: format!("Conflict: {why}") }
}

fn mark_answered(state: &mut State, chat: Option<i64>, id: Option<i64>) {
    let sent =
        state.sent.iter_mut().rev().find(|sent| Some(sent.chat_id) == chat && Some(sent.message_id) == id);
    if let Some(sent) = sent {
        sent.was_answered = true;
    }
}

/// Every method but `getUpdates`.
fn carry_out(state: &mut State, method: &str, params: &Params) -> Result<Value, Refusal> {
    match method {
        "getMe" => {
            let mut bot = state.bot.clone();
            for (name, value) in [
                ("can_join_groups", true),
                ("can_read_all_group_messages", false),
                ("supports_inline_queries", false),
                ("can_connect_to_business", false),
                ("has_main_web_app", false),
            ] {
                bot[name] = json!(value);
            }
            Ok(bot)
        }
        "setWebhook" => webhook::set(state, params),
        "deleteWebhook" => webhook::delete(state, params),
        "getWebhookInfo" => Ok(webhook::info(state)),
        "sendMessage" => send::send_message(state, params),
        "sendChatAction" => send::send_chat_action(state, params),
        "setMyCommands" => menu::set(state, params),
        "getMyCommands" => menu::get(state, params),
        "deleteMyCommands" => menu::delete(state, params),
        "getFile" => get_file(state, params),
        _ => Err(Refusal { code: 404, description: "Not Found".to_owned() }),
    }
}

fn get_file(state: &mut State, params: &Params) -> Result<Value, Refusal> {
    let id = params.text("file_id").unwrap_or_default();
    let Some(file) = state.files.get_mut(&id) else {
        return refuse("Bad Request: wrong file_id or the file is temporarily unavailable");
    };
    if file.bytes.len() > FILE_BYTES_MAX {
        return refuse("Bad Request: file is too big");
    }
    file.open = true;
    Ok(json!({
        "file_id": id,
        "file_unique_id": file.unique_id,
        "file_size": file.bytes.len(),
        "file_path": file.path,
    }))
}
