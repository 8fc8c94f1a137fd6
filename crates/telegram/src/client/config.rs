//! Where the Bot API is and how long it is waited for.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use zeroize::Zeroizing;

use crate::limits::TOKEN_BYTES_MAX;

/// A bot's token. It is wiped when dropped, and `Debug` shows its length alone.
#[derive(Clone)]
pub struct BotToken(Zeroizing<String>);

impl BotToken {
    /// Takes a token.
    ///
    /// # Errors
    /// If it is empty, too long, or holds a character that no token has; such a one could change the URL's path.
    pub fn new(token: String) -> Result<Self, ConfigError> {
        let token = Zeroizing::new(token);
        let valid = (1..=TOKEN_BYTES_MAX).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_-".contains(&byte));
        if valid { Ok(Self(token)) } else { Err(ConfigError::Token) }
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BotToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BotToken({} bytes)", self.0.len())
    }
}

/// How long is waited, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, its name and its TLS.
    pub connect_ms: u64,
    /// For a whole call, the connection included; a long poll waits its own time on top.
    pub request_ms: u64,
    /// For a whole download.
    pub download_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_ms: 10_000, request_ms: 30_000, download_ms: 60_000 }
    }
}

impl Timeouts {
    pub(super) const fn connect(self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(super) const fn request(self) -> Duration {
        Duration::from_millis(self.request_ms)
    }

    pub(super) const fn download(self) -> Duration {
        Duration::from_millis(self.download_ms)
    }
}

/// What a client needs.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The API's root, such as `https://api.telegram.org`.
    pub api_url: String,
    /// The bot's token.
    pub token: BotToken,
    /// How long is waited.
    pub timeouts: Timeouts,
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not a token.
    #[error(
        "read the bot token: expected 1 to {TOKEN_BYTES_MAX} letters, digits, colons, dashes and underscores"
    )]
    Token,
    /// Not an address, or one with a user, a query or a fragment.
    #[error("read telegram.api_url: expected https://host, with nothing but a path behind it")]
    Url,
    /// http to another machine.
    #[error("read telegram.api_url: plain http is for loopback only")]
    PlainHttp,
    /// TLS or its root certificates.
    #[error("prepare TLS for the Bot API")]
    Tls,
}

/// Checks the API's root without preparing anything for it.
///
/// # Errors
/// [`ConfigError::Url`], [`ConfigError::PlainHttp`].
pub fn check_api_url(api_url: &str) -> Result<(), ConfigError> {
    ApiRoot::parse(api_url).map(|_root| ())
}

/// Whether this can be where Telegram posts to: https with nothing but a path behind the host, or http on loopback.
pub fn is_public_url(url: &str) -> bool {
    ApiRoot::parse(url).is_ok()
}

/// The root, checked.
#[derive(Clone)]
pub(super) struct ApiRoot {
    pub(super) url: String,
    pub(super) is_https: bool,
}

impl ApiRoot {
    pub(super) fn parse(text: &str) -> Result<Self, ConfigError> {
        let Ok(url) = Url::parse(text) else { return Err(ConfigError::Url) };
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.host().is_some();
        if !bare {
            return Err(ConfigError::Url);
        }
        let is_https = match url.scheme() {
            "https" => true,
            "http" if is_loopback(&url) => false,
            "http" => return Err(ConfigError::PlainHttp),
            _ => return Err(ConfigError::Url),
        };
        Ok(Self { url: url.as_str().trim_end_matches('/').to_owned(), is_https })
    }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    // The name is resolved by ourselves, to nothing but loopback.
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_loopback_only() {
        let table = [
            ("https://api.telegram.org", Ok("https://api.telegram.org")),
            ("https://api.telegram.org/", Ok("https://api.telegram.org")),
            ("https://bots.example/telegram/", Ok("https://bots.example/telegram")),
            ("http://127.0.0.1:8081", Ok("http://127.0.0.1:8081")),
            ("http://[::1]:8081/x", Ok("http://[::1]:8081/x")),
            ("http://localhost:1", Ok("http://localhost:1")),
            ("http://api.telegram.org", Err(ConfigError::PlainHttp)),
            ("http://127.0.0.1.example", Err(ConfigError::PlainHttp)),
            ("http://localhost.example", Err(ConfigError::PlainHttp)),
            ("http://10.0.0.1", Err(ConfigError::PlainHttp)),
            ("ftp://127.0.0.1", Err(ConfigError::Url)),
            ("https://user:word@api.telegram.org", Err(ConfigError::Url)),
            ("https://api.telegram.org/?a=b", Err(ConfigError::Url)),
            ("https://api.telegram.org/#a", Err(ConfigError::Url)),
            ("api.telegram.org", Err(ConfigError::Url)),
            ("", Err(ConfigError::Url)),
        ];
        for (text, wanted) in table {
            assert_eq!(ApiRoot::parse(text).map(|root| root.url), wanted.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_token_that_could_bend_the_path_is_refused_and_none_is_shown() {
        for bad in ["", "1:a/../b", "1:a?x", "1:a b", "1:a\n", "1:a#", "1:%2e"] {
            assert_eq!(BotToken::new(bad.to_owned()).map(|_| ()), Err(ConfigError::Token), "{bad:?}");
        }
        assert!(BotToken::new("x".repeat(TOKEN_BYTES_MAX + 1)).is_err());
        let token = BotToken::new(String::from("123456:SECRET")).unwrap();
        assert_eq!(format!("{token:?}"), "BotToken(13 bytes)");
    }
}
