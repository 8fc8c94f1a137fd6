//! The broker: the one room that holds a model provider's key and the only one that links an HTTP client towards
//! models.
//!
//! It owns where the provider is ([`Endpoint`]), the key ([`ApiKey`]), the proof that the jailed rendering and the
//! trusted one agree ([`EqualBytes`]), and the one request of an attempt ([`Broker::request`]).
//!
//! It must never send anything twice: no retry, no redirect, no reused connection, no proxy from the environment. It
//! never reads an answer, never chooses what is sent, never decides whether an attempt is repeated, and never lets the
//! key, the address or a body into an error, a log line or `Debug` output.

mod client;
mod endpoint;
mod equal;
mod failure;
mod key;
pub mod limits;
mod reachable;
mod reply;

pub use client::{Broker, Error};
pub use endpoint::{Endpoint, EndpointError};
pub use equal::{EqualBytes, Mismatch};
pub use key::{ApiKey, KeyError};
pub use reachable::{ModelListing, Reachability};
pub use reply::{BeforeReason, Reply, Timings, UnknownReason};
pub use thought_protocol::packet::Api;
