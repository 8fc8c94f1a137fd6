//! Keys and tokens: taken from the variable or file that the configuration names, never from the configuration itself.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use thought_protocol::Sensitive;

use crate::config::{Provider, Telegram, Webhook};
use crate::env;
use crate::exit::Failure;
use crate::home::{Home, read_regular, uid};

const SECRET_BYTES_MAX: usize = 4_096;

/// What was found where the configuration points.
#[derive(Debug)]
pub enum Secret {
    /// There it is.
    Found(Sensitive<String>),
    /// The configuration names a place, and nothing is there; what a person reads.
    Missing(String),
    /// The configuration names no place.
    NotNamed,
}

/// The key of a provider.
///
/// # Errors
/// [`Failure`] when a key file is open to others or no regular file.
pub fn provider_key(home: &Home, provider: &Provider) -> Result<Secret, Failure> {
    named(home, provider.key_env.as_deref(), provider.key_file.as_deref())
}

/// The bot's token.
///
/// # Errors
/// As [`provider_key`].
pub fn telegram_token(home: &Home, telegram: &Telegram) -> Result<Secret, Failure> {
    if let Some(token) = &home.handed_token {
        return Ok(Secret::Found(token.clone()));
    }
    named(home, telegram.token_env.as_deref(), telegram.token_file.as_deref())
}

/// The webhook's secret.
///
/// # Errors
/// As [`provider_key`].
pub fn webhook_secret(home: &Home, webhook: &Webhook) -> Result<Secret, Failure> {
    named(home, webhook.secret_env.as_deref(), webhook.secret_file.as_deref())
}

fn named(home: &Home, variable: Option<&str>, file: Option<&Path>) -> Result<Secret, Failure> {
    if let Some(name) = variable {
        return Ok(match env::secret(name) {
            Some(secret) => Secret::Found(secret),
            None => Secret::Missing(format!("{name} is not set")),
        });
    }
    let Some(file) = file else { return Ok(Secret::NotNamed) };
    let path = home.path.join(file);
    let shown = file.display();
    let found = match std::fs::symlink_metadata(&path) {
        Ok(found) => found,
        Err(_) => return Ok(Secret::Missing(format!("the file {shown} is not there"))),
    };
    if found.mode() & 0o077 != 0 || found.uid() != uid() {
        return Err(Failure::refused("open-to-others", format!("the key file {shown} is open to others"))
            .hint(format!("chmod 600 {}", crate::print::quoted(&path))));
    }
    let bytes = read_regular(&path, SECRET_BYTES_MAX).map_err(|problem| problem.failure(Path::new(file)))?;
    let text = String::from_utf8(bytes)
        .map_err(|_error| Failure::refused("not-utf8", format!("the key file {shown} is not UTF-8")))?;
    let text = text.trim().to_owned();
    Ok(if text.is_empty() {
        Secret::Missing(format!("the file {shown} is empty"))
    } else {
        Secret::Found(Sensitive::new(text))
    })
}
