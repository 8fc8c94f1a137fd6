//! The second chapter: the person looks at the suggestion and accepts it, the memory gets a new version, the chat hears of
//! it, and the next turn knows it.
//!
//! The word goes the way of `proposal-decision`: the same desk, the same projector.

use serde_json::{Value, json};
use thought_authority::decide::Submission;
use thought_authority::project::Status;
use thought_contract::change::changed;
use thought_contract::frontmatter;
use thought_contract::payload::{
    DeliveryKind, DeliveryTelegram, Disposition, MemoryChangeProposed, MemoryMaterialized, Surface,
};
use thought_contract::review::{Review, Standing, Subject, visible};
use thought_protocol::{EventId, Sensitive, Sha256Hex};
use thought_runtime::context::rebuild;
use thought_store::row::VersionRow;

use super::show::not_there;
use super::turn::{Turn, delivered, until};
use super::{OPERATOR, Stage};
use crate::command::decisions::{carry_out, project_failure};
use crate::command::resolve::short;
use crate::exit::{Exit, Failure, chain};
use crate::home::{read_below, uid};
use crate::word::token;

/// What the person asks once the memory holds the answer.
const ASKED: &str = "Where do I live?";

/// The suggestion with the version that it is bound to.
struct Suggested {
    payload: MemoryChangeProposed,
    base: Sensitive<String>,
    sha256: Sha256Hex,
}

/// Plays it; the receipt of the written change.
///
/// # Errors
/// [`Failure`] when something that would be told is not there.
pub(super) async fn chapter(stage: &Stage<'_>, proposal: &EventId) -> Result<EventId, Failure> {
    let suggested = look(stage, proposal).await?;
    let receipt = accept(stage, proposal, &suggested).await?;
    let version = written(stage, &suggested, &receipt).await?;
    heard(stage, &receipt).await?;
    let (turn, answer) = stage.say(ASKED).await?;
    known(stage, &turn, &version, &answer).await?;
    Ok(receipt)
}

/// What a reviewer sees: the diff against the document.
async fn look(stage: &Stage<'_>, proposal: &EventId) -> Result<Suggested, Failure> {
    let event =
        stage.reader.event(proposal.clone()).await?.ok_or_else(|| not_there("the proposal's event"))?;
    let payload: MemoryChangeProposed = event.payload().map_err(|error| Failure::internal(&error))?;
    let base = stage.reader.version(payload.target.version_id.clone()).await?;
    let base = base.ok_or_else(|| not_there("the version that the suggestion is bound to"))?;
    let base = text(&base)?;
    let review = Review::of(Subject::MemoryChange(&payload, &base), Standing::Current)
        .map_err(|error| Failure::internal(&error))?;
    let diff = review.diff.expose();
    stage.show.step("diff", &json!({"diff": diff}), || {
        let lines = visible(diff).lines().map(|line| format!("            {line}")).collect::<Vec<_>>();
        format!("what it would change, if a person accepted it\n{}", lines.join("\n"))
    })?;
    Ok(Suggested { payload, base, sha256: review.text_sha256 })
}

/// The person's word, and what follows from it; the id of the receipt.
async fn accept(stage: &Stage<'_>, proposal: &EventId, suggested: &Suggested) -> Result<EventId, Failure> {
    let submission = Submission {
        disposition: Disposition::Accept,
        replacement: None,
        submission_id: token()?,
        actor: None,
        expect_sha256: Some(suggested.sha256.clone()),
        expect_base: Some(suggested.payload.target.version_id.clone()),
        surface: Surface::Cli,
        uid: uid(),
    };
    let (recorded, outcome) = carry_out(&stage.ready.word(), proposal, &submission).await?;
    let decision = stage.reader.event(recorded.decision).await?;
    let decision = decision.ok_or_else(|| not_there("the decision's event"))?;
    stage.show.event("decide", &decision, format!("accepted by {OPERATOR}"))?;
    let outcome = outcome.map_err(project_failure)?;
    match (outcome.status, outcome.evidence) {
        (Status::Materialized, Some(receipt)) => Ok(receipt),
        (status, _) => {
            let reason = status.reason().unwrap_or("no reason");
            Err(not_there(&format!("a materialized change: it is {} ({reason})", status.as_str())))
        }
    }
}

/// The new version: what the suggestion makes of its base, in the store and on the disk, and named by the receipt.
async fn written(stage: &Stage<'_>, suggested: &Suggested, receipt: &EventId) -> Result<VersionRow, Failure> {
    let event = stage.reader.event(receipt.clone()).await?.ok_or_else(|| not_there("the receipt's event"))?;
    let told: MemoryMaterialized = event.payload().map_err(|error| Failure::internal(&error))?;
    let version = stage.reader.version(told.version_id.clone()).await?;
    let version = version.ok_or_else(|| not_there("the new version"))?;
    let payload = &suggested.payload;
    let expected = changed(suggested.base.expose(), payload.operation, &payload.proposed_text);
    let document = stage.reader.document(told.document_id.clone()).await?;
    if text(&version)?.expose() != &expected
        || document.is_none_or(|row| row.version != version.version)
        || told.base_version_id != payload.target.version_id
        || stage.reader.event(told.file_event.clone()).await?.is_none()
    {
        return Err(not_there("the accepted change as the document's new version"));
    }
    let home = stage.ready.home();
    let file = home.config.context.root.join(&version.path);
    if read_below(&home.path, &file, expected.len())? != expected.as_bytes() {
        return Err(not_there("the file with the bytes of its version"));
    }
    let value = json!({
        "path": version.path, "version": version.version, "bytes": version.byte_count, "receipt": receipt,
        "fileEvent": told.file_event,
    });
    stage.show.step("written", &value, || {
        let (version_id, receipt) = (short(version.version.as_str()), short(receipt.as_str()));
        format!("{}, version {version_id}, {} bytes, receipt {receipt}", version.path, version.byte_count)
    })?;
    Ok(version)
}

/// The one notice in the chat.
async fn heard(stage: &Stage<'_>, receipt: &EventId) -> Result<(), Failure> {
    let look = async || delivered(&stage.reader, receipt).await;
    let event = until(&stage.reader, "the notice of the changed memory", look).await?;
    let delivery: DeliveryTelegram = event.payload().map_err(|error| Failure::internal(&error))?;
    let said = stage.servers.bot.sent().pop().map(|message| message.text).unwrap_or_default();
    if delivery.kind != DeliveryKind::MemoryUpdated || said != "Memory updated." {
        return Err(not_there("the fixed notice of the changed memory"));
    }
    stage.show.event("notice", &event, said)
}

/// The next turn: the new version was in its context, and the answer comes from it.
async fn known(stage: &Stage<'_>, turn: &Turn, version: &VersionRow, answer: &str) -> Result<(), Failure> {
    let images = stage.ready.images();
    let (snapshot, _equal) = rebuild(&stage.reader, &*images, &turn.run.id)
        .await
        .map_err(|error| Failure::new(Exit::Internal, "snapshot", chain(&error)))?;
    let is_named = snapshot.documents.iter().any(|document| document.version_id == version.version);
    let content = text(version)?;
    let front = frontmatter::read(content.expose().as_bytes()).map_err(|error| Failure::internal(&error))?;
    let body = content.expose().split_at(front.body_offset).1.trim();
    let sent = stage.servers.model.requests().pop().map(|request| system_text(&request.json["system"]));
    if !is_named || !sent.is_some_and(|system| system.contains(body)) {
        return Err(not_there("the new version in the context of the next turn"));
    }
    if answer != "In Lisbon." {
        return Err(not_there("an answer from the new version"));
    }
    let value = json!({"run": turn.run.id, "version": version.version});
    stage.show.step("known", &value, || {
        format!("the new version {} was in its context", short(version.version.as_str()))
    })
}

/// A version's text.
fn text(version: &VersionRow) -> Result<Sensitive<String>, Failure> {
    match std::str::from_utf8(version.content.expose()) {
        Ok(text) => Ok(Sensitive::new(text.to_owned())),
        Err(_content_dark) => Err(not_there("a version that is text")),
    }
}

/// The system text of a request: one string, or its parts.
fn system_text(system: &Value) -> String {
    match system {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
