//! Chores of the workspace: what CI checks, generated references, benches.

mod bench;
mod ci;
mod house;
mod reference;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    match command.as_deref() {
        Some("ci") => ci::run(),
        Some("house") => house::check(),
        Some("reference") => reference::run(&rest),
        Some("bench") => bench::run(&rest),
        _ => bail!(
            "cargo xtask ci|house|reference [--check]|bench\n\
             ci         everything that CI checks\n\
             house      which room may link which\n\
             reference  write docs/reference from the command line's own definition; --check compares\n\
             bench      print the figures of a release build"
        ),
    }
}
