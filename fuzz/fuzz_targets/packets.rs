//! The packet as the worker reads it: what decodes is canonical, and renders or says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thought_protocol::packet::Packet;
use thought_protocol::provider::render_request;

fuzz_target!(|data: &[u8]| {
    let Ok(packet) = Packet::decode(data) else { return };
    assert_eq!(packet.encode().expect("a packet encodes"), data);
    if let Ok(request) = render_request(&packet) {
        assert!(thought_protocol::strict_json::check(&request).is_ok());
    }
});
