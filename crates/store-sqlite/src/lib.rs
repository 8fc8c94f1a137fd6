//! The embedded engine: the store's port over one SQLite file in WAL mode, shared by several processes.
//!
//! Owns the schema, the writer thread with its group commit, the reader threads, and the watch for news of other
//! processes. It decides nothing: a commit's preconditions come with it, and an unmet one leaves no trace. The only room
//! that links SQLite; no SQL text, row or value of it ever reaches an error or a log.

mod apply;
mod audit;
mod copy;
mod counters;
mod failure;
mod faults;
mod fields;
mod limits;
mod news;
mod open;
mod queue;
mod read;
mod reader;
#[cfg(test)]
mod scale_tests;
mod schema;
mod session;
mod store;
mod writer;

pub use copy::copy;
pub use faults::{Faults, Verdict};
pub use open::{Creation, OpenOptions, PageCounting};
pub use schema::SCHEMA_VERSION;
pub use store::SqliteStore;
