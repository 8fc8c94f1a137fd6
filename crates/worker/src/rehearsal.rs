//! A rehearsal while nothing is asked: what an attempt does, on a packet of this room's own making.
//!
//! A process that has just begun meets each page of its own code, and of the memory that it takes, for the first time. Done
//! before the packet comes, that costs the person who waits nothing.

use std::hint::black_box;

use thought_protocol::capability::PacketCapability;
use thought_protocol::packet::{
    Api, Compat, OutputMode, PACKET_FORMAT, Packet, PacketMessage, TokenLimit, ToolChoice,
};
use thought_protocol::proposal::ToolName;
use thought_protocol::provider;
use thought_protocol::result::judge;

/// Messages of the rehearsed packet: as many as a long conversation shows.
const MESSAGES: usize = 64;
/// What each of them says.
const WORDS: &str = "What is rehearsed is said and heard by nobody; it is as long as a message of a person often is. \
                     \"Quoted\", on two lines,\nand with a \u{1f600} in it, so that all of the way is walked.";

const ANTHROPIC: &[u8] = br#"{"id":"msg_0","type":"message","role":"assistant","model":"none",
    "content":[{"type":"text","text":"Nobody hears this.\n"}],"stop_reason":"end_turn","stop_sequence":null,
    "usage":{"input_tokens":1,"output_tokens":1}}"#;
const OPENAI: &[u8] = br#"{"id":"chatcmpl-0","object":"chat.completion","created":1,"model":"none",
    "choices":[{"index":0,"message":{"role":"assistant","content":"Nobody hears this.\n","refusal":null},
    "finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// Walks the way of an attempt in both APIs; nothing of it is kept.
pub(crate) fn rehearse() {
    for (api, answer) in [(Api::AnthropicMessages, ANTHROPIC), (Api::OpenaiChat, OPENAI)] {
        // What it comes to is of no interest to anybody.
        black_box(walk(api, answer));
    }
}

/// The result's bytes; none where the way ends early.
fn walk(api: Api, answer: &[u8]) -> Option<Vec<u8>> {
    let packet = Packet::decode(&packet(api).encode().ok()?).ok()?;
    black_box(provider::render_request(&packet).ok()?);
    judge(&packet, answer).encode().ok()
}

fn packet(api: Api) -> Packet {
    let said = |index: usize| match index % 2 {
        0 => PacketMessage::User { text: WORDS.to_owned(), images: Vec::new() },
        _ => PacketMessage::Assistant { text: WORDS.to_owned() },
    };
    Packet {
        packet_format: PACKET_FORMAT,
        api,
        model: "none".to_owned(),
        compat: Compat::default(),
        token_limit: TokenLimit::default(),
        max_output_tokens: 1,
        output_mode: OutputMode::ConversationText,
        system: WORDS.to_owned(),
        messages: (0..=MESSAGES).map(said).collect(),
        tools: ToolName::ALL.to_vec(),
        tool_choice: Some(ToolChoice::Auto),
        capability: PacketCapability::default(),
    }
}

#[cfg(test)]
mod tests {
    use thought_protocol::result::{Outcome, WorkerResult};

    use super::*;

    #[test]
    fn the_whole_way_is_walked() {
        for (api, answer) in [(Api::AnthropicMessages, ANTHROPIC), (Api::OpenaiChat, OPENAI)] {
            let result = WorkerResult::decode(&walk(api, answer).unwrap()).unwrap();
            assert!(matches!(result.outcome, Outcome::Answer { .. }), "{api:?}");
        }
    }
}
