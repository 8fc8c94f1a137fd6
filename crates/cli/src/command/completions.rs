//! `completions` and `man`: generated from the one definition of the command line.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::{Exit, Failure};

/// A completion script, as text.
pub fn script(shell: clap_complete::Shell) -> Vec<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "thought", &mut bytes);
    bytes
}

/// Prints a completion script.
///
/// # Errors
/// [`Failure`] when stdout cannot be written.
pub fn print(shell: clap_complete::Shell) -> Result<(), Failure> {
    std::io::stdout().lock().write_all(&script(shell)).map_err(|error| Failure::internal(&error))
}

/// The manual pages: file name and text.
///
/// # Errors
/// [`Failure`] when a page cannot be rendered.
pub fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut root = Cli::command();
    root.build();
    let mut pages = Vec::new();
    let mut render = |name: String, command: clap::Command| -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let page = clap_mangen::Man::new(command).date("").source("thought");
        page.render(&mut bytes).map_err(|error| Failure::internal(&error))?;
        pages.push((format!("{name}.1"), bytes));
        Ok(())
    };
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("thought-{}", command.get_name());
        let display: &'static str = Box::leak(name.clone().into_boxed_str());
        render(name, command.clone().name(display))?;
    }
    render("thought".to_owned(), root.clone())?;
    Ok(pages)
}

/// Writes the manual pages into a folder, which is made when it is not there.
///
/// # Errors
/// [`Failure`] naming the file that cannot be written.
pub fn write_pages(folder: &Path) -> Result<usize, Failure> {
    let cannot = |path: &Path, error: &std::io::Error| {
        let message = format!("write {}: {}", path.display(), error.kind());
        Failure::new(Exit::Machine, "cannot-write", message)
    };
    std::fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
    let pages = pages()?;
    for (name, bytes) in &pages {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|error| cannot(&path, &error))?;
    }
    Ok(pages.len())
}
