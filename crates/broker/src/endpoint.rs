//! Where a provider's API is.
//!
//! Owns the check of the configured root and the paths built on it. It must never hold credentials inside an address,
//! and never accept plain http beyond this machine.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::Url;
use thought_protocol::packet::Api;

use crate::key::ApiKey;
use crate::limits::{BASE_URL_BYTES_MAX, REQUEST_TIMEOUT_MAX};

/// Why an endpoint was refused. Never shows the address: a mistyped one may hold a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Longer than [`BASE_URL_BYTES_MAX`].
    #[error("check base_url: {length} bytes, at most {BASE_URL_BYTES_MAX} are allowed")]
    TooLong {
        /// Bytes that were given.
        length: usize,
    },
    /// Not an absolute URL with a host, or white space or a control or a backslash in it.
    #[error("check base_url: it is not an absolute URL with a host")]
    NotAUrl,
    /// Another scheme than https or http.
    #[error("check base_url: only https, and http to this machine, are allowed")]
    Scheme,
    /// http to a host that is not this machine.
    #[error("check base_url: plain http is allowed to 127.0.0.0/8, ::1 and localhost alone")]
    PlainHttpBeyondLoopback,
    /// A user name or a password in the address.
    #[error("check base_url: it must not hold a user name or a password")]
    UserInfo,
    /// A query in the address.
    #[error("check base_url: it must not hold a query")]
    Query,
    /// A fragment in the address.
    #[error("check base_url: it must not hold a fragment")]
    Fragment,
    /// The address names the method already; the root alone is wanted.
    #[error("check base_url: give the root of the API, without /messages or /chat/completions")]
    NamesTheMethod,
    /// A time-out of zero or beyond [`REQUEST_TIMEOUT_MAX`].
    #[error("check timeout_seconds: it must lie between 1 ms and 3600 s")]
    Timeout,
}

/// A checked provider endpoint with its key. `Debug` shows the scheme and host, never the key.
pub struct Endpoint {
    api: Api,
    request_url: Url,
    models_url: Url,
    key: Option<ApiKey>,
    timeout: Duration,
}

impl Endpoint {
    /// Checks the root of a provider's API and the total time-out of one request.
    ///
    /// https is allowed anywhere, plain http to this machine alone. A root of Anthropic Messages may end in `/v1`.
    ///
    /// # Errors
    /// [`EndpointError`] for an address or a time-out that is not allowed.
    pub fn new(
        api: Api,
        base_url: &str,
        key: Option<ApiKey>,
        timeout: Duration,
    ) -> Result<Self, EndpointError> {
        if timeout < Duration::from_millis(1) || timeout > REQUEST_TIMEOUT_MAX {
            return Err(EndpointError::Timeout);
        }
        let root = checked_root(base_url)?;
        let (request_path, models_path) = match api {
            Api::AnthropicMessages => {
                let versioned = if root.path.ends_with("/v1") { root.path } else { root.path + "/v1" };
                (format!("{versioned}/messages"), format!("{versioned}/models"))
            }
            Api::OpenaiChat => (format!("{}/chat/completions", root.path), format!("{}/models", root.path)),
        };
        let mut request_url = root.url.clone();
        request_url.set_path(&request_path);
        let mut models_url = root.url;
        models_url.set_path(&models_path);
        if api == Api::AnthropicMessages {
            models_url.set_query(Some("limit=1000"));
        }
        Ok(Self { api, request_url, models_url, key, timeout })
    }

    /// The wire protocol.
    #[must_use]
    pub const fn api(&self) -> Api {
        self.api
    }

    /// The total time-out of one request.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether a key is added to requests.
    #[must_use]
    pub const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    pub(crate) const fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    pub(crate) const fn request_url(&self) -> &Url {
        &self.request_url
    }

    pub(crate) const fn models_url(&self) -> &Url {
        &self.models_url
    }

    pub(crate) fn is_https(&self) -> bool {
        self.request_url.scheme() == "https"
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("api", &self.api)
            .field("scheme", &self.request_url.scheme())
            .field("host", &self.request_url.host_str())
            .field("port", &self.request_url.port_or_known_default())
            .field("key", &self.key)
            .field("timeout", &self.timeout)
            .finish()
    }
}

struct Root {
    url: Url,
    /// Without a trailing slash; empty at the root of the host.
    path: String,
}

fn checked_root(base_url: &str) -> Result<Root, EndpointError> {
    if base_url.len() > BASE_URL_BYTES_MAX {
        return Err(EndpointError::TooLong { length: base_url.len() });
    }
    // The URL standard drops or rewrites these silently; what is configured should be what is used.
    if base_url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(EndpointError::NotAUrl);
    }
    let Ok(url) = Url::parse(base_url) else {
        // The parser's error says no more than this one.
        return Err(EndpointError::NotAUrl);
    };
    if !matches!(url.scheme(), "https" | "http") {
        return Err(EndpointError::Scheme);
    }
    let Some(host) = url.host_str() else {
        return Err(EndpointError::NotAUrl);
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointError::UserInfo);
    }
    if url.query().is_some() {
        return Err(EndpointError::Query);
    }
    if url.fragment().is_some() {
        return Err(EndpointError::Fragment);
    }
    if url.scheme() == "http" && !is_loopback(host) {
        return Err(EndpointError::PlainHttpBeyondLoopback);
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if path.ends_with("/messages") || path.ends_with("/chat/completions") {
        return Err(EndpointError::NamesTheMethod);
    }
    Ok(Root { url, path })
}

/// Whether a host, as the URL parser normalized it, is this machine by its very name or number.
fn is_loopback(host: &str) -> bool {
    if host == "localhost" {
        return true;
    }
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback());
    }
    host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(api: Api, base_url: &str) -> Result<Endpoint, EndpointError> {
        Endpoint::new(api, base_url, None, Duration::from_secs(5))
    }

    #[test]
    fn paths_are_joined_once() {
        let cases = [
            (Api::AnthropicMessages, "https://api.example.org", "https://api.example.org/v1/messages"),
            (Api::AnthropicMessages, "https://api.example.org/", "https://api.example.org/v1/messages"),
            (Api::AnthropicMessages, "https://api.example.org/v1", "https://api.example.org/v1/messages"),
            (Api::AnthropicMessages, "https://api.example.org/v1//", "https://api.example.org/v1/messages"),
            (Api::AnthropicMessages, "https://g.example.org/a/b", "https://g.example.org/a/b/v1/messages"),
            (Api::OpenaiChat, "https://api.example.org/v1", "https://api.example.org/v1/chat/completions"),
            (Api::OpenaiChat, "http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions"),
            (Api::OpenaiChat, "http://[::1]:8080", "http://[::1]:8080/chat/completions"),
        ];
        for (api, base_url, expected) in cases {
            assert_eq!(endpoint(api, base_url).unwrap().request_url().as_str(), expected);
        }
    }

    #[test]
    fn the_list_of_models_lies_beside_the_method() {
        let models = |api, base_url| endpoint(api, base_url).unwrap().models_url().to_string();
        assert_eq!(
            models(Api::AnthropicMessages, "https://a.example.org"),
            "https://a.example.org/v1/models?limit=1000"
        );
        assert_eq!(models(Api::OpenaiChat, "https://a.example.org/v1"), "https://a.example.org/v1/models");
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for allowed in [
            "http://127.0.0.1:1",
            "http://127.255.0.9",
            "http://[::1]:1",
            "http://localhost",
            "http://LocalHost:1",
        ] {
            assert!(endpoint(Api::OpenaiChat, allowed).is_ok(), "{allowed}");
        }
        for refused in [
            "http://api.example.org",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://128.0.0.1",
            "http://[::]",
            "http://[::ffff:127.0.0.1]",
            "http://[fe80::1]",
            "http://localhost.example.org",
            "http://localhost.",
            "http://127.0.0.1.example.org",
        ] {
            let error = endpoint(Api::OpenaiChat, refused).unwrap_err();
            assert_eq!(error, EndpointError::PlainHttpBeyondLoopback, "{refused}");
        }
    }

    #[test]
    fn an_address_that_is_more_or_less_than_a_root_is_refused_without_showing_it() {
        let cases = [
            ("https://canary@api.example.org", EndpointError::UserInfo),
            ("https://:canary@api.example.org", EndpointError::UserInfo),
            ("http://localhost@canary.example.org", EndpointError::UserInfo),
            ("https://api.example.org?key=canary", EndpointError::Query),
            ("https://api.example.org/?", EndpointError::Query),
            ("https://api.example.org/#canary", EndpointError::Fragment),
            ("ftp://canary.example.org", EndpointError::Scheme),
            ("canary.example.org", EndpointError::NotAUrl),
            ("", EndpointError::NotAUrl),
            ("https://", EndpointError::NotAUrl),
            (" https://canary.example.org", EndpointError::NotAUrl),
            ("https://canary.exa\nmple.org", EndpointError::NotAUrl),
            ("https:\\\\canary.example.org", EndpointError::NotAUrl),
            ("https://canary.example.org/v1/messages", EndpointError::NamesTheMethod),
            ("https://canary.example.org/v1/chat/completions/", EndpointError::NamesTheMethod),
        ];
        for (base_url, expected) in cases {
            let error = endpoint(Api::OpenaiChat, base_url).unwrap_err();
            assert_eq!(error, expected, "{base_url:?}");
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
        let long = format!("https://api.example.org/{}", "a".repeat(BASE_URL_BYTES_MAX));
        assert!(matches!(endpoint(Api::OpenaiChat, &long), Err(EndpointError::TooLong { .. })));
    }

    #[test]
    fn the_time_out_is_bounded_on_both_sides() {
        for timeout in [Duration::ZERO, REQUEST_TIMEOUT_MAX + Duration::from_millis(1)] {
            let refused = Endpoint::new(Api::OpenaiChat, "https://api.example.org", None, timeout);
            assert_eq!(refused.unwrap_err(), EndpointError::Timeout);
        }
    }

    #[test]
    fn debug_shows_neither_key_nor_path() {
        let key = ApiKey::new("sk-canary".to_owned()).unwrap();
        let root = "https://api.example.org/canary";
        let endpoint =
            Endpoint::new(Api::AnthropicMessages, root, Some(key), Duration::from_secs(5)).unwrap();
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("api.example.org") && shown.contains("ApiKey(9 bytes)"), "{shown}");
        assert!(!shown.contains("canary"), "{shown}");
    }
}
