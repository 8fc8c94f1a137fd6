//! The order a worker is started with: its third argument, tier and limits in one short text.
//!
//! It stands in the process list, so it never holds anything but these.

use crate::limits::ORDER_BYTES;
use crate::{Tier, WorkerLimits};

/// Tier and limits, as they cross the start of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) tier: Tier,
    pub(crate) limits: WorkerLimits,
}

const ADDRESS_SPACE: &str = "address-space-bytes";
const CPU: &str = "cpu-seconds";

impl Order {
    /// The text of the argument.
    pub(crate) fn encode(self) -> String {
        format!(
            "{},{ADDRESS_SPACE}={},{CPU}={}",
            self.tier, self.limits.address_space_bytes, self.limits.cpu_seconds
        )
    }

    /// Reads the argument: a tier, alone (with the default limits) or followed by both limits in
    /// order. Anything else is nothing.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        if text.len() > ORDER_BYTES {
            return None;
        }
        let mut parts = text.split(',');
        let tier = Tier::from_name(parts.next()?)?;
        let Some(first) = parts.next() else {
            return Some(Self { tier, limits: WorkerLimits::default() });
        };
        let limits = WorkerLimits {
            address_space_bytes: number(first, ADDRESS_SPACE)?,
            cpu_seconds: number(parts.next()?, CPU)?,
        };
        parts.next().is_none().then_some(Self { tier, limits })
    }
}

/// The value of `key=digits`, at least 1.
fn number(part: &str, key: &str) -> Option<u64> {
    let digits = part.strip_prefix(key)?.strip_prefix('=')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match digits.parse() {
        Ok(value) if value > 0 => Some(value),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_its_text() {
        for tier in [Tier::Full, Tier::LandlockSeccomp] {
            let order = Order { tier, limits: WorkerLimits { address_space_bytes: 1 << 28, cpu_seconds: 7 } };
            assert_eq!(Order::decode(&order.encode()), Some(order));
            let bare = Order::decode(tier.name()).unwrap();
            assert_eq!(bare.limits, WorkerLimits::default());
        }
    }

    #[test]
    fn a_text_that_is_not_an_order_is_refused() {
        for text in [
            "",
            "none",
            "Full",
            "full,",
            "full,cpu-seconds=3",
            "full,address-space-bytes=1",
            "full,address-space-bytes=0,cpu-seconds=1",
            "full,address-space-bytes=+1,cpu-seconds=1",
            "full,address-space-bytes=1,cpu-seconds=1,more=1",
            "full,address-space-bytes=99999999999999999999,cpu-seconds=1",
            "full,cpu-seconds=1,address-space-bytes=1",
        ] {
            assert_eq!(Order::decode(text), None, "{text}");
        }
        let long = format!("full,address-space-bytes={},cpu-seconds=1", "1".repeat(200));
        assert_eq!(Order::decode(&long), None);
    }
}
