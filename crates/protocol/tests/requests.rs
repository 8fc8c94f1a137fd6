//! What is sent: every request of the table member for member, and the bytes of some pinned for ever.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a fixture that cannot be read fails the test")]

use serde_json::Value;
use thought_protocol::Sha256Hex;
use thought_protocol::packet::{Packet, PacketError, PacketImage, PacketMessage, ToolChoice};
use thought_protocol::proposal::{ToolName, description, request_schema};
use thought_protocol::provider::{RenderError, render_request};

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    packet: Packet,
    request: Value,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("requests/requests.json")).unwrap()
}

fn packet(name: &str) -> Packet {
    cases().into_iter().find(|case| case.name == name).unwrap().packet
}

/// Puts descriptions and schemas where the table names them.
fn fill(value: &mut Value) {
    match value {
        Value::String(text) => {
            let tool = |name: &str| ToolName::from_wire(name).unwrap();
            if let Some(name) = text.strip_prefix("@description ") {
                *value = description(tool(name)).into();
            } else if let Some(name) = text.strip_prefix("@schema ") {
                *value = request_schema(tool(name));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(fill),
        Value::Object(members) => members.values_mut().for_each(fill),
        _ => {}
    }
}

#[test]
fn every_request_of_the_table_is_rendered_as_written() {
    for mut case in cases() {
        fill(&mut case.request);
        let bytes = render_request(&case.packet).unwrap();
        let got: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(got, case.request, "{}", case.name);
        assert_eq!(render_request(&case.packet).unwrap(), bytes, "{}", case.name);
    }
}

#[test]
fn nothing_on_offer_and_no_tool_history_leaves_no_trace_of_tools() {
    for api in ["anthropic-messages", "openai-chat"] {
        let bytes = render_request(&packet(&format!("{api}: one message, nothing on offer"))).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("tool") && !text.contains("stream\":"), "{text}");
    }
}

#[test]
fn the_bytes_of_a_packet_format_are_frozen() {
    // A change here would make stored snapshots render otherwise than when they were answered: raise the packet format,
    // once a version was released.
    let shown: Vec<String> = ["anthropic-messages: history", "openai-chat: history"]
        .into_iter()
        .map(|name| String::from_utf8(render_request(&packet(name)).unwrap()).unwrap())
        .collect();
    assert_eq!(
        shown,
        [
            r#"{"model":"model-1","max_tokens":512,"system":"You are the stream.\n\nMemory: likes tea.","messages":[{"role":"user","content":"One."},{"role":"assistant","content":"First."},{"role":"user","content":"Two."}]}"#,
            r#"{"model":"model-1","max_completion_tokens":512,"messages":[{"role":"system","content":"You are the stream.\n\nMemory: likes tea."},{"role":"user","content":"One."},{"role":"assistant","content":"First."},{"role":"user","content":"Two."}]}"#,
        ]
    );
    let all: Vec<u8> = cases().iter().flat_map(|case| render_request(&case.packet).unwrap()).collect();
    assert_eq!(
        Sha256Hex::of(&all).as_str(),
        "a68de00f7ff92b86bf92b96436d017a1c4fe5619620e36b01386efcc18174d7c"
    );
}

#[test]
fn packets_read_back_from_their_canonical_bytes() {
    for case in cases() {
        let bytes = case.packet.encode().unwrap();
        let decoded = Packet::decode(&bytes).unwrap();
        assert_eq!(decoded, case.packet, "{}", case.name);
        assert_eq!(decoded.sha256().unwrap(), Sha256Hex::of(&bytes));
    }
}

#[test]
fn another_packet_version_is_told_apart_from_a_broken_packet() {
    let text = String::from_utf8(packet("openai-chat: history").encode().unwrap()).unwrap();
    let newer = text.replace("\"packetFormat\":1", "\"packetFormat\":2,\"novelty\":true");
    assert!(matches!(Packet::decode(newer.as_bytes()), Err(PacketError::Format { found: 2 })));
    for (name, broken) in [
        ("unknown member", text.replace("\"packetFormat\":1", "\"packetFormat\":1,\"path\":\"x\"")),
        ("unknown member of a message", text.replace("\"images\":[]", "\"images\":[],\"role\":\"system\"")),
        ("missing member", text.replace("\"model\":\"model-1\",", "")),
        ("ill-typed member", text.replace("\"maxOutputTokens\":512", "\"maxOutputTokens\":\"512\"")),
        ("unknown api", text.replace("openai-chat", "openai-responses")),
        ("version as text", text.replace("\"packetFormat\":1", "\"packetFormat\":\"1\"")),
        ("no version", text.replace(",\"packetFormat\":1", "")),
    ] {
        assert_ne!(broken, text, "{name}");
        let error = Packet::decode(broken.as_bytes()).unwrap_err();
        assert!(matches!(error, PacketError::Shape { .. }), "{name}: {error}");
    }
    for broken in [
        text.replace("\"packetFormat\":1", "\"packetFormat\":1,\"packetFormat\":1"),
        format!("{text} "),
        text[..text.len() - 1].to_owned(),
        format!("{text}{text}"),
    ] {
        let read = Packet::decode(broken.as_bytes());
        assert!(matches!(read, Err(PacketError::Json(_))) || broken.ends_with(' '), "{read:?}");
    }
}

fn user(text: &str) -> PacketMessage {
    PacketMessage::User { text: text.to_owned(), images: Vec::new() }
}

fn with_image(media_type: &str, data_base64: &str) -> PacketMessage {
    let image = PacketImage { media_type: media_type.to_owned(), data_base64: data_base64.to_owned() };
    PacketMessage::User { text: String::new(), images: vec![image] }
}

#[test]
fn a_packet_out_of_contract_is_not_rendered() {
    type Break = fn(&mut Packet);
    type Told = fn(&RenderError) -> bool;
    let breaks: [(&str, Break, Told); 19] = [
        ("no message", |p| p.messages.clear(), |e| matches!(e, RenderError::Order)),
        ("assistant first", |p| drop(p.messages.remove(0)), |e| matches!(e, RenderError::Order)),
        ("assistant last", |p| drop(p.messages.pop()), |e| matches!(e, RenderError::Order)),
        ("empty user", |p| p.messages[0] = user(""), |e| matches!(e, RenderError::EmptyMessage { index: 0 })),
        (
            "empty assistant",
            |p| p.messages[2] = PacketMessage::Assistant { text: String::new() },
            |e| matches!(e, RenderError::EmptyMessage { index: 2 }),
        ),
        (
            "image type",
            |p| p.messages[0] = with_image("image/svg+xml", "AAAA"),
            |e| matches!(e, RenderError::Image { .. }),
        ),
        (
            "image bytes",
            |p| p.messages[0] = with_image("image/png", "AA\"A"),
            |e| matches!(e, RenderError::Image { .. }),
        ),
        (
            "no image bytes",
            |p| p.messages[0] = with_image("image/png", ""),
            |e| matches!(e, RenderError::Image { .. }),
        ),
        ("no token", |p| p.max_output_tokens = 0, |e| matches!(e, RenderError::TokenLimit)),
        ("a tool twice", |p| p.tools.push(ToolName::ProposeFocus), |e| matches!(e, RenderError::Tools)),
        ("no choice", |p| p.tool_choice = None, |e| matches!(e, RenderError::Tools)),
        ("no tool", |p| p.tools.clear(), |e| matches!(e, RenderError::Tools)),
        (
            "no tool, choice none",
            |p| {
                p.tools.clear();
                p.tool_choice = Some(ToolChoice::None);
            },
            |e| matches!(e, RenderError::Tools),
        ),
        ("no call", |p| calls(p).clear(), is_call),
        ("call id", |p| calls(p)[0].id = "call one".into(), is_call),
        ("long call id", |p| calls(p)[0].id = "x".repeat(41), is_call),
        (
            "a call twice",
            |p| {
                let call = calls(p)[0].clone();
                calls(p).push(call);
            },
            is_call,
        ),
        ("broken arguments", |p| calls(p)[0].arguments.push('}'), is_call),
        ("arguments that are no object", |p| calls(p)[0].arguments = "[]".into(), is_call),
    ];
    for api in ["anthropic-messages", "openai-chat"] {
        for (name, break_it, told) in breaks {
            let mut packet = packet(&format!("{api}: report 23: a proposal turn"));
            render_request(&packet).unwrap();
            break_it(&mut packet);
            let error = render_request(&packet).expect_err(name);
            assert!(told(&error), "{api}: {name}: {error:?}");
        }
    }
}

fn is_call(error: &RenderError) -> bool {
    matches!(error, RenderError::HistoryCall { index: 1 })
}

fn calls(packet: &mut Packet) -> &mut Vec<thought_protocol::packet::HistoryCall> {
    match &mut packet.messages[1] {
        PacketMessage::ToolTurn { calls } => calls,
        _ => panic!("no tool turn"),
    }
}
