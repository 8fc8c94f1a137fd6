//! A provider's raw answer, on both APIs: the first byte chooses what was asked, the rest is the body.
//!
//! Whatever it is, reading it ends in one reason or in a whole answer; worker and parent agree; a worker that says anything
//! else is not believed; an answer that is taken keeps every bound; and nothing that is told of it quotes it.

use std::collections::HashSet;
use std::sync::LazyLock;

use thought_protocol::answer::{Answer, Usage};
use thought_protocol::limits::{CALLS_MAX, VISIBLE_TEXT_CHARACTERS_MAX};
use thought_protocol::packet::Packet;
use thought_protocol::reason::FailReason;
use thought_protocol::result::{Outcome, WorkerResult, confirm, judge};

use super::{Seen, is_dark};

static PACKETS: LazyLock<Vec<Packet>> = LazyLock::new(|| {
    let written = include_str!("../../crates/protocol/tests/vectors/packets.json");
    let packets: std::collections::BTreeMap<String, Packet> =
        serde_json::from_str(written).expect("the packets of the vectors read");
    packets.into_values().collect()
});

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let Some((choice, body)) = data.split_first() else { return Seen::Refused };
    let packet = &PACKETS[usize::from(*choice) % PACKETS.len()];
    let judged = judge(packet, body);
    let told = judged.encode().expect("a result encodes");
    let result = WorkerResult::decode(&told).expect("what is encoded decodes");
    assert_eq!(result, judged);
    is_dark(&result);
    let confirmed = confirm(packet, body, &result);
    is_dark(&confirmed);
    let answer = match confirmed {
        Ok(answer) => answer,
        Err(reason) => {
            assert!(matches!(result.outcome, Outcome::Failed { reason: told } if told == reason));
            // A worker that claims an answer makes none of it.
            assert_eq!(confirm(packet, body, &claimed()).err(), Some(reason));
            return Seen::Refused;
        }
    };
    for other in [WorkerResult::of_failure(FailReason::WorkerProtocol), changed(&result)] {
        assert_eq!(confirm(packet, body, &other).err(), Some(FailReason::WorkerMismatch));
    }
    let kinds: HashSet<_> = answer.proposals.iter().map(|call| call.kind()).collect();
    assert_eq!(kinds.len(), answer.proposals.len());
    assert!(answer.proposals.len() <= CALLS_MAX);
    assert!(answer.proposals.iter().all(|call| packet.offered().contains(&call.kind().tool())));
    assert!(!answer.summary.is_empty() && answer.summary.chars().count() <= VISIBLE_TEXT_CHARACTERS_MAX);
    for call in answer.proposals {
        assert!(call.resolved(&packet.capability).is_some(), "what is taken is bound to something admitted");
    }
    Seen::Taken
}

/// An answer that no provider gave.
fn claimed() -> WorkerResult {
    let text = Some("Made up.".to_owned());
    let calls = Vec::new();
    WorkerResult::of_answer(Answer {
        text,
        truncated: false,
        calls,
        thinking_parts_dropped: 0,
        usage: Usage::default(),
    })
}

/// The same result with another text.
fn changed(result: &WorkerResult) -> WorkerResult {
    let mut result = result.clone();
    if let Outcome::Answer { text, .. } = &mut result.outcome {
        text.get_or_insert_default().push('!');
    }
    result
}
