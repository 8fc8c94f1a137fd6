//! A person's word on a proposal: built here and nowhere else, from a verified chain.
//!
//! The rules are pure; [`Desk`] reads what they need and appends through the one handle of decisions. There is one
//! decision per proposal: the same word again is the first one, another word is a conflict, and nothing is written.

use std::sync::Arc;

use thought_contract::draft::{self, Draft, DraftError};
use thought_contract::payload::{
    DecisionReplacement, Disposition, HumanAuthority, MemoryOperation, ProposalDecision, Surface,
};
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::limits::EVENT_PAYLOAD_BYTES_MAX;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{EventId, Sensitive, Sha256Hex, VersionId};
use thought_store::StoreError;
use thought_store::handle::{Decisions, Follows, Reader};
use thought_store::row::{Existence, Novelty};

use crate::chain::{self, ChainError, Verified, VerifiedDecision, replacement_fits};
use crate::filesystem::{FilesystemConnector, ScanError};
use crate::limits::SUBMISSION_ID_CHARACTERS_MAX;
use thought_store::Images;

/// A decision that was not made. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// The proposal's chain does not hold, or is none that is decided on.
    #[error("decide on a proposal")]
    Chain(#[from] ChainError),
    /// Not one of the configured people.
    #[error("decide on a proposal: the actor is not one of the configured operators")]
    UnknownActor,
    /// Several people are configured, and none was named.
    #[error("decide on a proposal: several operators are configured, so one must be named")]
    ActorNeeded,
    /// An acceptance or rejection came with a text.
    #[error("decide on a proposal: only an edit takes a replacement")]
    ReplacementUnexpected,
    /// An edit came without one.
    #[error("decide on a proposal: an edit needs a replacement")]
    ReplacementMissing,
    /// The text is empty, too long, not UTF-8, or holds U+0000.
    #[error("decide on a proposal: the replacement is not within its bounds")]
    ReplacementInvalid,
    /// The text, written down, is more than an event may hold.
    #[error("decide on a proposal: the replacement is longer than an event may be")]
    TooLarge,
    /// The submission's name is empty, too long, or holds control characters.
    #[error("decide on a proposal: the submission id is not within its bounds")]
    SubmissionId,
    /// The proposed text is not the one that was shown.
    #[error("decide on a proposal: its text has another hash than the expected one")]
    TextChanged,
    /// The base is not the one that was shown, or it has moved.
    #[error("decide on a proposal: its base is not the expected one, or has moved")]
    BaseMoved,
    /// A correction has no base.
    #[error("decide on a proposal: only a memory change has a base")]
    NoBase,
    /// Another decision stands.
    #[error("decide on a proposal: another decision on it stands")]
    Conflict,
    /// The documents could not be looked at.
    #[error("decide on a proposal: look at its base")]
    Scan(#[from] ScanError),
    /// The decision has no canonical form.
    #[error("decide on a proposal")]
    Draft(#[from] DraftError),
    /// The store.
    #[error("decide on a proposal: reach the store")]
    Store(#[source] StoreError),
}

impl From<StoreError> for DecideError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Conflict,
            other => Self::Store(other),
        }
    }
}

/// The people who may decide, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operators(Vec<String>);

impl Operators {
    /// Takes the configured names.
    pub fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// The person who speaks: the named one, or the single one.
    ///
    /// # Errors
    /// [`DecideError::UnknownActor`], [`DecideError::ActorNeeded`].
    pub fn choose(&self, named: Option<&str>) -> Result<&str, DecideError> {
        match (named, self.0.as_slice()) {
            (Some(named), known) => {
                known.iter().find(|name| *name == named).map(String::as_str).ok_or(DecideError::UnknownActor)
            }
            (None, [single]) => Ok(single),
            (None, []) => Err(DecideError::UnknownActor),
            (None, _) => Err(DecideError::ActorNeeded),
        }
    }
}

/// What a surface hands in.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The word.
    pub disposition: Disposition,
    /// The exact bytes of the operator's own text, read once.
    pub replacement: Option<Sensitive<Vec<u8>>>,
    /// What the submission calls itself: provenance, never identity.
    pub submission_id: String,
    /// Who speaks; none where a single operator is configured.
    pub actor: Option<String>,
    /// Hash of the proposed text that was shown.
    pub expect_sha256: Option<Sha256Hex>,
    /// The base that was shown.
    pub expect_base: Option<VersionId>,
    /// Where it was made.
    pub surface: Surface,
    /// The account that made it.
    pub uid: u32,
}

/// Where the document of a memory change stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseNow {
    /// Its pointer names this version; none when the document is not there.
    At(Option<VersionId>),
    /// Nobody asked, or the proposal was decided already: a repeated word is compared with the first, not with today's
    /// document.
    NotAsked,
}

/// A person's word, ready to be appended. Only this module makes one.
#[derive(Debug)]
pub struct HumanDecision {
    draft: Draft,
}

impl HumanDecision {
    /// Builds the decision, or says why it may not be made.
    ///
    /// # Errors
    /// [`DecideError`]; nothing was read or written.
    pub fn build(
        chain: &Verified,
        operators: &Operators,
        submission: &Submission,
        base: &BaseNow,
        at: Timestamp,
    ) -> Result<Self, DecideError> {
        let operator = operators.choose(submission.actor.as_deref())?;
        if !is_submission_id(&submission.submission_id) {
            return Err(DecideError::SubmissionId);
        }
        let replacement = replacement(chain, submission)?;
        if submission.expect_sha256.as_ref().is_some_and(|expected| *expected != chain.text_sha256()) {
            return Err(DecideError::TextChanged);
        }
        check_base(chain, submission, base)?;
        let payload = ProposalDecision {
            proposal: chain.proposal().envelope.id.clone(),
            proposal_kind: chain.kind(),
            disposition: submission.disposition,
            replacement,
            submission_id: submission.submission_id.clone(),
            operator: operator.to_owned(),
            authority: HumanAuthority::Human,
            surface: submission.surface,
            uid: submission.uid,
        };
        let draft = draft::proposal_decision(chain.proposal(), &payload, at)?;
        // What escapes of the text is counted too, so that its own bound does not say it.
        if draft.payload().expose().len() > EVENT_PAYLOAD_BYTES_MAX {
            return Err(DecideError::TooLarge);
        }
        Ok(Self { draft })
    }
}

fn is_submission_id(text: &str) -> bool {
    (1..=SUBMISSION_ID_CHARACTERS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

fn replacement(
    chain: &Verified,
    submission: &Submission,
) -> Result<Option<DecisionReplacement>, DecideError> {
    match (submission.disposition, &submission.replacement) {
        (Disposition::Edit, None) => Err(DecideError::ReplacementMissing),
        (Disposition::Accept | Disposition::Reject, Some(_)) => Err(DecideError::ReplacementUnexpected),
        (Disposition::Accept | Disposition::Reject, None) => Ok(None),
        (Disposition::Edit, Some(bytes)) => match std::str::from_utf8(bytes.expose()) {
            Ok(text) if replacement_fits(chain, text) && says_something(chain, text) => {
                Ok(Some(DecisionReplacement {
                    text: text.to_owned(),
                    length: u64::try_from(text.chars().count()).unwrap_or(u64::MAX),
                    sha256: Sha256Hex::of(text.as_bytes()),
                }))
            }
            Ok(_) => Err(DecideError::ReplacementInvalid),
            Err(_content_dark) => Err(DecideError::ReplacementInvalid),
        },
    }
}

/// An append of white space alone would add blank lines and nothing else.
fn says_something(chain: &Verified, text: &str) -> bool {
    match chain {
        Verified::Memory(chain) => {
            chain.subject().operation != MemoryOperation::Append || !text.trim().is_empty()
        }
        Verified::Correction(_) => true,
    }
}

/// What was shown must be what is proposed on. A word that lets the change through also wants the document unmoved; a
/// rejection of a stale one changes nothing and may be made.
fn check_base(chain: &Verified, submission: &Submission, base: &BaseNow) -> Result<(), DecideError> {
    let Some(expected) = &submission.expect_base else { return Ok(()) };
    let target = chain.base().ok_or(DecideError::NoBase)?;
    if target.version_id != *expected {
        return Err(DecideError::BaseMoved);
    }
    match (submission.disposition, base) {
        (Disposition::Reject, _) | (_, BaseNow::NotAsked) => Ok(()),
        (_, BaseNow::At(Some(now))) if now == expected => Ok(()),
        (_, BaseNow::At(_)) => Err(DecideError::BaseMoved),
    }
}

/// A decision that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The proposal.
    pub proposal: EventId,
    /// Its kind.
    pub kind: ProposalKind,
    /// The decision's event.
    pub decision: EventId,
    /// The word.
    pub disposition: Disposition,
    /// Submission id of the first submission of this word.
    pub submission_id: String,
    /// Whether this call made it.
    pub novelty: Novelty,
}

/// Where decisions are made.
#[derive(Clone)]
pub struct Desk {
    reader: Reader,
    decisions: Decisions,
    images: Arc<dyn Images>,
    connector: FilesystemConnector,
    operators: Operators,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("operators", &self.operators).finish_non_exhaustive()
    }
}

impl Desk {
    /// A desk of these people.
    pub fn new(
        (reader, decisions): (Reader, Decisions),
        images: Arc<dyn Images>,
        connector: FilesystemConnector,
        operators: Operators,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { reader, decisions, images, connector, operators, clock }
    }

    /// The verified proposal, for whoever shows it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn verified(&self, proposal: &EventId) -> Result<Verified, ChainError> {
        chain::validate(&self.reader, &*self.images, proposal).await
    }

    /// Makes a decision. Equal words converge on the first, whoever submits them and however many at once.
    ///
    /// # Errors
    /// [`DecideError`]; nothing was appended.
    pub async fn decide(&self, proposal: &EventId, submission: &Submission) -> Result<Recorded, DecideError> {
        let chain = self.verified(proposal).await?;
        let (standing, base) = self.seen(&chain, submission).await?;
        let now = self.clock.now();
        let decision = HumanDecision::build(&chain, &self.operators, submission, &base, now)?;
        let follows = match submission.disposition {
            Disposition::Reject => Follows::Nothing,
            Disposition::Accept | Disposition::Edit => Follows::Projection,
        };
        let appended = self.decisions.decide(decision.draft, proposal.clone(), follows).await?;
        let standing = match standing {
            Some(standing) => standing,
            None => self.recorded(&chain).await?,
        };
        tracing::info!(proposal = %proposal, decision = %appended.id, "decision recorded");
        let said = standing.payload();
        Ok(Recorded {
            proposal: said.proposal.clone(),
            kind: said.proposal_kind,
            decision: appended.id,
            disposition: said.disposition,
            submission_id: said.submission_id.clone(),
            novelty: appended.novelty,
        })
    }

    /// The decision that stands, and where the base does when there is none and somebody asked.
    async fn seen(
        &self,
        chain: &Verified,
        submission: &Submission,
    ) -> Result<(Option<VerifiedDecision>, BaseNow), DecideError> {
        let standing = chain::decision_of(&self.reader, chain).await?;
        if standing.is_some() || submission.expect_base.is_none() {
            return Ok((standing, BaseNow::NotAsked));
        }
        let base = self.base_now(chain).await;
        // A base that moved by this very word, said by somebody else meanwhile, is no reason to refuse it.
        match chain::decision_of(&self.reader, chain).await? {
            Some(standing) => Ok((Some(standing), BaseNow::NotAsked)),
            None => Ok((None, base?)),
        }
    }

    async fn recorded(&self, chain: &Verified) -> Result<VerifiedDecision, DecideError> {
        let recorded = chain::decision_of(&self.reader, chain).await?;
        recorded.ok_or_else(|| ChainError::NotFound { id: chain.proposal().envelope.id.clone() }.into())
    }

    /// Where the document stands, after a look at the files.
    async fn base_now(&self, chain: &Verified) -> Result<BaseNow, DecideError> {
        let Some(target) = chain.base() else { return Ok(BaseNow::NotAsked) };
        self.connector.refresh().await?;
        let row = self.reader.document(target.document_id.clone()).await?;
        Ok(BaseNow::At(row.filter(|row| row.existence == Existence::Present).map(|row| row.version)))
    }
}
