//! The manifest beside an export: counts, the hash of the file, the heads it was made at. It holds no word and no time, so
//! that the same store gives the same manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thought_protocol::Sha256Hex;
use thought_protocol::canonical::{self, CanonicalError};

use super::Scope;
use super::example::{EXAMPLE_SCHEMA_VERSION, Written};
use super::select::Heads;

/// The version of a manifest's form.
pub const MANIFEST_SCHEMA_VERSION: u32 = 1;

/// What stands beside an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Which export.
    pub kind: Scope,
    /// Version of the examples' form.
    pub example_schema_version: u32,
    /// The file.
    pub output: OutputFile,
    /// Judgments that became examples.
    pub included: u64,
    /// Judgments that did not, by reason.
    pub excluded: BTreeMap<String, u64>,
    /// Where every source stood.
    pub heads: Vec<Head>,
    /// Version of the tool.
    pub tool_version: String,
}

/// The file of examples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputFile {
    /// Hash of its bytes.
    pub sha256: Sha256Hex,
    /// How many they are.
    pub bytes: u64,
}

/// Where a source stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Head {
    /// The source.
    pub source: String,
    /// Sequence of its newest event.
    pub head: u64,
    /// Chain hash of that event.
    pub head_sha256: Sha256Hex,
}

impl Manifest {
    pub(super) fn of(
        (kind, tool_version): (Scope, &str),
        heads: &Heads,
        excluded: BTreeMap<String, u64>,
        (written, sha256): (Written, Sha256Hex),
    ) -> Self {
        let head = |row: &thought_store::row::SourceRow| Head {
            source: row.source.as_str().to_owned(),
            head: row.head,
            head_sha256: row.head_sha256.clone(),
        };
        Self {
            schema_version: MANIFEST_SCHEMA_VERSION,
            kind,
            example_schema_version: EXAMPLE_SCHEMA_VERSION,
            output: OutputFile { sha256, bytes: written.bytes },
            included: written.examples,
            excluded,
            heads: heads.0.iter().map(head).collect(),
            tool_version: tool_version.to_owned(),
        }
    }

    /// Its bytes: canonical JSON and a line end.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, CanonicalError> {
        let mut bytes = canonical::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
