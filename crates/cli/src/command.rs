//! The commands, one file a family. Each reads or asks a room to act, and prints; none decides anything itself.

pub mod completions;
pub mod context;
pub mod declaration;
pub mod events;
pub mod lineage;
pub mod mail;
pub mod proposals;
pub mod resolve;
pub mod runs;
pub mod status;
