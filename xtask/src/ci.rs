//! What CI checks, as one command: format, lints, house, references, documentation, dependencies, tests.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{house, reference};

/// Runs every check, in the order in which they are cheap.
///
/// # Errors
/// Names the first check that failed.
pub(crate) fn run() -> Result<()> {
    step("format", &["fmt", "--all", "--check"], &[])?;
    house::check()?;
    step("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    reference::run(&["--check".to_owned()])?;
    let rustdoc = [("RUSTDOCFLAGS", "-D warnings")];
    step("documentation", &["doc", "--workspace", "--no-deps", "--document-private-items"], &rustdoc)?;
    dependencies()?;
    tests()?;
    say_what_python_could_not_check();
    Ok(())
}

/// A test loads an export as a trainer would, where Python has the packages; where it has not, that is said aloud, since
/// the test cannot fail for it.
#[expect(clippy::disallowed_methods, reason = "a chore asks what is installed")]
#[expect(clippy::print_stderr, reason = "what was not checked is said aloud")]
fn say_what_python_could_not_check() {
    let python = std::env::var_os("THOUGHT_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let found = Command::new(python).args(["-c", "import datasets, trl.data_utils"]).output();
    if !found.is_ok_and(|done| done.status.success()) {
        eprintln!(
            "NOT CHECKED: this machine's Python has no datasets and trl, so examples/load_preferences.py did not run; \
             .ci/python makes one that has"
        );
    }
}

/// Runs the tests: nextest where it is installed, else cargo's own runner; the same tests either way.
fn tests() -> Result<()> {
    if has("nextest") {
        step("tests", &["nextest", "run", "--workspace", "--no-fail-fast"], &[])
    } else {
        step("tests", &["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"], &[])
    }
}

/// Licences, sources and duplicates, by cargo-deny; `.ci/run` installs it.
fn dependencies() -> Result<()> {
    if !has("deny") {
        bail!("cargo-deny is missing: cargo install --locked cargo-deny");
    }
    step("dependencies", &["deny", "--locked", "check", "bans", "licenses", "sources"], &[])
}

fn has(subcommand: &str) -> bool {
    let found = cargo().args([subcommand, "--version"]).output();
    found.is_ok_and(|output| output.status.success())
}

#[expect(clippy::disallowed_methods, reason = "a chore starts cargo; the product starts nothing this way")]
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn step(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let status = cargo()
        .args(arguments)
        .envs(variables.iter().copied())
        .status()
        .with_context(|| format!("start the check of {name}"))?;
    if status.success() { Ok(()) } else { bail!("the check of {name} failed") }
}
