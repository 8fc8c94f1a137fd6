//! Looking: from rows of the store to lanes, and from the log to admitted runs.
//!
//! Open runs of the store come first, then the log behind `scanned`, both by pages and only as far as the window has
//! room. Admissions are committed in source order, so that `scanned` never passes an event whose run is not there.

use thought_contract::conversation::{Conversation, TriggerRefusal};
use thought_contract::declaration::ContextKind;
use thought_contract::draft::{self, Ending};
use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::{AgentMessage, RunEnded};
use thought_contract::run::{AttemptState, BlockedReason, RunState, run_id};
use thought_store::command::NewRun;
use thought_store::handle::Admission;
use thought_store::row::{RunFilter, RunRow};
use thought_store::{Precondition, StoreError, Topics};

use super::lanes::LaneKey;
use super::{Consumer, Error};
use crate::limits::{ROW_PAGE, SCAN_PAGE};
use crate::mail;
use crate::run::end::attempt_end;
use crate::run::{Admissions, RunRef, Ticket};

/// The states of runs that have not ended.
const OPEN: [RunState; 3] = [RunState::Admitted, RunState::Running, RunState::Held];

/// Where the consumer stands in one source.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: SourceName,
    types: Vec<EventType>,
    /// News of what may be appended to it.
    pub(super) topics: Topics,
    /// Everything up to here was looked at.
    pub(super) looked: u64,
    /// `scanned` of the store is at least this, once every admission is committed.
    pub(super) admitted: u64,
    /// Whether there may be more behind `looked`.
    more: bool,
    /// The newest admission, which may not be committed yet.
    last: Admissions,
}

impl Source {
    pub(super) fn new(name: SourceName, types: Vec<EventType>, scanned: u64) -> Self {
        let topics = types.iter().fold(Topics::events(&types), |topics, event_type| {
            topics.and(Topics::events(event_type.beside()))
        });
        let last = Admissions::default();
        Self { name, types, topics, looked: scanned, admitted: scanned, more: true, last }
    }
}

impl Consumer {
    /// Both rows and log may have more.
    pub(super) fn expect_more(&mut self) {
        self.expect(Topics::ALL);
    }

    /// This was committed: rows may have more where a run was admitted, a source where something came into it.
    pub(super) fn expect(&mut self, touched: Topics) {
        self.rows_more |= touched.meets(Topics::RUN_ADMITTED);
        for source in &mut self.sources {
            source.more |= touched.meets(source.topics);
        }
    }

    /// Fills the window, and starts what may start.
    pub(super) async fn fill(&mut self) -> Result<(), Error> {
        while self.rows_more && self.lanes.has_room() {
            self.adopt_page().await?;
        }
        self.launch();
        if self.rows_more {
            return Ok(());
        }
        for index in 0..self.sources.len() {
            while self.sources[index].more && self.lanes.has_room() {
                self.scan_page(index).await?;
            }
        }
        self.launch();
        Ok(())
    }

    async fn adopt_page(&mut self) -> Result<(), Error> {
        let filter = RunFilter {
            declaration: Some(self.shared.parts.runs.declaration().to_owned()),
            states: OPEN.to_vec(),
            after_ordinal: self.rows_after,
            limit: ROW_PAGE,
            ..RunFilter::default()
        };
        let rows = self.shared.parts.reader.runs(filter).await?;
        self.rows_more = rows.len() == ROW_PAGE as usize;
        for row in rows {
            if !self.lanes.has_room() {
                self.rows_more = true;
                break;
            }
            let ordinal = row.ordinal;
            if row.version == self.shared.active.declaration.version() {
                self.adopt(row);
            } else {
                self.supersede(row).await?;
            }
            self.rows_after = self.rows_after.max(ordinal);
        }
        Ok(())
    }

    fn adopt(&mut self, row: RunRow) {
        if self.lanes.knows(&row.id) {
            return;
        }
        let key = LaneKey { source: row.source.clone(), conversation: row.conversation };
        let run = RunRef {
            id: row.id,
            trigger: row.trigger,
            source: row.source,
            sequence: row.sequence,
            retry: row.retry,
        };
        self.lanes.push(key, Ticket { run, trigger: None, admissions: Admissions::default() });
    }

    /// Opens the active version's run on the trigger of an older version's, then ends that one. A crash in between
    /// leaves both open, and the next start does it again.
    async fn supersede(&self, row: RunRow) -> Result<(), Error> {
        let parts = &self.shared.parts;
        let trigger = parts
            .reader
            .event(row.trigger.clone())
            .await?
            .ok_or_else(|| StoreError::Corrupt { what: format!("trigger of {}", row.id) })?;
        let attempts = parts.reader.attempts(row.id.clone()).await?;
        let version = self.shared.active.declaration.version();
        let new = NewRun {
            id: run_id(&row.declaration, version, &row.trigger, row.retry),
            declaration: row.declaration.clone(),
            version,
            trigger: row.trigger,
            source: row.source,
            sequence: row.sequence,
            conversation: row.conversation,
            retry: row.retry,
        };
        self.admit(Admission { scanned: row.sequence, run: new }).await?;
        let reason = BlockedReason::Superseded.as_str();
        let payload = RunEnded { run: row.id.clone(), attempts: row.attempts, reason: reason.to_owned() };
        let event =
            draft::run_ended(Ending::Blocked, &row.declaration, &trigger, &payload, self.shared.now())?;
        let started = attempts.last().filter(|attempt| attempt.state == AttemptState::Started);
        let attempt = started.map(|last| attempt_end(last.id.clone(), AttemptState::Abandoned, None));
        self.shared.reach("end.before");
        match parts.runs.end(row.id.clone(), None, attempt, reason, event).await {
            Ok(_) | Err(StoreError::Precondition(_) | StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.shared.reach("end.after");
        tracing::info!(run = %row.id, version, "run superseded by the active version");
        Ok(())
    }

    async fn scan_page(&mut self, index: usize) -> Result<(), Error> {
        let (name, after) = (self.sources[index].name.clone(), self.sources[index].looked);
        let head = self
            .asked
            .drain_of(self.shared.parts.runs.declaration())
            .and_then(|heads| heads.into_iter().find_map(|(source, head)| (source == name).then_some(head)));
        let events = self.shared.parts.reader.source_events(name, after, SCAN_PAGE).await?;
        self.sources[index].more = events.len() == SCAN_PAGE as usize;
        for event in events {
            // What comes behind the head of a change belongs to the next version.
            if head.is_some_and(|head| event.envelope.sequence > head) {
                self.sources[index].more = false;
                break;
            }
            if !self.lanes.has_room() {
                self.sources[index].more = true;
                break;
            }
            let sequence = event.envelope.sequence;
            if self.sources[index].types.contains(&event.envelope.event_type) {
                self.commit_admission(&self.sources[index].last.clone()).await?;
                self.consider(index, event).await?;
            }
            self.sources[index].looked = sequence;
        }
        Ok(())
    }

    /// Opens the run that an event is the trigger of.
    async fn consider(&mut self, index: usize, event: StoredEvent) -> Result<(), Error> {
        let declaration = &self.shared.active.declaration;
        let refusal = refusal(declaration, &event);
        if refusal == Some(Refusal::NotOurs) {
            return Ok(());
        }
        let envelope = &event.envelope;
        let conversation = conversation_of(declaration.context(), &event);
        let key = LaneKey { source: envelope.source.clone(), conversation: conversation.clone() };
        let id = run_id(declaration.id().as_str(), declaration.version(), &envelope.id, 0);
        let run = RunRef {
            id: id.clone(),
            trigger: envelope.id.clone(),
            source: envelope.source.clone(),
            sequence: envelope.sequence,
            retry: 0,
        };
        let new = NewRun {
            id,
            declaration: declaration.id().to_string(),
            version: declaration.version(),
            trigger: run.trigger.clone(),
            source: run.source.clone(),
            sequence: run.sequence,
            conversation,
            retry: 0,
        };
        let sequence = run.sequence;
        let admission = Admission { run: new, scanned: sequence };
        if let Some(Refusal::Blocked(reason)) = refusal {
            self.refuse(admission, &event, reason).await?;
        } else if self.lanes.is_free(&key) && self.has_free_place() {
            // An immediate start shares the admission's commit.
            let admissions = Admissions::of(admission);
            self.sources[index].last = admissions.clone();
            self.lanes.push(key, Ticket { run, trigger: Some(event), admissions });
            self.launch();
        } else if self.admit(admission).await? {
            self.lanes.push(key, Ticket { run, trigger: None, admissions: Admissions::default() });
        }
        self.sources[index].admitted = sequence;
        Ok(())
    }

    /// A message by a route that is not admitted ends at once: typed, and without a request.
    async fn refuse(
        &self,
        admission: Admission,
        trigger: &StoredEvent,
        reason: BlockedReason,
    ) -> Result<(), Error> {
        let run = admission.run.id.clone();
        let payload = RunEnded { run: run.clone(), attempts: 0, reason: reason.as_str().to_owned() };
        let declaration = self.shared.parts.runs.declaration();
        let event = draft::run_ended(Ending::Blocked, declaration, trigger, &payload, self.shared.now())?;
        self.shared.reach("end.before");
        match self.shared.parts.runs.end(run.clone(), Some(admission), None, reason.as_str(), event).await {
            Ok(_) | Err(StoreError::Precondition(_) | StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.shared.reach("end.after");
        tracing::warn!(run = %run, trigger = %trigger.envelope.id, reason = reason.as_str(), "run refused");
        Ok(())
    }

    /// Commits an admission; whether it is new to the store.
    async fn admit(&self, admission: Admission) -> Result<bool, Error> {
        self.shared.reach("admit.before");
        match self.shared.parts.runs.admit(admission).await {
            Ok(()) => {
                self.shared.reach("admit.after");
                Ok(true)
            }
            Err(StoreError::Precondition(Precondition::RunAbsent)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Commits an admission that its run has not committed itself yet.
    pub(super) async fn commit_admission(&self, admissions: &Admissions) -> Result<(), Error> {
        let mut slot = admissions.slot.lock().await;
        if let Some(admission) = slot.clone() {
            self.admit(admission).await?;
            *slot = None;
        }
        Ok(())
    }
}

/// Why an event opens no run that a model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The declaration does not follow it.
    NotOurs,
    /// It gets a run that ends at once.
    Blocked(BlockedReason),
}

fn refusal(declaration: &thought_contract::declaration::Declaration, event: &StoredEvent) -> Option<Refusal> {
    match Conversation::open(declaration, event) {
        Ok(_) if declaration.context() == ContextKind::AgentConversation => {
            let route = event
                .payload::<AgentMessage>()
                .is_ok_and(|message| mail::is_route(&message.sender_agent_id, &message.recipient_agent_id));
            (!route).then_some(Refusal::Blocked(BlockedReason::RouteRefused))
        }
        Ok(_) => None,
        Err(TriggerRefusal::NotSubscribed) => Some(Refusal::NotOurs),
        Err(TriggerRefusal::Route) => Some(Refusal::Blocked(BlockedReason::RouteRefused)),
        Err(TriggerRefusal::Malformed | TriggerRefusal::Empty) => {
            Some(Refusal::Blocked(BlockedReason::Policy))
        }
    }
}

/// The conversation within the source, as the turn's stored ordinal names it.
fn conversation_of(kind: ContextKind, event: &StoredEvent) -> String {
    let correlation = event.envelope.correlation_id.clone().unwrap_or_default();
    match (kind, event.payload::<AgentMessage>()) {
        (ContextKind::AgentConversation, Ok(message)) => {
            format!("{}/{}", message.recipient_agent_id, message.thread_id)
        }
        _ => correlation,
    }
}
