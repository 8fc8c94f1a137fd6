//! The frozen context in the hands of a run: built for its first attempt, rebuilt for one that a dead process left.

use thought_contract::declaration::Runner;
use thought_contract::event::StoredEvent;
use thought_contract::run::{BlockedReason, HeldReason, snapshot_id};
use thought_contract::snapshot::{Snapshot, SnapshotError};
use thought_contract::time::Timestamp;
use thought_protocol::answer::ValidatedAnswer;
use thought_protocol::limits::DELIVERY_WAIT_SECONDS_MAX;
use thought_protocol::packet::Packet;
use thought_protocol::{AttemptId, EventId, Sensitive};
use thought_store::BoxFuture;
use thought_store::command::NewSnapshot;
use thought_store::handle::Settlement;

use super::{Error, Shared, Ticket, deterministic, settle};
use crate::consumer::StopSignal;
use crate::context::{Ask, Built, ContextBuilder, ContextError, PendingReplies, model_binding, rebuild};
use crate::port::Binding;
use crate::reason;

/// What every attempt of a run uses.
pub(crate) struct Frozen {
    pub(crate) packet: Packet,
    pub(crate) packet_bytes: Sensitive<Vec<u8>>,
    /// What the first attempt still has to store.
    pub(crate) new_snapshot: Option<NewSnapshot>,
    snapshot: Snapshot,
}

/// What freezing came to.
pub(crate) enum Freeze {
    Ready(Box<Frozen>),
    Held(HeldReason),
    Blocked(BlockedReason),
    Failed(&'static str),
    Left,
}

/// Builds the context of a run that has no attempt yet. Earlier corrections of its conversation are settled first; an
/// earlier answer that is on its way to the chat is waited for, within its bound.
pub(crate) async fn first(
    shared: &Shared,
    ticket: &Ticket,
    trigger: &StoredEvent,
    binding: &Binding,
    stop: &StopSignal,
) -> Result<Freeze, Error> {
    let parts = &shared.parts;
    let both = async { tokio::join!(budget_is_spent(shared), parts.corrections.settle_before(trigger)) };
    tokio::select! {
        (is_spent, settled) = both => {
            if is_spent? {
                return Ok(Freeze::Held(HeldReason::DailyBudget));
            }
            settled?;
        }
        () = stop.stopping() => return Ok(Freeze::Left),
    }
    let builder = ContextBuilder::new(&parts.reader, &*parts.documents, &*parts.images);
    let mut news = parts.reader.news();
    let mut pending = PendingReplies::Await;
    let mut wait = None;
    loop {
        // Seen before the look, so that a receipt in between wakes the wait.
        news.mark_unchanged();
        let ask = Ask {
            run: &ticket.run.id,
            stored: &shared.active.stored,
            declaration: &shared.active.declaration,
            binding,
            trigger,
            pending,
        };
        let (output, settled_at) = match builder.build(ask).await {
            Ok(Built::Ready(built)) => {
                return Ok(Freeze::Ready(Box::new(Frozen {
                    packet: built.packet,
                    packet_bytes: built.packet_bytes,
                    new_snapshot: Some(built.snapshot),
                    snapshot: built.snapshot_decoded,
                })));
            }
            Ok(Built::Held(reason)) => return Ok(Freeze::Held(reason)),
            Ok(Built::Blocked(reason)) => return Ok(Freeze::Blocked(reason)),
            Ok(Built::Pending { output, settled_at }) => (output, settled_at),
            Err(error) => return unbuilt(ticket, error),
        };
        let Some(over) = delivery_wait(shared, &mut wait, &output, settled_at) else {
            tracing::info!(run = %ticket.run.id, output = %output, "earlier answer still not delivered: left out");
            pending = PendingReplies::Omit;
            continue;
        };
        tokio::select! {
            _ = news.changed() => {}
            () = over => pending = PendingReplies::Omit,
            () = stop.stopping() => return Ok(Freeze::Left),
        }
    }
}

/// Whether the day's requests are spent, so that nothing is built for them. The attempt's commit counts them again.
async fn budget_is_spent(shared: &Shared) -> Result<bool, Error> {
    let declaration = &shared.active.declaration;
    let day = shared.now().day();
    let spent = shared.parts.reader.requests_on(declaration.id().to_string(), day).await?;
    Ok(spent >= u64::from(declaration.budget().requests_per_day_max))
}

/// A wait for a reply that is on its way: the first that was waited for, and what ends when the time is up.
type DeliveryWait = (EventId, BoxFuture<'static, ()>);

/// The end of the wait for a reply; none when it settled too long ago to be waited for.
///
/// The calendar only says how much of the bound is left as the wait begins, never more than the bound; from there it is
/// counted down by what was waited, and once for all replies. A calendar that steps neither prolongs it nor cuts it.
fn delivery_wait<'a>(
    shared: &Shared,
    wait: &'a mut Option<DeliveryWait>,
    output: &EventId,
    settled_at: Timestamp,
) -> Option<&'a mut BoxFuture<'static, ()>> {
    let is_waited_for = wait.as_ref().is_some_and(|(known, _)| known == output);
    let gone_ms = u64::try_from(shared.now().since_ms(settled_at)).unwrap_or(0);
    let left_ms = (DELIVERY_WAIT_SECONDS_MAX * 1_000).saturating_sub(gone_ms);
    if left_ms == 0 && !is_waited_for {
        return None;
    }
    let (_, over) = wait.get_or_insert_with(|| (output.clone(), shared.parts.sleeper.sleep_ms(left_ms)));
    Some(over)
}

/// Rebuilds the stored context of a run that has attempts: the same bytes as before, or none.
pub(crate) async fn again(shared: &Shared, ticket: &Ticket) -> Result<Freeze, Error> {
    let parts = &shared.parts;
    let (snapshot, packet) = match rebuild(&parts.reader, &*parts.images, &ticket.run.id).await {
        Ok(rebuilt) => rebuilt,
        Err(error) => return unbuilt(ticket, error),
    };
    let packet_bytes = Sensitive::new(packet.encode().map_err(ContextError::from)?);
    Ok(Freeze::Ready(Box::new(Frozen { packet, packet_bytes, new_snapshot: None, snapshot })))
}

/// What a context that was not built means: another try later, a wait for the context root, or the end of the run where
/// trying again cannot help.
fn unbuilt(ticket: &Ticket, error: ContextError) -> Result<Freeze, Error> {
    match error {
        // Nobody knows what stands in the documents now: what was scanned before is not sent in their place.
        ContextError::Documents(documents) if documents.is_root_gone() => {
            tracing::warn!(run = %ticket.run.id, code = documents.code, "no context root");
            Ok(Freeze::Held(HeldReason::DocumentMissing))
        }
        ContextError::Store(_) | ContextError::Documents(_) => Err(error.into()),
        ContextError::Snapshot(SnapshotError::Format { .. }) => {
            Ok(Freeze::Blocked(BlockedReason::ProtocolVersion))
        }
        other => {
            tracing::warn!(run = %ticket.run.id, error = %other, "context cannot be had");
            Ok(Freeze::Failed(reason::CONTEXT_UNREADABLE))
        }
    }
}

impl Frozen {
    /// Whether the context was frozen for this API and model.
    pub(crate) fn is_bound_to(&self, binding: &Binding) -> bool {
        self.snapshot.binding() == model_binding(binding)
    }

    /// The settlement of a valid answer to this context.
    pub(crate) fn settlement(
        &self,
        shared: &Shared,
        ticket: &Ticket,
        trigger: &StoredEvent,
        attempt: &AttemptId,
        answer: &ValidatedAnswer,
    ) -> Result<Settlement, settle::Error> {
        let snapshot = snapshot_id(&ticket.run.id);
        let memory_target = self.snapshot.memory_target();
        let correction_targets = self.snapshot.correction_targets();
        let declaration = &shared.active.declaration;
        let provider = match declaration.runner() {
            Runner::Deterministic => deterministic::NAME,
            Runner::Pi => declaration.provider(),
        };
        let evidence = settle::Evidence {
            declaration,
            fingerprint: &shared.active.stored.fingerprint,
            trigger,
            run: &ticket.run.id,
            attempt,
            snapshot: &snapshot,
            provider,
            model: &self.packet.model,
            capability: &self.packet.capability,
            memory_target: memory_target.as_ref(),
            correction_targets: &correction_targets,
        };
        settle::settlement(&evidence, answer, shared.now())
    }
}
