//! The id of an agent, which is the id of its declaration.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thought_protocol::limits::AGENT_ID_CHARACTERS;

/// Text that is not an agent id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read an agent id: expected 2 to 64 characters of a-z and 0-9 in words joined by single hyphens")]
pub struct AgentIdError;

/// A lower-case stable id, `[a-z0-9]+(-[a-z0-9]+)*` of 2 to 64 characters; never a display name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentId(String);

impl AgentId {
    /// The written form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads an agent id.
///
/// # Errors
/// [`AgentIdError`] for any other text.
pub fn agent_id(text: &str) -> Result<AgentId, AgentIdError> {
    if AGENT_ID_CHARACTERS.contains(&text.len()) && is_slug(text) {
        Ok(AgentId(text.to_owned()))
    } else {
        Err(AgentIdError)
    }
}

/// `[a-z0-9]+(-[a-z0-9]+)*`, of any length.
pub(super) fn is_slug(text: &str) -> bool {
    text.split('-').all(|word| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

impl FromStr for AgentId {
    type Err = AgentIdError;
    fn from_str(text: &str) -> Result<Self, AgentIdError> {
        agent_id(text)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for AgentId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for AgentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
