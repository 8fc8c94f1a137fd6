//! A run in the hands of this process: the order in which it is checked, frozen, started, made and settled.
//!
//! Before the attempt's commit nothing may leave; after it, one commit settles the run or ends the attempt.

use std::time::{Duration, Instant};

use thought_contract::declaration::Runner;
use thought_contract::event::StoredEvent;
use thought_contract::run::{AttemptState, BlockedReason, HeldReason, RunState, attempt_id};
use thought_protocol::AttemptId;
use thought_protocol::answer::ValidatedAnswer;
use thought_store::command::{AttemptEnd, NewAttempt};
use thought_store::handle::Start;
use thought_store::row::{AttemptRow, RunRow};
use thought_store::{Precondition, StoreError, Topics};

use super::end::{self, End, attempt_end, lost};
use super::freeze::{self, Freeze, Frozen};
use super::verdict::{self, Fault, Step, Used, decide};
use super::{Error, Finish, Shared, Ticket, attempt, clear_admitted, deterministic, settle};
use crate::consumer::StopSignal;
use crate::declarations::ManifestState;
use crate::limits::{ENDED_LOOK_MS, SETTLE_TRIES_MAX};
use crate::port::{Binding, JailErrorKind, Worker};
use crate::reason;

/// What is known of the attempts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Past {
    attempts: u32,
    unknown: u32,
}

/// Carries a run on until it has ended, is held, or the consumer stops.
pub(crate) async fn take(shared: &Shared, ticket: &Ticket, stop: &StopSignal) -> Result<Finish, Error> {
    let is_new = ticket.admissions.slot.lock().await.is_some();
    let row = if is_new { None } else { shared.parts.reader.run(ticket.run.id.clone()).await? };
    match &row {
        None if !is_new => return Ok(Finish::Done),
        Some(row) if !row.state.is_open() => return Ok(Finish::Done),
        _ => {}
    }
    let trigger = match &ticket.trigger {
        Some(trigger) => trigger.clone(),
        None => shared
            .parts
            .reader
            .event(ticket.run.trigger.clone())
            .await?
            .ok_or_else(|| StoreError::Corrupt { what: format!("trigger of {}", ticket.run.id) })?,
    };
    let attempts = match &row {
        Some(row) if row.attempts > 0 => shared.parts.reader.attempts(row.id.clone()).await?,
        _ => Vec::new(),
    };
    let held = row.as_ref().and_then(held_reason);
    let unknown = attempts.iter().filter(|attempt| attempt.state == AttemptState::Unknown).count();
    let past = Past {
        attempts: attempts.last().map_or(0, |attempt| attempt.ordinal),
        unknown: u32::try_from(unknown).unwrap_or(u32::MAX),
    };
    let mut course =
        Course { shared, ticket, stop, trigger, held, past, abandoned: None, until: None, frozen: None };
    match attempts.last() {
        None => {}
        Some(last) => {
            if let Some(finish) = course.resume(last).await? {
                return Ok(finish);
            }
        }
    }
    course.carry_on().await
}

fn held_reason(row: &RunRow) -> Option<HeldReason> {
    match row.state {
        RunState::Held => row.reason.as_deref().and_then(HeldReason::from_code),
        _ => None,
    }
}

/// A run in the hands of this process.
struct Course<'a> {
    shared: &'a Shared,
    ticket: &'a Ticket,
    stop: &'a StopSignal,
    trigger: StoredEvent,
    held: Option<HeldReason>,
    past: Past,
    /// An attempt that a dead process left; it is ended in the commit that begins the next one.
    abandoned: Option<AttemptId>,
    /// When the run's time is up, whatever the calendar does meanwhile; it runs from the first attempt that this process
    /// makes.
    until: Option<Instant>,
    frozen: Option<Frozen>,
}

/// What one round of a run came to.
enum Round {
    Finished(Finish),
    Again { wait_ms: u64 },
}

impl Course<'_> {
    fn attempts_max(&self) -> u32 {
        self.shared.active.declaration.budget().attempts_max
    }

    fn runner(&self) -> Runner {
        self.shared.active.declaration.runner()
    }

    /// Milliseconds that the run has left, from the first attempt that this process makes.
    fn left_ms(&self) -> u64 {
        let left = match self.until {
            Some(until) => until.saturating_duration_since(self.moment()),
            None => self.timeout(),
        };
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.shared.active.declaration.budget().timeout_seconds))
    }

    fn moment(&self) -> Instant {
        self.shared.parts.sleeper.moment()
    }

    /// Takes up a run after its process died: an attempt left `started` is abandoned, and the run goes on or, when that
    /// was its last, ends with it.
    async fn resume(&mut self, last: &AttemptRow) -> Result<Option<Finish>, Error> {
        let left_open = last.state == AttemptState::Started;
        if last.ordinal < self.attempts_max() {
            self.abandoned = left_open.then(|| last.id.clone());
            return Ok(None);
        }
        let end = if left_open {
            let attempt = attempt_end(last.id.clone(), AttemptState::Abandoned, None);
            self.end(Some(attempt), End::Abandoned(reason::ATTEMPT_ABANDONED)).await?
        } else {
            self.end(None, End::Failed(reason::ATTEMPTS_EXHAUSTED)).await?
        };
        Ok(Some(end))
    }

    async fn carry_on(&mut self) -> Result<Finish, Error> {
        loop {
            if self.stop.is_stopping() {
                return Ok(Finish::Left);
            }
            match self.round().await? {
                Round::Finished(finish) => return Ok(finish),
                Round::Again { wait_ms } => {
                    tokio::select! {
                        () = self.shared.parts.sleeper.sleep_ms(wait_ms) => {}
                        () = self.stop.stopping() => return Ok(Finish::Left),
                    }
                }
            }
        }
    }

    /// Checks, freezes, checks out a worker, records the attempt, makes it, and records what it came to.
    async fn round(&mut self) -> Result<Round, Error> {
        let binding = match self.checked_binding().await? {
            Ok(binding) => binding,
            Err(finish) => return Ok(Round::Finished(finish)),
        };
        if let Some(finish) = self.freeze(&binding).await? {
            return Ok(Round::Finished(finish));
        }
        let checkout = match self.runner() {
            Runner::Deterministic => Ok(None),
            Runner::Pi => self.shared.parts.jail.checkout().await.map(Some),
        };
        let worker = match checkout {
            Ok(worker) => worker,
            Err(error) => {
                tracing::warn!(run = %self.ticket.run.id, code = error.code, "no sealed worker");
                return self.without_worker(error.kind).await.map(Round::Finished);
            }
        };
        let attempt = match self.start().await? {
            Ok(attempt) => attempt,
            Err(finish) => return Ok(Round::Finished(finish)),
        };
        self.make(&binding, worker, attempt).await
    }

    /// The provider that the next attempt would ask, or how the run ends or waits without one.
    async fn checked_binding(&self) -> Result<Result<Binding, Finish>, Error> {
        let manifest_changed = self.shared.active.manifest == ManifestState::Changed;
        if manifest_changed && self.past.attempts > 0 {
            return self.block(BlockedReason::ProtocolVersion).await.map(Err);
        }
        if manifest_changed {
            return self.hold(HeldReason::ManifestChanged).await.map(Err);
        }
        let declaration = &self.shared.active.declaration;
        let binding = match self.runner() {
            Runner::Deterministic => Ok(deterministic::binding()),
            Runner::Pi => self.shared.parts.model.binding(declaration.provider()),
        };
        match binding {
            Ok(binding) => Ok(Ok(binding)),
            // A run that was asked of a provider goes on with that one or not at all.
            Err(_) if self.past.attempts > 0 => self.block(BlockedReason::ProviderChanged).await.map(Err),
            Err(held) => self.hold(held).await.map(Err),
        }
    }

    /// Gives the run its frozen context, if this task does not have it yet, and compares the provider with it.
    async fn freeze(&mut self, binding: &Binding) -> Result<Option<Finish>, Error> {
        if self.frozen.is_none() {
            let first = self.past.attempts == 0;
            let frozen = if first {
                freeze::first(self.shared, self.ticket, &self.trigger, binding, self.stop).await?
            } else {
                freeze::again(self.shared, self.ticket).await?
            };
            match frozen {
                Freeze::Ready(frozen) => self.frozen = Some(*frozen),
                Freeze::Held(reason) => return self.hold(reason).await.map(Some),
                Freeze::Blocked(reason) => return self.block(reason).await.map(Some),
                Freeze::Failed(code) => {
                    return self.end(self.abandoned_end(), End::Failed(code)).await.map(Some);
                }
                Freeze::Left => return Ok(Some(Finish::Left)),
            }
        }
        match &self.frozen {
            Some(frozen) if !frozen.is_bound_to(binding) => {
                self.block(BlockedReason::ProviderChanged).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn without_worker(&self, kind: JailErrorKind) -> Result<Finish, Error> {
        match kind {
            // Nothing was recorded: the run waits, whichever worker failed to come.
            _ if self.past.attempts == 0 => self.hold(HeldReason::SandboxUnavailable).await,
            JailErrorKind::Unavailable | JailErrorKind::Worker => {
                self.end(self.abandoned_end(), End::Failed(HeldReason::SandboxUnavailable.as_str())).await
            }
        }
    }

    /// Records the attempt. Before this commit no packet may leave.
    async fn start(&mut self) -> Result<Result<AttemptId, Finish>, Error> {
        let shared = self.shared;
        let ordinal = self.past.attempts + 1;
        let id = attempt_id(&self.ticket.run.id, ordinal);
        let requests_max = u64::from(shared.active.declaration.budget().requests_per_day_max);
        let mut admission = self.ticket.admissions.slot.lock().await;
        let start = Start {
            run: self.ticket.run.id.clone(),
            admission: admission.clone(),
            snapshot: self.frozen.as_ref().and_then(|frozen| frozen.new_snapshot.clone()),
            abandoned: self.abandoned.clone(),
            attempt: NewAttempt {
                id: id.clone(),
                ordinal,
                sandbox: match self.runner() {
                    Runner::Deterministic => deterministic::TIER.to_owned(),
                    Runner::Pi => shared.parts.jail.tier(),
                },
                day: shared.now().day(),
                requests_per_day_max: requests_max,
            },
        };
        shared.reach("start.before");
        let started = shared.parts.runs.start(start).await;
        clear_admitted(&mut admission, &started);
        drop(admission);
        match started {
            Ok(()) => {}
            Err(StoreError::Precondition(Precondition::DailyBudget)) if self.past.attempts == 0 => {
                return self.hold(HeldReason::DailyBudget).await.map(Err);
            }
            Err(StoreError::Precondition(Precondition::DailyBudget)) => {
                let end = End::Failed(HeldReason::DailyBudget.as_str());
                return self.end(self.abandoned_end(), end).await.map(Err);
            }
            Err(error) => return lost(&self.ticket.run, error).map(Err),
        }
        shared.reach("start.after");
        tracing::info!(run = %self.ticket.run.id, attempt = %id, ordinal, "attempt started");
        self.until = self.until.or_else(|| Some(self.moment() + self.timeout()));
        self.past.attempts = ordinal;
        self.abandoned = None;
        self.held = None;
        if let Some(frozen) = &mut self.frozen {
            frozen.new_snapshot = None;
        }
        Ok(Ok(id))
    }

    async fn make(
        &mut self,
        binding: &Binding,
        worker: Option<Box<dyn Worker>>,
        attempt: AttemptId,
    ) -> Result<Round, Error> {
        let Some(frozen) = &self.frozen else { return Ok(Round::Finished(Finish::Left)) };
        let begun = self.moment();
        let work = attempt::Work {
            provider: &binding.provider,
            packet: &frozen.packet,
            packet_bytes: frozen.packet_bytes.expose().clone(),
            left_ms: self.left_ms(),
        };
        let made = match worker {
            Some(worker) => tokio::select! {
                biased;
                made = attempt::attempt(self.shared, worker, work) => made,
                // Nobody waits for this answer any more: the worker and the connection end with the future.
                () = self.ended_elsewhere() => return Ok(Round::Finished(Finish::Done)),
            },
            None => Ok(deterministic::answer()),
        };
        let elapsed_ms = self.moment().saturating_duration_since(begun).as_millis();
        match made {
            Ok(answer) => {
                tracing::info!(attempt = %attempt, elapsed_ms, "answer validated");
                self.settle(&attempt, &answer).await.map(Round::Finished)
            }
            Err(fault) => {
                let state = fault.state.as_str();
                tracing::warn!(attempt = %attempt, elapsed_ms, state, code = fault.code, "attempt gave no answer");
                self.after(attempt, fault).await
            }
        }
    }

    /// Ends when the run was ended by somebody else, such as an operator who gave it up.
    async fn ended_elsewhere(&self) {
        let mut news = self.shared.parts.reader.news().about(Topics::RUN_MOVED);
        news.mark_unchanged();
        // Without news there is nothing to look for.
        while news.changed().await.is_ok() {
            self.shared.parts.sleeper.sleep_ms(ENDED_LOOK_MS).await;
            news.mark_unchanged();
            let row = self.shared.parts.reader.run(self.ticket.run.id.clone()).await;
            // A look that fails is no end: the attempt's own commit finds out.
            if matches!(row, Ok(Some(row)) if !row.state.is_open()) {
                tracing::info!(run = %self.ticket.run.id, "run ended elsewhere while its request was on");
                return;
            }
        }
        std::future::pending().await
    }

    /// Settles an answer. A failure of the machine is tried again, as the answer is there and paid for.
    async fn settle(&self, attempt: &AttemptId, answer: &ValidatedAnswer) -> Result<Finish, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(frozen) = &self.frozen else { return Ok(Finish::Left) };
            let settlement = match frozen.settlement(self.shared, self.ticket, &self.trigger, attempt, answer)
            {
                Ok(settlement) => settlement,
                Err(settle::Error::Policy | settle::Error::NotAdmitted) => {
                    let code = BlockedReason::Policy;
                    let end = attempt_end(attempt.clone(), AttemptState::Answered, Some(code.as_str()));
                    return self.end(Some(end), End::Blocked(code)).await;
                }
                Err(error) => return Err(error.into()),
            };
            let output = settlement.output().clone();
            self.shared.reach("settle.before");
            match self.shared.parts.runs.settle(settlement).await {
                Ok(_) => {
                    self.shared.reach("settle.after");
                    let proposals = answer.proposals.len();
                    tracing::info!(run = %self.ticket.run.id, output = %output, proposals, "run settled");
                    return Ok(Finish::Done);
                }
                Err(error @ (StoreError::Precondition(_) | StoreError::Conflict { .. })) => {
                    return lost(&self.ticket.run, error);
                }
                Err(error) if tries >= SETTLE_TRIES_MAX => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(run = %self.ticket.run.id, error = %error, tries, "settle again");
                    self.shared.parts.sleeper.sleep_ms(verdict::wait_ms(tries, None)).await;
                }
            }
        }
    }

    /// Records a fault and says what follows: in one commit with the end of the run, where that follows.
    async fn after(&mut self, attempt: AttemptId, fault: Fault) -> Result<Round, Error> {
        let used = Used { attempts: self.past.attempts, unknown: self.past.unknown };
        let step = decide(&fault, used, self.attempts_max(), self.left_ms());
        let (input_tokens, output_tokens) = fault.tokens;
        let ended =
            AttemptEnd { input_tokens, output_tokens, ..attempt_end(attempt, fault.state, Some(fault.code)) };
        let end = match step {
            Step::Fail(code) => End::Failed(code),
            Step::Block(reason) => End::Blocked(reason),
            Step::Again { wait_ms } => {
                self.shared.reach("attempt-end.before");
                match self.shared.parts.runs.end_attempt(ended).await {
                    Ok(()) => {}
                    Err(error) => return lost(&self.ticket.run, error).map(Round::Finished),
                }
                self.shared.reach("attempt-end.after");
                self.past.unknown += u32::from(fault.state == AttemptState::Unknown);
                return Ok(Round::Again { wait_ms });
            }
        };
        self.end(Some(ended), end).await.map(Round::Finished)
    }

    fn abandoned_end(&self) -> Option<AttemptEnd> {
        self.abandoned.clone().map(|attempt| attempt_end(attempt, AttemptState::Abandoned, None))
    }

    async fn end(&self, attempt: Option<AttemptEnd>, end: End) -> Result<Finish, Error> {
        let attempts = (self.past.attempts, attempt);
        let Ticket { run, admissions, .. } = self.ticket;
        end::end(self.shared, run, &self.trigger, admissions, attempts, end).await
    }

    async fn block(&self, reason: BlockedReason) -> Result<Finish, Error> {
        self.end(self.abandoned_end(), End::Blocked(reason)).await
    }

    async fn hold(&self, reason: HeldReason) -> Result<Finish, Error> {
        let Ticket { run, admissions, .. } = self.ticket;
        end::hold(self.shared, run, &self.trigger, admissions, (self.held, reason)).await
    }
}
