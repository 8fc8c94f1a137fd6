//! Time as the log writes it: RFC 3339, UTC, milliseconds. Times are evidence, never an order: order is sequence and
//! position.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Where the present moment comes from. Domain code is handed one; only the binary knows the machine's clock.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// Text that is not a moment in the form of the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read a time: expected RFC 3339 in UTC with milliseconds")]
pub struct TimeError;

const MS_PER_DAY: i64 = 86_400_000;

impl Timestamp {
    /// A moment from milliseconds since the epoch; clamped to the years 1970 to 9999.
    pub fn from_ms(ms: i64) -> Self {
        Self(ms.clamp(0, 253_402_300_799_999))
    }

    /// Milliseconds since the epoch.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// The UTC day, as `YYYY-MM-DD`.
    pub fn day(self) -> String {
        self.to_string()[..10].to_owned()
    }

    /// The moment that lies this many milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_ms(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment; negative when the clock went back.
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// The first moment of the next UTC day.
    #[must_use]
    pub fn next_day(self) -> Self {
        Self::from_ms((self.0 / MS_PER_DAY + 1) * MS_PER_DAY)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => f.write_str("1970-01-01T00:00:00.000Z"),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;
    fn from_str(text: &str) -> Result<Self, TimeError> {
        let parsed = text.parse::<jiff::Timestamp>().ok().map(|t| Self(t.as_millisecond()));
        match parsed {
            Some(moment) if moment.to_string() == text => Ok(moment),
            _ => Err(TimeError),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_form_round_trips() {
        let moment = Timestamp::from_ms(1_796_072_531_402);
        assert_eq!(moment.to_string(), "2026-11-30T21:02:11.402Z");
        assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
        assert_eq!(moment.day(), "2026-11-30");
        assert_eq!(moment.next_day().to_string(), "2026-12-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn other_forms_are_refused() {
        for text in ["2026-11-30T21:02:11Z", "2026-11-30T21:02:11.402+00:00", "2026-11-30", ""] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }
}
