//! Figures of a release build, each beside a baseline of the same run.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Builds and runs the figures; arguments go to them as they are (`--json` prints one document).
///
/// # Errors
/// When something could not be measured at all; a figure that misses its target is printed as such and is no error.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    #[expect(
        clippy::disallowed_methods,
        reason = "a chore starts cargo; the product starts nothing this way"
    )]
    let mut command = Command::new(cargo);
    command.args(["bench", "--quiet", "--package", "thought", "--bench", "figures", "--"]).args(arguments);
    let status = command.status().context("start the bench")?;
    if status.success() { Ok(()) } else { bail!("the figures could not be measured") }
}
