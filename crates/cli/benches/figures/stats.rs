//! Order statistics of a handful of measurements.

use std::time::{Duration, Instant};

/// Measurements of one kind, in one unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn push_ms(&mut self, duration: Duration) {
        self.push(ms(duration));
    }

    /// Times a piece of work, and hands on what it made.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let made = work();
        self.push_ms(began.elapsed());
        made
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }

    pub(crate) fn p95(&self) -> f64 {
        self.at(0.95)
    }

    /// What a tenth stays below: how it is when nothing else wants the machine.
    pub(crate) fn p10(&self) -> f64 {
        self.at(0.1)
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.0.is_empty() { f64::NAN } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn at(&self, quantile: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let index = (sorted.len().saturating_sub(1) as f64 * quantile).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// A duration in milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
