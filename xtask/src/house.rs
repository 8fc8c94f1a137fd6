//! Which room may link which: the table of `ARCHITECTURE.md`, held against the manifests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each room and the rooms it may link. What is not here is not allowed.
const ROOMS: &[(&str, &[&str])] = &[
    ("thought-protocol", &[]),
    ("thought-contract", &["thought-protocol"]),
    ("thought-store", &["thought-contract", "thought-protocol"]),
    ("thought-store-sqlite", &["thought-store", "thought-contract", "thought-protocol"]),
    ("thought-sandbox", &["thought-protocol"]),
    ("thought-worker", &["thought-protocol"]),
    ("thought-broker", &["thought-protocol"]),
    ("thought-runtime", &["thought-store", "thought-contract", "thought-protocol"]),
    ("thought-authority", &["thought-store", "thought-contract", "thought-protocol"]),
    ("thought-telegram", &["thought-store", "thought-contract", "thought-protocol"]),
    ("thought-inspector", &["thought-store", "thought-contract", "thought-protocol"]),
    ("thought-fakes", &[]),
    ("thought-testkit", &["thought-store", "thought-fakes"]),
    (
        "thought",
        &[
            "thought-authority",
            "thought-broker",
            "thought-contract",
            "thought-fakes",
            "thought-inspector",
            "thought-protocol",
            "thought-runtime",
            "thought-sandbox",
            "thought-store",
            "thought-store-sqlite",
            "thought-telegram",
            "thought-worker",
        ],
    ),
    ("xtask", &[]),
];

/// Libraries that one room alone may link, and which.
const KEPT_APART: &[(&str, &[&str])] = &[
    ("rusqlite", &["thought-store-sqlite"]),
    ("libc", &["thought-sandbox"]),
    ("landlock", &["thought-sandbox"]),
    ("seccompiler", &["thought-sandbox"]),
    // Two rooms speak HTTP outwards, each to its own side: models, and the Bot API.
    ("reqwest", &["thought-broker", "thought-telegram"]),
];

/// Checks the manifests against the tables.
///
/// # Errors
/// Names every link that the tables do not allow.
pub(crate) fn check() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec().context("read the workspace's manifests")?;
    let mut problems = Vec::new();
    let rooms: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(allowed) = rooms.get(name) else {
            problems.push(format!("{name} has no place in the table of rooms"));
            continue;
        };
        let links: BTreeSet<&str> = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Normal)
            .map(|dependency| dependency.name.as_str())
            .collect();
        for link in &links {
            if rooms.contains_key(link) && !allowed.contains(link) {
                problems.push(format!("{name} links {link}"));
            }
            let owners = KEPT_APART.iter().find(|(library, _)| library == link).map(|(_, owners)| *owners);
            if owners.is_some_and(|owners| !owners.contains(&name)) {
                problems.push(format!("{name} links {link}, which is kept apart"));
            }
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        bail!("the house's table does not hold:\n  {}", problems.join("\n  "))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_of_rooms_holds() {
        super::check().unwrap();
    }
}
