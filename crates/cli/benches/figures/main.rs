//! The figures of a release build, each beside a baseline that is measured in the same run.
//!
//! It measures the real binary against servers on loopback that live in this process, and the rooms themselves where a
//! figure is about one of them. It asserts nothing: it fails only when something did not work at all. A machine that is
//! busy with other work prints other times; the ratios and the counts stay.

mod commits;
mod context;
mod cost;
mod export;
mod fill;
mod jail;
mod mail;
mod options;
mod place;
mod proc;
mod scale;
mod stats;
mod table;
mod turns;
mod word;

use std::process::ExitCode;

use anyhow::Result;

use crate::options::{Options, Part};
use crate::table::{Row, Table};

/// The argument of a process that is started to end at once: the bare start that others are compared with.
const BARE: &str = "__bare";

fn main() -> ExitCode {
    if let Some(code) = thought_cli::jail::become_worker() {
        return code;
    }
    if std::env::args().nth(1).as_deref() == Some(BARE) {
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => table::complain(&error),
    }
}

fn run() -> Result<()> {
    let options = Options::read()?;
    let mut table = Table::new(options.form);
    machine(&mut table)?;
    if options.wants(Part::Jail) {
        jail::launches(&mut table)?;
    }
    if options.wants(Part::Packet) {
        jail::packet_to_first_byte(&options, &mut table)?;
    }
    if options.wants(Part::Settlement) {
        commits::settlement(&options.memory, "memory", &mut table)?;
        commits::settlement(&options.disk, "disk", &mut table)?;
    }
    if options.wants(Part::Memory) {
        turns::on_memory(&options, &mut table)?;
    }
    if options.wants(Part::Disk) {
        turns::on_disk(&options, &mut table)?;
    }
    if options.wants(Part::Context) {
        context::at_each_size(&options, &mut table)?;
    }
    if options.wants(Part::Word) {
        word::of_a_person(&options, &mut table)?;
    }
    if options.wants(Part::Scale) {
        scale::compare(&options, &mut table)?;
    }
    if options.wants(Part::Mail) {
        mail::across(&options, &mut table)?;
    }
    if options.wants(Part::Export) {
        export::of_many(&options, &mut table)?;
    }
    machine(&mut table)?;
    table.finish()
}

/// How busy the machine is: other work beside the bench slows what is measured and its baselines alike.
fn machine(table: &mut Table) -> Result<()> {
    table.group("The machine");
    let processors = std::thread::available_parallelism()?.get() as f64;
    table.row(Row::new("load, last minute", proc::load()?, "").beside("its processors", processors));
    Ok(())
}
