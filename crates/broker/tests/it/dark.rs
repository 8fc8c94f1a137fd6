//! Keys, addresses and bodies show nowhere but on the wire.

use crate::server::{Script, Server};
use crate::support::{PATIENT, SHORT, block_on, body, broker, call, http};
use thought_broker::Api;

#[test]
fn no_debug_output_holds_key_address_path_or_body() {
    let scripts = [
        (Script::Answer(http("200 OK", &[], b"canary-answer")), PATIENT),
        (Script::Answer(http("400 Bad", &["x-note: canary-note"], b"canary-error")), PATIENT),
        (Script::CloseAfterReading, PATIENT),
        (Script::AnswerAndClose(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ncanary".to_vec()), PATIENT),
        (Script::Hang, SHORT),
    ];
    for (script, timeout) in scripts {
        let (reply, _) = call(script, timeout);
        for shown in [format!("{reply:?}"), format!("{reply:#?}")] {
            assert!(!shown.contains("canary") && !shown.contains("127.0.0.1"), "{shown}");
        }
    }
}

#[test]
fn a_broker_and_its_body_show_lengths() {
    let server = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let root = format!("{}/canary-path", server.base_url());
    let broker = broker(Api::OpenaiChat, &root, PATIENT);
    block_on(broker.request(body()));
    for shown in [format!("{broker:?}"), format!("{broker:#?}"), format!("{:?}", body())] {
        assert!(!shown.contains("canary"), "{shown}");
    }
    assert!(format!("{broker:?}").contains("ApiKey(14 bytes)"));
    server.finish();
}
