//! Reading the members of an object strictly: exact names, exact types, exact bounds, no coercion.
//!
//! A *path* such as `scope.summary` names a member in errors; its last segment is the key.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::{ArgumentError, ArgumentFault};
use crate::capability::PacketCapability;
use crate::id::EventId;
use crate::limits::{EVIDENCE_IDS_MAX, LABEL_CHARACTERS_MAX};

/// The members of one object.
pub(super) struct Members<'a>(&'a Map<String, Value>);

pub(super) const fn fault(member: &'static str, fault: ArgumentFault) -> ArgumentError {
    ArgumentError { member, fault }
}

fn key(path: &'static str) -> &'static str {
    path.rsplit_once('.').map_or(path, |(_, key)| key)
}

/// Text of 1 to `characters_max` characters without U+0000.
pub(super) fn bounded_text(
    value: &Value,
    path: &'static str,
    characters_max: usize,
) -> Result<String, ArgumentError> {
    let Value::String(text) = value else { return Err(fault(path, ArgumentFault::Shape)) };
    if text.is_empty() {
        return Err(fault(path, ArgumentFault::Empty));
    }
    if text.chars().nth(characters_max).is_some() {
        return Err(fault(path, ArgumentFault::TooLong));
    }
    if text.contains('\0') {
        return Err(fault(path, ArgumentFault::Characters));
    }
    Ok(text.clone())
}

impl<'a> Members<'a> {
    /// The members of an object that has no others than `allowed`.
    pub(super) fn of(value: &'a Value, path: &'static str, allowed: &[&str]) -> Result<Self, ArgumentError> {
        let Value::Object(map) = value else { return Err(fault(path, ArgumentFault::Shape)) };
        if map.keys().any(|key| !allowed.contains(&key.as_str())) {
            return Err(fault(path, ArgumentFault::Unknown));
        }
        Ok(Self(map))
    }

    /// The value of a required member.
    pub(super) fn value(&self, path: &'static str) -> Result<&'a Value, ArgumentError> {
        self.0.get(key(path)).ok_or(fault(path, ArgumentFault::Missing))
    }

    /// A string of any length.
    pub(super) fn string(&self, path: &'static str) -> Result<&'a str, ArgumentError> {
        self.value(path)?.as_str().ok_or(fault(path, ArgumentFault::Shape))
    }

    /// See [`bounded_text`].
    pub(super) fn text(&self, path: &'static str, characters_max: usize) -> Result<String, ArgumentError> {
        bounded_text(self.value(path)?, path, characters_max)
    }

    /// Bounded text on one line, without control characters.
    pub(super) fn label(&self, path: &'static str) -> Result<String, ArgumentError> {
        let text = self.text(path, LABEL_CHARACTERS_MAX)?;
        if text.chars().any(char::is_control) {
            return Err(fault(path, ArgumentFault::Characters));
        }
        Ok(text)
    }

    /// An integer within a range. `1.0`, `"1"` and `true` are none.
    pub(super) fn integer(
        &self,
        path: &'static str,
        range: &RangeInclusive<u32>,
    ) -> Result<u32, ArgumentError> {
        let Value::Number(number) = self.value(path)? else { return Err(fault(path, ArgumentFault::Shape)) };
        if !number.is_i64() && !number.is_u64() {
            return Err(fault(path, ArgumentFault::Shape));
        }
        number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or(fault(path, ArgumentFault::Range))
    }

    /// A list whose length lies within a range.
    pub(super) fn list(
        &self,
        path: &'static str,
        range: &RangeInclusive<usize>,
    ) -> Result<&'a [Value], ArgumentError> {
        let Value::Array(items) = self.value(path)? else { return Err(fault(path, ArgumentFault::Shape)) };
        if items.len() < *range.start() {
            return Err(fault(path, ArgumentFault::Empty));
        }
        if items.len() > *range.end() {
            return Err(fault(path, ArgumentFault::TooLong));
        }
        Ok(items)
    }

    /// One of the allowed words.
    pub(super) fn choice<T: Copy>(
        &self,
        path: &'static str,
        words: &[(&str, T)],
    ) -> Result<T, ArgumentError> {
        choose(self.value(path)?, path, words)
    }

    /// Unique event ids, each admitted as evidence.
    pub(super) fn evidence(
        &self,
        path: &'static str,
        capability: &PacketCapability,
    ) -> Result<Vec<EventId>, ArgumentError> {
        let mut seen = HashSet::new();
        let mut ids = Vec::new();
        for item in self.list(path, &(0..=EVIDENCE_IDS_MAX))? {
            let text = item.as_str().ok_or(fault(path, ArgumentFault::Shape))?;
            if !seen.insert(text) {
                return Err(fault(path, ArgumentFault::Duplicate));
            }
            let admitted = capability.evidence.iter().find(|id| id.as_str() == text);
            ids.push(admitted.cloned().ok_or(fault(path, ArgumentFault::EvidenceNotAdmitted))?);
        }
        Ok(ids)
    }
}

/// The meaning of a word among the allowed ones.
pub(super) fn choose<T: Copy>(
    value: &Value,
    path: &'static str,
    words: &[(&str, T)],
) -> Result<T, ArgumentError> {
    let text = value.as_str().ok_or(fault(path, ArgumentFault::Shape))?;
    words
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, meaning)| *meaning)
        .ok_or(fault(path, ArgumentFault::Shape))
}
