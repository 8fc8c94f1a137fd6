//! The packet as the worker reads it: what decodes reads back from its canonical form as the same, and renders or says why
//! not; the same packet renders to the same bytes. What is told of it does not quote it.

use thought_protocol::packet::Packet;
use thought_protocol::provider::render_request;

use super::{Seen, is_dark, is_dark_error};

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let packet = match Packet::decode(data) {
        Ok(packet) => packet,
        Err(error) => {
            is_dark_error(&error);
            return Seen::Refused;
        }
    };
    is_dark(&packet);
    let canonical = packet.encode().expect("a packet encodes");
    assert!(Packet::decode(&canonical).is_ok_and(|again| again == packet));
    match (render_request(&packet), render_request(&packet)) {
        (Ok(request), Ok(again)) => {
            assert!(thought_protocol::strict_json::check(&request).is_ok());
            assert_eq!(request, again);
        }
        (Err(error), Err(_)) => is_dark_error(&error),
        _ => panic!("a packet renders or does not"),
    }
    Seen::Taken
}
