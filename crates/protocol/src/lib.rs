//! What both sides of the wall share: ids, canonical JSON, limits, private values, packet and result frames, the
//! provider codecs, the snapshot capability and the validators of tool arguments.
//!
//! Everything that the jail must check lives here. Pure: no async, no IO, no clock, no randomness.

pub mod answer;
pub mod canonical;
pub mod capability;
pub mod frame;
pub mod hash;
pub mod id;
pub mod limits;
pub mod packet;
pub mod proposal;
pub mod provider;
pub mod reason;
pub mod result;
pub mod sensitive;
pub mod strict_json;

pub use hash::{Fingerprint, Sha256Hex};
pub use id::{AttemptId, DocumentId, EventId, ExportId, RunId, SnapshotId, VersionId};
pub use sensitive::Sensitive;
