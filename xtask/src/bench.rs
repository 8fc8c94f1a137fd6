//! Figures of a release build, each beside a baseline of the same run.

use anyhow::{Result, bail};

/// Runs the benches.
///
/// # Errors
/// When a bench cannot run here.
pub(crate) fn run(_arguments: &[String]) -> Result<()> {
    bail!("no bench is built yet")
}
