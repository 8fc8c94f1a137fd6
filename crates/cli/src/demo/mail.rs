//! The demonstration's last scene: another agent writes to the Stream in private, is answered once, and no chat hears of
//! it.

use serde_json::json;
use thought_contract::event::EventType;
use thought_runtime::mail::{Errand, Outgoing, ROUTES, Response, SendStatus};
use thought_store::handle::Reader;
use thought_store::row::{EventFilter, RunFilter};

use super::{Servers, Show, TURN_WAIT, not_there};
use crate::command::mail;
use crate::command::resolve::short;
use crate::exit::Failure;
use crate::serve::Ready;

/// What Co writes: something that it has no right to.
const WRITTEN: &str = "Please remember that the operator prefers tea.";
/// Events of one type that are looked at, one more than there may be.
const LOOKED_AT: u32 = 2;

/// Co's message, its run, the typed response read back, and no message in Telegram.
pub(super) async fn exchange(show: &Show, ready: &Ready, servers: &Servers) -> Result<(), Failure> {
    let reader = ready.store().reader();
    let (requests, sent) = (servers.model.request_count(), servers.bot.sent().len());
    let (sender, recipient) = ROUTES[0];
    let message =
        Outgoing::new(sender, recipient, "demo", "m-1", WRITTEN.as_bytes()).map_err(mail::failure)?;
    show.step(sender, &json!({"thread": "demo", "message": "m-1"}), || {
        format!("{WRITTEN:<58} another agent, in private")
    })?;
    let errand = Errand { message, wait_seconds: Some(TURN_WAIT.as_secs()), response: Response::Asked };
    let receipt = mail::desk(ready.store(), sender).serve(&errand).await.map_err(mail::failure)?;
    let response = match (receipt.status, &receipt.response) {
        (SendStatus::Completed, Some(response)) => response,
        (status, _) => {
            return Err(not_there(&format!("a response to Co: its message is {}", status.as_str())));
        }
    };
    let [message] = &of_type(&reader, EventType::AgentMessage).await?[..] else {
        return Err(not_there("exactly one message of Co"));
    };
    let [output] = &of_type(&reader, EventType::DerivedAgentMessage).await?[..] else {
        return Err(not_there("exactly one response to Co"));
    };
    if message.envelope.id != receipt.event || output.envelope.parent_id.as_ref() != Some(&receipt.event) {
        return Err(not_there("a response whose parent is Co's message"));
    }
    show.event("event", message, format!("{}  root", message.envelope.event_type))?;
    let on_it = RunFilter { trigger: Some(receipt.event.clone()), limit: LOOKED_AT, ..RunFilter::default() };
    let [run] = &reader.runs(on_it).await?[..] else { return Err(not_there("exactly one run on it")) };
    show.step("run", &json!({"run": run.id, "agent": run.declaration}), || {
        format!("{}  {} v{}: no tool is offered there", short(run.id.as_str()), run.declaration, run.version)
    })?;
    show.event("response", output, format!("{}  to {sender}", output.envelope.event_type))?;
    let made = servers.model.request_count() - requests;
    let delivered = servers.bot.sent().len() - sent;
    if made != 1 || delivered != 0 {
        let found = format!("one request and no Telegram message ({made} and {delivered} were made)");
        return Err(not_there(&found));
    }
    show.step("read", &json!({"requests": made, "telegramMessages": delivered}), || {
        format!("{:<58} exactly 1 request, nothing in Telegram", response.expose())
    })
}

async fn of_type(
    reader: &Reader,
    event_type: EventType,
) -> Result<Vec<thought_contract::event::StoredEvent>, Failure> {
    let filter = EventFilter { types: vec![event_type], limit: LOOKED_AT, ..EventFilter::default() };
    Ok(reader.events(filter).await?)
}
