//! Chores of the workspace: what CI checks, generated references, benches, fuzzing, soaks.

mod bench;
mod ci;
mod fuzz;
mod house;
mod reference;
mod soak;

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
        Some("fuzz") => fuzz::run(&rest),
        Some("soak") => soak::run(&rest),
        _ => bail!(
            "cargo xtask ci|house|reference [--check]|bench|fuzz|soak\n\
             ci         everything that CI checks\n\
             house      which room may link which\n\
             reference  write docs/reference from the command line's own definition; --check compares\n\
             bench      print the figures of a release build\n\
             fuzz       the fuzz targets under libFuzzer: --seconds N of each, --only NAME\n\
             soak       5,000 materializations beside somebody who swaps and saves, and 10,000 updates through a channel at its\n\
             \x20          worst: --rounds N of each of 5 kinds, --updates N, --seed N, --only documents|channel;\n\
             \x20          --only simulation --seeds N --seed N: seeds of the simulation"
        ),
    }
}
