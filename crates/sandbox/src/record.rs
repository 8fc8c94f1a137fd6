//! The status record: sixteen bytes that a starting worker writes on the channel, before anything else.
//!
//! Layout: magic (4), kind (1), stage or tier (1), two zero bytes, value (4, little endian), four zero
//! bytes. A record that differs in any bit from what this file writes is no record.

use crate::{Stage, Tier};

/// Length of every record.
pub(crate) const RECORD_BYTES: usize = 16;

const MAGIC: [u8; 4] = *b"TSJ1";

/// What a starting worker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// The outer process made the one that goes on; its id in the launcher's namespace.
    Forked { pid: i32 },
    /// Every layer is in place.
    Sealed { tier: Tier, landlock_abi: i32 },
    /// A layer could not be put in place, and the worker ends.
    Refused { stage: Stage, errno: i32 },
}

impl Record {
    pub(crate) fn encode(self) -> [u8; RECORD_BYTES] {
        let (kind, detail, value) = match self {
            Self::Forked { pid } => (1, 0, pid),
            Self::Sealed { tier, landlock_abi } => (2, tier.code(), landlock_abi),
            Self::Refused { stage, errno } => (3, stage.code(), errno),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = kind;
        bytes[5] = detail;
        bytes[8..12].copy_from_slice(&i32::to_le_bytes(value));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let [_, _, _, _, kind, detail, _, _, a, b, c, d, ..] = *bytes;
        let value = i32::from_le_bytes([a, b, c, d]);
        let record = match kind {
            1 if value > 0 => Self::Forked { pid: value },
            2 if value >= 0 => Self::Sealed { tier: Tier::from_code(detail)?, landlock_abi: value },
            3 => Self::Refused { stage: Stage::from_code(detail)?, errno: value },
            _ => return None,
        };
        (record.encode() == *bytes).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let mut all = vec![
            Record::Forked { pid: 1 },
            Record::Forked { pid: i32::MAX },
            Record::Sealed { tier: Tier::Full, landlock_abi: 7 },
            Record::Sealed { tier: Tier::LandlockSeccomp, landlock_abi: 1 },
        ];
        all.extend(Stage::ALL.iter().map(|stage| Record::Refused { stage: *stage, errno: 38 }));
        all
    }

    #[test]
    fn records_survive_their_bytes() {
        for record in samples() {
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn no_altered_frame_byte_is_accepted() {
        for record in samples() {
            let good = record.encode();
            for index in [0, 1, 2, 3, 6, 7, 12, 13, 14, 15] {
                let mut bad = good;
                bad[index] ^= 0x40;
                assert_eq!(Record::decode(&bad), None, "{record:?} byte {index}");
            }
            let mut bad = good;
            bad[4] = 9;
            assert_eq!(Record::decode(&bad), None);
        }
    }

    #[test]
    fn impossible_values_are_refused() {
        let mut bytes = Record::Forked { pid: 5 }.encode();
        bytes[8..12].copy_from_slice(&(-1i32).to_le_bytes());
        assert_eq!(Record::decode(&bytes), None);
        let mut bytes = Record::Sealed { tier: Tier::Full, landlock_abi: 7 }.encode();
        bytes[8..12].copy_from_slice(&(-1i32).to_le_bytes());
        assert_eq!(Record::decode(&bytes), None);
        let mut bytes = Record::Refused { stage: Stage::Seccomp, errno: 1 }.encode();
        bytes[5] = 200;
        assert_eq!(Record::decode(&bytes), None);
    }
}
