//! The runtime: declarations, context builders, the life of a run, settlement, activation and private agent messages.
//!
//! It owns what happens between an event and the settlement of its answer, and the ports that this needs: a jail, a
//! model, the documents, images, time. It knows no adapter, no channel and no key, makes at most one request an attempt
//! through its port, and never decides, judges or writes a document: a proposal that it settles is inert.

pub mod changeover;
pub mod consumer;
pub mod context;
pub mod declarations;
pub mod limits;
pub mod mail;
pub mod operator;
pub mod port;
pub mod reason;
mod run;
