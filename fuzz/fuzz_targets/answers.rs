//! A provider's raw answer, on both APIs: the first byte chooses what was asked, the rest is the body.
//!
//! Whatever it is, reading it ends in one reason or in a whole answer; worker and parent agree; and an answer that is
//! taken keeps every bound.
#![no_main]

use std::collections::HashSet;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use thought_protocol::limits::{CALLS_MAX, VISIBLE_TEXT_CHARACTERS_MAX};
use thought_protocol::packet::Packet;
use thought_protocol::result::{WorkerResult, confirm, judge};

static PACKETS: LazyLock<Vec<Packet>> = LazyLock::new(|| {
    let written = include_str!("../../crates/protocol/tests/vectors/packets.json");
    let packets: std::collections::BTreeMap<String, Packet> =
        serde_json::from_str(written).expect("the packets of the vectors read");
    packets.into_values().collect()
});

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let packet = &PACKETS[usize::from(*choice) % PACKETS.len()];
    let told = judge(packet, body).encode().expect("a result encodes");
    let result = WorkerResult::decode(&told).expect("what is encoded decodes");
    let Ok(answer) = confirm(packet, body, &result) else { return };
    let kinds: HashSet<_> = answer.proposals.iter().map(|call| call.kind()).collect();
    assert_eq!(kinds.len(), answer.proposals.len());
    assert!(answer.proposals.len() <= CALLS_MAX);
    assert!(answer.proposals.iter().all(|call| packet.offered().contains(&call.kind().tool())));
    assert!(!answer.summary.is_empty() && answer.summary.chars().count() <= VISIBLE_TEXT_CHARACTERS_MAX);
    for call in answer.proposals {
        assert!(call.resolved(&packet.capability).is_some(), "what is taken is bound to something admitted");
    }
});
