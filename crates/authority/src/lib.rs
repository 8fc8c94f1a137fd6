//! Everything that a person's word sets in motion: the documents of the context root, the chain validator, decisions,
//! projectors, the materializer.
//!
//! `chain` verifies, `decide` and `operator` take a person's word, `project` carries it out through `judge` and
//! `materialize`; `root`, `lock`, `filesystem` and `watch` are the documents' side. The room must never follow a link below
//! the home, act on a model's word, or put a document's text into an error or a log.

pub mod chain;
pub mod correct;
pub mod decide;
pub mod export;
pub mod filesystem;
pub mod follow;
pub mod judge;
pub mod limits;
pub mod lock;
pub mod materialize;
pub mod operator;
pub mod project;
pub mod reason;
pub mod replacement;
pub mod root;
pub mod walk;
pub mod watch;
