//! The fuzz targets under libFuzzer, by hand: CI runs them on their corpora and on seeded changes, as a test. It wants
//! rustup, its nightly toolchain and cargo-fuzz.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Time of each target, seconds.
const SECONDS: u64 = 10;

/// Runs every target, one after another: `--seconds N` for each, `--only NAME` for one. What they find anew stays out of
/// the repository: `corpus/` is read alone.
///
/// # Errors
/// When a target broke, what it takes is missing, or an argument is none.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(arguments.get(at + 1).with_context(|| format!("{name} wants a value")))
    };
    let seconds = match value("--seconds").transpose()? {
        Some(text) => text.parse().context("--seconds wants a number")?,
        None => SECONDS,
    };
    let only = value("--only").transpose()?;
    if !can_be_had() {
        bail!("rustup's nightly toolchain and cargo-fuzz are wanted: cargo install --locked cargo-fuzz");
    }
    let found = tempfile::tempdir().context("make a folder for what is found")?;
    let mut ran = 0;
    for target in targets()? {
        if only.is_none_or(|only| *only == target) {
            one(&target, seconds, found.path())?;
            ran += 1;
        }
    }
    if ran == 0 { bail!("there is no such target") } else { Ok(()) }
}

/// Whether this machine has what it takes.
pub(crate) fn can_be_had() -> bool {
    let asked = nightly().args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

fn one(target: &str, seconds: u64, found: &Path) -> Result<()> {
    let found = found.join(target);
    std::fs::create_dir(&found).context("make a folder for what is found")?;
    let status = nightly()
        .args(["fuzz", "run", target])
        .arg(found)
        .arg(format!("fuzz/corpus/{target}"))
        .args(["--", "-timeout=10", "-print_final_stats=1"])
        .arg(format!("-max_total_time={seconds}"))
        .status()
        .with_context(|| format!("start the target {target}"))?;
    if status.success() {
        Ok(())
    } else {
        bail!("the target {target} broke; its input lies in fuzz/artifacts")
    }
}

/// The targets, by the names of their files.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(Path::new(ROOT).join("fuzz/fuzz_targets")).context("list the targets")? {
        let path = entry.context("list the targets")?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

#[expect(clippy::disallowed_methods, reason = "a chore starts cargo; the product starts nothing this way")]
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(ROOT);
    command
}
