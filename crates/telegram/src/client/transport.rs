//! One HTTP request and its reading.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thought_store::BoxFuture;
use zeroize::Zeroizing;

use super::config::{ApiRoot, BotToken, ClientConfig, ConfigError};
use super::error::{ClientError, ConnectFailure};
use crate::limits::{OPAQUE_ID_BYTES_MAX, RETRY_AFTER_SECONDS_DEFAULT, RETRY_AFTER_SECONDS_MAX};
use crate::wire::Response;

/// How much and how long one answer may be.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub(super) bytes_max: usize,
    pub(super) timeout: Duration,
}

/// Whoever carries a call in the network's stead: a simulation of the channel, with faults of its own choosing. Production
/// hands none in.
pub trait Carrier: Send + Sync + 'static {
    /// Status and whole body of the answer to a method's JSON.
    ///
    /// # Errors
    /// What a call comes to that has no complete answer: [`ClientError::Unreachable`], [`ClientError::Uncertain`].
    fn carry(
        &self,
        method: &'static str,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<(u16, Vec<u8>), ClientError>>;
}

pub(super) enum Transport {
    Http(Box<Http>),
    Carried(Arc<dyn Carrier>),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(http) => http.fmt(f),
            Self::Carried(_) => f.write_str("Carried"),
        }
    }
}

impl Transport {
    pub(super) fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        Ok(Self::Http(Box::new(Http::new(config)?)))
    }

    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        body: &impl Serialize,
        bound: Bound,
    ) -> Result<T, ClientError> {
        match self {
            Self::Http(http) => http.post(&http.once, method, body, bound).await,
            Self::Carried(carrier) => carried(&**carrier, method, body, bound).await,
        }
    }

    pub(super) async fn poll<T: DeserializeOwned>(
        &self,
        method: &'static str,
        body: &impl Serialize,
        bound: Bound,
    ) -> Result<T, ClientError> {
        match self {
            Self::Http(http) => http.post(&http.polling, method, body, bound).await,
            Self::Carried(carrier) => carried(&**carrier, method, body, bound).await,
        }
    }

    /// See [`Http::beginning`]. Who carries calls has no answers beyond their bound.
    pub(super) async fn beginning(
        &self,
        method: &'static str,
        body: &impl Serialize,
        bound: Bound,
        kept_max: usize,
    ) -> Result<Option<Vec<u8>>, ClientError> {
        match self {
            Self::Http(http) => http.beginning(method, body, bound, kept_max).await,
            Self::Carried(_) => Ok(None),
        }
    }

    /// See [`Http::download`]. Who carries calls keeps no files.
    pub(super) async fn download(&self, path: &str, bound: Bound) -> Result<Vec<u8>, ClientError> {
        match self {
            Self::Http(http) => http.download(path, bound).await,
            Self::Carried(_) => Err(ClientError::BadRequest { code: 404 }),
        }
    }
}

/// A call that is carried, within the same bounds as one over the network.
async fn carried<T: DeserializeOwned>(
    carrier: &dyn Carrier,
    method: &'static str,
    body: &impl Serialize,
    bound: Bound,
) -> Result<T, ClientError> {
    let body = encode(body)?;
    match tokio::time::timeout(bound.timeout, carrier.carry(method, body)).await {
        Ok(Ok((status, body))) => match StatusCode::from_u16(status) {
            Ok(status) if body.len() > bound.bytes_max => {
                read(status, Err(ClientError::TooLarge { bytes_max: bound.bytes_max }))
            }
            Ok(status) => read(status, Ok(body)),
            Err(_no_status) => Err(ClientError::Malformed),
        },
        Ok(Err(error)) => Err(error),
        Err(_too_late) => Err(ClientError::Uncertain),
    }
}

/// Our own bodies always serialize; should one not, nothing was written.
fn encode(body: &impl Serialize) -> Result<Vec<u8>, ClientError> {
    match serde_json::to_vec(body) {
        Ok(body) => Ok(body),
        Err(_no_json) => Err(ClientError::BadRequest { code: 0 }),
    }
}

pub(super) struct Http {
    root: ApiRoot,
    token: BotToken,
    /// A connection of its own for every call: one that was kept may have died, and would be tried again unasked.
    once: Client,
    /// For polling alone, where a second try does no harm, the connection is kept.
    polling: Client,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Http {
    fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        let root = ApiRoot::parse(&config.api_url)?;
        install_provider();
        let once = client(&root, config.timeouts.connect(), 0)?;
        let polling = client(&root, config.timeouts.connect(), 1)?;
        Ok(Self { root, token: config.token, once, polling })
    }

    async fn post<T: DeserializeOwned>(
        &self,
        client: &Client,
        method: &'static str,
        body: &impl Serialize,
        bound: Bound,
    ) -> Result<T, ClientError> {
        let request = self.request(client, method, body, bound)?;
        let (status, body) = exchange(request, bound.bytes_max).await?;
        read(status, body)
    }

    /// The first `kept_max` bytes of a successful answer that is beyond its bound; nothing of one that is not.
    async fn beginning(
        &self,
        method: &'static str,
        body: &impl Serialize,
        bound: Bound,
        kept_max: usize,
    ) -> Result<Option<Vec<u8>>, ClientError> {
        let mut response = match self.request(&self.polling, method, body, bound)?.send().await {
            Ok(response) => response,
            Err(error) => return Err(before_answer(&error)),
        };
        if !response.status().is_success() {
            return Err(by_status(i64::from(response.status().as_u16())));
        }
        let (mut beginning, mut seen) = (Vec::new(), 0_usize);
        while seen <= bound.bytes_max {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    let wanted = chunk.len().min(kept_max - beginning.len());
                    beginning.extend_from_slice(&chunk[..wanted]);
                    seen += chunk.len();
                }
                Ok(None) => return Ok(None),
                Err(_no_complete_body) => return Err(ClientError::Uncertain),
            }
        }
        Ok(Some(beginning))
    }

    fn request(
        &self,
        client: &Client,
        method: &'static str,
        body: &impl Serialize,
        bound: Bound,
    ) -> Result<RequestBuilder, ClientError> {
        let body = encode(body)?;
        let url = Zeroizing::new(format!("{}/bot{}/{method}", self.root.url, self.token.expose()));
        Ok(client
            .post(url.as_str())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body)
            .timeout(bound.timeout))
    }

    /// The bytes of a file.
    async fn download(&self, path: &str, bound: Bound) -> Result<Vec<u8>, ClientError> {
        if !is_plain_path(path) {
            return Err(ClientError::Malformed);
        }
        let url = Zeroizing::new(format!("{}/file/bot{}/{path}", self.root.url, self.token.expose()));
        let request = self.once.get(url.as_str()).timeout(bound.timeout);
        let (status, body) = exchange(request, bound.bytes_max).await?;
        if status.is_success() {
            return body;
        }
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS => wait(None),
            // Of a file, not found means just that.
            StatusCode::NOT_FOUND => ClientError::BadRequest { code: 404 },
            _ => by_status(i64::from(status.as_u16())),
        })
    }
}

/// A relative path of ordinary characters: nothing that could leave the bot's own files or change the request.
fn is_plain_path(path: &str) -> bool {
    (1..=OPAQUE_ID_BYTES_MAX).contains(&path.len())
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Makes ring the process's provider of cryptography, unless another room did already.
fn install_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // It fails only if another thread was faster, which is as good.
        match rustls::crypto::ring::default_provider().install_default() {
            Ok(()) | Err(_) => {}
        }
    }
}

fn client(root: &ApiRoot, connect: Duration, idle_connections: usize) -> Result<Client, ConfigError> {
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let loopback = loopback.map(|address| SocketAddr::new(address, 0));
    let builder = Client::builder()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .pool_max_idle_per_host(idle_connections)
        .connect_timeout(connect)
        .resolve_to_addrs("localhost", &loopback)
        .user_agent(concat!("thought-stream/", env!("CARGO_PKG_VERSION")));
    // Over loopback there is no TLS, and the machine's root certificates need not be read.
    let builder = if root.is_https { builder.https_only(true) } else { builder.tls_certs_only([]) };
    match builder.build() {
        Ok(client) => Ok(client),
        Err(_may_quote_paths) => Err(ConfigError::Tls),
    }
}

/// Sends a request. A status means that the answer began; its body may have failed on its own.
async fn exchange(
    request: RequestBuilder,
    bytes_max: usize,
) -> Result<(StatusCode, Result<Vec<u8>, ClientError>), ClientError> {
    let mut response = match request.send().await {
        Ok(response) => response,
        // The error names the URL: only its kind goes on.
        Err(error) => return Err(before_answer(&error)),
    };
    let status = response.status();
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > bytes_max => {
                return Ok((status, Err(ClientError::TooLarge { bytes_max })));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok((status, Ok(body))),
            Err(_no_complete_body) => return Ok((status, Err(ClientError::Uncertain))),
        }
    }
}

/// An error before any answer. Only one that arose while connecting is certain to have written nothing.
fn before_answer(error: &reqwest::Error) -> ClientError {
    if error.is_builder() {
        return ClientError::BadRequest { code: 0 };
    }
    if !error.is_connect() {
        return ClientError::Uncertain;
    }
    let cause = if error.is_timeout() {
        ConnectFailure::TimedOut
    } else if error.is_dns() {
        ConnectFailure::Name
    } else if is_tls(error) {
        ConnectFailure::Tls
    } else {
        ConnectFailure::Other
    };
    ClientError::Unreachable { cause }
}

fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    // An io error hides what it wraps from `source`, and here one wraps another.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>()
        || wrapped.is_some_and(|inner| is_tls(inner))
        || error.source().is_some_and(is_tls)
}

/// From an answer to a result. A status other than success is an answer, whatever became of its body.
fn read<T: DeserializeOwned>(
    status: StatusCode,
    body: Result<Vec<u8>, ClientError>,
) -> Result<T, ClientError> {
    let body = match body {
        Ok(body) => body,
        Err(error) if status.is_success() => return Err(error),
        Err(_of_a_refusal) => Vec::new(),
    };
    match serde_json::from_slice::<Response<T>>(&body) {
        Ok(Response { ok: true, result: Some(result), .. }) if status.is_success() => Ok(result),
        Ok(response) if !response.ok => Err(refusal(status, &response)),
        // A body that ends too early was cut on its way.
        Err(error) if status.is_success() && error.is_eof() => Err(ClientError::Uncertain),
        _ if status.is_success() => Err(ClientError::Malformed),
        _ if status == StatusCode::TOO_MANY_REQUESTS => Err(wait(None)),
        _ => Err(by_status(i64::from(status.as_u16()))),
    }
}

/// From the Bot API's own words to an error. The description is looked at and dropped.
fn refusal<T>(status: StatusCode, response: &Response<T>) -> ClientError {
    if let Some(to) = response.parameters.and_then(|parameters| parameters.migrate_to_chat_id) {
        return ClientError::Migrated { to };
    }
    let code = response.error_code.unwrap_or_else(|| i64::from(status.as_u16()));
    match code {
        429 => wait(response.parameters.and_then(|parameters| parameters.retry_after)),
        400 if response.description.as_deref().is_some_and(is_about_entities) => ClientError::BadEntities,
        code => by_status(code),
    }
}

/// "can't parse entities", "can't parse MessageEntity", `ENTITY_BOUNDS_INVALID` and their relatives.
fn is_about_entities(description: &str) -> bool {
    let description = description.to_ascii_lowercase();
    description.contains("entit") || description.contains("can't parse")
}

fn by_status(code: i64) -> ClientError {
    match code {
        // A token of the wrong form is not found rather than not authorized.
        401 | 404 => ClientError::Unauthorized,
        403 => ClientError::Forbidden,
        409 => ClientError::Conflict,
        500..=599 => ClientError::Server { code },
        code => ClientError::BadRequest { code },
    }
}

fn wait(seconds: Option<u64>) -> ClientError {
    let seconds = seconds.unwrap_or(RETRY_AFTER_SECONDS_DEFAULT).clamp(1, RETRY_AFTER_SECONDS_MAX);
    ClientError::RetryAfter { seconds }
}
