//! The arguments of a call: the first byte chooses the tool, the rest is what the model wrote.
//!
//! What is taken reads back from its own canonical form as the same, and history can show it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thought_protocol::capability::PacketCapability;
use thought_protocol::proposal::{ProposalCall, ToolName};
use thought_protocol::strict_json;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let tool = ToolName::ALL[usize::from(*choice) % ToolName::ALL.len()];
    let id = |number: u32| format!("evt_{number:032}").parse().expect("an id");
    let capability = PacketCapability {
        memory_target: true,
        correction_targets: vec![id(1), id(2)],
        evidence: vec![id(1), id(2), id(3)],
    };
    let Ok(value) = strict_json::parse(text) else { return };
    let Ok(call) = ProposalCall::from_arguments(tool, &value, &capability) else { return };
    let resolved = call.resolved(&capability).expect("an admitted target resolves");
    let canonical = resolved.canonical_arguments().expect("arguments have a canonical form");
    let again = strict_json::parse(canonical.as_bytes()).expect("the canonical form is strict JSON");
    assert_eq!(ProposalCall::from_arguments(tool, &again, &capability), Ok(resolved));
});
