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

/// What tests run with Python where it has the packages: the variable that names it, what it must import, what is not
/// checked without.
const PYTHON: [(&str, &str, &str); 2] = [
    (
        "THOUGHT_TEST_PYTHON",
        "import datasets, trl.data_utils",
        "this machine's Python has no datasets and trl, so examples/load_preferences.py did not run; \
         `.ci/python training` makes one that has",
    ),
    (
        "THOUGHT_TEST_TELEGRAM_PYTHON",
        "import telegram.error",
        "this machine's Python has no python-telegram-bot, so it did not talk to the Bot API of the tests; \
         `.ci/python telegram` makes one that has",
    ),
];

/// Where Python lacks the packages, that is said aloud, since the tests cannot fail for it.
#[expect(clippy::disallowed_methods, reason = "a chore asks what is installed")]
#[expect(clippy::print_stderr, reason = "what was not checked is said aloud")]
fn say_what_python_could_not_check() {
    for (variable, imports, unchecked) in PYTHON {
        let python = std::env::var_os(variable).unwrap_or_else(|| "python3".into());
        let found = Command::new(python).args(["-c", imports]).output();
        if !found.is_ok_and(|done| done.status.success()) {
            eprintln!("NOT CHECKED: {unchecked}");
        }
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
