//! One attempt: the packet into the jail, equal renderings, the one request, and two readings of the answer.
//!
//! It writes nothing to the store and decides nothing about the run. The parent's own rendering is what may be sent, and
//! its own reading is what may be settled; the worker can withhold, and nothing else.

use thought_contract::run::AttemptState;
use thought_protocol::answer::{FailReason, ValidatedAnswer};
use thought_protocol::packet::Packet;
use thought_protocol::result::{WorkerResult, confirm};
use thought_protocol::{Sensitive, provider};

use super::Shared;
use super::verdict::{Fault, Next, classify};
use crate::port::{JailError, ModelReply, Worker};
use crate::reason;

/// What an attempt works with.
pub(crate) struct Work<'a> {
    pub(crate) provider: &'a str,
    pub(crate) packet: &'a Packet,
    pub(crate) packet_bytes: Vec<u8>,
    /// Milliseconds that the run has left.
    pub(crate) left_ms: u64,
}

/// Makes one attempt with a sealed worker, which ends with it.
pub(crate) async fn attempt(
    shared: &Shared,
    mut worker: Box<dyn Worker>,
    work: Work<'_>,
) -> Result<ValidatedAnswer, Fault> {
    let timeout = shared.parts.sleeper.sleep_ms(work.left_ms);
    tokio::pin!(timeout);
    let before = AttemptState::RefusedBeforeRequest;
    // First the packet goes into the jail, then this side renders it too: both are at it at once.
    let both = async { tokio::join!(worker.render(work.packet_bytes), own_rendering(work.packet)) };
    let (worker_rendered, parent_rendered) = tokio::select! {
        biased;
        rendered = both => rendered,
        () = &mut timeout => return Err(Fault::fails(before, reason::RUN_TIMEOUT)),
    };
    let parent_rendered = parent_rendered.map_err(|error| Fault::of_reason(before, error.fail_reason()))?;
    let worker_rendered = worker_rendered.map_err(before_request)?;
    // The port compares again, and sends the parent's bytes alone; this comparison keeps a liar from costing anything.
    if parent_rendered != worker_rendered {
        return Err(Fault::of_reason(before, FailReason::RequestMismatch));
    }
    shared.reach("request.before");
    let reply = tokio::select! {
        biased;
        reply = shared.parts.model.request(work.provider, parent_rendered, worker_rendered) => reply,
        () = &mut timeout => ModelReply::Unknown { code: reason::RUN_TIMEOUT },
    };
    shared.reach("request.after");
    let body = classify(work.packet.api, reply)?;
    let answered = AttemptState::Answered;
    // The answer is there and paid for: reading it is bounded by the jail's own limits, not by the run's time.
    let result = worker
        .read(body.expose().clone())
        .await
        .map_err(|error| with_tokens(of_worker(answered, error), work.packet, &body))?;
    drop(worker);
    let result = WorkerResult::decode(&result)
        .map_err(|error| with_tokens(Fault::of_reason(answered, error.fail_reason()), work.packet, &body))?;
    confirm(work.packet, body.expose(), &result)
        .map_err(|reason| with_tokens(Fault::of_reason(answered, reason), work.packet, &body))
}

/// The rendering of this side, as a future that runs behind another one's first step.
async fn own_rendering(packet: &Packet) -> Result<Vec<u8>, provider::RenderError> {
    provider::render_request(packet)
}

/// What a worker's failure before the request means. One that was lost cost nothing and told nothing: as with a
/// connection that was not made, another attempt may follow.
fn before_request(error: JailError) -> Fault {
    let fault = of_worker(AttemptState::RefusedBeforeRequest, error);
    if !error.is_worker_lost() {
        return fault;
    }
    let exhausted = FailReason::WorkerProtocol.as_str();
    Fault { next: Next::Retry { retry_after_seconds: None, exhausted }, ..fault }
}

/// What a worker's failure means: its own word where it is one of the protocol's, else that it broke the protocol.
fn of_worker(state: AttemptState, error: JailError) -> Fault {
    let reason = error.code.parse::<FailReason>().unwrap_or(FailReason::WorkerProtocol);
    // A worker may say that it cannot go on; only the parent may say what an answer lacks.
    match reason {
        FailReason::ProtocolVersion if state == AttemptState::RefusedBeforeRequest => {
            Fault::of_reason(state, reason)
        }
        _ => Fault { code: error.code, ..Fault::of_reason(state, FailReason::WorkerProtocol) },
    }
}

/// Counts the tokens of an answer that will not be settled: they were spent.
fn with_tokens(fault: Fault, packet: &Packet, body: &Sensitive<Vec<u8>>) -> Fault {
    match provider::read_answer(packet, body.expose()) {
        Ok(answer) => Fault { tokens: (answer.usage.input_tokens, answer.usage.output_tokens), ..fault },
        Err(_unreadable) => fault,
    }
}
