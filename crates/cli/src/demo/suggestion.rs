//! The first chapter: a person asks for something to be remembered, the model suggests it, and nothing has changed; the
//! next turn shows the model what became of its call.

use serde_json::json;
use thought_protocol::EventId;
use thought_protocol::proposal::{ProposalKind, acknowledgment};
use thought_store::row::{Base, ProposalFilter, ProposalState};

use super::Stage;
use super::show::not_there;
use super::turn::Turn;
use crate::command::resolve::short;
use crate::exit::Failure;

/// What the person asks for.
const ASKED: &str = "Please remember that I moved to Lisbon.";
/// What the person says next.
const NEXT: &str = "Do you still see what I said before?";
/// What stands in history where the model would read how its call went.
const CAPTURED: &str = "Captured as a durable proposal. It is inert: approval and application are pending.";

/// Plays it; the suggestion that waits at its end.
///
/// # Errors
/// [`Failure`] when something that would be told is not there.
pub(super) async fn chapter(stage: &Stage<'_>) -> Result<EventId, Failure> {
    let (turn, answer) = stage.say(ASKED).await?;
    let proposal = waiting(stage, &turn, &answer).await?;
    stage.say(NEXT).await?;
    remembered(stage)?;
    Ok(proposal)
}

/// The suggestion that the first turn made: bound, waiting, and without any effect.
async fn waiting(stage: &Stage<'_>, turn: &Turn, answer: &str) -> Result<EventId, Failure> {
    let undecided = ProposalFilter {
        states: vec![ProposalState::Undecided],
        kinds: vec![ProposalKind::MemoryChange],
        limit: 2,
        ..ProposalFilter::default()
    };
    let found = stage.reader.proposals(undecided).await?;
    let [row] = found.as_slice() else { return Err(not_there("exactly one waiting memory suggestion")) };
    if row.run.as_ref() != Some(&turn.run.id) || row.base != Base::Current {
        return Err(not_there("a suggestion of this run on the memory as it stands"));
    }
    if acknowledgment(&[ProposalKind::MemoryChange]) != Some(answer) {
        return Err(not_there("the fixed sentence as the delivered answer"));
    }
    let value = json!({"proposal": row.proposal, "kind": row.kind, "state": row.state.as_str()});
    stage.show.step("proposal", &value, || {
        let id = short(row.proposal.as_str());
        format!("{id}  {}, {}: nothing in memory.md has changed yet", row.kind, row.state.as_str())
    })?;
    Ok(row.proposal.clone())
}

/// What the second request told the model of the first turn: its call, how that went, and what was delivered.
fn remembered(stage: &Stage<'_>) -> Result<(), Failure> {
    let requests = stage.servers.model.requests();
    let messages = requests.last().and_then(|request| request.json["messages"].as_array().cloned());
    let messages = messages.ok_or_else(|| not_there("the second request"))?;
    let parts = |index: usize| {
        messages.get(index).and_then(|message| message["content"].as_array()?.first().cloned())
    };
    let (call, result, said) = (parts(1), parts(2), parts(3));
    let call =
        call.filter(|part| part["type"] == "tool_use").ok_or_else(|| not_there("the call in history"))?;
    let is_answered = result.is_some_and(|part| {
        let told = part["content"].as_str().or_else(|| part["content"][0]["text"].as_str());
        part["tool_use_id"] == call["id"] && told == Some(CAPTURED)
    });
    let is_said = messages.get(3).is_some_and(|message| message["role"] == "assistant")
        && (said.is_some_and(|part| part["text"].is_string())
            || messages.get(3).is_some_and(|message| message["content"].is_string()));
    if !is_answered || !is_said {
        return Err(not_there("call, result and sentence in the second request's history"));
    }
    let value = json!({"call": call["name"], "messages": messages.len()});
    stage.show.step("history", &value, || {
        let name = call["name"].as_str().unwrap_or_default();
        format!("the model was shown its call {name}, that it is inert, and the sentence")
    })
}
