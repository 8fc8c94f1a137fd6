//! `telegram-webhook-set`, `telegram-webhook-delete`, and what the configuration makes of a webhook.
//!
//! Only these two commands change where Telegram posts to; `serve` never does. The secret goes to Telegram and into the
//! listener, and is shown nowhere; nor is the address, in which some people put another one.

use serde_json::json;
use thought_telegram::client::{BotClient, SetWebhook};
use thought_telegram::ingress::{Off, Reception, WebhookSecret};

use crate::channel::{self, call_failure};
use crate::config::{Ingress, Telegram, Webhook};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::print::Printer;
use crate::secrets::{self, Secret};

/// `telegram-webhook-set`.
///
/// # Errors
/// [`Failure`]: another ingress, no webhook or no secret configured (3); Telegram refuses (3) or cannot be reached (8).
pub async fn set(home: &Home, printer: Printer) -> Result<(), Failure> {
    let telegram = channel::configured(home)?;
    if telegram.ingress != Ingress::Webhook {
        let message = format!(
            "telegram.ingress is {}: a webhook would leave it without updates",
            telegram.ingress.as_str()
        );
        return Err(
            Failure::refused("not-webhook", message).hint("set ingress = \"webhook\" in [telegram] first")
        );
    }
    let webhook = table(telegram)?;
    let secret = secret(home, webhook)?.ok_or_else(|| missing(webhook))?;
    let client = channel::client(home)?;
    let order = SetWebhook { url: &webhook.public_url, secret: secret.as_sensitive() };
    client.set_webhook(order).await.map_err(|error| call_failure(&error))?;
    printer.either(&json!({"webhook": "set"}), || {
        vec!["the webhook is set: Telegram posts to telegram.webhook.public_url".to_owned()]
    })
}

/// `telegram-webhook-delete`.
///
/// # Errors
/// [`Failure`]: no channel or token (3); Telegram refuses (3) or cannot be reached (8).
pub async fn delete(home: &Home, printer: Printer) -> Result<(), Failure> {
    let telegram = channel::configured(home)?;
    let client = channel::client(home)?;
    client.delete_webhook().await.map_err(|error| call_failure(&error))?;
    printer.either(&json!({"webhook": "deleted"}), || {
        vec!["the webhook is deleted: Telegram keeps updates until they are polled".to_owned()]
    })?;
    if telegram.ingress == Ingress::Webhook {
        printer.remark(
            "telegram.ingress is webhook: no message arrives until it is set again, or ingress is \"poll\"",
        );
    }
    Ok(())
}

/// How posts are received: a bound listener, or why there is none.
///
/// # Errors
/// [`Failure`]: a secret that Telegram would not take (3), an address that cannot be listened on (8).
pub fn reception(home: &Home, telegram: &Telegram) -> Result<Reception, Failure> {
    let Some(webhook) = &telegram.webhook else { return Ok(Reception::Off(Off::NotConfigured)) };
    let Some(secret) = secret(home, webhook)? else { return Ok(Reception::Off(Off::NoSecret)) };
    let bound = std::net::TcpListener::bind(webhook.listen);
    let listener = bound.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let listener = listener.map_err(|error| {
        let message = format!("listen on telegram.webhook.listen, {}: {}", webhook.listen, error.kind());
        Failure::new(Exit::Machine, "cannot-listen", message)
            .hint("is another process there? choose another port")
    })?;
    let (path, public_url) = (webhook.path.clone(), webhook.public_url.clone());
    Ok(Reception::On { listener, path, secret, public_url })
}

/// How the webhook stands, for `doctor`.
///
/// # Errors
/// [`Failure`] with what is wrong and what to do.
pub async fn standing(home: &Home, telegram: &Telegram, client: &BotClient) -> Result<String, Failure> {
    let webhook = table(telegram)?;
    if secret(home, webhook)?.is_none() {
        return Err(missing(webhook));
    }
    let info = client.get_webhook_info().await.map_err(|error| call_failure(&error))?;
    let hint = "thought telegram-webhook-set";
    if !info.is_set() {
        return Err(
            Failure::refused("webhook-not-set", "no webhook is set: Telegram posts nowhere").hint(hint)
        );
    }
    if info.url != webhook.public_url {
        let message = "the webhook that is set is not telegram.webhook.public_url";
        return Err(Failure::refused("webhook-elsewhere", message).hint(hint));
    }
    let pending = info.pending_update_count;
    if info.last_error_date.is_some() && pending > 0 {
        let message = format!("the webhook is set, but posts fail: {pending} updates wait at Telegram");
        return Err(Failure::refused("webhook-failing", message)
            .hint("is thought serve reachable under public_url, and was the webhook set with this secret?"));
    }
    Ok(format!("the webhook is set, {pending} updates wait"))
}

fn table(telegram: &Telegram) -> Result<&Webhook, Failure> {
    telegram.webhook.as_ref().ok_or_else(|| {
        Failure::refused("webhook-not-configured", "there is no [telegram.webhook]")
            .hint("add it with listen, path, public_url, and secret_env or secret_file")
    })
}

fn secret(home: &Home, webhook: &Webhook) -> Result<Option<WebhookSecret>, Failure> {
    match secrets::webhook_secret(home, webhook)? {
        Secret::Found(secret) => match WebhookSecret::new(secret) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) => Err(Failure::refused("webhook-secret", error.to_string())),
        },
        Secret::Missing(_) | Secret::NotNamed => Ok(None),
    }
}

fn missing(webhook: &Webhook) -> Failure {
    let place = match (&webhook.secret_env, &webhook.secret_file) {
        (Some(variable), _) => format!("{variable} is not set"),
        (None, Some(file)) => format!("the file {} is not there, or is empty", file.display()),
        (None, None) => "neither secret_env nor secret_file is set in [telegram.webhook]".to_owned(),
    };
    Failure::refused("webhook-secret-missing", format!("the webhook has no secret: {place}"))
        .hint("without one anybody could post updates; openssl rand -hex 32 makes one")
}
