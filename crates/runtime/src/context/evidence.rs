//! From the store's rows to the evidence that pure code reads.

use thought_contract::conversation::{Reply, RunEvidence, TurnEvidence};
use thought_contract::event::EventType;
use thought_contract::run::RunState;
use thought_contract::snapshot::build::DocumentEvidence;
use thought_contract::snapshot::{DeclarationBytes, LoadedEvidence};
use thought_contract::time::Timestamp;
use thought_protocol::EventId;
use thought_store::row::{DeclarationRow, HistoryRun, HistoryTurn, ReplyState};

/// The output whose delivery is still on the way and that settled last, with the moment of its settlement. A caller
/// that waits for it waits for all of them: every other one's time runs out before. An answer to an agent is its own
/// receipt and is never waited for.
pub fn pending_reply(turns: &[HistoryTurn]) -> Option<(EventId, Timestamp)> {
    turns
        .iter()
        .flat_map(|turn| &turn.runs)
        .filter(|run| run.run.state == RunState::Completed && run.reply == ReplyState::Sending)
        .filter_map(|run| run.output.as_ref())
        .filter(|output| output.envelope.event_type == EventType::MessageObservation)
        .map(|output| (output.envelope.id.clone(), output.envelope.recorded_at))
        .max_by_key(|(_, settled_at)| *settled_at)
}

/// The store's turns as evidence.
pub fn turn_evidence(turns: Vec<HistoryTurn>) -> Vec<TurnEvidence> {
    turns
        .into_iter()
        .map(|turn| TurnEvidence {
            ordinal: turn.ordinal,
            message: turn.message,
            runs: turn.runs.into_iter().map(run_evidence).collect(),
        })
        .collect()
}

fn run_evidence(history: HistoryRun) -> RunEvidence {
    RunEvidence {
        run: history.run.id,
        agent: history.run.declaration,
        version: history.run.version,
        state: history.run.state,
        output: history.output,
        completed: history.completed,
        proposals: history.proposals,
        reply: match history.reply {
            ReplyState::Receipt(_) => Reply::Delivered,
            ReplyState::Sending => Reply::Pending,
            ReplyState::NotDelivered => Reply::NotDelivered,
        },
        receipt: history.receipt,
        judgment: history.judgment,
    }
}

pub(super) fn put_turns(loaded: &mut LoadedEvidence, turns: Vec<TurnEvidence>) {
    for turn in turns {
        loaded.put_event(turn.message);
        for run in turn.runs {
            let events = [run.output, run.completed, run.judgment].into_iter().flatten();
            events.chain(run.proposals).for_each(|event| loaded.put_event(event));
        }
    }
}

pub(super) fn put_documents(loaded: &mut LoadedEvidence, documents: Vec<DocumentEvidence>) {
    for document in documents {
        loaded.put_version(document.reference.version_id, document.content);
    }
}

pub(super) fn put_declaration(loaded: &mut LoadedEvidence, stored: &DeclarationRow) {
    let bytes = DeclarationBytes {
        declaration: stored.declaration.expose(),
        prompt: stored.prompt.expose(),
        manifest: stored.manifest.expose(),
    };
    loaded.put_declaration(&stored.id, stored.version, bytes);
}
