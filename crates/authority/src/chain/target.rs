//! What a correction is bound to: one delivered answer of the same chat to the same person, with its run and receipt.

use thought_contract::declaration::AgentId;
use thought_contract::draft;
use thought_contract::event::{Actor, SourceName, StoredEvent};
use thought_contract::payload::{self as p, CorrectionTarget, DeliveryKind, OutputContract};
use thought_contract::run::RunState;
use thought_contract::snapshot::evidence::completed_event_id;
use thought_store::handle::Reader;
use thought_store::row::{RunFilter, RunRow};

use super::agent::message;
use super::seal::{payload, same};
use super::{Link, Proof, evidence, hold, refused};

/// Completed runs on one message that are looked at: more than one of an admitted agent is a refusal.
const RUNS_MAX: u32 = 16;
const LINK: Link = Link::CorrectionTarget;

/// From where a target is aimed at.
pub(crate) struct Aim<'a> {
    /// The channel.
    pub(crate) source: &'a SourceName,
    /// The chat.
    pub(crate) chat_id: i64,
    /// Its thread.
    pub(crate) thread_id: Option<i64>,
    /// Who must have been answered; a person of the chat corrects what was said to any.
    pub(crate) sender: Option<&'a Actor>,
    /// The declarations whose answers count; none: that of the target's run.
    pub(crate) agents: Option<&'a [AgentId]>,
}

/// Verifies a target from where it is aimed at.
pub(crate) async fn verify(reader: &Reader, target: &CorrectionTarget, aim: &Aim<'_>) -> Proof<()> {
    let root = evidence(reader, &target.source_root, LINK).await?;
    let asked = message(&root, LINK)?;
    let chat = asked.chat_id == aim.chat_id && asked.thread_id == aim.thread_id;
    hold(chat && root.envelope.source == *aim.source, LINK, "other-chat")?;
    hold(aim.sender.is_none_or(|sender| root.envelope.actor == *sender), LINK, "other-sender")?;
    let row = reader.run(target.run.clone()).await?.ok_or(refused(LINK, "run-missing"))?;
    hold(row.state == RunState::Completed && row.trigger == target.source_root, LINK, "run")?;
    hold(row.output.as_ref() == Some(&target.output), LINK, "output")?;
    sole(reader, target, &row, aim).await?;
    let output = evidence(reader, &target.output, LINK).await?;
    let said: p::MessageObservation = payload(&output, LINK)?;
    same(&output, draft::observation(&root, &said, output.envelope.occurred_at), LINK)?;
    hold(said.run == target.run && said.agent.id == row.declaration, LINK, "output")?;
    let contract = said.contract == target.contract && target.contract == OutputContract::ConversationText;
    hold(contract, LINK, "contract")?;
    completed(reader, target, (&root, &row.declaration)).await?;
    receipt(reader, target, (&root, &output)).await
}

/// Exactly one completed run of an admitted agent.
async fn sole(reader: &Reader, target: &CorrectionTarget, row: &RunRow, aim: &Aim<'_>) -> Proof<()> {
    let filter = RunFilter {
        trigger: Some(target.source_root.clone()),
        states: vec![RunState::Completed],
        limit: RUNS_MAX,
        ..RunFilter::default()
    };
    let admitted = |agent: &str| match aim.agents {
        Some(known) => known.iter().any(|known| known.as_str() == agent),
        None => agent == row.declaration,
    };
    let runs = reader.runs(filter).await?;
    let mut of_admitted = runs.iter().filter(|run| admitted(&run.declaration));
    let sole = of_admitted.next().is_some_and(|run| run.id == target.run) && of_admitted.next().is_none();
    hold(sole, LINK, "not-the-one-run")
}

async fn completed(
    reader: &Reader,
    target: &CorrectionTarget,
    (root, declaration): (&StoredEvent, &str),
) -> Proof<()> {
    let event = evidence(reader, &completed_event_id(&target.run), LINK).await?;
    let told: p::RunCompleted = payload(&event, LINK)?;
    same(&event, draft::run_completed(declaration, root, &told, event.envelope.occurred_at), LINK)?;
    hold(told.run == target.run && told.output == target.output, LINK, "completion")
}

async fn receipt(
    reader: &Reader,
    target: &CorrectionTarget,
    (root, output): (&StoredEvent, &StoredEvent),
) -> Proof<()> {
    let event = evidence(reader, &target.delivery_receipt, LINK).await?;
    let told: p::DeliveryTelegram = payload(&event, LINK)?;
    let telegram: &SourceName = &root.envelope.source;
    same(&event, draft::delivery(telegram, output, &told, event.envelope.occurred_at), LINK)?;
    let asked: p::TelegramMessage = payload(root, LINK)?;
    let same_place = told.chat_id == asked.chat_id && told.thread_id == asked.thread_id;
    let delivered = told.kind == DeliveryKind::Reply && !told.chunks.is_empty();
    let of_it = told.run.as_ref() == Some(&target.run) && told.output.as_ref() == Some(&target.output);
    hold(same_place && delivered && of_it, LINK, "receipt")
}
