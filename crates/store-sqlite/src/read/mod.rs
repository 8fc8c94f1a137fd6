//! Answers reads. Each function is one question of the port; what it costs grows with its answer, never with the log.

use rusqlite::types::Value;
use rusqlite::{ParamsFromIter, params_from_iter};

pub(crate) mod channel;
pub(crate) mod context;
pub(crate) mod document;
pub(crate) mod event;
pub(crate) mod history;
pub(crate) mod proposal;
pub(crate) mod review;
pub(crate) mod run;

/// Values that one statement takes at once. It is the same statement for fewer, so that it is prepared once.
const BATCH: usize = 64;

/// The parameters of a statement with [`BATCH`] places; those that are left hold nothing, which equals nothing.
fn batch<T: Into<Value>>(values: impl Iterator<Item = T>) -> ParamsFromIter<impl Iterator<Item = Value>> {
    params_from_iter(values.map(Into::into).chain(std::iter::repeat(Value::Null)).take(BATCH))
}

/// `?n, ?n+1, …` for a list of values.
fn placeholders(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}
