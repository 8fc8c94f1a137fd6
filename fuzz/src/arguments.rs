//! The arguments of a call: the first byte chooses the tool, the rest is what the model wrote.
//!
//! What is taken reads back from its own canonical form as the same, and history can show it. What is refused was admitted
//! by nothing: with less admitted it is refused too. What is told of either does not quote it.

use thought_protocol::capability::PacketCapability;
use thought_protocol::proposal::{ProposalCall, ToolName};
use thought_protocol::strict_json;

use super::{Seen, is_dark, is_dark_error};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let Some((choice, text)) = data.split_first() else { return Seen::Refused };
    let tool = ToolName::ALL[usize::from(*choice) % ToolName::ALL.len()];
    let id = |number: u32| format!("evt_{number:032}").parse().expect("an id");
    let capability = PacketCapability {
        memory_target: true,
        correction_targets: vec![id(1), id(2)],
        evidence: vec![id(1), id(2), id(3)],
    };
    let nothing = PacketCapability { memory_target: false, correction_targets: vec![], evidence: vec![] };
    let value = match strict_json::parse(text) {
        Ok(value) => value,
        Err(error) => {
            is_dark_error(&error);
            return Seen::Refused;
        }
    };
    let call = match ProposalCall::from_arguments(tool, &value, &capability) {
        Ok(call) => call,
        Err(error) => {
            is_dark_error(&error);
            assert!(ProposalCall::from_arguments(tool, &value, &nothing).is_err(), "refused stays refused");
            return Seen::Refused;
        }
    };
    is_dark(&call);
    let resolved = call.resolved(&capability).expect("an admitted target resolves");
    let canonical = resolved.canonical_arguments().expect("arguments have a canonical form");
    let again = strict_json::parse(canonical.as_bytes()).expect("the canonical form is strict JSON");
    assert_eq!(ProposalCall::from_arguments(tool, &again, &capability), Ok(resolved));
    Seen::Taken
}
