//! The one request.
//!
//! Owns the hardened HTTP client: every call writes at most one request on a fresh connection that serves nothing
//! else. It must never retry, follow a redirect, use a proxy, reuse a connection, or read more of an answer than its
//! bound.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue, RETRY_AFTER,
};
use thought_protocol::Sensitive;
use thought_protocol::limits::ANSWER_BYTES_MAX;
use thought_protocol::packet::Api;

use crate::endpoint::Endpoint;
use crate::equal::EqualBytes;
use crate::failure::{self, Failure};
use crate::limits::{CONNECT_TIMEOUT_MAX, STATUS_BODY_BYTES_MAX};
use crate::reply::{BeforeReason, Reply, Timings, UnknownReason};

const USER_AGENT: &str = concat!("thought/", env!("CARGO_PKG_VERSION"));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const ANTHROPIC_VERSION_VALUE: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Why there is no broker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client was not built; with https the usual cause is that the machine has no root certificates.
    #[error("build the model client")]
    Client(#[source] reqwest::Error),
}

/// Holds one provider's endpoint and key, and makes requests to it: exactly one per call.
pub struct Broker {
    pub(crate) endpoint: Endpoint,
    pub(crate) http: reqwest::Client,
    requests_made: AtomicU64,
}

impl Broker {
    /// Builds the hardened client for a checked endpoint. Opens no connection.
    ///
    /// # Errors
    /// [`Error::Client`] if the client cannot be built: for https, when the system has no root certificates.
    pub fn new(endpoint: Endpoint) -> Result<Self, Error> {
        let http = hardened_client(&endpoint).map_err(|error| Error::Client(error.without_url()))?;
        Ok(Self { endpoint, http, requests_made: AtomicU64::new(0) })
    }

    /// Where requests go.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// How often [`Broker::request`] was called, whatever became of it. Reachability checks do not count.
    #[must_use]
    pub fn requests_made(&self) -> u64 {
        self.requests_made.load(Ordering::Relaxed)
    }

    /// Makes the one request. Needs a tokio runtime with time and IO.
    ///
    /// Never fails: what went wrong is part of the [`Reply`]. Dropping the future closes the connection and leaves the
    /// outcome to its caller, for whom the request may have been made.
    pub async fn request(&self, body: EqualBytes) -> Reply {
        self.requests_made.fetch_add(1, Ordering::Relaxed);
        let started = Instant::now();
        let Ok(headers) = self.headers() else {
            // The key was checked to fit a header; the error holds nothing to keep.
            return Reply::RefusedBeforeRequest { reason: BeforeReason::NotBuilt };
        };
        let sent = self
            .http
            .post(self.endpoint.request_url().clone())
            .headers(headers)
            .header(CONTENT_TYPE, JSON)
            .body(body.into_body())
            .send()
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                return match failure::of_sending(&error) {
                    Failure::Before(reason) => Reply::RefusedBeforeRequest { reason },
                    Failure::Unknown(reason) => Reply::Unknown { reason },
                };
            }
        };
        let first_byte = started.elapsed();
        if response.status() == reqwest::StatusCode::OK {
            return match read_whole(response, ANSWER_BYTES_MAX).await {
                Ok(body) => Reply::Answered {
                    body: Sensitive::new(body),
                    timings: Timings { first_byte, total: started.elapsed() },
                },
                Err(reason) => Reply::Unknown { reason },
            };
        }
        let status = response.status().as_u16();
        let retry_after_seconds = retry_after_seconds(response.headers());
        let body = read_start(response, STATUS_BODY_BYTES_MAX).await;
        Reply::Status {
            status,
            retry_after_seconds,
            body: Sensitive::new(body),
            timings: Timings { first_byte, total: started.elapsed() },
        }
    }

    /// What every request to this provider carries; the key is put in here and nowhere else.
    pub(crate) fn headers(&self) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, JSON);
        match self.endpoint.api() {
            Api::AnthropicMessages => {
                headers.insert(ANTHROPIC_VERSION, ANTHROPIC_VERSION_VALUE);
                if let Some(key) = self.endpoint.key() {
                    headers.insert(X_API_KEY, key.header("")?);
                }
            }
            Api::OpenaiChat => {
                if let Some(key) = self.endpoint.key() {
                    headers.insert(AUTHORIZATION, key.header("Bearer ")?);
                }
            }
        }
        Ok(headers)
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("endpoint", &self.endpoint)
            .field("requests_made", &self.requests_made())
            .finish_non_exhaustive()
    }
}

fn hardened_client(endpoint: &Endpoint) -> Result<reqwest::Client, reqwest::Error> {
    let mut builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        // What another room asks of the same library must not change what is asked for or read here.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        // A pooled connection that turns out to be closed is silently written to a second time: keep none.
        .pool_max_idle_per_host(0)
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(connect_timeout(endpoint.timeout()))
        .timeout(endpoint.timeout());
    if endpoint.is_https() {
        install_tls_provider();
        builder = builder.https_only(true);
    } else {
        // Plain http is for this machine: no certificates to load (a bare machine may have none), and the name
        // `localhost` means loopback whatever a resolver says.
        builder = builder.tls_backend_preconfigured(tls_without_roots()).resolve_to_addrs(
            "localhost",
            &[SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))],
        );
    }
    builder.build()
}

/// The client takes the process's default provider together with the system's root certificates.
fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race to another installer is fine: this build links one provider.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// A TLS configuration that trusts nobody.
fn tls_without_roots() -> rustls::ClientConfig {
    install_tls_provider();
    rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// Shorter than the total time-out, so that a connection that never comes about is told as such.
fn connect_timeout(total: Duration) -> Duration {
    (total / 2).min(CONNECT_TIMEOUT_MAX)
}

/// The whole body, or why there is none. Never holds more than `bytes_max` and one chunk of the client.
pub(crate) async fn read_whole(
    mut response: reqwest::Response,
    bytes_max: usize,
) -> Result<Vec<u8>, UnknownReason> {
    let announced = response.content_length();
    if announced.is_some_and(|length| length > bytes_max as u64) {
        return Err(UnknownReason::BodyTooLarge);
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > bytes_max => {
                return Err(UnknownReason::BodyTooLarge);
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(failure::of_reading(&error)),
        }
    }
}

/// The first `bytes_max` bytes of a body, or what came of it: the status is the answer, the body only explains it.
async fn read_start(mut response: reqwest::Response, bytes_max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < bytes_max {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = (bytes_max - body.len()).min(chunk.len());
                body.extend_from_slice(&chunk[..room]);
            }
            Ok(None) | Err(_) => break,
        }
    }
    body
}

fn retry_after_seconds(headers: &HeaderMap) -> Option<u64> {
    let mut values = headers.get_all(RETRY_AFTER).iter();
    let first = values.next()?;
    if values.any(|other| other != first) {
        return None;
    }
    let digits = first.as_bytes().trim_ascii();
    // `parse` alone would take a sign.
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(values: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
        }
        retry_after_seconds(&headers)
    }

    #[test]
    fn retry_after_counts_in_whole_seconds_alone() {
        assert_eq!(seconds(&["0"]), Some(0));
        assert_eq!(seconds(&["7"]), Some(7));
        assert_eq!(seconds(&[" 86400 "]), Some(86_400));
        assert_eq!(seconds(&["7", "7"]), Some(7));
        for nonsense in
            ["", "-1", "+1", "1.5", "1s", "soon", "99999999999999999999999", "Wed, 21 Oct 2015 07:28:00 GMT"]
        {
            assert_eq!(seconds(&[nonsense]), None, "{nonsense}");
        }
        assert_eq!(seconds(&["7", "8"]), None);
        assert_eq!(seconds(&[]), None);
    }

    #[test]
    fn the_connect_time_out_lies_below_the_total() {
        assert_eq!(connect_timeout(Duration::from_secs(120)), CONNECT_TIMEOUT_MAX);
        assert_eq!(connect_timeout(Duration::from_secs(2)), Duration::from_secs(1));
    }
}
