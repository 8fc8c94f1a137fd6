//! The environment: read here and nowhere else.

use std::path::PathBuf;

use thought_protocol::Sensitive;

/// A variable that names a path; empty is unset.
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A variable that holds plain text; empty or not UTF-8 is unset.
pub fn text(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?.into_string().ok()?;
    (!value.is_empty()).then_some(value)
}

/// A variable that holds a secret.
pub fn secret(name: &str) -> Option<Sensitive<String>> {
    text(name).map(Sensitive::new)
}
