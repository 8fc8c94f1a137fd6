//! `propose_focus`: one complete focus declaration, evidence of a wish and nothing more.
//!
//! The types are strict both ways: reading goes through the validator, so that a declaration out of bounds never
//! exists, whether it comes from a model or from a stored event.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::members::{Members, bounded_text, choose, fault};
use super::{ArgumentError, ArgumentFault};
use crate::canonical::{self, CanonicalError};
use crate::hash::Fingerprint;
use crate::limits;

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
    /// The members, all required.
    pub const MEMBERS: [&'static str; 9] = [
        "id",
        "version",
        "lineage",
        "scope",
        "objective",
        "subscriptions",
        "budgets",
        "requestedPermissions",
        "retirement",
    ];

    /// Reads one declaration strictly.
    ///
    /// # Errors
    /// The first member that breaks the contract.
    pub fn from_value(value: &Value) -> Result<Self, ArgumentError> {
        let members = Members::of(value, ".", &Self::MEMBERS)?;
        Ok(Self {
            id: read_id(&members, "id")?,
            version: members.integer("version", &limits::FOCUS_VERSION)?,
            lineage: read_lineage(members.value("lineage")?)?,
            scope: read_scope(members.value("scope")?)?,
            objective: members.text("objective", limits::FOCUS_OBJECTIVE_CHARACTERS_MAX)?,
            subscriptions: members
                .list("subscriptions", &limits::FOCUS_SUBSCRIPTIONS)?
                .iter()
                .map(read_subscription)
                .collect::<Result<_, _>>()?,
            budgets: read_budgets(members.value("budgets")?)?,
            requested_permissions: read_permissions(&members)?,
            retirement: read_retirement(members.value("retirement")?)?,
        })
    }

    /// The fingerprint over the canonical bytes.
    ///
    /// # Errors
    /// Never in practice: a declaration holds strings and small integers alone.
    pub fn fingerprint(&self) -> Result<Fingerprint, CanonicalError> {
        Ok(Fingerprint::of(&canonical::to_vec(self)?))
    }
}

fn read_id(members: &Members<'_>, path: &'static str) -> Result<String, ArgumentError> {
    let text = members.string(path)?;
    if text.len() < *limits::FOCUS_ID_CHARACTERS.start() {
        return Err(fault(path, ArgumentFault::Empty));
    }
    if text.chars().nth(*limits::FOCUS_ID_CHARACTERS.end()).is_some() {
        return Err(fault(path, ArgumentFault::TooLong));
    }
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !text.split('-').all(word) {
        return Err(fault(path, ArgumentFault::Characters));
    }
    Ok(text.to_owned())
}

/// The word under `kind`, read before the other members are known.
fn kind<'a>(value: &'a Value, path: &'static str) -> Result<&'a str, ArgumentError> {
    let kind = value.as_object().ok_or(fault(path, ArgumentFault::Shape))?.get("kind");
    kind.ok_or(fault(path, ArgumentFault::Missing))?.as_str().ok_or(fault(path, ArgumentFault::Shape))
}

fn read_lineage(value: &Value) -> Result<FocusLineage, ArgumentError> {
    match kind(value, "lineage.kind")? {
        "new" => Members::of(value, "lineage", &["kind"]).map(|_| FocusLineage::New),
        "revises" => {
            let members = Members::of(value, "lineage", &["kind", "focusId", "version", "fingerprint"])?;
            Ok(FocusLineage::Revises {
                focus_id: read_id(&members, "lineage.focusId")?,
                version: members.integer("lineage.version", &limits::FOCUS_VERSION)?,
                fingerprint: members
                    .string("lineage.fingerprint")?
                    .parse()
                    .or(Err(fault("lineage.fingerprint", ArgumentFault::Characters)))?,
            })
        }
        _ => Err(fault("lineage.kind", ArgumentFault::Shape)),
    }
}

fn read_scope(value: &Value) -> Result<FocusScope, ArgumentError> {
    let members = Members::of(value, "scope", &["summary", "includes", "excludes"])?;
    let entries = |path: &'static str| -> Result<Vec<String>, ArgumentError> {
        let list = members.list(path, &(0..=limits::FOCUS_SCOPE_ENTRIES_MAX))?;
        list.iter().map(|item| bounded_text(item, path, limits::FOCUS_SCOPE_ENTRY_CHARACTERS_MAX)).collect()
    };
    Ok(FocusScope {
        summary: members.text("scope.summary", limits::FOCUS_SUMMARY_CHARACTERS_MAX)?,
        includes: entries("scope.includes")?,
        excludes: entries("scope.excludes")?,
    })
}

fn read_subscription(value: &Value) -> Result<FocusSubscription, ArgumentError> {
    let members = Members::of(value, "subscriptions", &["eventType", "source"])?;
    Ok(FocusSubscription {
        event_type: members.label("subscriptions.eventType")?,
        source: members.label("subscriptions.source")?,
    })
}

fn read_budgets(value: &Value) -> Result<FocusBudgets, ArgumentError> {
    let allowed = ["maxEventsPerDay", "maxInferenceRequestsPerDay", "maxContextCharacters"];
    let members = Members::of(value, "budgets", &allowed)?;
    Ok(FocusBudgets {
        max_events_per_day: members.integer("budgets.maxEventsPerDay", &limits::FOCUS_EVENTS_PER_DAY)?,
        max_inference_requests_per_day: members
            .integer("budgets.maxInferenceRequestsPerDay", &limits::FOCUS_INFERENCE_REQUESTS_PER_DAY)?,
        max_context_characters: members
            .integer("budgets.maxContextCharacters", &limits::FOCUS_CONTEXT_CHARACTERS)?,
    })
}

impl FocusPermission {
    /// Every permission that may be asked for.
    pub const ALL: [Self; 4] =
        [Self::ReadEvents, Self::DeriveObservations, Self::ProposeMemory, Self::NotifyOperator];

    /// The name on the wire and in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadEvents => "read-events",
            Self::DeriveObservations => "derive-observations",
            Self::ProposeMemory => "propose-memory",
            Self::NotifyOperator => "notify-operator",
        }
    }
}

fn read_permissions(members: &Members<'_>) -> Result<Vec<FocusPermission>, ArgumentError> {
    let path = "requestedPermissions";
    let words = FocusPermission::ALL.map(|permission| (permission.as_str(), permission));
    let mut permissions = Vec::new();
    for item in members.list(path, &(0..=limits::FOCUS_PERMISSIONS_MAX))? {
        let permission = choose(item, path, &words)?;
        if permissions.contains(&permission) {
            return Err(fault(path, ArgumentFault::Duplicate));
        }
        permissions.push(permission);
    }
    Ok(permissions)
}

fn read_retirement(value: &Value) -> Result<FocusRetirement, ArgumentError> {
    let members = |allowed: &[&str]| Members::of(value, "retirement", allowed);
    match kind(value, "retirement.kind")? {
        "at" => {
            let at = members(&["kind", "at"])?.string("retirement.at")?;
            if !is_time(at) {
                return Err(fault("retirement.at", ArgumentFault::Characters));
            }
            Ok(FocusRetirement::At { at: at.to_owned() })
        }
        "after-days" => Ok(FocusRetirement::AfterDays {
            days: members(&["kind", "days"])?.integer("retirement.days", &limits::FOCUS_RETIREMENT_DAYS)?,
        }),
        "after-events" => Ok(FocusRetirement::AfterEvents {
            count: members(&["kind", "count"])?
                .integer("retirement.count", &limits::FOCUS_RETIREMENT_EVENTS)?,
        }),
        "manual" => members(&["kind"]).map(|_| FocusRetirement::Manual),
        _ => Err(fault("retirement.kind", ArgumentFault::Shape)),
    }
}

/// Whether text is a time of the contract: `YYYY-MM-DDTHH:MM:SS.mmmZ`, a day that exists.
fn is_time(text: &str) -> bool {
    const FORM: &[u8; 24] = b"dddd-dd-ddTdd:dd:dd.dddZ";
    let bytes = text.as_bytes();
    let formed = bytes.len() == FORM.len()
        && bytes.iter().zip(FORM).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        });
    if !formed {
        return false;
    }
    let number = |at: std::ops::Range<usize>| {
        bytes[at].iter().fold(0_u32, |n, digit| n * 10 + u32::from(digit - b'0'))
    };
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day) && number(11..13) < 24 && number(14..16) < 60 && number(17..19) < 60
}
