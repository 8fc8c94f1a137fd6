//! The webhook: its settings, and the delivery of updates by POST, one at a time and in order.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::params::Params;
use super::state::{State, Webhook};
use super::{Refusal, Shared, WebhookPost, refuse};
use crate::client::Target;
use crate::limits::{SECRET_CHARS_MAX, WEBHOOK_BACKOFF_MS};

pub(crate) fn set(state: &mut State, params: &Params) -> Result<Value, Refusal> {
    let url = params.text("url").unwrap_or_default();
    if url.is_empty() {
        return delete(state, params);
    }
    if Target::parse(&url).is_none() && !(url.starts_with("https://") && url.len() > "https://".len()) {
        return refuse("Bad Request: bad webhook: An HTTPS URL must be provided for webhook");
    }
    let secret = params.text("secret_token").filter(|secret| !secret.is_empty());
    if let Some(secret) = &secret {
        if secret.len() > SECRET_CHARS_MAX {
            return refuse("Bad Request: secret token is too long");
        }
        if !secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            return refuse("Bad Request: secret token contains unallowed characters");
        }
    }
    let max_connections = params.integer("max_connections")?.unwrap_or(40);
    if !(1..=100).contains(&max_connections) {
        return refuse("Bad Request: max_connections must be between 1 and 100");
    }
    remember_allowed(state, params)?;
    if params.is_true("drop_pending_updates") {
        state.queue.clear();
    }
    state.webhook_version += 1;
    state.webhook = Some(Webhook { url, secret, max_connections, last_error: None });
    Ok(json!(true))
}

pub(crate) fn delete(state: &mut State, params: &Params) -> Result<Value, Refusal> {
    if params.is_true("drop_pending_updates") {
        state.queue.clear();
    }
    state.webhook_version += 1;
    state.webhook = None;
    Ok(json!(true))
}

pub(crate) fn info(state: &State) -> Value {
    let mut info = json!({
        "url": state.webhook.as_ref().map_or("", |webhook| &webhook.url),
        "has_custom_certificate": false,
        "pending_update_count": state.queue.len(),
    });
    if let Some(webhook) = &state.webhook {
        info["max_connections"] = json!(webhook.max_connections);
        info["ip_address"] = json!("127.0.0.1");
        if let Some((date, message)) = &webhook.last_error {
            info["last_error_date"] = json!(date);
            info["last_error_message"] = json!(message);
        }
    }
    if let Some(kinds) = state.allowed_updates.as_ref().filter(|kinds| !kinds.is_empty()) {
        info["allowed_updates"] = json!(kinds);
    }
    info
}

/// Remembers `allowed_updates` where given; where not, the earlier setting stays.
pub(crate) fn remember_allowed(state: &mut State, params: &Params) -> Result<(), Refusal> {
    let Some(kinds) = params.list("allowed_updates")? else { return Ok(()) };
    let mut allowed = Vec::new();
    for kind in kinds {
        match kind {
            Value::String(kind) => allowed.push(kind),
            _ => return refuse("Bad Request: can't parse allowed updates list"),
        }
    }
    state.allowed_updates = Some(allowed);
    Ok(())
}

/// Delivers the front of the queue as long as a webhook is set; never ends by itself.
pub(crate) async fn deliver(shared: Arc<Shared>, timeout: Duration) {
    let mut changes = shared.state.subscribe();
    let mut pause_ms = WEBHOOK_BACKOFF_MS.0;
    loop {
        changes.mark_unchanged();
        let next = {
            let state = shared.state.lock();
            state.webhook.as_ref().zip(state.queue.front()).map(|(webhook, queued)| {
                (
                    state.webhook_version,
                    webhook.url.clone(),
                    webhook.secret.clone(),
                    queued.id,
                    queued.update.to_string(),
                )
            })
        };
        let Some((version, url, secret, update_id, body)) = next else {
            if changes.changed().await.is_err() {
                return;
            }
            continue;
        };
        let secret_header = secret.as_deref().map(|secret| ("X-Telegram-Bot-Api-Secret-Token", secret));
        let headers: Vec<(&str, &str)> = secret_header.into_iter().collect();
        let result = match Target::parse(&url) {
            Some(target) => target.post(&headers, body.as_bytes(), timeout).await,
            None => Err("Only loopback addresses are reached from here"),
        };
        if shared.state.change(|state| settle(state, version, update_id, result)) {
            pause_ms = WEBHOOK_BACKOFF_MS.0;
        } else {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            pause_ms = (pause_ms * 2).min(WEBHOOK_BACKOFF_MS.1);
        }
    }
}

/// Records one post. True when there is no reason to pause.
fn settle(state: &mut State, version: u64, update_id: i64, result: Result<u16, &'static str>) -> bool {
    state.webhook_posts.push(WebhookPost { update_id, status: result.ok() });
    if state.webhook_version != version {
        return true;
    }
    let message = match result {
        Ok(200..=299) => {
            if state.queue.front().is_some_and(|queued| queued.id == update_id) {
                state.queue.pop_front();
            }
            return true;
        }
        Ok(status) => format!("Wrong response from the webhook: {status}"),
        Err(message) => message.to_owned(),
    };
    let date = state.tick();
    if let Some(webhook) = &mut state.webhook {
        webhook.last_error = Some((date, message));
    }
    false
}
