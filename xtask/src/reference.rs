//! Generated references: the command line's own definition as pages under `docs/reference`.
//!
//! The binary writes its manual pages; its help texts are gathered into one page, and its table of what each command appends
//! into another. `--check` compares instead of writing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Writes the references, or compares them with `--check`.
///
/// # Errors
/// Names the page that is not current.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let is_check = arguments.iter().any(|argument| argument == "--check");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let folder = root.join("docs");
    let binary = binary()?;
    let mut pages = vec![("reference/commands.md".to_owned(), commands(&binary)?)];
    pages.push(("reference/appends.md".to_owned(), appends(&binary)?));
    pages.extend(manual(&binary)?);
    let mut stale = Vec::new();
    for (name, text) in pages {
        let path = folder.join(&name);
        if std::fs::read_to_string(&path).unwrap_or_default() == text {
            continue;
        }
        if is_check {
            stale.push(format!("docs/{name}"));
        } else {
            std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
    }
    if stale.is_empty() {
        Ok(())
    } else {
        bail!("not current: {}; run cargo xtask reference", stale.join(", "))
    }
}

/// Builds the binary and answers its path.
fn binary() -> Result<PathBuf> {
    let output = run_command(&["build", "--quiet", "--package", "thought", "--message-format", "json"])?;
    let found = String::from_utf8(output)?.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_ours = message["target"]["name"] == "thought";
        message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
    });
    found.context("find the built binary")
}

#[expect(clippy::disallowed_methods, reason = "a chore starts cargo; the product starts nothing this way")]
fn run_command(arguments: &[&str]) -> Result<Vec<u8>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).stderr(std::process::Stdio::inherit()).output()?;
    if output.status.success() { Ok(output.stdout) } else { bail!("cargo {} failed", arguments.join(" ")) }
}

/// The help of the binary and of every command, in one page.
fn commands(binary: &Path) -> Result<String> {
    let top = help(binary, &[])?;
    let mut page = String::from(
        "# Commands\n\nGenerated from the command line's own definition by `cargo xtask reference`.\n\n```text\n",
    );
    page.push_str(&top);
    page.push_str("```\n");
    for command in names(&top) {
        page.push_str(&format!("\n## {command}\n\n```text\n{}```\n", help(binary, &[&command])?));
    }
    Ok(page)
}

/// The table of what each command appends, as the binary holds it.
#[expect(clippy::disallowed_methods, reason = "a chore asks the built binary for its table")]
fn appends(binary: &Path) -> Result<String> {
    let output = Command::new(binary).args(["appends", "--json"]).env_clear().output()?;
    if !output.status.success() {
        bail!("the binary did not print what its commands append");
    }
    let mut page = String::from(
        "# What each command appends\n\nGenerated from the binary's own table by `cargo xtask reference`. A test runs every \
         command on a home and\ncompares the events that appear with this page. Nothing is ever updated or deleted.\n",
    );
    let mut silent = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        let command = row["command"].as_str().context("read a command's name")?;
        let types: Vec<&str> =
            row["appends"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
        if types.is_empty() {
            silent.push(format!("`{command}`"));
            continue;
        }
        page.push_str(&format!("\n## {command}\n\n"));
        types.iter().for_each(|name| page.push_str(&format!("- `{name}`\n")));
    }
    page.push_str(&format!("\n## Nothing\n\n{}.\n", silent.join(", ")));
    Ok(page)
}

/// The manual pages as the binary writes them.
#[expect(clippy::disallowed_methods, reason = "a chore asks the built binary for its manual")]
fn manual(binary: &Path) -> Result<Vec<(String, String)>> {
    let folder = tempfile::tempdir()?;
    let written = Command::new(binary).env_clear().arg("man").arg("--output").arg(folder.path()).output()?;
    if !written.status.success() {
        bail!("the binary did not write its manual");
    }
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder.path())? {
        let entry = entry?;
        let name = format!("man/{}", entry.file_name().to_string_lossy());
        pages.push((name, std::fs::read_to_string(entry.path())?));
    }
    pages.sort();
    Ok(pages)
}

/// The names in the section `Commands:` of a help text.
fn names(help: &str) -> Vec<String> {
    let section = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let lines = section.take_while(|line| !line.trim().is_empty());
    lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

#[expect(clippy::disallowed_methods, reason = "a chore asks the built binary for its help")]
fn help(binary: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(binary)
        .args(arguments)
        .arg("--help")
        .env_clear()
        .env("COLUMNS", "100")
        .output()
        .context("ask the binary for its help")?;
    let text = String::from_utf8(output.stdout)?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok(format!("{}\n", lines.join("\n")))
}
