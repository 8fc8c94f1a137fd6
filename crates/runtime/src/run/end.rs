//! The endings of a run that has no answer, and its holding: one commit each, with the event where one is due.

use thought_contract::draft::{self, Ending, NoticeSubject};
use thought_contract::event::{EventType, StoredEvent};
use thought_contract::payload::{Incident, NoticeName, NoticeRequested, RunEnded, TelegramMessage};
use thought_contract::run::{AttemptState, BlockedReason, HeldReason};
use thought_protocol::AttemptId;
use thought_protocol::answer::FailReason;
use thought_store::command::AttemptEnd;
use thought_store::{Precondition, StoreError};

use super::{Admissions, Error, Finish, RunRef, Shared, clear_admitted};
use crate::consumer::HeldNotice;
use crate::reason;

/// How a run ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// No valid answer.
    Failed(&'static str),
    /// It may not go on.
    Blocked(BlockedReason),
    /// It is given up.
    Abandoned(&'static str),
}

impl End {
    const fn ending(self) -> Ending {
        match self {
            Self::Failed(_) => Ending::Failed,
            Self::Blocked(_) => Ending::Blocked,
            Self::Abandoned(_) => Ending::Abandoned,
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::Failed(reason) | Self::Abandoned(reason) => reason,
            Self::Blocked(reason) => reason.as_str(),
        }
    }
}

/// An attempt that ends without its answer being settled.
pub(crate) fn attempt_end(attempt: AttemptId, state: AttemptState, reason: Option<&str>) -> AttemptEnd {
    AttemptEnd { attempt, state, reason: reason.map(str::to_owned), input_tokens: None, output_tokens: None }
}

/// Ends a run: its attempt where one is on, the event, the row and progress, in one commit.
pub(crate) async fn end(
    shared: &Shared,
    run: &RunRef,
    trigger: &StoredEvent,
    admissions: &Admissions,
    (attempts, attempt): (u32, Option<AttemptEnd>),
    end: End,
) -> Result<Finish, Error> {
    let payload = RunEnded { run: run.id.clone(), attempts, reason: end.reason().to_owned() };
    let declaration = shared.parts.runs.declaration();
    let event = draft::run_ended(end.ending(), declaration, trigger, &payload, shared.now())?;
    let mut admission = admissions.slot.lock().await;
    shared.reach("end.before");
    let ended = shared.parts.runs.end(run.id.clone(), admission.clone(), attempt, end.reason(), event).await;
    clear_admitted(&mut admission, &ended);
    match ended {
        Ok(_) => {
            shared.reach("end.after");
            tracing::info!(run = %run.id, reason = end.reason(), attempts, "run ended without an answer");
            drop(admission);
            if INCIDENTS.contains(&end.reason()) {
                incident(shared, run, attempts, end.reason()).await;
            }
            Ok(Finish::Done)
        }
        Err(error) => lost(run, error),
    }
}

/// Reasons that an operator should look at: a worker that said other things than it read, or evidence that is gone.
const INCIDENTS: [&str; 3] =
    [FailReason::RequestMismatch.as_str(), FailReason::WorkerMismatch.as_str(), reason::CONTEXT_UNREADABLE];

/// Records an incident. The run has ended already: a failure to tell of it is logged and changes nothing.
async fn incident(shared: &Shared, run: &RunRef, attempts: u32, kind: &str) {
    let incidents = &shared.parts.incidents;
    let payload = Incident { kind: kind.to_owned(), subject: run.id.to_string(), count: u64::from(attempts) };
    shared.reach("incident.before");
    let recorded = match draft::incident(incidents.role(), &payload, shared.now()) {
        Ok(draft) => incidents.record(draft).await.map(drop).map_err(Error::from),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = recorded {
        tracing::warn!(run = %run.id, error = %error, "incident not recorded");
    }
    shared.reach("incident.after");
}

/// A commit that lost its compare-and-set: somebody else settled, gave up or took over the run. What this task has is
/// discarded.
pub(crate) fn lost(run: &RunRef, error: StoreError) -> Result<Finish, Error> {
    match error {
        StoreError::Precondition(Precondition::RunState | Precondition::AttemptStarted)
        | StoreError::Conflict { .. } => {
            tracing::info!(run = %run.id, "run was ended elsewhere; its answer is discarded");
            Ok(Finish::Done)
        }
        other => Err(other.into()),
    }
}

/// Holds a run, unless it is held for the same reason already, and asks for the notice of the day.
pub(crate) async fn hold(
    shared: &Shared,
    run: &RunRef,
    trigger: &StoredEvent,
    admissions: &Admissions,
    (known, reason): (Option<HeldReason>, HeldReason),
) -> Result<Finish, Error> {
    if known != Some(reason) {
        let mut admission = admissions.slot.lock().await;
        shared.reach("hold.before");
        let held = shared.parts.runs.hold(run.id.clone(), admission.clone(), reason).await;
        clear_admitted(&mut admission, &held);
        match held {
            Ok(()) => {
                shared.reach("hold.after");
                tracing::info!(run = %run.id, reason = reason.as_str(), "run held");
            }
            Err(error) => return lost(run, error),
        }
    }
    notice(shared, trigger).await?;
    Ok(Finish::Held(reason))
}

/// One notice a chat and day, where the configuration wants it and the run answers a person in a chat.
async fn notice(shared: &Shared, trigger: &StoredEvent) -> Result<(), Error> {
    let envelope = &trigger.envelope;
    let wanted = shared.parts.settings.held_notice == HeldNotice::On;
    if !wanted || envelope.event_type != EventType::TelegramMessage {
        return Ok(());
    }
    let message: TelegramMessage = trigger.payload()?;
    let at = shared.now();
    let subject = draft::telegram_correlation(message.chat_id, message.thread_id);
    if !shared.first_notice(&subject, &at.day()) {
        return Ok(());
    }
    let about = NoticeSubject {
        subject,
        day: Some(at.day()),
        cause: Some((envelope.root_id.clone(), envelope.id.clone())),
    };
    let payload =
        NoticeRequested { name: NoticeName::RunHeld, chat_id: message.chat_id, thread_id: message.thread_id };
    let draft = draft::notice_requested(shared.parts.notices.role(), &about, &payload, at)?;
    shared.reach("notice.before");
    shared.parts.notices.request(draft).await?;
    shared.reach("notice.after");
    Ok(())
}
