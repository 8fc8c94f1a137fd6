//! Answers reads. Each function is one question of the port; what it costs grows with its answer, never with the log.

pub(crate) mod channel;
pub(crate) mod document;
pub(crate) mod event;
pub(crate) mod history;
pub(crate) mod proposal;
pub(crate) mod review;
pub(crate) mod run;

/// `?n, ?n+1, …` for a list of values.
fn placeholders(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}
