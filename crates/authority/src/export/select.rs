//! The selector: which judgments stand, as of the heads that were read first, page by page in the order of the log.
//!
//! What is appended while an export runs is beyond its heads and changes nothing in it, so that the same store gives the
//! same bytes. It keeps one page at a time, however many judgments there are.

use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::JudgmentRecorded;
use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::handle::Reader;
use thought_store::row::SourceRow;

use super::Scope;
use super::exclusion::Exclusion;
use crate::limits::{EXAMPLE_BYTES_MIN, JUDGMENTS_PAGE};

/// Where judgments stand.
const JUDGMENTS: &str = "review:judgments";

/// Where every source stood when an export began.
#[derive(Debug)]
pub(super) struct Heads(pub(super) Vec<SourceRow>);

impl Heads {
    pub(super) async fn read(reader: &Reader) -> Result<Self, StoreError> {
        let mut sources = reader.sources().await?;
        sources.sort_by(|a, b| a.source.as_str().cmp(b.source.as_str()));
        Ok(Self(sources))
    }

    /// The last judgment that counts, by its sequence.
    pub(super) fn last_judgment(&self) -> u64 {
        self.0.iter().find(|row| row.source.as_str() == JUDGMENTS).map_or(0, |row| row.head)
    }
}

/// Judgments up to a head, in order.
pub(super) struct Judgments<'a> {
    reader: &'a Reader,
    head: u64,
    after_sequence: u64,
}

impl<'a> Judgments<'a> {
    pub(super) fn up_to(reader: &'a Reader, head: u64) -> Self {
        Self { reader, head, after_sequence: 0 }
    }

    /// The next page; an empty one is the end.
    pub(super) async fn page(&mut self) -> Result<Vec<StoredEvent>, StoreError> {
        let source = SourceName::new(JUDGMENTS);
        let mut page = self.reader.source_events(source, self.after_sequence, JUDGMENTS_PAGE).await?;
        page.retain(|event| event.envelope.sequence <= self.head);
        if let Some(last) = page.last() {
            self.after_sequence = last.envelope.sequence;
        }
        Ok(page)
    }

    /// Whether a judgment is one that this export is about, before its chain is looked at.
    pub(super) async fn sift(
        &self,
        event: &StoredEvent,
        scope: Scope,
    ) -> Result<Result<JudgmentRecorded, Exclusion>, StoreError> {
        let decoded = match event.envelope.event_type {
            EventType::JudgmentRecorded => event.payload::<JudgmentRecorded>(),
            _ => return Ok(Err(super::exclusion::lacks(super::Part::Judgment, "type"))),
        };
        let Ok(said) = decoded else {
            return Ok(Err(super::exclusion::lacks(super::Part::Judgment, "payload")));
        };
        if !self.stands(&event.envelope.id, &said.target.output).await? {
            return Ok(Err(Exclusion::Superseded));
        }
        Ok(match scope {
            _ if !said.quality_eligible => Err(Exclusion::NotQualityEligible),
            Scope::External if !said.external_export_eligible => Err(Exclusion::NotExternallyEligible),
            Scope::Private | Scope::External => Ok(said),
        })
    }

    /// Whether this was the active judgment of its output at the head.
    async fn stands(&self, id: &EventId, output: &EventId) -> Result<bool, StoreError> {
        let mut active = self.reader.active_judgment(output.clone()).await?;
        while let Some(newest) = active {
            if newest == *id {
                return Ok(true);
            }
            // One that came behind the head took the place of another, which is what counts here.
            let Some(event) = self.reader.event(newest).await? else { return Ok(false) };
            if event.envelope.sequence <= self.head {
                return Ok(false);
            }
            active = event.payload::<JudgmentRecorded>().map_or(None, |said| said.supersedes);
        }
        Ok(false)
    }
}

/// What an export is about to write, at the least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// Judgments up to the head.
    pub(super) judgments: u64,
    /// Bytes.
    pub(super) bytes_min: u64,
}

/// Looks once over everything that may become an example.
pub(super) async fn survey(reader: &Reader, head: u64, scope: Scope) -> Result<Survey, StoreError> {
    let mut judgments = Judgments::up_to(reader, head);
    let mut survey = Survey { judgments: head, bytes_min: 0 };
    loop {
        let page = judgments.page().await?;
        if page.is_empty() {
            return Ok(survey);
        }
        for event in page {
            if let Ok(said) = judgments.sift(&event, scope).await? {
                let words = u64::try_from(said.replacement.summary.len()).unwrap_or(u64::MAX);
                survey.bytes_min = survey.bytes_min.saturating_add(words).saturating_add(EXAMPLE_BYTES_MIN);
            }
        }
    }
}
