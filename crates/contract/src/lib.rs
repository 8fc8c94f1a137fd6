//! The vocabulary of the log: envelopes, the event registry and its payloads, declarations as types, and the pure
//! readings of evidence that several rooms share.
//!
//! Pure like the protocol below it: no IO, no clock, no store. What an event *is* stands here; who may append it, and
//! when, is the business of the rooms above.

pub mod change;
pub mod conversation;
pub mod declaration;
pub mod draft;
pub mod event;
pub mod frontmatter;
pub mod payload;
pub mod review;
pub mod run;
pub mod shipped;
pub mod snapshot;
pub mod time;
pub mod yaml;
