//! `propose_focus`: one complete focus declaration, evidence of a wish and nothing more.
//!
//! The types are strict both ways: reading goes through the validator, so that a declaration out of bounds never
//! exists, whether it comes from a model or from a stored event.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::hash::Fingerprint;

/// Where a declaration comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FocusLineage {
    /// A new focus.
    New,
    /// A later version of another declaration. Whether that one exists stays unchecked.
    Revises {
        /// Its id.
        focus_id: String,
        /// Its version.
        version: u32,
        /// Its fingerprint.
        fingerprint: Fingerprint,
    },
}

/// What the focus covers.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct FocusScope {
    /// 1–500 characters.
    pub summary: String,
    /// At most 16 of 1–200 characters.
    pub includes: Vec<String>,
    /// At most 16 of 1–200 characters.
    pub excludes: Vec<String>,
}

/// One kind of event from one source.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FocusSubscription {
    /// The event type, one line.
    pub event_type: String,
    /// The source, one line.
    pub source: String,
}

/// What the focus may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FocusBudgets {
    /// 1–10,000.
    pub max_events_per_day: u32,
    /// 0–1,000.
    pub max_inference_requests_per_day: u32,
    /// 1,000–200,000.
    pub max_context_characters: u32,
}

/// What the focus would like to be allowed. Asking grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FocusPermission {
    /// `read-events`.
    ReadEvents,
    /// `derive-observations`.
    DeriveObservations,
    /// `propose-memory`.
    ProposeMemory,
    /// `notify-operator`.
    NotifyOperator,
}

/// When the focus would end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FocusRetirement {
    /// At a time: RFC 3339, UTC, milliseconds.
    At {
        /// The time, as written.
        at: String,
    },
    /// After 1–3,650 days.
    AfterDays {
        /// How many.
        days: u32,
    },
    /// After 1–1,000,000 events.
    AfterEvents {
        /// How many.
        count: u32,
    },
    /// When a person says so.
    Manual,
}

/// One complete focus declaration.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FocusDeclaration {
    /// `[a-z0-9]+(-[a-z0-9]+)*`, 3–64 characters.
    pub id: String,
    /// 1–1,000,000.
    pub version: u32,
    /// Where it comes from.
    pub lineage: FocusLineage,
    /// What it covers.
    pub scope: FocusScope,
    /// 1–2,000 characters.
    pub objective: String,
    /// 1–16.
    pub subscriptions: Vec<FocusSubscription>,
    /// What it may use up.
    pub budgets: FocusBudgets,
    /// Unique, at most 8.
    pub requested_permissions: Vec<FocusPermission>,
    /// When it would end.
    pub retirement: FocusRetirement,
}

impl fmt::Debug for FocusScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FocusScope({} bytes, +{} -{})",
            self.summary.len(),
            self.includes.len(),
            self.excludes.len()
        )
    }
}

impl fmt::Debug for FocusSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FocusSubscription({} bytes)", self.event_type.len() + self.source.len())
    }
}

impl fmt::Debug for FocusDeclaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FocusDeclaration")
            .field("id_bytes", &self.id.len())
            .field("version", &self.version)
            .field("subscriptions", &self.subscriptions.len())
            .finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for FocusDeclaration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(serde::de::Error::custom)
    }
}

impl FocusDeclaration {
    /// Reads one declaration strictly.
    ///
    /// # Errors
    /// The member that breaks the contract.
    pub fn from_value(_value: &Value) -> Result<Self, super::ArgumentError> {
        Err(super::ArgumentError { member: "", fault: super::ArgumentFault::Shape })
    }

    /// The fingerprint over the canonical bytes.
    ///
    /// # Errors
    /// Never in practice: a declaration holds strings and small integers alone.
    pub fn fingerprint(&self) -> Result<Fingerprint, crate::canonical::CanonicalError> {
        Ok(Fingerprint::of(&crate::canonical::to_vec(self)?))
    }
}
