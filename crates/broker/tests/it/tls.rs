//! https against a real TLS server: who is trusted, and that a failed handshake is known to come before the request.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use thought_broker::{Api, BeforeReason, Broker, Endpoint, Reply};

use crate::environment::{inner, run_inner};
use crate::server::{Script, Seen, Server, read_request};
use crate::support::{BODY, PATIENT, SHORT, block_on, body, broker, http};

const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/authority.pem");
const OTHER_AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/other-authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../fixtures/server-certificate.der");
const KEY: &[u8] = include_bytes!("../fixtures/server-key.der");

/// What one connection brought.
struct Served {
    request: Seen,
    protocol: Option<Vec<u8>>,
}

/// Serves one connection with the certificate for 127.0.0.1; gives the root to call and, if the handshake came about,
/// what was served.
fn serve_one(host: &str) -> (String, JoinHandle<Option<Served>>) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let root = format!("https://{}", listener.local_addr().unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY.to_vec()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE.to_vec())], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let serving = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let request = read_request(&mut stream)?;
        let protocol = stream.conn.alpn_protocol().map(<[u8]>::to_vec);
        stream.write_all(&http("200 OK", &[], b"{}")).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        Some(Served { request, protocol })
    });
    (root, serving)
}

/// The second half of these tests: one request to the address it was given, which must end as expected.
fn expect_in_inner(root: &str, expected: &Reply) {
    let reply = block_on(broker(Api::AnthropicMessages, root, PATIENT).request(body()));
    assert_eq!(reply, *expected);
}

const TLS: Reply = Reply::RefusedBeforeRequest { reason: BeforeReason::Tls };

#[test]
fn a_trusted_server_gets_the_request_over_http_1() {
    if let Some(root) = inner() {
        let reply = block_on(broker(Api::AnthropicMessages, &root, PATIENT).request(body()));
        assert!(matches!(&reply, Reply::Answered { body, .. } if body.expose() == b"{}"), "{reply:?}");
        return;
    }
    let (root, serving) = serve_one("127.0.0.1");
    let test = "tls::a_trusted_server_gets_the_request_over_http_1";
    run_inner(test, &root, &[("SSL_CERT_FILE", AUTHORITY)]);
    let served = serving.join().unwrap().unwrap();
    assert_eq!(served.request.body, BODY);
    assert_eq!(served.protocol.as_deref(), Some(&b"http/1.1"[..]));
}

#[test]
fn a_stranger_s_certificate_ends_it_before_the_request() {
    if let Some(root) = inner() {
        return expect_in_inner(&root, &TLS);
    }
    let (root, serving) = serve_one("127.0.0.1");
    let test = "tls::a_stranger_s_certificate_ends_it_before_the_request";
    run_inner(test, &root, &[("SSL_CERT_FILE", OTHER_AUTHORITY)]);
    assert!(serving.join().unwrap().is_none());
}

#[test]
fn a_certificate_for_another_address_ends_it_before_the_request() {
    if let Some(root) = inner() {
        return expect_in_inner(&root, &TLS);
    }
    let (root, serving) = serve_one("127.0.0.2");
    let test = "tls::a_certificate_for_another_address_ends_it_before_the_request";
    run_inner(test, &root, &[("SSL_CERT_FILE", AUTHORITY)]);
    assert!(serving.join().unwrap().is_none());
}

#[test]
fn a_server_that_speaks_no_tls_never_sees_the_request() {
    if let Some(root) = inner() {
        return expect_in_inner(&root, &TLS);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = format!("https://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"HTTP/1.1 400 plain http here\r\n\r\n").unwrap();
        let mut heard = Vec::new();
        // Ends with the connection, however the client closes it.
        drop(std::io::Read::read_to_end(&mut socket, &mut heard));
        heard
    });
    let test = "tls::a_server_that_speaks_no_tls_never_sees_the_request";
    run_inner(test, &root, &[("SSL_CERT_FILE", AUTHORITY)]);
    let heard = serving.join().unwrap();
    assert!(!heard.windows(4).any(|four| four == b"POST"));
}

#[test]
fn a_handshake_that_never_ends_is_a_connect_time_out() {
    if let Some(root) = inner() {
        let reply = block_on(broker(Api::AnthropicMessages, &root, SHORT).request(body()));
        assert_eq!(reply, Reply::RefusedBeforeRequest { reason: BeforeReason::ConnectTimeout });
        return;
    }
    let server = Server::start(Script::Ignore);
    let root = format!("https://{}", server.address());
    let test = "tls::a_handshake_that_never_ends_is_a_connect_time_out";
    run_inner(test, &root, &[("SSL_CERT_FILE", AUTHORITY)]);
    assert_eq!(server.finish().connections, 1);
}

#[test]
fn a_name_that_does_not_exist_ends_it_before_the_request() {
    if let Some(root) = inner() {
        let reply = block_on(broker(Api::AnthropicMessages, &root, PATIENT).request(body()));
        // A machine whose resolver does not answer runs out of time instead.
        let expected = [BeforeReason::Dns, BeforeReason::ConnectTimeout];
        assert!(
            matches!(reply, Reply::RefusedBeforeRequest { reason } if expected.contains(&reason)),
            "{reply:?}"
        );
        return;
    }
    let test = "tls::a_name_that_does_not_exist_ends_it_before_the_request";
    run_inner(test, "https://nowhere.invalid", &[("SSL_CERT_FILE", AUTHORITY)]);
}

#[test]
fn without_root_certificates_https_is_refused_and_loopback_works() {
    if let Some(root) = inner() {
        let endpoint = Endpoint::new(Api::OpenaiChat, "https://canary.example.org", None, PATIENT).unwrap();
        let error = Broker::new(endpoint).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        let reply = block_on(broker(Api::OpenaiChat, &root, PATIENT).request(body()));
        assert!(matches!(reply, Reply::Answered { .. }), "{reply:?}");
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    let none: &Path = &empty.path().join("none.pem");
    std::fs::write(none, b"").unwrap();
    let server = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let variables =
        [("SSL_CERT_FILE", none.to_str().unwrap()), ("SSL_CERT_DIR", empty.path().to_str().unwrap())];
    let test = "tls::without_root_certificates_https_is_refused_and_loopback_works";
    run_inner(test, &server.base_url(), &variables);
    assert_eq!(server.finish().requests.len(), 1);
}
