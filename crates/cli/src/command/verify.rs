//! `verify`: is everything in this home what was written? Nothing is changed.
//!
//! The store audits itself; here every frozen context is rebuilt to the packet it was, every decided proposal's authority
//! is replayed, and the heads are held against ones that were printed before.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use thought_authority::chain::{self, ChainError, DecidedChain};
use thought_authority::materialize::{MaterializeError, is_as_decided};
use thought_contract::event::EventType;
use thought_contract::payload::TelegramMessage;
use thought_contract::review::visible;
use thought_protocol::Sha256Hex;
use thought_store::Images;
use thought_store::audit::Audit;
use thought_store::handle::Reader;
use thought_store::row::{EventFilter, ProposalFilter, ProposalState, RunFilter};

use crate::blobs::HomeBlobs;
use crate::exit::{Exit, Failure};
use crate::home;
use crate::print::Printer;

/// Rows asked of the store at a time.
const PAGE: u32 = 200;
/// Size of a file with heads, bytes.
const HEADS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Heads that were printed before: by `status --json`, in a backup's manifest, or beside an export.
#[derive(Debug, Deserialize)]
struct Printed {
    #[serde(alias = "heads")]
    sources: Vec<PrintedHead>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrintedHead {
    source: String,
    head: u64,
    head_sha256: Sha256Hex,
}

/// What a verification looked at.
#[derive(Debug, Default)]
pub struct Verified {
    /// What the store says of itself, and what was found beyond it.
    pub audit: Audit,
    /// Frozen contexts that were rebuilt.
    pub contexts: u64,
    /// Authority chains that were replayed.
    pub chains: u64,
    /// Blobs that messages name.
    pub blobs: BTreeSet<Sha256Hex>,
    /// Files among the blobs that no message names: what a cut left before its event, or what somebody put there.
    pub unnamed: Vec<String>,
}

/// `verify`.
///
/// # Errors
/// [`Failure`]: something is not what was written (3), the file of heads cannot be read (3, 5).
pub async fn run(
    reader: &Reader,
    blobs: &HomeBlobs,
    printer: Printer,
    against: Option<PathBuf>,
) -> Result<(), Failure> {
    let printed = against.as_deref().map(read_heads).transpose()?;
    let mut verified = verify(reader, blobs).await?;
    let is_named = |name: &String| name.parse().is_ok_and(|sha256| verified.blobs.contains(&sha256));
    let unnamed = blobs.names()?.into_iter().filter(|name| !is_named(name)).collect();
    verified.unnamed = unnamed;
    if let Some(printed) = printed {
        compare_heads(reader, &printed, &mut verified.audit).await?;
    }
    let value = json(&verified);
    printer.either(&value, || lines(printer, &verified))?;
    if verified.audit.is_whole() {
        return Ok(());
    }
    let count = verified.audit.findings.len() as u64 + verified.audit.more;
    let message = format!("verify the home: {count} things are not what was written");
    Err(Failure::refused("not-whole", message)
        .hint("keep this home as it is, and restore a backup into another folder"))
}

/// Looks at the store, every frozen context, and every chain.
///
/// # Errors
/// [`Failure`] when the store cannot be read at all.
pub async fn verify(reader: &Reader, images: &dyn Images) -> Result<Verified, Failure> {
    let mut verified = Verified { audit: reader.audit().await?, ..Verified::default() };
    // A store with torn rows is named once; what is built on it would only say the same again.
    if verified.audit.is_whole() {
        blobs(reader, images, &mut verified).await?;
        contexts(reader, images, &mut verified).await?;
        chains(reader, images, &mut verified).await?;
    }
    Ok(verified)
}

/// Every image that a message names is there, and is the bytes that its name says.
async fn blobs(reader: &Reader, images: &dyn Images, verified: &mut Verified) -> Result<(), Failure> {
    let mut filter =
        EventFilter { types: vec![EventType::TelegramMessage], limit: PAGE, ..EventFilter::default() };
    loop {
        let page = reader.events(filter.clone()).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.after_position = last.envelope.position;
        for event in &page {
            let message: TelegramMessage = event.payload().map_err(|error| Failure::internal(&error))?;
            for image in message.images {
                if !verified.blobs.insert(image.blob_sha256.clone()) {
                    continue;
                }
                match images.read(&image.blob_sha256).await {
                    Ok(bytes) if bytes.expose().len() as u64 == image.byte_count => {}
                    Ok(_) => verified.audit.found("blobs", image.blob_sha256.as_str(), "length"),
                    Err(error) => verified.audit.found("blobs", image.blob_sha256.as_str(), error.code),
                }
            }
        }
    }
}

async fn contexts(reader: &Reader, images: &dyn Images, verified: &mut Verified) -> Result<(), Failure> {
    let mut filter = RunFilter { limit: PAGE, ..RunFilter::default() };
    loop {
        let page = reader.runs(filter.clone()).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.after_ordinal = last.ordinal;
        for run in page.iter().filter(|run| run.snapshot.is_some()) {
            verified.contexts += 1;
            let rebuilt = thought_runtime::context::rebuild(reader, images, &run.id).await;
            if let Err(error) = rebuilt {
                tracing::info!(run = %run.id, error = %crate::exit::chain(&error), "context not rebuilt");
                verified.audit.found("snapshots", run.id.as_str(), "packet");
            }
        }
    }
}

async fn chains(reader: &Reader, images: &dyn Images, verified: &mut Verified) -> Result<(), Failure> {
    let states = ProposalState::ALL.into_iter().filter(|state| *state != ProposalState::Inert).collect();
    let mut filter = ProposalFilter { states, kinds: Vec::new(), after_position: 0, limit: PAGE };
    loop {
        let page = reader.proposals(filter.clone()).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.after_position = last.position;
        for row in page {
            verified.chains += 1;
            let outcome = match row.state {
                ProposalState::Undecided => {
                    chain::validate(reader, images, &row.proposal).await.map(|_| None)
                }
                _ => chain::validate_decision(reader, images, &row.proposal).await.map(Some),
            };
            match outcome {
                Ok(Some(DecidedChain::Memory(decided))) => match is_as_decided(reader, &decided).await {
                    Ok(true) => {}
                    Err(MaterializeError::Store(error)) => return Err(error.into()),
                    Ok(false) | Err(_) => {
                        verified.audit.found("proposals", row.proposal.as_str(), "receipt");
                    }
                },
                Ok(Some(DecidedChain::Correction(_)) | None) => {}
                Err(ChainError::Store(error)) => return Err(error.into()),
                Err(error) => {
                    tracing::info!(proposal = %row.proposal, %error, "chain not verified");
                    verified.audit.found("proposals", row.proposal.as_str(), "authority");
                }
            }
        }
    }
}

fn read_heads(path: &Path) -> Result<Printed, Failure> {
    let bytes = home::read_regular(path, HEADS_BYTES_MAX).map_err(|problem| problem.failure(path))?;
    serde_json::from_slice(&bytes).map_err(|_error| {
        let message = format!("{} holds no heads", path.display());
        Failure::refused("no-heads", message)
            .hint("give the output of thought status --json, or the manifest of a backup or export")
    })
}

/// A head that was printed is still in its chain, and nothing before it was taken away.
async fn compare_heads(reader: &Reader, printed: &Printed, audit: &mut Audit) -> Result<(), Failure> {
    for head in &printed.sources {
        if head.head == 0 {
            continue;
        }
        let source = thought_contract::event::SourceName::new(head.source.clone());
        let event = reader.source_events(source, head.head - 1, 1).await?.pop();
        let fault = match event {
            None => Some("tail-missing"),
            Some(event) if event.envelope.sequence != head.head => Some("tail-missing"),
            Some(event) if event.chain_sha256 != head.head_sha256 => Some("head-differs"),
            Some(_) => None,
        };
        if let Some(fault) = fault {
            audit.found("sources", head.source.clone(), fault);
        }
    }
    Ok(())
}

/// What was found, as `--json` prints it.
fn json(verified: &Verified) -> Value {
    let Verified { audit, contexts, chains, blobs, unnamed } = verified;
    let findings: Vec<Value> = audit
        .findings
        .iter()
        .map(|finding| json!({"table": finding.table, "row": finding.row, "fault": finding.fault}))
        .collect();
    json!({
        "whole": audit.is_whole(), "events": audit.events, "rules": audit.rules, "contexts": contexts,
        "chains": chains, "blobs": blobs.len(), "unnamedBlobs": unnamed, "sources": sources(audit), "findings": findings, "more": audit.more,
    })
}

/// Where every source stands, in the form that [`run`] takes heads in.
pub fn sources(audit: &Audit) -> Vec<Value> {
    let row = |row: &thought_store::row::SourceRow| json!({"source": row.source, "head": row.head, "headSha256": row.head_sha256});
    audit.sources.iter().map(row).collect()
}

fn lines(printer: Printer, verified: &Verified) -> Vec<String> {
    let Verified { audit, contexts, chains, blobs, unnamed } = verified;
    let mut lines: Vec<String> = audit
        .findings
        .iter()
        .map(|finding| {
            format!("{} {} {}: {}", printer.state("fail"), finding.table, finding.row, finding.fault)
        })
        .collect();
    if audit.more > 0 {
        lines.push(format!("      and {} more", audit.more));
    }
    lines.extend(unnamed.iter().map(|name| {
        format!(
            "{} blobs {}: no message names it; it is in nobody's way",
            printer.state("warn"),
            visible(name)
        )
    }));
    let looked = format!(
        "{} events, {} rules, {} blobs, {contexts} contexts rebuilt, {chains} authority chains replayed",
        audit.events,
        audit.rules,
        blobs.len()
    );
    lines.push(if audit.is_whole() {
        format!("{} everything is what was written: {looked}", printer.state("ok"))
    } else {
        looked
    });
    let heads =
        audit.sources.iter().map(|row| format!("head  {} {} {}", row.source, row.head, row.head_sha256));
    lines.extend(heads);
    lines
}

/// The refusal of a store that is not whole, for those who verify on the way.
///
/// # Errors
/// [`Failure`] (3) when something was found.
pub fn must_be_whole(verified: &Verified, what: &str) -> Result<(), Failure> {
    match verified.audit.findings.first() {
        None => Ok(()),
        Some(first) => {
            let message = format!(
                "verify {what}: {} {} is not what was written ({})",
                first.table, first.row, first.fault
            );
            Err(Failure::new(Exit::Refused, "not-whole", message)
                .hint("thought verify names everything that was found"))
        }
    }
}
