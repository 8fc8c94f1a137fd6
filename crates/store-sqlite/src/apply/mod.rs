//! Applies commits: each operation with its precondition, inside a transaction that the writer owns.

mod activation;
mod channel;
mod delivery;
mod document;
mod event;
mod proposal;
mod review;
mod run;

use thought_store::command::{Commit, Op};
use thought_store::engine::Committed;
use thought_store::{Precondition, StoreError};

use crate::session::Session;

/// Applies the operations in order. An error leaves it to the caller to undo what came before.
pub(crate) fn commit(session: Session<'_>, commit: &Commit) -> Result<Committed, StoreError> {
    let mut committed = Committed::default();
    for op in &commit.ops {
        match op {
            Op::Append(draft) => committed.appended.push(event::append(session, commit.at, draft)?),
            Op::SpoolPut { channel, update, body } => {
                channel::spool_put(session, commit.at, channel, *update, body)?;
            }
            Op::SpoolDelete { channel, update } => channel::spool_delete(session, channel, *update)?,
            Op::SpoolFailed { channel, update, park } => {
                channel::spool_failed(session, channel, *update, *park)?;
            }
            Op::CountRefusedChat { channel, chat, kind } => {
                channel::count_refused(session, commit.at, channel, *chat, kind)?;
            }
            Op::SetCursor { name, position } => channel::set_cursor(session, name, *position)?,
            Op::SetRole { role, presence } => channel::set_role(session, role, *presence)?,
            Op::AdmitRun(new) => run::admit(session, commit.at, new)?,
            Op::SetScanned { declaration, source, sequence } => {
                run::set_scanned(session, declaration, source, *sequence)?;
            }
            Op::PutSnapshot { run, snapshot } => run::put_snapshot(session, run, snapshot)?,
            Op::StartAttempt { run, attempt } => run::start_attempt(session, commit.at, run, attempt)?,
            Op::EndAttempt(end) => run::end_attempt(session, commit.at, end)?,
            Op::HoldRun { run, reason } => run::hold(session, run, *reason)?,
            Op::EndRun { run, state, reason, output, terminal } => {
                let ending = run::Ending { run, state: *state, reason, output, terminal };
                run::end(session, commit.at, &ending)?;
            }
            Op::TrackProposal(new) => proposal::track(session, new)?,
            Op::MoveProposal { proposal, from, to } => proposal::step(session, proposal, *from, *to)?,
            Op::ExpectJudgment { output, active } => {
                review::expect_judgment(session, output, active.as_ref())?;
            }
            Op::SettleCorrection { command, outcome } => {
                review::settle_correction(session, command, outcome)?;
            }
            Op::PutIntent(new) => review::put_intent(session, commit.at, new)?,
            Op::ClearIntent { decision } => review::clear_intent(session, decision)?,
            Op::InstallDeclaration(new) => activation::install(session, commit.at, new)?,
            Op::PutChangeover(row) => activation::put_changeover(session, row)?,
            Op::AckChangeover { declaration, token, role } => {
                activation::ack_changeover(session, declaration, token, role)?;
            }
            Op::ClearChangeover { declaration, token } => {
                activation::clear_changeover(session, declaration, token)?;
            }
            Op::PutVersion(new) => document::put_version(session, new)?,
            Op::RemoveDocument { document, previous } => document::remove(session, document, previous)?,
            Op::OpenDelivery { cause, kind, channel, chat, thread, chunk_utf16_lengths } => {
                let opening = delivery::Opening { cause, kind: *kind, channel, chat: *chat, thread: *thread };
                delivery::open(session, commit.at, &opening, chunk_utf16_lengths)?;
            }
            Op::MoveChunk { cause, kind, ordinal, from, to, message, confirmed_by } => {
                let step = delivery::ChunkStep { ordinal: *ordinal, from: *from, to: *to, message: *message };
                delivery::move_chunk(session, cause, *kind, &step, confirmed_by.as_deref())?;
            }
            Op::MoveDelivery { cause, kind, to, reason, receipt } => {
                delivery::move_delivery(session, cause, *kind, *to, (reason.as_deref(), receipt.as_ref()))?;
            }
        }
    }
    Ok(committed)
}

/// Refuses a commit whose precondition does not hold.
fn require(holds: bool, precondition: Precondition) -> Result<(), StoreError> {
    if holds { Ok(()) } else { Err(StoreError::Precondition(precondition)) }
}
