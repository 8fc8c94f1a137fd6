//! The commands, one file a family. Each reads or asks a room to act, and prints; none decides anything itself.

pub mod completions;
pub mod context;
pub mod decisions;
pub mod declaration;
pub mod delivery;
pub mod events;
pub mod export;
pub mod judgments;
pub mod lineage;
pub mod mail;
pub mod menu;
pub mod proposals;
pub mod resolve;
pub mod review;
pub mod runs;
pub mod status;
pub mod verify;
pub mod webhook;
