//! `proposal-decision`, `proposal-project`, `proposal-repropose`, `proposal-revert`: a person's word, for scripts.
//!
//! Ids and states are printed, and never content: what stands in a suggestion is read with `proposal-show`. What may be
//! decided, and what follows, is the authority room's to say; here it becomes lines and an exit code.

use std::path::Path;

use serde_json::json;
use thought_authority::chain::{ChainError, Link, replacement_bytes_max};
use thought_authority::decide::{DecideError, Recorded, Submission};
use thought_authority::judge::JudgeError;
use thought_authority::materialize::{CrashPoints, MaterializeError, Tried, Waits};
use thought_authority::operator::{ProposeError, Proposed};
use thought_authority::project::{Outcome, ProjectError, Scope, Status};
use thought_authority::reason::{Finality, Reason};
use thought_authority::replacement::{ReplacementFileError, read_replacement};
use thought_contract::payload::{Disposition, Surface};
use thought_protocol::{EventId, Sensitive, Sha256Hex, VersionId};
use thought_store::handle::Reader;
use thought_store::row::Novelty;
use thought_store::row::ProposalState;

use super::resolve::{resolve, short};
use crate::args::{ProposalDecision, ProposeAgain};
use crate::crash::EnvironmentPoints;
use crate::exit::{Exit, Failure, chain};
use crate::home::uid;
use crate::print::Printer;
use crate::word::{LOCK_HINT, Word, scan_failure, token};

/// The moment between a decision and what follows from it.
pub const DECIDED_POINT: &str = "decision.after";

/// `proposal-decision`.
///
/// # Errors
/// [`Failure`]: no such proposal (5); refused (3) or in conflict (4) with nothing appended; decided, and left waiting by
/// a held (4) or malformed (3) lock, or failed (6).
pub async fn decide(
    (reader, word): (&Reader, &Word),
    printer: Printer,
    options: &ProposalDecision,
) -> Result<(), Failure> {
    let proposal = known(reader, &options.proposal).await?;
    let submission = submission(reader, word, &proposal, options).await?;
    let (recorded, outcome) = carry_out(word, &proposal, &submission).await?;
    match outcome {
        Ok(outcome) => {
            tell(printer, &outcome)?;
            ending(&outcome).map_or(Ok(()), Err)
        }
        Err(error) => {
            // The decision stands whatever became of the rest, and whoever asked must hear of it.
            print(printer, &Told::undone(&recorded))?;
            Err(project_failure(error))
        }
    }
}

/// Decides, and brings about what follows: the decision that stands, and what its projection came to. A word that was
/// said before, and failed, is not carried out anew: what was recorded is told again.
///
/// # Errors
/// [`Failure`] when nothing was decided.
pub async fn carry_out(
    word: &Word,
    proposal: &EventId,
    submission: &Submission,
) -> Result<(Recorded, Result<Outcome, ProjectError>), Failure> {
    let recorded = word.desk.decide(proposal, submission).await.map_err(|error| refusal(error, proposal))?;
    EnvironmentPoints::of_this_process().reach(DECIDED_POINT);
    if recorded.novelty == Novelty::Existing {
        match word.projector.standing(proposal).await {
            Ok(outcome) if outcome.status == Status::Pending(None) => {}
            standing => return Ok((recorded, standing)),
        }
    }
    let outcome = word.projector.project(proposal).await;
    Ok((recorded, outcome))
}

/// What the command line says, as a submission.
async fn submission(
    reader: &Reader,
    word: &Word,
    proposal: &EventId,
    options: &ProposalDecision,
) -> Result<Submission, Failure> {
    let disposition = Disposition::from_word(&options.disposition)
        .ok_or_else(|| Failure::new(Exit::Usage, "disposition", "there is no such disposition"))?;
    let replacement = match &options.replacement_file {
        // Only an edit reads a file; the room refuses the others.
        Some(file) if disposition == Disposition::Edit => Some(read(word, proposal, file).await?),
        Some(_) => return Err(refusal(DecideError::ReplacementUnexpected, proposal)),
        None => None,
    };
    let expect_sha256 = match &options.expect_sha256 {
        Some(text) => Some(sha256(text)?),
        None => None,
    };
    let expect_base = match &options.expect_base {
        Some(text) => Some(version(reader, text).await?),
        None => None,
    };
    let submission_id = match &options.submission_id {
        Some(own) => own.clone(),
        None => token()?,
    };
    Ok(Submission {
        disposition,
        replacement,
        submission_id,
        actor: options.actor.clone(),
        expect_sha256,
        expect_base,
        surface: Surface::Cli,
        uid: uid(),
    })
}

fn sha256(text: &str) -> Result<Sha256Hex, Failure> {
    text.parse().map_err(|error: thought_protocol::hash::HashError| {
        Failure::new(Exit::Usage, "not-a-hash", chain(&error))
            .hint("it is textSha256 of thought proposal-show --json")
    })
}

/// A version by its whole id, known or not: an unknown one is simply not the expected base. A beginning must be known.
async fn version(reader: &Reader, text: &str) -> Result<VersionId, Failure> {
    match text.parse() {
        Ok(whole) => Ok(whole),
        Err(_not_whole) => resolve(reader, text, "ver", "version").await,
    }
}

/// The operator's own text: read once, and never looked at again.
async fn read(word: &Word, proposal: &EventId, file: &Path) -> Result<Sensitive<Vec<u8>>, Failure> {
    let verified = word.desk.verified(proposal).await.map_err(chain_failure)?;
    read_replacement(file, replacement_bytes_max(&verified)).map_err(|error| {
        let message = format!("{}: {error}", file.display());
        match error {
            ReplacementFileError::Absent => Failure::new(Exit::NotFound, "no-replacement-file", message),
            ReplacementFileError::Link | ReplacementFileError::NotRegular => {
                Failure::refused("replacement-not-regular", message)
                    .hint("give a regular file; a link or pipe could be another one by the time it is read")
            }
            ReplacementFileError::TooLarge { .. } => Failure::refused("replacement-too-large", message)
                .hint("the replacement is bound as the proposed text is"),
            ReplacementFileError::Io(_) => {
                Failure::refused("replacement-unreadable", message).hint("see that you may read the file")
            }
        }
    })
}

/// `proposal-project`.
///
/// # Errors
/// [`Failure`]: what was tried in this call failed (6), the lock stayed held (4) or is malformed (3), no such proposal (5),
/// one that is not decided or whose chain does not hold (3).
pub async fn project(
    (reader, word): (&Reader, &Word),
    printer: Printer,
    proposal: Option<&str>,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    match proposal {
        Some(text) => {
            let proposal = known(reader, text).await?;
            let outcome = word.projector.project(&proposal).await.map_err(project_failure)?;
            tell(printer, &outcome)?;
            failures.extend(ending_of_a_try(&outcome));
        }
        None => {
            let left = word.projector.reconcile(Scope::All).await?;
            if left.is_empty() {
                printer.remark("no decision waits for what follows from it");
            }
            for reconciled in left {
                match reconciled.outcome {
                    Ok(outcome) => {
                        tell(printer, &outcome)?;
                        failures.extend(ending_of_a_try(&outcome));
                    }
                    Err(error) => failures.push(project_failure(error)),
                }
            }
        }
    }
    // What failed now comes first, then what waits, then what could not even be looked at.
    failures.sort_by_key(|failure| match failure.exit {
        Exit::Decided => 0,
        Exit::Conflict => 1,
        _ => 2,
    });
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// `proposal-repropose`.
///
/// # Errors
/// [`Failure`]: no such proposal (5), refused (3), made by another operator already (4).
pub async fn repropose(
    (reader, word): (&Reader, &Word),
    printer: Printer,
    options: &ProposeAgain,
) -> Result<(), Failure> {
    let origin = known(reader, &options.id).await?;
    let proposed = word.operator_desk.repropose(&origin, options.actor.as_deref()).await;
    tell_proposed(reader, printer, &proposed.map_err(|error| propose_failure(error, &origin))?).await
}

/// `proposal-revert`.
///
/// # Errors
/// As [`repropose`].
pub async fn revert(
    (reader, word): (&Reader, &Word),
    printer: Printer,
    options: &ProposeAgain,
) -> Result<(), Failure> {
    let origin = known(reader, &options.id).await?;
    let proposed = word.operator_desk.revert(&origin, options.actor.as_deref()).await;
    tell_proposed(reader, printer, &proposed.map_err(|error| propose_failure(error, &origin))?).await
}

async fn tell_proposed(reader: &Reader, printer: Printer, proposed: &Proposed) -> Result<(), Failure> {
    let row = reader.proposal(proposed.proposal.clone()).await?;
    let state = row.map(|row| row.state);
    let mut value =
        json!({"proposal": proposed.proposal, "origin": proposed.origin, "purpose": proposed.purpose});
    if let Some(state) = state {
        value["state"] = json!(state.as_str());
    }
    printer.either(&value, || {
        vec![
            format!("proposal  {}", printer.bold(proposed.proposal.as_str())),
            format!("origin    {}", proposed.origin),
            format!("purpose   {}", proposed.purpose),
        ]
    })?;
    // Proposed on the same document once more, it is the one that was there, whatever was said on it.
    printer.remark(match state {
        Some(ProposalState::Undecided) => {
            "it waits for a decision like any other: thought review, or thought proposal-decision"
        }
        _ => "it was decided before; once memory.md has changed, this proposes it on the document as it is then",
    });
    Ok(())
}

/// A proposal by its id or a beginning of it.
async fn known(reader: &Reader, text: &str) -> Result<EventId, Failure> {
    let id: EventId = resolve(reader, text, "evt", "proposal").await?;
    match reader.proposal(id.clone()).await? {
        Some(row) => Ok(row.proposal),
        None => {
            Err(Failure::not_found("proposal", id.as_str())
                .hint("thought proposal-list shows what was proposed"))
        }
    }
}

/// What is told of a decided proposal.
struct Told<'a> {
    proposal: &'a EventId,
    decision: &'a EventId,
    disposition: Disposition,
    submission_id: &'a str,
    status: Status,
}

impl<'a> Told<'a> {
    /// A decision that nothing followed from.
    fn undone(recorded: &'a Recorded) -> Self {
        Self {
            proposal: &recorded.proposal,
            decision: &recorded.decision,
            disposition: recorded.disposition,
            submission_id: &recorded.submission_id,
            status: Status::Pending(None),
        }
    }
}

fn tell(printer: Printer, outcome: &Outcome) -> Result<(), Failure> {
    let Outcome { proposal, decision, disposition, submission_id, status, .. } = outcome;
    print(printer, &Told { proposal, decision, disposition: *disposition, submission_id, status: *status })
}

fn print(printer: Printer, told: &Told<'_>) -> Result<(), Failure> {
    let (status, reason) = (told.status.as_str(), told.status.reason());
    let mut value = json!({
        "proposal": told.proposal, "decision": told.decision, "disposition": told.disposition,
        "submissionId": told.submission_id, "status": status,
    });
    if let Some(reason) = reason {
        value["reason"] = json!(reason);
    }
    printer.either(&value, || lines(printer, told, reason))
}

fn lines(printer: Printer, told: &Told<'_>, reason: Option<&str>) -> Vec<String> {
    let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
    vec![
        format!("proposal     {}", printer.bold(told.proposal.as_str())),
        format!("decision     {}", told.decision),
        format!("disposition  {}", told.disposition),
        format!("submission   {}", told.submission_id),
        format!("status       {}{reason}", told.status.as_str()),
    ]
}

/// How a command ends that tells of this outcome, when it is not a success.
pub(super) fn ending(outcome: &Outcome) -> Option<Failure> {
    let id = short(outcome.proposal.as_str());
    match outcome.status {
        Status::MaterializationFailed(reason) => {
            let became = match reason {
                Reason::ScanFailed => "memory.md was written, and the scan of it failed",
                Reason::ReceiptMismatch => "memory.md may have been written, but its scan does not show it",
                _ => "memory.md was not changed",
            };
            let message = format!("the decision on {id} stands, and {became}: {reason}");
            let failure = Failure::new(Exit::Decided, "materialization-failed", message);
            Some(failure.hint(after_failure(reason, &outcome.proposal)))
        }
        Status::Pending(waits) => {
            let message = format!("the decision on {id} stands, and nothing has followed from it yet");
            let again = format!("thought proposal-project --proposal {}", outcome.proposal);
            Some(match waits {
                Some(Waits::LockInvalid) => {
                    Failure::refused("lock-invalid", message).hint(format!("{LOCK_HINT}; then {again}"))
                }
                Some(Waits::LockHeld) | None => Failure::new(Exit::Conflict, "lock-held", message)
                    .hint(format!("another process writes the context; in a moment: {again}")),
            })
        }
        Status::Rejected | Status::Projected | Status::Materialized => None,
    }
}

/// As [`ending`]; what failed for good before this call is no failure of it.
fn ending_of_a_try(outcome: &Outcome) -> Option<Failure> {
    match (outcome.status, outcome.tried) {
        (Status::MaterializationFailed(_), Tried::Before) => None,
        _ => ending(outcome),
    }
}

/// What to do about a failed materialization.
fn after_failure(reason: Reason, proposal: &EventId) -> String {
    if reason == Reason::ScanFailed {
        return format!(
            "thought scan says why; put that right, and leave memory.md as it is; then thought proposal-project \
             --proposal {proposal}"
        );
    }
    if reason.finality() == Finality::Retried {
        return format!(
            "see that the context can be written and its disk has space; then thought proposal-project --proposal \
             {proposal}"
        );
    }
    let again =
        format!("thought proposal-repropose {proposal} proposes the same on the document as it stands then");
    let right = match reason {
        Reason::StaleBase => return format!("the document changed since; {again}"),
        Reason::BaseMissing => "put memory.md back",
        Reason::TooLarge => "the new document would be over context.max_file_bytes: make room in it",
        Reason::FrontmatterMissing | Reason::FrontmatterInvalid | Reason::FrontmatterIdChanged => {
            return "a new document must begin with the frontmatter of the old one, its id included; an edit can give it"
                .to_owned();
        }
        _ => "memory.md must be a regular UTF-8 file in a folder that is no link: put that right",
    };
    // While the base stands there is nothing to propose on that was not decided already.
    format!("{right}; change memory.md in any way (a blank line will do), run thought scan, and {again}")
}

/// A decision that was not made, as a command says it.
pub fn refusal(error: DecideError, proposal: &EventId) -> Failure {
    let message = chain(&error);
    let refused = |code, hint: &str| Failure::refused(code, message.clone()).hint(hint);
    match error {
        DecideError::Chain(error) => chain_failure(error),
        DecideError::UnknownActor => {
            refused("unknown-actor", "operator.names in thought.toml lists the people who may decide")
        }
        DecideError::ActorNeeded => {
            refused("actor-needed", "say who decides: --actor, one of operator.names")
        }
        DecideError::ReplacementUnexpected => {
            refused("replacement-unexpected", "leave --replacement-file away, or decide edit")
        }
        DecideError::ReplacementMissing => {
            refused("replacement-missing", "give the text that should stand there: --replacement-file")
        }
        DecideError::ReplacementInvalid => refused(
            "replacement-invalid",
            "UTF-8 without U+0000, not empty, and bound as the proposed text is (thought proposal-show tells its length)",
        ),
        DecideError::TooLarge => refused(
            "replacement-too-large",
            "written down as JSON it is over what an event may hold; edit memory.md by hand",
        ),
        DecideError::SubmissionId => refused("submission-id", "1 to 128 characters, none of them a control"),
        DecideError::TextChanged => {
            refused("text-changed", "look at it once more: thought proposal-show tells its textSha256")
        }
        DecideError::BaseMoved => Failure::refused("base-moved", message.clone()).hint(format!(
            "look at it once more; thought proposal-repropose {proposal} proposes it on the current document"
        )),
        DecideError::NoBase => refused("no-base", "leave --expect-base away"),
        DecideError::Conflict => Failure::new(Exit::Conflict, "decided-otherwise", message.clone())
            .hint(format!("what was decided: thought lineage {proposal}")),
        DecideError::Scan(error) => hinted(scan_failure(&error)),
        DecideError::Store(error) => error.into(),
        DecideError::Draft(_) => Failure::new(Exit::Internal, "internal", message.clone()),
    }
}

/// A chain that was not verified, as a command says it.
pub fn chain_failure(error: ChainError) -> Failure {
    let message = chain(&error);
    match error {
        ChainError::NotFound { .. } => Failure::new(Exit::NotFound, "not-found", message),
        ChainError::Inert { .. } => {
            Failure::refused("inert", message).hint("a focus proposal is a record; nobody decides on it")
        }
        ChainError::Refused { link: Link::Decision, reason: "missing" } => {
            Failure::refused("undecided", message)
                .hint("decide first: thought review, or thought proposal-decision")
        }
        ChainError::Refused { reason: "not-materialized", .. } => {
            Failure::refused("not-materialized", message)
                .hint("only a change that stands in the document can be reverted")
        }
        ChainError::Refused { .. } => Failure::refused("chain-refused", message).hint(
            "its evidence does not hold together; thought verify tells what else is not as it was written",
        ),
        ChainError::Store(error) => error.into(),
        ChainError::Images(_) => Failure::new(Exit::Machine, "image-unreadable", message)
            .hint("the images of the home lie in blobs/; put them back from a backup"),
    }
}

/// A projection that came to no outcome, as a command says it.
pub fn project_failure(error: ProjectError) -> Failure {
    let message = chain(&error);
    match error {
        ProjectError::Chain(error) | ProjectError::Materialize(MaterializeError::Chain(error)) => {
            chain_failure(error)
        }
        ProjectError::Store(error)
        | ProjectError::Judge(JudgeError::Store(error))
        | ProjectError::Materialize(MaterializeError::Store(error)) => {
            Failure::from(error).hint("the decision stands; thought proposal-project carries it out")
        }
        ProjectError::Judge(_) | ProjectError::Materialize(_) => {
            Failure::new(Exit::Internal, "internal", message)
        }
    }
}

/// An operator's proposal that was not made, as a command says it.
pub fn propose_failure(error: ProposeError, origin: &EventId) -> Failure {
    let message = chain(&error);
    let refused = |code, hint: &str| Failure::refused(code, message.clone()).hint(hint);
    match error {
        ProposeError::Chain(error) => chain_failure(error),
        ProposeError::Kind => refused("not-a-memory-change", "corrections and focus proposals have no base"),
        ProposeError::Actor(error) => refusal(error, origin),
        ProposeError::NoBase => refused("base-missing", "put memory.md back, and run thought scan"),
        ProposeError::Current => {
            refused("base-current", "it is decided as it is; only on another version is it another proposal")
        }
        ProposeError::TooDeep => {
            refused("lineage-too-deep", "edit memory.md by hand, or let the assistant suggest it anew")
        }
        ProposeError::Text => refused("version-before", "edit memory.md by hand"),
        ProposeError::TooLarge => refused(
            "proposal-too-large",
            "written down as JSON the text is over what an event may hold; edit memory.md by hand",
        ),
        ProposeError::Scan(error) => hinted(scan_failure(&error)),
        ProposeError::Conflict => Failure::new(Exit::Conflict, "proposed-otherwise", message.clone())
            .hint("another operator proposed it; it waits in thought proposal-list"),
        ProposeError::Store(error) => error.into(),
        ProposeError::Draft(_) => Failure::new(Exit::Internal, "internal", message.clone()),
    }
}

/// A refusal of the context root has something to do about it as well.
fn hinted(failure: Failure) -> Failure {
    if failure.hint.is_some() || failure.exit == Exit::Internal {
        return failure;
    }
    failure.hint("context.root must be a folder of the home, with no link on the way to it")
}
