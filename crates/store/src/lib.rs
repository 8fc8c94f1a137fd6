//! The store's port, by role: a reader, one handle per producer role, settlement and the other closed commands with
//! their preconditions as data.
//!
//! Links no database. An engine implements [`engine::Engine`]; [`Store`] cuts the handles, and only the binary's
//! composition holds a whole [`Store`]. There is no generic append: what a room may write is the handle it is given.

pub mod audit;
pub mod command;
pub mod engine;
pub mod handle;
pub mod images;
pub mod news;
pub mod row;
#[cfg(feature = "suite")]
pub mod suite;

pub use engine::{BoxFuture, Engine, Precondition, Reads, StoreError};
pub use handle::Store;
pub use images::{Images, ImagesError, NoImages};
pub use news::{Herald, News, Topics};
